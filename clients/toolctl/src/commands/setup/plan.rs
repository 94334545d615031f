//! What setup would change, computed from files alone: nothing is started, asked or written.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::Context;
use toml::{Table, Value};
use toold_proto::mcp::WITHOUT_FILES_AND_SHELL;
use toold_proto::tool::SourceKind;

use crate::commands::agents::hooks_file::{self, HookCommand};
use crate::commands::hook::installed;
use crate::commands::mcp::{jsonc, toml_table};
use crate::commands::setup::allowances::AgentAllowance;
use crate::commands::setup::folders::WorkFolder;
use crate::commands::setup::level;
use crate::commands::setup::places::{PLACES, Place};
use crate::commands::setup::record::{ChangedEntry, ChangedFile, KeptText, SetupRecord, TextStep};
use crate::commands::setup::rules::{AgentDenial, AgentRules};
use crate::commands::setup::servers::{
    FoundServer, LeftServer, MachineServers, ServerLaunch, UnreadFile, left_because, plain_name,
};
use crate::commands::setup::text::{ConfigForm, spliced};
use crate::config_file;

pub(super) struct SetupPlan {
    pub(super) places: Vec<Place>,
    /// Entries that become bridges, with the names of their servers here.
    pub(super) moves: Vec<(FoundServer, String)>,
    pub(super) sources: Vec<PlannedSource>,
    pub(super) left: Vec<LeftServer>,
    /// By agent, the person's own file with servers.
    pub(super) own_files: Vec<(&'static str, PathBuf)>,
    /// Files that cannot be read, which are left as they are.
    pub(super) unread: Vec<UnreadFile>,
    /// Changes that are not possible, with the reason.
    pub(super) problems: Vec<String>,
    pub(super) rules: AgentRules,
    /// Denials that are not in the configuration yet.
    pub(super) denials: Vec<AgentDenial>,
    /// What agents allow that can hold here too and is not in the configuration yet.
    pub(super) allowances: Vec<AgentAllowance>,
    pub(super) folders: Vec<WorkFolder>,
    /// Agents whose hooks, and agents and editors whose entry for toold, are new.
    pub(super) new_hooks: Vec<&'static str>,
    pub(super) new_entries: Vec<&'static str>,
    /// Agents and editors whose file is gone, and that get the bridges of their servers again.
    pub(super) returned: Vec<String>,
    /// Entries that are bridges already.
    pub(super) bridges: usize,
    pub(super) changes: Vec<SetupChange>,
    pub(super) config: PathBuf,
}

/// A server that toold mounts in place of those of the agents.
pub(super) struct PlannedSource {
    pub(super) name: String,
    pub(super) launch: ServerLaunch,
    /// Names here of its secrets, by their own.
    secret_names: BTreeMap<String, String>,
    pub(super) is_new: bool,
}

/// A file with its text before and after, and what the record says of the change.
pub(super) struct SetupChange {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    pub(super) after: String,
    pub(super) steps: Vec<TextStep>,
    pub(super) entries: Vec<ChangedEntry>,
    pub(super) added: Vec<Vec<String>>,
    pub(super) hooks: Option<String>,
    pub(super) blocks: Vec<String>,
}

/// What the plan depends on beside the files of agents.
pub(super) struct PlanInput<'a> {
    pub(super) home: &'a Path,
    pub(super) program: &'a str,
    /// toold's own configuration.
    pub(super) config: &'a Path,
    /// Secrets that the person has already, which keep their values.
    pub(super) secrets: &'a [String],
    pub(super) record: Option<&'a SetupRecord>,
    pub(super) rules: &'a AgentRules,
    /// Servers with secrets are moved too.
    pub(super) keeps_secrets: bool,
    /// What the person ticked of [`SetupPlan::allowances`].
    pub(super) taken: &'a [AgentAllowance],
    pub(super) folders: &'a [WorkFolder],
    pub(super) servers: &'a MachineServers,
}

impl PlannedSource {
    pub(super) fn table(&self) -> Table {
        self.launch.table(&|own| self.secret_names.get(own).cloned().unwrap_or_default())
    }

    /// Names here and values.
    pub(super) fn secrets(&self) -> Vec<(String, String)> {
        let named = |(own, value): (&str, &str)| Some((self.secret_names.get(own)?.clone(), value.to_owned()));
        self.launch.secrets().filter_map(named).collect()
    }
}

