//! What is said about a command that its floor stopped: by what, and how a person lets it run.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use toold_engine::cx::Cx;
use toold_engine::grant_commands::way_to_allow;
use toold_engine::need::{Need, Word};
use toold_host::sandbox::{Confinement, ProgramStarter, sockets_refused};
use toold_proto::tool::Category;

/// The words of the system and of programs for what a floor refuses.
const REFUSALS: [&str; 13] = [
    "Permission denied",
    "permission denied",
    "insufficient permissions",
    "Operation not permitted",
    "operation not permitted",
    "Read-only file system",
    "Device or resource busy",
    "EACCES",
    "EPERM",
    "EROFS",
    "Could not resolve host",
    "Temporary failure in name resolution",
    "Network is unreachable",
];
/// The same where there is no network at all. Elsewhere a server says them.
const NO_NETWORK: [&str; 8] = [
    "Connection refused",
    "connection refused",
    "ECONNREFUSED",
    "ENETUNREACH",
    "EAI_AGAIN",
    // curl, before and since version 8.11.
    "Couldn't connect to server",
    "Could not connect to server",
    "Name or service not known",
];

/// Programs that leave out, without a word, the files and sockets of other programs if they may not see them: with the option
/// that makes them look, as a letter and as a word, if they do not always.
const BLIND: [(&str, &[char], &[&str]); 4] = [
    ("fuser", &[], &[]),
    ("lsof", &[], &[]),
    ("netstat", &['p'], &["--program", "--programs"]),
    ("ss", &['p'], &["--processes"]),
];
/// Programs that show users and groups, and how those show that a user namespace does not have.
const OWNERS: [&str; 13] =
    ["eza", "exa", "find", "fd", "groups", "id", "ls", "lsof", "ps", "pstree", "stat", "top", "tree"];
/// Before a file that commands of Git leave out.
const EXCLUDE: &str = ":(top,exclude)";
const UNKNOWN_OWNERS: [&str; 3] = ["nobody", "nogroup", "65534"];

/// Differences of a command's output from that without its floor, although nothing failed, in words for people and models.
pub(crate) fn differences(confinement: &Confinement, cx: &Cx, needs: &[Need], text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let looks = |need: &&Need| need.words().is_some_and(|words| blind_program(words).is_some());
    if let Some(need) = needs.iter().find(looks) {
        let program = need.words().and_then(blind_program).unwrap_or_default();
        let way = way_to_allow(cx, &cx.chain, need).map(|way| format!(". {way}")).unwrap_or_default();
        all.push(format!(
            "{program} does not see in this sandbox which files and sockets other programs have open: what it leaves out may be \
             there{way}"
        ));
    }
    let shows_owners = |need: &Need| need.words().and_then(program).is_some_and(|program| OWNERS.contains(&program));
    let names_unknown = || text.split(|c: char| !c.is_alphanumeric()).any(|word| UNKNOWN_OWNERS.contains(&word));
    if confinement.has_unknown_owners() && needs.iter().any(shows_owners) && names_unknown() {
        all.push("nobody and nogroup stand for all users and groups but yours in this sandbox".to_owned());
    }
    all
}

fn program(words: &[Word]) -> Option<&str> {
    words.first()?.text.rsplit('/').next()
}

/// The program, if it would look at other programs.
fn blind_program(words: &[Word]) -> Option<&str> {
    let (program, options) = (program(words)?, words.get(1..)?);
    let (_, letters, long) = BLIND.iter().find(|(name, ..)| *name == program)?;
    let is_short = |word: &str| {
        word.strip_prefix('-').filter(|rest| !rest.starts_with('-')).is_some_and(|rest| rest.contains(*letters))
    };
    let mut options = options.iter().map(|word| word.text.as_str());
    (letters.is_empty() || options.any(|word| is_short(word) || long.contains(&word))).then_some(program)
}

/// Whether the output shows that something was refused. After success only a line that ends with it does: a search may find
/// the words in a text.
pub(crate) fn is_refusal(text: &str, succeeded: bool, has_network: bool) -> bool {
    let of_network = if has_network { &[][..] } else { &NO_NETWORK };
    let mut all = REFUSALS.iter().chain(of_network);
    match succeeded {
        true => text.lines().any(|line| all.clone().any(|words| line.trim_end().ends_with(words))),
        false => all.any(|words| text.contains(words)),
    }
}

