//! Operations that have several names: a rule that denies or asks about one of them is about the others as well.

mod implied;
mod names;
mod requests;
mod scripts;
mod signals;
mod spellings;
mod targets;

pub use signals::signal_named;

use std::path::Path;

use toold_engine::need::{CommandForm, FormOption, Word};

use self::names::{ABBREVIATED, INCLUDE, LIKE_DOCKER, NAMES};
use self::spellings::{branch, host, kinds, mode, opened_to_others, paths, unversioned_package};
use super::known::find;
use super::options::parse;
use crate::shell_grammar::arg::Arg;

/// Programs whose versions are installed beside each other: `pip3.11`, `clang-17`.
const VERSIONED: &[&str] =
    &["python", "pip", "pypy", "ruby", "perl", "php", "lua", "node", "gcc", "g++", "clang", "clang++"];

/// Runners that fetch a package, whose name may have a version behind it.
const OF_PACKAGES: &[&str] = &["npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "uvx", "uv", "pipx"];

/// Runners that take a word which is no command of theirs for a tool of the project.
const OF_TOOLS: &[&str] = &["yarn", "yarnpkg", "pnpm"];

/// Programs that run the scripts of `package.json` as npm does, also without `run`.
const OF_SCRIPTS: &[&str] = &["yarn", "yarnpkg", "pnpm", "bun"];

/// Scripts of Node.js, and the programs that they are.
const PACKAGED: &[(&str, &str)] = &[
    ("npm-cli.js", "npm"),
    ("npx-cli.js", "npx"),
    ("yarn.js", "yarn"),
    ("yarn.cjs", "yarn"),
    ("pnpm.cjs", "pnpm"),
    ("pnpm.js", "pnpm"),
    ("pnpx.cjs", "pnpx"),
    ("tsc.js", "tsc"),
    ("vercel.js", "vercel"),
    ("wrangler.js", "wrangler"),
];

/// The program that a script of Node.js is, by the name of its file.
pub(super) fn packaged_as(file: &str) -> Option<&'static str> {
    PACKAGED.iter().find(|(name, _)| *name == file).map(|(_, program)| *program)
}

/// Further words of a command are not spelled in other ways.
const MAX_RESPELLED: usize = 100;

/// A command as rules compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::shell_grammar) struct NamedCommand {
    pub(in crate::shell_grammar) words: Vec<Word>,
    pub(in crate::shell_grammar) form: Option<CommandForm>,
}

/// The command under each of its other names.
///
/// `folder`: where it runs, if that is certain. `places`: the folders of the session, to which names in rules are relative.
pub(in crate::shell_grammar) fn other_names(
    words: &[Word],
    form: Option<&CommandForm>,
    folder: Option<&Path>,
    places: &[&Path],
) -> Vec<NamedCommand> {
    let command = NamedCommand { words: words.to_vec(), form: form.cloned() };
    let mut respelled = command.with_words_as_others_write_them(folder);
    let targets: Vec<NamedCommand> =
        std::iter::once(&command).chain(&respelled).flat_map(NamedCommand::for_each_target).collect();
    respelled.extend(targets);
    let mut found = respelled.clone();
    for spelled in std::iter::once(&command).chain(&respelled) {
        found.extend(spelled.renamed());
        let others = spelled
            .module()
            .into_iter()
            .chain(spelled.packaged())
            .chain(spelled.whole_names())
            .chain(spelled.included());
        for other in others
            .chain(spelled.tool())
            .chain(spelled.script_of_package())
            .chain(spelled.of_refspecs())
            .chain(spelled.implied())
        {
            found.extend(other.renamed());
            found.extend(other.included());
            found.push(other);
        }
    }
    // Where another name has a table, its options have more spellings.
    let told_apart: Vec<NamedCommand> = found.iter().filter_map(NamedCommand::told_apart).collect();
    found.extend(told_apart);
    found.extend(scripts::script(words, folder, places));
    if matches!(command.program(), "kill" | "pkill" | "killall" | "gkill") {
        found.extend(signals::respelled(words));
    }
    found
}

