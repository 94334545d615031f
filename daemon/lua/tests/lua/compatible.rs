//! Lua 5.1 as plugins of other hosts expect it: small programs, and their results.

use serde_json::{Value, json};

use crate::world::TestPlugins;

/// Bodies of tools, and the text that they return.
const PROGRAMS: &[(&str, &str)] = &[
    // Numbers print as in Lua 5.1, integral ones without a fraction.
    ("return 10 / 2", "5"),
    ("return tostring(3.0) .. ' ' .. 1e15 .. ' ' .. 2^31", "3 1000000000000000 2147483648"),
    ("return 7 / 2", "3.5"),
    ("return ('%d %5.2f %s %q %x'):format(3, 2.5, 'a', 'b', 255)", "3  2.50 a \"b\" ff"),
    ("return tostring(2^53)", "9007199254740992"),
    ("return tostring(-0.0 == 0) .. tostring(1e300 * 1e10) .. tostring(0/0 ~= 0/0)", "trueinftrue"),
    ("return tonumber('0x10') + tonumber('10', 2) + tonumber(' 5 ')", "23"),
    ("return tostring(tonumber('x')) .. tostring(tonumber(''))", "nilnil"),
    ("return 5 % 3 .. ' ' .. -5 % 3 .. ' ' .. 2 ^ 10", "2 1 1024"),
    ("return '10' + 5 .. '|' .. 10 .. 20", "15|1020"),
    (
        "return math.pow(2, 10) .. ' ' .. math.floor(-2.5) .. ' ' .. math.max(1, 5, 3) .. ' ' .. math.mod(7, 3)",
        "1024 -3 5 1",
    ),
    ("return math.ldexp(1, 3) .. ' ' .. math.cosh(0) .. ' ' .. math.log10(1000) .. ' ' .. math.fmod(7, 3)", "8 1 3 1"),
    ("math.randomseed(1) local r = math.random(1, 6) return tostring(r >= 1 and r <= 6)", "true"),
    ("return math.huge .. ' ' .. -math.huge .. ' ' .. math.floor(math.pi * 100)", "inf -inf 314"),
    // Tables.
    ("return table.getn({1, 2, 3}) .. table.maxn({1, 2, [5] = 3})", "35"),
    ("return unpack({1, 2, 3}) + select('#', unpack({1, nil, 3}, 1, 3))", "4"),
    ("return select(-1, 'a', 'b') .. select(2, 'a', 'b', 'c')", "bb"),
    ("local t = {5, 2, 8} table.sort(t) return table.concat(t, ',')", "2,5,8"),
    ("local t = {5, 2, 8} table.sort(t, function(a, b) return a > b end) return table.concat(t, ',')", "8,5,2"),
    (
        "local t = {1, 2} table.insert(t, 1, 0) table.insert(t, 3) local r = table.remove(t) return table.concat(t) .. r .. table.remove(t, 1)",
        "01230",
    ),
    (
        "local n = 0 table.foreach({1, 2, x = 3}, function(k, v) n = n + v end) table.foreachi({1, 2}, function(i, v) n = n + i end) return n",
        "9",
    ),
    (
        "local n = 0 for k, v in pairs({1, 2, x = 3}) do n = n + v end for i, v in ipairs({1, 2, nil, 4}) do n = n + i end return n",
        "9",
    ),
    ("return next({}) == nil and rawequal('a', 'a') and rawget({a = 1}, 'a') == 1 and 'ok'", "ok"),
    ("local t = {} t[1.0] = 'a' t[2] = 'b' return #t .. t[1]", "2a"),
    ("local t = table.move({1, 2, 3}, 1, 3, 2) return table.concat(t, ',')", "1,1,2,3"),
    (
        "local t = {} for i = 1, 300000 do t[i] = i end table.move(t, 1, 300000, 3) return t[3] .. ' ' .. t[300002]",
        "1 300000",
    ),
    (
        "local t = {} for i = 1, 300000 do t[i] = i end local u = table.move(t, 150001, 300000, 1, {}) return u[1] .. ' ' .. #u",
        "150001 150000",
    ),
    ("local t = {} for i = 1, 30000 do t[i] = 30001 - i end table.sort(t) return t[1] .. t[30000]", "130000"),
    // Strings.
    ("return ('x'):rep(3, '-') .. ('ab'):rep(2) .. ('x'):rep(0, '-') .. ('x'):rep(1, '-')", "x-x-xababx"),
    (
        "return ('hello world'):find('wor') .. ('a.b'):find('.', 1, true) .. tostring(('abc'):find('b', 3, true))",
        "72nil",
    ),
    (
        "return ('abcabc'):find('c', -3, true) .. ' ' .. tostring(('abc'):find('', 10, true)) .. ('abc'):find('', 4, true)",
        "6 nil4",
    ),
    ("return ('key = value'):match('^(%w+)%s*=%s*(%w+)$')", "key"),
    ("return (('a,b,,c'):gsub(',', ';')) .. select(2, ('aaa'):gsub('a', 'b', 2))", "a;b;;c2"),
    ("return (('hello $name'):gsub('%$(%w+)', {name = 'you'})) .. (('abc'):gsub('%w', '%0%0'))", "hello youaabbcc"),
    (
        "local out = {} for word in ('one two three'):gmatch('%a+') do out[#out + 1] = word end return table.concat(out, '|')",
        "one|two|three",
    ),
    (
        "local out = {} for k, v in string.gfind('a=1, b=2', '(%w+)=(%w+)') do out[#out + 1] = k .. v end return table.concat(out)",
        "a1b2",
    ),
    ("return ('%bxy'):len() .. ('f(a(b)c)d'):match('%b()') .. ('THE (quick) fox'):find('%((%a+)%)')", "4(a(b)c)5"),
    (
        "return ('abc'):byte(-1) .. string.char(72, 105) .. ('aBc'):upper() .. ('aBc'):lower() .. ('abc'):reverse()",
        "99HiABCabccba",
    ),
    ("return ('abcdef'):sub(2, -2) .. #'a\\0b' .. ('x'):len() .. '\\65\\066'", "bcde31AB"),
    ("return 'a' .. [[\n[b]\n]] .. [==[]]]==]", "a[b]\n]]"),
    (
        "return ('%5s|%-5s|%05d|%+d|%e|%g|%c|%%'):format('a', 'b', 42, 5, 1.5, 0.1, 65)",
        "    a|b    |00042|+5|1.500000e+00|0.1|A|%",
    ),
    ("return tostring('a' < 'b') .. tostring('Z' < 'a') .. tostring('10' < '9')", "truetruetrue"),
    // Functions, environments, chunks.
    ("return loadstring('return ...')(7) + load('return 1')()", "8"),
    (
        "local f, message = loadstring('return +', 'chunk') return tostring(f) .. ' ' .. message:match('^%[?%a* ?\"?(chunk)')",
        "nil chunk",
    ),
    ("local pieces = {'return ', '4', '2'} local i = 0 return load(function() i = i + 1 return pieces[i] end)()", "42"),
    ("return load('return x', 'c', 't', {x = 'env'})()", "env"),
    ("local f = function() return x end setfenv(f, {x = 'set'}) return f() .. type(getfenv(f))", "settable"),
    ("local function f(...) local t = {...} return select('#', ...) .. #t end return f(1, 2, 3)", "33"),
    ("local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end return fib(15)", "610"),
    ("local a = {} for i = 1, 3 do a[i] = function() return i end end return a[1]() .. a[2]() .. a[3]()", "123"),
    (
        "local i, n = 0, 0 while true do i = i + 1 if i > 5 then break end if i % 2 == 0 then n = n + i end end return n",
        "6",
    ),
    ("local s = 0 for i = 10, 1, -3 do s = s + i end repeat local done = true until done return s", "22"),
    ("local x = nil return x and x.y or 'none'", "none"),
    ("g = (g or 0) + 1 _G.h = 'h' return g .. tostring(_G.g == g) .. h", "1trueh"),
    ("string.trim = function(s) return (s:gsub('^%s+', ''):gsub('%s+$', '')) end return ('  x '):trim()", "x"),
    (
        "function table.contains(t, x) for _, v in ipairs(t) do if v == x then return true end end return false end return tostring(table.contains({1, 2}, 2))",
        "true",
    ),
    // Errors.
    ("return select(2, pcall(error, {code = 7})).code", "7"),
    ("return select(2, pcall(error, 'plain', 0))", "plain"),
    (
        "local ok, message = pcall(function() local x = nil return x.y end) return tostring(ok) .. (message:match('index nil') or message)",
        "falseindex nil",
    ),
    ("return select(2, xpcall(function() error('x', 0) end, function(m) return 'handled ' .. m end))", "handled x"),
    ("local ok, message = pcall(error) return tostring(ok) .. tostring(message)", "falsenil"),
    ("return type(select(2, xpcall(function() error('x') end, debug.traceback)))", "string"),
    (
        "return tostring(pcall(assert, false, 'said')) .. select(2, pcall(assert, nil, 'said')) .. assert(5)",
        "falsesaid5",
    ),
    ("local ok, message = pcall(string.rep) return tostring(ok) .. type(message)", "falsestring"),
    // Metatables.
    (
        "local C = {} C.__index = C function C.new(x) return setmetatable({x = x}, C) end function C:get() return self.x end return C.new(4):get()",
        "4",
    ),
    (
        "local V = setmetatable({}, {__call = function(_, a) return a * 2 end, __tostring = function() return 'V' end}) return V(4) .. tostring(V)",
        "8V",
    ),
    (
        "local m = {__add = function() return 'add' end, __eq = function() return true end, __lt = function() return true end, __concat = function() return 'cat' end, __unm = function() return 'neg' end} local a, b = setmetatable({}, m), setmetatable({}, m) return (a + b) .. tostring(a == b) .. tostring(a < b) .. (a .. b) .. -a",
        "addtruetruecatneg",
    ),
    (
        "local log = {} local t = setmetatable({}, {__newindex = function(t, k, v) rawset(t, k, v) log[#log + 1] = k end}) t.a = 1 t.a = 2 t.b = 3 return table.concat(log)",
        "ab",
    ),
    (
        "return tostring(getmetatable(setmetatable({}, {__metatable = 'locked'}))) .. tostring(pcall(setmetatable, setmetatable({}, {__metatable = 1}), {}))",
        "lockedfalse",
    ),
    // Coroutines.
    (
        "local co = coroutine.create(function(a, b) local c = coroutine.yield(a + b) return c * 2 end) local _, x = coroutine.resume(co, 1, 2) local _, y = coroutine.resume(co, 10) return x .. y .. coroutine.status(co)",
        "320dead",
    ),
    (
        "local gen = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i) end end) return gen() + gen() + gen()",
        "6",
    ),
    (
        "local ok, message = coroutine.resume(coroutine.create(function() error('in', 0) end)) return tostring(ok) .. message",
        "falsein",
    ),
    (
        "local co = coroutine.wrap(function() coroutine.yield() coroutine.yield(nil, 2) end) return select('#', co()) .. select('#', co())",
        "02",
    ),
    (
        "return tostring(coroutine.resume(coroutine.create(function() end), 1)) .. tostring((coroutine.resume(coroutine.running() or coroutine.create(print))))",
        "truefalse",
    ),
    // Bits.
    ("return bit.band(7, 3) .. bit.bor(4, 1) .. bit.bxor(7, 2) .. bit.lshift(1, 4) .. bit.rshift(256, 4)", "3551616"),
    (
        "return bit.bnot(0) .. ' ' .. bit.tobit(0xffffffff) .. ' ' .. bit.arshift(-8, 1) .. ' ' .. bit.tohex(255) .. ' ' .. bit.tohex(255, 2) .. ' ' .. bit.rol(0x12345678, 8)",
        "-1 -1 -4 000000ff ff 878082066",
    ),
    ("return bit32.band(7, 3) .. ' ' .. bit32.bnot(0)", "3 4294967295"),
    ("return utf8.len('é') .. utf8.char(233)", "1é"),
    // The host's libraries.
    (
        "return os.date('!%Y-%m-%d', 86400) .. type(os.time()) .. os.time({year = 2020, month = 1, day = 1, hour = 12}) - os.time({year = 2020, month = 1, day = 1, hour = 11})",
        "1970-01-02number3600",
    ),
    ("return os.difftime(5, 3) .. type(os.clock())", "2number"),
    ("return type(collectgarbage('count')) .. collectgarbage() .. collectgarbage('collect')", "number00"),
    ("print('to the log', 1, nil, {}) io.write('x') io.stderr:write('y') return 'on'", "on"),
    (
        "return hygge.json.encode({a = {1, 2}, b = 'x', c = 1.0, d = hygge.json.array{}, e = hygge.json.null})",
        r#"{"a":[1,2],"b":"x","c":1,"d":[],"e":null}"#,
    ),
    (
        "local v = hygge.json.decode('{\"a\": [1, null], \"b\": {}}') return tostring(v.a[2] == hygge.json.null) .. #v.a .. hygge.json.encode(v)",
        r#"true2{"a":[1,null],"b":{}}"#,
    ),
    ("return type(hygge.now()) .. tostring(hygge.now() > 1.7e9)", "numbertrue"),
    ("return _VERSION:match('^Lua') or 'no'", "Lua"),
    ("local t = {} t.x, t.y = 1 return tostring(t.x) .. tostring(t.y)", "1nil"),
    ("local s = 'a;b'; local n = #s; return n;", "3"),
    ("return (function(...) return select('#', ...) end)(nil, nil)", "2"),
    ("return #arg_of(1, 2)", "2"),
];

