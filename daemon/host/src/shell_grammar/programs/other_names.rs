//! Operations that have several names: a rule that denies or asks about one of them is about the others as well.

use toold_engine::need::{CommandForm, Word};

/// One operation a row. Names that begin with `docker` count for programs with the same commands too.
const NAMES: &[&[&str]] = &[
    &[
        "npm install",
        "npm i",
        "npm in",
        "npm ins",
        "npm inst",
        "npm insta",
        "npm instal",
        "npm isnt",
        "npm isnta",
        "npm isntal",
        "npm isntall",
        "npm add",
    ],
    &["npm ci", "npm clean-install", "npm ic", "npm install-clean", "npm isntall-clean"],
    &["npm uninstall", "npm remove", "npm rm", "npm r", "npm un", "npm unlink"],
    &["npm update", "npm up", "npm upgrade", "npm udpate"],
    &["npm run", "npm run-script", "npm rum", "npm urn"],
    &["npm test", "npm t", "npm tst", "npm run test"],
    &["npm start", "npm run start"],
    &["npm install-test", "npm it"],
    &["npm owner", "npm author"],
    &["npx", "npm exec", "npm x"],
    &["pnpm install", "pnpm i"],
    &["pnpm remove", "pnpm rm", "pnpm uninstall", "pnpm un"],
    &["pnpm update", "pnpm up", "pnpm upgrade"],
    &["pnpm run", "pnpm run-script", "pnpm"],
    &["pnpm dlx", "pnpx"],
    &["yarn", "yarnpkg"],
    &["yarn run", "yarn"],
    &["bun install", "bun i"],
    &["bun add", "bun a"],
    &["bun remove", "bun rm", "bun r"],
    &["bun run", "bun"],
    &["bun x", "bunx"],
    &["uvx", "uv tool run", "uv x"],
    &["pip", "pip3"],
    &["python", "python3", "py"],
    &["node", "nodejs"],
    &["cargo build", "cargo b"],
    &["cargo check", "cargo c"],
    &["cargo doc", "cargo d"],
    &["cargo run", "cargo r"],
    &["cargo test", "cargo t"],
    &["cargo remove", "cargo rm"],
    &["bundle", "bundler"],
    &["bundle exec", "bundle exe", "bundle ex", "bundle e"],
    &["bundle install", "bundle i"],
    &["composer install", "composer i"],
    &["composer update", "composer u", "composer upgrade"],
    &["composer require", "composer r"],
    &["composer remove", "composer rm", "composer uninstall"],
    &["composer run-script", "composer run"],
    &["gradle", "gradlew"],
    &["mvn", "mvnw", "mvnd"],
    &["make", "gmake"],
    &["task", "go-task"],
    &["fd", "fdfind"],
    &["apt", "apt-get"],
    &["brew uninstall", "brew remove", "brew rm"],
    &["git add", "git stage"],
    &["git remote remove", "git remote rm"],
    &["svn commit", "svn ci"],
    &["svn delete", "svn del", "svn remove", "svn rm"],
    &["gh pr create", "gh pr new"],
    &["gh pr checkout", "gh pr co"],
    &["gh issue create", "gh issue new"],
    &["gh release create", "gh release new"],
    &["gh repo create", "gh repo new"],
    &["gh gist create", "gh gist new"],
    &["gh secret delete", "gh secret remove"],
    &["gh variable delete", "gh variable remove"],
    &["gh codespace", "gh cs"],
    &["gh extension", "gh extensions", "gh ext"],
    &["glab mr create", "glab mr new"],
    &["glab mr merge", "glab mr accept"],
    &["glab issue create", "glab issue new"],
    &["glab ci", "glab pipe", "glab pipeline"],
    &["helm uninstall", "helm delete", "helm del", "helm un"],
    &["helm repo remove", "helm repo rm"],
    &["helm pull", "helm fetch"],
    &["docker compose", "docker-compose"],
    &["docker run", "docker container run"],
    &["docker exec", "docker container exec"],
    &["docker create", "docker container create"],
    &["docker cp", "docker container cp", "docker container copy"],
    &["docker commit", "docker container commit"],
    &["docker rm", "docker container rm", "docker container remove", "docker remove"],
    &["docker start", "docker container start"],
    &["docker stop", "docker container stop"],
    &["docker restart", "docker container restart"],
    &["docker kill", "docker container kill"],
    &["docker rmi", "docker image rm", "docker image remove"],
    &["docker build", "docker image build", "docker buildx build", "docker builder build"],
    &["docker push", "docker image push"],
    &["docker pull", "docker image pull"],
    &["docker tag", "docker image tag"],
    &["docker load", "docker image load"],
    &["docker save", "docker image save"],
    &["docker volume rm", "docker volume remove"],
    &["docker network rm", "docker network remove"],
];

/// Programs with the commands of Docker.
const LIKE_DOCKER: &[&str] = &["podman", "nerdctl"];

