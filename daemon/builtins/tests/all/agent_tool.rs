//! Judgements of what agents do with tools of their own.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use toold_adapters::agents::actions;
use toold_builtins::agent_tool::{AgentFloor, AgentReport, AgentTool, AgentWork};
use toold_engine::agent_request::{AgentRequest, Judgement};
use toold_engine::execute::execute_tool;
use toold_engine::session::{NewSession, Session};
use toold_engine::workspace::{Workspace, WorkspaceFolder, WorkspaceGate};
use toold_host::environment::Environment;
use toold_proto::agent_request::{DecidedBy, NamedNeed};
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;
use toold_test_kit::new_session;

use crate::builtin_test::BuiltinTest;

/// `allow`, `deny` or `ask`, and whether a rule decided, a denial, or a question that a rule does not ask.
async fn judge(test: &BuiltinTest, agent: &str, tool: &str, input: Value) -> String {
    judge_named(test, (agent, tool, input), &[]).await
}

async fn judge_named(test: &BuiltinTest, call: (&str, &str, Value), named: &[(Category, &str)]) -> String {
    judge_in(test, None, call, named).await
}

/// `shell` runs the agent's commands.
async fn judge_in(
    test: &BuiltinTest,
    shell: Option<&str>,
    call: (&str, &str, Value),
    named: &[(Category, &str)],
) -> String {
    let (agent, tool, input) = call;
    let (actions, unclear) = match actions(agent, tool, &input) {
        Ok(actions) => (actions, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    let named = named.iter().map(|(category, target)| NamedNeed { category: *category, target: (*target).to_owned() });
    let work = AgentWork {
        tool: tool.to_owned(),
        input: input.clone(),
        actions,
        named: named.collect(),
        unclear,
        shell: shell.map(str::to_owned),
        environment: Environment::default().with([("HOME", test.root.join("home"))]),
        floor: AgentFloor::Impossible,
    };
    let request = AgentRequest {
        observed: false,
        agent: agent.to_owned(),
        subagent: None,
        asks_until: None,
        was_asked: false,
        waiting: watch::Sender::new(false),
        mode: None,
        mode_name: None,
        gone: OnceLock::new(),
    };
    let (judge, mut judged) = oneshot::channel::<Judgement>();
    // An agent that is gone ends the call after the judgement.
    let (_, report) = oneshot::channel::<AgentReport>();
    let tool = Arc::new(AgentTool::new(&test.toolkit, request, work, judge, report));
    let arguments = if input.is_object() { input } else { Value::Null };
    let ended = execute_tool(&test.engine, tool, test.prepare("agent", arguments)).await;
    let Ok(judgement) = judged.try_recv() else {
        return format!("deny: {}", ended.unwrap().text());
    };
    let by = match judgement.by {
        DecidedBy::Default => "default",
        DecidedBy::Rule => "rule",
        DecidedBy::Grant => "grant",
        DecidedBy::Person => "person",
    };
    format!("{} by {by}: {}", judgement.decision.as_str(), judgement.reason)
}

#[track_caller]
fn begins(judged: &str, expected: &str) {
    assert!(judged.starts_with(expected), "expected {expected}: {judged}");
}

#[tokio::test]
async fn only_what_was_judged_is_allowed() {
    let test = BuiltinTest::strict();
    test.write("a.txt", "a");
    begins(&judge(&test, "claude-code", "Read", json!({"file_path": "a.txt"})).await, "allow by default");
    begins(&judge(&test, "claude-code", "Bash", json!({"command": "ls"})).await, "allow by default");
    for (agent, tool) in [
        ("claude-code", "ExitPlanMode"),
        ("claude-code", "EnterPlanMode"),
        ("claude-code", "AskUserQuestion"),
        ("claude-code", "Agent"),
        ("claude-code", "Task"),
        ("claude-code", "TodoWrite"),
        ("claude-code", "Something"),
        ("codex", "update_plan"),
        ("codex", "collaborationspawn_agent"),
        ("copilot", "task"),
        ("copilot", "other-shout"),
        ("gemini", "activate_skill"),
        ("opencode", "skill"),
        ("opencode", "other_shout"),
        ("cursor", "Task"),
    ] {
        begins(&judge(&test, agent, tool, json!({})).await, "ask by default");
    }
    begins(&judge(&test, "claude-code", "Skill", json!({"skill": "none"})).await, "ask by default");
}

#[tokio::test]
async fn an_input_that_cannot_be_read_is_asked_about_as_if_a_rule_said_so() {
    let test = BuiltinTest::strict();
    for (agent, tool, input) in [
        ("copilot", "apply_patch", json!("not a patch")),
        ("copilot", "bash", json!("ls")),
        ("claude-code", "Bash", json!({"command": ["ls"]})),
        ("claude-code", "Write", json!({"file_path": "a", "content": {"x": 1}})),
        ("claude-code", "Skill", json!(null)),
        ("gemini", "write_file", json!([])),
        ("opencode", "edit", json!({"filePath": 1})),
        ("codex", "apply_patch", json!({})),
    ] {
        begins(&judge(&test, agent, tool, input).await, "ask by rule");
    }
}

#[tokio::test]
async fn a_patch_that_is_a_bare_text_is_judged() {
    let test = BuiltinTest::strict();
    test.rule(Category::FileWrite, "**/deny.txt", Verdict::Deny);
    test.rule(Category::FileWrite, "**", Verdict::Allow);
    test.write("deny.txt", "one\n");
    let patch = |text: &str| json!(format!("*** Begin Patch\n{text}\n*** End Patch"));
    let judged = |text| judge(&test, "copilot", "apply_patch", patch(text));
    begins(&judged("*** Add File: a.txt\n+x").await, "allow by rule");
    begins(&judged("*** Update File: deny.txt\n@@\n-one\n+two").await, "deny");
    begins(&judged("*** Add File: .git/hooks/pre-commit\n+x").await, "ask by rule");
    begins(&judged("*** Add File: .env\n+x").await, "deny");
}

#[tokio::test]
async fn an_unknown_tool_is_asked_about_where_a_rule_may_be_about_it() {
    let unknown = async |category, pattern: &str, action| {
        let test = BuiltinTest::strict();
        test.rule(category, pattern, action);
        judge(&test, "copilot", "other-shout", json!({})).await
    };
    begins(&unknown(Category::FileWrite, "**/a", Verdict::Deny).await, "ask by rule");
    begins(&unknown(Category::Shell, "rm *", Verdict::Deny).await, "ask by rule");
    begins(&unknown(Category::Mcp, "**", Verdict::Deny).await, "deny");
    begins(&unknown(Category::Mcp, "else/*", Verdict::Deny).await, "ask by rule");
    begins(&unknown(Category::Mcp, "else/*", Verdict::Ask).await, "ask by rule");
    begins(&unknown(Category::Shell, "rm *", Verdict::Ask).await, "ask by default");
    begins(&unknown(Category::Shell, "rm *", Verdict::Allow).await, "ask by default");
    begins(&unknown(Category::Agent, "**", Verdict::Deny).await, "ask by default");
}

#[tokio::test]
async fn an_mcp_tool_is_the_one_that_is_named_or_each_that_its_name_can_be() {
    let test = BuiltinTest::strict();
    test.rule(Category::Mcp, "secret/*", Verdict::Deny);
    test.rule(Category::Mcp, "a__b/*", Verdict::Allow);
    test.rule(Category::Mcp, "a/*", Verdict::Allow);
    let named = [(Category::Mcp, "secret/shout")];
    begins(&judge_named(&test, ("copilot", "secret-shout", json!({})), &named).await, "deny");
    begins(&judge_named(&test, ("opencode", "secret_shout", json!({})), &named).await, "deny");
    let named = [(Category::Mcp, "a/shout")];
    begins(&judge_named(&test, ("copilot", "a-shout", json!({})), &named).await, "allow by rule");
    // Of a server that nobody knows, it may be that of any rule: agents replace letters in names.
    begins(&judge(&test, "claude-code", "mcp__a__c", json!({})).await, "ask by rule");
    // The caller knows which of the two it is.
    let named = [(Category::Mcp, "a__b/c")];
    begins(&judge_named(&test, ("claude-code", "mcp__a__b__c", json!({})), &named).await, "allow by rule");
    begins(&judge(&test, "gemini", "mcp_secret_shout", json!({})).await, "deny");

    let test = BuiltinTest::strict();
    test.rule(Category::Mcp, "a__b/*", Verdict::Allow);
    test.rule(Category::Mcp, "a/*", Verdict::Allow);
    begins(&judge(&test, "claude-code", "mcp__a__b__c", json!({})).await, "allow by rule");
    begins(&judge(&test, "claude-code", "mcp__a__c", json!({})).await, "allow by rule");
    begins(&judge(&test, "claude-code", "mcp__x__a__c", json!({})).await, "ask by default");

    // Rules about another reading of the name count, but not one that asks about all tools.
    let named = [(Category::Mcp, "a/b_c")];
    test.rule(Category::Mcp, "**", Verdict::Ask);
    begins(&judge_named(&test, ("gemini", "mcp_a_b_c", json!({})), &named).await, "allow by rule");
    test.rule(Category::Mcp, "a-b/*", Verdict::Ask);
    begins(&judge_named(&test, ("gemini", "mcp_a_b_c", json!({})), &named).await, "ask by rule");
    test.rule(Category::Mcp, "a.b/c", Verdict::Deny);
    begins(&judge_named(&test, ("gemini", "mcp_a_b_c", json!({})), &named).await, "deny");
}

#[tokio::test]
async fn a_tool_that_may_be_the_agents_own_or_a_servers_is_judged_as_both() {
    let test = BuiltinTest::strict();
    test.rule(Category::Mcp, "apply/*", Verdict::Allow);
    test.rule(Category::Mcp, "plan/*", Verdict::Deny);
    test.rule(Category::FileWrite, "**", Verdict::Allow);
    test.rule(Category::FileWrite, "**/deny.txt", Verdict::Deny);
    let patch = |path: &str| json!({"patchText": format!("*** Begin Patch\n*** Add File: {path}\n+x\n*** End Patch")});
    for (tool, input, server, expected) in [
        ("apply_patch", patch("a.txt"), "apply/patch", "allow by rule"),
        ("apply_patch", patch("deny.txt"), "apply/patch", "deny"),
        ("apply_patch", patch("a.txt"), "plan/patch", "deny"),
        ("apply_patch", patch("a.txt"), "other/patch", "ask by default"),
        ("apply_patch", json!({"x": 1}), "apply/patch", "ask by rule"),
        ("plan_exit", json!({}), "plan/exit", "deny"),
        ("plan_exit", json!({}), "apply/exit", "ask by default"),
    ] {
        let judged = judge_named(&test, ("opencode", tool, input), &[(Category::Mcp, server)]).await;
        assert!(judged.starts_with(expected), "{tool} {server}: expected {expected}: {judged}");
    }
}

#[tokio::test]
async fn what_a_skill_runs_and_allows_is_judged() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "touch denied*", Verdict::Deny);
    test.rule(Category::Shell, "make *", Verdict::Allow);
    let skill = |name: &str, text: &str| test.write(&format!(".claude/skills/{name}/SKILL.md"), text);
    skill("plain", "---\nname: plain\nallowed-tools: Read, Grep\n---\nDo it.\n");
    skill("reads", "State: !`git --version`\n");
    skill("makes", "State: !`make test`\n");
    skill("runs", "State: !`touch pwned`\n");
    skill("denied", "State: !`touch denied1`\n");
    skill("block", "```!\nmake a\ntouch denied1\n```\n");
    skill("allows", "---\nallowed-tools: Bash(touch *)\n---\nDo it.\n");
    skill("denied-tool", "---\nallowed-tools: Bash(touch denied1)\n---\nDo it.\n");
    skill("everything", "---\nallowed-tools: Bash(*)\n---\nDo it.\n");
    skill("broken", "---\nname: x\n");
    skill("hooked", "---\nhooks: {Stop: [{hooks: [{type: command, command: touch denied1}]}]}\n---\nDo it.\n");
    test.write("home/.claude/commands/deploy.md", "State: !`touch $ARGUMENTS`\n");
    let judged = |name: &'static str| judge(&test, "claude-code", "Skill", json!({"skill": name}));
    for name in ["plain", "reads", "makes"] {
        begins(&judged(name).await, "ask by default");
    }
    for name in ["runs", "allows", "everything", "broken"] {
        begins(&judged(name).await, "ask by rule");
    }
    for name in ["denied", "block", "denied-tool", "hooked"] {
        begins(&judged(name).await, "deny");
    }
    // A skill of a folder further down has its bare name, unless another one has the same.
    test.write("packages/app/.claude/skills/nested/SKILL.md", "State: !`touch denied1`\n");
    test.write("packages/app/.claude/skills/plain/SKILL.md", "State: !`touch denied1`\n");
    begins(&judged("nested").await, "deny");
    begins(&judged("plain").await, "ask by default");
    begins(&judged("packages/app:plain").await, "deny");
    let command = |line: &'static str| judge(&test, "claude-code", "SlashCommand", json!({"command": line}));
    begins(&command("/deploy denied1").await, "deny");
    begins(&command("/deploy a").await, "ask by rule");
}

