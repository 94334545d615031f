//! Search among many tools: the right one is found, and a change makes new terms for the changed tools only.

use std::sync::Arc;

use serde_json::{Value, json};
use toold_engine::Engine;
use toold_engine::callable::Callable;
use toold_engine::registry::{SourceKey, SourceScope};
use toold_engine::schema::Schema;
use toold_engine::tool::Origin;
use toold_engine::tool_rank::rank;
use toold_proto::event::Outcome;
use toold_proto::tool::{Source, SourceKind, ToolName};
use toold_test_kit::SampleTool;

fn tool(name: &str, description: &str, arguments: &[&str]) -> Arc<dyn Callable> {
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|name| ((*name).to_owned(), json!({"type": "string"}))).collect();
    Arc::new(SampleTool::new(name).spec(|spec| {
        spec.label = String::new();
        spec.description = description.to_owned();
        spec.input = Schema::compiled_before(json!({"type": "object", "properties": properties}));
        spec.source = Source { kind: SourceKind::Mcp, name: "many".into(), path: None };
        spec.origin = Origin::Mcp;
    }))
}

fn engine(tools: Vec<Arc<dyn Callable>>) -> Engine {
    let engine = Engine::new("0123456789abcdef");
    let key = SourceKey { kind: SourceKind::Mcp, name: "many".into(), scope: SourceScope::Global };
    engine.registry.put(key, Origin::Mcp, tools).unwrap();
    engine
}

fn found(engine: &Engine, words: &str) -> Vec<String> {
    let snapshot = engine.registry.snapshot();
    snapshot.global().search(words, |_| true).iter().map(|tool| tool.spec().name.to_string()).collect()
}

const VERBS: [(&str, &str, &str); 10] = [
    ("create", "Creates a new", "creating a"),
    ("delete", "Deletes one", "remove one"),
    ("list", "Lists every", "listing"),
    ("update", "Changes an existing", "modify an"),
    ("archive", "Archives an old", "archiving"),
    ("export", "Exports one as CSV:", "export the"),
    ("share", "Shares with a colleague one", "sharing one"),
    ("watch", "Notifies about each change of one", "watch for the"),
    ("rename", "Gives another title to one", "renaming the"),
    ("merge", "Merges with a second one the", "merging two"),
];
const THINGS: [&str; 20] = [
    "invoice",
    "issue",
    "branch",
    "calendar",
    "contact",
    "deployment",
    "pipeline",
    "customer",
    "ticket",
    "dashboard",
    "document",
    "spreadsheet",
    "channel",
    "message",
    "webhook",
    "alert",
    "container",
    "cluster",
    "secret",
    "playlist",
];
const SERVICES: [&str; 50] = [
    "acme", "borealis", "cobalt", "dorado", "ember", "fathom", "gadfly", "harbor", "iris", "juniper", "kestrel",
    "lumen", "mantis", "nimbus", "orchid", "pylon", "quartz", "raven", "sable", "tundra", "umbra", "vertex", "willow",
    "xenon", "yarrow", "zephyr", "alder", "birch", "cedar", "drift", "elm", "fjord", "glade", "heron", "indigo",
    "jasper", "krill", "larch", "maple", "nectar", "onyx", "pebble", "quill", "reef", "sprout", "thistle", "ursa",
    "violet", "wren", "zinnia",
];

/// Ten thousand tools of fifty services.
fn many() -> Vec<Arc<dyn Callable>> {
    let mut tools = Vec::new();
    for service in SERVICES {
        for (verb, says, _) in VERBS {
            for thing in THINGS {
                let description = format!("{says} {thing} of the {service} workspace. Returns the {thing} as JSON.");
                tools.push(tool(
                    &format!("{service}_{verb}_{thing}"),
                    &description,
                    &["workspace", "cursor", "fields"],
                ));
            }
        }
    }
    tools
}

#[test]
fn the_right_tool_of_ten_thousand_is_among_the_first() {
    let engine = engine(many());
    assert_eq!(engine.registry.snapshot().global().len(), 10_000);
    let (mut first, mut among_five, mut asked) = (0, 0, 0);
    for (n, service) in SERVICES.iter().enumerate() {
        for (verb, _, asks) in [VERBS[n % 10], VERBS[(n / 10 + 5) % 10]] {
            let thing = THINGS[(n * 7 + verb.len()) % THINGS.len()];
            let expected = format!("{service}_{verb}_{thing}");
            let found = found(&engine, &format!("{asks} {thing}s in {service}"));
            asked += 1;
            first += usize::from(found.first() == Some(&expected));
            among_five += usize::from(found.iter().take(5).any(|name| *name == expected));
        }
    }
    assert!(first * 100 >= asked * 90, "{first} of {asked} are first");
    assert!(among_five * 100 >= asked * 98, "{among_five} of {asked} are among the first five");
}

#[test]
fn a_question_finds_a_tool_by_other_words_for_the_same_thing() {
    let mut tools = many();
    tools.extend([
        tool("git_status", "Shows the working tree status", &["repo_path"]),
        tool("git_commit", "Records changes to the repository", &["repo_path", "message"]),
        tool("git_log", "Shows the commit logs", &["repo_path", "max_count"]),
        tool("git_show", "Shows the contents of a commit", &["repo_path", "revision"]),
        tool("read", "Shows a text file as numbered lines", &["path", "offset"]),
        tool("write", "Writes a text file. An existing file must have been read in this session", &["path", "content"]),
        tool("rm", "Removes a directory", &["path"]),
        tool("render", "Draws a chart", &["chartWidth"]),
    ]);
    let engine = engine(tools);
    for (words, expected) in [
        ("git commit history", "git_log"),
        ("read file", "read"),
        ("Reading files?", "read"),
        ("delete a folder", "rm"),
        ("chart width", "render"),
        ("git_log", "git_log"),
    ] {
        assert_eq!(found(&engine, words)[0], expected, "{words}");
    }
    assert_eq!(found(&engine, "zzz"), Vec::<String>::new());
    assert_eq!(found(&engine, " ").len(), 10_008, "without words all tools are found");
}

#[test]
fn pinned_tools_come_before_those_that_are_used_and_these_before_the_others() {
    let tools: Vec<Arc<dyn Callable>> =
        ["alpha", "beta", "gamma", "read"].into_iter().map(|name| tool(name, "", &[])).collect();
    let engine = engine(tools.clone());
    for (name, calls) in [("beta", 1), ("gamma", 2)] {
        for _ in 0..calls {
            engine.latencies.record(&ToolName::parse(name).unwrap(), Outcome::Ok, None);
        }
    }
    let mut sorted = tools;
    sorted.sort_by_key(|tool| rank(&engine, tool.own_name()));
    let names: Vec<&str> = sorted.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names, ["read", "gamma", "beta", "alpha"]);
}
