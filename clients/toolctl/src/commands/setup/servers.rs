//! MCP servers in the files of agents: how each is started, which of its texts are secrets, and why some are left alone.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Map, Value};
use toml::Table;

use crate::commands::hook::mcp_servers::runs_this;
use crate::commands::mcp::install;
use crate::commands::setup::bridge::{bridge, settings};
use crate::commands::setup::checked::refusal;
use crate::commands::setup::places::{PLACES, Place};
use crate::commands::setup::record::escaped;
use crate::commands::setup::text::ConfigForm;
use crate::secret_texts::{has_password, is_secret_name, is_secret_part, is_secret_text, password};

/// The largest file that is read, in bytes. Claude Code keeps much else in its own.
const MAX_BYTES: u64 = 32 << 20;

/// A server in a file of an agent.
#[derive(Clone)]
pub(super) struct FoundServer {
    pub(super) place: Place,
    /// With links resolved.
    pub(super) file: PathBuf,
    /// The members that lead to the entry, with its name.
    pub(super) path: Vec<String>,
    /// See [`settings`].
    pub(super) kept: Map<String, Value>,
    pub(super) launch: ServerLaunch,
}

/// A server that stays where it is.
#[derive(Clone)]
pub(super) struct LeftServer {
    pub(super) place: Place,
    pub(super) file: PathBuf,
    pub(super) name: String,
    pub(super) why: String,
}

/// A file that cannot be read.
#[derive(Clone)]
pub(super) struct UnreadFile {
    pub(super) place: Place,
    pub(super) file: PathBuf,
    pub(super) why: String,
}

/// All servers of the machine.
#[derive(Clone, Default)]
pub(super) struct MachineServers {
    pub(super) movable: Vec<FoundServer>,
    pub(super) left: Vec<LeftServer>,
    pub(super) unread: Vec<UnreadFile>,
    /// Entries that start this program already.
    pub(super) own: Vec<(PathBuf, Vec<String>)>,
}

/// How a server is started or reached, as toold's configuration has it but with its secrets in plain text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerLaunch {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    headers: BTreeMap<String, String>,
    /// Secret texts in the members above, by names for them.
    secrets: BTreeMap<String, String>,
}

impl MachineServers {
    /// Reads all files of the person, and those of these projects.
    pub(super) fn read(home: &Path, projects: &[PathBuf]) -> Self {
        let mut found = Self::default();
        let mut seen: Vec<(PathBuf, Vec<String>)> = Vec::new();
        for place in PLACES {
            let own = place.server_files(home).into_iter().map(|(file, holder)| (file, holder, None));
            let of_projects = projects.iter().flat_map(|project| {
                place
                    .project_files(project)
                    .into_iter()
                    .map(move |(file, holder)| (file, holder, Some(project.as_path())))
            });
            for (file, holder, project) in own.chain(of_projects) {
                // The target of a symbolic link is changed, not the link.
                let Ok(file) = file.canonicalize() else { continue };
                if !seen.contains(&(file.clone(), holder.clone())) {
                    seen.push((file.clone(), holder.clone()));
                    found.read_file(place, &file, &holder, project, home);
                }
            }
        }
        found
    }

    /// Leaves the servers that toold does not take where they are, such as one with an address of another kind: one of them
    /// must not stop the others.
    ///
    /// # Errors
    /// As for [`refusal`].
    pub(super) async fn only_valid(mut self) -> anyhow::Result<Self> {
        let numbered = |(at, server): (usize, &FoundServer)| (format!("{}-{at}", server.name()), server.plain_table());
        if refusal(&of_servers(self.movable.iter().enumerate().map(numbered))).await?.is_none() {
            return Ok(self);
        }
        for server in std::mem::take(&mut self.movable) {
            let name = server.name().to_owned();
            match refusal(&of_servers([(name.clone(), server.plain_table())])).await? {
                None => self.movable.push(server),
                Some(why) => {
                    let why = format!("toold does not take it: {why}");
                    self.left.push(LeftServer { place: server.place, file: server.file, name, why });
                }
            }
        }
        Ok(self)
    }

    fn read_file(&mut self, place: Place, file: &Path, holder: &[String], project: Option<&Path>, home: &Path) {
        let text = match read(file) {
            Ok(text) => text,
            Err(why) => return self.unread.push(UnreadFile { place, file: file.to_owned(), why }),
        };
        let form = ConfigForm::of(file);
        let Some(whole) = form.read(&text) else {
            let why = match form {
                ConfigForm::Json => "it is not JSON",
                ConfigForm::Toml => "it is not TOML",
            };
            return self.unread.push(UnreadFile { place, file: file.to_owned(), why: why.to_owned() });
        };
        let mut holders = vec![(holder.to_vec(), project.map(Path::to_owned))];
        // Claude Code also keeps the servers of each project in its own file.
        for project in
            whole["projects"].as_object().into_iter().flat_map(Map::keys).filter(|_| place.name == "claude-code")
        {
            let path = ["projects", project, "mcpServers"].map(str::to_owned).to_vec();
            holders.push((path, Some(PathBuf::from(project))));
        }
        let mut left = None;
        for (holder, project) in holders {
            let entries = holder.iter().try_fold(&whole, |value, name| value.get(name));
            for (name, entry) in entries.and_then(Value::as_object).into_iter().flatten() {
                if runs_toolctl(entry) {
                    self.own.push((file.to_owned(), [holder.clone(), vec![name.clone()]].concat()));
                    continue;
                }
                let path = [holder.clone(), vec![name.clone()]].concat();
                let is_gone = project.as_deref().is_some_and(|project| !project.is_dir());
                let read = ServerLaunch::read(place, name, entry, project.as_deref(), home);
                let span = form.find(&text, &path);
                let left = *left.get_or_insert_with(|| left_because(file));
                let why = match (read, span, left) {
                    (Ok(_), _, _) if is_gone => "the folder of its project is gone".to_owned(),
                    (Ok(_), _, Some(why)) => format!("the file {why}"),
                    (Ok(launch), Some(span), None) if launch.secrets_are_in(&text[span.range.clone()]) => {
                        let (file, kept) = (file.to_owned(), settings(entry));
                        self.movable.push(FoundServer { place, file, path, kept, launch });
                        continue;
                    }
                    (Ok(_), _, None) => "its entry cannot be changed safely".to_owned(),
                    (Err(why), _, _) => why,
                };
                self.left.push(LeftServer { place, file: file.to_owned(), name: name.clone(), why });
            }
        }
    }
}