#[tokio::test]
async fn programs_that_the_file_of_a_sub_agent_starts_are_judged() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "touch denied*", Verdict::Deny);
    test.rule(Category::Shell, "make *", Verdict::Allow);
    let starts = async |agent: &str, tool: &str, member: &str, folder: &str, front: &str| {
        test.write(&format!("{folder}/of-{member}.md"), format!("---\nname: Helper\n{front}\n---\nYou help.\n"));
        let judged = judge(&test, agent, tool, json!({member: "helper"})).await;
        test.write(&format!("{folder}/of-{member}.md"), "nothing");
        judged
    };
    let claude =
        async |front: &str| starts("claude-code", "Agent", "subagent_type", ".claude/agents/deep/er", front).await;
    let hook = |line: &str| format!("hooks: {{Stop: [{{hooks: [{{type: command, command: {line}}}]}}]}}");
    begins(&claude("tools: Read").await, "ask by default");
    begins(&claude(&hook("make a")).await, "ask by default");
    begins(&claude(&hook("touch denied1")).await, "deny");
    begins(&claude(&hook("touch pwned")).await, "ask by rule");
    begins(&claude("hooks: {Stop: [{hooks: [{type: prompt, prompt: x}]}]}").await, "ask by rule");
    begins(&claude("mcpServers: [near: {command: touch, args: [denied1]}]").await, "deny");
    begins(&claude("mcpServers: {near: {command: make, args: [a]}}").await, "ask by default");
    begins(&claude("mcpServers: {near: {type: http, url: \"https://a.test/x\"}}").await, "ask by rule");
    begins(&claude("mcpServers: [configured]").await, "ask by default");
    begins(&claude("mcpServers: {near: {command: make").await, "ask by rule");
    let qwen = async |front: &str| starts("qwen-code", "agent", "subagent_type", ".qwen/agents", front).await;
    begins(&qwen("executor: {kind: acp, command: touch, args: [denied1]}").await, "deny");
    begins(&qwen("executor: {kind: acp, command: ./x}").await, "ask by rule");
    begins(&qwen("tools: [read_file]").await, "ask by default");
    for folder in [".github/agents", ".claude/agents"] {
        let front = "mcp-servers: {near: {type: local, command: touch, args: [pwned], tools: [\"*\"]}}";
        begins(&starts("copilot", "task", "agent_type", folder, front).await, "ask by rule");
    }
    let gemini = async |front: &str| starts("gemini", "invoke_agent", "agent_name", ".gemini/agents", front).await;
    begins(&gemini("mcp_servers: {near: {command: touch, args: [denied1]}}").await, "deny");
    // The person has confirmed the file.
    begins(&gemini("mcp_servers: {near: {command: touch, args: [pwned]}}").await, "ask by default");
    // A sub-agent without a file, and one that another file is for.
    begins(&judge(&test, "claude-code", "Agent", json!({"subagent_type": "Explore"})).await, "ask by default");
    // The usual kind may have a file, too.
    test.write(".qwen/agents/usual.md", "---\nname: general-purpose\nexecutor: {command: touch denied1}\n---\n");
    begins(&judge(&test, "qwen-code", "agent", json!({})).await, "deny");
}

