//! The tools of a daemon or a label, from the directory.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use toold_mounts::adapter::ListedTool;

use crate::directory::{Directory, KnownDaemon};
use crate::messages::ToolRecord;
use crate::names::FleetName;
use crate::target::CallTarget;

const MAX_PROBLEMS: usize = 20;

/// Changes with the tools of a target: the daemons that belong to it, and the number of each one's list.
pub(crate) type ListVersion = Vec<(FleetName, u64)>;

/// A tool as its daemon describes it; for a label, the first of its daemons by name.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListedFleetTool {
    pub(crate) name: String,
    pub(crate) record: Arc<ToolRecord>,
}

impl ListedTool for ListedFleetTool {
    fn upstream_name(&self) -> &str {
        &self.name
    }

    /// Not the fingerprint alone, which is what the daemon claims.
    fn digest(&self) -> String {
        let ToolRecord { label, description, schema, output_schema, annotations, fingerprint, .. } = &*self.record;
        let seen = json!([self.name, label, description, schema, output_schema, annotations, fingerprint]);
        blake3::hash(seen.to_string().as_bytes()).to_hex().to_string()
    }
}

pub(crate) fn version(directory: &Directory, target: &CallTarget) -> ListVersion {
    directory.read(|daemons| {
        let members = daemons.iter().filter(|(name, known)| known.is_in(name, target));
        members.map(|(name, known)| (name.clone(), known.list)).collect()
    })
}

/// The facts that decide which targets can be opened.
#[derive(PartialEq, Eq)]
pub(crate) struct Presence {
    is_settled: bool,
    is_complete: bool,
    /// Each with whether it is away, and its labels.
    daemons: Vec<(FleetName, bool, Vec<FleetName>)>,
}

/// Which daemons are there, and what makes them members of a target.
pub(crate) fn presence(directory: &Directory) -> Presence {
    let daemons = directory.read(|daemons| {
        let of_daemon =
            |(name, known): (&FleetName, &KnownDaemon)| (name.clone(), known.is_away, known.labels().to_vec());
        daemons.iter().map(of_daemon).collect()
    });
    Presence { is_settled: directory.is_settled(), is_complete: directory.is_complete(), daemons }
}

/// The tools of a target, also of daemons that are away, and the omissions as sentences for the user. If several daemons
/// with a label have a tool, the entry of the first by name counts.
pub(crate) fn of_target(directory: &Directory, target: &CallTarget) -> (Vec<ListedFleetTool>, Vec<String>) {
    directory.read(|daemons| {
        let mut tools: BTreeMap<&str, (&FleetName, &Arc<ToolRecord>)> = BTreeMap::new();
        let mut problems = Vec::new();
        for (name, known) in daemons.iter().filter(|(name, known)| known.is_in(name, target)) {
            match target {
                CallTarget::Daemon(_) => problems.extend(known.problems.iter().cloned()),
                CallTarget::Label(_) => {
                    problems.extend(known.problems.iter().map(|problem| format!("{name}: {problem}")));
                }
            }
            for (tool, record) in &known.tools {
                let (first, listed) = tools.entry(tool).or_insert((name, record));
                if !is_alike(listed, record) {
                    problems.push(format!(
                        "{tool} is another tool on {name} than on {first}: the one on {first} is listed"
                    ));
                }
            }
        }
        problems.truncate(MAX_PROBLEMS);
        let listed = |(tool, (_, record)): (&str, (&FleetName, &Arc<ToolRecord>))| ListedFleetTool {
            name: tool.to_owned(),
            record: record.clone(),
        };
        (tools.into_iter().map(listed).collect(), problems)
    })
}

/// Whether a caller sees no difference.
fn is_alike(one: &Arc<ToolRecord>, other: &Arc<ToolRecord>) -> bool {
    Arc::ptr_eq(one, other)
        || (one.description == other.description
            && one.schema == other.schema
            && one.output_schema == other.output_schema)
}
