//! Requests to the interfaces of GitHub and GitLab that do what commands of their clients do: `gh pr merge 1` of `gh api -X PUT
//! repos/o/r/pulls/1/merge`.

use toold_engine::need::Word;

use super::NamedCommand;

/// A method, the last parts of a path, a field if it makes a difference, and commands that do the same. `*` stands for one part,
/// `**` for all further ones.
type RequestRow = (&'static str, &'static str, &'static str, &'static [&'static str]);

/// Read from docs.github.com/rest (2022-11-28).
const GITHUB: &[RequestRow] = &[
    ("PUT", "pulls/*/merge", "", &["gh pr merge"]),
    ("POST", "pulls", "", &["gh pr create"]),
    ("PATCH", "pulls/*", "state=closed", &["gh pr close"]),
    ("PATCH", "pulls/*", "state=open", &["gh pr reopen"]),
    ("PATCH", "pulls/*", "", &["gh pr edit"]),
    ("POST", "pulls/*/reviews", "", &["gh pr review"]),
    ("POST", "pulls/*/comments", "", &["gh pr comment"]),
    ("PUT", "pulls/*/update-branch", "", &["gh pr update-branch"]),
    ("POST", "issues", "", &["gh issue create"]),
    ("PATCH", "issues/*", "state=closed", &["gh issue close", "gh pr close"]),
    ("PATCH", "issues/*", "state=open", &["gh issue reopen", "gh pr reopen"]),
    ("PATCH", "issues/*", "", &["gh issue edit", "gh pr edit"]),
    ("POST", "issues/*/comments", "", &["gh issue comment", "gh pr comment"]),
    ("PUT", "issues/*/lock", "", &["gh issue lock", "gh pr lock"]),
    ("POST", "issues/*/labels", "", &["gh issue edit", "gh pr edit"]),
    ("DELETE", "repos/*/*", "", &["gh repo delete"]),
    ("PATCH", "repos/*/*", "archived=true", &["gh repo archive"]),
    ("PATCH", "repos/*/*", "", &["gh repo edit", "gh repo rename"]),
    ("POST", "user/repos", "", &["gh repo create"]),
    ("POST", "orgs/*/repos", "", &["gh repo create"]),
    ("POST", "forks", "", &["gh repo fork"]),
    ("POST", "merge-upstream", "", &["gh repo sync"]),
    ("POST", "releases", "", &["gh release create"]),
    ("PATCH", "releases/*", "", &["gh release edit"]),
    ("DELETE", "releases/*", "", &["gh release delete"]),
    ("POST", "releases/*/assets", "", &["gh release upload"]),
    ("DELETE", "releases/assets/*", "", &["gh release delete-asset"]),
    ("POST", "actions/workflows/*/dispatches", "", &["gh workflow run"]),
    ("PUT", "actions/workflows/*/enable", "", &["gh workflow enable"]),
    ("PUT", "actions/workflows/*/disable", "", &["gh workflow disable"]),
    ("POST", "actions/runs/*/rerun", "", &["gh run rerun"]),
    ("POST", "actions/runs/*/rerun-failed-jobs", "", &["gh run rerun"]),
    ("POST", "actions/runs/*/cancel", "", &["gh run cancel"]),
    ("DELETE", "actions/runs/*", "", &["gh run delete"]),
    ("DELETE", "actions/caches/*", "", &["gh cache delete"]),
    ("PUT", "secrets/*", "", &["gh secret set"]),
    ("DELETE", "secrets/*", "", &["gh secret delete"]),
    ("POST", "actions/variables", "", &["gh variable set"]),
    ("PATCH", "actions/variables/*", "", &["gh variable set"]),
    ("DELETE", "actions/variables/*", "", &["gh variable delete"]),
    ("POST", "gists", "", &["gh gist create"]),
    ("PATCH", "gists/*", "", &["gh gist edit"]),
    ("DELETE", "gists/*", "", &["gh gist delete"]),
    ("POST", "user/keys", "", &["gh ssh-key add"]),
    ("DELETE", "user/keys/*", "", &["gh ssh-key delete"]),
    ("POST", "labels", "", &["gh label create"]),
    ("DELETE", "labels/*", "", &["gh label delete"]),
    ("POST", "merges", "", &["git push"]),
    ("POST", "git/refs", "", &["git push"]),
    ("PATCH", "git/refs/**", "force=true", &["git push --force"]),
    ("PATCH", "git/refs/**", "", &["git push"]),
    ("DELETE", "git/refs/**", "", &["git push --delete"]),
    ("PUT", "contents/**", "", &["git push"]),
    ("DELETE", "contents/**", "", &["git push"]),
];

/// The same for docs.gitlab.com/api (17.6).
const GITLAB: &[RequestRow] = &[
    ("PUT", "merge_requests/*/merge", "", &["glab mr merge"]),
    ("POST", "merge_requests", "", &["glab mr create"]),
    ("PUT", "merge_requests/*", "state_event=close", &["glab mr close"]),
    ("PUT", "merge_requests/*", "state_event=reopen", &["glab mr reopen"]),
    ("PUT", "merge_requests/*", "", &["glab mr update"]),
    ("DELETE", "merge_requests/*", "", &["glab mr delete"]),
    ("POST", "merge_requests/*/approve", "", &["glab mr approve"]),
    ("PUT", "merge_requests/*/rebase", "", &["glab mr rebase"]),
    ("POST", "merge_requests/*/notes", "", &["glab mr note"]),
    ("POST", "issues", "", &["glab issue create"]),
    ("PUT", "issues/*", "state_event=close", &["glab issue close"]),
    ("PUT", "issues/*", "state_event=reopen", &["glab issue reopen"]),
    ("PUT", "issues/*", "", &["glab issue update"]),
    ("DELETE", "issues/*", "", &["glab issue delete"]),
    ("POST", "issues/*/notes", "", &["glab issue note"]),
    ("DELETE", "projects/*", "", &["glab repo delete"]),
    ("POST", "projects", "", &["glab repo create"]),
    ("POST", "projects/*/fork", "", &["glab repo fork"]),
    ("POST", "releases", "", &["glab release create"]),
    ("DELETE", "releases/*", "", &["glab release delete"]),
    ("POST", "projects/*/pipeline", "", &["glab ci run"]),
    ("POST", "pipelines/*/retry", "", &["glab ci retry"]),
    ("POST", "pipelines/*/cancel", "", &["glab ci cancel"]),
    ("DELETE", "pipelines/*", "", &["glab ci delete"]),
    ("POST", "jobs/*/play", "", &["glab ci trigger"]),
    ("POST", "variables", "", &["glab variable set"]),
    ("PUT", "variables/*", "", &["glab variable update"]),
    ("DELETE", "variables/*", "", &["glab variable delete"]),
    ("POST", "snippets", "", &["glab snippet create"]),
    ("POST", "repository/commits", "", &["git push"]),
    ("POST", "repository/branches", "", &["git push"]),
    ("DELETE", "repository/branches/**", "", &["git push --delete"]),
    ("POST", "repository/files/**", "", &["git push"]),
    ("PUT", "repository/files/**", "", &["git push"]),
    ("DELETE", "repository/files/**", "", &["git push"]),
];

/// Mutations of their GraphQL interfaces.
const MUTATIONS: &[(&str, &[&str])] = &[
    ("mergePullRequest", &["gh pr merge"]),
    ("enablePullRequestAutoMerge", &["gh pr merge"]),
    ("enqueuePullRequest", &["gh pr merge"]),
    ("createPullRequest", &["gh pr create"]),
    ("closePullRequest", &["gh pr close"]),
    ("reopenPullRequest", &["gh pr reopen"]),
    ("updatePullRequest", &["gh pr edit"]),
    ("markPullRequestReadyForReview", &["gh pr ready"]),
    ("convertPullRequestToDraft", &["gh pr ready"]),
    ("addPullRequestReview", &["gh pr review"]),
    ("submitPullRequestReview", &["gh pr review"]),
    ("addComment", &["gh issue comment", "gh pr comment"]),
    ("createIssue", &["gh issue create"]),
    ("closeIssue", &["gh issue close"]),
    ("reopenIssue", &["gh issue reopen"]),
    ("updateIssue", &["gh issue edit"]),
    ("deleteIssue", &["gh issue delete"]),
    ("transferIssue", &["gh issue transfer"]),
    ("createRepository", &["gh repo create"]),
    ("cloneTemplateRepository", &["gh repo create"]),
    ("archiveRepository", &["gh repo archive"]),
    ("updateRepository", &["gh repo edit"]),
    ("createCommitOnBranch", &["git push"]),
    ("createRef", &["git push"]),
    ("updateRef", &["git push"]),
    ("updateRefs", &["git push"]),
    ("mergeBranch", &["git push"]),
    ("deleteRef", &["git push --delete"]),
    ("mergeRequestAccept", &["glab mr merge"]),
    ("mergeRequestCreate", &["glab mr create"]),
    ("mergeRequestUpdate", &["glab mr update"]),
    ("mergeRequestSetDraft", &["glab mr update"]),
    ("createNote", &["glab mr note", "glab issue note"]),
];

/// A request, as far as the words show it.
struct ForgeRequest<'a> {
    client: &'static str,
    rows: &'static [RequestRow],
    method: Option<String>,
    path: &'a str,
    /// The literal words, in which fields stand as `name=value`, also those of JSON.
    fields: String,
    /// A body that the words do not show.
    has_hidden_fields: bool,
}

impl NamedCommand {
    /// The commands that do what a request does; one of any name where it is not known what it does.
    pub(super) fn requested(&self) -> Vec<Self> {
        let Some(request) = self.request() else { return Vec::new() };
        let path = request.path.split(['?', '#']).next().unwrap_or_default();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        if parts.last() == Some(&"graphql") {
            let is_in =
                |name: &str| request.fields.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name);
            let named = MUTATIONS.iter().filter(|(name, _)| is_in(name)).flat_map(|(_, commands)| commands.iter());
            let any = request.has_hidden_fields.then(|| request.any());
            return named.map(|command| request.command(command, &parts, &[], true)).chain(any).collect();
        }
        // Nothing of the path is known.
        if parts.iter().all(|part| is_changed(part)) {
            return vec![request.any()];
        }
        let mut found = Vec::new();
        for (method, tail, field, commands) in request.rows {
            let is_method = request.method.as_ref().is_none_or(|given| given.eq_ignore_ascii_case(method));
            let Some((names, is_certain)) = ends_with(&parts, tail).filter(|_| is_method) else { continue };
            let has_field = field.is_empty() || request.fields.contains(field);
            if has_field || request.has_hidden_fields {
                let is_certain = is_certain && has_field && request.method.is_some();
                found.extend(commands.iter().map(|command| request.command(command, &parts, &names, is_certain)));
            }
        }
        found
    }

    fn request(&self) -> Option<ForgeRequest<'_>> {
        let program = self.program();
        let plain: Vec<&Word> = match &self.form {
            Some(form) => form.plain.iter().collect(),
            None => self.words.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect(),
        };
        let (client, path) = match program {
            "gh" | "hub" | "glab" => {
                let at = plain.iter().position(|word| word.literal && word.text == "api")?;
                let client = if program == "glab" { "glab" } else { "gh" };
                // Behind an option that may do more, its value is among the words.
                let is_path = |word: &&&Word| word.text.contains('/') || word.text == "graphql" || !word.literal;
                let path = &plain.get(at + 1..)?.iter().find(is_path)?.text;
                (client, path.strip_prefix("https://api.github.com/").unwrap_or(path))
            }
            "curl" => plain.iter().find_map(|word| {
                let address = word.text.trim_matches(['"', '\'']);
                let of = |start: &str| address.strip_prefix("https://").unwrap_or(address).strip_prefix(start);
                of("api.github.com/").map(|path| ("gh", path)).or_else(|| Some(("glab", of("gitlab.com/api/v4/")?)))
            })?,
            _ => return None,
        };
        let rows = if client == "glab" { GITLAB } else { GITHUB };
        let method = self.method_given();
        if method.as_ref().is_some_and(|method| matches!(method.as_str(), "GET" | "HEAD")) {
            return None;
        }
        let json = |word: &Word| word.text.replace(['"', ' '], "").replace(':', "=");
        let literal = self.words.iter().filter(|word| word.literal);
        let is_hidden = |word: &Word| {
            let is_file = word.text.contains("=@") || word.text.starts_with('@') || word.text.starts_with("--input");
            let is_named = word.text.contains(['=', ':']) || plain.contains(&word);
            is_file || !word.literal && !is_named
        };
        Some(ForgeRequest {
            client,
            rows,
            method,
            path: path.trim_matches(['"', '\'', '/']),
            fields: literal.map(json).collect::<Vec<_>>().join("\n"),
            has_hidden_fields: self.words.iter().any(is_hidden),
        })
    }

    /// The method of the words, or of a request with fields, in capitals; `None` if it is not known.
    fn method_given(&self) -> Option<String> {
        let fields: &[&str] = match self.program() {
            "curl" => &[
                "-d",
                "--data",
                "--data-raw",
                "--data-binary",
                "--data-ascii",
                "--data-urlencode",
                "--json",
                "-F",
                "--form",
            ],
            _ => &["-f", "--raw-field", "-F", "--field", "--input"],
        };
        let choosing = ["-X", "--method", "--request"];
        let options: Vec<(&str, Option<&Word>)> = match &self.form {
            Some(form) => {
                let named = form.options.iter().flat_map(|option| option.names.iter().map(move |name| (name, option)));
                named.map(|(name, option)| (name.as_str(), option.values.first())).collect()
            }
            None => self
                .words
                .iter()
                .map(|word| word.text.split('=').next().unwrap_or_default())
                .zip(self.words.iter().skip(1).map(Some))
                .collect(),
        };
        // Attached, of a program in no table.
        let attached = self.words.iter().filter(|_| self.form.is_none()).find_map(|word| {
            choosing.iter().find_map(|name| word.text.strip_prefix(name)).filter(|value| !value.is_empty())
        });
        if let Some(value) = attached {
            return Some(value.trim_start_matches('=').to_ascii_uppercase());
        }
        if let Some((_, value)) = options.iter().find(|(name, _)| choosing.contains(name)) {
            return value.filter(|value| value.literal).map(|value| value.text.to_ascii_uppercase());
        }
        let method = match options.iter().any(|(name, _)| fields.contains(name)) {
            true => "POST",
            false if options.iter().any(|(name, _)| matches!(*name, "-T" | "--upload-file")) => "PUT",
            false => "GET",
        };
        Some(method.to_owned())
    }
}

