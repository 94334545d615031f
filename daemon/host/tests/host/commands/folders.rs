//! Folders of files for the tests, and git in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::commands::judge::CommandSetting;

/// A project with its home folder, removed when dropped.
pub(crate) struct TestProject {
    _folder: TempDir,
    pub(crate) place: CommandSetting,
}

const FILES: &[(&str, &str)] = &[
    ("README.md", "# shop\n\nA shop.\n\n## Usage\n\nRun it.\n"),
    ("CHANGELOG.md", "# Changes\n\n## 1.4.0\n"),
    ("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"1.4.0\"\n\n[dependencies]\ntokio = \"1\"\n"),
    ("Cargo.lock", "version = 4\n"),
    (
        "Makefile",
        "build:\n\tcargo build\n\ntest:\n\tcargo test\n\ncheck: test\n\nlint:\n\tcargo clippy\n\n.PHONY: build test check lint\n",
    ),
    ("CMakeLists.txt", "project(shop C)\nadd_executable(demo src/demo.c)\n"),
    (
        "package.json",
        "{\"name\": \"shop\", \"version\": \"1.4.0\", \"scripts\": {\"build\": \"tsc\", \"test\": \"vitest\"}}\n",
    ),
    ("tsconfig.json", "{\"compilerOptions\": {\"strict\": true}}\n"),
    ("pyproject.toml", "[project]\nname = \"shop\"\n"),
    ("requirements.txt", "django\nrequests\n"),
    ("go.mod", "module example.com/shop\n"),
    ("main.go", "package main\n\nfunc main() {}\n"),
    ("config.json", "{\"debug\": false}\n"),
    (".gitignore", "target/\nbuild/\ndist/\nnode_modules/\n.venv/\nlogs/\n.env\n"),
    (".github/workflows/ci.yml", "name: ci\non: [push]\n"),
    ("src/main.rs", "fn main() {}\n"),
    ("src/lib.rs", "//! A shop.\n\npub mod parser;\n\n#[test]\nfn works() {}\n"),
    (
        "src/parser.rs",
        "/// Parses a line.\npub fn parse_line(line: &str) -> Vec<&str> {\n    // TODO: quotes\n    line.split(' ').collect()\n}\n",
    ),
    ("src/index.ts", "import { Button } from './components/Button';\n"),
    ("src/utils.ts", "export const one = 1;\n"),
    ("src/index.php", "<?php echo 1;\n"),
    ("src/demo.c", "int main(void) { return 0; }\n"),
    ("src/components/Button.tsx", "export function Button() { return null; }\n"),
    ("tests/test_parser.py", "def test_empty():\n    pass\n"),
    ("tests/parser.test.ts", "test('empty', () => {});\n"),
    ("docs/guide.md", "# Guide\n"),
    ("docs/design.md", "# Design\n"),
    ("scripts/build.sh", "#!/bin/sh\ncargo build \"$@\"\n"),
    ("scripts/check.sh", "#!/bin/sh\ncargo test\n"),
    ("scripts/report.py", "print('report')\n"),
    ("scripts/serve.js", "console.log('serving');\n"),
    ("data/users.csv", "id,name,team\n1,Ada,a\n2,Grace,b\n"),
    ("data/users.json", "{\"users\": [{\"name\": \"Ada\", \"active\": true}]}\n"),
    ("data/counts.txt", "b:2\na:1\nb:2\n"),
    ("data/expected.json", "{\"a\": 1}\n"),
    ("data/actual.json", "{\"a\": 2}\n"),
    ("web/package.json", "{\"name\": \"web\", \"scripts\": {\"test\": \"vitest\"}}\n"),
    ("web/src/main.ts", "export {};\n"),
    ("web/.gitignore", "dist/\n"),
    ("backend/manage.py", "def main():\n    pass\n"),
    ("crates/core/Cargo.toml", "[package]\nname = \"shop-core\"\nversion = \"1.4.0\"\n"),
    ("crates/core/src/lib.rs", "pub fn core() {}\n"),
    ("packages/ui/package.json", "{\"name\": \"@shop/ui\", \"version\": \"1.0.0\"}\n"),
];

/// The files that the repository ignores.
const IGNORED: &[(&str, &str)] = &[
    (".env", "API_TOKEN=nobody-may-see-this\n"),
    ("target/debug/shop", "\x7fELF\n"),
    ("build/shop", "\x7fELF\n"),
    ("dist/index.js", "\n"),
    ("node_modules/left-pad/package.json", "{\"name\": \"left-pad\"}\n"),
    ("node_modules/.bin/eslint", "#!/usr/bin/env node\n"),
    ("node_modules/.bin/jest", "#!/usr/bin/env node\n"),
    ("node_modules/.bin/prettier", "#!/usr/bin/env node\n"),
    ("node_modules/.bin/tsc", "#!/usr/bin/env node\n"),
    ("node_modules/.bin/vitest", "#!/usr/bin/env node\n"),
    (".venv/bin/activate", "VIRTUAL_ENV=.venv\n"),
    ("logs/app.log", "2024-05-01 error: none\n"),
];

impl TestProject {
    /// A repository with two commits, a branch and a remote, as an agent would find it.
    pub(crate) fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let home = root.join("home");
        let workspace = home.join("src/shop");
        let config = home.join(".config/toold");
        write(&config, &[("config.toml", "")]);
        write(&workspace, &FILES[..2]);
        git(&home, &workspace, &["init", "--quiet", "--initial-branch=main"]);
        git(&home, &workspace, &["add", "."]);
        git(&home, &workspace, &["commit", "--quiet", "-m", "Say what it is"]);
        write(&workspace, FILES);
        write(&workspace, IGNORED);
        git(&home, &workspace, &["add", "."]);
        git(&home, &workspace, &["commit", "--quiet", "-m", "Parse lines"]);
        git(&home, &workspace, &["branch", "feature/tokens"]);
        let remote = root.join("remote.git").display().to_string();
        git(&home, &workspace, &["clone", "--quiet", "--bare", ".", &remote]);
        git(&home, &workspace, &["remote", "add", "origin", &remote]);
        git(&home, &workspace, &["fetch", "--quiet", "origin"]);
        Self { _folder: folder, place: CommandSetting { workspace, home, config } }
    }
}

pub(crate) fn write(folder: &Path, files: &[(&str, &str)]) {
    fs::create_dir_all(folder).unwrap();
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Git without the machine's own configuration.
#[track_caller]
pub(crate) fn git(home: &Path, folder: &Path, arguments: &[&str]) {
    let path = std::env::var_os("PATH").unwrap();
    let identity = ["user.name=Ada", "user.email=ada@example.com", "commit.gpgSign=false"];
    let mut command = Command::new("git");
    command.args(identity.iter().flat_map(|pair| ["-c", pair])).args(arguments).current_dir(folder);
    command.env_clear().env("PATH", path).env("HOME", home).env("GIT_CONFIG_NOSYSTEM", "1");
    command.env("GIT_TEMPLATE_DIR", PathBuf::new());
    let output = command.output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}
