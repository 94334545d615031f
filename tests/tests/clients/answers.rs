//! The answers of the book are right: their commands print what stands there. `UPDATE=1` writes what they print.

use std::fs;
use std::path::Path;
use std::process::Command;

use toold_tests::{Setup, until};

use crate::docs::{commands, fenced, repository, shell, without_the_run};

const ANSWERS: &str = "docs/answers.md";

/// The answers that the first page of the book must lead to.
const QUESTIONS: usize = 15;

#[test]
fn commands_of_the_answers_print_the_shown_output() {
    let file = repository().join(ANSWERS);
    let document = fs::read_to_string(&file).unwrap();
    let mut printed = String::new();
    let mut wrong = Vec::new();
    for section in document.split_inclusive("\n## ") {
        let mut section = section.to_owned();
        let setup = Setup::new();
        fs::create_dir(setup.path("home/work")).unwrap();
        for block in fenced(Path::new(ANSWERS), &section) {
            // A configuration is in force for the commands below it.
            if block.language == "toml" {
                fs::create_dir_all(setup.path("home/.config/toold")).unwrap();
                fs::write(setup.path("home/.config/toold/config.toml"), &block.text).unwrap();
            }
            if block.language != "console" {
                continue;
            }
            let mut shown = String::new();
            for (line, _) in commands(&block) {
                // In the order in which a terminal shows both streams.
                let output = shell(&setup, &format!("exec 2>&1\n{line}")).output().unwrap();
                let text = String::from_utf8(output.stdout).unwrap();
                let text = text.replace(setup.path("home").to_str().unwrap(), "/home/you");
                let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
                shown.push_str(&format!("$ {line}\n"));
                lines.iter().for_each(|line| shown.push_str(&format!("{line}\n")));
            }
            if without_the_run(&setup, &shown) != without_the_run(&setup, &block.text) {
                wrong.push(format!("{}\nexpected:\n{}\nprinted:\n{shown}", block.place, block.text));
                section = section.replacen(&block.text, &shown, 1);
            }
        }
        end_daemon(&setup);
        printed.push_str(&section);
    }
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, printed).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Ends the daemon, also one that takes this test for an agent, whose hook it ran.
fn end_daemon(setup: &Setup) {
    let stop = || shell(setup, "toolctl --no-start stop").output().unwrap().status.success();
    if stop() {
        return;
    }
    let record = fs::read_to_string(setup.path("home/.local/state/toold/daemon.json")).unwrap();
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    let ended = Command::new("kill").arg(record["pid"].to_string()).status().unwrap();
    assert!(ended.success(), "{record}");
    until("the daemon has ended", || stop().then_some(()));
}

/// Within two clicks: the README leads to the book, and the book to each answer, which has an example.
#[test]
fn the_book_leads_to_every_answer_and_each_has_an_example() {
    let read = |path: &str| fs::read_to_string(repository().join(path)).unwrap();
    assert!(read("README.md").contains("](docs/README.md)"));
    let (book, answers) = (read("docs/README.md"), read(ANSWERS));
    let sections: Vec<&str> = answers.split("\n## ").skip(1).collect();
    assert_eq!(sections.len(), QUESTIONS);
    for section in sections {
        let title = section.lines().next().unwrap();
        let anchor: String = title
            .to_lowercase()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -".contains(*c))
            .map(|c| if c == ' ' { '-' } else { c })
            .collect();
        assert!(book.contains(&format!("](answers.md#{anchor})")), "docs/README.md does not lead to {anchor}");
        assert!(section.contains("```console"), "{title} has no example");
    }
}