/// The agent's prompt shows the input of its tool, and no file that it loads.
#[tokio::test]
async fn the_reason_of_a_question_names_all_that_a_sub_agent_or_a_skill_starts() {
    let test = BuiltinTest::strict();
    let hooks: String = (1..=8).map(|n| format!("  - hooks: [{{type: command, command: touch p{n}}}]\n")).collect();
    test.write(".claude/agents/helper.md", format!("---\nname: helper\nhooks:\n  Stop:\n{hooks}---\n"));
    let judged = judge(&test, "claude-code", "Agent", json!({"subagent_type": "helper"})).await;
    begins(&judged, "ask by rule: needs approval: touch p1 (the sub-agent helper starts it; ");
    for named in ["touch p2 (the sub-agent helper starts it)", "touch p6 (", "; 2 more"] {
        assert!(judged.contains(named), "{named}: {judged}");
    }
    test.write(".claude/skills/s/SKILL.md", "State: !`touch p1` !`touch p2`\n");
    let judged = judge(&test, "claude-code", "Skill", json!({"skill": "s"})).await;
    assert!(judged.contains("; also touch p2 (the skill s runs it as it is loaded)"), "{judged}");
    test.rule(Category::Shell, "touch *", Verdict::Deny);
    let judged = judge(&test, "claude-code", "Agent", json!({"subagent_type": "helper"})).await;
    begins(&judged, "deny: not allowed: shell touch p1 (the sub-agent helper starts it; ");
}

