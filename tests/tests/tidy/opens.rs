//! Paths come from models, plugins, clients and repositories, and `toold_host::files` is the only checked way to them.
//! Every other place in the daemon that opens, reads, lists, makes, renames or removes something by its path is counted
//! here, with the reason why nobody else chooses that path.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// A file below `daemon`, its number of such places, and the reason.
const PLACES: &[(&str, usize, &str)] = &[
    // The checked way itself.
    ("host/src/files.rs", 5, "the checked way: resolves, and opens with links refused"),
    ("host/src/files/entry.rs", 9, "the checked way: changes through the opened folder"),
    ("host/src/replace.rs", 12, "the checked way: writes files whole, through the opened folder"),
    ("host/src/tree.rs", 1, "walks for names below a root that is judged; reads no file"),
    ("host/src/replace/record.rs", 6, "the daemon's own folder of temporary names"),
    // Folders that the daemon scans by itself; it opens the files in them through `files`.
    ("builtins/src/agents.rs", 1, "names in the folders of agents"),
    ("builtins/src/checkouts.rs", 1, "names in folders of a session's repository that Git would remove"),
    ("builtins/src/agent_tool/agent_folders.rs", 1, "names in the folders of agents' skills, commands and sub-agents"),
    ("builtins/src/memories.rs", 6, "names in the folders of memories; removes the daemon's own folders of sessions"),
    ("builtins/src/skill.rs", 1, "names beside a skill that was read"),
    ("builtins/src/skills.rs", 1, "names in the folders of skills"),
    ("host/src/launcher/mounts/covers.rs", 5, "covers of secrets, on a file system of its own that nobody else sees"),
    ("host/src/launcher/mounts/layers.rs", 3, "folders of layers, on a file system of its own, and in those layers"),
    ("host/src/launcher/stand_in.rs", 6, "new files and folders in a session's repository, and only these"),
    ("host/src/sandbox.rs", 1, "names in folders, to hide those that are secret"),
    (
        "host/src/sandbox/existing.rs",
        1,
        "names in folders of the system and of the home folder, to show those that are there",
    ),
    (
        "host/src/sandbox/floors.rs",
        5,
        "names at the top of a session's folders and in linked ones, to protect those that run code later; links in the home \
         folder; new files in /tmp",
    ),
    (
        "host/src/sandbox/control_watch.rs",
        5,
        "renames what a command made in a session's folders, as the walk found it, and takes its digest",
    ),
    ("host/src/sandbox/git_control.rs", 4, "names in repositories of a session's folders, to protect what Git runs"),
    (
        "host/src/sandbox/home_settings.rs",
        1,
        "names in folders of settings in the home folder, to hide passwords and tokens in them",
    ),
    ("host/src/sandbox/other_names.rs", 2, "names in folders that a command may read, to find links to secrets"),
    ("host/src/sandbox/root_secrets.rs", 1, "names in /etc and /var/lib, to hide those that only root reads"),
    ("host/src/sandbox/secret_index.rs", 1, "names in a session's folders, to hide those that are secret"),
    ("host/src/sandbox/surroundings.rs", 3, "names in folders, to show those that are no secrets, and links"),
    ("host/src/shell_grammar/expand.rs", 1, "names in folders that the caller may read, to see what wildcards find"),
    ("host/src/shell_grammar/names.rs", 1, "names in folders that the caller may read, to see what wildcards find"),
    (
        "host/src/shell_grammar/programs/repository/branches.rs",
        1,
        "names of the branches of a repository that Git finds",
    ),
    (
        "host/src/shell_grammar/programs/repository/contents.rs",
        2,
        "names of the objects of a repository that Git finds",
    ),
    (
        "host/src/shell_grammar/programs/repository/history.rs",
        1,
        "names of the branches and tags of a repository that Git finds",
    ),
    ("host/src/shell_grammar/programs/repository/objects.rs", 1, "names of the objects of a repository that Git finds"),
    ("host/src/shell_grammar/programs/repository/nested.rs", 1, "names of the hooks of a repository that Git finds"),
    ("host/src/stamps.rs", 1, "compares a file that a call read with what it was; nothing of it is given out"),
    // Plugins.
    (
        "lua/src/reload/plugin_tests.rs",
        3,
        "the plugin that its author names, and a folder of the daemon's own to test it in",
    ),
    ("lua/src/reload/standalone.rs", 1, "names beside the script that its author names"),
    ("lua/src/reload/test_functions.rs", 3, "files of a test in the folder that was made for it"),
    ("toold/src/config/plugin_command.rs", 1, "the file that a plugin's author names for the coverage of its tests"),
    ("toold/src/config/trust.rs", 1, "names in a project's folder of plugins, for the person who trusts them"),
    // Named by the user's own configuration; projects may not, as `projects_name_no_key_and_no_token` checks.
    ("toold/src/config/warnings.rs", 1, "names of plugins in the folders that the user's configuration names"),
    ("toold/src/config/tools.rs", 1, "names of tools in the folders of plugins that the user's configuration names"),
    // The daemon's own folders.
    ("builtins/src/journal.rs", 11, "the daemon's own folder of changes"),
    ("builtins/src/journal/begun.rs", 5, "the daemon's own folder of changes"),
    ("builtins/src/command_changes/index_log.rs", 6, "the daemon's own folder of changes"),
    ("builtins/src/journal/made.rs", 1, "names in a folder that a line removes, to compare them with the records"),
    ("builtins/src/journal/contents.rs", 10, "the daemon's own folder of contents"),
    ("builtins/src/journal/contents/packs.rs", 3, "the daemon's own folder of contents"),
    ("fleet/src/grant_book.rs", 1, "the daemon's own file of grants"),
    ("fleet/src/serve.rs", 1, "the folder of the fleet in the daemon's own state"),
    ("fleet/src/keys.rs", 2, "the key file that the user's configuration or command line names"),
    ("host/src/output_buffer.rs", 3, "the daemon's own spool"),
    ("lua/src/plugin/kept_versions.rs", 4, "the daemon's own folder of versions of plugins"),
    ("lua/src/plugin/registration_cache.rs", 4, "the daemon's own folder of registrations"),
    ("store/src/journal.rs", 1, "the daemon's own journal of calls, beside the database"),
    ("store/src/journal/left.rs", 8, "the daemon's own journals of calls, beside the database"),
    ("store/src/opening.rs", 3, "the daemon's own database"),
    ("store/src/refusals.rs", 2, "the daemon's own file of refusals, beside the database"),
    ("toold/src/config/bundled.rs", 5, "the daemon's own folder of the plugins that it brings"),
    ("toold/src/lifecycle/logging.rs", 2, "the daemon's own log, and its stderr"),
    ("toold/src/main.rs", 1, "the daemon's own folder of state"),
    ("toold/src/config/kept_state.rs", 1, "the daemon's own files of small states"),
    ("toold/src/config/paths.rs", 3, "the daemon's own folders, and the names in that of its socket"),
    (
        "toold/src/config.rs",
        1,
        "where a link in place of a configuration file leads, for the message; nothing is read there",
    ),
    ("toold/src/config/remotes.rs", 1, "the daemon's own list of remote daemons"),
    ("toold/src/lifecycle/spool.rs", 5, "the daemon's own spool"),
    ("toold/src/transport/http/tokens.rs", 1, "the daemon's own tokens"),
    ("toold/src/transport/unix.rs", 3, "the daemon's own socket"),
    ("toold/src/transport/unix/locks.rs", 1, "the daemon's own locks"),
    ("toold/src/transport/unix/records.rs", 1, "the daemon's own records of its place"),
    // System files.
    ("host/build.rs", 1, "the build's own folder"),
    ("toold/build.rs", 6, "the build's own folder, and the built page in the sources"),
    ("host/src/descendants.rs", 18, "/proc"),
    ("host/src/file_systems/answering.rs", 1, "/proc"),
    ("host/src/tool_mark.rs", 1, "/proc"),
    ("host/src/launcher/installed.rs", 9, "the launcher and its profile where root installs them"),
    ("host/src/launcher/kernel.rs", 4, "names at the root; /proc"),
    ("host/src/launcher/mounts.rs", 2, "/proc"),
    ("host/src/launcher/network.rs", 2, "/proc"),
    ("host/src/sandbox/sockets.rs", 5, "/proc; a path that a program gives, without access to what is there"),
    ("toold/src/peer.rs", 1, "/proc"),
    ("toold/src/peer/agent_processes.rs", 7, "/proc"),
    ("toold/src/peer/ancestry.rs", 2, "/proc"),
    ("toold/src/lifecycle/process_statistics.rs", 5, "/proc"),
    ("toold/src/lifecycle/restart/above.rs", 1, "/proc"),
    ("toold/src/peer/socket_holders.rs", 6, "/proc"),
    ("toold/src/transport/http/page/local_peer.rs", 1, "/proc"),
];

