//! `question`: asks the user, with answers to choose from.

use std::sync::Arc;

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::questions::{QuestionAnswer, QuestionRequest};
use toold_engine::tool::ToolOutput;
use toold_proto::provide::Role;
use toold_proto::question::QuestionOption;

use crate::builtin::{Builtin, READS, ToolFacts};
use crate::toolkit::Toolkit;

/// Arguments of `question`.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub(crate) struct QuestionInput {
    /// What is asked, in one or two sentences.
    question: String,
    /// The answers to choose from.
    #[cfg_attr(test, schemars(length(min = 2, max = 9)))]
    options: Vec<QuestionChoice>,
    /// Whether more than one may be chosen.
    #[serde(default)]
    multiple: bool,
    /// Whether the person may answer in words of their own.
    #[serde(default)]
    allow_other: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct QuestionChoice {
    /// A few words.
    label: String,
    /// What choosing it means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

pub(crate) struct QuestionTool;

impl Builtin for QuestionTool {
    type Input = QuestionInput;

    const NAME: &'static str = "question";
    const FACTS: ToolFacts = ToolFacts {
        label: "Ask the person",
        description: "Asks the person a question with answers to choose from, and waits. Use it when the work cannot \
                      continue without their decision.",
        parallelizable: false,
        permissions: &[],
        timeout: None,
        annotations: READS,
    };

    fn new(_: Arc<Toolkit>) -> Self {
        Self
    }

    async fn needs(&self, _: &QuestionInput, _: &Cx) -> anyhow::Result<Vec<Need>> {
        Ok(Vec::new())
    }

    async fn run(&self, input: QuestionInput, cx: &Cx) -> anyhow::Result<ToolOutput> {
        ensure!(!input.question.trim().is_empty(), "the question is empty");
        if let Some(output) = cx.run_role(Role::Question, serde_json::to_value(&input)?).await {
            return Ok(output?);
        }
        let options: Vec<QuestionOption> = input
            .options
            .into_iter()
            .zip(1..)
            .map(|(choice, number)| QuestionOption {
                id: number.to_string(),
                label: choice.label,
                description: choice.description,
            })
            .collect();
        let asking = QuestionRequest {
            question: input.question,
            options: options.clone(),
            multiple: input.multiple,
            allow_other: input.allow_other,
        };
        Ok(match cx.question(asking).await? {
            QuestionAnswer::Cancelled => ToolOutput::text("the person chose not to answer").with("cancelled", true),
            QuestionAnswer::Answer { answer_ids, answer } => {
                let chosen = options.iter().filter(|option| answer_ids.contains(&option.id));
                let words: Vec<&str> = chosen.map(|option| option.label.as_str()).chain(answer.as_deref()).collect();
                ToolOutput::text(words.join("\n")).with("answer_ids", answer_ids)
            }
        })
    }
}
