//! `aws`, `gcloud` and `az`: an operation is the service and its verb (`aws ec2 describe-instances`). Their options
//! behind it, which are thousands, are not described; those before it are in the tables.

use toold_engine::effects::AddedEffect;
use toold_engine::need::{CommandForm, FormOption, Word};
use toold_proto::effect::Effect;

use super::known::{ProgramTable, Takes, find};
use super::{CommandContext, FileAccess, FileUse, Reading, transfers};
use crate::shell_grammar::arg::Arg;

/// Options that choose another account, project or machine: they stand before the operation, where a rule can name
/// them, or no wildcard covers them. Each has a value.
const CHOOSING: &[(&str, &[&str])] = &[
    ("aws", &["--profile", "--endpoint-url"]),
    (
        "gcloud",
        &[
            "--project",
            "--account",
            "--configuration",
            "--impersonate-service-account",
            "--access-token-file",
            "--billing-project",
        ],
    ),
    ("az", &["--subscription", "-s", "--tenant"]),
];

/// The last word of an operation of `gcloud` and `az`; the words before it are groups.
const VERBS: &[&str] = &[
    "list",
    "describe",
    "show",
    "create",
    "delete",
    "update",
    "add",
    "remove",
    "get",
    "set",
    "unset",
    "start",
    "stop",
    "restart",
    "reset",
    "resize",
    "scale",
    "deploy",
    "undeploy",
    "rollback",
    "promote",
    "patch",
    "export",
    "move",
    "copy",
    "cp",
    "mv",
    "rm",
    "ls",
    "du",
    "cat",
    "sync",
    "rsync",
    "hash",
    "enable",
    "disable",
    "submit",
    "execute",
    "cancel",
    "clone",
    "login",
    "logout",
    "revoke",
    "ssh",
    "scp",
    "connect",
    "call",
    "invoke",
    "publish",
    "pull",
    "push",
    "ack",
    "read",
    "tail",
    "write",
    "access",
    "attach",
    "detach",
    "deallocate",
    "redeploy",
    "reimage",
    "browse",
    "download",
    "upload",
    "wait",
    "purge",
    "recover",
    "restore",
    "undelete",
    "destroy",
    "failover",
    "query",
    "lookup",
    "validate",
    "approve",
    "reject",
    "assign",
    "rotate",
    "renew",
    "exists",
    "version",
    "info",
    "init",
    "get-credentials",
    "get-value",
    "get-iam-policy",
    "set-iam-policy",
    "add-iam-policy-binding",
    "remove-iam-policy-binding",
    "get-access-token",
    "print-access-token",
    "print-identity-token",
    "activate-service-account",
    "configure-docker",
    "set-default",
    "list-locations",
    "show-connection-string",
    "get-server-config",
    "upload-batch",
    "download-batch",
    "delete-batch",
    "stop-all",
    "add-tags",
    "remove-tags",
    "add-metadata",
    "remove-metadata",
    "ssh-keys",
    "what-if",
];

/// Options that make an operation do more than its name says.
const ADDING: &[(&str, Effect)] = &[
    ("--delete", Effect::Destroy),
    ("--delete-unmatched-destination-objects", Effect::Destroy),
    ("--with-decryption", Effect::Secret),
    ("--with-secrets", Effect::Secret),
    ("--show-secrets", Effect::Secret),
];

/// Options of theirs whose value may hold commands that run elsewhere, besides those whose names say so.
const CARRYING: &[&str] =
    &["--parameters", "--overrides", "--user-data", "--metadata", "--custom-data", "--args", "--entrypoint"];

/// Operations of `aws` with a file that they write as an operand, which is the last word.
const WRITES_LAST: &[(&str, &str)] = &[("s3api", "get-object"), ("lambda", "invoke"), ("glacier", "get-job-output")];

