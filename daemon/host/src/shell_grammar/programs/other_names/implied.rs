//! Operations that a command does without naming them: `git stash` pushes, `curl -d` posts.

use toold_engine::need::{CommandForm, FormOption, Word};

use super::{NamedCommand, OperationName};

/// Without a further word, a command does this.
const DEFAULTS: &[(&str, &str)] = &[
    ("git stash", "git stash push"),
    ("yarn", "yarn install"),
    ("yarnpkg", "yarn install"),
    ("bundle", "bundle install"),
    ("bundler", "bundle install"),
    ("vercel", "vercel deploy"),
    ("vc", "vercel deploy"),
    ("pre-commit", "pre-commit run"),
];

/// Options of `curl` and the methods that they choose.
const CURL_METHODS: &[(&str, &[&str])] = &[
    (
        "POST",
        &["-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--data-urlencode", "--json", "-F", "--form"],
    ),
    ("PUT", &["-T", "--upload-file"]),
    ("HEAD", &["-I", "--head"]),
];

impl NamedCommand {
    pub(super) fn implied(&self) -> Vec<Self> {
        let mut found = Vec::new();
        found.extend(self.default_operation());
        found.extend(self.service());
        found.extend(self.without_prefix());
        match self.program() {
            "curl" => found.extend(self.method().into_iter().chain(self.requested())),
            "gh" | "glab" | "hub" if self.has_word("api") => {
                found.extend(self.posted().into_iter().chain(self.requested()))
            }
            "git" => found.extend(self.switched_to().into_iter().chain(self.restored())),
            "cargo" => found.extend(self.profile()),
            "docker" | "podman" | "nerdctl" | "docker-compose" => found.extend(self.pushed_image()),
            "npm" if self.has_word("--location=global") || self.has_words(["--location", "global"]) => {
                found.push(self.with_option(&["-g", "--global"], None))
            }
            "redis-cli" | "valkey-cli" | "keydb-cli" => found.push(self.in_small_letters()),
            _ => {}
        }
        found
    }

    fn has_word(&self, text: &str) -> bool {
        self.words.iter().any(|word| word.literal && word.text == text)
    }

    /// Whether the words stand there one behind the other.
    fn has_words(&self, texts: [&str; 2]) -> bool {
        self.words.windows(2).any(|words| words.iter().zip(texts).all(|(word, text)| word.literal && word.text == text))
    }

    /// The same with one more option.
    fn with_option(&self, spellings: &[&str], value: Option<&str>) -> Self {
        let word = |text: &str| Word { text: text.to_owned(), literal: true };
        let mut words = self.words.clone();
        words.splice(1..1, spellings.first().copied().into_iter().chain(value).map(word));
        let form = self.form.clone().map(|mut form| {
            let names = spellings.iter().map(|name| (*name).to_owned()).collect();
            form.options.push(FormOption { names, values: value.map(word).into_iter().collect() });
            form
        });
        Self { words, form }
    }

    /// `git stash push` of `git stash -u`.
    fn default_operation(&self) -> Option<Self> {
        let read = |(own, other): &(&'static str, &'static str)| (OperationName::read(own), OperationName::read(other));
        let is_it = |own: &OperationName| {
            let others = match &self.form {
                Some(form) => form.plain.len() > own.verbs.len(),
                None => self.words.iter().skip(1 + own.verbs.len()).any(|word| !word.text.starts_with('-')),
            };
            own.program == self.program() && self.has(own) && !others
        };
        let only_tells = ["-v", "-V", "-h", "--version", "--help"];
        if self.words.iter().any(|word| only_tells.contains(&word.text.as_str())) {
            return None;
        }
        let (own, other) = DEFAULTS.iter().map(read).find(|(own, _)| is_it(own))?;
        Some(self.with_name(&other, &own))
    }

    /// `systemctl restart nginx` of `service nginx restart` and `/etc/init.d/nginx restart`.
    fn service(&self) -> Option<Self> {
        let first = self.words.first().filter(|word| word.literal)?;
        let (unit, verb) = match first.text.rsplit_once("/init.d/") {
            Some((_, unit)) => (unit, self.words.get(1)?),
            None if matches!(self.program(), "service" | "rc-service" | "invoke-rc.d") => {
                (self.words.get(1)?.text.as_str(), self.words.get(2)?)
            }
            None => return None,
        };
        let word = |text: &str| Word { text: text.to_owned(), literal: true };
        Some(Self { words: vec![word("systemctl"), verb.clone(), word(unit)], form: None })
    }