#[tokio::test]
async fn sub_agents_skills_and_commands_of_plugins_are_judged() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "touch denied*", Verdict::Deny);
    // A folder of skills can be a plugin, a repository's too.
    test.write(".claude/skills/kit/.claude-plugin/plugin.json", r#"{"name": "tools", "agents": "./own.md"}"#);
    let (hooks, command) = ("hooks: {Stop: [{hooks: [{command: touch denied1}]}]}", "State: !`touch denied1`\n");
    test.write(".claude/skills/kit/agents/deep/er.md", format!("---\nname: helper\n{hooks}\n---\n"));
    test.write(".claude/skills/kit/own.md", "---\nname: own\nskills: [tools:state]\n---\n");
    test.write(".claude/skills/kit/skills/state/SKILL.md", format!("---\nname: Now\n---\n{command}"));
    test.write(".claude/skills/kit/commands/ship.md", command);
    let claude =
        async |tool: &str, member: &str, name: &str| judge(&test, "claude-code", tool, json!({member: name})).await;
    for kind in ["tools:deep:helper", "Tools Deep Helper", "kit:deep:helper", "tools:own"] {
        begins(&claude("Agent", "subagent_type", kind).await, "deny");
    }
    for skill in ["tools:state", "tools:Now", "Now", "/tools:ship"] {
        begins(&claude("Skill", "skill", skill).await, "deny");
    }
    // A plugin that is nowhere, where a rule denies something.
    begins(&claude("Agent", "subagent_type", "other:helper").await, "ask by rule");
    begins(&claude("Agent", "subagent_type", "Explore").await, "ask by default");
    let server = |front: &str| format!("---\nname: helper\n{front}\n---\nYou help.\n");
    test.write("home/.gemini/extensions/near/agents/a.md", server("mcp_servers: {near: {command: touch, args: [a]}}"));
    let gemini = || judge(&test, "gemini", "invoke_agent", json!({"agent_name": "helper"}));
    // The person has confirmed no file of it.
    begins(&gemini().await, "ask by rule");
    test.write("linked/agents/a.md", server("executor: {kind: acp, command: touch denied1}"));
    let link = json!({"type": "link", "source": test.root.join("linked")});
    test.write("home/.qwen/extensions/far/.qwen-extension-install.json", link.to_string());
    begins(&judge(&test, "qwen-code", "agent", json!({"subagent_type": "helper"})).await, "deny");
    let folder = "home/.copilot/installed-plugins/_direct/x/agents";
    test.write(&format!("{folder}/a.agent.md"), server("mcp-servers: {near: {command: touch denied1}}"));
    for kind in ["helper", "x:helper"] {
        begins(&judge(&test, "copilot", "task", json!({"agent_type": kind})).await, "deny");
    }
}

#[tokio::test]
async fn skills_and_sub_agents_that_load_one_another_are_judged() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "touch denied*", Verdict::Deny);
    let agent = |text: &str| test.write(".claude/agents/a.md", format!("---\nname: a\n{text}\n---\n"));
    let skill = |text: &str| test.write(".claude/skills/s/SKILL.md", text);
    let judged = async |tool: &str, input: Value| judge(&test, "claude-code", tool, input).await;
    let (of_agent, of_skill) = (json!({"subagent_type": "a"}), json!({"skill": "s"}));
    agent("skills: [s]");
    skill("State: !`touch denied1`\n");
    begins(&judged("Agent", of_agent.clone()).await, "deny");
    agent("skills: [s]\nmcpServers: {near: {command: touch denied1}}");
    skill("---\ncontext: fork\nagent: a\n---\nDo it.\n");
    begins(&judged("Skill", of_skill.clone()).await, "deny");
    agent("skills: [s]");
    begins(&judged("Skill", of_skill).await, "ask by default");
    begins(&judged("Agent", of_agent).await, "ask by default");
}

#[tokio::test]
async fn the_hooks_and_allowed_tools_of_a_skill_of_qwen_code_are_judged() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "touch denied*", Verdict::Deny);
    let judged = async |folder: &str, front: &str| {
        let file = format!("{folder}/skills/s/SKILL.md");
        test.write(&file, format!("---\nname: Tidy\n{front}\n---\nState: !`touch denied1`\n"));
        let judged = judge(&test, "qwen-code", "skill", json!({"skill": "tidy"})).await;
        test.write(&file, "nothing");
        judged
    };
    for folder in [".qwen", ".agents", "home/.qwen", "home/.qwen/extensions/x"] {
        begins(&judged(folder, "description: x").await, "ask by default");
        begins(&judged(folder, "hooks: {Stop: [{hooks: [{command: touch denied1}]}]}").await, "deny");
        begins(&judged(folder, "hooks: {Stop: [{hooks: [{command: ./x.sh}]}]}").await, "ask by rule");
    }
    begins(&judged(".qwen", "allowedTools: [read_file, grep_search]").await, "ask by default");
    begins(&judged(".qwen", "allowedTools: [run_shell_command]").await, "ask by rule");
    begins(&judged(".qwen", "allowedTools: [\"run_shell_command(touch denied1)\"]").await, "deny");
    begins(&judge(&test, "qwen-code", "skill", json!({"skill": "elsewhere"})).await, "ask by rule");
    begins(&judge(&test, "qwen-code", "skill", json!({"skill": "review"})).await, "ask by default");
}

