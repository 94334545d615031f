//! `awk`: its program can run commands and write files (POSIX, awk; gawk manual, sections 5 and 9).

use super::Reading;
use super::known::find;
use super::options::parse;
use crate::shell_grammar::arg::Arg;
use crate::shell_grammar::check;

pub(super) fn read(name: &str, words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find(name)?, words);
    let program = parsed.operands.first().cloned();
    let why = match program.as_ref().map(|program| (program, program.literal())) {
        None => None,
        Some((program, None)) => {
            Some(format!("the shell expands the program {}, and the result is unknown", program.raw))
        }
        Some((_, Some(text))) => check_program(text).err(),
    };
    // `NAME=value` among the operands sets a variable.
    let mut parsed = parsed;
    parsed.operands.retain(|operand| {
        let name = operand.start().split_once('=').map_or("", |(name, _)| name);
        !check::is_name(name)
    });
    if program.as_ref() != parsed.operands.first() {
        parsed.operands.splice(0..0, program.clone());
    }
    let mut reading = parsed.into_reading();
    if let Some(why) = why {
        reading.may_run_any = true;
        // Only these access files of other names than its operands.
        let text = program.as_ref().and_then(Arg::literal).unwrap_or_default();
        reading.hides_file = text.contains('>') || text.contains("getline");
        reading.doubt(why);
    }
    Some(reading)
}

/// Keywords and functions of some versions of awk, and names of variables in others.
const ODD_WORDS: &[&str] = &[
    "length",
    "case",
    "switch",
    "default",
    "func",
    "function",
    "nextfile",
    "next",
    "getline",
    "fflush",
    "BEGINFILE",
    "ENDFILE",
    "BEGIN",
    "END",
    "break",
    "continue",
];

/// # Errors
/// It runs a command, accesses a file, or is not understood; the message says which.
fn check_program(program: &str) -> Result<(), String> {
    let mut chars = program.chars().peekable();
    // Whether a `/` here divides, because it follows a value.
    let mut behind_value = false;
    // Set between `print` and the end of its statement: how many parentheses were open at `print`.
    let mut printing: Option<i32> = None;
    let mut depth = 0;
    // For each open parenthesis, whether it contains a condition, after which no value follows.
    let mut conditions: Vec<bool> = Vec::new();
    let mut begins_condition = false;
    // Behind a word that is a keyword, or a function without parentheses, in some versions of awk only.
    let mut is_behind_odd_word = false;
    while let Some(c) = chars.next() {
        let was_behind_odd_word = std::mem::take(&mut is_behind_odd_word);
        match c {
            '"' => {
                skip_to('"', &mut chars)?;
                behind_value = true;
            }
            // Versions of awk differ in what a slash is there.
            '/' if was_behind_odd_word => return Err("toold cannot parse its program".to_owned()),
            '/' if !behind_value => {
                skip_expression(&mut chars)?;
                behind_value = true;
            }
            '#' => while chars.next_if(|c| *c != '\n').is_some() {},
            '@' => return Err("its program loads code, or calls by a name (@)".to_owned()),
            '|' if chars.next_if_eq(&'|').is_some() => behind_value = false,
            '|' => return Err("its program runs a command (|)".to_owned()),
            '>' if is_stream(chars.clone()) => {}
            '>' => {
                if printing.is_some_and(|at| depth <= at) {
                    return Err("its program writes a file (>)".to_owned());
                }
                behind_value = false;
            }
            '(' | '[' => {
                depth += 1;
                conditions.push(std::mem::take(&mut begins_condition));
                behind_value = false;
            }
            ')' | ']' => {
                depth -= 1;
                behind_value = !conditions.pop().unwrap_or_default();
            }
            ';' | '{' | '}' => {
                printing = None;
                behind_value = false;
            }
            // After a comma the statement continues.
            '\n' => behind_value = false,
            '\\' => {
                if chars.next() != Some('\n') {
                    return Err("toold cannot parse its program".to_owned());
                }
            }
            c if c.is_ascii_alphabetic() || c == '_' => {
                let mut word = String::from(c);
                while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
                    word.push(c);
                }
                match word.as_str() {
                    "system" => return Err("its program runs a command (system)".to_owned()),
                    "getline" => return Err("its program reads a file or a command (getline)".to_owned()),
                    "ARGV" | "ARGC" | "PROCINFO" | "SYMTAB" | "FUNCTAB" => {
                        return Err(format!("its program changes what is read ({word})"));
                    }
                    "print" | "printf" => printing = Some(depth),
                    _ => {}
                }
                is_behind_odd_word = ODD_WORDS.contains(&word.as_str());
                begins_condition = matches!(word.as_str(), "if" | "while" | "for");
                behind_value = !matches!(
                    word.as_str(),
                    "print" | "printf" | "return" | "in" | "if" | "while" | "for" | "do" | "else" | "exit" | "delete"
                );
            }
            c if c.is_ascii_digit() || c == '.' => behind_value = true,
            c if c.is_whitespace() => is_behind_odd_word = was_behind_odd_word,
            '+' | '-' if chars.peek() == Some(&c) => {
                // `++` and `--` come after a value or before one.
                chars.next();
            }
            '$' | '+' | '-' | '*' | '%' | '^' | '!' | '<' | '=' | '&' | '?' | ':' | ',' | '~' | '/' => {
                behind_value = false;
            }
            _ => return Err("toold cannot parse its program".to_owned()),
        }
    }
    Ok(())
}

