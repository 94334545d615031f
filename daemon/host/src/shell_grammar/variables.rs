//! Variables that may be set without an approval of their own.

use toold_proto::cut;

use super::arg::Arg;
use super::check;
use super::programs::DECLARING;
use crate::environment::Environment;

/// Programs read these variables, but with a plain value (see [`is_plain`]) they affect only how programs print, how much
/// they try, or which of their own modes they use.
const HARMLESS: &[&str] = &[
    "APP_ENV",
    "ASPNETCORE_ENVIRONMENT",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TERM_COLOR",
    "CARGO_TERM_PROGRESS_WHEN",
    "CARGO_TERM_QUIET",
    "CARGO_TERM_VERBOSE",
    "CGO_ENABLED",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DEBIAN_FRONTEND",
    "DEBUG",
    "DJANGO_DEBUG",
    "DOTNET_CLI_TELEMETRY_OPTOUT",
    "DOTNET_ENVIRONMENT",
    "DOTNET_NOLOGO",
    "FLASK_DEBUG",
    "FLASK_ENV",
    "FORCE_COLOR",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "GO111MODULE",
    "GOARCH",
    "GOOS",
    "HUSKY",
    "INSTA_UPDATE",
    "LINES",
    "LOG_LEVEL",
    "MIX_ENV",
    "NEXT_TELEMETRY_DISABLED",
    "NODE_ENV",
    "NODE_NO_WARNINGS",
    "NO_COLOR",
    "NO_UPDATE_NOTIFIER",
    "NPM_CONFIG_AUDIT",
    "NPM_CONFIG_FUND",
    "NPM_CONFIG_LOGLEVEL",
    "PORT",
    "PROPTEST_CASES",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONFAULTHANDLER",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "RACK_ENV",
    "RAILS_ENV",
    "RUST_BACKTRACE",
    "RUST_LIB_BACKTRACE",
    "RUST_LOG",
    "RUST_MIN_STACK",
    "RUST_TEST_THREADS",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "UPDATE_SNAPSHOTS",
    "WATCHMAN_OFF",
];

/// Values of variables that makefiles put in front of a command.
const SWITCHES: &[&str] = &["", "0", "1", "2", "3", "true", "false", "yes", "no", "on", "off"];

/// Harmless with these values: another may name a program.
const WITH_VALUE: &[(&str, &[&str])] = &[
    ("V", SWITCHES),
    ("VERBOSE", SWITCHES),
    ("QUIET", SWITCHES),
    ("PAGER", &["cat", ""]),
    ("GIT_PAGER", &["cat", ""]),
    ("MANPAGER", &["cat", ""]),
    ("EDITOR", &["true", ":", "cat"]),
    ("VISUAL", &["true", ":", "cat"]),
    ("GIT_EDITOR", &["true", ":", "cat"]),
    ("GIT_SEQUENCE_EDITOR", &["true", ":", "cat"]),
];

/// Flags of C compilers, in the forms of [`WITH_FORM`].
const COMPILER_FLAGS: &[&str] = &[
    "-O*",
    "-g",
    "-g0",
    "-g3",
    "-ggdb",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wpedantic",
    "-pedantic",
    "-std=*",
    "-D*",
    "-fPIC",
];

/// Harmless if each word of the value has one of these forms; `*` stands for letters, digits and `_-=.,:/+%`.
const WITH_FORM: &[(&str, &[&str])] = &[
    (
        "RUSTFLAGS",
        &["-D", "-W", "-A", "warnings", "unused", "unused_*", "dead_code", "clippy::*", "-Dwarnings", "-Awarnings"],
    ),
    ("RUSTDOCFLAGS", &["-D", "-W", "-A", "warnings", "rustdoc::*", "-Dwarnings"]),
    ("CFLAGS", COMPILER_FLAGS),
    ("CXXFLAGS", COMPILER_FLAGS),
    ("CC", &["cc", "gcc", "clang"]),
    ("CXX", &["c++", "g++", "clang++"]),
    ("GOFLAGS", &["-mod=*", "-v", "-race", "-count=*"]),
    ("MAVEN_OPTS", &["-Xmx*", "-Xms*"]),
    ("JAVA_OPTS", &["-Xmx*", "-Xms*"]),
    ("GRADLE_OPTS", &["-Xmx*", "-Xms*"]),
    ("NODE_OPTIONS", &["--max-old-space-size=*", "--no-warnings"]),
    ("MALLOC_ARENA_MAX", &["*"]),
    ("LANG", &["*"]),
    ("LANGUAGE", &["*"]),
    ("TZ", &["*"]),
];

