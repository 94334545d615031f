//! `permissions.replay` and `permissions.suggest`: rules tried on the audit log.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use jsonrpsee::types::ErrorObjectOwned;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;
use toold_adapters::agents::CONFINABLE;
use toold_engine::level::{effects_without_disk, may_be_free};
use toold_engine::need::Need;
use toold_engine::policy::grants::Grant;
use toold_engine::policy::rules::{RuleConfig, RulePlace};
use toold_engine::policy::{CallingAgent, Policy, Subject, decide};
use toold_engine::replay::{
    AnsweredNeed, ChangedLines, PastVerdict, ReplayCounts, answer_of, is_beside_rules, suggested_rules,
};
use toold_engine::tool::Origin;
use toold_proto::level::Level;
use toold_proto::method::{PermissionsReplay, PermissionsSuggest};
use toold_proto::permission::{ReplayRules, ReplayedRules, SuggestRules, SuggestedRules};
use toold_proto::session::Mode;
use toold_proto::tool::{Category, SessionId};
use toold_store::audit::DecidedCall;
use toold_store::{Store, StoreError};

use crate::config::agents::{AgentConfines, AgentsConfig};
use crate::config::project_folder::{grant_project_of, project_of};
use crate::peer::sessions::persistence::with_store;
use crate::rpc::error::{NOT_KEPT, invalid_params, refused};
use crate::rpc::permissions::absolute;
use crate::rpc::{MethodRequest, MethodTable, Right, add_async};

/// Lines of each list of an answer.
const MAX_LINES: usize = 500;
/// Answers that suggestions are made from.
const MAX_ANSWERS: usize = 2_000;
const HOUR: u64 = 3_600;

pub(super) fn register(module: &mut MethodTable) -> anyhow::Result<()> {
    add_async::<PermissionsReplay, _>(module, Right::Decider, replay)?;
    add_async::<PermissionsSuggest, _>(module, Right::Decider, suggest)
}

/// A file of rules: a whole configuration may have other sections too.
#[derive(Deserialize)]
struct RulesFile {
    #[serde(default)]
    permission: RulesSection,
}

#[derive(Default, Deserialize)]
struct RulesSection {
    level: Option<Level>,
    #[serde(default)]
    rules: Vec<RuleConfig>,
}

/// The policy with the rules that are tried, and the level that stands beside them.
///
/// # Errors
/// The text or a rule of it cannot be read, or it has neither a rule nor a level, as a sentence for the user.
fn with_tried(policy: &Policy, text: Option<&str>) -> Result<(Policy, Option<Level>), String> {
    let Some(text) = text else { return Ok((policy.clone(), None)) };
    let file: RulesFile = toml::from_str(text).map_err(|error| format!("rules: {error}"))?;
    let RulesSection { rules, level } = file.permission;
    if rules.is_empty() && level.is_none() {
        return Err("rules: expected [[permission.rules]], and there are none".to_owned());
    }
    let home = policy.home.clone();
    let place = |at: usize| RulePlace {
        origin: format!("the tried rules, rule {at}"),
        project: None,
        trusted: true,
        base: None,
        home: home.clone(),
    };
    let problems = |policy: &Policy| policy.broken.len() + policy.closed.len() + policy.unmatchable.len();
    let rules = rules.into_iter().enumerate().map(|(at, rule)| (rule, place(at + 1)));
    let tried = policy.clone().with_rules(rules);
    match problems(&tried) > problems(policy) {
        true => {
            let found =
                tried.broken.iter().chain(&tried.unmatchable).chain(tried.closed.iter().map(|closed| &closed.rule));
            let told: Vec<String> = found.filter(|problem| problem.contains("the tried rules")).cloned().collect();
            Err(format!("rules: {}", told.join("; ")))
        }
        false => Ok((tried, level)),
    }
}

