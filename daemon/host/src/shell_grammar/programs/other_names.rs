//! Operations that have several names: a rule that denies or asks about one of them is about the others as well.

use std::path::Path;

use toold_engine::need::{CommandForm, FormOption, Word};
use toold_proto::cut;

use super::known::find;

/// One operation a row. Names that begin with `docker` count for programs with the same commands too. Options of a name, with
/// `|` between their spellings, stand anywhere in the command.
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
    &["fly", "flyctl"],
    &["tail -f", "tail --follow"],
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
    &["git branch -D", "git branch -d|--delete -f|--force"],
    &["git branch -M", "git branch -m|--move -f|--force"],
    &["git branch -C", "git branch -c|--copy -f|--force"],
    &["git checkout -b", "git switch -c|--create"],
    &["git checkout -B", "git switch -C|--force-create"],
    &["terraform destroy", "terraform apply -destroy|--destroy"],
    &["tofu destroy", "tofu apply -destroy|--destroy"],
    &["apt purge", "apt-get purge", "apt remove --purge", "apt-get remove --purge"],
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

/// Operations that do what another one does, and more, or with another program. Not the reverse: a rule for all of the first is
/// not about the second.
const INCLUDE: &[(&str, &str)] = &[
    ("cp -a|--archive", "cp -r|-R|--recursive"),
    ("rsync -a|--archive", "rsync -r|--recursive"),
    ("git push --mirror", "git push -f|--force"),
    ("git push --mirror", "git push -d|--delete"),
    ("git push --prune", "git push -d|--delete"),
    ("tail -F", "tail -f|--follow"),
    ("git switch", "git checkout"),
    ("uv pip", "pip"),
    ("rake", "rails"),
    ("kubecolor", "kubectl"),
    ("oc", "kubectl"),
    ("k3s kubectl", "kubectl"),
    ("microk8s kubectl", "kubectl"),
    ("pnpm dlx", "npx"),
    ("pnpx", "npx"),
    ("yarn dlx", "npx"),
    ("bunx", "npx"),
    ("bun x", "npx"),
    ("npm install-test", "npm install"),
    ("npm it", "npm install"),
    ("systemctl enable --now", "systemctl start"),
    ("systemctl disable --now", "systemctl stop"),
];

/// Programs that take the beginning of a command's name for the whole name, and their commands: npm 10 and 11, RubyGems 3.6,
/// Bundler 2.6, Composer 2.8, Mercurial 6.9, iproute2 6.1, tmux 3.5.
const ABBREVIATED: &[(&str, &str)] = &[
    (
        "npm",
        "access adduser approve-scripts audit bugs cache ci completion config dedupe deny-scripts deprecate diff dist-tag docs \
         doctor edit exec explain explore find-dupes fund get help help-search hook init install install-ci-test \
         install-scripts install-test link ll login logout ls org outdated owner pack ping pkg prefix profile prune publish \
         query rebuild repo restart root run run-script sbom search set shrinkwrap stage star stars start stop team test \
         token trust undeprecate uninstall unpublish unstar update version view whoami",
    ),
    (
        "gem",
        "build cert check cleanup contents dependency environment exec fetch generate_index help info install list lock \
         mirror open outdated owner pristine push query rdoc rebuild search server signin signout sources specification stale \
         uninstall unpack update which yank",
    ),
    (
        "bundle",
        "add binstubs cache check clean config console doctor exec fund gem help info init install issue licenses list lock \
         open outdated platform plugin pristine remove show update version viz",
    ),
    (
        "composer",
        "about archive audit browse bump check-platform-reqs clear-cache config create-project depends diagnose \
         dump-autoload exec fund global help home init install licenses list outdated prohibits reinstall remove require \
         run-script search self-update show status suggests update validate",
    ),
    (
        "hg",
        "add addremove annotate archive backout bisect bookmarks branch branches bundle cat clone commit config copy diff \
         export files forget graft grep heads help histedit identify import incoming init locate log manifest merge outgoing \
         parents paths phase pull push rebase recover remove rename resolve revert rollback root serve shelve status strip \
         summary tag tags tip unbundle unshelve update verify version",
    ),
    ("ip", "address addrlabel link maddress monitor mroute neighbour netns ntable route rule tunnel tuntap vrf xfrm"),
    (
        "tmux",
        "attach-session bind-key break-pane capture-pane choose-buffer choose-client choose-tree clear-history \
         command-prompt confirm-before copy-mode delete-buffer detach-client display-menu display-message display-popup \
         find-window has-session if-shell join-pane kill-pane kill-server kill-session kill-window last-pane last-window \
         link-window list-buffers list-clients list-commands list-keys list-panes list-sessions list-windows load-buffer \
         lock-client lock-server lock-session move-pane move-window new-session new-window next-window paste-buffer pipe-pane \
         previous-window refresh-client rename-session rename-window resize-pane resize-window respawn-pane respawn-window \
         rotate-window run-shell save-buffer select-layout select-pane select-window send-keys send-prefix set-buffer \
         set-environment set-hook set-option set-window-option show-buffer show-environment show-hooks show-messages \
         show-options source-file split-window start-server suspend-client swap-pane swap-window switch-client unbind-key \
         unlink-window wait-for",
    ),
];