impl FoundServer {
    pub(super) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// Its table with the names of its secrets in their places.
    fn plain_table(&self) -> Table {
        self.launch.table(&str::to_owned)
    }

    /// The entry that starts the bridge in place of the server.
    pub(super) fn bridge(&self, program: &str, source: &str) -> Map<String, Value> {
        bridge(self.place.client, program, source, self.kept.clone())
    }
}

impl ServerLaunch {
    /// The tables of toold's configuration; `named` gives the name of a secret by its own.
    pub(super) fn table(&self, named: &dyn Fn(&str) -> String) -> Table {
        // The longest first: another one may be a part of it.
        let mut secrets: Vec<_> = self.secrets.iter().collect();
        secrets.sort_by_key(|(_, secret)| std::cmp::Reverse(secret.len()));
        let hidden = |text: &String| {
            let (mut done, mut rest) = (String::new(), text.as_str());
            // In one pass: a reference may contain the text of another secret.
            while let Some(next) = rest.chars().next() {
                match secrets.iter().find(|(_, secret)| rest.starts_with(secret.as_str())) {
                    Some((name, secret)) => {
                        done.push_str(&format!("${{secret:{}}}", named(name)));
                        rest = &rest[secret.len()..];
                    }
                    None => {
                        done.push(next);
                        rest = &rest[next.len_utf8()..];
                    }
                }
            }
            done
        };
        let texts = |texts: &BTreeMap<String, String>| -> Table {
            texts.iter().map(|(name, text)| (name.clone(), hidden(text).into())).collect()
        };
        let mut table = Table::new();
        for (key, text) in [("command", &self.command), ("cwd", &self.cwd), ("url", &self.url)] {
            table.extend(text.as_ref().map(|text| (key.to_owned(), hidden(text).into())));
        }
        if !self.args.is_empty() {
            table.insert("args".to_owned(), self.args.iter().map(hidden).collect::<Vec<_>>().into());
        }
        for (key, members) in [("env", &self.env), ("headers", &self.headers)] {
            if !members.is_empty() {
                table.insert(key.to_owned(), texts(members).into());
            }
        }
        table
    }