/// Whether a list of folders names only folders below the one that the command runs in.
fn is_below(value: &str) -> bool {
    value.split(':').all(|folder| {
        !folder.is_empty() && !folder.starts_with(['/', '~', '-']) && !folder.split('/').any(|part| part == "..")
    })
}

/// Whether no program takes the value for more than one word of text: `make` expands a variable of the environment as it
/// does its own, and its recipes hand it to a shell.
fn is_plain(value: &str) -> bool {
    !value.starts_with('-') && value.chars().all(|c| c.is_ascii_alphanumeric() || "_-=.,:/+%@*".contains(c))
}

fn has_form(word: &str, form: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-=.,:/+%".contains(c);
    // The name of a time zone or a language may also be a file's.
    let may_be_file = word.starts_with(['/', ':']) || word.contains("..");
    match form.strip_suffix('*') {
        Some("") => !may_be_file && word.chars().all(plain),
        Some(start) => word.strip_prefix(start).is_some_and(|rest| rest.chars().all(plain)),
        None => word == form,
    }
}

/// Variables that the shell itself reads.
const OF_THE_SHELL: &[&str] = &[
    "IFS",
    "PATH",
    "CDPATH",
    "ENV",
    "HOME",
    "PWD",
    "OLDPWD",
    "GLOBIGNORE",
    "GLOBSORT",
    "POSIXLY_CORRECT",
    "FUNCNEST",
    "TMOUT",
    "TMPDIR",
    "SHELLOPTS",
    "EXECIGNORE",
    "FIGNORE",
    "HISTFILE",
    "PROMPT_COMMAND",
    "PS0",
    "PS1",
    "PS2",
    "PS3",
    "PS4",
    "OPTIND",
    "OPTARG",
    "OPTERR",
    "TEXTDOMAIN",
    "FUNCNAME",
    "PIPESTATUS",
    "DIRSTACK",
    "GROUPS",
    "_",
    "TEXTDOMAINDIR",
    "INPUTRC",
    "COPROC",
    "MAPFILE",
    "REPLY",
    "SHELL",
];

/// Whether the variable changes nothing that programs do. `value` is `None` if it is unknown.
pub(super) fn is_harmless_for_programs(name: &str, value: Option<&str>) -> bool {
    let value_is = |is: &dyn Fn(&str) -> bool| value.is_some_and(is);
    let forms = WITH_FORM.iter().find(|(known, _)| *known == name).map(|(_, forms)| *forms);
    HARMLESS.contains(&name) && value_is(&is_plain)
        || forms.is_some_and(|forms| {
            value_is(&|value| value.split_whitespace().all(|word| forms.iter().any(|form| has_form(word, form))))
        })
        || name == "DJANGO_SETTINGS_MODULE"
            && value_is(&|value| value.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c)))
        // Only root can have put files there.
        || name == "JAVA_HOME" && value_is(&|value| value.starts_with("/usr/lib/jvm/") && !value.contains(".."))
        || name.starts_with("LC_") && value_is(&|value| is_plain(value) && !value.contains('/'))
        || WITH_VALUE.iter().any(|(known, values)| *known == name && value.is_some_and(|value| values.contains(&value)))
}

/// Whether the variable changes nothing that a program does whose command allows it to run the project's own code.
pub(super) fn is_harmless_for_tests(name: &str, value: Option<&str>) -> bool {
    is_harmless_for_programs(name, value) || name == "PYTHONPATH" && value.is_some_and(is_below)
}

/// The shell evaluates values that are assigned to these.
const INTEGERS: &[&str] = &[
    "RANDOM",
    "SRANDOM",
    "SECONDS",
    "LINENO",
    "HISTCMD",
    "OPTIND",
    "BASHPID",
    "EPOCHSECONDS",
    "EPOCHREALTIME",
    "UID",
    "EUID",
    "PPID",
    "BASH_SUBSHELL",
    "BASH_ARGV0",
];