    /// `mkfs` of `mkfs.ext4`, and `rm` of `grm`, as GNU programs are called beside others.
    fn without_prefix(&self) -> Option<Self> {
        const GNU: &[&str] = &[
            "grm",
            "gcp",
            "gmv",
            "gln",
            "gchmod",
            "gchown",
            "gmkdir",
            "grmdir",
            "gtouch",
            "gdd",
            "gtee",
            "gshred",
            "gtruncate",
            "gkill",
            "ginstall",
            "gunlink",
            "gcat",
            "gsed",
            "gtar",
            "gfind",
            "gxargs",
        ];
        let program = self.program();
        let plain = match (GNU.contains(&program), program.strip_suffix(".exe")) {
            (true, _) => program.strip_prefix('g')?,
            // As Windows and its subsystem for Linux call them.
            (false, Some(plain)) => plain,
            (false, None) => program.split_once('.').map(|(name, _)| name).filter(|name| *name == "mkfs")?,
        };
        let only = |program| OperationName { program, verbs: Vec::new(), options: Vec::new() };
        Some(self.with_name(&only(plain), &only(program)))
    }

    /// `curl -X POST` of `curl -d x`.
    fn method(&self) -> Vec<Self> {
        let given = |spellings: &[&str]| match &self.form {
            Some(form) => form.options.iter().any(|option| super::is_one_of(option, spellings)),
            None => self.words.iter().any(|word| {
                let name = word.text.split('=').next().unwrap_or_default();
                let is_attached = |one: &&str| one.len() == 2 && word.text.starts_with(one);
                spellings.contains(&name) || spellings.iter().any(is_attached)
            }),
        };
        if given(&["-X", "--request", "-G", "--get"]) {
            return Vec::new();
        }
        let methods = CURL_METHODS.iter().filter(|(_, options)| given(options));
        methods.map(|(method, _)| self.with_option(&["-X", "--request"], Some(method))).collect()
    }

    /// `gh api -X POST` of `gh api -f a=b`.
    fn posted(&self) -> Option<Self> {
        let has = |names: &[&str]| {
            self.words.iter().any(|word| {
                let is_attached = |name: &&str| name.len() == 2 && word.text.starts_with(name);
                names.contains(&word.text.split('=').next().unwrap_or_default()) || names.iter().any(is_attached)
            })
        };
        let posts = has(&["-f", "--raw-field", "-F", "--field", "--input"]) && !has(&["-X", "--method"]);
        posts.then(|| self.with_option(&["-X", "--method"], Some("POST")))
    }

    /// `git checkout main` of `git checkout -B main`.
    fn switched_to(&self) -> Vec<Self> {
        let switches = ["git checkout", "git switch"].map(OperationName::read);
        let Some(own) = switches.iter().find(|name| self.has(name)) else { return Vec::new() };
        let forced = |option: &&FormOption| super::is_one_of(option, &["-B", "-C", "--force-create"]);
        let options = self.form.iter().flat_map(|form| form.options.iter().filter(forced));
        let branches = options.flat_map(|option| option.values.iter());
        let switched = |branch: &Word| {
            let words = ["git", "checkout"].map(|text| Word { text: text.to_owned(), literal: true });
            let others = self.words.iter().skip(1 + own.verbs.len()).filter(|word| word.text != branch.text);
            Self { words: words.into_iter().chain([branch.clone()]).chain(others.cloned()).collect(), form: None }
        };
        branches.map(switched).collect()
    }

    /// `git restore x` of `git checkout -- x`.
    fn restored(&self) -> Option<Self> {
        let checkout = OperationName::read("git checkout");
        let restores = self.has(&checkout) && self.has_word("--");
        restores.then(|| self.with_name(&OperationName::read("git restore"), &checkout))
    }

    /// `cargo build --release` of `cargo build --profile release`, and the reverse.
    fn profile(&self) -> Option<Self> {
        let options = &self.form.as_ref()?.options;
        let is_release = |option: &FormOption| option.values.iter().any(|value| value.text == "release");
        if options.iter().any(|option| super::is_one_of(option, &["--profile"]) && is_release(option)) {
            return Some(self.with_option(&["--release", "-r"], None));
        }
        let is_given = options.iter().any(|option| super::is_one_of(option, &["--release"]));
        is_given.then(|| self.with_option(&["--profile"], Some("release")))
    }

    /// `docker push` of `docker build --push` and `docker buildx bake --push`.
    fn pushed_image(&self) -> Option<Self> {
        let builds = self.has_word("build") || self.has_word("bake");
        let is_pushing = |word: &Word| {
            word.literal
                && (word.text == "--push"
                    || word.text.contains("type=registry")
                    || word.text.split(',').any(|part| part == "push=true"))
        };
        let words = ["docker", "push"].map(|text| Word { text: text.to_owned(), literal: true });
        let behind = || self.words.iter().skip(1).filter(|word| !word.text.starts_with('-')).cloned();
        (builds && self.words.iter().any(is_pushing))
            .then(|| Self { words: words.into_iter().chain(behind()).collect(), form: None })
    }

    fn in_small_letters(&self) -> Self {
        let small = |word: &Word| Word { text: word.text.to_ascii_lowercase(), literal: word.literal };
        let all = |words: &[Word]| words.iter().map(small).collect();
        let form = self.form.as_ref().map(|form| CommandForm { plain: all(&form.plain), ..form.clone() });
        Self { words: all(&self.words), form }
    }
}