    /// The secret texts by their own names.
    pub(super) fn secrets(&self) -> impl Iterator<Item = (&str, &str)> {
        self.secrets.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether each of them stands in the text of its entry, where it can be put back.
    fn secrets_are_in(&self, text: &str) -> bool {
        self.secrets.values().all(|secret| text.contains(secret) || text.contains(&escaped(secret)))
    }

    /// The command or URL for people, without secrets.
    pub(super) fn shown(&self) -> String {
        let words = self.command.iter().chain(&self.args).chain(&self.url);
        let mut text = words.cloned().collect::<Vec<_>>().join(" ");
        for secret in self.secrets.values() {
            text = text.replace(secret, "***");
        }
        text
    }

    /// Whether its agent may have a login for it, which stays there: it is reached without a header of its own.
    pub(super) fn may_want_login(&self) -> bool {
        self.url.is_some() && !self.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"))
    }

    /// Reads an entry of any client.
    ///
    /// # Errors
    /// Why the daemon cannot start it in the agent's place.
    fn read(place: Place, name: &str, entry: &Value, project: Option<&Path>, home: &Path) -> Result<Self, String> {
        let is_off = entry["disabled"] == true || entry["enabled"] == false;
        if is_off {
            return Err("it is switched off".to_owned());
        }
        if name.is_empty() || name.len() > 60 || name.contains('/') || name.chars().any(char::is_control) {
            return Err("its name is not one that toold can use".to_owned());
        }
        if entry.get("envFile").is_some() {
            return Err("it reads a file of variables (envFile)".to_owned());
        }
        let own_variables = |member: &str| entry[member].as_object().into_iter().flat_map(Map::keys);
        let own: Vec<&str> = ["env", "environment"].into_iter().flat_map(own_variables).map(String::as_str).collect();
        // Agents write numbers without quotes, too. What is of another form is not guessed at.
        let text = |name: &str, value: &Value| match value {
            Value::String(value) => translated(place, value, home, &[]),
            Value::Number(_) | Value::Bool(_) => Ok(value.to_string()),
            _ => Err(format!("{name} is not a text")),
        };
        let texts = |member: &str, value: &Value| -> Result<BTreeMap<String, String>, String> {
            match value {
                Value::Null => Ok(BTreeMap::new()),
                Value::Object(members) => {
                    members.iter().map(|(name, value)| Ok((name.clone(), text(name, value)?))).collect()
                }
                _ => Err(format!("its {member} is not an object")),
            }
        };
        let list = |member: &str, value: &Value| -> Result<Vec<String>, String> {
            let of_list = |item: &Value| match item {
                Value::String(item) => translated(place, item, home, &own),
                _ => text(&format!("a part of {member}"), item),
            };
            match value {
                Value::Null => Ok(Vec::new()),
                Value::Array(items) => items.iter().map(of_list).collect(),
                _ => Err(format!("its {member} is not a list")),
            }
        };
        let mut launch = Self::default();
        match &entry["command"] {
            Value::String(_) => launch.command = Some(text("command", &entry["command"])?),
            Value::Array(_) => {
                let mut words = list("command", &entry["command"])?;
                if !words.is_empty() {
                    launch.command = Some(words.remove(0));
                    launch.args = words;
                }
            }
            // Zed's older form.
            Value::Object(command) => {
                launch.command = command.get("path").map(|path| text("path", path)).transpose()?;
                launch.args = list("args", command.get("args").unwrap_or(&Value::Null))?;
                launch.env = texts("env", command.get("env").unwrap_or(&Value::Null))?;
            }
            _ => {}
        }
        launch.args.extend(list("args", &entry["args"])?);
        for member in ["env", "environment"] {
            launch.env.extend(texts(member, &entry[member])?);
        }
        for variable in list("env_vars", &entry["env_vars"])? {
            let value = variable_of(&variable, None)?;
            launch.env.insert(variable, value);
        }
        for member in ["headers", "http_headers"] {
            launch.headers.extend(texts(member, &entry[member])?);
        }
        for (header, variable) in texts("env_http_headers", &entry["env_http_headers"])? {
            launch.headers.insert(header, variable_of(&variable, None)?);
        }
        if let Some(variable) = entry["bearer_token_env_var"].as_str() {
            launch.headers.insert("Authorization".to_owned(), format!("Bearer {}", variable_of(variable, None)?));
        }
        let url = ["url", "httpUrl", "serverUrl"].into_iter().find_map(|member| Some((member, entry.get(member)?)));
        launch.url = url.map(|(member, url)| text(member, url)).transpose()?;
        launch.cwd = match (entry.get("cwd"), project) {
            (Some(cwd), _) => Some(text("cwd", cwd)?),
            (None, Some(project)) if launch.command.is_some() => Some(project.display().to_string()),
            (None, _) => None,
        };
        if place.name == "zed" && launch.command.is_none() && launch.url.is_none() {
            return Err("an extension of Zed starts it".to_owned());
        }
        launch.check(project)?;
        launch.find_secrets();
        Ok(launch)
    }

    fn check(&self, project: Option<&Path>) -> Result<(), String> {
        match (&self.command, &self.url) {
            (None, None) => return Err("its entry says neither how to start nor where to reach it".to_owned()),
            (Some(_), Some(_)) => return Err("its entry has both a command and a URL".to_owned()),
            (Some(_), None) | (None, Some(_)) => {}
        }
        if self.cwd.as_deref().is_some_and(|cwd| !cwd.starts_with(['/', '~'])) {
            return Err("its cwd is not an absolute path".to_owned());
        }
        match self.relative_word() {
            Some(word) if project.is_none() && self.cwd.is_none() => {
                Err(format!("{word} depends on the folder that the agent works in"))
            }
            _ => Ok(()),
        }
    }

    /// The first text that names something in the working folder.
    fn relative_word(&self) -> Option<&str> {
        let is_in_folder = |command: &&String| command.contains('/') && !command.starts_with(['/', '~']);
        if let Some(command) = self.command.iter().find(is_in_folder) {
            return Some(command);
        }
        let mut before = self.command.as_deref().unwrap_or_default();
        let shell = Path::new(before).file_name().and_then(|name| name.to_str());
        let is_shell = shell.is_some_and(|shell| ["sh", "bash", "dash", "zsh", "fish", "ksh"].contains(&shell));
        for argument in &self.args {
            let is_script = is_shell && before.starts_with('-') && before.ends_with('c');
            let is_folder = FOLDER_OPTIONS.contains(&before) && is_relative(argument);
            if is_folder || depends_on_folder(argument) || is_script && script_depends_on_folder(argument) {
                return Some(argument);
            }
            before = argument;
        }
        self.env.values().map(String::as_str).find(|value| starts_in_folder(value))
    }

    fn find_secrets(&mut self) {
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, value) in &self.env {
            if is_secret_name(name) || is_secret_text(value) || has_password(value) {
                found.push((name.clone(), value.clone()));
            } else {
                found.extend(secrets_in_line(value));
            }
        }
        for (name, value) in &self.headers {
            let (scheme, rest) = value.split_once(' ').unwrap_or(("", value));
            if is_secret_name(name) || ["bearer", "basic", "token"].contains(&scheme.to_lowercase().as_str()) {
                found.push((name.clone(), rest.to_owned()));
            }
        }
        let words: Vec<&str> = self.command.iter().chain(&self.args).map(String::as_str).collect();
        found.extend(secret_arguments(&words));
        found.extend(self.args.iter().flat_map(|argument| secrets_in_line(argument)));
        if let Some(url) = &self.url {
            found.extend(password(url).map(|password| ("URL_PASSWORD".to_owned(), password.to_owned())));
            found.extend(secrets_of_url(url));
        }
        for (name, value) in found {
            // toold takes no shorter ones, which cannot be told from ordinary text; references to variables are no secrets.
            let is_one = value.trim().chars().count() >= 6 && !value.contains("${");
            if is_one && !self.secrets.values().any(|known| *known == value) {
                let mut name = plain_name(&name);
                while self.secrets.contains_key(&name) {
                    name.push('_');
                }
                self.secrets.insert(name, value);
            }
        }
        // A part of a longer secret, such as the password of a connection string, moves with that.
        let table = self.table(&str::to_owned).to_string();
        self.secrets.retain(|name, _| table.contains(&format!("${{secret:{name}}}")));
    }
}

