//! Checks the tools that a daemon lists: they are bounded, and tools that would lead back here are
//! left out.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::json;
use toold_engine::schema::Schema;
use toold_engine::tool_filter::AllowDenyFilter;
use toold_mounts::adapter::ListedTool;
use toold_proto::remote::Remote;
use toold_proto::tool::{SourceKind, Tool};

/// Limit of the tools of one daemon.
const MAX_TOOLS: usize = 1024;
/// Limit of all its tools together, as JSON.
const MAX_BYTES: usize = 16 << 20;
const MAX_PROBLEMS: usize = 20;
/// Daemons that are reached through one.
const MAX_INSTANCES: usize = 64;

/// A tool as its daemon describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ListedRemoteTool(pub(crate) Tool);

impl ListedTool for ListedRemoteTool {
    fn upstream_name(&self) -> &str {
        self.0.name.as_str()
    }

    fn digest(&self) -> String {
        let tool = &self.0;
        let seen =
            json!([tool.name, tool.label, tool.description, tool.input_schema, tool.output_schema, tool.annotations]);
        blake3::hash(seen.to_string().as_bytes()).to_hex().to_string()
    }
}

/// Accepts the callable tools; also returns the omissions, as sentences for the user. `theirs` are
/// the daemons that are mounted there: a tool of `own_instance` that comes through one of them
/// would be a call in a circle.
pub(crate) fn accept(
    listed: Vec<Tool>,
    theirs: &[Remote],
    own_instance: &str,
    filter: &AllowDenyFilter,
) -> (Vec<ListedRemoteTool>, Vec<String>) {
    let through: HashMap<&str, &Remote> = theirs.iter().map(|remote| (remote.name.as_str(), remote)).collect();
    let leads_here = |tool: &Tool| {
        tool.source.kind == SourceKind::Remote
            && through.get(tool.source.name.as_str()).is_none_or(|remote| {
                // A daemon that does not report its mounted daemons may lead back here.
                remote.instances.is_empty() || remote.instances.iter().any(|instance| instance == own_instance)
            })
    };
    let (mut tools, mut problems) = (Vec::new(), Vec::new());
    let (mut bytes, mut circles, mut of_fleet) = (0, 0, 0);
    for tool in listed.into_iter().filter(|tool| filter.takes(tool.name.as_str())) {
        if leads_here(&tool) {
            circles += 1;
            continue;
        }
        // This daemon may be in the same fleet: then they lead back here, or are listed already.
        if tool.source.kind == SourceKind::Fleet {
            of_fleet += 1;
            continue;
        }
        let size = tool.input_schema.to_string().len()
            + tool.description.len()
            + tool.output_schema.as_ref().map_or(0, |schema| schema.to_string().len());
        let problem = if tools.len() >= MAX_TOOLS {
            format!("it lists more than {MAX_TOOLS} tools: {} and others are left out", tool.name)
        } else if bytes + size > MAX_BYTES {
            format!("its list is longer than {MAX_BYTES} bytes: {} and others are left out", tool.name)
        } else if let Err(error) = Schema::compile_input(tool.input_schema.clone()) {
            format!("{} is left out: its input schema: {error}", tool.name)
        } else {
            bytes += size;
            tools.push(ListedRemoteTool(tool));
            continue;
        };
        if problems.len() < MAX_PROBLEMS {
            problems.push(problem);
        }
    }
    if circles > 0 {
        problems.insert(0, format!("{circles} tools are left out: they lead back to this daemon"));
    }
    if of_fleet > 0 {
        let why = "they run on other machines of its fleet, which this daemon can join itself";
        problems.insert(0, format!("{of_fleet} tools are left out: {why}"));
    }
    (tools, problems)
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
