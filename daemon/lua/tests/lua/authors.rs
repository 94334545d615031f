//! Commands for authors: checking a plugin, and running its tests.

use std::path::PathBuf;

use tempfile::TempDir;
use toold_lua::reload::plugin_tests::{test, test_with_coverage};

use crate::world::{checked, write};

fn folder(files: &[(&str, &str)]) -> (TempDir, PathBuf) {
    let root = TempDir::new().unwrap();
    for (name, text) in files {
        write(&root.path().join(name), text);
    }
    let path = root.path().canonicalize().unwrap();
    (root, path)
}

#[test]
fn a_check_finds_all_mistakes() {
    let (_keep, root) = folder(&[(
        "p.lua",
        "hygge.register_tool{name = 'A', execute = print}
hygge.register_tool{name = 'good', description = 'Good', execute = print, input_schema = {properties = {x = {type = 'string'}}}}
hygge.register_hook('pre', print)
hygge.register_tool{name = 'b', desciption = 'B', execute = print}
error('at the end')",
    )]);
    let report = checked(&root.join("p.lua"));
    let problems: Vec<_> = report.problems.iter().map(|problem| (problem.line, problem.message.as_str())).collect();
    assert_eq!(problems.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [Some(1), Some(3), Some(5)], "{problems:?}");
    assert!(problems[0].1.contains("field 'name'") && problems[1].1.contains("argument 1 'event'"), "{problems:?}");
    assert_eq!(report.problems[1].source_line.as_deref(), Some("hygge.register_hook('pre', print)"));
    let warnings: Vec<_> = report.warnings.iter().map(|warning| (warning.line, warning.message.as_str())).collect();
    assert_eq!(
        warnings,
        [
            (Some(2), "good: the argument 'x' has no description"),
            (Some(4), "b: nothing reads the field 'desciption'"),
            (Some(4), "b: without a description, models do not know when to call it"),
        ]
    );
}

#[test]
fn a_check_finds_what_is_missing_in_functions_that_do_not_run() {
    let (_keep, root) = folder(&[
        (
            "p/plugin.lua",
            "local fs = hygge.fs
hygge.register_tool{name = 't', description = 'T', execute = function(c, input)
  c.progres('x')
  if hygge.future then hygge.future() end
  if vim then vim.go() end
  missng(c, hygge.exec)
  return fs.raed(input.path)
end}",
        ),
        ("p/lib.lua", "return function() hygge.slep(1) end"),
        ("p/plugin.toml", "api = 'toold'\nname = 'p'\n[capabilities]\ntools = true\n"),
    ]);
    // Its script names the whole folder.
    let report = checked(&root.join("p/plugin.lua"));
    let problems: Vec<_> = report.problems.iter().map(|problem| (problem.line, problem.message.as_str())).collect();
    let expected = [
        (Some(1), "p/lib.lua:1: hygge has no slep; sleep was meant"),
        (Some(3), "p/plugin.lua:3: c, the context of the call, has no progres; progress was meant"),
        (Some(7), "p/plugin.lua:7: fs has no raed; read was meant"),
        (Some(6), "p/plugin.lua:6: nothing sets the global missng"),
        (
            Some(6),
            "p/plugin.lua:6: hygge.exec needs the capability exec: add exec = true to [capabilities] in plugin.toml",
        ),
    ];
    assert_eq!(problems, expected);
    assert_eq!(report.problems[1].source_line.as_deref(), Some("  c.progres('x')"));
}

