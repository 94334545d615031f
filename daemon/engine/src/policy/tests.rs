use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use super::rules::{RuleConfig, RulePlace};
use super::*;
use crate::effects::{AddedEffect, CommandEffects, EffectSet};
use crate::kept::NotKept;
use crate::need::{InnerCommand, JudgedCommand, Word};
use crate::policy::grants::{FleetGrantTerm, GrantScope, GrantStore, Grants};

/// One row of a table: the rules, grants and mode, and the need.
#[derive(Clone)]
struct PolicyCase {
    policy: Policy,
    grants: Vec<Grant>,
    mode: Mode,
    level: Level,
    origin: Origin,
    tool: &'static str,
    cwd: &'static str,
    chain: Vec<String>,
    agent: CallingAgent<'static>,
}

const PROJECT: &str = "/home/u/proj";

fn case() -> PolicyCase {
    PolicyCase {
        policy: Policy { home: Some("/home/u".into()), ..Policy::default() },
        grants: Vec::new(),
        mode: Mode::Default,
        level: Level::Read,
        origin: Origin::Builtin,
        tool: "bash",
        cwd: PROJECT,
        chain: Vec::new(),
        agent: CallingAgent::default(),
    }
}

impl PolicyCase {
    fn rule(self, category: &str, pattern: &str, action: &str) -> Self {
        self.rule_of(category, pattern, action, |_, _| {})
    }

    fn project_rule(self, category: &str, pattern: &str, action: &str) -> Self {
        self.rule_of(category, pattern, action, |_, place| place.project = Some(PROJECT.into()))
    }

    fn rule_of(
        mut self,
        category: &str,
        pattern: &str,
        action: &str,
        change: impl FnOnce(&mut RuleConfig, &mut RulePlace),
    ) -> Self {
        let mut config = RuleConfig {
            category: category.into(),
            pattern: pattern.into(),
            action: action.into(),
            tools: None,
            cwd: None,
            effect: None,
            agent: None,
        };
        let mut place = RulePlace {
            origin: format!("config.toml:{}", self.policy.rules.len() + 1),
            project: None,
            trusted: true,
            base: None,
            home: Some("/home/u".into()),
        };
        change(&mut config, &mut place);
        self.policy = self.policy.with_rules([(config, place)]);
        self
    }

    fn grant(self, category: Category, pattern: &str, action: Action) -> Self {
        self.grant_of(category, pattern, action, |_| {})
    }

    fn grant_of(mut self, category: Category, pattern: &str, action: Action, change: impl FnOnce(&mut Grant)) -> Self {
        let mut grant = Grant {
            id: format!("g{}", self.grants.len() + 1),
            category,
            pattern: Pattern::parse(category, pattern).unwrap(),
            action,
            scope: GrantScope::Always,
            tools: None,
            chain: Vec::new(),
            by: None,
            granted_at: SystemTime::UNIX_EPOCH,
            expires_at: None,
            asked: None,
            fleet: None,
        };
        change(&mut grant);
        self.grants.push(grant);
        self
    }

    fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    fn level(self, level: Level) -> Self {
        Self { level, ..self }
    }

    fn origin(self, origin: Origin) -> Self {
        Self { origin, ..self }
    }

    fn agent(self, agent: CallingAgent<'static>) -> Self {
        Self { agent, ..self }
    }

    fn cwd(self, cwd: &'static str) -> Self {
        Self { cwd, ..self }
    }

    fn chain(self, chain: &[&str]) -> Self {
        Self { chain: chain.iter().map(|name| (*name).to_owned()).collect(), ..self }
    }

    fn decide(&self, need: &Need) -> Decision {
        self.with_subject(|subject| decide(&self.policy, &self.grants, subject, need))
    }

    /// The pattern of a grant that allows the need.
    fn advised(&self, need: &Need) -> Option<String> {
        self.with_subject(|subject| allowing::allowing_pattern(&self.policy, &self.grants, subject, need))
    }

    fn with_subject<T>(&self, work: impl FnOnce(&Subject) -> T) -> T {
        let (tool, session) = (ToolName::parse(self.tool).unwrap(), SessionId::parse("s1").unwrap());
        let roots = [Cow::Borrowed(Path::new(self.cwd))];
        let subject = Subject {
            tool: Some(&tool),
            origin: self.origin,
            session: &session,
            above: &[],
            mode: self.mode,
            level: self.level,
            cwd: Path::new(self.cwd),
            roots: &roots,
            project: Path::new(PROJECT),
            grant_project: Path::new("/home/u/main"),
            chain: &self.chain,
            undeclared: &[],
            made: &[],
            profile: None,
            agent: self.agent,
        };
        work(&subject)
    }

    #[track_caller]
    fn gives(&self, need: &Need, verdict: Verdict, rule: &str) {
        let decision = self.decide(need);
        let label = format!("{} {}", need.category(), need.target);
        assert_eq!(decision.verdict, verdict, "{label}: {}", decision.rule);
        assert!(decision.rule.contains(rule), "{label}: {:?} does not name {rule:?}", decision.rule);
    }
}

fn need(category: Category, target: &str) -> Need {
    Need::new(category, target)
}

fn read(path: &str) -> Need {
    need(Category::FileRead, path)
}

fn write(path: &str) -> Need {
    need(Category::FileWrite, path)
}

/// Words that begin with `$` are not literal.
fn shell(line: &str) -> Need {
    let word = |text: &str| Word { text: text.to_owned(), literal: !text.starts_with('$') };
    need(Category::Shell, line).with_command(|command| command.words = Some(line.split(' ').map(word).collect()))
}

fn words(line: &str) -> Option<Vec<Word>> {
    shell(line).words().map(<[Word]>::to_vec)
}

fn unsure(need: Need, why: &str) -> Need {
    need.with_command(|command| command.unsure = Some(why.to_owned()))
}

use Verdict::{Allow, Ask, Deny};

#[test]
fn each_category_has_its_default() {
    let case = case();
    case.gives(&read("/home/u/proj/a"), Allow, "default of file.read");
    case.gives(&read("/home/u/proj"), Allow, "default");
    case.gives(&read("/home/u/project2/a"), Ask, "default");
    case.gives(&read("/etc/hosts"), Ask, "default");
    case.gives(&write("/home/u/proj/a"), Ask, "default of file.write");
    case.gives(&shell("ls"), Ask, "default of shell");
    case.gives(&need(Category::Network, "a.b:443"), Deny, "default of network");
    case.gives(&need(Category::Mcp, "x"), Ask, "default");
    case.gives(&need(Category::Agent, "x"), Allow, "default");
    for (origin, verdict) in [
        (Origin::Builtin, Allow),
        (Origin::UserPlugin, Allow),
        (Origin::ProjectPlugin, Ask),
        (Origin::Frontend, Ask),
        (Origin::Mcp, Ask),
    ] {
        case.clone().origin(origin).gives(&need(Category::Plugin, "x"), verdict, "default of plugin");
    }
}