#[tokio::test]
async fn a_wildcard_of_a_skill_permits_whatever_may_follow() {
    let test = BuiltinTest::strict();
    let permits = async |test: &BuiltinTest, pattern: &str| {
        test.write(".claude/skills/s/SKILL.md", format!("---\nallowed-tools: {pattern}\n---\nDo it.\n"));
        judge(test, "claude-code", "Skill", json!({"skill": "s"})).await
    };
    for pattern in ["ls:*", "ls -l *", "cat:*", "grep:*", "wc:*", "git --version", "find .", "pwd"] {
        let judged = permits(&test, &format!("Bash({pattern})")).await;
        assert!(judged.starts_with("ask by default"), "{pattern}: {judged}");
    }
    for pattern in [
        "git:*",
        "git *",
        "git*",
        "find:*",
        "find . *",
        "env:*",
        "sort:*",
        "git * main",
        "xargs:*",
        "date:*",
        "command:*",
        "ls*",
        "make:*",
        "rg:*",
        "* --version",
    ] {
        let judged = permits(&test, &format!("Bash({pattern})")).await;
        assert!(judged.starts_with("ask by rule"), "{pattern}: {judged}");
    }
    test.rule(Category::Shell, "git push *", Verdict::Deny);
    test.rule(Category::Shell, "make *", Verdict::Allow);
    test.rule(Category::Shell, "git add *", Verdict::Allow);
    begins(&permits(&test, "Bash(git:*)").await, "ask by rule");
    begins(&permits(&test, "Bash(git push:*)").await, "deny");
    for pattern in ["make:*", "git add:*", "git add *"] {
        let judged = permits(&test, &format!("Bash({pattern})")).await;
        assert!(judged.starts_with("ask by default"), "{pattern}: {judged}");
    }
}

#[tokio::test]
async fn a_skill_is_judged_by_its_sub_agent_the_files_that_it_reads_and_where_it_may_be() {
    let skill = |test: &BuiltinTest, text: &str| test.write(".claude/skills/s/SKILL.md", text);
    let judged =
        async |test: &BuiltinTest, name: &str| judge(test, "claude-code", "Skill", json!({"skill": name})).await;
    let forked = "---\ncontext: fork\nagent: reviewer\n---\nx";
    let reading = "Look at @private/p.txt, and at @private/none.txt and @missing.\n";

    let test = BuiltinTest::strict();
    test.write("private/p.txt", "x");
    for text in [forked, reading, "Ask me@example.org about `@private/p.txt`, @~/.profile and @/etc/hostname."] {
        skill(&test, text);
        begins(&judged(&test, "s").await, "ask by default");
    }
    begins(&judged(&test, "elsewhere").await, "ask by default");

    test.rule(Category::Agent, "other", Verdict::Deny);
    skill(&test, forked);
    begins(&judged(&test, "s").await, "ask by rule");
    test.rule(Category::Agent, "reviewer", Verdict::Deny);
    begins(&judged(&test, "s").await, "deny");
    begins(&judged(&test, "elsewhere").await, "ask by default");

    test.rule(Category::FileRead, "**/private/**", Verdict::Deny);
    skill(&test, reading);
    begins(&judged(&test, "s").await, "deny");
    skill(&test, "Look at @~/a and @missing.\n");
    begins(&judged(&test, "s").await, "ask by default");
    // Such a file may be of a folder that the person added when the agent was started.
    begins(&judged(&test, "elsewhere").await, "ask by rule");
    begins(&judged(&test, "simplify").await, "ask by default");
}

#[tokio::test]
async fn an_alias_is_judged_as_what_it_stands_for_and_a_function_is_not_allowed() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "git push *", Verdict::Deny);
    test.rule(Category::Shell, "git commit *", Verdict::Allow);
    let run = |line: &'static str| judge(&test, "claude-code", "Bash", json!({"command": line}));
    begins(&run("cat a.txt").await, "allow");
    test.write(
        "home/.claude/shell-snapshots/snapshot-bash-1-x.sh",
        "# Snapshot file\n# Functions\neval $'head () \\n{ \\n    x\\n}' > /dev/null 2>&1\n# Shell Options\n# Aliases\n\
         alias -- gp='git push'\nalias -- g=git\nalias -- cat=bat\nalias -- ls='ls -F'\nalias -- a=b\nalias -- b=a\n",
    );
    for line in ["gp", "gp -f origin", "g push", "ls && (gp; true)", "env gp"] {
        begins(&run(line).await, "deny");
    }
    for line in ["ls", "ls -l", "git commit -m x"] {
        begins(&run(line).await, "allow");
    }
    for line in ["cat a.txt", "head a.txt", "a", "g commit -m x"] {
        begins(&run(line).await, "ask by default");
    }
    // Other agents have no such file.
    begins(&judge(&test, "gemini", "run_shell_command", json!({"command": "cat a.txt"})).await, "allow");
}