/// Variables that make the next program run other code.
const LOADERS: &[&str] = &["BASH_ENV", "ENV", "PS4", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS"];

/// Assigning to these is an error that ends the line.
pub(super) fn is_read_only(name: &str) -> bool {
    matches!(name, "UID" | "EUID" | "PPID" | "BASHOPTS" | "SHELLOPTS" | "BASH_VERSINFO")
}

pub(super) fn is_integer(name: &str) -> bool {
    INTEGERS.contains(&name)
}

/// Whether the variable is special to the shell, so that it may not contain the assigned value.
pub(super) fn is_special(name: &str) -> bool {
    OF_THE_SHELL.contains(&name)
        || INTEGERS.contains(&name)
        || name.starts_with("BASH")
        || name.starts_with("LC_")
        || name == "LANG"
}

/// Whether setting it makes any program start with the next one.
pub(super) fn loads_code(name: &str) -> bool {
    // Bash defines a function by such a variable: `BASH_FUNC_ls%%`.
    let starts = ["LD_", "DYLD_", "BASH_FUNC_"];
    LOADERS.contains(&name) || starts.iter().any(|start| name.starts_with(start))
}

/// Variables that name files or folders of settings or code, which may name any program.
const SETTINGS: &[&str] = &[
    "GIT_CONFIG",
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_DIR",
    "GIT_EXEC_PATH",
    "RIPGREP_CONFIG_PATH",
    "KUBECONFIG",
    "AWS_CONFIG_FILE",
    "DOCKER_CONFIG",
    "WGETRC",
    "APT_CONFIG",
    "PSQLRC",
    "MAKEFILES",
    "CARGO_HOME",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "PERL5LIB",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "RUBYLIB",
    "NODE_PATH",
    "HGRCPATH",
    "PIP_CONFIG_FILE",
    "ANSIBLE_CONFIG",
    "CURL_HOME",
    "TF_CLI_CONFIG_FILE",
    "npm_config_userconfig",
    "npm_config_globalconfig",
    "NPM_CONFIG_USERCONFIG",
    "NPM_CONFIG_GLOBALCONFIG",
];

/// Whether `NAME=value`, as it was written, makes programs read settings that a tool may have written. Those in hidden
/// folders of the home folder are the person's.
pub(super) fn names_settings(name: &str, target: &str) -> bool {
    let value = target.split_once('=').map_or("", |(_, value)| value);
    let is_own = ["~/.", "$HOME/.", "\"$HOME/.", "/dev/null"].iter().any(|start| value.starts_with(start));
    // An alias stands for any operation of its program.
    name.starts_with("CARGO_ALIAS_") || SETTINGS.contains(&name) && !value.is_empty() && !is_own
}

/// What the parts of a variable's name say if it carries code, names a program or settings, or changes which program runs.
const OF_CODE: &[&str] = &[
    "PATH",
    "OPTIONS",
    "OPTION",
    "OPTS",
    "FLAGS",
    "FLAG",
    "ARGS",
    "WRAPPER",
    "LINKER",
    "RUNNER",
    "LOADER",
    "PRELOAD",
    "COMMAND",
    "CMD",
    "PROGRAM",
    "ASKPASS",
    "PAGER",
    "EDITOR",
    "VISUAL",
    "BROWSER",
    "SHELL",
    "CONFIG",
    "CONF",
    "SETTINGS",
    "RC",
    "HOME",
    "EXEC",
    "HOOK",
    "HOOKS",
    "PLUGIN",
    "PLUGINS",
    "STARTUP",
    "BIN",
    "CC",
    "CXX",
    "LD",
    "AR",
    "AS",
    "RUSTC",
    "RUSTDOC",
    "PYTHON",
    "RUBY",
    "PERL",
    "NODE",
    "JAVA",
    "PROMPT",
    "ENV",
    "INIT",
    "LIB",
    "LIBRARY",
    "RSH",
    "SSH",
    "PROXY",
    "SCRIPT",
    "EDIT",
    "LESS",
    "LESSOPEN",
    "LESSCLOSE",
    "ALIAS",
    "TOOLCHAIN",
    "COMPILER",
    "MODULE",
    "MODULES",
    "PS4",
    "IFS",
];

/// Programs that read any of their options from a variable whose name begins so.
const OPTIONS_OF: &[&str] = &[
    "GIT_",
    "LD_",
    "DYLD_",
    "BASH",
    "ZSH",
    "NPM_CONFIG_",
    "PNPM_",
    "YARN_",
    "PIP_",
    "UV_",
    "POETRY_",
    "PERL5",
    "RUBYOPT",
    "PYTHON",
    "NODE_",
    "MAKE",
    "GNUMAKE",
    "CMAKE_",
    "DOTNET_",
    "MSBUILD",
    "COMPlus_",
    "CORECLR_",
    "KUBE",
    "DOCKER_",
    "AWS_",
    "SSH_",
    "SUDO_",
    "XDG_",
    "GCONV",
    "JDK_",
    "_JAVA",
    "JAVA_",
    "MAVEN",
    "GRADLE",
    "TAR_",
    "RSYNC_",
    "GPG",
    "TMUX",
    "TERM",
    "HIST",
    "READLINE",
    "COMP_",
    "LC_",
    "MALLOC_",
    "GLIBC_",
    "BUNDLE_",
    "GEM_",
    "GO",
    "RUST_",
    "RUSTUP_",
    "ANSIBLE_",
    "TF_",
    "VIM",
    "NVIM",
    "EMACS",
    "PG",
    "MYSQL_",
    "SQLITE_",
];

/// Whether programs may take the value for code, or for the name of a program, of code or of settings: what needs an approval because
/// of them. Other variables have no effect of their own.
pub(super) fn carries_code(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    is_special(name)
        || loads_code(name)
        || SETTINGS.contains(&name)
        || names_written_file(name)
        || names_read_folder(name)
        || OPTIONS_OF.iter().any(|start| upper.starts_with(&start.to_ascii_uppercase()))
        || upper
            .split('_')
            .any(|part| OF_CODE.iter().any(|of_code| part == *of_code || of_code.len() > 3 && part.ends_with(of_code)))
}

/// Whether the words declare variables that carry no code: `export A=1 B`.
pub(super) fn only_sets_plain_ones(words: &[Arg]) -> bool {
    let Some((name, variables)) = words.split_first() else { return false };
    let is_plain = |word: &Arg| {
        let name = word.start().split('=').next().unwrap_or_default().trim_end_matches('+');
        word.start() == "-x" || check::is_name(name) && !carries_code(name)
    };
    DECLARING.iter().any(|declaring| name.is(declaring)) && variables.iter().all(is_plain)
}

/// Whether programs that only read may run its value.
pub(super) fn names_program(name: &str) -> bool {
    let parts = ["GIT_", "LESS", "PAGER", "EDITOR", "VISUAL", "BROWSER", "SHELL", "ENV", "PROMPT", "PS4"];
    let endings = ["COMMAND", "CMD", "PROGRAM", "ASKPASS"];
    loads_code(name)
        || parts.iter().any(|part| name.contains(part))
        || endings.iter().any(|ending| name.ends_with(ending))
}

/// The text of an assignment in which rules that deny look for their words: in a value of options, also the value that
/// stands directly behind a letter (`TAR_OPTIONS=-Ievil`).
pub(super) fn script_of(name: &str, assignment: &str) -> String {
    let is_options = ["OPTIONS", "FLAGS", "OPTS", "LESS"].iter().any(|ending| name.ends_with(ending));
    let words = assignment.split(|c: char| c.is_whitespace() || "='\"".contains(c)).filter(|_| is_options);
    let short = words.filter(|word| word.starts_with('-') && !word.starts_with("--"));
    let attached = short.map(|word| cut::after_first(cut::after_first(word))).filter(|value| !value.is_empty());
    std::iter::once(assignment).chain(attached).collect::<Vec<_>>().join("\n")
}

/// Variables whose value is a file that programs write.
const WRITTEN_FILES: &[&str] = &[
    "COVERAGE_FILE",
    "GIT_INDEX_FILE",
    "HISTFILE",
    "LD_DEBUG_OUTPUT",
    "LESSHISTFILE",
    "LLVM_PROFILE_FILE",
    "MALLOC_TRACE",
    "MYSQL_HISTFILE",
    "NODE_REPL_HISTORY",
    "PIP_LOG",
    "PSQL_HISTORY",
    "PYTHON_HISTORY",
    "SQLITE_HISTORY",
    "SSLKEYLOGFILE",
];

/// Variables whose value is a repository of Git, or a part of one, that is read.
pub(super) fn names_read_folder(name: &str) -> bool {
    let read =
        ["GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"];
    read.contains(&name)
}

pub(super) fn names_written_file(name: &str) -> bool {
    WRITTEN_FILES.contains(&name) || name.starts_with("GIT_TRACE")
}

/// Whether a shell variable affects neither the shell nor the programs that it starts: it is not exported and not
/// special.
pub(super) fn is_the_shells_own(name: &str, environment: &Environment) -> bool {
    let known = ["BASH", "LD_", "DYLD_", "LC_", "HIST", "READLINE", "COMP"];
    environment.get(name).is_none()
        && !is_special(name)
        && !known.iter().any(|start| name.starts_with(start))
        && name != "LANG"
}