#[test]
fn nothing_lifts_hard_denials() {
    let mut case = case().rule("file.read", "**", "allow").rule("file.write", "**", "allow").mode(Mode::Yolo);
    case = case.grant(Category::FileRead, "**", Action::Allow);
    case.policy.control.push("/home/u/.config/toold".into());
    case.policy.private.push("/run/toold".into());
    case.gives(&read("/home/u/proj/.env"), Deny, "secrets (.env)");
    case.gives(&write("/home/u/proj/.env"), Deny, "secrets");
    case.gives(&read("/home/u/.ssh/config"), Deny, "secrets (.ssh)");
    case.gives(&write("/home/u/proj/.toold/plugins/a.lua"), Deny, "control files (.toold)");
    case.gives(&read("/home/u/proj/.toold/plugins/a.lua"), Allow, "yolo");
    case.gives(&write("/home/u/proj/.toolignore"), Deny, "control files");
    case.gives(&write("/home/u/.config/toold/config.toml"), Deny, "control files");
    case.gives(&write("/home/u/.config/toold2/x"), Allow, "yolo");
    case.gives(&read("/run/toold/toold.sock"), Deny, "the daemon's own files");
    case.gives(&read("/home/u/proj/../x"), Deny, "not resolved");
    case.gives(&read("proj/x"), Deny, "not resolved");
    let ignored = Need { forbidden: Some(".aiexclude:3".into()), ..read("/home/u/proj/a") };
    case.gives(&ignored, Deny, ".aiexclude:3");
}

#[test]
fn wide_folders_give_no_reads() {
    let case = case();
    for cwd in ["/", "/home", "/home/u"] {
        case.clone().cwd(cwd).gives(&read("/home/u/x"), Ask, "default");
        case.clone().cwd(cwd).mode(Mode::AcceptEdits).gives(&write("/home/u/x"), Ask, "default");
    }
    case.cwd("/home/u2").gives(&read("/home/u2/x"), Allow, "default");
}

#[test]
fn denials_come_before_modes_and_grants() {
    let case = case().rule("shell", "rm *", "deny").grant(Category::Shell, "rm x", Action::Allow);
    for mode in [Mode::Default, Mode::Plan, Mode::AcceptEdits, Mode::Yolo] {
        case.clone().mode(mode).gives(&shell("rm x"), Deny, "deny shell \"rm *\" at config.toml:1");
        case.clone().mode(mode).gives(&shell("/bin/rm x"), Deny, "config.toml:1");
    }
    let not_understood = need(Category::Shell, "rm $((");
    case.clone().mode(Mode::Yolo).gives(&not_understood, Deny, "config.toml:1");
    case.mode(Mode::Yolo).gives(&need(Category::Shell, "ls $(("), Allow, "yolo");
}

#[test]
fn a_narrow_allow_does_not_lift_a_wide_denial() {
    let case = case().rule("shell", "git *", "deny").rule("shell", "git status", "allow");
    case.gives(&shell("git status"), Deny, "git *");
}

#[test]
fn a_denial_can_be_remembered() {
    let case = case().grant(Category::Shell, "rm *", Action::Deny).rule("shell", "rm x", "allow");
    case.gives(&shell("rm x"), Deny, "grant g1 (rm *)");
    case.gives(&shell("ls"), Ask, "default");
}

#[test]
fn a_doubt_about_what_is_denied_asks_whether_a_rule_or_a_grant_denies() {
    let by_rule = case().rule("shell", "rm -rf *", "deny");
    let by_grant = case().grant(Category::Shell, "rm -rf *", Action::Deny);
    for case in [by_rule, by_grant] {
        let case = case.rule("shell", "**", "allow");
        for mode in [Mode::Default, Mode::Yolo] {
            let case = case.clone().mode(mode);
            case.gives(&shell("rm $f"), Ask, "rm -rf *");
            case.gives(&shell("rm $f -rf x"), Deny, "rm -rf *");
            case.gives(&shell("rm -rf $f"), Deny, "rm -rf *");
            case.gives(&shell("rm x"), Allow, "");
        }
    }
}

#[test]
fn a_rule_for_exact_words_does_not_cover_what_the_command_reads_as_a_program() {
    let reads = |line: &str| shell(line).with_command(|command| command.runs_input = true);
    case().rule("shell", "python3 -", "allow").gives(&reads("python3 -"), Ask, "default");
    case().rule("shell", "python3 *", "allow").gives(&reads("python3 -"), Allow, "python3 *");
    assert_eq!(suggest::exact_pattern(&reads("python3 -")), None);
    assert_eq!(suggest::exact_pattern(&shell("python3 -")).as_deref(), Some("python3 -"));
}

#[test]
fn modes_decide_their_categories() {
    let all = [
        read("/home/u/proj/a"),
        read("/etc/hosts"),
        write("/home/u/proj/a"),
        write("/etc/hosts"),
        shell("ls"),
        need(Category::Network, "a.b:1"),
        need(Category::Mcp, "x"),
        need(Category::Agent, "x"),
        need(Category::Plugin, "x"),
    ];
    let table = [
        (Mode::Default, [Allow, Ask, Ask, Ask, Ask, Deny, Ask, Allow, Allow]),
        (Mode::Plan, [Allow, Ask, Deny, Deny, Deny, Deny, Deny, Deny, Allow]),
        (Mode::AcceptEdits, [Allow, Ask, Allow, Ask, Ask, Deny, Ask, Allow, Allow]),
        (Mode::Yolo, [Allow; 9]),
    ];
    for (mode, verdicts) in table {
        for (need, verdict) in all.iter().zip(verdicts) {
            case().mode(mode).gives(need, verdict, "");
        }
    }
}

#[test]
fn plan_goes_by_needs_and_not_by_rules_or_claims() {
    let case = case().rule("shell", "**", "allow").rule("plugin", "**", "allow").mode(Mode::Plan);
    case.gives(&shell("ls"), Deny, "mode plan");
    case.clone().origin(Origin::Frontend).gives(&need(Category::Plugin, "x"), Deny, "mode plan");
    case.origin(Origin::ProjectPlugin).gives(&need(Category::Plugin, "x"), Allow, "rule allow plugin");
}

#[test]
fn plan_allows_reading_and_the_agents_own_plan() {
    let reads = |line: &str| shell(line).with_command(|command| command.reads_only = true);
    let plan = case().mode(Mode::Plan);
    let of_agent = plan.clone().origin(Origin::Frontend);
    let of_plugin = plan.clone().chain(&["plugin"]);
    let allowed = |case: PolicyCase| case.rule("network", "**", "allow").rule("mcp", "**", "allow");
    for (case, need, verdict, rule) in [
        (plan.clone(), reads("git log"), Allow, "it only reads"),
        (plan.clone().rule("shell", "git log *", "deny"), reads("git log"), Deny, "config.toml:1"),
        (plan.clone().rule("shell", "git log *", "ask"), reads("git log"), Ask, "config.toml:1"),
        (plan.clone(), read("/home/u/proj/a"), Allow, ""),
        (plan.clone(), read("/etc/passwd"), Ask, ""),
        (plan.clone(), shell("git commit"), Deny, "mode plan"),
        (of_agent.clone(), write("/home/u/.claude/plans/merry-fox.md"), Allow, "own plan"),
        (of_agent.clone(), write("/home/u/.gemini/tmp/0a1b/session/plans/a.md"), Allow, "own plan"),
        (of_agent.clone(), write("/home/u/.copilot/session-state/0a1b/plan.md"), Allow, "own plan"),
        (of_agent.clone(), write("/home/u/proj/.opencode/plans/a.md"), Allow, "own plan"),
        (of_agent.clone(), write("/home/u/.claude/plans/a/b.md"), Deny, "mode plan"),
        (of_agent.clone(), write("/home/u/.claude/plans/a.sh"), Deny, "mode plan"),
        (of_agent.clone(), write("/home/u/.claude/settings.json"), Deny, "mode plan"),
        (of_agent.clone(), write("/home/v/.claude/plans/a.md"), Deny, "mode plan"),
        (of_agent.clone(), write("/home/u/proj/plan.md"), Deny, "mode plan"),
        (of_agent.clone(), write("/home/u/proj/.claude/plans/a.md"), Deny, "mode plan"),
        (of_agent.clone(), write("/home/u/proj/.claude/plans/CLAUDE.md"), Deny, "mode plan"),
        (
            plan.clone().rule("file.write", "**/*.md", "deny"),
            write("/home/u/.claude/plans/a.md"),
            Deny,
            "config.toml:1",
        ),
        (plan.clone(), write("/home/u/.claude/plans/a.md"), Deny, "mode plan"),
        (case(), write("/home/u/.claude/plans/a.md"), Ask, "default"),
        (allowed(plan.clone()), need(Category::Network, "example.org:443"), Allow, "config.toml:1"),
        (allowed(of_plugin.clone()), need(Category::Network, "example.org:443"), Deny, "mode plan"),
        (allowed(plan.clone()), need(Category::Mcp, "docs/search"), Deny, "mode plan"),
        (allowed(of_agent.clone()), need(Category::Mcp, "docs/search"), Ask, "mode plan"),
        (of_agent.clone(), need(Category::Plugin, "web_search"), Ask, "default"),
    ] {
        case.gives(&need, verdict, rule);
    }
}