/// The secrets in a text that has words of its own: a line for a shell, a header, a URL, the settings of a connection.
fn secrets_in_line(line: &str) -> Vec<(String, String)> {
    let words = line.split(|c: char| c.is_whitespace() || ";|&?".contains(c));
    let words: Vec<&str> = words.map(|word| word.trim_matches(['"', '\''])).filter(|word| !word.is_empty()).collect();
    let urls = words.iter().filter(|word| word.contains("://")).flat_map(|url| secrets_of_url(url));
    secret_arguments(&words).into_iter().chain(urls).collect()
}

/// The parts of a URL's path that look like keys, and its parameters that are secrets.
fn secrets_of_url(url: &str) -> Vec<(String, String)> {
    let (address, query) = url.split_once('?').unwrap_or((url, ""));
    let parts = address.split('/').skip(3).filter(|part| is_secret_part(part));
    let parameters = query.split('&').filter_map(|part| part.split_once('='));
    let secret = parameters.filter(|(name, value)| is_secret_name(name) || is_secret_text(value));
    let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    parts.map(|part| ("URL", part)).chain(secret).map(owned).collect()
}

/// The secrets among these words, with their names: those after an option, behind a name, or by themselves.
fn secret_arguments(words: &[&str]) -> Vec<(String, String)> {
    let short = ShortOptions::of(words);
    let mut found = Vec::new();
    let mut before = "";
    for word in words {
        let is_value = !word.starts_with('-') && !before.is_empty();
        let named = before.trim_start_matches('-').trim_end_matches(':');
        let is_after_name = before.starts_with('-') != before.ends_with(':') && is_secret_name(named);
        let is_scheme = |word: &str| ["bearer", "basic"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme));
        let assigned = word.strip_prefix("--env=").unwrap_or(word);
        if let Some(password) = short.password(before, word) {
            found.push(("PASSWORD".to_owned(), password.to_owned()));
        } else if let Some((option, value)) = assigned.split_once('=').filter(|(option, _)| option.starts_with('-')) {
            if is_secret_name(option) || is_secret_text(value) {
                found.push((option.trim_start_matches('-').to_owned(), value.to_owned()));
            }
        } else if is_value && is_after_name && !is_scheme(word) {
            found.push((named.to_owned(), (*word).to_owned()));
        } else if let Some((_, token)) = word.split_once("Bearer ") {
            found.push(("Authorization".to_owned(), token.to_owned()));
        } else if is_value && is_scheme(before) {
            found.push(("Authorization".to_owned(), (*word).to_owned()));
        } else if is_secret_text(word) || has_password(word) {
            found.push(("ARGUMENT".to_owned(), (*word).to_owned()));
        } else if let Some((name, value)) = assigned.split_once(['=', ':']).filter(|(name, _)| is_secret_name(name))
            && !value.starts_with(['/', '~', '.'])
            && !value.contains(' ')
            && !value.contains("//")
        {
            found.push((name.to_owned(), value.trim_matches(['"', '\'']).to_owned()));
        }
        before = word;
    }
    found
}

/// How short options are meant among these words, of which each program has its own: `-p` is a password here, and a port there.
struct ShortOptions {
    takes_user: bool,
    attaches_password: bool,
    is_redis: bool,
    is_runner: bool,
}

impl ShortOptions {
    fn of(words: &[&str]) -> Self {
        const PASSWORD_ATTACHED: [&str; 5] = ["mysql", "mariadb", "mysqldump", "mysqladmin", "sshpass"];
        let has = |names: &[&str]| words.iter().any(|word| names.contains(&word.rsplit('/').next().unwrap_or(word)));
        Self {
            takes_user: has(&["-u", "--user", "--username", "-U", "mongosh", "mongo", "sshpass"]),
            attaches_password: has(&PASSWORD_ATTACHED),
            is_redis: has(&["redis-cli"]),
            is_runner: has(&["npx", "uvx", "bunx", "npm", "pnpm", "docker", "podman"]),
        }
    }

