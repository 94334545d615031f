//! Cases where the grammar is laxer than the shell: each function here covers one way in which a command could hide
//! from the grammar, or look like another one.

use std::collections::HashSet;

use toold_engine::need::Word;
use toold_proto::cut;
use tree_sitter::Node;

use super::{Unreadable, Walked, all, named};

/// Texts in which every character stands for itself, for the shell and for the grammar.
const TEXTS: &[&str] = &["raw_string", "string_content", "heredoc_content", "heredoc_body", "comment"];

/// Whether characters that belong to words for the shell, and are blanks for the grammar, or the reverse, stand in quoted
/// texts alone. Up to the first of them, both read the same, so that they agree on where that text begins.
pub(super) fn odd_characters_are_quoted(root: Node, source: &str) -> bool {
    let odd = |c: char| (c.is_control() && c != '\n' && c != '\t') || (c.is_whitespace() && !" \n\t".contains(c));
    source.char_indices().filter(|(_, c)| odd(*c)).all(|(at, c)| {
        // The shell leaves out a NUL, and everything else reads it.
        let node = root.descendant_for_byte_range(at, at + c.len_utf8()).filter(|_| c != '\0');
        node.is_some_and(|node| TEXTS.contains(&node.kind()))
    })
}

/// Whether everything between the leaves of the tree is blank for the shell, too. The grammar skips escaped blanks,
/// which are words for the shell.
pub(super) fn gaps_are_blank(root: Node, source: &str) -> bool {
    is_blank(cut::before(source, root.start_byte()))
        && is_blank(cut::from(source, root.end_byte()))
        && gaps_inside(root, source)
}

/// Whether the grammar has found a place for each word. Behind assignments and redirects alone it wants a name, which the
/// shell does not: `x=1 > file`.
pub(super) fn is_whole(root: Node) -> bool {
    let is_name = |node: &Node| {
        let command = node.parent().filter(|name| name.kind() == "command_name").and_then(|name| name.parent());
        let is_beside = |child: &Node| child.kind() == "variable_assignment" || child.kind().ends_with("_redirect");
        node.is_missing()
            && node.kind() == "word"
            && command.is_some_and(|command| {
                let written: Vec<Node> =
                    all(command).into_iter().filter(|child| !child.byte_range().is_empty()).collect();
                !written.is_empty() && written.iter().all(is_beside)
            })
    };
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        if node.is_error() || node.is_missing() && !is_name(&node) {
            return false;
        }
        waiting.extend(all(node).into_iter().filter(Node::has_error));
    }
    true
}

/// What runs or opens something, wherever it stands.
const ACTIONS: &[&str] = &[
    "command",
    "declaration_command",
    "unset_command",
    "test_command",
    "function_definition",
    "command_substitution",
    "process_substitution",
    "file_redirect",
    "herestring_redirect",
    "heredoc_redirect",
];

/// The analysis goes to the parts of a statement that it knows. What stands at another place is not judged, and then the
/// line is not.
pub(super) fn all_is_judged(root: Node, source: &str, judged: &HashSet<usize>) -> Walked {
    let mut waiting = vec![root];
    while let Some(node) = waiting.pop() {
        if ACTIONS.contains(&node.kind()) && !judged.contains(&node.id()) {
            return Err(Unreadable);
        }
        if !is_escaped_substitution(node, source) {
            waiting.extend(named(node));
        }
    }
    Ok(())
}

/// Whether the content of a substitution is unescaped once before it is parsed: the grammar has not seen that.
pub(super) fn is_escaped_substitution(node: Node, source: &str) -> bool {
    let raw = cut::between(source, node.byte_range()).trim_start();
    node.kind() == "command_substitution" && raw.starts_with('`') && raw.contains('\\')
}

/// Inside these, a newline would end a command.
const LINES: &[&str] = &[
    "command",
    "command_name",
    "declaration_command",
    "unset_command",
    "test_command",
    "variable_assignment",
    "variable_assignments",
    "redirected_statement",
    "file_redirect",
    "herestring_redirect",
    "negated_command",
    "unary_expression",
    "binary_expression",
    "ternary_expression",
    "postfix_expression",
    "parenthesized_expression",
];