impl ForgeRequest<'_> {
    /// The command, with the numbers and names that the path has.
    fn command(&self, command: &str, parts: &[&str], names: &[&str], is_certain: bool) -> NamedCommand {
        let word = |text: &str, literal: bool| Word { text: text.to_owned(), literal };
        let last = command.split(' ').count() - 1;
        let own = command.split(' ').enumerate().map(|(at, text)| word(text, is_certain || at < last));
        let place = match parts {
            ["repos", owner, name, ..] if command.starts_with(self.client) => Some(format!("{owner}/{name}")),
            _ => None,
        };
        let place = place.map(|place| [word("-R", true), word(&place, !is_changed(&place))]);
        let names = names.iter().map(|name| word(name, true));
        NamedCommand { words: own.chain(names).chain(place.into_iter().flatten()).collect(), form: None }
    }

    /// Any command of the client.
    fn any(&self) -> NamedCommand {
        let words = [(self.client, true), (self.path, false)];
        NamedCommand {
            words: words.map(|(text, literal)| Word { text: text.to_owned(), literal }).to_vec(),
            form: None,
        }
    }
}

/// Whether the shell changes a part of a path.
fn is_changed(part: &str) -> bool {
    part.contains(['$', '`'])
}

/// The names in the parts if they end as a row says, and whether that is certain.
fn ends_with<'p>(parts: &[&'p str], tail: &str) -> Option<(Vec<&'p str>, bool)> {
    let (tail, more) = tail.strip_suffix("/**").map_or((tail, false), |tail| (tail, true));
    let wanted: Vec<&str> = tail.split('/').collect();
    let mut starts = (0..parts.len()).filter(|at| match more {
        true => at + wanted.len() < parts.len(),
        false => at + wanted.len() == parts.len(),
    });
    starts.find_map(|at| {
        let pairs = || wanted.iter().zip(&parts[at..]);
        let fits = pairs().all(|(wanted, part)| *wanted == "*" || wanted == part || is_changed(part));
        let is_certain = pairs().all(|(wanted, part)| *wanted == "*" || wanted == part);
        let has_word = pairs().any(|(wanted, part)| wanted == part);
        let names = pairs().filter(|(wanted, _)| **wanted == "*").map(|(_, part)| *part);
        (fits && has_word).then(|| (names.collect(), is_certain))
    })
}