    /// The password that `word` is, or has: `-p PASSWORD`, `-pPASSWORD`, `-a PASSWORD`, `-u USER:PASSWORD`.
    fn password<'w>(&self, before: &str, word: &'w str) -> Option<&'w str> {
        let attached = word.strip_prefix("-p").filter(|rest| !rest.is_empty() && self.attaches_password);
        if let Some(password) = attached {
            return Some(password);
        }
        let is_number = |text: &str| text.parse::<u16>().is_ok();
        let is_place = word.starts_with(['-', '/', '~', '.', '@']) || word.contains("://");
        let is_of_port = |part: &str| is_number(part) || ["localhost", "tcp", "udp"].contains(&part);
        let is_port = word.split(['/', ':', '.', '-']).all(is_of_port);
        match before {
            "-p" if is_place || is_port || self.is_runner => None,
            "-p" => (self.takes_user || has_signs(word)).then_some(word),
            "-a" if self.is_redis => Some(word).filter(|_| !is_place),
            "-u" | "--user" => {
                let (user, password) = word.split_once(':')?;
                (!is_place && !user.is_empty() && !is_number(password) && !self.is_runner).then_some(password)
            }
            _ => None,
        }
    }
}

/// Whether a word is more than letters: it has a digit, or a sign that no name has.
fn has_signs(word: &str) -> bool {
    word.len() >= 6 && word.chars().any(|c| !c.is_ascii_alphabetic() && !"-_./".contains(c))
}

/// A configuration with these servers.
fn of_servers(servers: impl IntoIterator<Item = (String, Table)>) -> Table {
    let servers: Table = servers.into_iter().map(|(name, table)| (name, table.into())).collect();
    let mcp = Table::from_iter([("servers".to_owned(), servers.into())]);
    Table::from_iter([("mcp".to_owned(), mcp.into())])
}

/// Options whose value is a folder.
const FOLDER_OPTIONS: [&str; 7] = ["--directory", "--dir", "--cwd", "--workdir", "--root", "--prefix", "-C"];

/// Whether the path begins with the working folder, by name.
fn starts_in_folder(path: &str) -> bool {
    matches!(path, "." | "..") || path.starts_with("./") || path.starts_with("../")
}

/// Whether a path that begins with none of the marks of other places is below the working folder.
fn is_relative(path: &str) -> bool {
    !path.is_empty() && !path.starts_with(['/', '~', '-', '@', '$']) && !path.contains("://")
}

/// Whether an argument names something in the working folder: by its beginning, or because it is a file of a program or of
/// settings. Other words with a slash are the names of packages and images, as a rule.
fn depends_on_folder(argument: &str) -> bool {
    const FILES: [&str; 20] = [
        "cjs", "conf", "db", "ini", "jar", "js", "json", "lua", "mjs", "mts", "php", "pl", "py", "rb", "sh", "sqlite",
        "toml", "ts", "yaml", "yml",
    ];
    // `--dir=./data`, `DB=data.db`, `./data:/data`
    let mut pieces = argument.split(['=', ':', ',']);
    let value = argument.split_once('=').map_or(argument, |(_, value)| value);
    let is_file = |path: &str| {
        is_relative(path)
            && !path.contains(char::is_whitespace)
            && Path::new(path).extension().is_some_and(|end| FILES.iter().any(|known| end == *known))
    };
    pieces.any(starts_in_folder) || is_file(argument) || is_file(value)
}

/// Whether a line for a shell names something in the working folder, or the folder itself.
fn script_depends_on_folder(script: &str) -> bool {
    let is_separator = |c: char| c.is_whitespace() || ";|&()<>`\"'".contains(c);
    let is_folder = |word: &str| matches!(word, "pwd" | "$PWD") || word.starts_with("$PWD/");
    script.split(is_separator).any(|word| depends_on_folder(word) || is_folder(word))
}

/// A part of the name of a secret.
pub(super) fn plain_name(name: &str) -> String {
    let plain = name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' });
    plain.take(48).collect()
}

/// Whether the entry starts a `toolctl mcp`, of this installation or another.
fn runs_toolctl(entry: &Value) -> bool {
    let words: Vec<&str> = match &entry["command"] {
        Value::String(command) => vec![command],
        Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
        _ => return false,
    };
    let is_named = words.first().is_some_and(|word| Path::new(word).file_name().is_some_and(|name| name == "toolctl"));
    let mut rest = words[1.min(words.len())..].iter().copied();
    let in_args = entry["args"].as_array().is_some_and(|args| args.iter().any(|word| word == "mcp"));
    runs_this(entry) || is_named && (in_args || rest.any(|word| word == "mcp"))
}

