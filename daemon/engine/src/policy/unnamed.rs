//! Denials of what a command may do without naming it: files that it may read, show or change, and commands that it may run.

use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use super::grants::Grant;
use super::left_out::{is_plain, widest_folder};
use super::{Policy, Rule, Subject, decide_from_policy};
use crate::need::{InnerCommand, JudgedCommand, Need, ShownFiles};

/// A use that a command may make of files that its words do not name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FilesUse {
    Shown,
    Changed,
}

/// The rules and the grants that deny something of a category to the subject, and rules that ask, if those count.
struct Denials<'a> {
    rules: Vec<&'a Rule>,
    grants: Vec<&'a Grant>,
    subject: &'a Subject<'a>,
}

/// The denial that may be about the command, in words.
pub(super) fn denied(policy: &Policy, grants: &[Grant], subject: &Subject, need: &Need) -> Option<String> {
    let command = need.command()?;
    let of = |category: Category, asks: bool| {
        let any = Need::new(category, "");
        let counts = |rule: &&Rule| rule.action == Verdict::Deny || asks && rule.action == Verdict::Ask;
        let rules = policy.rules.iter().filter(counts).filter(|rule| rule.concerns(subject, &any)).collect();
        Denials { rules, grants: grants.iter().filter(|grant| grant.may_deny(subject, &any)).collect(), subject }
    };
    let read = || {
        let denials = of(Category::FileRead, false);
        command.reads_anywhere.iter().find_map(|name| denials.of_name(name))
    };
    let shown = || {
        let denials = of(Category::FileRead, true);
        command.shows.iter().find_map(|files| denials.of_files(files, FilesUse::Shown, policy, grants))
    };
    let written = || {
        let denials = of(Category::FileWrite, false);
        let below = command.writes_in.iter().find_map(|folder| denials.of_written_below(folder));
        let changed = || {
            let mut all = command.changes.iter();
            all.find_map(|files| denials.of_files(files, FilesUse::Changed, policy, grants))
        };
        below.or_else(|| command.covers.iter().find_map(|file| denials.of_changed(file))).or_else(changed)
    };
    let run = || {
        let denials = of(Category::Shell, true);
        command.may_run.iter().find_map(|inner| denials.of_command(inner))
    };
    read().or_else(shown).or_else(written).or_else(run)
}

impl Denials<'_> {
    fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.grants.is_empty()
    }

    fn first(&self, rule: impl Fn(&Rule) -> bool, grant: impl Fn(&Grant) -> bool) -> Option<String> {
        let by_rule = self.rules.iter().find(|of| rule(of)).map(|rule| rule.name());
        by_rule.or_else(|| self.grants.iter().find(|of| grant(of)).map(|grant| grant.describe()))
    }

    fn about(&self, need: &Need) -> Option<String> {
        self.first(|rule| rule.pattern.may_match(need).is_some(), |grant| grant.denies(self.subject, need))
    }

    /// The denial of reading a file with this name in some folder.
    fn of_name(&self, name: &str) -> Option<String> {
        let denial =
            self.first(|rule| rule.pattern.may_match_name(name), |grant| grant.pattern.may_match_name(name))?;
        Some(format!("the folder of {name} is not known, so it may be about this: {denial}"))
    }

    fn below(&self, folder: &str) -> Option<String> {
        self.first(|rule| rule.pattern.may_match_below(folder), |grant| grant.pattern.may_match_below(folder))
    }

    fn of_written_below(&self, folder: &str) -> Option<String> {
        let denial = self.below(folder)?;
        Some(format!("it may write any file in {folder}, also one that may not be written: {denial}"))
    }

    fn of_changed(&self, file: &str) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let denial = self.about(&Need::new(Category::FileWrite, file))?;
        Some(format!("it may change {file}, which may not be written: {denial}"))
    }

    fn of_command(&self, inner: &InnerCommand) -> Option<String> {
        let command =
            JudgedCommand { words: inner.words.clone(), form: inner.form.clone(), ..JudgedCommand::default() };
        let denial = self.about(&Need::of_command(inner.target.clone(), command))?;
        let words = inner.words.iter().flatten().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
        Some(format!("{words} may be a command that it runs: {denial}"))
    }

    /// The denial of showing or changing one of these files. Linear in their number for each rule, and for each folder above the
    /// first that is denied.
    fn of_files(&self, files: &ShownFiles, how: FilesUse, policy: &Policy, grants: &[Grant]) -> Option<String> {
        if self.is_empty() {
            return None;
        }
        let (category, does) = match how {
            FilesUse::Shown => (Category::FileRead, "show"),
            FilesUse::Changed => (Category::FileWrite, "change"),
        };
        let Some(names) = &files.names else {
            let folder = files.folder.display();
            let denial = self.below(&files.folder.to_string_lossy())?;
            return Some(format!(
                "which files in {folder} it may {does} is not known, so it may be about this: {denial}"
            ));
        };
        let denial_of = |name: &str| {
            let file = Need::new(category, files.folder.join(name).to_string_lossy());
            self.about(&file)?;
            // A rule that asks has exceptions.
            let decision = decide_from_policy(policy, grants, self.subject, &file);
            (decision.verdict != Verdict::Allow).then_some(decision.rule)
        };
        let (at, denial) = names.iter().enumerate().find_map(|(at, name)| Some((at, denial_of(name)?)))?;
        let way_around = files.leaving_out.and_then(|magic| {
            let whole = widest_folder(&names[at], names.iter().map(String::as_str), |name| denial_of(name).is_some());
            is_plain(whole).then(|| format!(" (leave it out with -- '{magic}{whole}')"))
        });
        let file = files.folder.join(&names[at]);
        Some(format!("it may {does} {}: {denial}{}", file.display(), way_around.unwrap_or_default()))
    }
}
