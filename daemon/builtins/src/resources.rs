//! Offers skills and memories as resources, and skills as prompts, to clients that can show them.
//!
//! An offer contains names only; the text is read on request.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde_json::{Map, Value, json};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::offers::{PromptTemplate, Resource, ResourceAddress, SourceOffer};
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Source, SourceKind, ToolName};

use crate::blocking::blocking;
use crate::builtin::{READS, into_tool_error};
use crate::memories::{self, MemoryScope};
use crate::skill;
use crate::skills::{Skills, find_skills};
use crate::toolkit::Toolkit;

const MARKDOWN: &str = "text/markdown";

/// Each skill as `skill://NAME` and as a prompt with its name.
pub fn of_skills(toolkit: &Arc<Toolkit>, skills: &Skills) -> SourceOffer {
    let spec = spec("skill", "Learn a skill");
    let give = |task: ResourceTask| -> Arc<dyn Callable> {
        Arc::new(SkillOrMemory { spec: spec.clone(), toolkit: toolkit.clone(), task })
    };
    let resources = skills.skills.iter().map(|skill| {
        Arc::new(Resource {
            address: ResourceAddress::Uri(format!("skill://{}", skill.name)),
            name: skill.name.clone(),
            title: None,
            description: Some(skill.description.clone()),
            mime_type: Some(MARKDOWN.to_owned()),
            source: spec.source.clone(),
            reader: give(ResourceTask::ReadSkill(skill.name.clone())),
            completer: None,
            watcher: None,
            more: Map::new(),
        })
    });
    let prompts = skills.skills.iter().map(|skill| {
        Arc::new(PromptTemplate {
            name: skill.name.clone(),
            title: None,
            description: Some(skill.description.clone()),
            arguments: Vec::new(),
            source: spec.source.clone(),
            renderer: give(ResourceTask::RenderSkill(skill.name.clone())),
            completer: None,
            more: Map::new(),
        })
    });
    SourceOffer { resources: resources.collect(), prompts: prompts.collect() }
}

/// Each of these memories as `memory://project/ID` or `memory://global/ID`. Memories of a session are private to it, so
/// they are never offered.
pub fn of_memories(toolkit: &Arc<Toolkit>, scope: MemoryScope, ids: &[String]) -> SourceOffer {
    let (place, description) = match scope {
        MemoryScope::Session => return SourceOffer::default(),
        MemoryScope::Project => ("project", "A memory of this project"),
        MemoryScope::Global => ("global", "A memory for all projects"),
    };
    let spec = spec("memory", "Read a memory");
    let resources = ids.iter().map(|id| {
        let task = ResourceTask::ReadMemory(scope, id.clone());
        Arc::new(Resource {
            address: ResourceAddress::Uri(format!("memory://{place}/{}", escaped(id))),
            name: id.clone(),
            title: None,
            description: Some(description.to_owned()),
            mime_type: Some(MARKDOWN.to_owned()),
            source: spec.source.clone(),
            reader: Arc::new(SkillOrMemory { spec: spec.clone(), toolkit: toolkit.clone(), task }),
            completer: None,
            watcher: None,
            more: Map::new(),
        })
    });
    SourceOffer { resources: resources.collect(), prompts: Vec::new() }
}

/// Everything but the unreserved characters of RFC 3986, section 2.3: file names are free text.
const URI_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// `id` as a segment of a URI.
fn escaped(id: &str) -> PercentEncode<'_> {
    utf8_percent_encode(id, URI_SEGMENT)
}

fn spec(name: &str, label: &str) -> ToolSpec {
    ToolSpec {
        name: ToolName::parse(name).expect("small letters are a name"),
        label: label.to_owned(),
        description: String::new(),
        input: Schema::compiled_before(json!({"type": "object"})),
        output: None,
        source: Source { kind: SourceKind::Builtin, name: "toold".to_owned(), path: None },
        origin: Origin::Builtin,
        parallelizable: true,
        permissions: Vec::new(),
        cache_ttl: None,
        timeout: None,
        annotations: READS,
        version: None,
        grammar: None,
    }
}

/// Reads or renders one skill or memory.
struct SkillOrMemory {
    spec: ToolSpec,
    toolkit: Arc<Toolkit>,
    task: ResourceTask,
}

#[derive(Clone)]
enum ResourceTask {
    ReadSkill(String),
    RenderSkill(String),
    ReadMemory(MemoryScope, String),
}

impl Callable for SkillOrMemory {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, _: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        // Skills and memories are meant to be read; files that are excluded from tools are neither.
        std::future::ready(Ok(Vec::new())).boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let (toolkit, session, cwd, task) =
            (self.toolkit.clone(), cx.session.clone(), cx.cwd.clone(), self.task.clone());
        let look = move || {
            let skill = |name: &str| find_skills(&toolkit.places.skills, session.looks_in(&cwd)).find(name).cloned();
            let text = |text: String| json!([{"uri": input["uri"], "mime_type": MARKDOWN, "text": text}]);
            match task {
                ResourceTask::ReadSkill(name) => skill(&name).map(|skill| text(skill.text)),
                ResourceTask::RenderSkill(name) => skill(&name).map(|skill| {
                    let content = json!({"type": "text", "text": skill::to_text(&skill)});
                    json!({"description": skill.description, "messages": [{"role": "user", "content": content}]})
                }),
                ResourceTask::ReadMemory(scope, id) => memories::shown(&toolkit, &session, scope, &id).map(text),
            }
        };
        async move {
            let structured = blocking(cx, move |_| Ok(look())).await.map_err(into_tool_error)?;
            Ok(match structured {
                Some(_) => ToolOutput { structured, ..ToolOutput::default() },
                None => ToolOutput::error("it no longer exists").with("not_found", true),
            })
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_of_a_file_makes_a_uri() {
        assert_eq!(escaped("use-tabs-0a1b").to_string(), "use-tabs-0a1b");
        assert_eq!(escaped("50% of ü/x._~").to_string(), "50%25%20of%20%C3%BC%2Fx._~");
    }
}
