//! Rules tried on the past: the audit log's needs decided again, and rules that would have answered as a person did.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toold_proto::effect::Effect;
use toold_proto::permission::{ReplayedLine, SuggestedRule, Verdict};
use toold_proto::tool::Category;

use crate::agent_request::NOBODY_ANSWERED;
use crate::asks::ANSWER;
use crate::audit::DecisionRecord;
use crate::need::Need;
use crate::policy::PLAN_DENIES;
use crate::policy::grants::described_id;
use crate::policy::pattern::Pattern;
use crate::policy::suggest::suggestions;

/// What happened at a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PastVerdict {
    /// Without a person's answer for this call.
    Allowed,
    /// A person, or the agent's own prompt, was asked, and allowed it or was left to decide.
    AskedAndAllowed,
    /// A person was asked, and refused, or did not answer.
    AskedAndDenied,
    Denied,
}

/// How the rule of a decision begins that was made while a person had paused everything.
pub const PAUSED: &str = "paused by ";

/// Whether a decision says nothing about rules: a pause or the mode `plan` denies whatever they are.
pub fn is_beside_rules(decision: &DecisionRecord) -> bool {
    decision.rule.starts_with(PAUSED) || decision.rule == PLAN_DENIES
}

impl PastVerdict {
    pub fn of(decision: &DecisionRecord) -> Self {
        let was_asked = decision.rule.starts_with(ANSWER);
        match (&*decision.verdict, was_asked) {
            ("ask", _) | ("allow", true) => Self::AskedAndAllowed,
            ("allow", false) => Self::Allowed,
            (_, true) => Self::AskedAndDenied,
            (_, false) if decision.rule.starts_with(NOBODY_ANSWERED) => Self::AskedAndDenied,
            (_, false) => Self::Denied,
        }
    }

    pub fn was_asked(self) -> bool {
        matches!(self, Self::AskedAndAllowed | Self::AskedAndDenied)
    }

    pub fn was_denied(self) -> bool {
        matches!(self, Self::AskedAndDenied | Self::Denied)
    }
}

/// Decisions again, by line.
#[derive(Default)]
pub struct ReplayCounts {
    pub asks_before: u64,
    pub asks_after: u64,
    lines: BTreeMap<(ReplayChange, String, String), ReplayedLine>,
}

/// How a decision differs from that of the past.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReplayChange {
    Freed,
    Denied,
    Asked,
}

impl ReplayChange {
    fn of(past: PastVerdict, now: Verdict) -> Option<Self> {
        match now {
            Verdict::Allow => (past != PastVerdict::Allowed).then_some(Self::Freed),
            Verdict::Deny => (!past.was_denied()).then_some(Self::Denied),
            Verdict::Ask => (!past.was_asked()).then_some(Self::Asked),
        }
    }
}

/// The lines whose decisions differ, of each kind the worst effect first.
#[derive(Default)]
pub struct ChangedLines {
    pub freed: Vec<ReplayedLine>,
    pub denied: Vec<ReplayedLine>,
    pub asked: Vec<ReplayedLine>,
}

impl ReplayCounts {
    /// Adds one decision, and what it would be now.
    pub fn add(&mut self, need: &Need, past: PastVerdict, now: Verdict, rule: &str) {
        self.asks_before += u64::from(past.was_asked());
        self.asks_after += u64::from(now == Verdict::Ask);
        let Some(change) = ReplayChange::of(past, now) else { return };
        let key = (change, need.category().as_str().to_owned(), need.target.clone());
        let line = self.lines.entry(key).or_insert_with(|| ReplayedLine {
            category: need.category(),
            target: need.target.clone(),
            effects: need.effects_within().iter().collect(),
            count: 0,
            was_denied: false,
            rule: rule.to_owned(),
        });
        line.count += 1;
        line.was_denied |= past.was_denied();
    }

    pub fn lines(self) -> ChangedLines {
        let mut changed = ChangedLines::default();
        for ((change, ..), line) in self.lines {
            match change {
                ReplayChange::Freed => changed.freed.push(line),
                ReplayChange::Denied => changed.denied.push(line),
                ReplayChange::Asked => changed.asked.push(line),
            }
        }
        for lines in [&mut changed.freed, &mut changed.denied, &mut changed.asked] {
            lines.sort_by_key(|line| (!line.was_denied, worst(&line.effects), std::cmp::Reverse(line.count)));
        }
        changed
    }
}

fn worst(effects: &[Effect]) -> Effect {
    effects.iter().min().copied().unwrap_or(Effect::Read)
}

/// A need of the past, and what a person did about it.
pub struct AnsweredNeed {
    pub need: Need,
    pub allowed: bool,
}