/// Programs whose versions are installed beside each other: `pip3.11`, `clang-17`.
const VERSIONED: &[&str] =
    &["python", "pip", "pypy", "ruby", "perl", "php", "lua", "node", "gcc", "g++", "clang", "clang++"];

/// Runners that fetch a package, whose name may have a version behind it.
const OF_PACKAGES: &[&str] = &["npx", "npm", "pnpm", "pnpx", "yarn", "bun", "bunx", "uvx", "uv", "pipx"];

/// Runners that take a word which is no command of theirs for a tool of the project.
const OF_TOOLS: &[&str] = &["yarn", "yarnpkg", "pnpm"];

/// Names of one kind of resource each (`kubectl api-resources` of Kubernetes 1.31).
const KUBERNETES_KINDS: &[&[&str]] = &[
    &["secrets", "secret"],
    &["namespaces", "namespace", "ns"],
    &["nodes", "node", "no"],
    &["pods", "pod", "po"],
    &["services", "service", "svc"],
    &["deployments", "deployment", "deploy"],
    &["daemonsets", "daemonset", "ds"],
    &["statefulsets", "statefulset", "sts"],
    &["replicasets", "replicaset", "rs"],
    &["configmaps", "configmap", "cm"],
    &["persistentvolumes", "persistentvolume", "pv"],
    &["persistentvolumeclaims", "persistentvolumeclaim", "pvc"],
    &["serviceaccounts", "serviceaccount", "sa"],
    &["ingresses", "ingress", "ing"],
    &["jobs", "job"],
    &["cronjobs", "cronjob", "cj"],
    &["events", "event", "ev"],
    &["roles", "role"],
    &["rolebindings", "rolebinding"],
    &["clusterroles", "clusterrole"],
    &["clusterrolebindings", "clusterrolebinding"],
    &["customresourcedefinitions", "customresourcedefinition", "crd", "crds"],
    &["storageclasses", "storageclass", "sc"],
    &["networkpolicies", "networkpolicy", "netpol"],
];

/// More kinds of resources in one word are not looked at.
const MAX_KINDS: usize = 20;
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
/// `folder`: where it runs, if that is certain.
pub(in crate::shell_grammar) fn other_names(
    words: &[Word],
    form: Option<&CommandForm>,
    folder: Option<&Path>,
) -> Vec<NamedCommand> {
    let command = NamedCommand { words: words.to_vec(), form: form.cloned() };
    let respelled = command.with_words_as_others_write_them(folder);
    let mut found = respelled.clone();
    for spelled in std::iter::once(&command).chain(&respelled) {
        found.extend(spelled.renamed());
        let others = spelled.module().into_iter().chain(spelled.whole_names()).chain(spelled.included());
        for other in others.chain(spelled.tool()).chain(spelled.of_refspecs()) {
            found.extend(other.renamed());
            found.push(other);
        }
    }
    found
}

/// The name without the version at its end.
pub(super) fn unversioned(name: &str) -> &str {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').trim_end_matches('-');
    if VERSIONED.contains(&plain) { plain } else { name }
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

    /// `wrangler deploy` of `yarn wrangler deploy`.
    fn tool(&self) -> Option<Self> {
        let program = OF_TOOLS.iter().find(|name| **name == self.program())?;
        let known = find(if *program == "yarnpkg" { "yarn" } else { program })?;
        let is_command = |text: &str| {
            let has_name = |name: &&str| -> bool {
                let name = OperationName::read(name);
                name.program == *program && name.verbs.first() == Some(&text)
            };
            known.subcommands.contains_key(text) || NAMES.iter().flat_map(|row| row.iter()).any(has_name)
        };
        let at = self.words.iter().skip(1).position(|word| !word.text.starts_with('-'))? + 1;
        let tool = self.words.get(at).filter(|word| word.literal && !is_command(&word.text))?;
        // A word alone is a script of the project.
        (!tool.text.is_empty() && at + 1 < self.words.len())
            .then(|| Self { words: self.words[at..].to_vec(), form: None })
    }

    /// The same with other spellings of single words: paths, branches, packages, modes, hosts and kinds of resources.
    fn with_words_as_others_write_them(&self, folder: Option<&Path>) -> Vec<Self> {
        let program = self.program();
        let mut found = Vec::new();
        if matches!(unversioned(program), "python" | "py" | "pypy")
            && let Some(attached) = self.words.iter().find(|word| word.literal && word.text.starts_with("-m"))
            && let Some(module) = attached.text.strip_prefix("-m").filter(|module| !module.is_empty())
        {
            found.push(Self { form: None, ..self.replacing(&attached.text, &["-m".to_owned(), module.to_owned()]) });
        }
        let words = self.words.iter().skip(1).filter(|word| word.literal && !word.text.starts_with('-'));
        for word in words.take(MAX_RESPELLED) {
            let others = match program {
                "git" if self.has(&OperationName::read("git push")) => branch(&word.text),
                "kubectl" | "kubecolor" | "oc" | "k3s" | "microk8s" => kinds(&word.text),
                "chmod" => mode(&word.text),
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
            let only = |program| OperationName { program, verbs: Vec::new(), options: Vec::new() };
            found.push(self.with_name(&only(plain), &only(program)));
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
            }
        });
        Self { words, form }
    }
}

