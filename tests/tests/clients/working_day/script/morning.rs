//! The agent learns the project and adds a feature; the person works in Neovim at the same time.

use serde_json::json;

use super::{DayStep, bash, edit, editor, own_shell, read, tool, toolctl, write};

pub(super) fn steps() -> Vec<DayStep> {
    let mut steps = looking_around();
    steps.extend(the_feature());
    steps.extend(the_person_beside());
    steps.extend(what_is_refused());
    steps
}

fn looking_around() -> Vec<DayStep> {
    vec![
        toolctl(&["status"]).shows("toold"),
        toolctl(&["list"]).shows("web_fetch"),
        editor("return day.connect()").shows("connected"),
        editor("vim.cmd('edit textstats/count.py') return vim.fn.getline(1)").shows("Counts words"),
        tool("list", json!({})).shows("textstats"),
        read("README.md").shows("Counts words in text files"),
        read("pyproject.toml").shows("0.3.0"),
        read("Makefile").shows("check: lint test"),
        tool("glob", json!({"pattern": "**/*.py"})).shows("textstats/report.py"),
        tool("grep", json!({"pattern": "^def ", "path": "textstats"})).shows("count_lines"),
        read("textstats/count.py").shows("TODO"),
        bash("sed -n '1,20p' textstats/report.py").shows("count_words"),
        read("textstats/report.py").shows("count_words"),
        read("tests/test_count.py").shows("CountTest"),
        bash("git status").shows("nothing to commit"),
        bash("git log --oneline -10").shows("Count words and lines"),
        bash("git log -3 --stat --format='%h %an %s'").shows("textstats/count.py"),
        bash("git diff HEAD~1 --stat | tail -3").shows("files changed"),
        bash("git branch --show-current").shows("main"),
        bash("ls -la").shows("Makefile"),
        bash("ls textstats tests docs").shows("usage.md"),
        bash("find . -name '*.py' -not -path './.git/*' | sort | head -20").shows("./tests/test_count.py"),
        bash("wc -l textstats/*.py tests/*.py | sort -n").shows("total"),
        bash("grep -rn \"TODO\" --include='*.py' . | head -5").shows("the last line without a newline"),
        bash("cat pyproject.toml | grep -n version").shows("0.3.0"),
        bash("cat setup.cfg 2>/dev/null || echo 'no setup.cfg'").shows("no setup.cfg"),
        bash("git ls-files | xargs wc -l | tail -1").shows("total"),
        bash("make check 2>&1 | tail -5").shows("OK"),
        tool(
            "todo",
            json!({"items": [
                {"content": "Count the last line", "status": "in_progress"},
                {"content": "Report the longest word", "status": "pending"},
                {"content": "Document it", "status": "pending"},
            ]}),
        )
        .shows("[>] Count the last line"),
        tool(
            "question",
            json!({
                "question": "Should a last line without a newline count?",
                "options": [{"label": "Yes"}, {"label": "No"}],
            }),
        )
        .shows("Yes"),
        tool("web_fetch", json!({"url": "http://{docs}/str.html"})).shows("splitlines"),
        tool("web_fetch", json!({"url": "http://{docs}/unittest.html"})).shows("assertEqual"),
    ]
}