/// A text of an agent's file as toold's configuration has it. `own`: the variables that the entry sets itself.
///
/// # Errors
/// It stands for something that only the agent knows.
fn translated(place: Place, text: &str, home: &Path, own: &[&str]) -> Result<String, String> {
    // These take a variable without braces, as the whole text.
    let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if let Some(variable) = text.strip_prefix('$').filter(|name| is_name(name))
        && ["gemini", "qwen-code", "mcphub"].contains(&place.name)
    {
        return variable_of(variable, None);
    }
    let mut done = String::new();
    let mut rest = text;
    let opens = |rest: &str| -> Option<(usize, &'static str)> {
        let braces = rest.find("${").map(|at| (at, "${"));
        // opencode writes references without a dollar.
        let bare = ["{env:", "{file:"].iter().filter_map(|start| rest.find(start)).min().map(|at| (at, "{"));
        braces.or(bare.filter(|_| place.name == "opencode"))
    };
    while let Some((at, open)) = opens(rest) {
        done.push_str(&rest[..at]);
        let inside = &rest[at + open.len()..];
        let (reference, behind) = inside.split_once('}').ok_or("it has a reference without an end")?;
        let (name, default) = match reference.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (reference, None),
        };
        match name.strip_prefix("env:").unwrap_or(name) {
            "userHome" => done.push_str(&home.display().to_string()),
            // The server fills it in, as `mcp-remote` does in `--header Authorization:${AUTH}`. toold leaves it, too.
            variable if own.contains(&variable) && reference == variable && std::env::var_os(variable).is_none() => {
                done.push_str(&format!("${{{variable}}}"));
            }
            variable if is_name(variable) && name != "workspaceFolder" => {
                done.push_str(&variable_of(variable, default)?);
            }
            other => return Err(format!("${{{other}}} is known to the agent alone")),
        }
        rest = behind;
    }
    done.push_str(rest);
    Ok(done)
}

/// The reference of toold's configuration to a variable.
///
/// # Errors
/// The variable has neither a value here nor a default.
fn variable_of(variable: &str, default: Option<&str>) -> Result<String, String> {
    // The daemon's have nothing to do with the agent's.
    if matches!(variable, "PWD" | "OLDPWD") || variable.ends_with("_PROJECT_DIR") {
        return Err(format!("the variable {variable} is known to the agent alone"));
    }
    match default {
        Some(default) => Ok(format!("${{env:{variable}:-{default}}}")),
        None if std::env::var_os(variable).is_some() => Ok(format!("${{env:{variable}}}")),
        None => Err(format!("it wants the variable {variable}, which is not set here")),
    }
}

/// The text of a file.
///
/// # Errors
/// Why it cannot be read, or changed as text.
pub(super) fn read(file: &Path) -> Result<String, String> {
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is no regular file".to_owned());
    }
    if about.len() > MAX_BYTES {
        return Err("it is larger than 32 MiB".to_owned());
    }
    std::fs::read_to_string(file).map_err(|error| error.to_string())
}

/// Why setup leaves a file as it is, in words that follow its name.
pub(super) fn left_because(file: &Path) -> Option<&'static str> {
    if is_tracked(file) {
        return Some("is tracked by Git");
    }
    // Files are replaced as a whole, so this depends on the folder.
    let folder = file.ancestors().skip(1).find(|folder| folder.is_dir())?;
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_err().then_some("is in a folder that you may not write")
}

/// Whether Git tracks the file, also where it cannot be asked.
pub(super) fn is_tracked(file: &Path) -> bool {
    // The folders of a file that is not there yet may not be there, either.
    let Some(folder) = file.ancestors().skip(1).find(|folder| folder.is_dir()) else { return false };
    let Ok(below) = file.strip_prefix(folder) else { return false };
    let ls_files = |options: &[&OsStr]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(folder).args(options);
        git.args(["-c", "core.fsmonitor=false", "ls-files", "--error-unmatch", "--"]).arg(below);
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
            git.env_remove(variable);
        }
        let status = git.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        status.ok().and_then(|status| status.code())
    };
    // 1: it knows the folder, and does not track the file.
    if file.ancestors().any(|above| above.join(".git").exists()) && ls_files(&[]) != Some(1) {
        return true;
    }
    let Ok(home) = install::home() else { return false };
    let home = home.canonicalize().unwrap_or(home);
    // Such a repository that does not answer is one of something else.
    folder.starts_with(&home)
        && bare_repositories(&home).iter().any(|repository| {
            let options = ["--git-dir".as_ref(), repository.as_os_str(), "--work-tree".as_ref(), home.as_os_str()];
            ls_files(&options) == Some(0)
        })
}

