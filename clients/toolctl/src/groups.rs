//! The groups in which subcommands are shown.

/// Subcommands that others are shown in. All of them also work without their group, where `--help` does not list them.
pub(crate) const GROUPS: [(&str, &[&str]); 8] = [
    ("tools", &["list", "schema", "prompt", "parse", "do"]),
    ("permissions", &["workspaces", "level"]),
    ("audit", &["changes", "events", "watch"]),
    ("agents", &["sessions", "shells", "hook", "confine"]),
    ("plugins", &["skills", "memories"]),
    (
        "daemon",
        &[
            "status",
            "doctor",
            "start",
            "restart",
            "stop",
            "pause",
            "resume",
            "logs",
            "connect",
            "upgrade",
            "completions",
            "man",
        ],
    ),
    ("fleet", &["remotes"]),
    ("page", &["notify"]),
];

/// The words of a subcommand without its group, as `daemon stop` is `stop`.
pub(crate) fn without_group(path: &str) -> &str {
    let rest = path.split_once(' ').and_then(|(first, rest)| {
        let (_, members) = GROUPS.iter().find(|(group, _)| *group == first)?;
        members.contains(&rest.split(' ').next()?).then_some(rest)
    });
    rest.unwrap_or(path)
}
