//! A rule that denies an operation refuses it under all of its names.

use toold_proto::permission::Verdict;

use crate::commands::folders::TestProject;
use crate::commands::judge::{RuleLine, judge};

const TABLE: &str = include_str!("other_names.txt");

/// Each `RULE => LINE | LINE`, with another word than `=>` for lines that the rule is not about.
fn check(arrow: &str, expected: Verdict, least: usize) {
    let project = TestProject::make();
    let workspace = project.place.workspace.to_str().unwrap();
    let (mut wrong, mut count) = (Vec::new(), 0);
    for (at, row) in TABLE.lines().enumerate() {
        let Some((rule, lines)) = row.split_once(arrow) else { continue };
        let rules = ["allow shell **", "allow file.write **", &format!("deny shell {rule}")];
        let rules = rules.map(|rule| RuleLine::parse(rule).unwrap());
        for line in lines.split(" | ") {
            count += 1;
            let judged = judge(&line.replace("{project}", workspace), &project.place, &rules);
            if judged.verdict != expected {
                let why =
                    judged.parts.iter().find(|part| part.verdict == judged.verdict).map(|part| part.rule.as_str());
                wrong.push(format!(
                    "{}: {rule}{arrow}{line}: {} {}",
                    at + 1,
                    judged.verdict.as_str(),
                    why.unwrap_or_default()
                ));
            }
        }
    }
    println!("{} of {count} lines are judged as they must be", count - wrong.len());
    assert!(wrong.is_empty(), "{} wrong in other_names.txt:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= least, "only {count} lines");
}

#[test]
fn a_rule_that_denies_an_operation_refuses_all_spellings_of_it() {
    check(" => ", Verdict::Deny, 400);
}

#[test]
fn a_rule_that_denies_an_operation_is_about_no_other() {
    check(" =!> ", Verdict::Allow, 80);
}