#[test]
fn a_secret_is_read_where_a_rule_or_a_grant_names_exactly_this_file() {
    let secret = "/home/u/proj/.env";
    let covering = |need: Need, files: &[&str]| {
        need.with_file(|file| file.covers = files.iter().map(|&name| name.into()).collect())
    };
    let tree = covering(read("/home/u/proj"), &["/home/u/proj/a", secret]);
    let by_rule = |pattern: &str| case().rule("file.read", pattern, "allow");
    let granted = |pattern: &str| case().grant(Category::FileRead, pattern, Action::Allow);
    let mut private = by_rule(secret);
    private.policy.private = vec![PathBuf::from(secret)].into();
    for (case, need, verdict, rule) in [
        (case(), read(secret), Deny, "secrets (.env)"),
        (case(), tree.clone(), Deny, "secrets (.env): /home/u/proj/.env"),
        (case().mode(Mode::Yolo), read(secret), Deny, "secrets"),
        (by_rule("**"), read(secret), Deny, "secrets"),
        (by_rule("/home/u/proj/*"), read(secret), Deny, "secrets"),
        (granted("**/.env"), read(secret), Deny, "secrets"),
        (by_rule("/home/u/proj/.env.local"), read(secret), Deny, "secrets"),
        (by_rule(secret), read(secret), Allow, "config.toml:1"),
        (granted(secret), read(secret), Allow, "grant g1"),
        (granted(secret), tree.clone(), Allow, "default"),
        (by_rule(secret).mode(Mode::Plan), read(secret), Allow, "config.toml:1"),
        (by_rule(secret).rule("file.read", "**/.env", "deny"), read(secret), Deny, "config.toml:2"),
        (by_rule(secret).chain(&["plugin"]), read(secret), Allow, "config.toml:1"),
        (granted(secret).chain(&["plugin"]), read(secret), Deny, "secrets"),
        // To read it is not to write it, nor the files beside it, and the daemon's own files stay closed.
        (by_rule(secret), write(secret), Deny, "secrets"),
        (by_rule(secret).rule("file.write", secret, "allow"), write(secret), Deny, "secrets"),
        (by_rule(secret), read("/home/u/proj/.env.local"), Deny, "secrets"),
        (case(), read("/home/u/proj/terraform.tfvars"), Deny, "secrets (terraform.tfvars)"),
        (case(), write("/home/u/proj/terraform.tfvars"), Ask, "default"),
        (private, read(secret), Deny, "the daemon's own files"),
    ] {
        case.gives(&need, verdict, rule);
    }
    let searched = Need { line: Some("cd . && grep -rn KEY .".into()), ..tree.clone() };
    case().gives(&searched, Deny, "(leave it out with --exclude=.env)");
    let by_folder = covering(searched, &["/home/u/proj/.ssh/config"]);
    assert!(!case().decide(&by_folder).rule.contains("--exclude"));
    let certificate = |of: &str| read("/home/u/proj/ca.pem").with_file(|file| file.no_secrets.push(of.into()));
    case().gives(&read("/home/u/proj/ca.pem"), Deny, "secrets (.pem)");
    case().gives(&certificate("/home/u/proj/ca.pem"), Allow, "default");
    let elsewhere = Need { target: "/srv/ca.pem".into(), ..certificate("/srv/ca.pem") };
    case().gives(&elsewhere, Deny, "secrets (.pem)");
    case().gives(&certificate("/home/u/proj/other.pem"), Deny, "secrets (.pem)");
}

#[test]
fn nothing_is_advised_that_the_mode_denies_all_the_same() {
    let advised = |mode: Mode, need: &Need| case().mode(mode).advised(need);
    assert_eq!(advised(Mode::Plan, &shell("git commit")), None);
    assert_eq!(advised(Mode::Plan, &read("/etc/passwd")).as_deref(), Some("/etc/passwd"));
    assert_eq!(advised(Mode::Default, &shell("git commit")).as_deref(), Some("git commit"));
    // A grant for exactly a secret helps, but nobody is led to it.
    assert_eq!(advised(Mode::Default, &read("/home/u/proj/.env")), None);
    assert_eq!(advised(Mode::Default, &write("/home/u/proj/.env")), None);
}

#[test]
fn the_more_specific_rule_decides() {
    let case = case().rule("shell", "git *", "allow").rule("shell", "git push *", "ask").rule("shell", "**", "ask");
    case.gives(&shell("git status"), Allow, "git *");
    case.gives(&shell("git push origin"), Ask, "git push *");
    case.gives(&shell("ls"), Ask, "\"**\"");
}

#[test]
fn ties_go_to_the_project_and_then_to_the_stricter() {
    let tie = case().rule("shell", "ls *", "allow").rule("shell", "ls *", "ask");
    tie.gives(&shell("ls a"), Ask, "ls *");
    let project = tie.project_rule("shell", "ls *", "allow");
    project.gives(&shell("ls a"), Allow, "config.toml:3");
    let narrower = project.rule("shell", "ls a", "ask");
    narrower.gives(&shell("ls a"), Ask, "config.toml:4");
}

#[test]
fn a_project_allows_only_when_it_is_trusted() {
    let untrusted = |_: &mut RuleConfig, place: &mut RulePlace| {
        place.project = Some(PROJECT.into());
        place.trusted = false;
    };
    let case = case().rule_of("shell", "**", "allow", untrusted).rule_of("shell", "rm *", "deny", untrusted);
    case.gives(&shell("ls"), Ask, "default");
    case.gives(&shell("rm x"), Deny, "rm *");
    assert_eq!(case.policy.describe_rules(None).len(), 1);
}

#[test]
fn rules_hold_for_their_tools_and_folders() {
    let narrow = |config: &mut RuleConfig, _: &mut RulePlace| {
        config.tools = Some(vec!["ba*".into()]);
        config.cwd = Some("~/proj".into());
    };
    let case = case().rule_of("shell", "ls", "allow", narrow);
    case.gives(&shell("ls"), Allow, "config.toml:1");
    case.clone().cwd("/home/u/proj2").gives(&shell("ls"), Ask, "default");
    PolicyCase { tool: "other", ..case.clone() }.gives(&shell("ls"), Ask, "default");
    let info = &case.policy.describe_rules(None)[0];
    assert_eq!((info.tools.as_deref(), info.cwd.as_deref()), (Some(&["ba*".to_owned()][..]), Some("/home/u/proj")));
}

#[test]
fn rules_of_other_projects_do_not_count() {
    let other = |_: &mut RuleConfig, place: &mut RulePlace| place.project = Some("/other".into());
    case().rule_of("shell", "ls", "deny", other).gives(&shell("ls"), Ask, "default");
}