async fn replay(request: MethodRequest, params: ReplayRules) -> Result<ReplayedRules, ErrorObjectOwned> {
    let engine = request.services.engine.clone();
    let tried = with_tried(&engine.policy.load(), params.rules.as_deref());
    let (policy, with_rules) = tried.map_err(|words| invalid_params(&words))?;
    let level = params.level.or(with_rules).unwrap_or(policy.levels.user);
    let builtins = request.services.builtins.clone();
    let confined_agents = confined_agents(&request.services.config.loaded().config.agents);
    let gone = CancellationToken::new();
    let _guard = gone.clone().drop_guard();
    let found = with_store(&request.services.store, move |store| {
        let can_confine = level > Level::Read && builtins.sandbox.unconfined().is_none();
        let grants = engine.grants.snapshot();
        let mut replay = RuleReplay {
            policy: &policy,
            grants: &grants,
            level,
            can_confine,
            confined_agents,
            ..RuleReplay::new(store)
        };
        store.past_decisions(&params.since, &|| gone.is_cancelled(), |call| replay.add(&call))?;
        Ok(replay.finish())
    });
    found.await.map_err(of_store)
}

/// The agents whose own commands run confined, as far as the configuration says it.
fn confined_agents(agents: &AgentsConfig) -> Vec<&'static str> {
    let confines = |agent: &str| agents.named.get(agent).is_none_or(|agent| agent.confine != AgentConfines::Off);
    CONFINABLE.iter().copied().filter(|agent| confines(agent)).collect()
}

fn of_store(error: StoreError) -> ErrorObjectOwned {
    match error {
        StoreError::BadQuery(words) => invalid_params(&words),
        error => refused(NOT_KEPT, &error.to_string()),
    }
}

/// Decides past needs again.
struct RuleReplay<'r> {
    policy: &'r Policy,
    grants: &'r [Grant],
    level: Level,
    can_confine: bool,
    /// The agents whose own commands run confined.
    confined_agents: Vec<&'static str>,
    store: &'r Store,
    /// The folder of each session, as far as it is stored.
    folders: HashMap<SessionId, PathBuf>,
    hours: HashSet<u64>,
    counts: ReplayCounts,
    answer: ReplayedRules,
}

static NO_POLICY: std::sync::LazyLock<Policy> = std::sync::LazyLock::new(Policy::default);

impl<'r> RuleReplay<'r> {
    fn new(store: &'r Store) -> Self {
        Self {
            policy: &NO_POLICY,
            grants: &[],
            level: Level::Read,
            can_confine: false,
            confined_agents: Vec::new(),
            store,
            folders: HashMap::new(),
            hours: HashSet::new(),
            counts: ReplayCounts::default(),
            answer: ReplayedRules::default(),
        }
    }

    fn add(&mut self, call: &DecidedCall) {
        self.answer.calls += 1;
        let since = call.at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        self.hours.insert(since.as_secs() / HOUR);
        let mut needs = Vec::new();
        for decision in call.decisions.iter().filter(|decision| !is_beside_rules(decision)) {
            let Some(category) = Category::parse(&decision.category) else { continue };
            self.answer.decisions += 1;
            let judged = decision.judged.as_ref();
            if judged.is_some_and(|judged| judged.denied_for_good) {
                continue;
            }
            let need = match (judged, category) {
                (Some(judged), _) => judged.need(category, &decision.target),
                (None, Category::Network | Category::Mcp | Category::Agent | Category::Plugin) => {
                    Some(Need::new(category, decision.target.clone()))
                }
                (None, _) => None,
            };
            match need {
                Some(need) => needs.push((need, judged.is_some_and(|judged| judged.inside), PastVerdict::of(decision))),
                None => self.answer.not_replayable += 1,
            }
        }
        self.mark_confined(call, &mut needs);
        let folder = self.folder_of(&call.session_id);
        for (need, inside, past) in &needs {
            // The folders of the session then are not known, but whether the file was in them. One above it may be too wide.
            let root = inside.then(|| Path::new(&need.target));
            let roots: Vec<Cow<Path>> = root.into_iter().map(Cow::Borrowed).collect();
            let subject = Subject {
                tool: Some(&call.tool),
                origin: if call.agent.is_some() { Origin::Frontend } else { Origin::Builtin },
                session: &call.session_id,
                above: &[],
                mode: Mode::Default,
                level: self.level,
                cwd: &folder,
                roots: &roots,
                project: &folder,
                grant_project: &folder,
                chain: &[],
                undeclared: &[],
                made: &[],
                profile: None,
                agent: CallingAgent::past(call.agent.as_deref()),
            };
            let decision = decide(self.policy, self.grants, &subject, need);
            self.counts.add(need, *past, decision.verdict, &decision.rule);
        }
    }