/// The name without the version at its end.
pub(super) fn unversioned(name: &str) -> &str {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    if VERSIONED.contains(&plain) { plain } else { name }
}

/// Whether a name of an operation of the program begins with this word.
fn begins_name(program: &str, word: &str) -> bool {
    NAMES.iter().flat_map(|row| row.iter()).any(|name| {
        let name = OperationName::read(name);
        name.program == program && name.verbs.first() == Some(&word)
    })
}

fn only<'a>(program: &'a str, verbs: Vec<&'a str>) -> OperationName<'a> {
    OperationName { program, verbs, options: Vec::new() }
}

/// A name of an operation.
struct OperationName<'a> {
    program: &'a str,
    verbs: Vec<&'a str>,
    /// The spellings of each option.
    options: Vec<Vec<&'a str>>,
}

impl<'a> OperationName<'a> {
    fn read(name: &'a str) -> Self {
        let (program, rest) = name.split_once(' ').unwrap_or((name, ""));
        let (options, verbs): (Vec<&str>, Vec<&str>) = rest.split_whitespace().partition(|word| word.starts_with('-'));
        Self { program, verbs, options: options.iter().map(|option| option.split('|').collect()).collect() }
    }

    fn len(&self) -> usize {
        self.verbs.len() + self.options.len()
    }
}

impl NamedCommand {
    fn program(&self) -> &str {
        let name = self.words.first().filter(|word| word.literal).map(|word| word.text.as_str()).unwrap_or_default();
        name.rsplit('/').next().unwrap_or_default()
    }

    /// The same with its words told apart, if the program is known and they are not yet.
    fn told_apart(&self) -> Option<Self> {
        let known = find(self.program()).filter(|_| self.form.is_none())?;
        let arg = |word: &Word| if word.literal { Arg::text(&word.text) } else { Arg::unknown(&word.text) };
        let words: Vec<Arg> = self.words.iter().skip(1).map(arg).collect();
        let form = parse(known, &words).into_reading().form?;
        Some(Self { words: self.words.clone(), form: Some(form) })
    }

    /// `npm publish` of `node …/npm-cli.js publish`, and of the script alone.
    fn packaged(&self) -> Option<Self> {
        let at = usize::from(matches!(self.program(), "node" | "nodejs" | "bun"));
        let script = self.words.get(at..)?.iter().position(|word| !word.text.starts_with('-'))? + at;
        let name = self.words[script].text.rsplit('/').next().filter(|_| self.words[script].literal)?;
        let program = Word { text: packaged_as(name)?.to_owned(), literal: true };
        Some(Self { words: [&[program], &self.words[script + 1..]].concat(), form: None })
    }

    /// `pip install x` of `python3 -m pip install x`.
    fn module(&self) -> Option<Self> {
        if !matches!(unversioned(self.program()), "python" | "py" | "pypy") {
            return None;
        }
        let is = |word: &Word, text: &str| word.literal && word.text == text;
        let at = self.words.iter().position(|word| is(word, "-m"))?;
        let is_first = self.words[1..at].iter().all(|word| word.literal && word.text.starts_with('-'));
        let mut words = self.words.get(at + 1..).filter(|words| is_first && !words.is_empty())?.to_vec();
        if let Some(package) =
            words[0].text.strip_suffix("._internal").or_else(|| words[0].text.strip_suffix(".__main__"))
        {
            words[0].text = package.to_owned();
        }
        Some(Self { words, form: None })
    }

    /// `wrangler deploy` of `yarn wrangler deploy`.
    fn tool(&self) -> Option<Self> {
        let program = OF_TOOLS.iter().find(|name| **name == self.program())?;
        let known = find(if *program == "yarnpkg" { "yarn" } else { program })?;
        let is_command = |text: &str| known.subcommands.contains_key(text) || begins_name(program, text);
        let at = self.words.iter().skip(1).position(|word| !word.text.starts_with('-'))? + 1;
        let tool = self.words.get(at).filter(|word| word.literal && !is_command(&word.text))?;
        // A word alone is a script of the project.
        (!tool.text.is_empty() && at + 1 < self.words.len())
            .then(|| Self { words: self.words[at..].to_vec(), form: None })
    }