impl SetupPlan {
    /// # Errors
    /// toold's own configuration cannot be read.
    pub(super) fn new(input: &PlanInput<'_>) -> anyhow::Result<Self> {
        let places: Vec<Place> = PLACES.into_iter().filter(|place| place.is_here(input.home)).collect();
        let found = input.servers.clone();
        let config_before = config_file::read(input.config)?;
        let configured: Table = config_before
            .as_deref()
            .unwrap_or_default()
            .parse()
            .with_context(|| format!("can't read {}", input.config.display()))?;
        let rules = input.rules.clone();
        let mut plan = Self {
            places,
            moves: Vec::new(),
            sources: Vec::new(),
            left: found.left,
            own_files: PLACES.iter().filter_map(|place| Some((place.name, place.own_file(input.home)?))).collect(),
            unread: found.unread,
            problems: Vec::new(),
            denials: Vec::new(),
            allowances: Vec::new(),
            rules,
            folders: input.folders.to_vec(),
            new_hooks: Vec::new(),
            new_entries: Vec::new(),
            returned: Vec::new(),
            bridges: found.own.len(),
            changes: Vec::new(),
            config: input.config.to_owned(),
        };
        for server in found.movable {
            plan.choose_source(server, &configured, input);
        }
        plan.move_servers(input);
        plan.return_bridges(input);
        plan.extend_denials(&configured, input);
        plan.offer_allowances(&configured, input);
        plan.add_entries(input);
        plan.add_hooks(input);
        plan.extend_config(config_before, input.taken);
        Ok(plan)
    }

    /// Names and values of all secrets that leave files.
    pub(super) fn secrets(&self) -> Vec<(String, String)> {
        self.sources.iter().flat_map(PlannedSource::secrets).collect()
    }

    /// The servers that move as soon as there is a place for their secrets.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &LeftServer> {
        self.left.iter().filter(|left| left.why == NO_PLACE)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether a server of this name is moved now, or was before.
    pub(super) fn knows_source(&self, name: &str, record: Option<&SetupRecord>) -> bool {
        let mut earlier = record.into_iter().flat_map(|record| &record.files).flat_map(|file| &file.entries);
        self.sources.iter().any(|source| source.name == name) || earlier.any(|entry| entry.source == name)
    }

    /// Whether a file of this agent or editor cannot be read, so that all is left as it is.
    pub(super) fn leaves(&self, place: &Place) -> bool {
        self.unread.iter().any(|unread| unread.place.name == place.name)
    }

    fn is_unread(&self, file: &Path) -> bool {
        self.unread.iter().any(|unread| unread.file == file)
    }

    fn choose_source(&mut self, server: FoundServer, configured: &Table, input: &PlanInput<'_>) {
        if !input.keeps_secrets && server.launch.secrets().next().is_some() {
            let (place, file, name) = (server.place, server.file.clone(), server.name().to_owned());
            return self.left.push(LeftServer { place, file, name, why: NO_PLACE.to_owned() });
        }
        if let Some(same) = self.sources.iter().find(|source| source.launch == server.launch) {
            let name = same.name.clone();
            return self.moves.push((server, name));
        }
        let there = configured.get("mcp").and_then(|mcp| mcp.get("servers")).and_then(Value::as_table);
        let by_place = format!("{}-{}", server.name(), server.place.name);
        let numbered = (2..).map(|number| format!("{}-{number}", server.name()));
        for name in [server.name().to_owned(), by_place].into_iter().chain(numbered) {
            // `--source` means other sources by these: the kinds, and the built-in tools.
            if SourceKind::ALL.iter().any(|kind| kind.as_str() == name)
                || name == OWN
                || self.sources.iter().any(|source| source.name == name)
            {
                continue;
            }
            let secret_names = self.secret_names(&name, &server.launch, input);
            let launch = server.launch.clone();
            let mut source = PlannedSource { name: name.clone(), launch, secret_names, is_new: true };
            match there.and_then(|servers| servers.get(&name)).and_then(Value::as_table) {
                Some(table) if *table == source.table() => source.is_new = false,
                Some(_) => continue,
                None => {}
            }
            self.sources.push(source);
            return self.moves.push((server, name));
        }
    }