/// The fewest patterns that would have answered as the person did, each for two answers at least, that for the most answers
/// first. None covers something that a person denied; a pattern covers only effects that it shows, and so only effects
/// that a person approved.
pub fn suggested_rules(answers: &[AnsweredNeed], home: Option<&Path>) -> Vec<SuggestedRule> {
    let denied: Vec<&Need> = answers.iter().filter(|answer| !answer.allowed).map(|answer| &answer.need).collect();
    let mut open: Vec<&Need> = answers.iter().filter(|answer| answer.allowed).map(|answer| &answer.need).collect();
    let approved: BTreeSet<(&'static str, Effect)> = open
        .iter()
        .flat_map(|need| need.effects_within().iter().map(|effect| (need.category().as_str(), effect)))
        .collect();
    let mut candidates: BTreeMap<(String, usize, String), (Category, Pattern)> = BTreeMap::new();
    for need in &open {
        for (width, suggestion) in suggestions(need, home).into_iter().enumerate() {
            let Ok(pattern) = Pattern::parse_to_use(need.category(), &suggestion.pattern) else { continue };
            // Nobody knows what a server's other tools do: only those that were approved.
            if need.category() == Category::Mcp && !pattern.is_exact() && !pattern.is_of_reading_tools() {
                continue;
            }
            if denied.iter().any(|denied| denied.category() == need.category() && pattern.may_match(denied).is_some()) {
                continue;
            }
            let key = (need.category().as_str().to_owned(), width, suggestion.pattern);
            candidates.entry(key).or_insert((need.category(), pattern));
        }
    }
    let mut rules = Vec::new();
    loop {
        let covers = |(category, pattern): &(Category, Pattern), need: &Need| {
            *category == need.category() && pattern.matches(need).is_some()
        };
        // The narrowest of those that cover equally many.
        let best = candidates
            .iter()
            .map(|(key, found)| (open.iter().filter(|need| covers(found, need)).count(), key, found))
            .max_by_key(|(count, key, _)| (*count, std::cmp::Reverse(key.1)));
        let Some((count, (_, _, text), found)) = best.filter(|(count, ..)| *count >= 2) else { return rules };
        let (covered, rest): (Vec<&Need>, Vec<&Need>) = open.iter().copied().partition(|need| covers(found, need));
        let mut effects: Vec<Effect> = covered.iter().flat_map(|need| need.effects_within().iter()).collect();
        effects.sort_unstable();
        effects.dedup();
        let category = found.0;
        debug_assert!(effects.iter().all(|effect| approved.contains(&(category.as_str(), *effect))));
        rules.push(SuggestedRule { category, pattern: text.clone(), count: count as u64, effects });
        open = rest;
    }
}

/// What a person did about a decision of the past; `None` where a person did nothing.
pub fn answer_of(decision: &DecisionRecord, need: Need) -> Option<AnsweredNeed> {
    match PastVerdict::of(decision) {
        // A grant that denies is a person's answer too.
        PastVerdict::Denied if described_id(&decision.rule).is_some() => Some(AnsweredNeed { need, allowed: false }),
        PastVerdict::AskedAndAllowed if decision.rule.starts_with(ANSWER) => Some(AnsweredNeed { need, allowed: true }),
        PastVerdict::AskedAndDenied if decision.rule.starts_with(ANSWER) => Some(AnsweredNeed { need, allowed: false }),
        PastVerdict::Allowed | PastVerdict::AskedAndAllowed | PastVerdict::AskedAndDenied | PastVerdict::Denied => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effects::CommandEffects;
    use crate::need::{JudgedCommand, Word};

    fn command(line: &str, name: &str, effect: Effect) -> Need {
        let words = line.split(' ').map(|text| Word { text: text.to_owned(), literal: true }).collect();
        let effects = CommandEffects {
            operation: [effect].into_iter().collect(),
            name: name.split(' ').map(str::to_owned).collect(),
            ..CommandEffects::default()
        };
        Need::of_command(line, JudgedCommand { words: Some(words), effects, ..JudgedCommand::default() })
    }

    fn answered(line: &str, name: &str, allowed: bool) -> AnsweredNeed {
        AnsweredNeed { need: command(line, name, Effect::Build), allowed }
    }

    #[track_caller]
    fn check(answers: &[AnsweredNeed], expected: &[(&str, u64)]) {
        let rules = suggested_rules(answers, None);
        let rules: Vec<(&str, u64)> = rules.iter().map(|rule| (rule.pattern.as_str(), rule.count)).collect();
        assert_eq!(rules, expected);
    }

    #[test]
    fn suggested_rules_answer_as_the_person_did() {
        let test = |line: &str| answered(line, "cargo test", true);
        check(&[test("cargo test a"), test("cargo test b"), test("cargo test c")], &[("cargo test *", 3)]);
        // The same again is a narrow rule, and once is none.
        check(
            &[test("cargo test a"), test("cargo test a"), answered("cargo run x", "cargo run", true)],
            &[("cargo test a", 2)],
        );
        // A person denied one that the wide rule would cover.
        check(
            &[
                test("cargo test a"),
                test("cargo test a"),
                test("cargo test b"),
                answered("cargo test c", "cargo test", false),
            ],
            &[("cargo test a", 2)],
        );
        check(&[], &[]);
    }

    #[test]
    fn lines_that_a_person_denied_come_first_and_then_the_worst_effect() {
        let mut counts = ReplayCounts::default();
        let push = command("git push", "git push", Effect::Publish);
        let build = command("make", "make", Effect::Build);
        let refused = command("make x", "make", Effect::Build);
        counts.add(&build, PastVerdict::AskedAndAllowed, Verdict::Allow, "r");
        counts.add(&build, PastVerdict::AskedAndAllowed, Verdict::Allow, "r");
        counts.add(&push, PastVerdict::AskedAndAllowed, Verdict::Allow, "r");
        counts.add(&refused, PastVerdict::AskedAndDenied, Verdict::Allow, "r");
        counts.add(&push, PastVerdict::Allowed, Verdict::Deny, "d");
        counts.add(&push, PastVerdict::AskedAndAllowed, Verdict::Ask, "a");
        counts.add(&build, PastVerdict::Allowed, Verdict::Ask, "level read");
        assert_eq!((counts.asks_before, counts.asks_after), (5, 2));
        let ChangedLines { freed, denied, asked } = counts.lines();
        let shown =
            |lines: &[ReplayedLine]| lines.iter().map(|line| (line.target.clone(), line.count)).collect::<Vec<_>>();
        assert_eq!(shown(&freed), [("make x".to_owned(), 1), ("git push".to_owned(), 1), ("make".to_owned(), 2)]);
        assert_eq!(shown(&denied), [("git push".to_owned(), 1)]);
        // What was asked about then is no news.
        assert_eq!(shown(&asked), [("make".to_owned(), 1)]);
    }
}
