//! Compares `grep` and `glob` in a warm daemon with the `rg` program, call against process, on one tree in one run.
//! Prints the median of each and their ratio. `--quick` uses a small tree.

#[path = "../tests/all/builtin_test.rs"]
#[allow(dead_code, reason = "a part of the harness is for tests only")]
mod builtin_test;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::builtin_test::BuiltinTest;

/// A benchmark: its name, the tool with its arguments, and the same arguments for `rg`.
type SearchBench = (&'static str, &'static str, Value, &'static [&'static str]);

fn main() {
    let quick = std::env::args().any(|argument| argument == "--quick");
    let (files, rounds) = if quick { (2_000, 3) } else { (50_000, 20) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime starts");
    let test = tree(files);
    let questions: [SearchBench; 7] = [
        ("few matches", "grep", json!({"pattern": "needle_in_hay"}), &["-n", "needle_in_hay"]),
        ("many matches", "grep", json!({"pattern": "common", "max_results": 200}), &["-n", "common"]),
        ("files only", "grep", json!({"pattern": "common", "output_mode": "files"}), &["-l", "common"]),
        ("no literal", "grep", json!({"pattern": "[a-z]+_[0-9]{4}x"}), &["-n", "[a-z]+_[0-9]{4}x"]),
        ("one folder", "grep", json!({"pattern": "common", "path": "d07"}), &["-n", "common", "d07"]),
        ("glob, few", "glob", json!({"pattern": "*7.rs"}), &["--files", "-g", "*7.rs"]),
        ("glob, all", "glob", json!({"pattern": "*.rs"}), &["--files", "-g", "*.rs"]),
    ];
    println!("{files} files, median of {rounds} rounds\n{:<14} {:>10} {:>10} {:>7}", "", "toold", "rg", "ratio");
    for (name, tool, arguments, flags) in questions {
        let (mut own, mut other) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let start = Instant::now();
            let result = runtime.block_on(test.call(tool, arguments.clone()));
            own.push(start.elapsed());
            assert!(!result.is_error, "{}", result.text());
            other.push(rg(&test, flags));
        }
        let (own, other) = (median(own), median(other));
        let ratio = own.as_secs_f64() / other.as_secs_f64();
        println!("{name:<14} {:>8.2}ms {:>8.2}ms {ratio:>7.2}", own.as_secs_f64() * 1e3, other.as_secs_f64() * 1e3);
        let most = match name {
            "many matches" => 0.7,
            _ if tool == "glob" => 1.0,
            _ => 0.9,
        };
        // A line for `tests/benches/figures.py`.
        let held = if ratio <= most { "held" } else { "missed" };
        let what = name.strip_prefix("glob, ").unwrap_or(name);
        println!("goal G14 | {tool}, {what}, of rg | {ratio:.2} | x | at most {most} | {held}");
    }
}

fn tree(files: usize) -> BuiltinTest {
    let test = BuiltinTest::strict();
    std::fs::create_dir(test.root.join(".git")).expect("the folder is new");
    test.write(".gitignore", "target/\n*.log\n");
    let lines: String =
        (0..40).map(|n| format!("    let value_{n} = compute(input, {n}); // common words\n")).collect();
    for n in 0..files {
        let text = match n % 1000 {
            7 => format!("{lines}fn needle_in_hay() {{}}\n"),
            _ if n % 3 == 0 => lines.clone(),
            _ => lines.replace("common", "other"),
        };
        let ending = if n % 4 == 0 { "md" } else { "rs" };
        test.write(&format!("d{:02}/e{:02}/file{n}.{ending}", n % 50, n % 97), text);
    }
    test
}

fn rg(test: &BuiltinTest, flags: &[&str]) -> Duration {
    let start = Instant::now();
    let mut command = Command::new("rg");
    command.arg("--no-config").args(flags).current_dir(&test.root).stdin(Stdio::null());
    // Includes reading the output, as any caller of `rg` must.
    let output = command.output().expect("this bench compares with ripgrep: install the program `rg`");
    assert!(output.status.code().is_some_and(|code| code < 2));
    start.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