/// Programs whose versions are installed beside each other: `pip3.11`, `clang-17`.
const VERSIONED: &[&str] =
    &["python", "pip", "pypy", "ruby", "perl", "php", "lua", "node", "gcc", "g++", "clang", "clang++"];

/// A command as rules compare it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::shell_grammar) struct NamedCommand {
    pub(in crate::shell_grammar) words: Vec<Word>,
    pub(in crate::shell_grammar) form: Option<CommandForm>,
}

/// The command under each of its other names.
pub(in crate::shell_grammar) fn other_names(words: &[Word], form: Option<&CommandForm>) -> Vec<NamedCommand> {
    let command = NamedCommand { words: words.to_vec(), form: form.cloned() };
    let mut found = command.renamed();
    if let Some(module) = command.module() {
        found.extend(module.renamed());
        found.push(module);
    }
    found
}

/// The name without the version at its end.
fn unversioned(name: &str) -> &str {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    if VERSIONED.contains(&plain) { plain } else { name }
}

/// The program of a name, and the words behind it.
fn parts(name: &str) -> (&str, impl Iterator<Item = &str>) {
    let (first, verbs) = name.split_once(' ').unwrap_or((name, ""));
    (first, verbs.split_whitespace())
}

impl NamedCommand {
    fn program(&self) -> &str {
        let name = self.words.first().filter(|word| word.literal).map(|word| word.text.as_str()).unwrap_or_default();
        name.rsplit('/').next().unwrap_or_default()
    }

    /// `pip install x` of `python3 -m pip install x`.
    fn module(&self) -> Option<Self> {
        if !matches!(unversioned(self.program()), "python" | "py" | "pypy") {
            return None;
        }
        let is = |word: &Word, text: &str| word.literal && word.text == text;
        let at = self.words.iter().position(|word| is(word, "-m"))?;
        let is_first = self.words[1..at].iter().all(|word| word.literal && word.text.starts_with('-'));
        let words = self.words.get(at + 1..).filter(|words| is_first && !words.is_empty())?;
        Some(Self { words: words.to_vec(), form: None })
    }

    fn renamed(&self) -> Vec<Self> {
        let program = self.program();
        let plain = unversioned(program);
        let mut found = Vec::new();
        if plain != program {
            found.push(self.with_name((plain, &[]), &[]));
        }
        let is_own =
            |first: &str| first == plain || first == program || first == "docker" && LIKE_DOCKER.contains(&program);
        for row in NAMES {
            let own = row.iter().copied().filter_map(|name| {
                let (first, verbs) = parts(name);
                let verbs: Vec<&str> = is_own(first).then(|| verbs.collect())?;
                self.has(&verbs).then_some((name, first, verbs))
            });
            let Some((own, first, verbs)) = own.max_by_key(|(.., verbs)| verbs.len()) else { continue };
            for other in row.iter().filter(|other| **other != own) {
                let (other_first, others) = parts(other);
                let name = if other_first == first { program } else { other_first };
                found.push(self.with_name((name, &others.collect::<Vec<_>>()), &verbs));
            }
        }
        found
    }

    /// Whether these are the words that choose what it does. Where its words cannot be told apart, they occur in this order.
    fn has(&self, verbs: &[&str]) -> bool {
        let is = |word: &Word, verb: &str| word.literal && word.text == verb;
        match &self.form {
            Some(form) => {
                form.plain.len() >= verbs.len() && form.plain.iter().zip(verbs).all(|(word, verb)| is(word, verb))
            }
            None => {
                let mut words = self.words.iter().skip(1);
                verbs.iter().all(|verb| words.any(|word| is(word, verb)))
            }
        }
    }

    /// The same with another name instead of these words.
    fn with_name(&self, (program, verbs): (&str, &[&str]), replaced: &[&str]) -> Self {
        let word = |text: &&str| Word { text: (*text).to_owned(), literal: true };
        let mut waiting = replaced.iter().peekable();
        let rest = self
            .words
            .iter()
            .skip(1)
            .filter(|word| waiting.next_if(|verb| word.literal && word.text == **verb).is_none());
        let first: Vec<Word> = std::iter::once(&program).chain(verbs).map(word).collect();
        let words = first.iter().chain(rest).cloned().collect();
        let form = self.form.as_ref().map(|form| {
            let behind = form.plain.iter().skip(replaced.len()).cloned();
            CommandForm { plain: first[1..].iter().cloned().chain(behind).collect(), options: form.options.clone() }
        });
        Self { words, form }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(line: &str) -> Vec<String> {
        let words: Vec<Word> = line.split(' ').map(|text| Word { text: text.to_owned(), literal: true }).collect();
        let text =
            |command: NamedCommand| command.words.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" ");
        other_names(&words, None).into_iter().map(text).collect()
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
        ] {
            let found = named(line);
            assert!(found.iter().any(|name| name == other), "{line}: {found:?}");
        }
        assert_eq!(named("git push origin"), Vec::<String>::new());
        assert_eq!(named("mytool run x"), Vec::<String>::new());
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
