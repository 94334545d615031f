//! Programs of Lua 5.1 and of gopher-lua in Luau: the few constructs that are rewritten before a text is compiled, and
//! those that are named because there is nothing to write instead.
//!
//! Lines keep their numbers.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use crate::vm::tokens::{Token, TokenKind, tokens};

/// A source text as it is compiled.
pub(crate) struct AdaptedSource {
    pub(crate) text: Vec<u8>,
    /// Libraries and functions of Lua that this text and those before it change.
    pub(crate) changed: BTreeSet<Vec<u8>>,
}

/// Something in a source text that this Lua does not have.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Unsupported {
    pub(crate) line: u32,
    pub(crate) message: String,
}

/// Libraries whose functions the compiler calls directly.
const LIBRARIES: [&[u8]; 10] =
    [b"string", b"table", b"math", b"os", b"io", b"debug", b"coroutine", b"bit32", b"utf8", b"buffer"];

/// Functions that programs do not replace, so that the compiler may look them up once.
const FUNCTIONS: [&[u8]; 26] = [
    b"assert",
    b"collectgarbage",
    b"error",
    b"gcinfo",
    b"getfenv",
    b"getmetatable",
    b"ipairs",
    b"load",
    b"loadstring",
    b"newproxy",
    b"next",
    b"pairs",
    b"pcall",
    b"print",
    b"rawequal",
    b"rawget",
    b"rawlen",
    b"rawset",
    b"require",
    b"select",
    b"setfenv",
    b"setmetatable",
    b"tonumber",
    b"tostring",
    b"type",
    b"unpack",
];

/// Words that are no names of globals.
const KEYWORDS: [&[u8]; 25] = [
    b"and",
    b"break",
    b"continue",
    b"do",
    b"else",
    b"elseif",
    b"end",
    b"export",
    b"false",
    b"for",
    b"function",
    b"goto",
    b"if",
    b"in",
    b"local",
    b"nil",
    b"not",
    b"or",
    b"repeat",
    b"return",
    b"then",
    b"true",
    b"typeof",
    b"until",
    b"while",
];

/// Rewrites `goto` to a label at the end of its loop as `continue`, removes empty statements, gives functions the table `arg` of their variable
/// arguments, and keeps the compiler from looking up globals when it loads the text: another text may change them later.
///
/// `changed` has the libraries and functions of Lua that earlier texts changed.
pub(crate) fn adapt(source: &[u8], mut changed: BTreeSet<Vec<u8>>) -> AdaptedSource {
    let text = SourceText { source, tokens: tokens(source) };
    changed.extend(text.changed());
    let mut edits = vec![text.reading_globals(&changed)];
    edits.extend(text.edits());
    edits.extend(text.plain_escapes());
    if ![&b"bit"[..], b"bit32"].iter().any(|library| changed.contains(*library)) {
        edits.extend(text.bit_operations());
    }
    edits.sort_by_key(|(range, _)| range.start);
    let (mut adapted, mut at) = (Vec::with_capacity(source.len() + 1_024), 0);
    for (range, replacement) in edits {
        adapted.extend_from_slice(&source[at..range.start]);
        adapted.extend_from_slice(&replacement);
        // A label may be written over several lines.
        adapted.extend(source[range.clone()].iter().filter(|byte| **byte == b'\n'));
        at = range.end;
    }
    adapted.extend_from_slice(&source[at..]);
    AdaptedSource { text: adapted, changed }
}

/// The syntax in an adapted text that does not compile, with a way out. For texts that do not compile: some of it is
/// valid in type annotations.
pub(crate) fn unsupported_syntax(source: &[u8]) -> Vec<Unsupported> {
    let text = SourceText { source, tokens: tokens(source) };
    let mut found: Vec<Unsupported> = Vec::new();
    for at in 0..text.tokens.len() {
        let message = match text.word(at) {
            b"goto" if text.is_goto(at) => GOTO,
            b"::" if text.is_label(at) => GOTO,
            b"<" if matches!(text.word(at + 1), b"const" | b"close") && text.word(at + 2) == b">" => {
                "attributes such as <const> are not part of this Lua (Luau): leave them out"
            }
            b"<<" | b">>" | b"&" | b"|" | b"~" => {
                "there are no operators for bits in this Lua (Luau): use bit.band, bit.bor, bit.bxor, bit.lshift, bit.rshift"
            }
            _ => continue,
        };
        let line = text.tokens[at].line;
        if found.last().is_none_or(|last| last.line != line || last.message != message) {
            found.push(Unsupported { line, message: message.to_owned() });
        }
    }
    found
}

