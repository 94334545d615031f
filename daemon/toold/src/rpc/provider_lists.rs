//! Lists of tools for the APIs of providers: which tools they show, and which are found by a search.

use std::collections::BTreeMap;

use serde_json::Value;
use toold_adapters::providers::{OfferedTool, loads_tools, most_tools, offer};
use toold_proto::call::{ProviderOptions, ToolFormat};
use toold_proto::tool::{Tool, ToolName};

/// The list for a provider.
pub(super) struct ProviderList {
    pub(super) tools: Value,
    /// The tools that the model has to find before it can call them.
    pub(super) deferred: Vec<ToolName>,
    /// Sentences for whoever asked for the list.
    pub(super) warnings: Vec<String>,
}

/// The tools that find and call the deferred ones. They are shown if there are any.
pub(super) struct FinderTools {
    pub(super) search: Tool,
    pub(super) call: Tool,
}

/// `ranked` are the tools in the order of their rank, each with whether it is deferred. If the API takes fewer tools, those
/// of the lowest rank are deferred as well.
pub(super) fn list(
    format: ToolFormat,
    mut ranked: Vec<(Tool, bool)>,
    finders: Option<FinderTools>,
    options: &ProviderOptions,
) -> ProviderList {
    let mut warnings = Vec::new();
    // Anthropic's API takes the deferred tools with the others.
    let shows_deferred = format == ToolFormat::Anthropic;
    let mut finders: Vec<Tool> = match finders {
        Some(tools) if loads_tools(format) => vec![tools.search],
        Some(tools) => vec![tools.search, tools.call],
        None => Vec::new(),
    };
    let mut left_out = Vec::new();
    if let Some(most) = most_tools(format) {
        let shown = ranked.iter().filter(|(_, deferred)| shows_deferred || !deferred).count();
        let finding = if ranked.iter().any(|(_, deferred)| *deferred) { finders.len() } else { 0 };
        if shown + finding > most {
            let room = most - finders.len();
            let last = ranked.iter_mut().filter(|(_, deferred)| shows_deferred || !deferred).skip(room);
            left_out = last
                .map(|(tool, deferred)| {
                    *deferred = true;
                    tool.name.clone()
                })
                .collect();
            let how = match (finders.as_slice(), shows_deferred) {
                ([], _) | (_, true) => "left out: list them by `names`".to_owned(),
                ([search], _) => format!("deferred: the model finds them with {}", search.name),
                ([search, call, ..], _) => {
                    format!("deferred: the model finds them with {} and calls them with {}", search.name, call.name)
                }
            };
            warnings.push(format!(
                "the API takes at most {most} tools, and there are {}; the {} of the lowest rank are {how}",
                shown + finding,
                left_out.len()
            ));
        }
    }
    let deferred: Vec<ToolName> =
        ranked.iter().filter(|(_, deferred)| *deferred).map(|(tool, _)| tool.name.clone()).collect();
    let in_list = ranked.iter().filter(|(tool, _)| !shows_deferred || !left_out.contains(&tool.name));
    let mut offered: Vec<OfferedTool> =
        in_list.map(|(tool, deferred)| OfferedTool { tool, deferred: *deferred }).collect();
    let is_searched = match shows_deferred {
        true => offered.iter().any(|one| one.deferred),
        false => !deferred.is_empty(),
    };
    if is_searched {
        if let ([search], true) = (finders.as_mut_slice(), loads_tools(format)) {
            search.description = what_is_found(ranked.iter().filter(|(_, deferred)| *deferred).map(|(tool, _)| tool));
        }
        offered.extend(finders.iter().map(|tool| OfferedTool { tool, deferred: false }));
    }
    let written = offer(format, &offered, options);
    warnings.extend(written.warnings);
    ProviderList { tools: written.tools, deferred, warnings }
}

/// Found tools are called as all others, and a model that does not see their names needs to know where they come from.
fn what_is_found<'a>(deferred: impl Iterator<Item = &'a Tool>) -> String {
    let mut counts = BTreeMap::<&str, usize>::new();
    for tool in deferred {
        *counts.entry(&tool.source.name).or_default() += 1;
    }
    let sources: Vec<String> =
        counts.iter().take(MOST_SOURCES).map(|(source, count)| format!("{source} ({count})")).collect();
    let more = if counts.len() > MOST_SOURCES { " and others" } else { "" };
    format!(
        "Finds tools that are not in your list by a few words about what they should do. You can call the tools that it finds. \
         It searches those of {}{more}.",
        sources.join(", ")
    )
}

const MOST_SOURCES: usize = 30;

/// # Errors
/// A caller that the provider does not have, in words.
pub(super) fn check_callers(format: ToolFormat, options: &ProviderOptions) -> Result<(), String> {
    let (fits, expected): (fn(&str) -> bool, _) = match format {
        ToolFormat::Anthropic => (
            |caller| caller == "direct" || caller.strip_prefix("code_execution_").is_some_and(is_date),
            "direct or a version of code_execution, such as code_execution_20260120",
        ),
        ToolFormat::OpenaiResponses => {
            (|caller| ["direct", "programmatic"].contains(&caller), "direct or programmatic")
        }
        ToolFormat::Native | ToolFormat::Openai | ToolFormat::Gemini | ToolFormat::Mcp => return Ok(()),
    };
    match options.allowed_callers.iter().find(|caller| !fits(caller)) {
        Some(caller) => Err(format!("allowed_callers: expected {expected}, got {caller:?}")),
        None => Ok(()),
    }
}

/// Versions of Anthropic's tools are days.
fn is_date(version: &str) -> bool {
    version.len() == 8 && version.bytes().all(|byte| byte.is_ascii_digit())
}