#[test]
fn paths_in_rules_are_relative_to_where_they_stand() {
    let based = |_: &mut RuleConfig, place: &mut RulePlace| place.base = Some("/home/u/pr[o]j".into());
    let case = case().rule_of("file.write", "src/**", "allow", based).rule("file.read", "~/notes/**", "allow");
    case.gives(&write("/home/u/pr[o]j/src/a"), Allow, "src/**");
    case.gives(&write("/home/u/proj/src/a"), Ask, "default");
    case.gives(&read("/home/u/notes/a"), Allow, "notes");
}

#[test]
fn a_rule_that_cannot_be_read_closes_its_category_and_says_where_it_stands() {
    for (pattern, action) in [("a; b", "allow"), ("ls", "alow"), ("", "deny")] {
        let case = case()
            .rule("shell", "ls", "allow")
            .rule("shell", pattern, action)
            .grant(Category::Shell, "ls", Action::Allow)
            .mode(Mode::Yolo);
        case.gives(&shell("ls"), Deny, "config.toml:2");
        case.gives(&read("/home/u/proj/a"), Allow, "");
        case.gives(&write("/home/u/proj/a"), Deny, "config.toml:2");
        assert!(case.policy.broken[0].starts_with("config.toml:2: "), "{:?}", case.policy.broken);
    }
    let reads = case().rule("file.read", "/a[b", "deny");
    reads.gives(&read("/home/u/proj/a"), Deny, "config.toml:1");
    let nowhere = case().rule("shel", "ls", "deny");
    nowhere.gives(&shell("ls"), Deny, "expected one of");
    nowhere.gives(&read("/home/u/proj/a"), Allow, "default");
}

#[test]
fn a_rule_of_a_project_that_cannot_be_read_closes_that_project_alone() {
    let broken = |project: &'static str, category: &str| {
        case().rule("shell", "ls", "allow").rule_of(category, "'", "deny", |_, place| {
            place.project = Some(project.into());
            place.trusted = false;
        })
    };
    for category in ["shell", "shel"] {
        broken(PROJECT, category).gives(&shell("ls"), Deny, "config.toml:2");
        broken("/other", category).gives(&shell("ls"), Allow, "config.toml:1");
        assert_eq!(broken("/other", category).policy.describe_broken(None).len(), 1);
    }
}

#[test]
fn grant_applies_only_to_its_own_need() {
    let granted = |change: &dyn Fn(&mut Grant)| case().grant_of(Category::Shell, "ls", Action::Allow, |g| change(g));
    granted(&|_| {}).gives(&shell("ls"), Allow, "grant g1 (ls)");
    granted(&|_| {}).gives(&shell("ls -a"), Ask, "default");
    granted(&|_| {}).chain(&["plugin"]).gives(&shell("ls"), Ask, "default");
    granted(&|g| g.chain = vec!["plugin".into()]).gives(&shell("ls"), Ask, "default");
    granted(&|g| g.chain = vec!["plugin".into()]).chain(&["plugin"]).gives(&shell("ls"), Allow, "grant");
    granted(&|g| g.chain = vec!["plugin".into()]).chain(&["outer", "plugin"]).gives(&shell("ls"), Ask, "default");
    granted(&|g| g.scope = GrantScope::Session(SessionId::parse("s1").unwrap())).gives(&shell("ls"), Allow, "");
    granted(&|g| g.scope = GrantScope::Session(SessionId::parse("s2").unwrap())).gives(&shell("ls"), Ask, "");
    granted(&|g| g.scope = GrantScope::Project(PROJECT.into())).gives(&shell("ls"), Allow, "");
    granted(&|g| g.scope = GrantScope::Project("/home/u/main".into())).gives(&shell("ls"), Allow, "");
    granted(&|g| g.scope = GrantScope::Project("/home/u/proj2".into())).gives(&shell("ls"), Ask, "");
    granted(&|g| g.tools = Some(vec!["bash".into()])).gives(&shell("ls"), Allow, "");
    granted(&|g| g.tools = Some(vec!["exec".into()])).gives(&shell("ls"), Ask, "");
}

#[test]
fn a_grant_answers_an_ask_rule_that_is_no_narrower() {
    let ask = case().rule("shell", "git push *", "ask");
    ask.clone().grant(Category::Shell, "git push origin", Action::Allow).gives(&shell("git push origin"), Allow, "g1");
    ask.clone().grant(Category::Shell, "git push *", Action::Allow).gives(&shell("git push origin"), Allow, "g1");
    ask.grant(Category::Shell, "git *", Action::Allow).gives(&shell("git push origin"), Ask, "git push *");
}

#[test]
fn only_an_exact_approval_or_yolo_covers_a_place_that_runs_code_later() {
    for place in protected_writes::list::PROTECTED_WRITES {
        let path = match place.pattern.strip_prefix("~/") {
            Some(below) => format!("/home/u/{below}"),
            None if place.pattern.starts_with('/') => place.pattern.to_owned(),
            None => format!("{PROJECT}/{}", place.pattern),
        };
        let path = path.replace("**", "a").replace('*', "x");
        let (need, name) = (write(&path), format!("({})", place.pattern));
        if is_secret(Path::new(&path)) {
            case().mode(Mode::Yolo).rule("file.write", &path, "allow").gives(&need, Deny, "secrets");
            continue;
        }
        let parent = format!("{}/*", Path::new(&path).parent().unwrap().display());
        for wide in ["**", "/**", "/**/*", &parent] {
            case().rule("file.write", wide, "allow").gives(&need, Ask, &name);
            case().project_rule("file.write", wide, "allow").mode(Mode::AcceptEdits).gives(&need, Ask, &name);
            for scope in [
                GrantScope::Always,
                GrantScope::Project(PROJECT.into()),
                GrantScope::Session(SessionId::parse("s1").unwrap()),
            ] {
                let granted = case().grant_of(Category::FileWrite, wide, Action::Allow, |grant| grant.scope = scope);
                granted.gives(&need, Ask, &name);
            }
        }
        case().gives(&need, Ask, &name);
        case().mode(Mode::AcceptEdits).gives(&need, Ask, &name);
        case().mode(Mode::Plan).rule("file.write", &path, "allow").gives(&need, Deny, "mode plan");
        case().mode(Mode::Yolo).gives(&need, Allow, "mode yolo");
        case().mode(Mode::Yolo).rule("file.write", &parent, "deny").gives(&need, Deny, "rule deny");
        for mode in [Mode::Default, Mode::AcceptEdits] {
            let exact = case().mode(mode).rule("file.write", "**", "allow");
            exact.clone().rule("file.write", &path, "allow").gives(&need, Allow, "config.toml:2");
            exact.clone().rule("file.write", &path, "ask").gives(&need, Ask, "config.toml:2");
            exact.grant(Category::FileWrite, &path, Action::Allow).gives(&need, Allow, "grant g1");
        }
    }
}

#[test]
fn files_of_the_session_need_no_approval() {
    for path in ["src/main.rs", ".gitignore", ".github/workflows/ci.yml", "Makefile", ".claude/plans/a.md"] {
        let need = write(&format!("{PROJECT}/{path}"));
        case().mode(Mode::AcceptEdits).gives(&need, Allow, "mode accept_edits");
        case().rule("file.write", "/home/u/proj/**", "allow").gives(&need, Allow, "rule allow");
    }
}

#[test]
fn words_that_the_shell_expands_need_a_star() {
    let case = case().rule("shell", "cat a *", "allow");
    case.gives(&shell("cat a $x"), Allow, "");
    case.gives(&shell("cat $x a"), Ask, "");
    case.clone().gives(&need(Category::Shell, "cat a $(("), Ask, "default");
    case.rule("shell", "**", "allow").gives(&need(Category::Shell, "cat a $(("), Allow, "\"**\"");
}