fn gaps_inside(node: Node, source: &str) -> bool {
    let is_string = |node: Node| node.kind() == "string";
    // Each with whether it stands in a string. A node finds its parent in a time that grows with its depth.
    let mut waiting = vec![(node, false)];
    while let Some((node, is_in_string)) = waiting.pop() {
        // Inside these, the grammar drops text; their analysis reads the source instead.
        let opaque = is_string(node);
        let children = all(node);
        let mut at = node.start_byte();
        for child in &children {
            let gap = source.get(at..child.start_byte()).unwrap_or("?");
            let ends_command = LINES.contains(&node.kind()) && gap.replace("\\\n", "").contains('\n');
            if ends_command || !(opaque || is_blank(gap)) {
                return false;
            }
            // A token with other text than its own has swallowed part of a word. After another expansion in a string,
            // the token of an expansion includes the blanks before it; the analysis of the string restores them.
            let text = cut::between(source, child.byte_range());
            let begins = matches!(child.kind(), "$(" | "$((" | "$[" | "$" | "${");
            let own = if begins && is_in_string { text.trim_start_matches([' ', '\t', '\n']) } else { text };
            if !child.is_named() && child.kind() != own {
                return false;
            }
            at = child.end_byte();
            waiting.push((*child, opaque));
        }
        if !opaque && !children.is_empty() && !is_blank(cut::between(source, at..node.end_byte())) {
            return false;
        }
    }
    true
}

/// Blanks. A line continuation counts only beside another blank: alone it joins two words.
fn is_blank(gap: &str) -> bool {
    let blanks = gap.replace("\\\n", "");
    blanks.chars().all(|c| " \t\n".contains(c)) && (blanks.len() == gap.len() || !blanks.is_empty())
}

