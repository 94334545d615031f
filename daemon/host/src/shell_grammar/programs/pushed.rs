//! The branches that `git push` pushes where its words do not name them, and addresses in place of a remote.

use toold_engine::need::{CommandForm, FormOption, Word};

use super::repository::Repository;
use super::{CommandContext, Reading};
use crate::shell_grammar::arg::Arg;

/// Where the repository is not known, these are what rules are about most.
const USUAL_BRANCHES: &[&str] = &["main", "master"];

/// Adds `git push origin main` for each branch, for rules that deny or ask.
pub(super) fn add(words: &[Arg], reading: &mut Reading, repository: Option<&Repository>, site: &CommandContext) {
    let has = |names: &[&str]| words.iter().any(|word| names.iter().any(|name| word.is(name)));
    let plain: Vec<&str> = match &reading.form {
        Some(form) => form.plain.iter().skip(1).map(|word| word.text.as_str()).collect(),
        None => words.iter().filter_map(Arg::literal).filter(|text| !text.starts_with('-')).collect(),
    };
    reading.places.extend(addresses(&plain, reading.form.as_ref(), repository));
    let (remote, refspecs) = plain.split_first().map_or((None, &[][..]), |(remote, rest)| (Some(*remote), rest));
    let is_all = |refspec: &&str| matches!(refspec.trim_start_matches('+'), ":") || refspec.contains('*');
    let is_current = |refspec: &&str| matches!(refspec.trim_start_matches('+'), "HEAD" | "@");
    let branches = if has(&["--all", "--branches", "--mirror"]) || refspecs.iter().any(is_all) {
        repository.map_or_else(usual_branches, Repository::branches)
    } else if refspecs.is_empty() && !has(&["--tags"]) || refspecs.iter().any(is_current) {
        current_branches(repository, site)
    } else {
        return;
    };
    let remotes = match remote {
        Some(remote) => vec![remote.to_owned()],
        None => repository
            .map(Repository::remotes)
            .filter(|remotes| !remotes.is_empty())
            .unwrap_or_else(|| vec!["origin".to_owned()]),
    };
    let push = |remote: &String, branch: &String| ["git", "push", remote, branch].map(Arg::text).to_vec();
    let pushes = remotes.iter().flat_map(|remote| branches.iter().map(move |branch| push(remote, branch)));
    reading.also.extend(pushes);
}

/// Adds the address that `git pull` and `git fetch` name in place of a remote, and those of new remotes and submodules.
pub(super) fn add_pulled(reading: &mut Reading, repository: Option<&Repository>) {
    let Some(form) = &reading.form else { return };
    let plain: Vec<&str> = form.plain.iter().skip(1).map(|word| word.text.as_str()).collect();
    let found = match form.plain.first().map(|word| word.text.as_str()) {
        Some("remote" | "submodule") => {
            let is_address = |text: &&&str| text.contains(':') || text.starts_with(['/', '.']);
            plain.iter().filter(is_address).map(|text| vec![(*text).to_owned()]).collect()
        }
        _ => addresses(&plain, None, repository),
    };
    reading.places.extend(found);
}

/// An address in place of the name of a remote is a place that a pattern has to show: `git push https://example.org/a main`.
fn addresses(plain: &[&str], form: Option<&CommandForm>, repository: Option<&Repository>) -> Vec<Vec<String>> {
    let is_repository = |option: &&FormOption| option.names.iter().any(|name| name == "--repo");
    let by_option = form.into_iter().flat_map(|form| &form.options).filter(is_repository);
    let by_option = by_option.flat_map(|option| &option.values).map(|value| value.text.as_str());
    let is_address = |text: &&str| text.contains(['/', ':']) || matches!(*text, "." | "..");
    let is_remote = |text: &str| repository.is_some_and(|found| found.remotes().iter().any(|remote| remote == text));
    let named = plain.first().copied().into_iter().chain(by_option);
    named.filter(|text| is_address(text) && !is_remote(text)).map(|text| vec![text.to_owned()]).collect()
}

fn usual_branches() -> Vec<String> {
    USUAL_BRANCHES.iter().map(|branch| (*branch).to_owned()).collect()
}

/// The branch that is checked out by then.
fn current_branches(repository: Option<&Repository>, site: &CommandContext) -> Vec<String> {
    match site.switched_by {
        Some(words) => words.iter().filter(|word| word.literal).map(|word| word.text.clone()).collect(),
        None => repository.map_or_else(usual_branches, |repository| repository.current_branch().into_iter().collect()),
    }
}

/// Whether a command may check out another branch.
pub(in crate::shell_grammar) fn switches_branch(words: &[Word]) -> bool {
    let is = |at: usize, texts: &[&str]| words.get(at).is_some_and(|word| texts.contains(&word.text.as_str()));
    is(0, &["git"]) && words.iter().any(|word| matches!(word.text.as_str(), "checkout" | "switch" | "branch"))
}