#[tokio::test(flavor = "multi_thread")]
async fn programs_give_the_same_output_as_in_other_hosts() {
    assert!(PROGRAMS.len() >= 60);
    let mut script = "function arg_of(...) return {...} end\n".to_owned();
    for (number, (body, _)) in PROGRAMS.iter().enumerate() {
        script.push_str(&format!(
            "hygge.register_tool{{name = 't{number}', execute = function(ctx, input)\n{body}\nend}}\n"
        ));
    }
    let world = TestPlugins::of(&script).await;
    world.allow_all();
    let mut wrong = Vec::new();
    for (number, (body, expected)) in PROGRAMS.iter().enumerate() {
        let result = world.call(&format!("t{number}"), json!({})).await;
        if result.is_error || result.text() != *expected {
            wrong.push(format!("{body}\n  expected {expected}\n  got      {}", result.text()));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), PROGRAMS.len(), wrong.join("\n"));
}

/// The top level of a plugin that was written for another host.
#[tokio::test(flavor = "multi_thread")]
async fn plugins_of_other_hosts_load() {
    let world = TestPlugins::of(
        "#!/usr/bin/env lua
         local M = {}
         local config = hygge.config or {}
         local max = tonumber(config.max) or 10
         local home = os.getenv('HOME') or ''
         local function trim(s) return (s:gsub('^%s*(.-)%s*$', '%1')) end
         M.tools = {
           {name = 'one', description = 'One', parallelizable = 'yes', input_schema = {type = 'object', properties = {}, required = {}}, execute = function(ctx, input) return {content = trim(' one ')} end},
           {name = 'two', description = 'Two', parallelizable = 1, handler = function(ctx, input) return max end, execute = function() return max end},
         }
         for _, tool in ipairs(M.tools) do hygge.register_tool(tool) end
         if not pcall(hygge.register_tool, {name = 'one', execute = print}) then hygge.log('info', 'kept the first') end
         hygge.tools.register({name = 'three', handler = function(ctx, input) return input.x end})
         hygge.register_hook('post_tool', {name = 'audit', mode = 'async', timeout = '5s'}, function(event) end)
         hygge.register_command({name = '/hello', description = 'Hello', execute = function(ctx, input) return {message = 'hi'} end})
         return M",
    )
    .await;
    assert_eq!(world.text("one", json!({})).await, "one");
    assert_eq!(world.text("two", json!({})).await, "10");
    assert_eq!(world.text("three", json!({"x": 2.0})).await, "2");
    let snapshot = world.engine.registry.snapshot();
    let one = snapshot.global().find("one").unwrap().spec();
    assert!(!one.parallelizable);
    assert_eq!(one.input.as_value()["required"], Value::Array(Vec::new()));
}