fn the_feature() -> Vec<DayStep> {
    vec![
        bash("git checkout -b longest-word").shows("longest-word"),
        edit(
            "tests/test_count.py",
            "    def test_lines(self):",
            "    def test_last_line(self):\n        self.assertEqual(count_lines(\"a\\nb\"), 2)\n\n    def test_lines(self):",
        )
        .shows("test_last_line"),
        bash("python3 -m unittest tests.test_count 2>&1 | tail -15").shows("FAILED"),
        bash("python3 -m unittest tests.test_count").fails("test_last_line"),
        edit(
            "textstats/count.py",
            "    # TODO: the last line without a newline\n    return text.count(\"\\n\")",
            "    return len(text.splitlines())",
        )
        .shows("splitlines"),
        editor("return day.buffer_has('splitlines')").shows("splitlines"),
        bash("python3 -m unittest tests.test_count 2>&1 | tail -3").shows("OK"),
        bash("git diff").shows("splitlines"),
        bash("git diff --stat && git status --short").shows("M textstats/count.py"),
        bash("git add textstats/count.py tests/test_count.py && git commit -q -m \"Count the last line\" && git log --oneline -1")
            .shows("Count the last line"),
        write(
            "textstats/longest.py",
            "\"\"\"Finds long words.\"\"\"\n\nfrom textstats.count import words\n\n\n\
             def longest_word(text):\n    return max(words(text), key=len)\n",
        )
        .shows("longest.py"),
        write(
            "tests/test_longest.py",
            "import unittest\n\nfrom textstats.longest import longest_word\n\n\n\
             class LongestTest(unittest.TestCase):\n    \
             def test_longest(self):\n        self.assertEqual(longest_word(\"a bcd ef\"), \"bcd\")\n\n    \
             def test_nothing(self):\n        self.assertIsNone(longest_word(\"\"))\n",
        )
        .shows("test_longest.py"),
        bash("python3 -m unittest -v 2>&1 | grep -E \"^(ERROR|FAIL|OK)\"").shows("test_nothing"),
        bash("python3 -m unittest tests.test_longest 2>&1 | tail -n 20 | head -n 12").shows("max()"),
        edit("textstats/longest.py", "key=len)", "key=len, default=None)").shows("default=None"),
        bash("python3 -m unittest discover -s tests -t . -q 2>&1 | tail -4").shows("OK"),
        edit(
            "textstats/report.py",
            "from textstats.count import count_lines, count_words\n",
            "from textstats.count import count_lines, count_words\nfrom textstats.longest import longest_word\n",
        )
        .shows("longest_word"),
        tool(
            "edit",
            json!({"path": "textstats/report.py", "edits": [
                {"old": "    return f\"{name}", "new": "    longest = longest_word(text) or \"none\"\n    return f\"{name}"},
                {"old": "lines\"", "new": "lines, longest: {longest}\""},
            ]}),
        )
        .shows("longest: {longest}"),
        bash("for f in examples/*.txt; do python3 -m textstats \"$f\"; done").shows("longest: quick"),
        bash("make test").fails("test_report"),
        read("tests/test_report.py").shows("2 words, 1 lines"),
        edit("tests/test_report.py", "1 lines\"", "1 lines, longest: a\"").shows("longest: a"),
        bash("make check > check.log 2>&1; tail -3 check.log").shows("OK"),
        bash("PYTHONUNBUFFERED=1 python3 -m unittest -q 2>&1 | tail -3").shows("OK"),
        bash("cd textstats && ls *.py | wc -l").shows("5"),
        bash("python3 - <<'PY'\nfrom textstats.report import report\nprint(report('f', 'one three'))\nPY")
            .shows("longest: three"),
        bash("git add -A && git status --short").shows("A  textstats/longest.py"),
        bash(
            "git commit -m \"$(cat <<'EOF'\nReport the longest word\n\nNothing has none.\n\nCo-Authored-By: Claude <noreply@anthropic.com>\nEOF\n)\"",
        )
        .shows("Report the longest word"),
        bash("git show --stat HEAD | head -20").shows("textstats/longest.py"),
    ]
}

fn the_person_beside() -> Vec<DayStep> {
    vec![
        editor("return day.call('grep', {pattern = 'longest', path = 'textstats'})").shows("longest.py"),
        editor("vim.cmd('edit docs/usage.md') return day.append('', 'Unsaved: the longest word is reported.')"),
        editor("return day.call('read', {path = 'docs/usage.md'})").shows("Unsaved: the longest word"),
        read("docs/usage.md").shows("Unsaved: the longest word"),
        editor("return day.replace('Unsaved: the', 'The') .. day.save()").shows("saved"),
        bash("git diff docs/").shows("+The longest word is reported."),
        bash("git diff --name-only | sort | uniq -c").shows("docs/usage.md"),
        editor("return day.call('bash', {command = 'git status --short'})").shows("M docs/usage.md"),
        editor("return day.call('bash', {command = 'make lint'})").shows("lint passed"),
        toolctl(&["call", "read", "path=docs/usage.md"]).shows("longest word"),
        toolctl(&["call", "grep", "pattern=longest", "path=textstats"]).shows("longest_word"),
        toolctl(&["call", "bash", "command=git log --oneline -3"]).shows("Report the longest word"),
        toolctl(&["call", "bash", "command=make test"]).shows(""),
        toolctl(&["undo", "--list"]).shows("longest.py"),
        read("docs/design.md").shows("`report` knows people"),
        write("docs/design.md", "# Design\n\nRewritten.\n").shows("design.md"),
        toolctl(&["undo", "--yes", "docs/design.md"]).shows("undid the changes to docs/design.md"),
        read("docs/design.md").shows("`count` knows text"),
        edit("docs/design.md", "knows people.", "knows people. `longest` knows words.").shows("knows words"),
        bash("git commit -qam 'Document the longest word' && git log -1 --format=%s")
            .shows("Document the longest word"),
        tool("remember", json!({"content": "Tests run with `make check`.", "scope": "project"})).shows("remembered as"),
        tool("skill", json!({"name": "release"})).shows("Raise the version"),
    ]
}

fn what_is_refused() -> Vec<DayStep> {
    vec![
        read(".env").refused("not allowed"),
        bash("while read -r line; do echo \"$line\"; done < .env").refused("not allowed"),
        bash("cat .env").refused("not allowed"),
        bash("cat .e*").refused("not allowed"),
        tool("grep", json!({"pattern": "API_TOKEN", "path": ".env"})).refused("not allowed"),
        write(".git/hooks/pre-commit", "#!/bin/sh\ntouch /tmp/ran\n").refused("not allowed"),
        bash("printf '#!/bin/sh\\n' > .git/hooks/pre-commit").refused("not allowed"),
        read("{home}/Documents/letter.txt").refused("not allowed"),
        own_shell("'{toolctl}' permissions grant shell '**'").refused("runs an agent"),
        bash("'{toolctl}' permissions grant shell '**'").refused("not allowed"),
        toolctl(&["audit", "--outcome", "denied"]).shows(".env"),
    ]
}