    fn secret_names(&self, source: &str, launch: &ServerLaunch, input: &PlanInput<'_>) -> BTreeMap<String, String> {
        let mut used: BTreeSet<String> = self.secrets().into_iter().map(|(name, _)| name).collect();
        // What a setup before stored is replaced, what the person set is not.
        let ours = input.record.map(|record| record.secrets.as_slice()).unwrap_or_default();
        used.extend(input.secrets.iter().filter(|name| !ours.contains(name)).cloned());
        let prefix = plain_name(source);
        let mut names = BTreeMap::new();
        for (own, _) in launch.secrets() {
            let base = if own.starts_with(&prefix) { own.to_owned() } else { format!("{prefix}_{own}") };
            let base: String = base.chars().take(58).collect();
            let base = if base.starts_with(|c: char| c.is_ascii_digit()) { format!("_{base}") } else { base };
            let numbered = (2..).map(|number| format!("{base}_{number}"));
            let mut names_here = [base.clone()].into_iter().chain(numbered);
            if let Some(name) = names_here.find(|name| used.insert(name.clone())) {
                names.insert(own.to_owned(), name);
            }
        }
        names
    }

    /// The change of this file, with its text as it would be.
    fn change(&mut self, path: &Path) -> Option<&mut SetupChange> {
        if let Some(at) = self.changes.iter().position(|change| change.path == path) {
            return Some(&mut self.changes[at]);
        }
        let before = match config_file::read(path) {
            Ok(before) => before,
            Err(error) => {
                self.problems.push(format!("{error:#}"));
                return None;
            }
        };
        let after = before.clone().unwrap_or_default();
        let path = path.to_owned();
        let (steps, entries, added, blocks) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        self.changes.push(SetupChange { path, before, after, steps, entries, added, hooks: None, blocks });
        self.changes.last_mut()
    }

    fn move_servers(&mut self, input: &PlanInput<'_>) {
        for (server, source) in std::mem::take(&mut self.moves) {
            let secrets = self.secrets();
            let entry = server.bridge(input.program, &source);
            let Some(change) = self.change(&server.file) else { continue };
            let form = ConfigForm::of(&server.file);
            let moved = form.find(&change.after, &server.path).and_then(|span| {
                let new = span.kind.text_of(&server.path, &entry)?;
                let after = spliced(&change.after, span.range.clone(), &new);
                // A file of somebody else: nothing is written that does not read back.
                let read = form.read(&after)?;
                let there = server.path.iter().try_fold(&read, |value, name| value.get(name))?;
                (*there == serde_json::Value::Object(entry.clone())).then_some((span, after))
            });
            let Some((span, after)) = moved else {
                let (place, file, name) = (server.place, server.file.clone(), server.name().to_owned());
                let why = "its entry cannot be changed safely".to_owned();
                self.left.push(LeftServer { place, file, name, why });
                continue;
            };
            change.entries.push(ChangedEntry {
                place: server.place.name.to_owned(),
                path: server.path.clone(),
                kind: span.kind,
                source: source.clone(),
                old: KeptText::new(&change.after[span.range], &secrets),
            });
            change.becomes(after, &secrets);
            self.moves.push((server, source));
        }
        let used: BTreeSet<&String> = self.moves.iter().map(|(_, source)| source).collect();
        self.sources.retain(|source| used.contains(&source.name));
        self.changes.retain(|change| !change.steps.is_empty());
    }

    /// A file that is gone had servers that are nowhere else. An entry that is gone from a file was removed by the person.
    fn return_bridges(&mut self, input: &PlanInput<'_>) {
        let has_gone = |file: &&ChangedFile| !file.path.exists() && file.path.parent().is_some_and(Path::is_dir);
        let files = input.record.into_iter().flat_map(|record| &record.files);
        for file in files.filter(|file| !file.entries.is_empty()).filter(has_gone) {
            let secrets = self.secrets();
            let Some(change) = self.change(&file.path) else { continue };
            let (mut returned, mut problems) = (Vec::new(), Vec::new());
            for entry in &file.entries {
                let bridge = entry.bridge(input.program);
                match bridge.and_then(|bridge| file.form().with_entry(&change.after, &entry.path, &bridge)) {
                    Ok(after) => {
                        change.becomes(after, &secrets);
                        returned.push(entry.place.clone());
                    }
                    Err(error) => problems.push(format!("{}: {error:#}", file.path.display())),
                }
            }
            self.returned.extend(returned);
            self.problems.extend(problems);
        }
        self.changes.retain(|change| !change.steps.is_empty());
    }