#[test]
fn grants_end_when_they_say() {
    let grants = Grants::default();
    let grant = |id: &str, expires_at| Grant {
        id: id.into(),
        expires_at,
        ..case().grant(Category::Shell, "ls", Action::Allow).grants.remove(0)
    };
    let now = SystemTime::now();
    grants.add(grant("ended", Some(now - Duration::from_secs(1)))).unwrap();
    grants.add(grant("later", Some(now + Duration::from_secs(1000)))).unwrap();
    let ids: Vec<String> = grants.snapshot().iter().map(|grant| grant.id.clone()).collect();
    assert_eq!(ids, ["later"]);
    assert_eq!(grants.remove("later").unwrap().unwrap().id, "later");
    assert!(grants.remove("later").unwrap().is_none());
}

#[test]
fn the_same_grant_renews_the_one_that_is_there() {
    let grants = Grants::default();
    let given = |id: &str, expires_at| Grant {
        id: id.into(),
        expires_at,
        by: Some(id.into()),
        ..case().grant(Category::Shell, "ls", Action::Allow).grants.remove(0)
    };
    let now = SystemTime::now();
    let (soon, later) = (Some(now + Duration::from_secs(10)), Some(now + Duration::from_secs(1000)));
    for (id, expires_at, holds_until) in
        [("a", soon, soon), ("b", later, later), ("c", soon, later), ("d", None, None), ("e", soon, None)]
    {
        let held = grants.add(given(id, expires_at)).unwrap();
        assert_eq!((held.id.as_str(), held.by.as_deref(), held.expires_at), ("a", Some(id), holds_until));
        assert_eq!(grants.snapshot().len(), 1);
    }
    // Another tool, scope, action or chain is another grant.
    let others = [
        Grant { tools: Some(vec!["bash".into()]), ..given("tools", None) },
        Grant { scope: GrantScope::Project(PROJECT.into()), ..given("scope", None) },
        Grant { action: Action::Deny, ..given("action", None) },
        Grant { chain: vec!["plugin".into()], ..given("chain", None) },
    ];
    for (number, other) in others.into_iter().enumerate() {
        let id = other.id.clone();
        assert_eq!(grants.add(other).unwrap().id, id);
        assert_eq!(grants.snapshot().len(), number + 2);
    }
}

/// Refuses everything.
struct Broke;

impl GrantStore for Broke {
    fn add(&self, _: &Grant) -> Result<(), String> {
        Err("the disk is full".into())
    }

    fn remove(&self, _: &str) -> Result<(), String> {
        Err("the disk is full".into())
    }
}

#[test]
fn grant_refused_by_the_store_does_not_apply() {
    let grants = Grants::default();
    let grant = case().grant(Category::Shell, "ls", Action::Allow).grants.remove(0);
    grants.load(vec![grant.clone()], std::sync::Arc::new(Broke));
    let not_kept = |holds| Some(NotKept { holds, why: "the disk is full".into() });
    let other = Grant { tools: Some(vec!["bash".into()]), id: "g2".into(), ..grant.clone() };
    assert_eq!(grants.add(other).err(), not_kept(false));
    let renewed = Grant { by: Some("another".into()), ..grant.clone() };
    assert_eq!(grants.add(renewed).err(), not_kept(false));
    assert_eq!(grants.snapshot()[0].by, None);
    assert_eq!(grants.snapshot().len(), 1);
    // What narrows holds all the same.
    assert_eq!(grants.remove("g1").err(), not_kept(true));
    assert_eq!(grants.snapshot().len(), 0);
    let refusal = Grant { id: "g3".into(), action: Action::Deny, ..grant };
    assert_eq!(grants.add(refusal).err(), not_kept(true));
    assert_eq!(grants.remove("g3").err(), not_kept(false));
    assert_eq!(grants.snapshot().len(), 1);
}

#[test]
fn a_check_names_the_strictest_part() {
    let case = case().rule("shell", "git *", "allow").rule("shell", "rm *", "deny");
    let (tool, session) = (ToolName::parse("bash").unwrap(), SessionId::parse("s").unwrap());
    let subject = Subject {
        tool: Some(&tool),
        origin: Origin::Builtin,
        session: &session,
        above: &[],
        mode: Mode::Default,
        level: Level::Read,
        cwd: Path::new(PROJECT),
        roots: &[],
        project: Path::new(PROJECT),
        grant_project: Path::new(PROJECT),
        chain: &[],
        undeclared: &[],
        made: &[],
        profile: None,
        agent: CallingAgent::default(),
    };
    let needs = [shell("git status"), shell("ls"), shell("rm x")];
    let checked = check(&case.policy, &[], &subject, &needs);
    assert_eq!((checked.verdict, checked.parts.len()), (Deny, 3));
    assert!(checked.rule.contains("rm *"), "{}", checked.rule);
    let one = check(&case.policy, &[], &subject, &needs[..1]);
    assert_eq!((one.verdict, one.parts.len()), (Allow, 0));
    // The command that does more than read says why a line is allowed.
    let reading = shell("cat notes").with_command(|command| command.reads_only = true);
    let allowed = check(&case.policy, &[], &subject, &[reading, shell("git commit")]);
    assert_eq!(allowed.verdict, Allow, "{}", allowed.rule);
    assert!(allowed.rule.contains("git *"), "{}", allowed.rule);
}

#[test]
fn while_refusals_may_be_lost_nothing_is_allowed_without_an_ask() {
    let mut case = case().rule("shell", "ls", "allow").rule("shell", "rm *", "deny");
    case.policy.lost_refusals = Some("the file of refusals is damaged".to_owned());
    case.gives(&shell("ls"), Ask, "the file of refusals is damaged");
    case.gives(&shell("rm x"), Deny, "config.toml:2");
    case.gives(&read("/home/u/proj/a"), Ask, "the file of refusals is damaged");
    case.mode = Mode::Yolo;
    case.gives(&shell("pwd"), Ask, "the file of refusals is damaged");
}

#[test]
fn nothing_but_a_person_allows_what_is_always_asked() {
    let need = Need { always_asked: true, ..need(Category::Mcp, "s/sampling") };
    let case = case().rule("mcp", "s/sampling", "allow").grant(Category::Mcp, "s/sampling", Action::Allow);
    case.gives(&need, Ask, "each time");
    case.clone().mode(Mode::Yolo).gives(&need, Ask, "each time");
    case.clone().mode(Mode::Plan).gives(&need, Deny, "mode plan");
    case.clone().grant(Category::Mcp, "s/*", Action::Deny).gives(&need, Deny, "grant g2");
    case.rule("mcp", "s/*", "deny").gives(&need, Deny, "config.toml:2");
}

#[test]
fn a_failed_judgement_asks_as_if_a_rule_said_so() {
    let why = Some("judging the line takes too long".to_owned());
    let unjudged = JudgedCommand { is_unjudged: true, unsure: why, ..JudgedCommand::default() };
    let need = Need { always_asked: true, ..Need::of_command("git push; ls", unjudged) };
    let open = case().rule("shell", "**", "allow").grant(Category::Shell, "**", Action::Allow);
    for case in [case(), open.clone(), open.clone().mode(Mode::Yolo)] {
        case.gives(&need, Ask, "takes too long");
    }
    open.clone().mode(Mode::Plan).gives(&need, Deny, "mode plan");
    open.rule("shell", "git push *", "deny").gives(&need, Deny, "config.toml:2");
}