/// Adjacent words are one word to the shell.
pub(super) fn words_stand_apart(children: &[Node], source: &str) -> Walked {
    let is_redirect = |node: &Node| node.kind().ends_with("_redirect");
    for pair in children.windows(2) {
        if let [left, right] = pair
            && left.end_byte() == right.start_byte()
            && (!is_redirect(right) || is_redirect(left))
        {
            return Err(Unreadable);
        }
        if is_redirect(&pair[1])
            && is_number(cut::between(source, pair[0].byte_range()))
            && pair[0].end_byte() == pair[1].start_byte()
        {
            return Err(Unreadable);
        }
    }
    Ok(())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// In `cat 0<in` the number is a descriptor, not a word.
///
/// `last` is the word before the redirect, as it was written: with a quoted digit it is one.
pub(super) fn number_is_no_descriptor(before: &str, last: Option<&str>) -> Walked {
    if last.is_some_and(is_number) && before.ends_with(|c: char| c.is_ascii_digit()) {
        return Err(Unreadable);
    }
    Ok(())
}

pub(super) fn blank_follows(source: &str, at: usize) -> bool {
    cut::from(source, at).starts_with([' ', '\t', '\n']) || cut::before(source, at).ends_with('(')
}

pub(super) fn word_ends(source: &str, at: usize) -> bool {
    cut::from(source, at).chars().next().is_none_or(|next| " \t\n;&|()<>".contains(next))
}

/// `"x"#y` is a word, not a comment.
pub(super) fn comment_is_one(node: Node, source: &str) -> bool {
    let before = cut::before(source, node.start_byte());
    before.is_empty() || before.ends_with([' ', '\t', '\n', ';'])
}

/// Words that are keywords at the start of a command.
pub(super) fn is_reserved(name: &str) -> bool {
    let reserved = [
        "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "select",
        "function", "{", "}", "in", "coproc", "[[", "]]", "!",
    ];
    reserved.contains(&name)
}

/// `{name}>file` allocates a descriptor, and `a"b"2>file` writes the word `ab2`.
///
/// `is_word`: the grammar's descriptor is a word.
pub(super) fn descriptor_stands_alone(redirect: Node, source: &str, is_word: bool) -> Walked {
    let before = cut::before(source, redirect.start_byte());
    let descriptor = redirect.child(0).filter(|child| child.kind() == "file_descriptor");
    let is_odd =
        descriptor.is_some_and(|descriptor| !is_word && !is_number(cut::between(source, descriptor.byte_range())));
    let alone = before.is_empty() || before.ends_with([' ', '\t', '\n', ';', '|', '&', '(', ')']);
    if before.ends_with('}') || is_odd || (descriptor.is_some() && !alone) { Err(Unreadable) } else { Ok(()) }
}

/// Whether `$` and this character begin an expansion inside double quotes.
pub(super) fn begins_expansion(next: char) -> bool {
    next.is_ascii_alphanumeric() || "_{([*@#?$!-`".contains(next)
}

/// For text in which the grammar found no expansion.
pub(super) fn holds_no_substitution(text: &str) -> Walked {
    if text.contains('`') || ["$(", "${", "$[", "<(", ">("].iter().any(|start| text.contains(start)) {
        return Err(Unreadable);
    }
    Ok(())
}

/// `$name`, or `$` and one of the shell's own.
pub(super) fn is_variable(raw: &str) -> bool {
    let name = raw.strip_prefix('$').unwrap_or_default();
    let special = name.len() == 1 && "*@?!#-$_".contains(name);
    special || (!name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
}

/// `:3`, `:0:3`, `: -1`: a part of the value, by numbers.
fn is_part(rest: &str) -> bool {
    let is_number = |text: &str| {
        let digits = text.trim_start_matches(' ');
        let digits = digits.strip_prefix('-').filter(|_| digits != text).unwrap_or(digits);
        !digits.is_empty() && digits.len() < 10 && digits.bytes().all(|b| b.is_ascii_digit())
    };
    let Some(parts) = rest.strip_prefix(':') else { return false };
    parts.split(':').count() <= 2 && parts.split(':').all(is_number)
}

/// `${!name[@]}`: the indices of an array, which evaluates nothing.
fn is_keys(body: &str) -> bool {
    let name = body.strip_prefix('!').and_then(|rest| rest.strip_suffix("[@]").or_else(|| rest.strip_suffix("[*]")));
    name.is_some_and(is_name)
}

/// `${name}`, possibly with an operator that evaluates nothing and with plain text after it.
pub(super) fn expands_simply(raw: &str) -> bool {
    let Some(body) = raw.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) else { return false };
    if is_keys(body) {
        return true;
    }
    let body = body.strip_prefix('#').filter(|rest| !rest.is_empty()).unwrap_or(body);
    let name = body.len() - body.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_').len();
    let rest = match name {
        0 if body.starts_with(['@', '*', '?', '$', '-', '#']) => cut::after_first(body),
        0 => return false,
        _ => cut::from(body, name),
    };
    // A subscript of digits, or of all elements, evaluates nothing.
    let index = rest.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let rest = match index {
        Some((index, rest))
            if matches!(index, "@" | "*") || index.bytes().all(|b| b.is_ascii_digit()) && !index.is_empty() =>
        {
            rest
        }
        Some(_) => return false,
        None => rest,
    };
    let operators = [":-", "-", ":+", "+", ":?", "?", "##", "#", "%%", "%", "//", "/", "^^", "^", ",,", ","];
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./:@%+,#*?-= ".contains(c);
    rest.is_empty()
        || is_part(rest)
        || (operators.iter().any(|operator| rest.starts_with(operator)) && rest.chars().all(plain))
}

/// `2x=3` is a command, not an assignment.
pub(super) fn is_name(text: &str) -> bool {
    let letters = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    letters && text.starts_with(|c: char| !c.is_ascii_digit())
}

/// As `is_harmless_name`, for a word that must be a name.
pub(super) fn is_harmless_name_of_variable(name: &str) -> bool {
    is_name(name)
        && (is_harmless_name(name)
            || name == "REPLY"
            || name.chars().all(|c| c.is_ascii_uppercase() || c == '_') && name.len() < 3)
}

/// A variable that no program reads: changing it affects only this line.
pub(super) fn is_harmless_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.ends_with("_proxy")
}