/// The branch that a refspec pushes to: `main` of `HEAD:main` and `refs/heads/main` (git-push(1), "<refspec>").
fn branch(refspec: &str) -> Vec<Vec<String>> {
    let plain = refspec.strip_prefix('+').unwrap_or(refspec);
    let to = plain.rsplit_once(':').map_or(plain, |(_, to)| to);
    let to = ["refs/heads/", "heads/"].iter().find_map(|start| to.strip_prefix(start)).unwrap_or(to);
    if to == refspec || to.is_empty() || to.contains('/') && refspec.contains("//") {
        return Vec::new();
    }
    vec![vec![to.to_owned()]]
}

/// `src` and `./src` of `./src/`, `a/../src` and `/folder/src`, and `.` of `./`.
fn paths(text: &str, folder: Option<&Path>) -> Vec<String> {
    if text.contains("://") || !text.contains('/') {
        return Vec::new();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
        match parts.last() {
            Some(before) if part == ".." && *before != ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    let plain = parts.join("/");
    let found = match text.strip_prefix('/') {
        Some(_) => {
            let whole = format!("/{plain}");
            let below = folder.and_then(|folder| Path::new(&whole).strip_prefix(folder).ok()).and_then(Path::to_str);
            let below = below.map(|below| if below.is_empty() { "." } else { below }.to_owned());
            [below.as_ref().map(|below| format!("./{below}")), below, Some(whole)].into_iter().flatten().collect()
        }
        None if plain.is_empty() => vec![".".to_owned()],
        None => vec![format!("./{plain}"), plain],
    };
    found.into_iter().filter(|path| path != text).collect()
}

/// `host` of `user@host`, `host:path` of `user@host:path`.
fn host(text: &str) -> Vec<Vec<String>> {
    let found = text.split_once('@').filter(|(user, host)| !user.contains(['/', ':']) && !host.is_empty());
    found.map(|(_, host)| vec![host.to_owned()]).into_iter().collect()
}

/// `prisma` of `prisma@5`.
fn unversioned_package(package: &str) -> Vec<Vec<String>> {
    let version = package.rfind('@').filter(|at| *at > 0);
    version.map(|at| vec![cut::before(package, at).to_owned()]).into_iter().collect()
}

/// `777` of `0777`, `a+rwx` and `ugo=rwx`.
fn mode(text: &str) -> Vec<Vec<String>> {
    let digits = text.trim_start_matches('0');
    if digits != text && digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit()) {
        return vec![vec![digits.to_owned()]];
    }
    let all = text.split_once(['+', '=']).is_some_and(|(who, what)| {
        let has = |letters: &str| letters.chars().all(|letter| what.contains(letter));
        (matches!(who, "" | "a") || who.len() == 3 && "ugo".chars().all(|letter| who.contains(letter)))
            && (has("rwx") || has("rwX"))
    });
    if all { vec![vec!["777".to_owned()]] } else { Vec::new() }
}

/// Each kind of `pods,secret/x`, by all its names. Case does not count, nor the version of `secrets.v1.`.
fn kinds(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for resource in text.split(',').take(MAX_KINDS) {
        let (kind, name) = resource.split_once('/').map_or((resource, None), |(kind, name)| (kind, Some(name)));
        let kind = kind.split('.').next().unwrap_or_default().to_ascii_lowercase();
        let Some(row) = KUBERNETES_KINDS.iter().find(|row| row.contains(&kind.as_str())) else { continue };
        for known in row.iter().filter(|known| **known != text) {
            found.push(std::iter::once(*known).chain(name).map(str::to_owned).collect());
        }
        // `kubectl drain node/x` is `kubectl drain x`.
        found.extend(name.map(|name| vec![name.to_owned()]));
    }
    found
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
        other_names(&words, None, Some(Path::new("/app"))).into_iter().map(text).collect()
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