const GOTO: &str = "goto and labels are not part of this Lua (Luau), except for a label at the end of the loop that \
                    contains the goto: use `continue`, a loop or a function";

/// Functions of other Lua hosts that are missing here, each with a way out.
const MISSING: [(&str, &[&str], &str); 5] = [
    ("string", &["dump"], "bytecode is never loaded: keep the source text, and compile it with loadstring"),
    ("debug", &["sethook", "gethook"], "there are no hooks: the time limit of a call stops it"),
    (
        "debug",
        &["getlocal", "setlocal", "getupvalue", "setupvalue", "upvalueid", "upvaluejoin", "getregistry"],
        "variables of other functions cannot be reached: pass them as arguments",
    ),
    ("package", &["loadlib"], "a plugin cannot load C libraries: run a program with hygge.exec"),
    ("channel", &["make", "select"], "there are no channels: hygge.all runs functions concurrently"),
];

/// Uses of such functions. A text that tests for them first is right too.
pub(crate) fn missing_functions(source: &[u8]) -> Vec<Unsupported> {
    let text = SourceText { source, tokens: tokens(source) };
    let mut found = Vec::new();
    for at in 0..text.tokens.len() {
        if text.is_field(at) || text.word(at + 1) != b"." || text.word(at + 3) != b"(" {
            continue;
        }
        for (library, members, why) in MISSING {
            let member = members.iter().find(|member| member.as_bytes() == text.word(at + 2));
            if let Some(member) = member.filter(|_| text.word(at) == library.as_bytes()) {
                let message = format!("this Lua (Luau) has no {library}.{member}: {why}");
                found.push(Unsupported { line: text.tokens[at].line, message });
            }
        }
    }
    found
}

type SourceEdit<'a> = (Range<usize>, Cow<'a, [u8]>);

/// A block that is open while the text is read.
struct OpenBlock {
    kind: BlockKind,
    id: usize,
}

enum BlockKind {
    /// With the place after its parameters, if it has variable ones.
    Function {
        variable: Option<usize>,
        uses_arg: bool,
        uses_dots: bool,
    },
    Loop {
        has_body: bool,
    },
    Repeat,
    Other,
}

/// A `goto`, and the innermost loop around it.
struct Jump {
    at: usize,
    in_loop: usize,
}

struct SourceText<'a> {
    source: &'a [u8],
    tokens: Vec<Token>,
}

