//! Commands that usually take longer than others: builds, tests and installations. They get a longer time limit.

use std::path::Path;

use toold_engine::need::Need;

/// Programs that build, test or install. Some also do other things, for which the longer limit does no harm.
const PROGRAMS: [&str; 64] = [
    "bazel",
    "bazelisk",
    "buck2",
    "bun",
    "bundle",
    "cabal",
    "cargo",
    "cmake",
    "composer",
    "conan",
    "conda",
    "ctest",
    "deno",
    "docker",
    "dotnet",
    "flutter",
    "gem",
    "gmake",
    "go",
    "gradle",
    "gradlew",
    "jest",
    "just",
    "lake",
    "lein",
    "make",
    "meson",
    "mix",
    "mvn",
    "mvnw",
    "mypy",
    "nextest",
    "ninja",
    "nix",
    "nix-build",
    "nox",
    "npm",
    "npx",
    "pip",
    "pip3",
    "pnpm",
    "podman",
    "poetry",
    "pytest",
    "rake",
    "rebar3",
    "rspec",
    "rustup",
    "sbt",
    "scons",
    "stack",
    "swift",
    "terraform",
    "tox",
    "tsc",
    "turbo",
    "uv",
    "vitest",
    "waf",
    "webpack",
    "xcodebuild",
    "yarn",
    "zig",
    "zola",
];

/// Whether one of the commands of a line, by the needs that its analysis found, is such a program.
pub(crate) fn is_build(needs: &[Need]) -> bool {
    needs.iter().filter_map(Need::words).any(|words| {
        let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
        match words.as_slice() {
            [python, "-m", module, ..] if name(python).starts_with("python") => PROGRAMS.contains(module),
            [program, ..] => PROGRAMS.contains(&name(program)),
            [] => false,
        }
    })
}

fn name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}

#[cfg(test)]
mod tests {
    use toold_engine::need::{JudgedCommand, Word};

    use super::*;

    #[test]
    fn builds_are_known_by_their_program() {
        let is_build = |line: &str| {
            let words = line.split(' ').map(|text| Word { text: text.to_owned(), literal: true }).collect();
            super::is_build(&[Need::of_command(line, JudgedCommand { words: Some(words), ..JudgedCommand::default() })])
        };
        assert!(is_build("cargo test") && is_build("./gradlew build") && is_build("python3 -m pytest -x"));
        assert!(!is_build("ls") && !is_build("python3 x.py") && !is_build("cargo-like"));
        assert!(PROGRAMS.is_sorted());
    }
}