    /// `npm run deploy` of `pnpm run deploy`, `yarn deploy` and `node --run deploy`: it is the same script of the same
    /// package.
    fn script_of_package(&self) -> Option<Self> {
        let npm = OperationName::read("npm run");
        let program = self.program();
        if matches!(unversioned(program), "node" | "nodejs") {
            let at = self.words.iter().position(|word| word.literal && word.text.split('=').next() == Some("--run"))?;
            let value = self.words[at].text.split_once('=').map(|(_, name)| name.to_owned());
            let script = value.into_iter().map(|text| Word { text, literal: true });
            let words = ["npm", "run"].map(|text| Word { text: text.to_owned(), literal: true });
            let behind = self.words[at + 1..].iter().cloned();
            return Some(Self { words: words.into_iter().chain(script).chain(behind).collect(), form: None });
        }
        if !OF_SCRIPTS.contains(&program) {
            return None;
        }
        let plain = match &self.form {
            Some(form) => form.plain.first(),
            None => self.words.iter().skip(1).find(|word| !word.text.starts_with('-')),
        };
        let first = plain.filter(|word| word.literal)?.text.as_str();
        let verbs = match find(program)?.subcommands.get(first) {
            _ if program == "bun" && first == "test" => return None,
            Some(entry) if entry.entry.ends_with(" run") => match first {
                "run" | "run-script" => vec![first],
                "t" => return Some(self.with_name(&OperationName::read("npm run test"), &only(program, vec![first]))),
                _ => Vec::new(),
            },
            // Only pnpm has such a command.
            Some(_) if first == "deploy" && program != "pnpm" => Vec::new(),
            None if !first.contains(['/', '.']) && !begins_name(program, first) => Vec::new(),
            Some(_) | None => return None,
        };
        Some(self.with_name(&npm, &only(program, verbs)))
    }

    /// The same with other spellings of single words: paths, branches, packages, modes, hosts and kinds of resources.
    fn with_words_as_others_write_them(&self, folder: Option<&Path>) -> Vec<Self> {
        let program = self.program();
        let mut found = Vec::new();
        if matches!(unversioned(program), "python" | "py" | "pypy")
            && let Some((word, flags, module)) = self.words.iter().find_map(attached_module)
        {
            let flags = Some(format!("-{flags}")).filter(|flags| flags.len() > 1);
            let others: Vec<String> = flags.into_iter().chain(["-m".to_owned(), module.to_owned()]).collect();
            found.push(Self { form: None, ..self.replacing(&word.text, &others) });
        }
        let words = self.words.iter().skip(1).filter(|word| word.literal && !word.text.starts_with('-'));
        for word in words.take(MAX_RESPELLED) {
            let others = match program {
                "git" if self.has(&OperationName::read("git push")) => branch(&word.text),
                "kubectl" | "kubecolor" | "oc" | "k3s" | "microk8s" => kinds(&word.text),
                "chmod" => mode(&word.text).into_iter().chain(opened_to_others(&word.text)).collect(),
                "ssh" | "scp" | "sftp" | "rsync" | "mosh" => host(&word.text),
                "systemctl" => {
                    word.text.strip_suffix(".service").map(|unit| vec![unit.to_owned()]).into_iter().collect()
                }
                _ if OF_PACKAGES.contains(&program) => unversioned_package(&word.text),
                _ => Vec::new(),
            };
            let others = others.into_iter().chain(paths(&word.text, folder).into_iter().map(|path| vec![path]));
            found.extend(others.map(|other| self.replacing(&word.text, &other)));
        }
        found
    }