/// Whether the next word names a stream that is open anyway.
fn is_stream(rest: impl Iterator<Item = char>) -> bool {
    let rest: String = rest.skip_while(|c| *c == ' ').take(14).collect();
    let named = ["\"/dev/stderr\"", "\"/dev/stdout\""];
    named
        .iter()
        .any(|name| rest.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with([';', '}', '\n'])))
}

fn skip_to(end: char, chars: &mut impl Iterator<Item = char>) -> Result<(), String> {
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' => break,
            c if c == end => return Ok(()),
            _ => {}
        }
    }
    Err("toold cannot parse its program".to_owned())
}

/// A regular expression. Whether a slash within brackets ends it depends on the version.
fn skip_expression(chars: &mut std::iter::Peekable<std::str::Chars>) -> Result<(), String> {
    let mut in_brackets = false;
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '\n' => break,
            // Directly after the opening bracket, `]` is a character.
            '[' if !in_brackets => {
                in_brackets = true;
                chars.next_if_eq(&'^');
                chars.next_if_eq(&']');
            }
            '[' if chars.next_if_eq(&':').is_some() => {
                while chars.next().ok_or("toold cannot parse its program")? != ']' {}
            }
            ']' => in_brackets = false,
            '/' if in_brackets => break,
            '/' => return Ok(()),
            _ => {}
        }
    }
    Err("toold cannot parse its program".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_only_print_are_known() {
        for program in [
            "{print $1}",
            "$3 > 5",
            "/a|b/ {print}",
            "NR==1",
            "{s+=$1} END {print s/NR}",
            "BEGIN{FS=\":\"} {printf \"%s\\n\", $2}",
            "{if ($1 > 2) print $0}",
            "!seen[$0]++",
            "NR>1 && $2 ~ /x/ {print $NF}",
            "{print ($1 > 2)}",
            "length > 80",
            "{a[$1]=$2} END{for (k in a) print k, a[k]}",
            "{print $1 / 2, $2 / 3}",
        ] {
            assert_eq!(check_program(program), Ok(()), "{program}");
        }
        for program in [
            "BEGIN{system(\"x\")}",
            "{print | \"sh\"}",
            "{print > \"f\"}",
            "{print $1 >> \"f\"}",
            "\"x\" | getline",
            "{getline < \"f\"}",
            "@load \"x\"",
            "BEGIN{ARGV[1]=\".env\"}",
            "{print $1 / 2 | \"x\" / 3}",
            "BEGIN{x=1/2; print | \"/x\"}",
            "BEGIN{x = length /\"/; system(\"touch x\") }#\"",
            "BEGIN{ x = /[]/]\"/; system(\"touch x\") } #\"",
            "{print > \"/dev/stderr\" \"x\"}",
            "/[[:alpha:]/\"]/ {system(\"touch x\")} #\"",
            "BEGIN { printf(\"x\") > \"f\" }",
            "BEGIN { case=4; x = case / 2; system(\"id\") # /\n}",
            "BEGIN { switch=4; x = switch / 2; system(\"id\") # /\n}",
            "{print (1)(2) > \"f\"}",
            "{if (x) /\"/; print | \"sh\"; /\"/}",
            "{print $1,\n$2 > \"f\"}",
            "{x = a++ / 2; print | \"b/\"}",
            "BEGIN{f=\"system\"; @f(\"x\")}",
        ] {
            assert!(check_program(program).is_err(), "{program}");
        }
    }
}
