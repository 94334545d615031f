//! What `git push` pushes where its words do not name it: the branch that is checked out, or all of them.

use toold_engine::need::Word;

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
