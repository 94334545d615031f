//! Lines as coding agents write them, in the shell's less common forms: heredocs with something behind them, arithmetic,
//! process substitutions. All of them must be taken apart, and judged as a person would expect without any rule.

use toold_proto::permission::Verdict;

use crate::commands::corpus::read;
use crate::commands::folders::TestProject;
use crate::commands::judge::judge;

/// The titles of the sections in the data file.
const SECTIONS: &[(&str, Verdict)] = &[("free", Verdict::Allow), ("asked", Verdict::Ask), ("refused", Verdict::Deny)];

#[test]
fn lines_of_agents_are_read_and_judged() {
    let project = TestProject::make();
    let lines = read("agents.txt", include_str!("agents.txt"));
    assert!(lines.len() >= 135, "only {} lines", lines.len());
    let mut wrong = Vec::new();
    for it in &lines {
        let (_, expected) = SECTIONS.iter().find(|(title, _)| it.section == *title).expect("a known section");
        let judged = judge(&it.line, &project.place, &it.rules);
        let by: Vec<&str> = judged.parts.iter().map(|part| part.rule.as_str()).collect();
        let is_read = !by.iter().any(|rule| rule.contains("cannot parse"));
        if !is_read || judged.verdict != *expected {
            let verdict = judged.verdict.as_str();
            wrong.push(format!("{}:{} is {verdict}: {:?}  ({})", it.file, it.number, it.line, by.join(", ")));
        }
    }
    assert!(wrong.is_empty(), "{} of {} lines:\n{}", wrong.len(), lines.len(), wrong.join("\n"));
}