/// The repositories beside the files that they may track: people keep those of their settings in one whose work tree is the home
/// folder, as yadm and vcsh do.
fn bare_repositories(home: &Path) -> Vec<PathBuf> {
    let yadm = [".local/share/yadm/repo.git", ".config/yadm/repo.git"].map(|name| home.join(name));
    let inside = [home.to_owned(), home.join(".config"), home.join(".config/vcsh/repo.d"), home.join(".local/share")];
    let entries = inside.iter().filter_map(|folder| std::fs::read_dir(folder).ok()).flatten().flatten();
    let is_repository = |folder: &PathBuf| folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    yadm.into_iter().chain(entries.map(|entry| entry.path())).filter(is_repository).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn launch(place: &str, entry: Value) -> Result<ServerLaunch, String> {
        let place = PLACES.into_iter().find(|known| known.name == place).unwrap();
        ServerLaunch::read(place, "x", &entry, None, Path::new("/home/u"))
    }

    fn shown(place: &str, entry: Value) -> Value {
        serde_json::to_value(launch(place, entry).unwrap().table(&|name| format!("X_{name}"))).unwrap()
    }

    #[test]
    fn entries_of_all_clients_are_read() {
        let expected = json!({"command": "npx", "args": ["-y", "@a/b"], "env": {"A": "b"}});
        for (place, entry) in [
            ("claude-code", json!({"type": "stdio", "command": "npx", "args": ["-y", "@a/b"], "env": {"A": "b"}})),
            (
                "opencode",
                json!({"type": "local", "command": ["npx", "-y", "@a/b"], "environment": {"A": "b"}, "enabled": true}),
            ),
            ("zed", json!({"command": {"path": "npx", "args": ["-y", "@a/b"], "env": {"A": "b"}}, "settings": {}})),
            ("zed", json!({"source": "custom", "command": "npx", "args": ["-y", "@a/b"], "env": {"A": "b"}})),
            ("codex", json!({"command": "npx", "args": ["-y", "@a/b"], "env": {"A": "b"}, "startup_timeout_sec": 20})),
        ] {
            assert_eq!(shown(place, entry), expected, "{place}");
        }
        for (place, entry) in [
            ("gemini", json!({"httpUrl": "https://a.example/mcp"})),
            ("windsurf", json!({"serverUrl": "https://a.example/mcp"})),
            ("opencode", json!({"type": "remote", "url": "https://a.example/mcp"})),
        ] {
            assert_eq!(shown(place, entry), json!({"url": "https://a.example/mcp"}), "{place}");
        }
    }

    #[test]
    fn secrets_do_not_stay_in_texts() {
        let env = json!({"command": "x", "env": {"GITHUB_TOKEN": "ghp_0123456789abcdef", "LOG": "debug", "KEYBOARD": "german"}});
        assert_eq!(
            shown("cursor", env)["env"],
            json!({"GITHUB_TOKEN": "${secret:X_GITHUB_TOKEN}", "LOG": "debug", "KEYBOARD": "german"})
        );
        let headers =
            json!({"url": "https://a.example/mcp?api_key=abcdefgh", "headers": {"Authorization": "Bearer abcdefgh1"}});
        let read = shown("vscode", headers);
        assert_eq!(read["headers"]["Authorization"], "Bearer ${secret:X_AUTHORIZATION}");
        assert_eq!(read["url"], "https://a.example/mcp?api_key=${secret:X_API_KEY}");
        let args = json!({"command": "x", "args": ["--api-key", "abcdefgh", "--token=ijklmnop", "--level=debug", "postgres://u:pw12345@h/d", "-H", "Authorization: Bearer qrstuvwx"]});
        let read = shown("cursor", args);
        assert_eq!(
            read["args"],
            json!([
                "--api-key",
                "${secret:X_API_KEY}",
                "--token=${secret:X_TOKEN}",
                "--level=debug",
                "${secret:X_ARGUMENT}",
                "-H",
                "Authorization: Bearer ${secret:X_AUTHORIZATION}"
            ])
        );
        for (args, secrets) in [
            (json!(["-u", "root", "-p", "hunter2"]), vec!["hunter2"]),
            (json!(["-u", "root", "-p", "abcdef"]), vec!["abcdef"]),
            (json!(["-p", "Hunter22"]), vec!["Hunter22"]),
            (json!(["--password=pw/1+2", "--level=debug"]), vec!["pw/1+2"]),
            (json!(["--password", "abcdef"]), vec!["abcdef"]),
            (json!(["-c", "PGPASSWORD=a/b+cd psql -h db"]), vec!["a/b+cd"]),
            (json!(["-c", "mysql -uroot -pS3cret db"]), vec!["S3cret"]),
            (json!(["-c", "redis-cli -a S3cret ping"]), vec!["S3cret"]),
            (json!(["-c", "curl -u me:S3cret https://a.example"]), vec!["S3cret"]),
            (json!(["run", "-e", "PGPASSWORD=secret", "--env=MYSQL_PWD=pw3456", "image"]), vec!["secret", "pw3456"]),
            (json!(["--header", "X-API-Key: abcdefgh"]), vec!["abcdefgh"]),
            (json!(["--header=Authorization: Bearer abcdefgh"]), vec!["abcdefgh"]),
            (json!(["https://a.example/mcp?api_key=abcdefgh&b=c"]), vec!["abcdefgh"]),
            (json!(["Server=db;User=me;Password=abcdef;"]), vec!["abcdef"]),
            (json!(["host=db user=me password=abcdef"]), vec!["abcdef"]),
            (json!(["-p", "8080", "-p", "127.0.0.1:80:80", "-p", "default"]), vec![]),
            (json!(["-u", "postgres", "-p", "5432"]), vec![]),
            (json!(["-y", "-p", "server9-mcp", "npx"]), vec![]),
            (json!(["--user", "1000:1000", "--auth", "none", "-v", "secret:/run/secret"]), vec![]),
        ] {
            let launch = launch("cursor", json!({"command": "/usr/bin/x", "args": args})).unwrap();
            let mut found: Vec<&str> = launch.secrets.values().map(String::as_str).collect();
            found.sort_by_key(|secret| args.to_string().find(secret));
            assert_eq!(found, secrets, "{args}");
            let table = serde_json::to_string(&launch.table(&|name| name.to_owned())).unwrap();
            assert!(secrets.iter().all(|secret| !table.contains(&format!("\"{secret}"))), "{table}");
        }
        let connection = json!({"command": "x", "env": {"CONNECTION": "host=db password=abcdef"}});
        assert_eq!(shown("cursor", connection)["env"]["CONNECTION"], "host=db password=${secret:X_PASSWORD}");
        // The value of one is a part of the reference to another.
        let nested = json!({"command": "x", "env": {"A_TOKEN": "abcdefgh", "PASSWORD": "secret"}});
        let expected = json!({"A_TOKEN": "${secret:X_A_TOKEN}", "PASSWORD": "${secret:X_PASSWORD}"});
        assert_eq!(shown("cursor", nested)["env"], expected);
        for (text, hidden) in [
            ("API_KEY=abcdef012345 exec /bin/srv.py", "API_KEY=${secret:X_API_KEY} exec /bin/srv.py"),
            ("x --token 'abcdef01' | y", "x --token '${secret:X_TOKEN}' | y"),
        ] {
            let read = shown("cursor", json!({"command": "sh", "args": ["-c", text]}));
            assert_eq!(read["args"], json!(["-c", hidden]));
        }
        for url in ["https://a.example/s/%/mcp", "https://a.example/%", "https://a.example/x?b=c&d=%"] {
            let key = "NzY1YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZg";
            let read = shown("cursor", json!({"url": url.replace('%', key)}));
            assert!(!read.to_string().contains(key) && read.to_string().contains("${secret:"), "{read}");
        }
        let read = shown(
            "cursor",
            json!({"command": "x", "env": {
                "SLACK_WEBHOOK": "https://hooks.example/T0/B0/XXXX", "CREDS": "-----BEGIN PRIVATE KEY-----abc",
            }}),
        );
        assert_eq!(read["env"], json!({"SLACK_WEBHOOK": "${secret:X_SLACK_WEBHOOK}", "CREDS": "${secret:X_CREDS}"}));
    }

    #[test]
    fn what_only_the_agent_knows_stays() {
        for entry in [
            json!({"command": "x", "args": ["${input:key}"]}),
            json!({"command": "x", "args": ["${workspaceFolder}/a"]}),
            json!({"command": "x", "args": ["."]}),
            json!({"command": "./x"}),
            json!({"command": "x", "env": {"A": "${NO_SUCH_VARIABLE_HERE}"}}),
            json!({"command": "x", "disabled": true}),
            json!({"command": "x", "enabled": false}),
            json!({"command": "x", "envFile": ".env"}),
            json!({"settings": {}}),
            json!({"command": "x", "args": "one two"}),
            json!({"command": "x", "args": [["a"]]}),
            json!({"command": "x", "args": [null]}),
            json!({"command": "x", "env": ["A=b"]}),
            json!({"command": "x", "env": {"A": null}}),
            json!({"command": ["x", {}]}),
            json!({"url": 3.5, "headers": "a"}),
            json!({"command": "x", "args": ["--dir=./data"]}),
            json!({"command": "docker", "args": ["run", "-v", "./data:/data", "image"]}),
            json!({"command": "python3", "args": ["server.py"]}),
            json!({"command": "node", "args": ["dist/index.js"]}),
            json!({"command": "uv", "args": ["--directory", "tools", "run", "x"]}),
            json!({"command": "env", "args": ["DB=./data.db", "x"]}),
            json!({"command": "x", "env": {"DB": "./data.db"}}),
            json!({"command": "sh", "args": ["-c", "exec ./x"]}),
            json!({"command": "/bin/bash", "args": ["-lc", "cd $PWD/a; x"]}),
            json!({"command": "x", "args": ["${PWD}"]}),
            json!({"command": "x", "args": ["${CLAUDE_PROJECT_DIR:-.}"]}),
            json!({"command": "x", "url": "https://a.example"}),
        ] {
            assert!(launch("vscode", entry.clone()).is_err(), "{entry}");
        }
        for args in [
            json!(["-y", "@scope/server"]),
            json!(["run", "-i", "mcp/github"]),
            json!(["mcp-remote", "https://a.example/x.json"]),
            json!(["/srv/server.py", "~/data.db", "--directory", "/srv"]),
            json!(["-c", "cd /srv && exec x"]),
        ] {
            let found = launch("vscode", json!({"command": "sh", "args": args}));
            assert!(found.is_ok(), "{args}: {found:?}");
        }
        let numbers =
            launch("vscode", json!({"command": "x", "args": ["--port", 8080, true], "env": {"N": 1}})).unwrap();
        assert_eq!((numbers.args.join(" "), numbers.env["N"].as_str()), ("--port 8080 true".to_owned(), "1"));
        assert!(launch("opencode", json!({"command": ["x", "{file:~/.key}"]})).is_err());
        assert!(launch("gemini", json!({"command": "x", "env": {"API_KEY": "$NO_SUCH_VARIABLE_HERE"}})).is_err());
        assert_eq!(launch("gemini", json!({"command": "x", "env": {"K": "$PATH"}})).unwrap().env["K"], "${env:PATH}");
        assert_eq!(
            launch("claude-code", json!({"command": "x", "args": ["${NO_SUCH:-d}"]})).unwrap().args,
            ["${env:NO_SUCH:-d}"]
        );
    }

    #[test]
    fn bridges_of_any_installation_are_known() {
        assert!(runs_toolctl(&json!({"command": "/opt/toolctl", "args": ["mcp", "--source", "a"]})));
        assert!(runs_toolctl(&json!({"command": ["toolctl", "mcp"]})));
        assert!(!runs_toolctl(&json!({"command": "other", "args": ["mcp"]})));
        assert!(!runs_toolctl(&json!({"url": "https://a.example"})));
    }
}
