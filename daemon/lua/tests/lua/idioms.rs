//! Idioms of Lua 5.1 programs: each gives the result that Lua 5.1 gives.

use serde_json::json;

use crate::world::TestPlugins;

/// Bodies of functions, and the text that Lua 5.1 makes of their result.
const IDIOMS: &[(&str, &str)] = &[
    (r#"return getmetatable("").__index == string and "string""#, "string"),
    (
        r#"function string.trim(s) return (s:gsub("^%s*(.-)%s*$", "%1")) end return "[" .. ("  a b "):trim() .. "]""#,
        "[a b]",
    ),
    (
        r#"function string:split(sep) local out = {} for part in (self .. sep):gmatch("(.-)" .. sep) do out[#out + 1] = part end return out end return table.concat(("a,b,c"):split(","), "|")"#,
        "a|b|c",
    ),
    (
        r#"function string.startswith(s, prefix) return s:sub(1, #prefix) == prefix end return tostring(("hello"):startswith("he"))"#,
        "true",
    ),
    (r#"getmetatable("").__call = function(s, i, j) return s:sub(i, j or i) end return ("hello")(2, 4)"#, "ell"),
    (r#"getmetatable("").__mod = function(s, v) return s:format(unpack(v)) end return "%s=%d" % {"a", 3}"#, "a=3"),
    (
        "math.round = function(n, places) local m = 10 ^ (places or 0) return math.floor(n * m + 0.5) / m end return math.round(2.345, 2)",
        "2.35",
    ),
    (
        "function table.find(t, f) for i, v in ipairs(t) do if f(v) then return i end end end return table.find({1, 5, 9}, function(v) return v > 3 end)",
        "2",
    ),
    (
        "function table.clone(t, deep) local u = {} for k, v in pairs(t) do u[k] = v end u.deep = tostring(deep) return u end return table.clone({1}, true).deep",
        "true",
    ),
    (
        r#"local format = string.format string.format = function(f, ...) return "<" .. format(f, ...) .. ">" end local r = string.format("%d", 5) string.format = format return r .. string.format("%d", 6)"#,
        "<5>6",
    ),
    (r#"local say = print print = function(v) said = v end print("hi") print = say return said"#, "hi"),
    (r#"limit = 1 local f = loadstring("return limit") limit = 2 return f()"#, "2"),
    (
        r#"settings = {debug = false} local f = loadstring("return tostring(settings.debug)") settings.debug = true return f()"#,
        "true",
    ),
    ("local t = {} for k in pairs(_G) do t[k] = true end return tostring(t.print and t.string and t._G)", "true"),
    (r#"return tostring(rawget(_G, "unpack") == unpack) .. tostring(rawget(_G, "no_such"))"#, "truenil"),
    (
        r#"setmetatable(_G, {__index = function(_, name) return "no " .. name end}) local v = undefined_name setmetatable(_G, nil) return v"#,
        "no undefined_name",
    ),
    (r##"local unpack = table.unpack or unpack return select("#", unpack({1, 2, 3}))"##, "3"),
    (
        r##"local pack = table.pack or function(...) return {n = select("#", ...), ...} end return pack(1, nil, 3).n"##,
        "3",
    ),
    ("return _VERSION", "Lua 5.1"),
    (r#"if _VERSION == "Lua 5.1" then return setfenv and "setfenv" else return "_ENV" end"#, "setfenv"),
    (r#"local f = setfenv(function() return a end, {a = "env"}) return f()"#, "env"),
    (
        r#"local env = setmetatable({}, {__index = _G}) local f = loadstring("x = 1 return tostring(x)") setfenv(f, env) return f() .. env.x"#,
        "11",
    ),
    ("return tostring(getfenv(1) == _G) .. tostring(getfenv(0) == _G)", "truetrue"),
    (r#"return (loadstring("return 1 +") == nil) and type(select(2, loadstring("return 1 +")))"#, "string"),
    ("local ok, message = pcall(loadstring, nil) return tostring(ok)", "false"),
    (
        r#"local f = load((function() local parts = {"return ", "...", nil} local i = 0 return function() i = i + 1 return parts[i] end end)()) return f("given")"#,
        "given",
    ),
    (
        r#"local f, why = load(function() return {} end) return tostring(f) .. (why:match("reader function must return a string") or why)"#,
        "nilreader function must return a string",
    ),
    ("return select(2, xpcall(function() error({code = 5}) end, function(e) return e.code end))", "5"),
    ("return tostring(select(2, pcall(error))) .. tostring(select(2, pcall(error, nil)))", "nilnil"),
    (
        r#"local E = setmetatable({}, {__tostring = function() return "E" end}) local ok, e = pcall(error, E) return tostring(e) .. tostring(e == E)"#,
        "Etrue",
    ),
    (
        r#"local ok, e = pcall(function() local ok2, e2 = pcall(error, "inner", 0) error("outer " .. e2, 0) end) return e"#,
        "outer inner",
    ),
    (
        r#"local function try(f, catch, finally) local ok, e = pcall(f) if not ok then catch(e) end finally() end local log = "" try(function() error("x", 0) end, function(e) log = log .. e end, function() log = log .. "!" end) return log"#,
        "x!",
    ),
    (
        r#"return string.format("%5d|%-5d|%05.1f|%+.2e|%x|%X|%o", 42, 42, 3.14159, 12345.678, 255, 255, 8)"#,
        "   42|42   |003.1|+1.23e+04|ff|FF|10",
    ),
    (r#"return string.format("%d %i %u", 3.0, 4.0, 5)"#, "3 4 5"),
    (r#"return string.format("%q", 'say "hi"\n')"#, "\"say \\\"hi\\\"\\\n\""),
    (r#"return string.format("%c%c%c", 76, 117, 97) .. string.format("%10.3s|", "abcdef")"#, "Lua       abc|"),
    (r#"return (("a.b.c"):gsub("%.", "%%")) .. (("x"):gsub("x", "%-"))"#, "a%b%c-"),
    (
        r#"return (("hello world"):gsub("o", {o = "0"})) .. (("abc"):gsub("%w", function(c) if c == "b" then return "B" end end))"#,
        "hell0 w0rldaBc",
    ),
    (
        r#"return (("  x  "):match("^%s*(.-)%s*$")) .. (("k=v"):match("(%w+)=(%w+)")) .. (("[[x]]"):match("%[%[(.-)%]%]"))"#,
        "xkx",
    ),
    (
        r#"return ("THE (quick) fox"):find("%((%a+)%)") .. (("f(a(b)c)"):match("%b()")) .. (("THE"):gsub("%f[%a]%a+", string.lower))"#,
        "5(a(b)c)the",
    ),
    (r#"return ("a\0b"):find("%z") .. #("a\0b")"#, "23"),
    (
        r#"local t = {} for k, v in ("a=1;b=2"):gmatch("(%w+)=(%w+)") do t[#t + 1] = k .. v end return table.concat(t, ",")"#,
        "a1,b2",
    ),
    (r#"return table.concat({1, 2, 3}, ", ", 2, 3) .. table.maxn({[7] = 1}) .. table.getn({1, 2})"#, "2, 372"),
    ("local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return table.concat(t)", "321"),
    (
        r#"local t = {"a", "b", "c"} for i = #t, 1, -1 do if t[i] == "b" then table.remove(t, i) end end return table.concat(t)"#,
        "ac",
    ),
    (
        r##"local function sum(...) local n = 0 for i = 1, select("#", ...) do n = n + (select(i, ...)) end return n end return sum(1, 2, 3)"##,
        "6",
    ),
    (r#"local function f(...) return arg.n .. tostring(arg[1]) .. tostring(arg[3]) end return f("a", "b")"#, "2anil"),
    (
        "local function f(first, ...) local out = {} for i, v in ipairs(arg) do out[i] = v end return first .. table.concat(out) end return f(1, 2, 3)",
        "123",
    ),
    (
        r#"local Animal = {} Animal.__index = Animal function Animal.new(name) return setmetatable({name = name}, Animal) end function Animal:speak() return self.name end local Dog = setmetatable({}, {__index = Animal}) Dog.__index = Dog function Dog.new(name) local self = Animal.new(name) return setmetatable(self, Dog) end function Dog:speak() return Animal.speak(self) .. " barks" end return Dog.new("Rex"):speak()"#,
        "Rex barks",
    ),
    (
        "local P = setmetatable({}, {__call = function(cls, x) return setmetatable({x = x}, cls) end}) P.__index = P P.__eq = function(a, b) return a.x == b.x end P.__lt = function(a, b) return a.x < b.x end P.__le = function(a, b) return a.x <= b.x end return tostring(P(1) == P(1)) .. tostring(P(1) < P(2)) .. tostring(P(2) <= P(1))",
        "truetruefalse",
    ),
    (
        r#"local ro = setmetatable({}, {__index = {a = 1}, __newindex = function(_, k) error("read-only: " .. k, 2) end}) local ok, e = pcall(function() ro.b = 1 end) return ro.a .. (e:match("read%-only: b") or e)"#,
        "1read-only: b",
    ),
    (
        "local memo = setmetatable({}, {__index = function(t, n) local v = n < 2 and n or t[n - 1] + t[n - 2] rawset(t, n, v) return v end}) return memo[50]",
        "12586269025",
    ),
    (
        r#"local q = {first = 1, last = 0} local function push(v) q.last = q.last + 1 q[q.last] = v end local function pop() local v = q[q.first] q[q.first] = nil q.first = q.first + 1 return v end push("a") push("b") return pop() .. pop() .. tostring(pop())"#,
        "abnil",
    ),
    (
        "local function range(n) return coroutine.wrap(function() for i = 1, n do coroutine.yield(i) end end) end local s = 0 for i in range(4) do s = s + i end return s",
        "10",
    ),
    (
        r#"local co = coroutine.create(function(a) local b = coroutine.yield(a + 1) error("stop " .. b, 0) end) local _, x = coroutine.resume(co, 1) local ok, e = coroutine.resume(co, "now") return x .. tostring(ok) .. e .. coroutine.status(co)"#,
        "2falsestop nowdead",
    ),
    ("local ok, e = coroutine.resume(coroutine.create(function() return 1 end)) return tostring(ok) .. e", "true1"),
    (
        r#"local p = newproxy(true) getmetatable(p).__index = function(_, k) return k .. "!" end getmetatable(p).__len = function() return 9 end return p.x .. #p .. type(p)"#,
        "x!9userdata",
    ),
    (r#"local w = setmetatable({}, {__mode = "v"}) w[1] = {} return type(w[1])"#, "table"),
    (
        r#"return type(collectgarbage("count")) .. collectgarbage("collect") .. collectgarbage("setpause", 200) .. type(gcinfo())"#,
        "number0200number",
    ),
    (
        r#"return os.date("!%Y-%m-%dT%H:%M:%SZ", 0) .. os.date("!%A %d %B %y %j %p", 0)"#,
        "1970-01-01T00:00:00ZThursday 01 January 70 001 AM",
    ),
    (
        r#"return os.date("!*t", 86400).day .. os.date("!*t", 0).year .. tostring(os.date("*t").isdst ~= nil)"#,
        "21970true",
    ),
    (
        r#"local now = os.time() return tostring(os.time(os.date("*t", now)) == now) .. tostring(os.time{year = 2020, month = 14, day = 1} == os.time{year = 2021, month = 2, day = 1})"#,
        "truetrue",
    ),
    (
        "return os.difftime(os.time{year = 2024, month = 3, day = 1, hour = 0}, os.time{year = 2024, month = 2, day = 28, hour = 0}) / 86400",
        "2",
    ),
    (
        r#"return tostring(os.getenv("NO_SUCH_VARIABLE_HERE")) .. type(os.clock()) .. type(os.tmpname())"#,
        "nilnumberstring",
    ),
    (r#"return os.setlocale(nil) .. tostring(os.setlocale("no_such_locale"))"#, "Cnil"),
    (
        r#"local info = debug.getinfo(1, "Sl") return type(info.source) .. info.what .. type(info.currentline) .. type(info.short_src)"#,
        "stringLuanumberstring",
    ),
    (r#"local function named() return debug.getinfo(1, "n").name end local name = named() return name"#, "named"),
    (
        "local i = debug.getinfo(print) return i.what .. i.short_src .. i.source .. i.currentline .. i.linedefined",
        "C[C]=[C]-1-1",
    ),
    (
        r#"local function where() return debug.getinfo(2, "l").currentline end return tostring(where() == debug.getinfo(1, "l").currentline)"#,
        "true",
    ),
    (r#"return tostring(debug.getinfo(100)) .. type(debug.getinfo(1, "f").func)"#, "nilfunction"),
    (r#"return debug.traceback("message"):match("^message\nstack traceback:\n\t") and "trace""#, "trace"),
    (
        r#"local co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co) return tostring(debug.traceback(co):find("stack traceback:", 1, true) == 1) .. debug.traceback(co, "m"):sub(1, 2)"#,
        "truem\n",
    ),
    ("debug.setmetatable(1, {__index = math}) local n = (-4):abs() debug.setmetatable(1, nil) return n", "4"),
    (
        r#"return tostring(require("string") == string) .. tostring(require("table") == table) .. tostring(package.loaded.math == math) .. tostring(package.loaded._G == _G)"#,
        "truetruetruetrue",
    ),
    (
        r#"package.preload["virtual"] = function(name) return {name = name} end return require("virtual").name .. tostring(require("virtual") == package.loaded.virtual)"#,
        "virtualtrue",
    ),
    (r#"package.loaded["fake"] = {v = 7} return require("fake").v"#, "7"),
    (
        r#"table.insert(package.loaders, 1, function(name) if name == "special" then return function() return "made" end end end) local v = require("special") table.remove(package.loaders, 1) return v"#,
        "made",
    ),
    (
        r#"local ok, e = pcall(require, "no.such.module") return tostring(ok) .. (e:match("no%.such%.module") or e)"#,
        "falseno.such.module",
    ),
    (
        r#"module("shapes.circle", package.seeall) function area(r) return math.floor(3 * r * r) end return package.loaded["shapes.circle"].area(2) .. _NAME .. _PACKAGE"#,
        "12shapes.circleshapes.",
    ),
    ("return type(package.path) .. type(package.cpath) .. package.config:sub(1, 1)", "stringstring/"),
    (
        r#"local f = assert(io.tmpfile()) f:write("one\n", 2, "\nthree 4.5e1\n") f:seek("set") local a = f:read() local b = f:read("*n") f:read() local c = f:read(5) local d = f:read("*n") f:close() return a .. b .. c .. d .. io.type(f)"#,
        "one2three45closed file",
    ),
    (
        "return tostring(io.output() == io.stdout) .. tostring(io.input() == io.stdin) .. io.type(io.stderr) .. tostring(io.type(1))",
        "truetruefilenil",
    ),
    (
        r#"local out = {} for i = 1, 4 do for j = 1, 3 do if j == 2 then break end out[#out + 1] = i .. j end end return table.concat(out, " ")"#,
        "11 21 31 41",
    ),
    (r#"return (("x"):rep(3)) .. ("%d%%"):format(50) .. #("\65\066\n") .. ('\'' .. "\"")"#, r#"xxx50%3'""#),
    (
        r#"return math.fmod(7, -3) .. " " .. -7 % 3 .. " " .. math.modf(-3.5) .. " " .. math.ldexp(0.5, 3) .. " " .. select(2, math.frexp(8))"#,
        "1 2 -3 4 4",
    ),
    (
        r#"return tonumber("0xff") .. tonumber("11", 2) .. tonumber("zz", 36) .. tostring(tonumber("1e")) .. tostring(tonumber({} and nil or "5x"))"#,
        "25531295nilnil",
    ),
    (
        "local s = 0 for _, v in ipairs({1, 2, nil, 4}) do s = s + v end return s .. #{n = 1} .. tostring(next({}))",
        "30nil",
    ),
    (
        "local a, b, c = (function() return 1, 2, 3 end)() local t = {(function() return 1, 2 end)(), (function() return 1, 2 end)()} return a + b + c .. #t",
        "63",
    ),
    (
        r#"do local x = 1 end return tostring(x) .. tostring(nil == false) .. tostring(0 and "zero is true")"#,
        "nilfalsezero is true",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn idioms_give_the_results_of_lua_51() {
    let mut wrong = Vec::new();
    for (body, expected) in IDIOMS {
        // A Lua state for each: some of them change libraries and the globals.
        let script = format!("hygge.register_tool{{name = 't', execute = function()\n{body}\nend}}");
        let world = TestPlugins::of(&script).await;
        world.allow_all();
        let result = world.call("t", json!({})).await;
        if result.is_error || result.text() != *expected {
            wrong.push(format!("{body}\n  expected {expected}\n  got      {}", result.text()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), IDIOMS.len(), wrong.join("\n"));
}

/// A plugin with files: what is loaded, from where, and what is not.
#[tokio::test(flavor = "multi_thread")]
async fn files_of_the_plugin_are_loaded() {
    let world = TestPlugins::new(&[
        (
            "f/plugin.lua",
            r#"
            package.path = package.path .. ";" .. hygge.plugin.dir .. "/more/?.lua;/usr/share/lua/5.1/?.lua"
            local extra = require("extra")
            local again = dofile(hygge.plugin.dir .. "/more/extra.lua")
            local relative = dofile("more/extra.lua")
            local chunk = assert(loadfile("data.conf"))
            local settings = {}
            setfenv(chunk, settings)()
            local _, missing = loadfile("none.lua")
            local _, broken = loadfile("broken.lua")
            local _, outside = pcall(dofile, "../other.lua")
            local _, system = pcall(require, "socket")
            local _, up = loadfile(hygge.plugin.dir .. "/more/../../other.lua")
            require("old.style")
            local here = debug.getinfo(1, "S").source:sub(2):match("(.*/)")
            hygge.register_tool{name = "t", execute = function()
              return hygge.json.encode{
                extra = extra.name, fresh = again ~= extra and relative ~= again, width = settings.width,
                missing = missing, broken = broken, outside = outside, system = system, up = up,
                old = old.style.double(4), here = here == hygge.plugin.dir .. "/", arg = arg[0] == hygge.plugin.path,
                path = hygge.plugin.path, name = extra.argument,
              }
            end}"#,
        ),
        ("f/more/extra.lua", "return {name = 'extra', argument = ...}"),
        ("f/data.conf", "width = 80"),
        ("f/broken.lua", "return 1 +"),
        ("f/old/style.lua", "module(..., package.seeall)\nfunction double(n) return tonumber(n) * 2 end"),
        ("other.lua", "error('a file outside ran')"),
    ])
    .await;
    assert_eq!(world.plugin("f").error, None);
    let said: serde_json::Value = serde_json::from_str(&world.text("t", json!({})).await).unwrap();
    assert_eq!(said["extra"], "extra");
    assert_eq!(said["name"], "extra", "a module gets its name");
    assert_eq!((&said["fresh"], &said["width"], &said["old"]), (&json!(true), &json!(80), &json!(8)));
    assert_eq!((&said["here"], &said["arg"]), (&json!(true), &json!(true)));
    assert_eq!(said["path"], world.plugins.join("f/plugin.lua").display().to_string());
    let contains = |field: &str, words: &str| assert!(said[field].as_str().unwrap().contains(words), "{said:#}");
    contains("missing", "no file f/none.lua");
    contains("broken", "f/broken.lua:1:");
    contains("outside", "is outside of the plugin's folder");
    contains("up", "is outside of the plugin's folder");
    contains("system", "no file f/more/socket.lua, /usr/share/lua/5.1/socket.lua is outside of the plugin's folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_global_that_changes_is_read_again_in_every_file() {
    let world = TestPlugins::new(&[
        (
            "f/plugin.lua",
            "level, options = 1, {x = 1}
             function math.round(x) return 'rounded' end
             local m = require('m')
             level, options.x = 2, 2
             hygge.register_tool{name = 't', execute = function() return m() end}",
        ),
        ("f/m.lua", "return function() return level .. options.x .. math.round(1.5) .. hygge.session.id end"),
    ])
    .await;
    assert_eq!(world.text("t", json!({})).await, "22roundeds");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_may_use_thousands_of_globals_and_calls_nest_deeply() {
    let names = |form: &str| (0..3_000).map(|n| form.replace('#', &n.to_string())).collect::<String>();
    let world = TestPlugins::of(&format!(
        "{}\nlocal sum = 0\n{}
         hygge.register_tool{{name = 'sum', execute = function() return sum + global_2999 end}}
         local function count(n) if n == 0 then return 'counted' end return count(n - 1) end
         hygge.register_tool{{name = 'count', execute = function(ctx, input) return count(input.n) end}}",
        names("global_# = # "),
        names("sum = sum + global_#\n"),
    ))
    .await;
    assert_eq!(world.text("sum", json!({})).await, "4501499");
    assert_eq!(world.text("count", json!({"n": 15_000})).await, "counted");
    let deep = world.call("count", json!({"n": 100_000})).await;
    assert!(deep.is_error && deep.text().contains("use a loop"), "{}", deep.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_is_a_table_shows_its_message() {
    let world = TestPlugins::of(
        "hygge.register_hook('pre_tool', {tools = {'hooked'}, fail = 'closed'}, function() error{message = 'from the hook'} end)
         for name, raise in pairs{
           message = function() error{message = 'as said', code = 7} end,
           json = function() error{code = 7, list = {1}} end,
           text = function() error(setmetatable({message = 'no'}, {__tostring = function() return 'as text' end})) end,
           again = function() local _, e = pcall(error, {message = 'raised again'}) error(e) end,
           asserted = function() assert(false, {message = 'from assert'}) end,
           coroutine = function() coroutine.wrap(function() error{message = 'from inside'} end)() end,
           hooked = function() end,
         } do hygge.register_tool{name = name, execute = raise} end",
    )
    .await;
    for (tool, expected) in [
        ("message", "as said"),
        ("json", r#"{"code":7,"list":[1]}"#),
        ("text", "as text"),
        ("again", "raised again"),
        ("asserted", "from assert"),
        ("coroutine", "from inside"),
    ] {
        let result = world.call(tool, json!({})).await;
        assert!(result.is_error);
        assert_eq!(result.text(), expected, "{tool}");
    }
    let place = world.call("message", json!({})).await;
    assert_eq!(place.metadata["error"]["line"], 3, "{place:?}");
    let refused = format!("{:?}", world.execute(world.call_of("hooked", json!({}))).await);
    assert!(refused.contains("from the hook"), "{refused}");
    let failed = TestPlugins::new(&[("p.lua", "\nerror{message = 'while it loads'}")]).await.plugin("p").error.unwrap();
    assert_eq!((failed.message.as_str(), failed.line), ("while it loads", Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_that_a_plugin_sets_reach_its_programs() {
    let world = TestPlugins::of(
        "os.setenv('PLUGIN_COLOUR', 'green')
         hygge.register_tool{name = 't', execute = function()
           local inherited = hygge.exec('printenv', {'PLUGIN_COLOUR'}).stdout
           local own = hygge.exec('printenv', {'PLUGIN_COLOUR'}, {env = {PLUGIN_COLOUR = 'red'}}).stdout
           return os.getenv('PLUGIN_COLOUR') .. inherited .. own
         end}",
    )
    .await;
    world.allow_all();
    assert_eq!(world.text("t", json!({})).await, "greengreen\nred\n");
}

#[test]
fn check_names_everything_that_this_lua_lacks() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("plugin.toml", "name = 'jumps'");
    write("plugin.lua", "for i = 1, 2 do\n  for j = 1, 2 do goto out end\nend\n::out::\nlocal x <const> = 1 << 2\n");
    write("lib.lua", "return string.dump(print)\n");
    write("fine.lua", "for i = 1, 2 do\n  if i == 1 then goto next end\n  ::next::\nend\n-- goto nowhere\n");
    let report = crate::world::checked(folder.path());
    let lines: Vec<_> = report.problems.iter().map(|problem| problem.line.unwrap()).collect();
    assert_eq!(lines, [2, 4, 5, 5], "{:#?}", report.problems);
    assert!(report.problems[0].message.contains("use `continue`, a loop or a function"));
    assert_eq!(report.problems[0].source_line.as_deref(), Some("  for j = 1, 2 do goto out end"));
    let warnings: Vec<_> = report.warnings.iter().map(|warning| (warning.line, warning.message.as_str())).collect();
    let lib = folder.path().file_name().unwrap().to_string_lossy();
    let expected = format!(
        "{lib}/lib.lua:1: this Lua (Luau) has no string.dump: bytecode is never loaded: keep the source text, and compile it with loadstring"
    );
    assert_eq!(warnings, [(Some(1), expected.as_str())]);
}