    /// The same with another text, or several, instead of one word.
    fn replacing(&self, text: &str, others: &[String]) -> Self {
        let replaced = |words: &[Word]| -> Vec<Word> {
            let other = || others.iter().map(|text| Word { text: text.clone(), literal: true });
            words
                .iter()
                .flat_map(|word| match word.literal && word.text == text {
                    true => other().collect(),
                    false => vec![word.clone()],
                })
                .collect()
        };
        let form = self.form.as_ref().map(|form| CommandForm { plain: replaced(&form.plain), ..form.clone() });
        Self { words: replaced(&self.words), form }
    }

    /// `npm publish` of `npm publ`: each command that the first word may stand for.
    fn whole_names(&self) -> Vec<Self> {
        let program = match self.program() {
            "bundler" => "bundle",
            "chg" => "hg",
            program => program,
        };
        let Some((_, commands)) = ABBREVIATED.iter().find(|(name, _)| *name == program) else { return Vec::new() };
        let plain = match &self.form {
            Some(form) => form.plain.first().into_iter().collect::<Vec<_>>(),
            // The first ones may be values of options.
            None => self.words.iter().skip(1).filter(|word| !word.text.starts_with('-')).collect(),
        };
        let commands = || commands.split_whitespace();
        let begins = |word: &&&Word| word.literal && commands().any(|name| name.starts_with(&word.text));
        let Some(given) = plain.iter().find(begins).filter(|word| !word.text.is_empty()) else { return Vec::new() };
        let given = given.text.as_str();
        let own = OperationName { program, verbs: vec![given], options: Vec::new() };
        commands()
            .filter(|name| name.starts_with(given) && *name != given && !commands().any(|name| name == given))
            .map(|name| self.with_name(&OperationName { program, verbs: vec![name], options: Vec::new() }, &own))
            .collect()
    }

    fn included(&self) -> Vec<Self> {
        let names = INCLUDE.iter().map(|(own, other)| (OperationName::read(own), OperationName::read(other)));
        let is_it = |(own, _): &(OperationName, OperationName)| own.program == self.program() && self.has(own);
        names.filter(is_it).map(|(own, other)| self.with_name(&other, &own)).collect()
    }

    /// `git push --force` of `git push origin +main`, and `git push --delete` of `git push origin :main` (git-push(1)).
    fn of_refspecs(&self) -> Vec<Self> {
        let push = OperationName::read("git push");
        if self.program() != push.program || !self.has(&push) {
            return Vec::new();
        }
        let begins = |start: char| self.words.iter().any(|word| word.literal && word.text.starts_with(start));
        [('+', "git push -f|--force"), (':', "git push -d|--delete")]
            .into_iter()
            .filter(|(start, _)| begins(*start))
            .map(|(_, name)| self.with_name(&OperationName::read(name), &push))
            .collect()
    }

    fn renamed(&self) -> Vec<Self> {
        let program = self.program();
        let plain = unversioned(program);
        let mut found = Vec::new();
        if plain != program {
            found.push(self.with_name(&only(plain, Vec::new()), &only(program, Vec::new())));
        }
        let is_own =
            |first: &str| first == plain || first == program || first == "docker" && LIKE_DOCKER.contains(&program);
        let is_of_program = |row: &&&[&str]| row.iter().any(|name| is_own(name.split(' ').next().unwrap_or_default()));
        for row in NAMES.iter().filter(is_of_program) {
            let names: Vec<OperationName> = row.iter().map(|name| OperationName::read(name)).collect();
            let own = names.iter().enumerate().filter(|(_, name)| is_own(name.program) && self.has(name));
            let Some((at, own)) = own.max_by_key(|(_, name)| name.len()) else { continue };
            for (_, other) in names.iter().enumerate().filter(|(other, _)| *other != at) {
                let program = if other.program == own.program { program } else { other.program };
                let (verbs, options) = (other.verbs.clone(), other.options.clone());
                found.push(self.with_name(&OperationName { program, verbs, options }, own));
            }
        }
        found
    }

