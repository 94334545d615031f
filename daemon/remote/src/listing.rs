//! What is taken of the tools that a daemon lists: bounded, and without those that would come back here.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use toold_engine::schema::Schema;
use toold_engine::tool_filter::AllowDenyFilter;
use toold_proto::remote::Remote;
use toold_proto::tool::{SourceKind, Tool, ToolName};

/// Of one daemon.
const MAX_TOOLS: usize = 1024;
/// Of all its tools together, as JSON.
const MAX_BYTES: usize = 16 << 20;
/// More problems help nobody.
const MAX_PROBLEMS: usize = 20;
/// Daemons that are reached through one.
const MAX_INSTANCES: usize = 64;
/// Of a tool's name here.
const MAX_NAME: usize = 64;
const MARK: usize = 8;

/// A tool as its daemon describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownTool(pub(crate) Tool);

impl KnownTool {
    pub(crate) fn own(&self) -> &str {
        self.0.name.as_str()
    }

    /// Changes with whatever a person saw who allowed its use.
    pub(crate) fn digest(&self) -> String {
        let tool = &self.0;
        let seen = json!([tool.name, tool.label, tool.description, tool.input_schema, tool.output_schema]);
        blake3::hash(seen.to_string().as_bytes()).to_hex().to_string()
    }
}

/// What is taken of a list.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) tools: Vec<KnownTool>,
    /// What was left out, in words for people.
    pub(crate) problems: Vec<String>,
}

/// Takes what can be called. `theirs` are the daemons that are mounted there: what comes from `own_instance` through
/// one of them is a way round in a circle.
pub(crate) fn take(tools: Vec<Tool>, theirs: &[Remote], own_instance: &str, wanted: &AllowDenyFilter) -> Listing {
    let through: HashMap<&str, &Remote> = theirs.iter().map(|remote| (remote.name.as_str(), remote)).collect();
    let leads_here = |tool: &Tool| {
        tool.source.kind == SourceKind::Remote
            && through.get(tool.source.name.as_str()).is_none_or(|remote| {
                // What cannot be told is taken for one.
                remote.instances.is_empty() || remote.instances.iter().any(|instance| instance == own_instance)
            })
    };
    let (mut listing, mut bytes, mut circles) = (Listing::default(), 0, 0);
    for tool in tools.into_iter().filter(|tool| wanted.takes(tool.name.as_str())) {
        if leads_here(&tool) {
            circles += 1;
            continue;
        }
        let size = tool.input_schema.to_string().len()
            + tool.description.len()
            + tool.output_schema.as_ref().map_or(0, |schema| schema.to_string().len());
        let problem = if listing.tools.len() >= MAX_TOOLS {
            format!("it lists more than {MAX_TOOLS} tools: {} and others are left out", tool.name)
        } else if bytes + size > MAX_BYTES {
            format!("its list is longer than {MAX_BYTES} bytes: {} and others are left out", tool.name)
        } else if let Err(error) = Schema::compile_input(tool.input_schema.clone()) {
            format!("{} is left out: its input schema: {error}", tool.name)
        } else {
            bytes += size;
            listing.tools.push(KnownTool(tool));
            continue;
        };
        if listing.problems.len() < MAX_PROBLEMS {
            listing.problems.push(problem);
        }
    }
    if circles > 0 {
        listing.problems.insert(0, format!("{circles} tools are left out: they lead back to this daemon"));
    }
    listing
}

/// The daemons that are reached through one, itself first.
pub(crate) fn instances(own: &str, theirs: &[Remote]) -> Vec<String> {
    let mut all = vec![own.to_owned()];
    for instance in theirs.iter().flat_map(|remote| &remote.instances) {
        if all.len() < MAX_INSTANCES && !all.contains(instance) {
            all.push(instance.clone());
        }
    }
    all
}

/// What a daemon's tool is called here.
pub(crate) fn name(remote: &str, own: &str) -> ToolName {
    let plain = format!("{remote}_{own}");
    let fits = if plain.len() <= MAX_NAME {
        plain
    } else {
        let mark = blake3::hash(format!("{remote}\0{own}").as_bytes()).to_hex();
        format!("{}_{}", plain[..MAX_NAME - MARK - 1].trim_end_matches('_'), &mark[..MARK])
    };
    ToolName::parse(&fits).expect("both parts are made of what a name may be made of")
}