#[test]
fn a_file_that_is_not_known_is_allowed_by_no_mode_and_not_by_two_stars() {
    let need =
        unsure(shell("cat $x"), "the file that $x names is unknown").with_command(|command| command.hides_file = true);
    case().gives(&need, Ask, "default of shell");
    let open = case().rule("shell", "**", "allow");
    open.clone().gives(&need, Ask, "no tool touches");
    case().mode(Mode::Yolo).gives(&need, Ask, "no tool touches");
    case().grant(Category::Shell, "**", Action::Allow).gives(&need, Ask, "no tool touches");
    let exact = need.with_command(|command| command.words = words("cat x"));
    open.rule("shell", "cat x", "allow").gives(&exact, Allow, "config.toml:2");
}

#[test]
fn a_command_that_could_run_anything_is_asked_about_where_a_rule_denies_or_asks() {
    let need =
        unsure(shell("tmux attach"), "tmux runs other programs").with_command(|command| command.may_run_any = true);
    let open = case().rule("shell", "**", "allow");
    open.clone().gives(&need, Allow, "config.toml:1");
    for strict in ["deny", "ask"] {
        let case = open.clone().rule("shell", "sudo *", strict);
        case.clone().gives(&need, Ask, "so it may be about this: rule");
        case.clone().mode(Mode::Yolo).gives(&need, Ask, "config.toml:2");
        case.gives(&shell("ls"), Allow, "config.toml:1");
    }
    let case = open.rule("shell", "sudo *", "deny");
    case.clone().rule("shell", "tmux attach", "allow").gives(&need, Allow, "config.toml:3");
    case.gives(&Need { target: "tmux new 'sudo id'".into(), ..need.clone() }, Deny, "config.toml:2");
    let refused = self::case().grant(Category::Shell, "sudo *", Action::Deny).rule("shell", "**", "allow");
    refused.gives(&need, Ask, "grant g1");
}

/// The term of a grant of the fleet, which a test ends.
#[derive(Debug, Default)]
struct Ended(std::sync::atomic::AtomicBool);