#[tokio::test]
async fn a_function_of_the_persons_shell_is_judged_by_its_text() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "git push *", Verdict::Deny);
    test.rule(Category::FileRead, "**/secret.txt", Verdict::Deny);
    test.rule(Category::Shell, "git commit *", Verdict::Allow);
    test.write("secret.txt", "x");
    test.write(
        "home/.claude/shell-snapshots/snapshot-zsh-1-x.sh",
        "# Snapshot file\n# Functions\ndeploy () {\n\tgit push origin\n}\nrd () {\n\tcat secret.txt\n}\n\
         ship () {\n\tdeploy && ship\n}\nplain () {\n\tif true\n\tthen\n\t\tdate\n\tfi\n}\n\
         odd () {\n\tprint ${(f)1} (x)\n}\necho () {\n\tgit push origin\n}\n# Shell Options\n# Aliases\n",
    );
    test.write(
        "home/.claude/shell-snapshots/snapshot-bash-1-x.sh",
        "# Snapshot file\n# Functions\neval $'deploy () \\n{ \\n    git push \\'origin\\'\\n}' > /dev/null 2>&1\n# Aliases\n",
    );
    let run = async |shell: &str, line: &str| {
        judge_in(&test, Some(shell), ("claude-code", "Bash", json!({"command": line})), &[]).await
    };
    for line in ["deploy", "rd", "ship x", "echo hi", "ls; deploy", "git commit -m \"$(deploy)\""] {
        begins(&run("/usr/bin/zsh", line).await, "deny");
    }
    begins(&run("bash", "deploy").await, "deny");
    begins(&run("zsh", "plain x").await, "ask by default");
    // Its text is in no language that is read, and so may be about a rule.
    begins(&run("zsh", "odd x").await, "ask by rule");
    begins(&run("zsh", "git commit -m x").await, "allow");
}

/// Claude Code writes its file only when it runs the first command.
#[tokio::test]
async fn the_first_command_is_judged_by_the_startup_files_of_the_shell() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "git push *", Verdict::Deny);
    test.rule(Category::Shell, "git commit *", Verdict::Allow);
    let startup = "alias gp=\"git push\"\nalias s='sudo '\nalias odd=$x\ndeploy() {\n  git push origin\n}\n";
    test.write("home/.bashrc", startup);
    test.write("home/.zshrc", startup);
    let run = async |agent: &str, shell: &str, line: &str| {
        let tool = if agent == "claude-code" { "Bash" } else { "bash" };
        judge_in(&test, Some(shell), (agent, tool, json!({"command": line})), &[]).await
    };
    for shell in ["bash", "/usr/bin/zsh"] {
        for line in ["gp", "gp -f origin", "ls; gp", "s gp", "deploy x"] {
            begins(&run("claude-code", shell, line).await, "deny");
        }
        // No program has this name, so that something else may.
        for line in ["odd x", "neither_program_nor_alias"] {
            begins(&run("claude-code", shell, line).await, "ask by rule");
        }
    }
    begins(&run("claude-code", "bash", "git commit -m x").await, "allow");
    begins(&run("claude-code", "zsh", "git commit -m x").await, "ask by default");
    // The commands of other agents have no aliases.
    begins(&run("opencode", "bash", "gp").await, "ask by default");
    // The file that Claude Code writes takes their place.
    test.write("home/.claude/shell-snapshots/snapshot-bash-1-x.sh", "#\n# Aliases\nalias -- gp='git pull'\n");
    begins(&run("claude-code", "bash", "gp").await, "ask by default");
}

#[tokio::test]
async fn an_alias_or_function_that_is_not_read_may_be_about_a_rule() {
    let test = BuiltinTest::strict();
    test.write(
        "home/.claude/shell-snapshots/snapshot-bash-1-x.sh",
        "# Snapshot file\n# Functions\neval $'f () \\n{ \\x41\\n}' > /dev/null 2>&1\n# Shell Options\n# Aliases\n\
         alias -- n='nice '\nalias -- gp='git push'\nalias -- o=$'x'\n",
    );
    let run = |line: &'static str| judge(&test, "claude-code", "Bash", json!({"command": line}));
    for line in ["f", "o", "n o"] {
        begins(&run(line).await, "ask by default");
    }
    test.rule(Category::Shell, "git push *", Verdict::Ask);
    for line in ["f", "o", "n o", "n gp", "ls && n n gp"] {
        begins(&run(line).await, "ask by rule");
    }
    begins(&run("n git status").await, "ask by default");
    test.rule(Category::Shell, "git push *", Verdict::Deny);
    begins(&run("n gp").await, "deny");
    begins(&run("o").await, "ask by rule");
}

/// Releases of agents bring tools that no table has.
#[tokio::test]
async fn an_unknown_tool_is_refused_what_its_input_names() {
    let test = BuiltinTest::strict();
    let run = async |tool: &str, input: Value| judge(&test, "claude-code", tool, input).await;
    begins(&run("NewTool", json!({"command": "git push", "path": "a.txt"})).await, "ask by default");
    test.rule(Category::Shell, "git push *", Verdict::Ask);
    begins(&run("NewTool", json!({"command": "git push"})).await, "ask by rule");
    begins(&run("NewTool", json!({"command": "git pull"})).await, "ask by default");
    begins(&run("NewTool", json!({"file_path": ".git/hooks/pre-commit"})).await, "ask by rule");
    begins(&run("NewTool", json!({"filePath": ".env"})).await, "deny");
    begins(&run("NewTool", json!({"paths": ["a.txt", "deep/.env"]})).await, "deny");
    // It allows nothing.
    test.rule(Category::Shell, "**", Verdict::Allow);
    begins(&run("NewTool", json!({"command": "git pull"})).await, "ask by default");
}