/// `None` if the program is not one of these.
pub(super) fn read(name: &str, words: &[Arg], site: &CommandContext) -> Option<Reading> {
    let (_, choosing) = CHOOSING.iter().find(|(program, _)| *program == name)?;
    let known = find(name)?;
    let mut reading = Reading { known: Some(known), ..Reading::default() };
    let operation = operation(name, words);
    for at in &operation.places {
        reading.note(&words[*at], "subcommand");
    }
    let is_certain = operation.doubt.is_none();
    if let Some(doubt) = operation.doubt {
        reading.doubt(doubt);
        reading.may_run_any |= operation.places.is_empty();
    }
    let end = operation.places.last().map_or(words.len(), |last| last + 1);
    let behind = words.get(end..).unwrap_or_default();
    let chosen = words.iter().take(end).filter_map(|word| word.start().split('=').next());
    reading.places = chosen.filter(|option| choosing.contains(option)).map(|option| vec![option.to_owned()]).collect();
    for (at, word) in behind.iter().enumerate() {
        let (option, attached) = match word.start().split_once('=') {
            Some((option, _)) if option.starts_with('-') => (option, Some(word.without_start(option.len() + 1))),
            _ => (word.start(), None),
        };
        let added = ADDING.iter().find(|(known, _)| *known == option || begins_option(option, known));
        reading
            .added
            .extend(added.map(|(name, effect)| AddedEffect { effect: *effect, words: vec![(*name).to_owned()] }));
        if choosing.contains(&option) {
            reading.doubt(format!("{option} chooses another account or place"));
        } else if matches!(known.options.get(option), Some(Takes::Unsure(_))) {
            reading.doubt(format!("{option} may do more"));
        } else if word.may_be_option() && word.literal().is_none() && attached.is_none() {
            reading.doubt(format!("{} may expand to an option", word.raw));
        }
        let value = attached.as_ref().unwrap_or(word);
        let scheme = ["fileb://", "file://"].into_iter().find(|scheme| value.start().starts_with(scheme));
        let takes_file = option.starts_with("--") && (option.ends_with("-file") || option.ends_with("-from-file"));
        if let Some(scheme) = scheme {
            reading.files.push(FileUse::new(FileAccess::Read, value.without_start(scheme.len())));
        } else if name == "az" && value.start().starts_with('@') {
            reading.files.push(FileUse::new(FileAccess::Read, value.without_start(1)));
        } else if takes_file && option != "--output-file" {
            let file = attached.or_else(|| behind.get(at + 1).cloned());
            reading.files.extend(file.map(|file| FileUse::new(FileAccess::Read, file)));
        } else if value.literal().is_none() && !value.start().contains(':') && option.starts_with("--cli-input") {
            reading.hides_file = true;
        }
    }
    let names: Vec<&str> = operation.places.iter().map(|at| words[*at].start()).collect();
    files_of(&names, behind, &mut reading);
    transfers::add_named(behind, site, &mut reading);
    reading.form = if is_certain { form(known, words, &operation.places) } else { None };
    if names.contains(&"ssh") {
        let marked = behind.iter().position(|word| word.is("--")).and_then(|at| behind.get(at + 1..));
        reading.elsewhere.extend(marked.filter(|words| !words.is_empty()).map(<[Arg]>::to_vec));
    }
    add_carried(behind, &mut reading);
    Some(reading)
}

/// Adds the commands that values of options hold: `--command 'rm x'`, `--scripts 'cd /srv' 'rm x'`, `--parameters
/// commands='["rm x"]'`.
fn add_carried(behind: &[Arg], reading: &mut Reading) {
    let is_option = |word: &Arg| word.start().starts_with("--");
    let carries = |option: &str| {
        let says_so = |part: &str| matches!(part, "command" | "commands" | "script" | "scripts" | "cmd");
        let is_named = option.split('-').any(says_so) && !option.ends_with("-id");
        option.starts_with("--") && (is_named || CARRYING.contains(&option))
    };
    // `--command npm --args publish`
    let mut all: Vec<String> = Vec::new();
    for (at, word) in behind.iter().enumerate() {
        let (option, attached) = match word.start().split_once('=') {
            Some((option, _)) => (option, Some(word.without_start(option.len() + 1))),
            None => (word.start(), None),
        };
        if !carries(option) {
            continue;
        }
        let further = behind.get(at + 1..).unwrap_or_default().iter().take_while(|next| !is_option(next));
        for value in attached.iter().chain(further) {
            let text = value.literal().unwrap_or(&value.raw);
            let file = ["file://", "fileb://", "@"].iter().find_map(|start| text.strip_prefix(*start));
            match file {
                Some(file) => _ = reading.script_file.get_or_insert_with(|| Arg::text(file)),
                None => all.extend(commands_in(text)),
            }
        }
    }
    let joined = (all.len() > 1).then(|| all.join(" "));
    reading.scripts_elsewhere.extend(all.into_iter().take(MAX_CARRIED).chain(joined));
}

/// So many commands of one value are looked at.
const MAX_CARRIED: usize = 20;

/// The texts in a value that may be commands: the strings of a JSON text, each and those of a list joined, or what stands behind a
/// name.
fn commands_in(value: &str) -> Vec<String> {
    let strings = |text: &str| -> Vec<String> { text.split('"').skip(1).step_by(2).map(str::to_owned).collect() };
    let all = strings(value);
    if value.contains(['[', '{']) && !all.is_empty() {
        let lists =
            value.split('[').skip(1).filter_map(|list| list.split(']').next()).map(|list| strings(list).join(" "));
        return lists.chain(all.iter().cloned()).take(MAX_CARRIED).collect();
    }
    let named = value.split_once('=').filter(|(name, _)| !name.contains(char::is_whitespace));
    let text = named.map_or(value, |(_, behind)| behind);
    std::iter::once(text.to_owned()).chain(text.contains(',').then(|| text.replace(',', " "))).collect()
}