impl FleetGrantTerm for Ended {
    fn is_valid(&self) -> bool {
        !self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn end_here(&self) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

fn of_fleet(grant: &mut Grant) {
    grant.fleet = Some(std::sync::Arc::new(Ended::default()));
    // Its term decides when it ends.
    grant.expires_at = Some(SystemTime::UNIX_EPOCH);
}

#[test]
fn a_grant_of_the_fleet_allows_exactly_as_much_as_one_of_this_daemon() {
    let always = Need { always_asked: true, ..shell("git push origin") };
    let hook = write("/home/u/proj/.git/hooks/pre-commit");
    let denied = case().rule("shell", "git push *", "deny");
    let asked = case().rule("shell", "git push *", "ask");
    let refused = case().grant(Category::Shell, "git push *", Action::Deny);
    for (case, pattern, need, verdict) in [
        (case(), "git *", shell("git push origin"), Allow),
        (case(), "git *", shell("rm x"), Ask),
        (case(), "**", always, Ask),
        (case(), "/home/u/proj/**", hook.clone(), Ask),
        (case(), hook.target.as_str(), hook.clone(), Allow),
        (case(), "cat a *", shell("cat $x a"), Ask),
        // The rules of the daemon that decides.
        (denied, "git push origin", shell("git push origin"), Deny),
        (asked.clone(), "git *", shell("git push origin"), Ask),
        (asked, "git push origin", shell("git push origin"), Allow),
        (refused, "git push origin", shell("git push origin"), Deny),
        (case().mode(Mode::Plan), "rm *", shell("rm x"), Deny),
        (case().chain(&["plugin"]), "rm *", shell("rm x"), Ask),
    ] {
        case.clone().grant(need.category(), pattern, Action::Allow).gives(&need, verdict, "");
        case.grant_of(need.category(), pattern, Action::Allow, of_fleet).gives(&need, verdict, "");
    }
}

#[test]
fn a_denying_grant_of_the_fleet_overrides_everything_that_allows() {
    let need = shell("rm x");
    for case in [
        case().rule("shell", "rm x", "allow"),
        case().project_rule("shell", "rm x", "allow"),
        case().grant(Category::Shell, "rm x", Action::Allow),
        case().grant_of(Category::Shell, "rm x", Action::Allow, of_fleet),
        case().mode(Mode::Yolo),
    ] {
        case.gives(&need, Allow, "");
        case.grant_of(Category::Shell, "rm *", Action::Deny, of_fleet).gives(&need, Deny, "(rm *)");
    }
}

#[test]
fn grants_of_the_fleet_are_replaced_together_and_not_stored() {
    let grants = Grants::default();
    let local = case().grant(Category::Shell, "ls", Action::Allow).grants.remove(0);
    grants.load(vec![local.clone()], std::sync::Arc::new(Broke));
    let term = std::sync::Arc::new(Ended::default());
    let fleet = |id: &str, action| Grant { id: id.into(), action, fleet: Some(term.clone()), ..local.clone() };
    let ids = || grants.snapshot().iter().map(|grant| grant.id.clone()).collect::<Vec<_>>();
    grants.replace_fleet(vec![fleet("f1", Action::Allow)]);
    grants.replace_fleet(vec![fleet("f2", Action::Allow), fleet("f3", Action::Deny)]);
    assert_eq!(ids(), ["g1", "f2", "f3"]);
    assert!(grants.remove("f3").unwrap_err().why.contains("toolctl fleet revoke f3"));
    assert_eq!(grants.remove("f2").unwrap().unwrap().id, "f2");
    assert_eq!(ids(), ["g1"], "the one that was ended here has the same term as the others");
    // A grant whose lease is over comes back with it.
    term.0.store(false, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(ids(), ["g1", "f3"]);
    grants.replace_fleet(Vec::new());
    assert_eq!(ids(), ["g1"]);
}

#[test]
fn schema_of_a_rule_is_current() {
    let mut schema = toold_schemas::config_schema_of::<RuleConfig>();
    // It becomes a part of the configuration's schema.
    for of_whole in ["$schema", "title"] {
        schema.as_object_mut().unwrap().shift_remove(of_whole);
    }
    toold_schemas::assert_current(concat!(env!("CARGO_MANIFEST_DIR"), "/rule.schema.json"), &schema, " ");
}

/// Rows of the table in COMMANDS.md: allowed, asked, command, verdict.
fn documented_pairs() -> Vec<[String; 4]> {
    let document = include_str!("../../../COMMANDS.md");
    let (_, table) = document.split_once("| allow | ask | command | verdict |\n").unwrap();
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<String> = row.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', "")).collect();
        cells.try_into().unwrap()
    })
    .collect()
}

#[test]
fn of_two_rules_the_stricter_decides_unless_the_other_is_an_exception_from_it() {
    let pairs = documented_pairs();
    assert!(pairs.len() >= 20, "{}", pairs.len());
    for [allowed, asked, command, verdict] in &pairs {
        let verdict = if verdict == "allow" { Allow } else { Ask };
        let both = case().rule("shell", allowed, "allow").rule("shell", asked, "ask");
        assert_eq!(both.decide(&shell(command)).verdict, verdict, "allow {allowed}, ask {asked}: {command}");
        let both = case().rule("shell", asked, "ask").rule("shell", allowed, "allow");
        assert_eq!(both.decide(&shell(command)).verdict, verdict, "ask {asked}, allow {allowed}: {command}");
        let both = case().rule("shell", asked, "ask").grant(Category::Shell, allowed, Action::Allow);
        // A grant for the same pattern is the answer to the rule.
        let verdict = if allowed == asked { Allow } else { verdict };
        assert_eq!(both.decide(&shell(command)).verdict, verdict, "ask {asked}, grant {allowed}: {command}");
    }
}

/// `git push` with these effects; each word that begins with `-` or `+` may destroy.
fn push(line: &str) -> Need {
    let need = shell(line);
    let destroys = |word: &Word| {
        word.text
            .starts_with(['-', '+'])
            .then(|| AddedEffect { effect: Effect::Destroy, words: vec![word.text.clone()] })
    };
    let effects = CommandEffects {
        operation: [Effect::Publish, Effect::Build].into_iter().collect(),
        added: need.words().into_iter().flatten().filter_map(destroys).collect(),
        name: vec!["git".into(), "push".into()],
        ..CommandEffects::default()
    };
    need.with_command(|command| command.effects = effects)
}

#[test]
fn wildcards_cover_no_effect_that_the_pattern_does_not_show() {
    let allowing = |pattern: &str| case().rule("shell", pattern, "allow");
    allowing("git push *").gives(&push("git push origin main"), Allow, "git push");
    allowing("git push *").gives(&push("git push -f origin"), Ask, "default");
    allowing("git push *").gives(&push("git push origin +main"), Ask, "default");
    allowing("git push -f *").gives(&push("git push -f origin"), Allow, "git push -f");
    allowing("git push -f origin").gives(&push("git push -f origin"), Allow, "git push -f");
    allowing("git *").gives(&push("git push origin main"), Ask, "default");
    allowing("**").gives(&push("git push -f origin"), Allow, "**");
    case().grant(Category::Shell, "git *", Action::Allow).gives(&push("git push origin"), Ask, "default");
    let effects = CommandEffects {
        operation: [Effect::History].into_iter().collect(),
        name: vec!["git".into(), "commit".into()],
        ..CommandEffects::default()
    };
    let commit = shell("git commit -m x").with_command(|command| command.effects = effects);
    allowing("git *").gives(&commit, Allow, "git *");
}

#[test]
fn a_rule_may_name_an_effect() {
    let of = |effect: &str, pattern: &str, action: &str| {
        case().rule_of("shell", pattern, action, |config, _| config.effect = Some(effect.into()))
    };
    of("publish", "", "deny").gives(&push("git push origin"), Deny, "with the effect publish");
    of("destroy", "", "ask").rule("shell", "git push *", "allow").gives(&push("git push origin"), Allow, "git push");
    of("destroy", "", "ask").rule("shell", "git push -f *", "allow").gives(
        &push("git push -f o"),
        Allow,
        "git push -f",
    );
    of("publish", "", "ask").rule("shell", "git *", "allow").gives(&push("git push o"), Ask, "publish");
    of("destroy", "git *", "deny").gives(&shell("rm -r x"), Ask, "default");
    let operation = [Effect::Build, Effect::Read].into_iter().collect();
    let builds = shell("make test").with_command(|command| command.effects.operation = operation);
    of("build", "", "allow").gives(&builds, Allow, "with the effect build");
    // It does more than build.
    of("build", "", "allow").gives(&push("git push origin"), Ask, "default");
    let doubtful = unsure(builds.clone(), "why");
    of("build", "", "allow").gives(&doubtful, Ask, "default");
    // Nobody knows all of its effects.
    let unknown = unsure(shell("npm publish"), "npm publish is unknown");
    of("publish", "", "deny").rule("shell", "**", "allow").gives(&unknown, Ask, "may have the effect publish");
    of("publish", "git *", "ask").rule("shell", "**", "allow").gives(&unknown, Allow, "**");
    let inner = InnerCommand {
        target: "rm -r /srv".into(),
        words: words("rm -r /srv"),
        form: None,
        is_unsure: false,
        may_run_any: false,
        effects: CommandEffects { operation: [Effect::Destroy].into_iter().collect(), ..CommandEffects::default() },
    };
    let there = shell("docker exec web rm -r /srv").with_command(|command| command.elsewhere.push(inner.clone()));
    of("destroy", "", "deny").gives(&there, Deny, "with the effect destroy");
    assert!(there.effects_within().contains(Effect::Destroy) && !there.effects().contains(Effect::Destroy));
    // What it runs does more, of which an approval must know.
    let runs = builds.with_command(|command| command.elsewhere.push(inner));
    of("build", "", "allow").gives(&runs, Ask, "default");
}

#[test]
fn an_effect_that_does_not_exist_or_cannot_be_closes_its_category() {
    let of = |category: &str, effect: &str| {
        case().rule_of(category, "", "deny", |config, _| config.effect = Some(effect.into()))
    };
    of("shell", "destory").gives(&shell("make"), Deny, "did you mean destroy");
    of("network", "fetch").gives(&need(Category::Network, "example.com:443"), Deny, "only commands have effects");
}

/// The table of COMMANDS.md: a level frees what nothing else decides, and a mode that narrows comes before it.
#[test]
fn a_level_frees_by_effect_what_nothing_else_decides() {
    let confined = crate::level::confined_effects();
    let command = |line: &str, effect: Effect| {
        let effects = CommandEffects {
            operation: EffectSet::EMPTY.with(effect),
            name: line.split(' ').map(str::to_owned).collect(),
            ..CommandEffects::default()
        };
        let need = Need { confined, line: Some(line.to_owned()), ..shell(line) };
        need.with_command(|command| command.effects = effects)
    };
    let with = |line: &str, effects: &[Effect], confined: EffectSet| {
        let operation = effects.iter().copied().collect();
        Need { confined, ..shell(line) }.with_command(|command| command.effects.operation = operation)
    };
    let doubtful =
        |line: &str, effects: &[Effect], confined: EffectSet| unsure(with(line, effects, confined), "a word");
    let shows = |line: &str, confined: EffectSet| with(line, &[Effect::Read, Effect::Build], confined);
    let write = |path: &str| Need::new(Category::FileWrite, path);
    let source = || write("/home/u/proj/src/lib.rs");
    // By level: read, edit, develop, operate.
    let table: &[(Need, [Verdict; 4])] = &[
        (source(), [Ask, Allow, Allow, Allow]),
        (command("mkdir a", Effect::Write), [Ask, Allow, Allow, Allow]),
        (command("git commit", Effect::History), [Ask, Allow, Allow, Allow]),
        (command("cargo test", Effect::Build), [Ask, Ask, Allow, Allow]),
        // The sandbox marks it where the lock file is known, where the host is listed, or where the session has made the files.
        (command("npm ci", Effect::Install), [Ask, Ask, Allow, Allow]),
        (
            Need { confined: confined.without(Effect::Install), ..command("npm ci", Effect::Install) },
            [Ask, Ask, Ask, Ask],
        ),
        (command("rm -r a", Effect::Destroy), [Ask, Allow, Allow, Allow]),
        (
            Need { confined: confined.without(Effect::Destroy), ..command("rm -r a", Effect::Destroy) },
            [Ask, Ask, Ask, Ask],
        ),
        (command("curl x", Effect::Fetch), [Ask, Ask, Allow, Allow]),
        (Need { confined: confined.without(Effect::Fetch), ..command("curl x", Effect::Fetch) }, [Ask, Ask, Ask, Ask]),
        (command("git push", Effect::Publish), [Ask, Ask, Ask, Ask]),
        (command("kill 1", Effect::Process), [Ask, Ask, Ask, Ask]),
        (
            command("kill 12", Effect::Process).with_command(|command| command.signals_own = true),
            [Ask, Ask, Ask, Allow],
        ),
        (command("sudo x", Effect::Privilege), [Ask, Ask, Ask, Ask]),
        (command("gh auth token", Effect::Secret), [Ask, Ask, Ask, Ask]),
        // Nothing is known of its effects, or not all.
        (Need { confined, ..shell("mytool x") }, [Ask, Ask, Ask, Ask]),
        (unsure(command("cargo test", Effect::Build), "an option"), [Ask, Ask, Ask, Ask]),
        // Where builds are free, a word that is not known harms no more than they; where nothing can be changed, neither.
        (doubtful("cp a $x", &[Effect::Write], confined), [Ask, Ask, Allow, Allow]),
        (doubtful("cat $x", &[Effect::Read], EffectSet::READING), [Ask, Allow, Allow, Allow]),
        (doubtful("awk $x", &[Effect::Read, Effect::Build], EffectSet::READING), [Ask, Ask, Ask, Ask]),
        (shows("awk x", EffectSet::READING), [Ask, Allow, Allow, Allow]),
        (shows("awk x", confined), [Ask, Ask, Allow, Allow]),
        // It would not run confined.
        (Need { confined: EffectSet::EMPTY, ..command("cargo test", Effect::Build) }, [Ask, Ask, Ask, Ask]),
        (write("/home/u/other/x"), [Ask, Ask, Ask, Ask]),
        (write("/home/u/proj/.git/hooks/pre-commit"), [Ask, Ask, Ask, Ask]),
        (write("/home/u/proj/.env"), [Deny, Deny, Deny, Deny]),
    ];
    for (need, verdicts) in table {
        for (level, verdict) in Level::ALL.into_iter().zip(*verdicts) {
            case().level(level).gives(need, verdict, "");
            // A mode that narrows comes first, and one that widens too.
            let in_plan = case().level(level).mode(Mode::Plan).decide(need).verdict;
            assert_ne!(in_plan, Allow, "{} at {level} in plan", need.target);
            if verdict != Deny {
                case().level(level).mode(Mode::Yolo).gives(need, Allow, "");
            }
        }
    }
    // Secrets are refused where it runs, and nowhere else.
    let hides =
        |confined| doubtful("cat $x", &[Effect::Read], confined).with_command(|command| command.hides_file = true);
    case().level(Level::Edit).gives(&hides(EffectSet::READING), Allow, "level edit, confined");
    case().level(Level::Edit).gives(&hides(EffectSet::EMPTY), Ask, "");
    // In their order: rules that deny, rules that ask, rules that allow, grants.
    let develop = || case().level(Level::Develop);
    let test = command("cargo test", Effect::Build);
    develop().gives(&test, Allow, "level develop, confined");
    develop().rule("shell", "cargo *", "deny").gives(&test, Deny, "rule deny");
    develop().rule("shell", "cargo *", "ask").gives(&test, Ask, "rule ask");
    develop().rule("shell", "cargo *", "allow").gives(&test, Allow, "rule allow");
    develop().grant(Category::Shell, "cargo test", Action::Allow).gives(&test, Allow, "g1");
    develop().grant(Category::Shell, "cargo test", Action::Deny).gives(&test, Deny, "g1");
    // Neither a plugin nor a configuration that cannot be read is freed.
    develop().chain(&["p"]).gives(&source(), Ask, "default");
    let broken = PolicyCase { policy: Policy { broken: vec!["x".to_owned()], ..develop().policy }, ..develop() };
    broken.gives(&test, Deny, "invalid rule");
    // What only reads is asked about at every level, if the user wants that.
    let reads = command("ls", Effect::Read).with_command(|command| command.reads_only = true);
    let mut asks = develop();
    asks.policy.asks_for_reading.everywhere = true;
    asks.gives(&reads, Ask, "default");
}

/// Rows of a table of COMMANDS.md.
fn documented_rows<const N: usize>(heading: &str) -> Vec<[String; N]> {
    let document = include_str!("../../../COMMANDS.md");
    let (_, table) = document.split_once(heading).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().replace('`', "")).collect();
    rows.map(|row| Vec::try_into(cells(row)).unwrap()).collect()
}