    /// The denials that are not there yet. One for a server counts for each server of that name, by the name that it has here.
    fn extend_denials(&mut self, configured: &Table, input: &PlanInput<'_>) {
        let now = self.moves.iter().map(|(server, source)| (server.name(), source.as_str()));
        let earlier = input.record.into_iter().flat_map(|record| &record.files).flat_map(|file| &file.entries);
        let before = earlier.filter_map(|entry| Some((entry.path.last()?.as_str(), entry.source.as_str())));
        let names: Vec<(&str, &str)> = now.chain(before).collect();
        let mut denials: Vec<AgentDenial> = Vec::new();
        for denial in &self.rules.denials {
            let others = names.iter().filter_map(|(name, source)| denial.for_source(name, source));
            for denial in [denial.clone()].into_iter().chain(others) {
                let is_same = |known: &AgentDenial| known.table() == denial.table();
                if !has_rule(configured, &denial.table()) && !denials.iter().any(is_same) {
                    denials.push(denial);
                }
            }
        }
        self.denials = denials;
    }

    fn offer_allowances(&mut self, configured: &Table, input: &PlanInput<'_>) {
        let earlier = input.record.into_iter().flat_map(|record| &record.files).flat_map(|file| &file.entries);
        let earlier: Vec<_> = earlier.collect();
        for (agent, text) in &self.rules.allowed {
            let source = |server: &str| {
                let now = self.moves.iter().find(|(moved, _)| moved.place.name == *agent && moved.name() == server);
                let before = || {
                    let is_it = |name: &String| name == server;
                    earlier.iter().find(|entry| entry.place == *agent && entry.path.last().is_some_and(is_it))
                };
                now.map(|(_, source)| source.clone()).or_else(|| Some(before()?.source.clone()))
            };
            if let Some(rule) = AgentAllowance::of(agent, text, &source)
                && !has_rule(configured, &rule.table())
                && !self.allowances.iter().any(|known| known.table() == rule.table())
            {
                self.allowances.push(rule);
            }
        }
    }

    /// The entry for toold itself, without the servers that have entries of their own.
    fn add_entries(&mut self, input: &PlanInput<'_>) {
        let arguments = ["mcp", "--profile", WITHOUT_FILES_AND_SHELL, "--without-source", "mcp"].map(str::to_owned);
        for place in self.places.clone() {
            let Some(client) = place.client else { continue };
            let files = place.server_files(input.home);
            // opencode reads either of two. A file in which servers stand elsewhere, as in the older one of VS Code, is not for new
            // ones.
            let mut takes = files.iter().filter(|(_, holder)| *holder == [client.holder()]);
            let Some((file, _)) = takes.clone().find(|(file, _)| file.exists()).or(takes.next()) else { continue };
            let file = config_file::behind_links(file);
            if self.is_unread(&file) {
                continue;
            }
            if let Some(why) = left_because(&file) {
                self.problems.push(format!("{}: it {why}, so it gets no entry for toold", file.display()));
                continue;
            }
            let entry = client.entry(input.program, &arguments);
            let secrets = self.secrets();
            let Some(change) = self.change(&file) else { continue };
            let path = vec![client.holder().to_owned(), OWN.to_owned()];
            let has_entry = match change.form() {
                ConfigForm::Json => jsonc::has_member(&change.after, &[&path[0], OWN]),
                ConfigForm::Toml => toml_table::has_table(&change.after, &path[0], OWN),
            };
            if has_entry {
                continue;
            }
            let after = match (change.form(), entry.as_object()) {
                (ConfigForm::Toml, Some(members)) => toml_table::with_table(&change.after, &path[0], OWN, members),
                _ => jsonc::with_member(&change.after, &[&path[0], OWN], &entry),
            };
            match after {
                Ok(after) => {
                    change.added.push(path);
                    change.becomes(after, &secrets);
                    self.new_entries.push(place.name);
                }
                Err(error) => self.problems.push(format!("{}: {error:#}", file.display())),
            }
        }
        self.changes.retain(|change| !change.steps.is_empty());
    }