    /// As the sandbox marks a line, but for what only the disk knows.
    fn mark_confined(&self, call: &DecidedCall, needs: &mut [(Need, bool, PastVerdict)]) {
        let is_free = |(need, inside, _): &(Need, bool, PastVerdict)| may_be_free(self.level, need, *inside);
        let rests = call.decisions.iter().filter_map(|decision| decision.judged.as_ref()?.rest_free_at.as_ref());
        let is_whole = { rests }.all(|levels| levels.contains(&self.level));
        let is_command = needs.iter().any(|(need, ..)| need.category() == Category::Shell);
        let runs_confined = call.agent.as_deref().is_none_or(|agent| self.confined_agents.contains(&agent));
        if self.can_confine && is_command && runs_confined && is_whole && needs.iter().all(is_free) {
            needs.iter_mut().for_each(|(need, ..)| need.confined = effects_without_disk());
        }
    }

    fn folder_of(&mut self, id: &SessionId) -> PathBuf {
        let stored = || self.store.find_session(id).ok().flatten().map(|session| session.cwd);
        match self.folders.get(id) {
            Some(folder) => folder.clone(),
            None => {
                let folder = stored().unwrap_or_else(|| "/".into());
                self.folders.insert(id.clone(), folder.clone());
                folder
            }
        }
    }

    fn finish(mut self) -> ReplayedRules {
        self.answer.active_hours = self.hours.len() as u64;
        (self.answer.asks_before, self.answer.asks_after) = (self.counts.asks_before, self.counts.asks_after);
        let ChangedLines { mut freed, mut denied, mut asked } = self.counts.lines();
        for lines in [&mut freed, &mut denied, &mut asked] {
            self.answer.more += lines.len().saturating_sub(MAX_LINES) as u64;
            lines.truncate(MAX_LINES);
        }
        ReplayedRules { freed, denied, asked, ..self.answer }
    }
}

async fn suggest(request: MethodRequest, params: SuggestRules) -> Result<SuggestedRules, ErrorObjectOwned> {
    let home = request.services.engine.policy.load().home.clone();
    let since = params.since.unwrap_or_else(|| "7d".to_owned());
    let project = |cwd: &Path| project_of(cwd).map(|project| grant_project_of(&project));
    let only = match params.cwd.as_deref() {
        Some(cwd) => {
            let cwd = absolute(cwd)?;
            Some(project(&cwd).map_err(|error| invalid_params(&format!("cwd: {}: {error}", cwd.display())))?)
        }
        None => None,
    };
    let gone = CancellationToken::new();
    let _guard = gone.clone().drop_guard();
    let found = with_store(&request.services.store, move |store| {
        let mut answers: Vec<AnsweredNeed> = Vec::new();
        let mut known = RuleReplay::new(store);
        let mut projects: HashMap<PathBuf, bool> = HashMap::new();
        store.past_decisions(&since, &|| gone.is_cancelled(), |call| {
            if let Some(only) = &only {
                let folder = known.folder_of(&call.session_id);
                let is_of = |folder: &PathBuf| project(folder).is_ok_and(|project| project == *only);
                if !*projects.entry(folder).or_insert_with_key(is_of) {
                    return;
                }
            }
            for decision in &call.decisions {
                let Some(category) = Category::parse(&decision.category) else { continue };
                let need = match &decision.judged {
                    Some(judged) => judged.need(category, &decision.target),
                    None => Some(Need::new(category, decision.target.clone())).filter(|_| category != Category::Shell),
                };
                answers.extend(need.and_then(|need| answer_of(decision, need)));
            }
        })?;
        let first = answers.len().saturating_sub(MAX_ANSWERS);
        let rules = suggested_rules(&answers[first..], home.as_deref());
        Ok(SuggestedRules { answers: answers.len() as u64, rules })
    });
    found.await.map_err(of_store)
}