/// `[[ a -eq b ]]` evaluates its operands, `-v` its operand's subscript. In `[ $x ]`, unlike `[[ $x ]]`, an expansion
/// may become a `-v`.
pub(super) fn test_evaluates(words: &[Word], double: bool) -> bool {
    let arithmetic = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge"];
    let before = |at: usize| at.checked_sub(1).and_then(|before| words.get(before));
    let number = |word: Option<&Word>| {
        word.is_some_and(|word| word.literal && word.text.chars().all(|c| c.is_ascii_digit() || c == '-'))
    };
    let compares = |word: Option<&Word>| {
        let operators = ["=", "==", "!=", "-ef", "-nt", "-ot"];
        word.is_some_and(|word| {
            word.literal && (operators.contains(&word.text.as_str()) || arithmetic.contains(&word.text.as_str()))
        })
    };
    let is_operand = |at: usize| {
        let unary = before(at).is_some_and(|word| word.literal && word.text.len() == 2 && word.text.starts_with('-'));
        unary || compares(before(at)) || compares(words.get(at + 1))
    };
    words.iter().enumerate().any(|(at, word)| match word.text.as_str() {
        "-v" | "-R" => words.get(at + 1).is_none_or(|name| !name.literal || name.text.contains('[')),
        text if double && arithmetic.contains(&text) => !number(before(at)) || !number(words.get(at + 1)),
        text => {
            let is_one_word = text.starts_with('"') && !text.contains('@');
            !double && !word.literal && (!is_one_word || !is_operand(at))
        }
    })
}

/// Builtins that evaluate their words.
pub(super) fn evaluates_its_words(words: &[Word]) -> bool {
    let Some((name, rest)) = words.split_first() else { return false };
    let option_with = |letters: &str| {
        rest.iter().any(|word| word.text.starts_with(['-', '+']) && word.text.contains(|c| letters.contains(c)))
    };
    match name.text.as_str() {
        "shopt" => {
            let is_known =
                |word: &Word| ["-s", "-u", "nullglob", "failglob", "inherit_errexit"].contains(&word.text.as_str());
            !rest.iter().all(|word| word.literal && is_known(word))
        }
        "let" | "alias" | "coproc" | "bind" | "complete" | "compgen" | "enable" | "hash" | "fc" => true,
        "set" => {
            let options = rest.iter().take_while(|word| word.text != "--");
            options.into_iter().any(|word| !word.literal || word.text.contains('k'))
        }
        "declare" | "typeset" | "local" | "export" | "readonly" => {
            // A name that is not plain text may have a subscript, which is evaluated.
            let is_plain = |word: &Word| {
                word.literal && !word.text.split('=').next().unwrap_or_default().contains('[')
                    || word.text.split_once('=').is_some_and(|(name, _)| is_name(name.trim_end_matches('+')))
            };
            // `declare -A names` makes an array; in values of one, subscripts are evaluated.
            let values = || rest.iter().filter_map(|word| word.text.split_once('=')).map(|(_, value)| value);
            let evaluated: &[char] = if option_with("a") { &['$', '`', '['] } else { &['$', '`'] };
            let has_values = || values().any(|value| value.contains(evaluated));
            option_with("in") || option_with("aA") && has_values() || !rest.iter().all(is_plain)
        }
        "printf" => {
            let at = rest.iter().position(|word| word.text.starts_with("-v"));
            rest.first().is_some_and(|first| !first.literal)
                || at.is_some_and(|at| rest[at..].iter().take(2).any(|word| !word.literal || word.text.contains('[')))
        }
        "read" | "unset" | "mapfile" | "readarray" | "getopts" => {
            option_with("C") || rest.iter().any(|word| !word.literal || word.text.contains('['))
        }
        "wait" => option_with("p") || rest.iter().any(|word| !word.literal && word.text != "$!"),
        _ => false,
    }
}