    fn add_hooks(&mut self, input: &PlanInput<'_>) {
        for agent in self.places.clone().into_iter().filter_map(|place| place.hooks) {
            let file = config_file::behind_links(&input.home.join(hooks_file::file(agent)));
            if self.is_unread(&file) {
                continue;
            }
            if let Some(why) = left_because(&file) {
                self.problems.push(format!("{}: it {why}, so it gets no hooks", file.display()));
                continue;
            }
            let secrets = self.secrets();
            let Some(change) = self.change(&file) else { continue };
            if hooks_file::are_as_chosen(agent, &change.after) {
                continue;
            }
            let fail =
                hooks_file::chosen_fail_of(agent, &change.after).unwrap_or_else(|| hooks_file::default_fail(agent));
            let command = HookCommand { program: input.program, fail, variables: installed::variables() };
            match hooks_file::hook_by_hook(agent, &change.after, &command) {
                Ok(texts) => {
                    change.hooks = Some(agent.name().to_owned());
                    texts.into_iter().for_each(|after| change.becomes(after, &secrets));
                    self.new_hooks.push(agent.name());
                }
                Err(error) => self.problems.push(format!("{}: {error:#}", file.display())),
            }
        }
        self.changes.retain(|change| !change.steps.is_empty());
    }

    /// Sets the level in toold's own configuration.
    ///
    /// # Errors
    /// The configuration cannot be read.
    pub(super) fn set_level(&mut self, level: &str) -> anyhow::Result<()> {
        let config = self.config.clone();
        if let Some(change) = self.change(&config) {
            let after = level::with_level(&change.after, level)?;
            change.becomes(after, &[]);
        }
        // The first again, as in `extend_config`.
        self.changes.sort_by_key(|change| change.path != config);
        Ok(())
    }

    /// The servers and the rules, at the end of toold's own configuration.
    fn extend_config(&mut self, before: Option<String>, taken: &[AgentAllowance]) {
        let nested = |outer: &str, inner: &str, value: Value| -> Option<String> {
            let inner = Table::from_iter([(inner.to_owned(), value)]);
            toml::to_string(&Table::from_iter([(outer.to_owned(), Value::Table(inner))])).ok()
        };
        let servers = self.sources.iter().filter(|source| source.is_new).filter_map(|source| {
            nested("mcp", "servers", Table::from_iter([(source.name.clone(), source.table().into())]).into())
        });
        let rules = self.denials.iter().map(AgentDenial::table).chain(taken.iter().map(AgentAllowance::table));
        let rules = rules.filter_map(|rule| nested("permission", "rules", Value::Array(vec![rule.into()])));
        let blocks: Vec<String> = servers.chain(rules).collect();
        if blocks.is_empty() {
            return;
        }
        let text = before.clone().unwrap_or_default();
        let after = blocks.iter().fold(text.clone(), |text, block| config_file::appended(&text, block));
        let steps = TextStep::between(&text, &after, &[]);
        let path = self.config.clone();
        let (entries, added) = (Vec::new(), Vec::new());
        // First: the daemon must know a server before an entry names it.
        self.changes.insert(0, SetupChange { path, before, after, steps, entries, added, hooks: None, blocks });
    }
}

/// Why a server with secrets stays.
const NO_PLACE: &str = "its secrets have no place yet: run `toolctl secrets unlock`, then setup again";

/// The name of toold's own entry.
pub(super) const OWN: &str = "toold";

impl SetupChange {
    pub(super) fn form(&self) -> ConfigForm {
        ConfigForm::of(&self.path)
    }

    fn becomes(&mut self, after: String, secrets: &[(String, String)]) {
        self.steps.extend(TextStep::between(&self.after, &after, secrets));
        self.after = after;
    }
}

/// Whether the configuration has this rule already.
fn has_rule(configured: &Table, rule: &Table) -> bool {
    let there = configured.get("permission").and_then(|permission| permission.get("rules")).and_then(Value::as_array);
    there.into_iter().flatten().any(|there| there.as_table() == Some(rule))
}