impl<'a> SourceText<'a> {
    /// The text of a token; empty beyond the end.
    fn word(&self, at: usize) -> &'a [u8] {
        self.tokens.get(at).map_or(b"", |token| token.text(self.source))
    }

    fn before(&self, at: usize, back: usize) -> &'a [u8] {
        at.checked_sub(back).map_or(b"", |at| self.word(at))
    }

    /// A name after a dot or a colon. The globals are in `_G` too.
    fn is_field(&self, at: usize) -> bool {
        match self.before(at, 1) {
            b"." => self.before(at, 2) != b"_G",
            b":" => true,
            _ => false,
        }
    }

    fn is_name(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Name)
    }

    fn is_goto(&self, at: usize) -> bool {
        self.word(at) == b"goto" && self.is_name(at + 1) && !matches!(self.before(at, 1), b"." | b":")
    }

    fn is_label(&self, at: usize) -> bool {
        self.word(at) == b"::" && self.is_name(at + 1) && self.word(at + 2) == b"::"
    }

    /// The edits that make Luau of the text; none if its blocks do not match.
    fn edits(&self) -> Vec<SourceEdit<'static>> {
        let (mut edits, mut jumps, mut labels) = (Vec::new(), Vec::new(), Vec::new());
        let mut blocks: Vec<OpenBlock> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let word = self.word(at);
            let open = |kind| OpenBlock { kind, id: at };
            if self.tokens[at].kind != TokenKind::Name || matches!(self.before(at, 1), b"." | b":") {
                if self.is_label(at) {
                    if let Some(in_loop) = blocks.last().and_then(|block| self.ends(block, at + 3)) {
                        labels.push((at, in_loop));
                    }
                    at += 2;
                } else if word == b";" && self.begins_block(at) {
                    edits.push((self.range(at, at), b" "[..].into()));
                } else if word == b"..."
                    && let Some(BlockKind::Function { uses_dots, .. }) = innermost_function(&mut blocks)
                {
                    *uses_dots = true;
                }
                at += 1;
                continue;
            }
            match word {
                b"function" => {
                    let (variable, body) = self.parameters(at);
                    if self.word(body) == b";" {
                        edits.push((self.range(body, body), b" "[..].into()));
                    }
                    blocks.push(open(BlockKind::Function { variable, uses_arg: false, uses_dots: false }));
                    at = body;
                    continue;
                }
                b"if" => blocks.push(open(BlockKind::Other)),
                b"for" | b"while" => blocks.push(open(BlockKind::Loop { has_body: false })),
                b"repeat" => blocks.push(open(BlockKind::Repeat)),
                b"do" => match blocks.last_mut() {
                    Some(OpenBlock { kind: BlockKind::Loop { has_body: has_body @ false }, .. }) => *has_body = true,
                    _ => blocks.push(open(BlockKind::Other)),
                },
                b"end" | b"until" => {
                    let Some(closed) = blocks.pop() else { return Vec::new() };
                    if matches!(closed.kind, BlockKind::Repeat) != (word == b"until") {
                        return Vec::new();
                    }
                    if let BlockKind::Function { variable: Some(body), uses_arg: true, uses_dots: false } = closed.kind
                    {
                        edits.push((body..body, b" local arg={n=select('#',...),...}"[..].into()));
                    }
                }
                b"arg" => {
                    let variable =
                        |block: &&mut OpenBlock| matches!(block.kind, BlockKind::Function { variable: Some(_), .. });
                    if let Some(BlockKind::Function { uses_arg, .. }) =
                        blocks.iter_mut().rev().find(variable).map(|block| &mut block.kind)
                    {
                        *uses_arg = true;
                    }
                }
                b"goto" if self.is_goto(at) => {
                    if let Some(in_loop) = innermost_loop(&blocks) {
                        jumps.push(Jump { at, in_loop });
                    }
                    at += 1;
                }
                _ => {}
            }
            at += 1;
        }
        if !blocks.is_empty() {
            return Vec::new();
        }
        for Jump { at, in_loop } in jumps {
            let target = |(label, of): &(usize, usize)| *of == in_loop && self.word(label + 1) == self.word(at + 1);
            if labels.iter().any(target) {
                edits.push((self.range(at, at + 1), b"do continue end"[..].into()));
            }
        }
        edits.extend(labels.iter().map(|(label, _)| (self.range(*label, label + 2), b""[..].into())));
        edits
    }

    /// Calls of `bit`, as expressions of `bit32`, which Luau compiles to instructions: results are signed, and shifts are
    /// by 0 to 31. An operation takes either sign, so the result of one that is its argument needs none.
    fn bit_operations(&self) -> Vec<SourceEdit<'static>> {
        let is_own = |at: usize| self.word(at) == b"bit" && self.is_name(at) && !self.is_field(at);
        let is_known = |at: usize| {
            let declares = self.before(at, 1) == b"local" && self.word(at + 1) == b"=";
            let is_source =
                self.before(at, 1) == b"=" && self.before(at, 2) == b"bit" && self.before(at, 3) == b"local";
            match self.word(at + 1) {
                b"." => self.word(at + 3) != b"=",
                _ if declares => {
                    let from = self.word(at + 2);
                    let names_bit = |at: usize| self.word(at).ends_with(b"bit\"");
                    from == b"bit" || (from == b"require" && (names_bit(at + 3) || names_bit(at + 4)))
                }
                _ => is_source,
            }
        };
        let mut edits = Vec::new();
        if !(0..self.tokens.len()).filter(|at| is_own(*at)).all(is_known) {
            return edits;
        }
        // The places at which arguments of operations begin and end.
        let mut bounds = BTreeSet::new();
        for at in (0..self.tokens.len()).filter(|at| is_own(*at)) {
            let name = self.word(at + 2);
            let shifts = matches!(name, b"lshift" | b"rshift" | b"arshift");
            let is_operation = shifts || matches!(name, b"band" | b"bor" | b"bxor" | b"bnot");
            if !is_operation || self.word(at + 1) != b"." || self.word(at + 3) != b"(" || !self.begins_operand(at) {
                continue;
            }
            let Some((commas, close)) = self.arguments(at + 3) else { continue };
            let is_fit = match name {
                b"bnot" => commas.is_empty(),
                _ if shifts => commas.len() == 1,
                _ => !commas.is_empty(),
            };
            if !is_fit {
                continue;
            }
            let is_argument = bounds.contains(&(at - 1)) && bounds.contains(&(close + 1));
            let (before, after): (&[u8], &[u8]) =
                if is_argument { (b"", b")") } else { (b"((", b")+0x80000000)%0x100000000-0x80000000)") };
            edits.push((self.range(at, at + 3), [before, b"bit32.", name, b"("].concat().into()));
            let is_in_range =
                |count: &[u8]| std::str::from_utf8(count).is_ok_and(|n| n.parse().is_ok_and(|n: u8| n < 32));
            let mut end = after.to_vec();
            if shifts && !(commas[0] + 2 == close && is_in_range(self.word(commas[0] + 1))) {
                edits.push((self.range(commas[0], commas[0]), b",bit32.band("[..].into()));
                end.splice(..0, *b",31)");
            }
            edits.push((self.range(close, close), end.into()));
            bounds.extend(commas.into_iter().chain([at + 3, close]));
        }
        edits
    }

    /// Whether an expression, and no statement, begins at a token.
    fn begins_operand(&self, at: usize) -> bool {
        let before = self.before(at, 1);
        matches!(before, b"return" | b"and" | b"or" | b"not" | b"if" | b"elseif" | b"while" | b"until" | b"in")
            || (matches!(
                before.last(),
                Some(b'=' | b'<' | b'>' | b'(' | b',' | b'{' | b'[' | b'+' | b'-' | b'*' | b'/' | b'%' | b'^')
            ) || before == b"..")
    }

    /// The commas between the arguments of a call, and its closing parenthesis; `None` if they contain a function.
    fn arguments(&self, open: usize) -> Option<(Vec<usize>, usize)> {
        let (mut depth, mut commas) = (0usize, Vec::new());
        for at in open..self.tokens.len() {
            match self.word(at) {
                b"(" | b"[" | b"{" => depth += 1,
                b")" | b"]" | b"}" => {
                    depth -= 1;
                    if depth == 0 {
                        return Some((commas, at));
                    }
                }
                b"," if depth == 1 => commas.push(at),
                b"function" => return None,
                _ => {}
            }
        }
        None
    }

    /// In Lua 5.1, `\\u` stands for `u`; in Luau it begins the number of a character.
    fn plain_escapes(&self) -> Vec<SourceEdit<'static>> {
        let mut edits = Vec::new();
        let quoted = |token: &&Token| {
            token.kind == TokenKind::Literal && matches!(token.text(self.source).first(), Some(b'"' | b'\''))
        };
        for token in self.tokens.iter().filter(quoted) {
            let (start, text) = (token.range().start, token.text(self.source));
            let mut at = 0;
            while at + 1 < text.len() {
                if text[at] != b'\\' {
                    at += 1;
                    continue;
                }
                if text[at + 1] == b'u' && text.get(at + 2) != Some(&b'{') {
                    edits.push((start + at..start + at + 1, b""[..].into()));
                }
                at += 2;
            }
        }
        edits
    }

    /// Whether there is no statement before the token. Luau has no empty statements.
    fn begins_block(&self, at: usize) -> bool {
        at == 0 || matches!(self.before(at, 1), b";" | b"do" | b"then" | b"else" | b"repeat")
    }

    fn range(&self, first: usize, last: usize) -> Range<usize> {
        self.tokens[first].range().start..self.tokens[last].range().end
    }

    /// The loop that ends at a token, if this block is one. Other labels and semicolons may be in between.
    fn ends(&self, block: &OpenBlock, mut at: usize) -> Option<usize> {
        loop {
            match self.word(at) {
                b";" => at += 1,
                b"::" if self.is_label(at) => at += 3,
                b"end" => return matches!(block.kind, BlockKind::Loop { .. }).then_some(block.id),
                b"until" => return matches!(block.kind, BlockKind::Repeat).then_some(block.id),
                _ => return None,
            }
        }
    }

    /// The function at a token: where its body begins if it has variable arguments and none that is called `arg`, and
    /// the first token of its body.
    fn parameters(&self, at: usize) -> (Option<usize>, usize) {
        let Some(open) = (at..self.tokens.len()).find(|at| self.word(*at) == b"(") else { return (None, at + 1) };
        let Some(close) = (open..self.tokens.len()).find(|at| self.word(*at) == b")") else { return (None, at + 1) };
        let parameters = || (open..close).map(|at| self.word(at));
        let variable = parameters().any(|word| word == b"...") && !parameters().any(|word| word == b"arg");
        // With a type after it, the parameter list is Luau already.
        let is_plain = self.word(close + 1) != b":";
        ((variable && is_plain).then(|| self.tokens[close].range().end), close + 1)
    }

    /// The libraries that get members in the text, and the functions that it sets in `_G`.
    fn changed(&self) -> BTreeSet<Vec<u8>> {
        let is_changed = |at: &usize| {
            let in_globals = self.before(*at, 1) == b"." && self.before(*at, 2) == b"_G";
            let is_library = LIBRARIES.contains(&self.word(*at)) && !self.is_field(*at);
            (in_globals && self.word(at + 1) == b"=") || (is_library && self.gets_member(*at))
        };
        (0..self.tokens.len()).filter(is_changed).map(|at| self.word(at).to_owned()).collect()
    }

    /// The compiler reads a global again each time if the text assigns to it, even where that never runs. Stands before
    /// the first token, where there is code anyway.
    fn reading_globals(&self, changed: &BTreeSet<Vec<u8>>) -> SourceEdit<'static> {
        let at = self.tokens.first().map_or(self.source.len(), |first| first.range().start);
        let names: Vec<&[u8]> = self.globals(changed).into_iter().collect();
        let mut text = match &names[..] {
            [] => Vec::new(),
            names => [b"if false then ", &*names.join(&b","[..]), b"=nil end "].concat(),
        };
        // In Luau, a length that is no number is an error.
        if memchr::memmem::find(self.source, b"__len").is_some() && !self.tokens.is_empty() {
            text.extend_from_slice(b"local setmetatable=debug.setmetatable ");
        }
        (at..at, text.into())
    }

    /// The names that may be globals with other values later.
    fn globals(&self, changed: &BTreeSet<Vec<u8>>) -> BTreeSet<&'a [u8]> {
        let is_lasting = |word: &[u8]| LIBRARIES.contains(&word) || FUNCTIONS.binary_search(&word).is_ok();
        let is_global = |at: &usize| {
            let word = self.word(*at);
            self.is_name(*at)
                && !matches!(self.before(*at, 1), b"." | b":")
                && KEYWORDS.binary_search(&word).is_err()
                && (!is_lasting(word) || changed.contains(word))
        };
        (0..self.tokens.len()).filter(is_global).map(|at| self.word(at)).collect()
    }

    /// Whether the library at a token gets a member there.
    fn gets_member(&self, at: usize) -> bool {
        match self.word(at + 1) {
            b"." | b":" if self.before(at, 1) == b"function" => true,
            b"." => self.word(at + 3) == b"=",
            b"[" => {
                let close = (at + 2..self.tokens.len()).find(|at| self.word(*at) == b"]");
                close.is_some_and(|close| self.word(close + 1) == b"=")
            }
            _ => self.before(at, 1) == b"(" && self.before(at, 2) == b"rawset",
        }
    }
}