/// Which limits it ran in, why, and what a person runs to lift them. `text` is what it wrote.
pub(crate) fn explanation(confinement: &Confinement, cx: &Cx, needs: &[Need], text: &str) -> String {
    let limits = match confinement.only_reads() {
        true => {
            "it changes nothing, has no network, and reads the session's folders, programs and the system, but no secrets outside of Git"
        }
        false if confinement.by_host => {
            "it changes only the session's folders, reaches allowed hosts and the session's own servers, and reads no secrets outside of Git"
        }
        false => "it changes only the session's folders, has no network, and reads no secrets outside of Git",
    };
    // What only reads is confined because of the others of the line.
    let mut commands = needs.iter().filter(|need| need.category() == Category::Shell);
    let acts = commands.clone().find(|need| !need.reads_only());
    let way = acts
        .or_else(|| commands.next())
        .and_then(|need| way_to_allow(cx, &cx.chain, need))
        .map(|way| format!(". {way}"))
        .unwrap_or_default();
    let places = cx.session.places();
    let secret = confinement.exposable.iter().find(|path| is_refused(path, &places, text)).map(|path| {
        let name = path.display().to_string();
        format!(". To let builds read {name}, add expose = [{name:?}] to [sandbox] of your own configuration")
    });
    let secret = secret.unwrap_or_default();
    let kept = [(&confinement.held, "hidden"), (&confinement.protected, "read-only")];
    let stays = kept.into_iter().find_map(|(files, how)| {
        let (place, file) = place_that_stays(files, &cx.cwd, text)?;
        Some(format!("; {place} can't be moved or removed here, since {} is {how}", file.display()))
    });
    let stays = stays.unwrap_or_default();
    let left_out = unread_by_git(text).map(|file| {
        let why = "which is hidden here, and not in its index as it is";
        format!("; Git can't read {file}, {why}: '{EXCLUDE}{file}' leaves it out")
    });
    let left_out = left_out.unwrap_or_default();
    let sockets = sockets_refused(ProgramStarter::Daemon).filter(|_| confinement.own_sockets);
    let sockets = sockets.map(|why| format!("; {why}")).unwrap_or_default();
    format!(
        "{}: {limits}; what it was refused is there, and nothing is missing{stays}{left_out}{sockets}{way}{secret}",
        confinement.words
    )
}

/// The place that a program could not move or remove, as the program names it, and the one of these files that it is or has in it:
/// the next command would find that file in another place.
fn place_that_stays<'a, 't>(files: &'a [PathBuf], cwd: &Path, text: &'t str) -> Option<(&'t str, &'a Path)> {
    let of_line = |line: &'t str| {
        let mut words = line.split(['\'', '"', '`', '\u{2018}', '\u{2019}', ' ', ':']).filter(|word| !word.is_empty());
        words.find_map(|word| Some((word, files.iter().find(|file| file.starts_with(cwd.join(word)))?.as_path())))
    };
    text.lines().filter(|line| line.contains("Device or resource busy")).find_map(of_line)
}

/// The file that Git could not read to compare it with its index, from the top of its repository.
fn unread_by_git(text: &str) -> Option<&str> {
    text.lines().find_map(|line| {
        let (file, why) = line.trim().strip_prefix("error: open(\"")?.split_once("\")")?;
        (why == ": Permission denied").then_some(file)
    })
}

