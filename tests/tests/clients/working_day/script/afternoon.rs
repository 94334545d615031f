//! A plugin that is saved and used, a second project, restarts of the agent and the daemon, and the push.

use serde_json::json;

use super::{DayAction, DayStep, bash, edit, editor, own_shell, read, tool, toolctl, write};

pub(super) fn steps() -> Vec<DayStep> {
    let mut steps = the_plugin();
    steps.extend(the_server());
    steps.extend(the_agent_starts_again());
    steps.extend(the_daemon_is_restarted());
    steps.extend(the_second_project());
    steps.extend(the_push());
    steps
}

const PLUGIN: &str = r##"
vim.cmd("edit {plugins}/headings.lua")
return day.append(
  'hygge.register_tool{',
  '  name = "headings", description = "Lists the headings of a Markdown file",',
  '  input_schema = {type = "object", properties = {path = {type = "string"}}, required = {"path"}},',
  '  execute = function(ctx, input)',
  '    local found = {}',
  '    for heading in hygge.fs.read(input.path):gmatch("#+ ([^\\n]+)") do found[#found + 1] = heading end',
  '    return table.concat(found, ", ")',
  '  end,',
  '}'
) .. day.save()
"##;

fn the_plugin() -> Vec<DayStep> {
    vec![
        editor(PLUGIN).shows("saved"),
        DayStep::new(DayAction::ToolsUntil("Lists the headings")),
        tool("headings", json!({"path": "docs/design.md"})).shows("Design, Parts"),
        tool("headings", json!({"path": "README.md"})).shows("textstats"),
        toolctl(&["plugins"]).shows("headings"),
        editor(
            "return day.replace('\", \")', '\" | \")') .. day.replace('the headings', 'all headings') .. day.save()",
        )
        .shows("saved"),
        DayStep::new(DayAction::ToolsUntil("Lists all headings")),
        tool("headings", json!({"path": "docs/design.md"})).shows("Design | Parts"),
    ]
}

fn the_server() -> Vec<DayStep> {
    vec![
        tool("bash", json!({"command": "make serve", "background": true})).shows("sh_1"),
        tool("bash_output", json!({"shell_id": "sh_1", "wait_ms": 20000})).shows("Serving HTTP"),
        toolctl(&["shells"]).shows("make serve"),
        tool("kill_shell", json!({"shell_id": "sh_1"})),
        bash("git status --porcelain | wc -l").shows("0"),
    ]
}

fn the_agent_starts_again() -> Vec<DayStep> {
    vec![
        DayStep::new(DayAction::NewAgent),
        bash("git log --oneline main..HEAD").shows("Count the last line"),
        bash("git diff main --stat | tail -1").shows("files changed"),
        read("textstats/longest.py").shows("default=None"),
        read("textstats/__main__.py").shows("sys.argv"),
        tool("grep", json!({"pattern": "import", "path": "textstats", "output_mode": "count"})).shows("longest.py"),
        write(
            "textstats/cli.py",
            "import argparse\n\nfrom textstats.report import report\n\n\n\
             def main(arguments=None):\n    \
             parser = argparse.ArgumentParser(prog=\"textstats\")\n    \
             parser.add_argument(\"files\", nargs=\"+\")\n    \
             for name in parser.parse_args(arguments).files:\n        \
             with open(name) as file:\n            print(report(name, file.read()))\n",
        )
        .shows("cli.py"),
        write("textstats/__main__.py", "from textstats.cli import main\n\nmain()\n").shows("__main__.py"),
        bash("python3 -m textstats --help 2>&1 | head -5").shows("usage: textstats"),
        bash("python3 -m textstats examples/fox.txt README.md | sort").shows("fox.txt: 9 words"),
        bash("python3 -m textstats nothing.txt").fails("No such file"),
        edit(
            "textstats/cli.py",
            "        with open(name)",
            "        # The error of a missing file names it.\n        with open(name)",
        )
        .shows("names it"),
        bash("make check 2>&1 | tail -n 4").shows("OK"),
        bash("git add textstats && git commit -m 'Take files as arguments' 2>&1 | tail -2").shows("textstats/cli.py"),
        bash("git stash list").shows(""),
        write("notes.md", "# Notes\n\nStop words?\n").shows("notes.md"),
        bash("git stash push -u -m notes && git stash list").shows("notes"),
        bash("git stash pop 2>&1 | tail -1").shows("Dropped"),
        bash("rm notes.md && git status --short").shows(""),
    ]
}

fn the_daemon_is_restarted() -> Vec<DayStep> {
    vec![
        toolctl(&["restart"]).shows("was replaced by"),
        editor("return day.connect()").shows("connected"),
        editor("return day.call('bash', {command = 'git status'})").shows("longest-word"),
        DayStep::new(DayAction::Reconnect),
        bash("git status").shows("longest-word"),
        bash("git log --oneline -3 | cat").shows("Take files as arguments"),
        tool("headings", json!({"path": "docs/usage.md"})).shows("Usage"),
        toolctl(&["permissions", "list"]).shows("python3 -m unittest *"),
        own_shell("'{toolctl}' permissions grant shell 'git push *'").refused("runs an agent"),
    ]
}

fn the_second_project() -> Vec<DayStep> {
    vec![
        toolctl(&["workspaces", "allow", "{other}"]).shows("agents may work in"),
        toolctl(&["workspaces"]).shows("stopwords"),
        DayStep::new(DayAction::AgentInOther),
        tool("list", json!({})).shows("stopwords.py"),
        read("stopwords.py").shows("STOPWORDS"),
        bash("git status --short && git log --oneline | head -3").shows("Say what it is"),
        edit("stopwords.py", "\"of\"}", "\"of\", \"over\"}").shows("over"),
        bash("git diff | grep '^[+-]' | tail -2").shows("over"),
        bash("git commit -qam 'Add over' && git log -1 --format=%s").shows("Add over"),
        DayStep::new(DayAction::NewAgent),
        read("{other}/stopwords.py").shows("over"),
        tool("grep", json!({"pattern": "over", "path": "{other}"})).shows("stopwords.py"),
    ]
}

fn the_push() -> Vec<DayStep> {
    vec![
        tool("skill", json!({"name": "release"})).shows("make check"),
        bash("make check 2>&1 | tail -3").shows("OK"),
        read("pyproject.toml").shows("0.3.0"),
        edit("pyproject.toml", "0.3.0", "0.4.0").shows("0.4.0"),
        write("CHANGELOG.md", "# Changes\n\n## 0.4.0\n\nThe longest word is reported.\n").shows("CHANGELOG.md"),
        bash("head -5 CHANGELOG.md && grep version pyproject.toml").shows("0.4.0"),
        bash("git add -A && git commit -q -m 'Release 0.4.0' && git log --oneline -1").shows("Release 0.4.0"),
        bash("git fetch origin 2>&1 | tail -2; git status -sb | head -1").shows("## longest-word"),
        bash("git log --oneline origin/main..HEAD | wc -l").shows("5"),
        bash("git rev-parse --abbrev-ref HEAD").shows("longest-word"),
        bash("git push -u origin longest-word 2>&1 | tail -3").shows("longest-word"),
        bash("git status -sb | head -1").shows("origin/longest-word"),
        tool("todo", json!({"items": [{"content": "Release 0.4.0", "status": "completed"}]})).shows("[x]"),
        toolctl(&["call", "bash", "command=git log --oneline -1 origin/longest-word"]).shows("Release 0.4.0"),
        toolctl(&["audit", "-n", "5"]).shows("bash"),
        editor("return day.call('bash', {command = 'git log --oneline -1'})").shows("Release 0.4.0"),
    ]
}
