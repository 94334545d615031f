//! Bodies of tools that try to run forever, exhaust memory, or break out.

/// How a program must end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ProgramEnding {
    /// Stopped at its limit.
    AtLimit,
    /// With an error of its own that has these words.
    With(&'static str),
    /// At its limit, or with an error: which comes first depends on the computer.
    Somehow,
    /// Successfully: it could do no harm.
    Well,
}

use ProgramEnding::{AtLimit, Somehow, Well, With};

/// The attempts: a title, the body, and how it must end.
pub(crate) const BODIES: &[(&str, &str, ProgramEnding)] = &[
    ("endless loop", "while true do end", AtLimit),
    ("long for", "for i = 1, 1e18 do end", AtLimit),
    ("repeat", "repeat until false", AtLimit),
    ("pcall around a loop", "while true do pcall(function() while true do end end) end", AtLimit),
    (
        "nested pcalls",
        "local function f() while true do pcall(function() while true do pcall(function() while true do end end) end end) end end f()",
        AtLimit,
    ),
    (
        "xpcall whose handler loops",
        "while true do xpcall(function() error('x') end, function() while true do end end) end",
        AtLimit,
    ),
    ("loop in a coroutine", "coroutine.wrap(function() while true do end end)()", AtLimit),
    (
        "pcall in coroutines in pcall",
        "while true do pcall(coroutine.wrap(function() while true do pcall(function() while true do end end) end end)) end",
        AtLimit,
    ),
    (
        "coroutines without end",
        "local function make() return coroutine.wrap(function() while true do pcall(make()) end end) end make()()",
        Somehow,
    ),
    (
        "coroutines that are kept",
        "local t = {} while true do t[#t + 1] = coroutine.create(function() end) end",
        Somehow,
    ),
    (
        "closing coroutines",
        "while true do local co = coroutine.create(function() coroutine.yield() end) coroutine.resume(co) coroutine.close(co) end",
        AtLimit,
    ),
    ("metamethod that loops", "return setmetatable({}, {__index = function() while true do end end}).x", AtLimit),
    (
        "metamethods without end",
        "local t = setmetatable({}, {__index = function(t, k) return t[k + 1] end}) return t[1]",
        Somehow,
    ),
    (
        "__gc that loops",
        "setmetatable({}, {__gc = function() while true do end end}) for i = 1, 1e5 do local t = {} end",
        Well,
    ),
    ("sort whose comparison loops", "table.sort({3, 2, 1}, function() while true do end end)", AtLimit),
    (
        "sort without order",
        "local t = {} for i = 1, 1e5 do t[i] = i % 7 end while true do pcall(table.sort, t, function() return true end) end",
        AtLimit,
    ),
    (
        "sort of many",
        "local t = {} for i = 1, 1e6 do t[i] = (i * 7919) % 1000003 end while true do table.sort(t) end",
        Somehow,
    ),
    ("gsub whose callback loops", "('x'):gsub('x', function() while true do end end)", AtLimit),
    ("gsub of much", "local s = ('x'):rep(1e6) while true do s:gsub('.', 'y') end", AtLimit),
    ("exploding pattern", "return ('a'):rep(40):find(('a?'):rep(40) .. ('a'):rep(40))", AtLimit),
    ("pattern with many dots", "return ('a'):rep(3000):find('.-.-.-.-.-.-b')", AtLimit),
    ("pattern that nests", "return ('('):rep(1e5):find(('('):rep(1e5))", Somehow),
    (
        "plain find that almost fits",
        "local a, b = ('a'):rep(4e6), ('a'):rep(2e6) .. 'b' return tostring(a:find(b, 1, true))",
        Well,
    ),
    ("rep of much", "return #('x'):rep(1e10)", Somehow),
    ("rep with a separator", "return #('x'):rep(2^31, 'y')", Somehow),
    ("rep of nothing", "return #(''):rep(2^31 - 1)", Well),
    ("concat that doubles", "local s = 'x' while true do s = s .. s end", With("not enough memory")),
    ("strings that are kept", "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end", Somehow),
    ("tables that are kept", "local t = {} while true do t[#t + 1] = {} end", Somehow),
    (
        "memory use in pcall",
        "while true do pcall(function() local t = {} while true do t[#t + 1] = {1, 2, 3} end end) end",
        Somehow,
    ),
    ("one big table", "return #table.create(1e9, 1)", Somehow),
    ("100,000 globals", "for i = 1, 1e5 do getfenv()['g' .. i] = i end return 'done'", Somehow),
    ("a buffer", "return buffer.len(buffer.create(1e9))", Somehow),
    ("recursion", "local function f(x) return 1 + f(x + 1) end return f(1)", Somehow),
    ("recursion through pcall", "local function f() return pcall(f) end f() return 'back'", Somehow),
    ("recursion through gsub", "local function f(s) return (s:gsub('.', f)) end return f('abc')", With("overflow")),
    (
        "recursion through tostring",
        "local t = setmetatable({}, {}) getmetatable(t).__tostring = function() return tostring(t) end return tostring(t)",
        With("overflow"),
    ),
    ("table.move of much", "table.move({}, 1, 1e9, 2)", AtLimit),
    ("table.insert in front", "local t = {} for i = 1, 1e9 do table.insert(t, 1, i) end", Somehow),
    (
        "table.concat of much",
        "local t = {} for i = 1, 1e5 do t[i] = 'x' end while true do table.concat(t) end",
        AtLimit,
    ),
    ("unpack of much", "return select('#', unpack({}, 1, 1e8))", With("too many results")),
    (
        "deep result",
        "local t = {} for i = 1, 1000 do t = {t} end return {content = 'x', metadata = t}",
        With("nests deeper"),
    ),
    ("cyclic result", "local t = {} t[1] = t return {content = t}", With("contains itself")),
    (
        "result that unfolds",
        "local t = {} for i = 1, 100 do t = {t, t} end return {content = 'x', metadata = {t}}",
        With("larger than 64 MiB"),
    ),
    ("big result", "return ('x'):rep(2e7)", Well),
    ("giant message", "error(('x'):rep(1e6))", With("bytes cut")),
    ("error that is no text", "error(setmetatable({}, {__tostring = function() return 'told' end}))", With("told")),
    ("error whose text loops", "error(setmetatable({}, {__tostring = function() while true do end end}))", Somehow),
    ("error whose text fails", "error(setmetatable({}, {__tostring = function() error('again') end}))", Somehow),
    ("error nil", "error()", Somehow),
    ("error in the error handler", "xpcall(error, function() error('again') end) return 'went on'", Well),
    ("flood of output", "while true do ctx.output(('x'):rep(10000)) end", AtLimit),
    ("flood of progress", "while true do ctx.progress('x') end", AtLimit),
    ("flood of notices", "while true do hygge.notify('x') end", AtLimit),
    ("flood of log lines", "while true do hygge.log('debug', 'x') end", AtLimit),
    ("sleep without end", "while true do pcall(hygge.sleep, '1h') end", AtLimit),
    ("sleeps without number", "while true do pcall(hygge.sleep, 0) end", AtLimit),
    ("sleep in a sort", "table.sort({2, 1}, function() hygge.sleep('1h') end)", AtLimit),
    (
        "all without end",
        "hygge.all{function() while true do coroutine.yield() end end, function() hygge.sleep('1h') end}",
        AtLimit,
    ),
    ("calls of itself", "while true do pcall(hygge.call_tool, 'hostile') end", Somehow),
    ("compiling without end", "while true do load('return ' .. ('1 + '):rep(1000) .. '1') end", AtLimit),
    ("source that nests", "return select(2, load(('('):rep(1e5) .. '1' .. (')'):rep(1e5)))", Well),
    ("json that nests", "return select(2, pcall(hygge.json.decode, ('['):rep(1e5)))", Well),
    ("json without end", "while true do hygge.json.encode({1, 2, 3}) end", AtLimit),
    ("glob of folders", "return #hygge.fs.glob(('{a,b}'):rep(20))", Somehow),
    (
        "way out by the string table",
        "local meta = getmetatable('') meta.__index = nil pcall(function() return ('x').rep end) meta.__index = string",
        Well,
    ),
    (
        "way out by debug",
        "return tostring(debug.getregistry) .. tostring(debug.sethook) .. tostring(debug.getupvalue)",
        Well,
    ),
    (
        "way out by loading",
        "package.path = '/etc/?;../?;;?' assert(not pcall(require, 'passwd')) assert(not pcall(dofile, '/etc/passwd')) \
         assert(not loadfile('../../etc/passwd')) assert(not pcall(package.loadlib, '/lib/x.so', 'f'))",
        Well,
    ),
    ("way out by exit", "os.exit(1)", With("cannot end the daemon")),
    ("way out by bytecode", "return select(2, loadstring('\\27Lua'))", Well),
];