    /// Whether these are the words that choose what it does. Where its words cannot be told apart, they occur in this order.
    fn has(&self, name: &OperationName) -> bool {
        let is = |word: &Word, verb: &str| word.literal && word.text == verb;
        let has_verbs = match &self.form {
            Some(form) => {
                form.plain.len() >= name.verbs.len()
                    && form.plain.iter().zip(&name.verbs).all(|(word, verb)| is(word, verb))
            }
            None => {
                let mut words = self.words.iter().skip(1);
                name.verbs.iter().all(|verb| words.any(|word| is(word, verb)))
            }
        };
        let has_option = |spellings: &Vec<&str>| match &self.form {
            Some(form) => form.options.iter().any(|option| is_one_of(option, spellings)),
            None => self.words.iter().any(|word| {
                let name = word.text.split('=').next().unwrap_or_default();
                let is_bundle = word.text.len() > 1 && word.text.starts_with('-') && !word.text.starts_with("--");
                spellings.contains(&name)
                    || is_bundle
                        && spellings.iter().any(|one| one.len() == 2 && word.text.contains(one.trim_start_matches('-')))
            }),
        };
        has_verbs && name.options.iter().all(has_option)
    }

    /// The same with another name instead of its own.
    fn with_name(&self, name: &OperationName, own: &OperationName) -> Self {
        let word = |text: &&str| Word { text: (*text).to_owned(), literal: true };
        let mut waiting = own.verbs.iter().peekable();
        let rest = self.words.iter().skip(1).filter(|word| {
            let is_option = own.options.iter().any(|spellings| spellings.contains(&word.text.as_str()));
            !is_option && waiting.next_if(|verb| word.literal && word.text == **verb).is_none()
        });
        let options = name.options.iter().filter_map(|spellings| spellings.first());
        let words = std::iter::once(&name.program).chain(&name.verbs).chain(options).map(word);
        let words = words.chain(rest.cloned()).collect();
        let form = self.form.as_ref().map(|form| {
            let behind = form.plain.iter().skip(own.verbs.len()).cloned();
            let kept = form
                .options
                .iter()
                .filter(|option| !own.options.iter().any(|spellings| is_one_of(option, spellings)))
                .cloned();
            let added = name.options.iter().map(|spellings| FormOption {
                names: spellings.iter().map(|name| (*name).to_owned()).collect(),
                values: Vec::new(),
            });
            CommandForm {
                plain: name.verbs.iter().map(word).chain(behind).collect(),
                options: added.chain(kept).collect(),
                operation: form.operation.map(|count| (count + name.verbs.len()).saturating_sub(own.verbs.len())),
            }
        });
        Self { words, form }
    }
}

/// `I` and `pip` of `-Impip`: letters of options without a value, and the module.
fn attached_module(word: &Word) -> Option<(&Word, &str, &str)> {
    let (flags, module) = word.text.strip_prefix('-').filter(|_| word.literal)?.split_once('m')?;
    let is_flag = |letter: char| "bBdEhiIOPqsSuvVx".contains(letter);
    (!module.is_empty() && flags.chars().all(is_flag)).then_some((word, flags, module))
}

