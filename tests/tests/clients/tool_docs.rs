//! The pages about the built-in tools, `daemon/builtins/docs/`: written from what the tools say of themselves and
//! from real calls, and checked to be current.
//!
//! `UPDATE=1 cargo test -p toold-tests --test clients tool_docs::` regenerates them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Output;

use serde_json::{Value, json};
use toold_test_kit::{ScriptedServer, ServerStep, answer, ok};
use toold_tests::{Setup, TestDaemon};

/// A call to show: the tool, and the arguments of `toolctl call` after its name.
struct Example {
    tool: &'static str,
    arguments: &'static [&'static str],
}

const fn example(tool: &'static str, arguments: &'static [&'static str]) -> Example {
    Example { tool, arguments }
}

/// In the order in which they run: some need the effects of earlier ones. `SITE` is the address of the scene's server,
/// `MEMORY` the id of the memory.
const EXAMPLES: &[Example] = &[
    example("read", &["path=src/main.rs"]),
    example("read", &["path=src/main.rs", "offset=2", "limit=1"]),
    example("write", &["path=notes/plan.md", "content=# Plan\n\n- greet everybody\n"]),
    example("edit", &["path=src/main.rs", "old=Hello", "new=Good morning"]),
    example(
        "apply_patch",
        &["input=*** Begin Patch\n*** Update File: notes/plan.md\n # Plan\n \n-- greet everybody\n+- greet everybody \
           politely\n*** Add File: notes/done.md\n+# Done\n*** End Patch\n"],
    ),
    example("list", &["depth=2"]),
    example("glob", &["pattern=**/*.rs"]),
    example("grep", &["pattern=fn \\w+"]),
    example("grep", &["pattern=greet", "output_mode=files"]),
    example("bash", &["command=wc -l src/*.rs; exit 3"]),
    example("bash", &["command=echo ready; sleep 600", "background=true"]),
    example("bash_output", &["shell_id=sh_1", "wait_ms=60000"]),
    example("kill_shell", &["shell_id=sh_1"]),
    example("web_fetch", &["url=SITE/guide.html"]),
    example("web_fetch", &["url=SITE/nothing"]),
    example("web_search", &["query=rust error handling", "max_results=2"]),
    example(
        "todo",
        &["items=[{\"content\": \"Read the code\", \"status\": \"completed\"}, \
           {\"content\": \"Fix the greeting\", \"status\": \"in_progress\", \"priority\": \"high\"}]"],
    ),
    example(
        "question",
        &["question=Which greeting?", "options=[{\"label\": \"Hello\"}, {\"label\": \"Good morning\"}]"],
    ),
    example("remember", &["content=Greetings are in English.", "scope=session"]),
    example("forget", &["memory_id=MEMORY"]),
    example("skill", &["name=release"]),
    example("subagent", &["type=reviewer", "description=Review the greeting", "prompt=Is src/main.rs polite?"]),
    example("compact", &[]),
];

const PAGE: &str = "<!doctype html><html><head><title>A guide to greetings</title></head><body>\
    <nav><a href=\"/\">Home</a></nav><h1>Greetings</h1><p>Say <b>hello</b> first; see also \
    <a href=\"/farewells.html\">farewells</a>.</p><pre><code>fn greet() {}</code></pre></body></html>";

fn site() -> ScriptedServer {
    ScriptedServer::start_thread(|request| {
        let found = json!({"results": [
            {"url": "https://doc.rust-lang.org/book/ch09-00-error-handling.html", "title": "Error Handling",
             "content": "Errors are a fact of life in software"},
            {"url": "https://docs.rs/thiserror", "title": "thiserror - Rust", "content": "A derive macro for errors"},
            {"url": "https://docs.rs/anyhow", "title": "anyhow - Rust", "content": "A trait object based error type"}
        ]});
        let bytes = match request.split(' ').nth(1).unwrap_or_default() {
            "/guide.html" => ok("text/html; charset=utf-8", PAGE),
            path if path.starts_with("/search?") => ok("application/json", found.to_string()),
            _ => answer("404 Not Found", &[("Content-Type", "text/plain")], "There is no such page."),
        };
        vec![ServerStep::Send(bytes)]
    })
}

fn scene(site: &str) -> TestDaemon {
    let allow = |category: &str| {
        format!("[[permission.rules]]\ncategory = \"{category}\"\npattern = \"**\"\naction = \"allow\"\n\n")
    };
    let config = format!(
        "{}{}{}{}[network]\nallow_private = [\"127.0.0.1\"]\n\n[web.search]\nkind = \"searxng\"\nurl = \"{site}\"\n\n\
         [subagents.reviewer]\ndescription = \"Reviews changes\"\n\
         command = [\"bash\", \"-c\", \"echo \\\"It says Good morning, which is polite.\\\"\"]\n",
        allow("shell"),
        allow("file.write"),
        allow("network"),
        allow("agent"),
    );
    let skill =
        "---\nname: release\ndescription: How a release is made\n---\n\n1. Run the tests.\n2. Tag the commit.\n";
    let main = "fn main() {\n    greet(\"world\");\n}\n\nfn greet(name: &str) {\n    println!(\"Hello {name}\");\n}\n";
    Setup::new()
        .file("src/main.rs", main)
        .file("README.md", "# Greeter\n\nGreets.\n")
        .file(".git/HEAD", "ref: refs/heads/main\n")
        .file(".toold/skills/release/SKILL.md", skill)
        .config(&config)
        .start()
}

#[test]
fn the_pages_about_built_in_tools_are_current() {
    let server = site();
    let site = server.url("");
    let daemon = scene(&site);
    let mut wire = daemon.connect();
    wire.result("session.open", json!({"session_id": "docs", "cwd": daemon.work()}));
    let listed = wire.result("tools.list", json!({"source": "builtin"}));
    let tools = listed["tools"].as_array().unwrap();

    let mut shown = BTreeMap::<&str, String>::new();
    let mut memory = String::new();
    for Example { tool, arguments } in EXAMPLES {
        let filled = |argument: &&str| argument.replace("SITE", &site).replace("MEMORY", &memory);
        let arguments: Vec<String> = arguments.iter().map(filled).collect();
        let mut words = vec!["call", "--session", "docs", "--quiet", tool];
        words.extend(arguments.iter().map(String::as_str));
        let output = daemon.toolctl(&words);
        let command: Vec<String> = arguments.iter().map(|argument| quoted(argument)).collect();
        let command = format!("toolctl call {tool} {}", command.join(" "));
        let said = said(&output);
        if let Some(id) = said.strip_prefix("remembered as ") {
            memory = id.trim().to_owned();
        }
        let fence = if said.contains("```") { "````" } else { "```" };
        let text = format!("{fence}console\n$ {}\n{said}{fence}\n", command.trim_end());
        let text = plain(&text, &daemon, &site);
        shown.entry(tool).and_modify(|before| *before = format!("{before}\n{text}")).or_insert(text);
    }
    let missing: Vec<&Value> =
        tools.iter().map(|tool| &tool["name"]).filter(|name| !shown.contains_key(name.as_str().unwrap())).collect();
    assert!(missing.is_empty(), "these tools have no example here: {missing:?}");

    let mut pages: Vec<(String, String)> =
        tools.iter().map(|tool| (format!("{}.md", name(tool)), page(tool, &shown[name(tool)]))).collect();
    pages.push(("README.md".into(), index(tools)));
    check(&pages);
}

fn name(tool: &Value) -> &str {
    tool["name"].as_str().unwrap()
}

/// The terminal's text: the result, messages, and a status that is not 0.
fn said(output: &Output) -> String {
    let mut text = String::new();
    for part in [&output.stdout, &output.stderr] {
        text.push_str(&String::from_utf8_lossy(part));
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
    }
    match output.status.code() {
        Some(0) => {}
        code => writeln!(text, "$ echo $?\n{}", code.unwrap_or(-1)).unwrap(),
    }
    text
}

/// Quoted for a shell.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,@%+".contains(c);
    match argument.split_once('=') {
        _ if argument.chars().all(is_plain) => argument.to_owned(),
        Some((key, value)) if value.contains('\n') => format!("{key}=$'{}'", value.replace('\n', "\\n")),
        Some((key, value)) => format!("{key}='{}'", value.replace('\'', "'\\''")),
        None => format!("'{argument}'"),
    }
}