/// The words for rules that deny or ask: the operation, and behind it everything that is no option.
fn form(known: &ProgramTable, words: &[Arg], places: &[usize]) -> Option<CommandForm> {
    let last = *places.last()?;
    let is_option = |word: &Arg| word.start().starts_with('-') && word.start().len() > 1;
    let operation = places.iter().map(|at| words[*at].word());
    let behind = words[last + 1..].iter().filter(|word| !is_option(word)).map(Arg::word);
    let options = words.iter().enumerate().filter(|(_, word)| is_option(word)).map(|(at, word)| {
        let (name, attached) = match word.start().split_once('=') {
            Some((name, _)) => (name, Some(word.without_start(name.len() + 1))),
            None => (word.start(), None),
        };
        let spellings = known.spellings.get(name).map(Vec::as_slice).unwrap_or_default();
        let next = words.get(at + 1).filter(|next| !is_option(next) && !places.contains(&(at + 1)));
        FormOption {
            names: std::iter::once(name.to_owned()).chain(spellings.iter().cloned()).collect(),
            values: attached.iter().chain(next).map(Arg::word).collect(),
        }
    });
    let plain: Vec<Word> = operation.chain(behind).collect();
    Some(CommandForm { plain, options: options.collect(), operation: Some(places.len()) })
}

/// Whether `option` is the beginning of a longer one, which it stands for where no other begins with it.
fn begins_option(option: &str, whole: &str) -> bool {
    option.starts_with("--") && option.len() > 3 && whole.starts_with(option)
}

/// Local files that are operands.
fn files_of(names: &[&str], behind: &[Arg], reading: &mut Reading) {
    match names {
        ["s3", "cp" | "mv" | "sync"] => {
            let operands = behind.iter().take_while(|word| !word.start().starts_with("--"));
            for (at, word) in
                operands.enumerate().filter(|(_, word)| !word.start().starts_with("s3://") && !word.is("-"))
            {
                let how = if at == 0 { FileAccess::Tree } else { FileAccess::Write };
                reading.files.push(FileUse::new(how, word.clone()));
            }
            if behind.first().is_none_or(|first| first.start().starts_with("--")) {
                reading.doubt("which files it reads and writes is not certain");
            }
        }
        [service, verb] if WRITES_LAST.contains(&(*service, *verb)) => {
            if let Some(last) = behind.last().filter(|last| !last.start().starts_with("--")) {
                reading.files.push(FileUse { is_operand: true, ..FileUse::new(FileAccess::Write, last.clone()) });
            }
        }
        _ => {}
    }
}

struct CloudOperation {
    /// The places of the words that name it.
    places: Vec<usize>,
    doubt: Option<String>,
}

/// The words that name the operation, up to its verb. Options of the tables may stand before and between them.
fn operation(name: &str, words: &[Arg]) -> CloudOperation {
    let mut found = CloudOperation { places: Vec::new(), doubt: None };
    let choosing =
        CHOOSING.iter().find(|(program, _)| *program == name).map(|(_, options)| *options).unwrap_or_default();
    let options = find(name).map(|known| &known.options);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let text = word.start();
        let Some(literal) = word.literal().filter(|_| word.is_one()) else {
            found.doubt = Some(format!("the shell expands {}, and the result is unknown", word.raw));
            return found;
        };
        if literal.starts_with('-') {
            let (option, is_attached) = text.split_once('=').map_or((text, false), |(option, _)| (option, true));
            let takes = options.and_then(|options| options.get(option));
            let takes_next = match takes {
                Some(Takes::Nothing) => false,
                Some(Takes::Words(_)) => !is_attached,
                _ if choosing.contains(&option) => !is_attached,
                _ if is_verb_or_two(name, words, &found.places) => return found,
                _ => {
                    found.doubt = Some(format!("{option} before the operation is not known to be harmless"));
                    return found;
                }
            };
            at += 1 + usize::from(takes_next);
            continue;
        }
        found.places.push(at);
        at += 1;
        let is_whole = match name {
            // `aws ec2 wait instance-running` has one more.
            "aws" => found.places.len() > 2 || found.places.len() == 2 && literal != "wait",
            _ => VERBS.contains(&literal),
        };
        if is_whole {
            return found;
        }
    }
    found
}

/// Whether the operation may end here, where an option of its own begins.
fn is_verb_or_two(name: &str, words: &[Arg], places: &[usize]) -> bool {
    match name {
        "aws" => places.first().is_some_and(|at| words[*at].is("configure") || words[*at].is("help")),
        _ => !places.is_empty(),
    }
}

/// How many of the first words say what the command does; `None` if it is none of these programs.
pub(super) fn head(words: &[Arg]) -> Option<usize> {
    let name = words.first()?.literal()?.rsplit('/').next()?;
    CHOOSING.iter().find(|(program, _)| *program == name)?;
    let operation = operation(name, words.get(1..)?);
    let is_verb = |at: &usize| name == "aws" || VERBS.contains(&words[at + 1].start());
    match operation.places.last() {
        Some(last) if operation.doubt.is_none() && is_verb(last) => Some(last + 2),
        _ => Some(words.len()),
    }
}