fn innermost_function(blocks: &mut [OpenBlock]) -> Option<&mut BlockKind> {
    let mut kinds = blocks.iter_mut().rev().map(|block| &mut block.kind);
    kinds.find(|kind| matches!(kind, BlockKind::Function { .. }))
}

fn innermost_loop(blocks: &[OpenBlock]) -> Option<usize> {
    let around = |block: &&OpenBlock| !matches!(block.kind, BlockKind::Other);
    let block = blocks.iter().rev().find(around)?;
    matches!(block.kind, BlockKind::Loop { .. } | BlockKind::Repeat).then_some(block.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The adapted text without the globals.
    fn adapted(source: &str) -> String {
        let text = String::from_utf8(adapt(source.as_bytes(), BTreeSet::new()).text).unwrap();
        text.split_once("=nil end ").map_or(text.clone(), |(_, text)| text.to_owned())
    }

    #[track_caller]
    fn check(source: &str, expected: &str) {
        assert_eq!(adapted(source), expected);
    }

    #[test]
    fn a_jump_to_the_end_of_its_loop_continues_it() {
        check(
            "for i = 1, 3 do if i == 2 then goto next end f(i) ::next:: end",
            "for i = 1, 3 do if i == 2 then do continue end end f(i)  end",
        );
        check("repeat goto c ::c:: until true", "repeat do continue end  until true");
    }

    #[test]
    fn operations_on_bits_are_instructions() {
        check("x = bit.bxor(a, b)", "x = ((bit32.bxor(a, b)+0x80000000)%0x100000000-0x80000000)");
        check(
            "return bit.rshift(bit.band(a, 1), n)",
            "return ((bit32.rshift(bit32.band(a, 1),bit32.band( n,31))+0x80000000)%0x100000000-0x80000000)",
        );
        check(
            "x = bit.bxor(bit.rshift(h, 1), bit.bnot(a) + 1)",
            "x = ((bit32.bxor(bit32.rshift(h, 1), ((bit32.bnot(a)+0x80000000)%0x100000000-0x80000000) + 1)+0x80000000)%0x100000000-0x80000000)",
        );
        check("bit.bxor(a, b)", "bit.bxor(a, b)");
        check("local bit = mine x = bit.bxor(a, b)", "local bit = mine x = bit.bxor(a, b)");
        check("function f(bit) return bit.bxor(a, b) end", "function f(bit) return bit.bxor(a, b) end");
        check("x = bit.bxor(a, function() end)", "x = bit.bxor(a, function() end)");
    }

    #[test]
    fn empty_statements_are_removed() {
        check("do; f();; end if a then; end function g(); end", "do  f();  end if a then  end function g()  end");
        check("local t = {1; 2} f(); g()", "local t = {1; 2} f(); g()");
    }

    #[test]
    fn other_jumps_stay() {
        for source in [
            "while a do for i = 1, 2 do goto out end end ::out:: f()",
            "while a do goto out f() ::out:: g() end",
            "goto out ::out::",
        ] {
            check(source, source);
        }
        let outer = "for i = 1, 2 do for j = 1, 2 do goto outer end ::outer:: end";
        assert!(adapted(outer).contains("goto outer"));
    }

    #[test]
    fn functions_with_variable_arguments_have_arg() {
        check(
            "function f(a, ...) return arg.n end",
            "function f(a, ...) local arg={n=select('#',...),...} return arg.n end",
        );
        for source in [
            "function f(...) local arg = {...} return arg end",
            "function f(arg, ...) return arg end",
            "function f(a) return arg end",
            "function f(...) return a.arg end",
            "return arg",
        ] {
            check(source, source);
        }
    }

    #[test]
    fn changed_libraries_are_found() {
        #[track_caller]
        fn check(source: &str, expected: &[&str]) {
            let changed = adapt(source.as_bytes(), BTreeSet::new()).changed;
            assert_eq!(changed.iter().map(|name| String::from_utf8_lossy(name)).collect::<Vec<_>>(), expected);
        }
        check("function string.split(a) end", &["string"]);
        check("function string:split(a) end table.find = f math['x'] = 1", &["math", "string", "table"]);
        check("_G.print = f rawset(os, 'x', 1)", &["os", "print"]);
        check("if string.x == nil then a.string.x = 1 end -- table.x = 1", &[]);
    }

    #[test]
    fn globals_are_read_again() {
        let text = |source: &str| String::from_utf8(adapt(source.as_bytes(), BTreeSet::new()).text).unwrap();
        assert_eq!(text("return a.b + c(string.len(d))"), "if false then a,c,d=nil end return a.b + c(string.len(d))");
        assert_eq!(text("return type(1)"), "return type(1)");
        assert_eq!(text("--!strict\n\n return a"), "--!strict\n\n if false then a=nil end return a");
        assert!(text("string.len = f").starts_with("if false then f,string=nil end "));
    }

    #[test]
    fn the_lists_are_sorted() {
        assert!(FUNCTIONS.is_sorted() && KEYWORDS.is_sorted());
    }

    #[test]
    fn each_unsupported_construct_is_named() {
        let found = unsupported_syntax(b"goto a\nlocal x <const> = 1\n\nx = 1 << 2 >> 3\n::a:: f()");
        assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), [1, 2, 4, 5]);
        assert_eq!(unsupported_syntax(b"local goto_x = t.goto -- goto x\nlocal s = 'goto x'"), []);
    }

    #[test]
    fn missing_functions_are_named() {
        let found = missing_functions(b"x = string.dump(f)\nif debug.sethook then end\ndebug.getlocal(1, 1)");
        assert_eq!(found.iter().map(|found| found.line).collect::<Vec<_>>(), [1, 3]);
        assert!(found[1].message.contains("no debug.getlocal: variables of other functions"));
    }
}
