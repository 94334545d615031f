//! The folders of the day: a small Python project in a real repository with a remote, a second one, a private letter.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use toold_tests::Setup;

/// Must never be shown to the agent.
pub(crate) const SECRET: &str = "token-that-nobody-may-see";

pub(crate) struct Project {
    pub(crate) folder: PathBuf,
    /// The second project, which the person opens during the day.
    pub(crate) other: PathBuf,
}

const FILES: &[(&str, &str)] = &[
    ("README.md", "# textstats\n\nCounts words in text files.\n\n```console\n$ python3 -m textstats README.md\n```\n"),
    ("pyproject.toml", "[project]\nname = \"textstats\"\nversion = \"0.3.0\"\nrequires-python = \">=3.8\"\n"),
    (
        "Makefile",
        "check: lint test\n\nlint:\n\t@python3 -m compileall -q textstats tests && echo lint passed\n\n\
         test:\n\t@python3 -m unittest -q\n\n\
         serve:\n\t@python3 -u -m http.server --bind 127.0.0.1 --directory docs 0\n\n\
         .PHONY: check lint test serve\n",
    ),
    (".gitignore", "__pycache__/\n.env\n.toold/\n*.log\n"),
    ("textstats/__init__.py", ""),
    (
        "textstats/__main__.py",
        "import sys\n\nfrom textstats.report import report\n\nfor name in sys.argv[1:]:\n    \
         with open(name) as file:\n        print(report(name, file.read()))\n",
    ),
    (
        "textstats/count.py",
        "\"\"\"Counts words and lines.\"\"\"\n\n\ndef words(text):\n    return text.split()\n\n\n\
         def count_words(text):\n    return len(words(text))\n\n\n\
         def count_lines(text):\n    # TODO: the last line without a newline\n    return text.count(\"\\n\")\n",
    ),
    (
        "textstats/report.py",
        "\"\"\"Describes a file on one line.\"\"\"\n\nfrom textstats.count import count_lines, count_words\n\n\n\
         def report(name, text):\n    \
         return f\"{name}: {count_words(text)} words, {count_lines(text)} lines\"\n",
    ),
    ("tests/__init__.py", ""),
    (
        "tests/test_count.py",
        "import unittest\n\nfrom textstats.count import count_lines, count_words\n\n\n\
         class CountTest(unittest.TestCase):\n    \
         def test_words(self):\n        self.assertEqual(count_words(\"a b  c\"), 3)\n\n    \
         def test_lines(self):\n        self.assertEqual(count_lines(\"a\\nb\\n\"), 2)\n",
    ),
    (
        "tests/test_report.py",
        "import unittest\n\nfrom textstats.report import report\n\n\n\
         class ReportTest(unittest.TestCase):\n    \
         def test_report(self):\n        self.assertEqual(report(\"f\", \"a b\\n\"), \"f: 2 words, 1 lines\")\n",
    ),
    ("docs/usage.md", "# Usage\n\nPass the names of files.\n"),
    ("docs/design.md", "# Design\n\n## Parts\n\n`count` knows text, `report` knows people.\n"),
    ("examples/fox.txt", "The quick brown fox jumps\nover the lazy dog\n"),
    ("examples/empty.txt", ""),
    (
        ".agents/skills/release/SKILL.md",
        "---\nname: release\ndescription: How a release is made\n---\n\
         1. Run `make check`.\n2. Raise the version in pyproject.toml.\n3. Write CHANGELOG.md.\n",
    ),
];

const OTHER: &[(&str, &str)] = &[
    ("README.md", "# stopwords\n\nWords that say little.\n"),
    ("stopwords.py", "STOPWORDS = {\"the\", \"a\", \"of\"}\n"),
];

impl Project {
    /// Creates the initial state of the day.
    pub(crate) fn make(setup: &Setup) -> Self {
        let folder = setup.path("home/src/textstats");
        let other = setup.path("home/src/stopwords");
        write(&folder, FILES);
        write(&other, OTHER);
        write(&folder, &[(".env", &format!("API_TOKEN={SECRET}\n"))]);
        write(&setup.path("home/Documents"), &[("letter.txt", &format!("Dear Ada, {SECRET}\n"))]);
        git(setup, &setup.path("home"), &["config", "--global", "user.name", "Ada"]);
        git(setup, &setup.path("home"), &["config", "--global", "user.email", "ada@example.com"]);
        git(setup, &setup.path("home"), &["config", "--global", "init.defaultBranch", "main"]);
        for folder in [&folder, &other] {
            git(setup, folder, &["init", "--quiet"]);
            git(setup, folder, &["add", "README.md"]);
            git(setup, folder, &["commit", "--quiet", "-m", "Say what it is"]);
            git(setup, folder, &["add", "."]);
            git(setup, folder, &["commit", "--quiet", "-m", "Count words and lines"]);
        }
        let remote = setup.path("home/remotes/textstats.git");
        git(setup, &folder, &["clone", "--quiet", "--bare", ".", &remote.display().to_string()]);
        git(setup, &folder, &["remote", "add", "origin", &remote.display().to_string()]);
        git(setup, &folder, &["fetch", "--quiet", "origin"]);
        Self { folder, other }
    }
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[track_caller]
fn git(setup: &Setup, folder: &Path, arguments: &[&str]) {
    let mut command: Command = setup.command("git".as_ref());
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