#[tokio::test]
async fn nothing_is_allowed_in_zsh_without_its_aliases_and_functions() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "git push *", Verdict::Deny);
    test.rule(Category::Shell, "git commit *", Verdict::Allow);
    for (agent, tool) in [("claude-code", "Bash"), ("opencode", "bash")] {
        let run = async |shell: &str, line: &str| {
            judge_in(&test, Some(shell), (agent, tool, json!({"command": line})), &[]).await
        };
        for line in ["git commit -m x", "ls"] {
            begins(&run("/usr/bin/zsh", line).await, "ask by default");
            begins(&run("/usr/bin/bash", line).await, "allow");
        }
        begins(&run("/usr/bin/zsh", "git push").await, "deny");
    }
}

/// VS Code types its commands into a terminal.
#[tokio::test]
async fn a_comment_hides_no_denied_command_from_an_interactive_zsh() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "git push *", Verdict::Deny);
    for (agent, tool, expected) in [("vscode", "run_in_terminal", "deny"), ("claude-code", "Bash", "ask by default")] {
        let run = async |shell: &str, line: &str| {
            judge_in(&test, Some(shell), (agent, tool, json!({"command": line})), &[]).await
        };
        begins(&run("/usr/bin/zsh", "make # ; git push").await, expected);
        begins(&run("/usr/bin/zsh", "make # it's a test").await, "ask by default");
        begins(&run("/usr/bin/bash", "make # ; git push").await, "ask by default");
    }
}

#[tokio::test]
async fn a_command_in_a_folder_outside_is_judged_too() {
    let test = BuiltinTest::strict();
    test.rule(Category::Shell, "rm *", Verdict::Deny);
    test.rule(Category::Shell, "make *", Verdict::Allow);
    let run = |line: &'static str| judge(&test, "opencode", "bash", json!({"command": line, "workdir": "/"}));
    begins(&run("rm x").await, "deny");
    begins(&run("make x").await, "ask by default");
}

#[tokio::test]
async fn no_agent_runs_a_command_of_toolctl_that_decides() {
    let test = BuiltinTest::strict();
    std::os::unix::fs::symlink(test.root.join("toolctl"), test.root.join("linked")).unwrap();
    test.write("toolctl", "");
    test.rule(Category::Shell, "**", Verdict::Allow);
    let run = |line: &'static str| judge(&test, "claude-code", "Bash", json!({"command": line}));
    for line in [
        "toolctl permissions grant shell '**'",
        "/usr/local/bin/toolctl approve",
        "(toolctl permissions allow ask_1 &)",
        "env A=b toolctl workspaces allow /",
        "sh -c 'toolctl permissions mode yolo'",
        "ls && toolctl stop",
        "x=$(toolctl permissions revoke y)",
        "timeout 5 nohup toolctl permissions grant shell x &",
        "$(which toolctl) permissions grant shell x",
        "`which toolctl` permissions grant shell x",
        "/usr/bin/toolct? permissions grant shell x",
        "toolct[l] permissions grant shell x",
        "{toolctl,permissions,grant,shell,x}",
        "cp /usr/bin/toolctl t; ./t permissions grant shell x",
        "ln -s /usr/bin/toolctl t; ./t permissions grant shell x",
        "unshare toolctl permissions grant shell x",
        "busybox sh -c 'toolctl permissions grant shell x'",
        "/lib64/ld-linux-x86-64.so.2 /usr/bin/toolctl permissions grant shell x",
        "ssh localhost toolctl permissions grant shell x",
        "ssh localhost 'toolctl permissions grant shell x'",
        "at now <<< 'toolctl permissions grant shell x'",
        "coproc toolctl permissions grant shell x",
        "tmux new -d \"\\$(which toolctl) permissions grant shell x > o.txt\"",
        "echo 'toolctl approve' > g.sh; tmux new -d 'sh g.sh'",
        "echo 'toolctl permissions mode yolo' | sh",
        "./linked permissions grant shell x",
    ] {
        begins(&run(line).await, "deny");
    }
    for line in [
        "rg 'toolctl permissions grant'",
        "toolctl permissions list",
        "toolctl permissions help grant",
        "echo toolctl permissions grant",
        "git commit -m 'toolctl permissions grant stops'",
        "mytool target/debug/toolctl permissions list",
        "cp /usr/bin/toolctl t; ./t permissions list",
        "./other permissions grant",
        "x=$(toolctl status)",
    ] {
        begins(&run(line).await, "allow");
    }
    // A search for the text is none, whatever its other words may be.
    begins(&run("rg 'toolctl permissions grant' \"$dir\"").await, "ask");
}

#[tokio::test]
async fn a_name_in_quotes_is_what_an_agent_opens_under_that_name() {
    let test = BuiltinTest::strict();
    test.rule(Category::FileRead, "**/secret.txt", Verdict::Deny);
    test.write("secret.txt", "x");
    test.write("a\tb", "x");
    // Tools print the name of the other file so.
    let name = r#""a\tb""#;
    std::os::unix::fs::symlink("secret.txt", test.root.join(name)).unwrap();
    begins(&judge(&test, "claude-code", "Read", json!({"file_path": name})).await, "deny");
}