/// Functions of `std`, `tokio`, `rustix` and `libc` that take a path and go there.
const FUNCTIONS: &str = "read|read_to_string|read_dir|read_link|readlink|readlinkat|write|copy|rename|renameat|\
    renameat_with|remove_file|remove_dir|remove_dir_all|create_dir|create_dir_all|hard_link|soft_link|symlink|symlinkat|\
    link|linkat|set_permissions|chmod|chmodat|chown|chownat|open|openat|openat2|mkdir|mkdirat|mkfifoat|mknodat|unlink|\
    unlinkat|rmdir|truncate|creat";

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() {
            if name != "tests" && name != "benches" {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// The lines of a source that access a path directly. Its unit tests, at the end, do not count.
fn places(source: &str) -> Vec<String> {
    let tests = Regex::new(r"(?m)^#\[cfg\((?:test|all\(test, .*\))\)\]\nmod tests \{").unwrap();
    let code = tests.find(source).map_or(source, |tests| &source[..tests.start()]);
    let called = Regex::new(&format!(
        r"\b(?:fs|libc)::(?:{FUNCTIONS})\b|\b(?:File|OpenOptions|DirBuilder|WalkBuilder)::(?:open|create|create_new|create_buffered|open_buffered|options|new)\b|\.read_dir\(\)|\.read_link\(\)"
    ))
    .unwrap();
    // An imported function is called by its bare name, and an imported module by another one.
    let import = Regex::new(r"(?ms)^\s*(?:pub(?:\([a-z]+\))? )?use [^;]*;").unwrap();
    let imported = Regex::new(&format!(r"(?s)\bfs::.*\b(?:{FUNCTIONS})\b|\bfs as\b|\bfs::\*")).unwrap();
    let lines: Vec<&str> = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let code = lines.join("\n");
    let imports = import.find_iter(&code).map(|import| import.as_str().trim()).filter(|text| imported.is_match(text));
    let mut found: Vec<String> = imports.map(str::to_owned).collect();
    for line in import.replace_all(&code, "").lines() {
        found.extend(called.find_iter(line).map(|_| line.trim().to_owned()));
    }
    found
}

#[test]
fn every_place_that_goes_to_a_path_is_known() {
    let daemon = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("daemon");
    let mut files = Vec::new();
    sources(&daemon, &mut files);
    assert!(files.len() > 200, "{} sources were found", files.len());
    let mut known: BTreeMap<&str, usize> = PLACES.iter().map(|(file, count, _)| (*file, *count)).collect();
    assert_eq!(known.len(), PLACES.len(), "a file is listed twice");
    let mut wrong = Vec::new();
    for file in files {
        let name = file.strip_prefix(&daemon).unwrap().to_str().unwrap().to_owned();
        let found = places(&fs::read_to_string(&file).unwrap());
        let expected = known.remove(name.as_str()).unwrap_or(0);
        if found.len() != expected {
            wrong.push(format!(
                "daemon/{name}: {} places, {expected} are listed:\n  {}",
                found.len(),
                found.join("\n  ")
            ));
        }
    }
    wrong.extend(known.keys().map(|name| format!("daemon/{name} is listed, and has no such place")));
    assert!(
        wrong.is_empty(),
        "Use toold_host::files for a path that a model, a plugin, a client or a repository can choose. For a path that \
         nobody else chooses, change the list in tests/tests/tidy/opens.rs, with the reason.\n{}",
        wrong.join("\n")
    );
}

#[test]
fn nothing_is_read_to_its_end_without_a_limit() {
    let daemon = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("daemon");
    let mut files = Vec::new();
    sources(&daemon, &mut files);
    // The functions of `std::fs` are found above, with their reasons.
    let reads = Regex::new(r"(^|[^:])\bread_to_(end|string)\(|io::Read::read_to_(end|string)\(").unwrap();
    let mut unbounded = Vec::new();
    let mut seen = 0;
    for file in files {
        let source = fs::read_to_string(&file).unwrap();
        let tests = source.find("#[cfg(test)]\nmod tests {").unwrap_or(source.len());
        for line in source[..tests].lines().filter(|line| reads.is_match(line)) {
            seen += 1;
            if !line.contains("take(") {
                unbounded.push(format!("{}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(seen > 5, "{seen} places were found");
    assert!(
        unbounded.is_empty(),
        "Use toold_host::files::read_whole or its like, or take(LIMIT).\n{}",
        unbounded.join("\n")
    );
}

#[test]
fn imports_that_bypass_the_path_checks_are_found() {
    for (source, count) in [
        ("let file = File::open(path)?;", 1),
        ("std::fs::read(a)?; tokio::fs::write(b, c).await?;", 2),
        ("    .map(fs::read_to_string)", 1),
        ("use rustix::fs::{Mode, OFlags, open, statat};", 1),
        ("use rustix::fs::{\n    Mode,\n    openat,\n};", 1),
        ("    use std::fs as disk;", 1),
        ("OpenOptions::new().read(true).open(path)", 1),
        ("path.read_dir()?", 1),
        ("files::open(&path)?; files::write(&path, b\"\")?;", 0),
        ("// as fs::read(path) does", 0),
        ("use std::fs::{File, Metadata};", 0),
        ("#[cfg(test)]\nmod tests {\n    fs::read(path);\n}", 0),
        ("#[cfg(test)]\nfn helper() {}\nfs::read(path);", 1),
    ] {
        assert_eq!(places(source).len(), count, "{source}");
    }
}