fn is_one_of(option: &FormOption, spellings: &[&str]) -> bool {
    option.names.iter().any(|name| spellings.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(line: &str) -> Vec<String> {
        let words: Vec<Word> = line.split(' ').map(|text| Word { text: text.to_owned(), literal: true }).collect();
        let text =
            |command: NamedCommand| command.words.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" ");
        other_names(&words, None, Some(Path::new("/app")), &[]).into_iter().map(text).collect()
    }

    #[test]
    fn one_operation_has_all_of_its_names() {
        for (line, other) in [
            ("npm run-script deploy", "npm run deploy"),
            ("npm -w web i x", "npm install -w web x"),
            ("pip3.11 install x", "pip install x"),
            ("python3.11 -I -m pip install x", "pip install x"),
            ("docker-compose -f x.yml down", "docker compose -f x.yml down"),
            ("podman image rm x", "podman rmi x"),
            ("docker rm x", "docker container rm x"),
            ("./gradlew publish", "gradle publish"),
            ("yarn deploy", "yarn run deploy"),
            ("yarn run deploy", "yarn deploy"),
            ("yarnpkg publish", "yarn publish"),
            ("apt-get remove x", "apt remove x"),
            ("npm publ", "npm publish"),
            ("npm -s pub --tag x", "npm publish -s --tag x"),
            ("npm run-s deploy", "npm run deploy"),
            ("hg -R repo pus", "hg push -R repo"),
            ("terraform apply -auto-approve -destroy", "terraform destroy -auto-approve"),
            ("git branch -df x", "git branch -D -df x"),
            ("git branch -D x", "git branch -d -f x"),
            ("git push origin +main", "git push -f origin +main"),
            ("git push origin :main", "git push -d origin :main"),
            ("git push origin HEAD:main", "git push origin main"),
            ("git push origin +a:refs/heads/main", "git push origin main"),
            ("git switch -c x", "git checkout -b x"),
            ("git switch main", "git checkout main"),
            ("npm it x", "npm install x"),
            ("uv pip install x", "pip install x"),
            ("bin/rake db:drop", "rails db:drop"),
            ("npx -y prisma@5 migrate", "npx -y prisma migrate"),
            ("pnpm dlx @a/b@1.2 x", "npx @a/b x"),
            ("bunx prisma migrate", "npx prisma migrate"),
            ("yarn -s wrangler deploy", "wrangler deploy"),
            ("pnpm wrangler deploy", "wrangler deploy"),
            ("chmod -R 0777 x", "chmod -R 777 x"),
            ("chmod a+rwX x", "chmod 777 x"),
            ("chmod ugo=rwx x", "chmod 777 x"),
            ("kubectl -n x delete ns/y", "kubectl -n x delete namespace y"),
            ("oc get pods,Secret", "kubectl get secrets"),
            ("ssh -p 22 me@prod ls", "ssh -p 22 prod ls"),
            ("scp a me@prod:/b", "scp a prod:/b"),
            ("systemctl restart nginx.service", "systemctl restart nginx"),
            ("systemctl restart redis nginx", "systemctl restart nginx redis"),
            ("systemctl restart redis nginx.service", "systemctl restart nginx redis"),
            ("docker rm -f a b", "docker rm -f b a"),
            ("kubectl delete pod a b", "kubectl delete pod b a"),
            ("mv ./src/ x", "mv src x"),
            ("git add ./", "git add ."),
            ("mv /app/src x", "mv src x"),
            ("node a/../b/c.js", "node b/c.js"),
            ("go run cmd/x/", "go run ./cmd/x"),
            ("python3 -mpip install x", "pip install x"),
            ("python3 -mhttp.server", "python3 -m http.server"),
            ("kubectl drain node/x", "kubectl drain x"),
            ("find //etc -name x", "find /etc -name x"),
            ("tail --follow x", "tail -f x"),
        ] {
            let found = named(line);
            assert!(found.iter().any(|name| name == other), "{line}: {found:?}");
        }
        assert_eq!(named("git push origin"), Vec::<String>::new());
        assert_eq!(named("mytool run x"), Vec::<String>::new());
        assert_eq!(named("npm pack publ"), Vec::<String>::new());
        assert_eq!(named("git push origin main"), Vec::<String>::new());
        assert_eq!(named("chmod u+rwx x"), Vec::<String>::new());
        assert!(!named("pnpm rm x").contains(&"rm x".to_owned()));
        assert!(!named("yarn test x").contains(&"test x".to_owned()));
    }

    #[test]
    fn no_name_stands_twice_in_a_row() {
        for row in NAMES {
            let mut sorted = row.to_vec();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), row.len(), "{row:?}");
        }
    }
}
