//! Files, programs and modules of plugins, and the permissions that they need.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use serde_json::json;
use toold_proto::plugin::PluginStatus;

use crate::world::{TestPlugins, TestStore, write};

fn tool(body: &str) -> String {
    format!("hygge.register_tool{{name = 't', execute = function(ctx, input) {body} end}}")
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_gives_output_and_code() {
    let world = TestPlugins::of(&tool(
        "local r = hygge.exec('sh', {'-c', 'cat; echo err >&2; echo $X $PWD; exit 3'}, {stdin = 'in ', env = {X = 'y'}})
         return table.concat({r.stdout, r.stderr, r.code, tostring(r.timed_out)}, '|')",
    ))
    .await;
    world.allow_all();
    let cwd = world.work().display();
    assert_eq!(world.text("t", json!({})).await, format!("in y {cwd}\n|err\n|3|nil"));
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_passes_words_as_they_are() {
    let world =
        TestPlugins::of(&tool("return hygge.exec('printf', {'%s|', 'a b', '$HOME', '; echo x', 7}).stdout")).await;
    world.allow_all();
    assert_eq!(world.text("t", json!({})).await, "a b|$HOME|; echo x|7|");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_program_does_not_run() {
    let world =
        TestPlugins::of(&tool("local r = hygge.exec('touch', {'made'}) return r.code .. ' ' .. r.stderr .. r.stdout"))
            .await;
    let text = world.text("t", json!({})).await;
    assert!(text.starts_with("1 not allowed: shell touch made"), "{text}");
    assert!(!world.work().join("made").exists());
}

/// Plugins that were written for other hosts take a refusal for a program that is not installed.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_call_says_what_it_was_refused_though_its_script_does_not() {
    let world = TestPlugins::of(&tool(
        "if hygge.exec('touch', {'made'}).code ~= 0 then return {content = 'no touch in PATH', is_error = not input.fine} end",
    ))
    .await;
    let result = world.call("t", json!({})).await;
    let text = result.text();
    assert!(result.is_error && text.starts_with("no touch in PATH"), "{text}");
    assert!(text.contains("not allowed: shell touch made") && text.contains("toolctl plugins grant p"), "{text}");
    assert_eq!(world.text("t", json!({"fine": true})).await, "no touch in PATH");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_none_raises() {
    let world =
        TestPlugins::of(&tool("\n local ok, err = pcall(hygge.exec, 'no-such-program') return tostring(ok) .. err"))
            .await;
    world.allow_all();
    let text = world.text("t", json!({})).await;
    assert!(text.contains("false") && text.contains("no program no-such-program"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn exec_ends_at_its_own_limit() {
    let world = TestPlugins::of(&tool(
        "local r = hygge.exec('sleep', {'1000'}, {timeout = '20ms'}) return tostring(r.timed_out) .. r.code",
    ))
    .await;
    world.allow_all();
    assert!(world.text("t", json!({})).await.starts_with("true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn output_is_heard_as_it_comes() {
    let world = TestPlugins::of(&tool(
        "local heard = {}
         local r = hygge.exec('sh', {'-c', 'echo one; read x < go; echo two >&2'}, {on_output = function(stream, text)
           heard[#heard + 1] = stream .. ':' .. text
           if text == 'one\\n' then hygge.exec('sh', {'-c', 'echo go > go'}) end
         end})
         return table.concat(heard) .. r.stdout .. r.code",
    ))
    .await;
    world.allow_all();
    // The program waits for what the script does on hearing it: a pipe that is made beforehand.
    let status = std::process::Command::new("mkfifo").arg(world.work().join("go")).status().unwrap();
    assert!(status.success());
    let text = world.call("t", json!({})).await.text();
    assert!(text.contains("stdout:one"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pipes_and_devices_are_not_written() {
    let world =
        TestPlugins::of(&tool("return tostring(select(2, pcall(hygge.fs[input.what], input.path, 'x')))")).await;
    world.allow_all();
    let status = std::process::Command::new("mkfifo").arg(world.work().join("pipe")).status().unwrap();
    assert!(status.success());
    for (path, kind) in [("pipe", "a named pipe"), ("/dev/null", "a device")] {
        for what in ["write", "append", "read"] {
            let text = world.text("t", json!({"what": what, "path": path})).await;
            assert!(text.contains(&format!("is {kind}, not a file")), "{what} {path}: {text}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_and_written_where_the_session_is() {
    let world = TestPlugins::of(&tool(
        "local fs = hygge.fs
         fs.mkdir('d/e') fs.write('d/a.txt', 'one') fs.append('d/a.txt', ' two') fs.write('d/e/b.lua', '')
         local names = {}
         for _, entry in ipairs(fs.list('d')) do names[#names + 1] = entry.name .. ':' .. entry.type end
         local stat = fs.stat('d/a.txt')
         local text = {fs.read('d/a.txt'), table.concat(names, ','), stat.type, stat.size, tostring(fs.stat('none')),
           tostring(fs.exists('d')), table.concat(fs.glob('d/**/*.lua'), ',')}
         fs.remove('d/a.txt')
         text[#text + 1] = tostring(fs.exists('d/a.txt'))
         return table.concat(text, '|')",
    ))
    .await;
    world.allow_all();
    let expected = "one two|a.txt:file,e:directory|file|7|nil|true|d/e/b.lua|false";
    assert_eq!(world.text("t", json!({})).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_outside_need_permission() {
    let world = TestPlugins::of(&tool("return select(2, pcall(hygge.fs[input.what], input.path, 'x'))")).await;
    write(&world.root.path().join("outside.txt"), "secret");
    write(&world.work().join("inside.txt"), "open");
    symlink(world.root.path().join("outside.txt"), world.work().join("link")).unwrap();
    assert_eq!(world.text("t", json!({"what": "read", "path": "inside.txt"})).await, "open");
    for path in ["../outside.txt", "link", "/etc/hostname"] {
        let text = world.text("t", json!({"what": "read", "path": path})).await;
        assert!(text.contains("not allowed: file.read"), "{path}: {text}");
    }
    let text = world.text("t", json!({"what": "write", "path": "new.txt"})).await;
    assert!(text.contains("not allowed: file.write"), "{text}");
    assert!(!world.work().join("new.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn io_works_as_lua_knows_it() {
    let world = TestPlugins::of(&tool(
        "local out = {}
         local f = assert(io.open('x.txt', 'w')) f:write('1 2\\n', 'three', 4, '\\nlast') f:close()
         for line in io.lines('x.txt') do out[#out + 1] = line end
         f = io.open('x.txt') out[#out + 1] = f:read('*n') + f:read('n') out[#out + 1] = f:read('*a') f:seek('set', 4)
         out[#out + 1] = f:read(5) f:close()
         out[#out + 1] = select(2, pcall(f.read, f))
         f = io.open('x.txt', 'a') f:write('!') f:close()
         local nothing, message = io.open('none.txt')
         out[#out + 1] = tostring(nothing) .. (message:find('no file', 1, true) and 'reported' or message)
         local p = io.popen('echo piped') out[#out + 1] = p:read('*l') p:close()
         out[#out + 1] = os.execute('exit 3')
         os.rename('x.txt', 'y.txt') out[#out + 1] = tostring(io.open('x.txt')) .. io.open('y.txt'):read('*a'):sub(-5)
         out[#out + 1] = tostring(os.remove('y.txt')) .. tostring((os.remove('y.txt')))
         out[#out + 1] = type(os.getenv('PATH')) .. tostring(os.getenv('NO_SUCH'))
         out[#out + 1] = io.type(f) .. type(os.time()) .. type(os.clock()) .. os.date('!%Y', 0)
         return table.concat(out, '|')",
    ))
    .await;
    world.allow_all();
    assert_eq!(
        world.text("t", json!({})).await,
        "1 2|three4|last|3|\nthree4\nlast|three|attempt to use a closed file|nilreported|piped|3|nillast!|truenil|stringnil|closed filenumbernumber1970"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_temporary_file_needs_no_permission_and_leaves_nothing() {
    let world = TestPlugins::of(&tool(
        "local f = assert(io.tmpfile()) f:write('some text', 1) f:seek('set', 5) f:write('word')
         f:seek('set') local all = f:read('*a') f:seek('set', 12) f:write('!') f:seek('end', -4)
         return all .. '|' .. (f:read('*a'):gsub('%z', '0')) .. f:seek('end')",
    ))
    .await;
    assert_eq!(world.text("t", json!({})).await, "some word1|100!13");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_reads_its_own_folder_and_no_other() {
    let world = TestPlugins::new(&[
        ("f/plugin.lua", "local own = io.open(hygge.plugin.dir .. '/data.txt'):read('*a')
          local relative = hygge.fs.read('data.txt')
          local other, message = io.open('/etc/hostname')
          local wrote, why = pcall(hygge.fs.write, 'new.txt', 'x')
          hygge.register_tool{name = 't', execute = function() return own .. relative .. tostring(other) .. tostring(wrote) .. hygge.fs.read(hygge.plugin.dir .. '/data.txt') end}"),
        ("f/data.txt", "own"),
    ])
    .await;
    assert_eq!(world.text("t", json!({})).await, "ownownnilfalseown");
    assert!(!world.plugins.join("f/new.txt").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn modules_come_from_the_plugins_folder_only() {
    let world = TestPlugins::new(&[
        ("f/plugin.lua", "local a, b, c = require('a'), require('util.b'), require('c')
          assert(require('a') == a)
          local _, out = pcall(require, 'outside')
          local _, up = pcall(require, '../x')
          local _, loop = pcall(require, 'loop')
          hygge.register_tool{name = 't', execute = function() return table.concat({a.name, b, c, out, up, loop, require('late')}, '|') end}"),
        ("f/a.lua", "return {name = 'a'}"),
        ("f/util/b.lua", "return 'b'"),
        ("f/lib/c/init.lua", "return 'c'"),
        ("f/late.lua", "return 'late'"),
        ("f/loop.lua", "return require('loop')"),
        ("x.lua", "return 'x'"),
    ])
    .await;
    symlink(world.plugins.join("x.lua"), world.plugins.join("f/outside.lua")).unwrap();
    world.host.reload(Some("f")).await.unwrap();
    let text = world.text("t", json!({})).await;
    let parts: Vec<&str> = text.split('|').collect();
    assert_eq!((&parts[..3], parts[6]), (&["a", "b", "c"][..], "late"), "{text}");
    assert!(parts[3].contains("outside of the plugin's folder"), "{text}");
    assert!(parts[4].contains("no module '../x'"), "{text}");
    assert!(parts[5].contains("requires itself"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn module_error_is_reported_with_its_file() {
    let world =
        TestPlugins::new(&[("f/plugin.lua", "require('broken')"), ("f/broken.lua", "local x = 1\nlocal y = = 2\n")])
            .await;
    let error = world.plugin("f").error.unwrap();
    assert_eq!(error.file, Some(world.plugins.join("f/broken.lua").display().to_string()));
    assert_eq!((error.line, error.source_line.as_deref()), (Some(2), Some("local y = = 2")));
    assert_eq!(world.plugin("f").status, PluginStatus::Failed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_keeps_values_for_each_plugin() {
    let script = |name: &str| {
        format!(
            "hygge.register_tool{{name = '{name}', execute = function(ctx, input)
               local s = hygge.store
               s.set('n', (s.get('n') or 0) + 1)
               s.set('t', {{list = hygge.json.array{{}}, x = 1}})
               return s.get('n') .. hygge.json.encode(s.get('t')) .. table.concat(s.keys(), ',') .. tostring(s.delete('t')) .. tostring(s.get('t')) end}}"
        )
    };
    let store = Arc::<TestStore>::default();
    let world =
        TestPlugins::with(&[("a.lua", &script("a")), ("b.lua", &script("b"))], |options| options.store = Some(store))
            .await;
    assert_eq!(world.text("a", json!({})).await, "1{\"list\":[],\"x\":1}n,ttruenil");
    assert!(world.text("a", json!({})).await.starts_with('2'));
    assert!(world.text("b", json!({})).await.starts_with('1'));
    let none = TestPlugins::of(&tool("hygge.store.get('x')")).await;
    assert!(none.call("t", json!({})).await.text().contains("has no store for plugins"));
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_of_parallel_calls_are_all_counted() {
    let script = "hygge.register_tool{name = 'count', parallelizable = true, execute = function(ctx, input)
         for _ = 1, 200 do
           hygge.store.update('n', function(old)
             old = old or {list = {}, n = 0}
             old.n = old.n + 1
             return old
           end)
         end
         return '' end}
       hygge.register_tool{name = 'total', execute = function() return hygge.store.get('n').n end}";
    let store = Arc::<TestStore>::default();
    // Two hosts, as two daemons have; each with several Lua states.
    let (one, other) = (store.clone(), store.clone());
    let one = TestPlugins::with(&[("p.lua", script)], |options| options.store = Some(one)).await;
    let other = TestPlugins::with(&[("p.lua", script)], |options| options.store = Some(other)).await;
    let calls = (0..8).map(|n| if n % 2 == 0 { one.text("count", json!({})) } else { other.text("count", json!({})) });
    futures_util::future::join_all(calls).await;
    assert_eq!(one.text("total", json!({})).await, "1600");
}

#[tokio::test(flavor = "multi_thread")]
async fn compare_and_set_changes_only_what_is_as_expected() {
    let script = tool(
        "local s, array = hygge.store, hygge.json.array
         local out = {}
         local function note(...) out[#out + 1] = tostring((...)) end
         note(s.compare_and_set('k', 1, 2))
         note(s.compare_and_set('k', nil, {a = array{}, b = {x = 0.1}}))
         note(s.compare_and_set('k', nil, 3))
         note(s.compare_and_set('k', {a = {}, b = {x = 0.1}}, 3))
         note(s.compare_and_set('k', {b = {x = 0.1}, a = array{}}, 3))
         note(s.get('k'))
         note(s.compare_and_set('k', 3, nil))
         note(s.get('k'))
         note(s.update('k', function(old) return old == nil and 'new' end))
         note(s.update('k', function() return nil end))
         note(#s.keys())
         note(select(2, pcall(s.update, 'k', 1)))
         note(select(2, pcall(s.update, 'k', function() return print end)))
         note(select(2, pcall(s.update, 'k', function() error('mine', 0) end)))
         note(select(2, pcall(s.update, 'k', function() s.set('k', math.random()) return 1 end)))
         return table.concat(out, '\\n')",
    );
    let store = Arc::<TestStore>::default();
    let world = TestPlugins::with(&[("p.lua", &script)], |options| options.store = Some(store)).await;
    assert_eq!(world.plugin("p").error, None);
    let text = world.text("t", json!({})).await;
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        &lines[..11],
        ["false", "true", "false", "false", "true", "3", "true", "nil", "new", "nil", "0"],
        "{text}"
    );
    assert!(lines[11].contains("hygge.store.update: argument 2 'change': expected a function"), "{text}");
    assert!(lines[12].contains("a function cannot be converted to JSON"), "{text}");
    assert_eq!(lines[13], "mine");
    assert!(lines[14].contains("other calls changed 'k' each time"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn config_is_a_plain_table() {
    let world = TestPlugins::with(
        &[(
            "p.lua",
            &tool("return hygge.config.city .. #hygge.config.list .. tostring(next(hygge.config.none or {}))"),
        )],
        |options| {
            options.config.insert("p".into(), json!({"city": "Bonn", "list": [1, 2]}));
        },
    )
    .await;
    assert_eq!(world.text("t", json!({})).await, "Bonn2nil");
}

#[tokio::test(flavor = "multi_thread")]
async fn capabilities_bind() {
    let world = TestPlugins::new(&[
        ("f/plugin.toml", "api = 'toold'\n[capabilities]\ntools = true\n"),
        (
            "f/plugin.lua",
            &tool("return select(2, pcall(hygge.exec, 'true')) .. select(2, pcall(hygge.fs.write, 'x', ''))"),
        ),
    ])
    .await;
    world.allow_all();
    let text = world.text("t", json!({})).await;
    assert!(text.contains("capability exec") && text.contains("capability fs_write"), "{text}");
    assert!(fs::read_dir(world.work()).unwrap().next().is_none());
}