#[tokio::test]
async fn a_search_is_judged_by_the_files_that_it_reads() {
    let test = BuiltinTest::strict();
    test.rule(Category::FileRead, "**/secret.txt", Verdict::Deny);
    for path in ["src/a.rs", "src/deep/b.rs", "src/README.md", "plain/a.txt", "ignored/build/key.pem", "hidden/.env"] {
        test.write(path, "x\n");
    }
    test.write("src/deep/secret.txt", "x\n");
    std::fs::create_dir_all(test.root.join("ignored/.git")).unwrap();
    test.write("ignored/.gitignore", "build/\n");
    test.write("kept/.toolignore", "away.txt\n");
    test.write("kept/away.txt", "x\n");
    let search = |agent: &str, path: &str, glob: &str| {
        let (tool, member, of_glob) = match agent {
            "claude-code" => ("Grep", "path", "glob"),
            "copilot" => ("rg", "path", "glob"),
            "cursor" => ("Grep", "path", "glob"),
            "gemini" => ("grep_search", "dir_path", "include_pattern"),
            _ => ("grep", "path", "include"),
        };
        (tool, json!({"pattern": ".", member: path, of_glob: glob, "output_mode": "content"}))
    };
    for agent in ["claude-code", "copilot", "cursor", "gemini", "opencode"] {
        let searches_hidden = matches!(agent, "claude-code" | "opencode");
        for (path, glob, expected) in [
            ("plain", "", "allow by default"),
            ("plain", "*", "allow by default"),
            ("src", "*.rs", "allow by default"),
            ("src", "*.{rs,md}", "allow by default"),
            ("src", "!secret.txt", "allow by default"),
            ("src", "deep/*.rs", "allow by default"),
            ("plain/a.txt", "", "allow by default"),
            // The folder's own globs leave nothing else.
            ("src", "", "deny"),
            ("src", "secret*", "deny"),
            ("src", "**/deep/*.txt", "deny"),
            ("src", "deep/secret.txt", "deny"),
            ("src", "src/deep/*", "deny"),
            ("src/deep/secret.txt", "", "deny"),
            // A glob that names hidden or ignored files searches them.
            ("hidden", ".env", "deny"),
            ("hidden", ".e*", "deny"),
            ("hidden", "*", "deny"),
            ("hidden/.env", "", "deny"),
            ("hidden", "", if searches_hidden { "deny" } else { "ask by default" }),
            ("ignored", "", "allow by default"),
            ("ignored", "*.rs", "allow by default"),
            ("ignored/build", "*.pem", "deny"),
            ("kept", "", "deny"),
            ("kept", "a*", "deny"),
            // No program takes such a glob.
            ("plain", "[", "allow by default"),
            ("src", "[", "ask by default"),
        ] {
            let (tool, input) = search(agent, path, glob);
            let judged = judge(&test, agent, tool, input).await;
            assert!(judged.starts_with(expected), "{agent} {path} {glob:?}: expected {expected}: {judged}");
        }
    }
    let ignored = json!({"pattern": ".", "dir_path": "ignored", "no_ignore": true});
    begins(&judge(&test, "gemini", "grep_search", ignored).await, "deny");
    let typed = |name: &str| json!({"pattern": ".", "path": "src", "type": name});
    begins(&judge(&test, "claude-code", "Grep", typed("rust")).await, "allow by default");
    begins(&judge(&test, "claude-code", "Grep", typed("txt")).await, "deny");
    begins(&judge(&test, "claude-code", "Grep", typed("none-such")).await, "ask by default");
}

/// Refuses every folder.
struct ClosedGate {
    is_too_broad: bool,
}

impl WorkspaceGate for ClosedGate {
    fn is_open(&self, _: &Path) -> bool {
        false
    }

    fn is_chosen(&self, _: &Path) -> bool {
        false
    }

    fn refuses(&self, folder: &Path) -> Option<String> {
        Some(format!("{} cannot be a workspace", folder.display()))
    }

    fn is_too_broad(&self, _: &Path) -> bool {
        self.is_too_broad
    }

    fn remember(&self, _: &[PathBuf]) {}

    fn open_to_all(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    fn client(&self) -> &str {
        "test"
    }
}

#[tokio::test]
async fn in_a_folder_that_is_too_broad_all_but_rules_is_left_to_the_agent() {
    for is_too_broad in [true, false] {
        let mut test = BuiltinTest::strict();
        test.write("a.txt", "a");
        test.rule(Category::Shell, "rm *", Verdict::Deny);
        test.rule(Category::Shell, "make *", Verdict::Allow);
        test.rule(Category::FileRead, "**/secret.txt", Verdict::Deny);
        test.rule(Category::FileRead, "**/asked.txt", Verdict::Ask);
        let folder = WorkspaceFolder { named: test.root.clone(), real: test.root.clone() };
        let workspace = Some(Workspace::new(Arc::new(ClosedGate { is_too_broad }), vec![folder]));
        let session = Session::new(NewSession { workspace, ..new_session("s2", &test.root) });
        test.session = test.engine.sessions.open(session).0;
        for (tool, input, expected) in [
            ("Bash", json!({"command": "ls"}), "ask by default"),
            ("Bash", json!({"command": "make a"}), "ask by default"),
            ("Bash", json!({"command": "cat asked.txt"}), "ask by rule"),
            ("Bash", json!({"command": "echo x > .git/hooks/pre-commit"}), "ask by rule"),
            ("Bash", json!({"command": "make a && rm b"}), "deny"),
            ("Bash", json!({"command": "cat secret.txt"}), "deny"),
            ("Read", json!({"file_path": "a.txt"}), "ask by default"),
            ("Read", json!({"file_path": "asked.txt"}), "ask by rule"),
            ("Read", json!({"file_path": "secret.txt"}), "deny"),
            ("Grep", json!({"pattern": "x"}), "ask by default"),
            ("Write", json!({"file_path": "a.txt", "content": "x"}), "ask by default"),
            ("Write", json!({"file_path": ".git/hooks/pre-commit", "content": "x"}), "ask by rule"),
        ] {
            let judged = judge(&test, "claude-code", tool, input.clone()).await;
            let expected = if is_too_broad { expected } else { "deny" };
            assert!(judged.starts_with(expected), "{is_too_broad} {tool} {input}: expected {expected}: {judged}");
        }
    }
}