#[test]
fn documented_levels_are_those_of_the_table() {
    use toold_proto::level::LevelNeeds;
    let word = |needs: LevelNeeds| match needs {
        LevelNeeds::Nothing => "anywhere",
        LevelNeeds::Confinement => "confined",
        LevelNeeds::Unavailable => "not available",
    };
    let mut table: Vec<[String; 3]> = crate::level::TABLE
        .iter()
        .map(|freed| [freed.level.to_string(), freed.what.to_owned(), word(freed.needs).to_owned()])
        .collect();
    let mut documented = documented_rows::<3>("| level | frees | where |");
    table.sort();
    documented.sort();
    assert_eq!(documented, table);
}

#[test]
fn modes_and_levels_decide_as_documented() {
    let rows = documented_rows::<6>("| mode | level | a tool changes a file |");
    assert_eq!(rows.len(), 16);
    let confined = crate::level::confined_effects();
    let command = |line: &str, effect: Effect| {
        let effects = CommandEffects { operation: EffectSet::EMPTY.with(effect), ..CommandEffects::default() };
        let need = Need { confined, line: Some(line.to_owned()), ..shell(line) };
        need.with_command(|command| command.effects = effects)
    };
    for [mode, level, write, mkdir, test, push] in rows {
        let of_mode: Mode = serde_json::from_value(mode.clone().into()).unwrap();
        let case = case().mode(of_mode).level(Level::parse(&level).unwrap());
        let needs = [
            (Need::new(Category::FileWrite, "/home/u/proj/src/lib.rs"), write),
            (command("mkdir a", Effect::Write), mkdir),
            (command("cargo test", Effect::Build), test),
            (command("git push", Effect::Publish), push),
        ];
        for (need, expected) in needs {
            let decision = case.decide(&need);
            let at = format!("{} in mode {mode} at level {level}", need.target);
            assert_eq!(decision.verdict.as_str(), expected, "{at}: {}", decision.rule);
        }
    }
}

#[test]
fn a_rule_for_an_agent_allows_what_is_proven_and_denies_by_name() {
    let for_codex = |action: &str| {
        case().rule_of("shell", "npm test", action, |config, _| config.agent = Some("codex-cli".to_owned()))
    };
    let named = |name: &'static str| CallingAgent { proven: None, names: [None, Some(name)] };
    let callers = [
        (CallingAgent::past(Some("codex")), Allow, Deny),
        (CallingAgent::past(Some("gemini")), Ask, Ask),
        (named("codex"), Ask, Deny),
        (named("codex-mcp-client"), Ask, Deny),
        (named("Codex 2"), Ask, Deny),
        (named("gemini-cli-mcp-client"), Ask, Ask),
        (CallingAgent::default(), Ask, Ask),
    ];
    for (caller, allowed, denied) in callers {
        let verdict = |action| for_codex(action).agent(caller).decide(&shell("npm test")).verdict;
        assert_eq!((verdict("allow"), verdict("deny"), verdict("ask")), (allowed, denied, Ask), "{caller:?}");
    }
    let rule = for_codex("allow").agent(CallingAgent::past(Some("codex"))).decide(&shell("npm test")).rule;
    assert_eq!(rule, "rule allow shell \"npm test\" for codex at config.toml:1");
    // An exception for one agent is none for the others.
    let excepted = |caller| {
        case()
            .rule("shell", "npm *", "ask")
            .rule_of("shell", "npm test", "allow", |config, _| config.agent = Some("codex".to_owned()))
            .agent(caller)
            .decide(&shell("npm test"))
            .verdict
    };
    assert_eq!(excepted(CallingAgent::past(Some("codex"))), Allow);
    assert_eq!(excepted(CallingAgent::past(Some("gemini"))), Ask);
    // One that cannot be read denies.
    let unknown = case().rule_of("shell", "npm test", "allow", |config, _| config.agent = Some("codexx".to_owned()));
    let decision = unknown.decide(&shell("npm test"));
    assert!(decision.verdict == Deny && decision.rule.contains("did you mean codex?"), "{decision:?}");
}