/// Whether a line says that opening this file was refused. `path` is relative to one of the session's folders, `places`; the
/// line may have it as a whole, or relative to a folder on the way.
fn is_refused(path: &Path, places: &[Cow<'_, Path>], text: &str) -> bool {
    let is_it = |word: &str| match Path::new(word).strip_prefix(".").unwrap_or(Path::new(word)) {
        word if word.is_absolute() => places.iter().any(|place| place.join(path) == word),
        word => word.file_name().is_some() && path.ends_with(word),
    };
    let names_it = |line: &str| line.split(|c: char| c.is_whitespace() || "'\"`:,;()[]".contains(c)).any(is_it);
    text.lines().any(|line| (line.contains("Permission denied") || line.contains("EACCES")) && names_it(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_secret_is_found_in_what_a_program_says() {
        let places = ["/other", "/work"].map(|place| Cow::from(Path::new(place)));
        let refused = |text| is_refused(Path::new("app/.env"), &places, text);
        assert!(refused("cat: app/.env: Permission denied\n"));
        assert!(refused("Error: EACCES: permission denied, open '/work/app/.env'\n"));
        assert!(refused("PermissionError: [Errno 13] Permission denied: '.env'\n"));
        assert!(!refused("cat: app/.env.local: Permission denied\n"));
        // Another file of the same name is not opened by the setting.
        assert!(!refused("cat: /home/me/tools/app/.env: Permission denied\n"));
        assert!(!refused("cat: tools/.env: Permission denied\n"));
        assert!(!refused("cat: x: Permission denied\nreads .env\n"));
    }

    #[test]
    fn a_place_that_stays_is_found_in_what_a_program_says() {
        let held = [PathBuf::from("/work/sub/deep/.env")];
        let stays = |text| place_that_stays(&held, Path::new("/work"), text).map(|(place, _)| place);
        assert_eq!(stays("mv: cannot move 'sub' to 'sub2': Device or resource busy\n"), Some("sub"));
        assert_eq!(stays("rm: cannot remove 'sub/deep/.env': Device or resource busy\n"), Some("sub/deep/.env"));
        let said = "Error: EBUSY: Device or resource busy, rename '/work/sub/deep' -> '/work/x'\n";
        assert_eq!(stays(said), Some("/work/sub/deep"));
        assert_eq!(stays("mv: cannot move 'other' to 'sub': Device or resource busy\n"), Some("sub"));
        assert_eq!(stays("mv: cannot move 'other' to 'x': Device or resource busy\n"), None);
        assert_eq!(stays("mv: cannot move 'sub' to 'x': No space left on device\n"), None);
    }

    #[test]
    fn a_file_that_git_cannot_compare_is_found() {
        assert_eq!(
            unread_by_git("error: open(\"a b/.env\"): Permission denied\nfatal: cannot hash a b/.env\n"),
            Some("a b/.env")
        );
        assert_eq!(unread_by_git("error: open(\".env\"): No such file or directory\n"), None);
    }

    #[test]
    fn programs_that_look_at_others_are_known() {
        let program = |line: &str| {
            let word = |text: &str| Word { text: text.to_owned(), literal: true };
            let words: Vec<Word> = line.split(' ').map(word).collect();
            blind_program(&words).map(str::to_owned)
        };
        for line in ["lsof -i :3000", "/usr/bin/lsof .", "fuser 80/tcp", "ss -tlnp", "ss --processes", "netstat -ltp"] {
            assert!(program(line).is_some(), "{line}");
        }
        for line in ["ss -tln", "ss --tcp", "netstat -rn", "ls -p", "netstat --protocol=inet", "echo lsof"] {
            assert_eq!(program(line), None, "{line}");
        }
    }

    #[test]
    fn words_of_the_system_count_and_words_that_a_search_finds_do_not() {
        assert!(is_refusal("cat: .env: Permission denied\n", false, true));
        assert!(is_refusal("cat: .env: Permission denied\nmore\n", true, true));
        assert!(is_refusal("npm error code EACCES\n", false, true));
        assert!(is_refusal("No journal files were opened due to insufficient permissions.\n", false, true));
        assert!(is_refusal("dial unix /var/run/docker.sock: socket: operation not permitted\n", false, true));
        assert!(!is_refusal("src/a.rs: // says \"Permission denied\" here\n", true, true));
        assert!(!is_refusal("no such file\n", false, true));
        // A server refuses where there is a network.
        for said in [
            "curl: (7) Failed to connect to localhost port 8000 after 0 ms: Couldn't connect to server\n",
            "curl: (7) Failed to connect to localhost port 8000 after 0 ms: Could not connect to server\n",
            "wget: connect to localhost: Connection refused\n",
            "Error: connect ECONNREFUSED 127.0.0.1:8000\n",
        ] {
            assert!(is_refusal(said, false, false) && !is_refusal(said, false, true), "{said}");
        }
    }
}