#[test]
fn check_lists_what_a_plugin_offers() {
    let (_keep, root) = folder(&[(
        "p/plugin.lua",
        "hygge.register_tool{name = 't', description = 'T', execute = print}
         hygge.register_hook('pre_tool', {name = 'h'}, print)
         hygge.register_command{name = 'c', execute = print}
         hygge.register_subagent{name = 's', description = 'S', system_prompt = 'x'}",
    )]);
    let report = checked(&root.join("p"));
    assert!(report.is_good() && report.warnings.is_empty(), "{report:?}");
    assert_eq!(report.tools[0].name.as_str(), "t");
    assert_eq!(
        (report.hooks.into_iter().map(|hook| hook.name).collect(), report.commands, report.subagents),
        (vec!["h".into()], vec!["c".into()], vec!["s".into()])
    );
    let missing = checked(&root.join("none.lua"));
    assert!(!missing.is_good());
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_run_with_fakes() {
    let (_keep, root) = folder(&[
        (
            "git.lua",
            "hygge.register_tool{name = 'branch', execute = function(ctx, input)
               local r = hygge.exec('git', {'branch', '--show-current'})
               if r.code ~= 0 then return {content = r.stderr, is_error = true} end
               hygge.fs.write('seen.txt', r.stdout)
               return 'on ' .. r.stdout
             end}",
        ),
        (
            "git_test.lua",
            "describe('branch', function()
  local seen
  before(function()
    fake.exec(function(command, args) seen = command .. ' ' .. table.concat(args, ' ') return 'main' end)
  end)
  it('asks git', function()
    expect(call('branch').content).to_be('on main')
    expect(seen).to_contain('--show-current')
    expect(hygge.fs.read('seen.txt')).to_equal('main')
  end)
  it('tells errors', function()
    fake.exec(function() return {code = 128, stderr = 'not a git repository'} end)
    local result = call('branch')
    expect(result.is_error).to_be_truthy()
    expect(result.content).to_match('^not a git')
    expect(result.content).never.to_be('x')
  end)
  it('fails', function()
    expect({1, {a = 2}}).to_equal({1, {a = 3}})
  end)
  it('needs its fake', function()
    expect(function() call('nothing') end).to_raise('no tool nothing')
    fake.exec(nil)
    expect(call('branch').content).to_contain('not faked')
  end)
end)",
        ),
    ]);
    let report = test(&root.join("git.lua")).await.unwrap();
    assert_eq!(report.files[0].error, None);
    let cases: Vec<_> = report.files[0].cases.iter().map(|case| (case.name.as_str(), case.error.as_ref())).collect();
    assert_eq!((report.passed(), report.failed()), (3, 1), "{cases:#?}");
    let error = cases[2].1.unwrap();
    assert_eq!(error.message, "git_test.lua:19: expected {1, {a = 2}} to equal {1, {a = 3}}");
    assert_eq!(error.source_line.as_deref(), Some("    expect({1, {a = 2}}).to_equal({1, {a = 3}})"));
    assert_eq!(cases[2].0, "branch fails");
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_that_do_not_run_are_reported() {
    let (_keep, root) = folder(&[
        ("p/plugin.lua", ""),
        ("p/a_test.lua", "it('x', function() end"),
        ("p/b_test.lua", "it('loops', function() end) error('at once')"),
        ("q.lua", "error('broken')"),
        ("q_test.lua", ""),
        ("r.lua", ""),
    ]);
    let report = test(&root.join("p")).await.unwrap();
    assert_eq!(report.failed(), 2);
    assert!(report.files[0].error.as_ref().unwrap().message.starts_with("p/a_test.lua:1:"));
    assert_eq!(report.files[1].error.as_ref().unwrap().message, "p/b_test.lua:1: at once");
    let broken = test(&root.join("q.lua")).await.unwrap();
    assert_eq!(broken.files[0].error.as_ref().unwrap().message, "q.lua:1: broken");
    assert!(test(&root.join("r.lua")).await.unwrap().files.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn coverage_counts_the_lines_that_ran() {
    let (_keep, root) = folder(&[
        (
            "p/plugin.lua",
            "local words = require('words')
hygge.register_tool{name = 'say', description = 'Says', execute = function(ctx, input)
  if input.loud then
    local text = words.loud()

    return text
  end
  return words.quiet()
end}
",
        ),
        (
            "p/lib/words.lua",
            "local words = {}\nfunction words.loud()\n  return 'A'\nend\nfunction words.quiet() return 'a' end\nreturn words\n",
        ),
        ("p/one_test.lua", "it('is quiet', function() expect(call('say').content).to_be('a') end)"),
        ("p/two_test.lua", "it('is quiet', function() call('say') call('say') end)"),
    ]);
    let (report, coverage) = test_with_coverage(&root.join("p")).await.unwrap();
    assert_eq!((report.passed(), report.failed()), (2, 0), "{report:#?}");
    let names: Vec<&str> = coverage.files.keys().map(String::as_str).collect();
    assert_eq!(names, ["p/lib/words.lua", "p/plugin.lua"]);
    let plugin = &coverage.files["p/plugin.lua"];
    assert_eq!(plugin.uncovered(), [(4, 6)], "{plugin:?}");
    assert_eq!((plugin.lines[&8], plugin.covered(), plugin.lines.len()), (3, 4, 6), "{plugin:?}");
    let words = &coverage.files["p/lib/words.lua"];
    assert_eq!(words.uncovered(), [(3, 3)], "{words:?}");
    let lcov = coverage.to_lcov();
    let path = root.join("p/plugin.lua");
    assert!(lcov.contains(&format!("SF:{}\nDA:1,2\nDA:2,2\nDA:3,3\nDA:4,0\n", path.display())), "{lcov}");
    assert!(lcov.contains("LF:6\nLH:4\nend_of_record\n"), "{lcov}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tests_reach_hooks_prompts_resources_commands_permissions_and_the_store() {
    let (_keep, root) = folder(&[
        (
            "p.lua",
            "local count = 0
hygge.register_hook('pre_tool', {tools = 'write'}, function(event)
  if event.tool_input.path == '.env' then return {decision = 'deny', reason = 'no secrets'} end
  if event.tool_input.path == 'a' then return {decision = 'modify', modified_tool_input = {path = 'b'}} end
end)
hygge.register_hook('pre_tool', {}, function(event) count = count + 1 end)
hygge.register_prompt{name = 'plan', arguments = {{name = 'day', required = true}},
  render = function(ctx, given) return 'Plan ' .. given.day end}
hygge.register_resource{uri_template = 'notes://{day}', name = 'note', mime_type = 'text/plain',
  read = function(ctx, uri, given) return hygge.store.get(given.day) end}
hygge.register_command{name = 'keep', execute = function(ctx, input) hygge.store.set('monday', input) return 'kept' end}
hygge.register_tool{name = 'count', execute = function() return count end}
hygge.register_tool{name = 'find', execute = function(ctx, input) return hygge.call_tool('grep', {pattern = 'x'}).content end,
  permission = function(input) return {category = 'shell', target = 'rg x | sort -o out', reason = 'to look'} end}",
        ),
        (
            "p_test.lua",
            "it('hooks', function()
  local seen
  fake.tool('write', function(input) seen = input.path return 'written' end)
  local refused = call('write', {path = '.env'})
  expect(refused.is_error).to_be_truthy()
  expect(refused.content).to_contain('no secrets')
  expect(seen).to_be_nil()
  expect(call('write', {path = 'a'}).content).to_be('written')
  expect(seen).to_be('b')
  expect(call('count').content).to_be('2')
end)
it('forgets fakes', function()
  expect(function() call('write', {path = 'c'}) end).to_raise('no tool write')
end)
it('offers', function()
  expect(render('plan', {day = 'Monday'})[1].content.text).to_be('Plan Monday')
  expect(function() render('plan') end).to_raise('day is missing')
  expect(function() read('notes://monday') end).to_raise('there is no resource notes://monday')
  expect(command('keep', 'bread').content).to_be('kept')
  expect(read('notes://monday')[1].text).to_be('bread')
  expect(read('notes://monday')[1].mime_type).to_be('text/plain')
  expect(function() command('lose') end).to_raise('there is no command lose')
end)
it('starts with an empty store', function()
  expect(hygge.store.keys()).to_equal({})
end)
it('has files', function()
  fake.file('a b/-c.txt', 'words')
  expect(hygge.fs.read('a b/-c.txt')).to_be('words')
  for _, path in ipairs{'../x', '/x', 'a/../../x'} do
    expect(function() fake.file(path, '') end).to_raise('within the session')
  end
end)
describe('before', function()
  local order = {}
  before(function() table.insert(order, 'outer') end)
  describe('in a describe', function()
    before(function() table.insert(order, 'inner') end)
    it('runs', function() end)
  end)
  it('is for its describe', function() expect(order).to_equal({'outer', 'inner', 'outer'}) end)
end)
it('has no files of other cases', function()
  expect(hygge.fs.exists('a b/-c.txt')).to_be(false)
end)
it('finds needs', function()
  fake.tool('grep', function(input) return 'found ' .. input.pattern end)
  expect(call('find').content).to_be('found x')
  local found = needs('find')
  expect(found[1].target).to_be('rg x')
  expect(found[1].reason).to_be('to look')
  expect(found[#found].category).to_be('file.write')
  expect(found[#found].target).to_match('/out$')
end)",
        ),
    ]);
    let report = test(&root.join("p.lua")).await.unwrap();
    assert_eq!(report.files[0].error, None);
    assert_eq!((report.passed(), report.failed()), (9, 0), "{report:#?}");
}