/// The text without values that differ from run to run.
fn plain(text: &str, daemon: &TestDaemon, site: &str) -> String {
    let work = daemon.work().display().to_string();
    let top = daemon.setup.path("").display().to_string();
    let text = text.replace(site, "http://127.0.0.1:8080").replace(&work, "/home/you/greeter");
    text.replace(top.trim_end_matches('/'), "/home/you")
}

fn page(tool: &Value, examples: &str) -> String {
    let mut page = format!("# {}\n\n{}. {}\n\n", name(tool), text(&tool["label"]), text(&tool["description"]));
    let rows = rows(&tool["input_schema"], "");
    if rows.is_empty() {
        page.push_str("It takes no arguments.\n\n");
    } else {
        page.push_str("| argument | type | meaning |\n|---|---|---|\n");
        rows.iter().for_each(|row| page.push_str(row));
        page.push_str("\nArguments in bold are required.\n\n");
    }
    let needs: Vec<String> =
        tool["permissions"].as_array().into_iter().flatten().map(|need| format!("`{}`", text(need))).collect();
    let needs = match needs.is_empty() {
        true => "Needs no permission".to_owned(),
        false => format!("Needs permission for {}", needs.join(", ")),
    };
    let needs = match tool["permissions"].as_array().into_iter().flatten().next().and_then(Value::as_str) {
        Some("network") => format!("{needs}, which is denied until you [allow the host]({DEFAULTS})"),
        Some("agent") => format!("{needs}, which is [given by default]({DEFAULTS})"),
        _ => needs,
    };
    let beside = if tool["parallelizable"] == true { "runs beside other calls" } else { "runs alone in its session" };
    let changes = if tool["annotations"]["read_only"] == true { "changes nothing" } else { "may change something" };
    writeln!(page, "{needs}. It {beside} and {changes}.\n\n## Examples\n\n{examples}").unwrap();
    match name(tool) {
        "question" => format!("{}\n\n{OF_QUESTIONS}\n", page.trim_end()),
        _ => format!("{}\n", page.trim_end()),
    }
}

/// The defaults of the categories.
const DEFAULTS: &str = "../../../docs/configuration.md#patterns";

/// The scene of the examples has nobody who answers.
const OF_QUESTIONS: &str = "\
Here, nobody was there to answer. At a terminal, `toolctl call` itself asks and prints what was chosen, such as `Hello`; several
choices are on a line each.";

/// Rows of a table: an argument each, and below it those of the objects in it.
fn rows(schema: &Value, before: &str) -> Vec<String> {
    let required = |key: &str| schema["required"].as_array().is_some_and(|keys| keys.iter().any(|known| known == key));
    let mut all = Vec::new();
    for (key, below) in schema["properties"].as_object().into_iter().flatten() {
        let path = format!("{before}{key}");
        let shown = if required(key) { format!("**{path}**") } else { path.clone() };
        let meaning = text(&below["description"]).replace('\n', " ").replace('|', "\\|");
        all.push(format!("| {shown} | {} | {meaning} |\n", kind(below)));
        let (inner, below_it) = match below["items"]["properties"].is_object() {
            true => (&below["items"], format!("{path}[].")),
            false => (below, format!("{path}.")),
        };
        all.extend(rows(inner, &below_it));
    }
    all
}

fn kind(schema: &Value) -> String {
    let listed = schema["enum"].as_array().into_iter().flatten();
    let alone = schema["oneOf"].as_array().into_iter().flatten().filter_map(|choice| choice.get("const"));
    let choices: Vec<String> = listed.chain(alone).filter_map(Value::as_str).map(|c| format!("`{c}`")).collect();
    if !choices.is_empty() {
        return choices.join(", ");
    }
    let range = match (schema["minimum"].as_u64(), schema["maximum"].as_u64()) {
        (Some(low), Some(high)) => format!(", {low} to {high}"),
        (Some(low), None) => format!(", from {low}"),
        (None, Some(high)) => format!(", up to {high}"),
        (None, None) => String::new(),
    };
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", kind(&schema["items"])),
        Some(name) => format!("{name}{range}"),
        None => "any".to_owned(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn index(tools: &[Value]) -> String {
    let mut page = "# The built-in tools\n\nEach page has the arguments of a tool, and calls with their real output. \
                    The calls were made one after another in a small project, with `--quiet --session docs`, which is \
                    left out.\n\n| tool | what it does |\n|---|---|\n"
        .to_owned();
    for tool in tools {
        let first = text(&tool["description"]).split_inclusive(". ").next().unwrap_or_default().trim();
        writeln!(page, "| [{0}]({0}.md) | {1} |", name(tool), first.replace('|', "\\|")).unwrap();
    }
    page
}

fn check(pages: &[(String, String)]) {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../daemon/builtins/docs"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(&folder).unwrap();
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            std::fs::remove_file(entry.path()).unwrap();
        }
        pages.iter().for_each(|(name, page)| std::fs::write(folder.join(name), page).unwrap());
    }
    let mut known: Vec<String> = std::fs::read_dir(&folder)
        .map(|entries| entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
        .unwrap_or_default();
    known.sort();
    let mut wanted: Vec<&String> = pages.iter().map(|(name, _)| name).collect();
    wanted.sort();
    let update = "UPDATE=1 cargo test -p toold-tests --test clients tool_docs::";
    assert!(known.iter().eq(wanted), "{} has other pages than there are tools: run {update}", folder.display());
    for (name, page) in pages {
        let there = std::fs::read_to_string(folder.join(name)).unwrap();
        assert!(there == *page, "{name} is not current: run {update}\n--- there\n{there}\n--- now\n{page}");
    }
}
