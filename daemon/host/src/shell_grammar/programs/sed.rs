//! `sed`: its script can run commands and write files (GNU sed manual, sections 3 and 6).

use super::known::find;
use super::options::parse;
use super::{FileAccess, FileUse, Reading};
use crate::shell_grammar::arg::Arg;

pub(super) fn read(words: &[Arg]) -> Option<Reading> {
    let parsed = parse(find("sed")?, words);
    let in_place = parsed.has(&["-i", "--in-place"]);
    let given: Vec<Arg> = parsed.values(&["-e", "--expression"]).cloned().collect();
    let has_script = !given.is_empty() || parsed.has(&["-f", "--file"]);
    let scripts = if has_script { given } else { parsed.operands.first().cloned().into_iter().collect() };
    let checked: Vec<CheckedScript> = scripts.iter().map(CheckedScript::of).collect();
    // A suffix with a slash or `*` makes the backup, of any content, elsewhere (sed(1), "-i[SUFFIX]").
    let moves = parsed
        .values(&["-i", "--in-place"])
        .any(|suffix| suffix.literal().is_none_or(|text| text.contains(['/', '*'])));
    let mut reading = parsed.into_reading();
    if moves {
        reading.doubt("the suffix names another file that it writes");
    }
    if in_place {
        reading.reads_only = false;
        // After other options, `-i` makes a command write that seems to read.
        let begins_so = words
            .first()
            .is_some_and(|first| first.start().starts_with("-i") || first.start().starts_with("--in-place"));
        for file in &mut reading.files {
            file.how = FileAccess::Write;
            file.is_operand = begins_so;
        }
    }
    reading.files.extend(script_files(words).map(|file| FileUse::new(FileAccess::Read, file)));
    reading.files.extend(checked.iter().flat_map(|script| script.files.iter().cloned()));
    reading.hides_file |= checked.iter().any(|script| script.is_odd);
    Some(match checked.into_iter().find_map(|script| script.why) {
        None => reading,
        Some(why) => {
            reading.may_run_any = true;
            reading.unsure(why)
        }
    })
}

/// The files that scripts are read from: `-f FILE`, `-nf FILE`, `-fFILE`, `--file=FILE`. An error shows their lines.
fn script_files(words: &[Arg]) -> impl Iterator<Item = Arg> {
    let takes_next = |word: &Arg| {
        word.is("--file")
            || word
                .literal()
                .is_some_and(|text| text.starts_with('-') && !text.starts_with("--") && text.ends_with('f'))
    };
    let next = words.windows(2).filter(move |pair| takes_next(&pair[0])).map(|pair| pair[1].clone());
    let attached = words.iter().filter_map(|word| {
        let start = ["--file=", "-f"].into_iter().find(|start| word.start().starts_with(start) && !word.is(start))?;
        Some(word.without_start(start.len()))
    });
    next.chain(attached).filter(|file| !file.is("-"))
}

/// The effects of a script beside changes of text.
#[derive(Default)]
struct CheckedScript {
    /// It runs a command, accesses a file, or is not understood.
    why: Option<String>,
    /// It is not understood, and may access any file.
    is_odd: bool,
    files: Vec<FileUse>,
}

impl CheckedScript {
    fn of(script: &Arg) -> Self {
        let Some(text) = script.literal() else {
            let why = format!("the shell expands the script {}, and the result is unknown", script.raw);
            return Self { why: Some(why), ..Self::default() };
        };
        let mut reader = ScriptReader { chars: text.chars().peekable(), checked: Self::default() };
        loop {
            match reader.command() {
                Ok(true) => {}
                Ok(false) => return reader.checked,
                Err(why) => {
                    return Self { why: Some(reader.checked.why.unwrap_or(why)), is_odd: true, ..reader.checked };
                }
            }
        }
    }
}

struct ScriptReader<'a> {
    chars: std::iter::Peekable<std::str::Chars<'a>>,
    checked: CheckedScript,
}

impl ScriptReader<'_> {
    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        while self.chars.next_if(|c| is_skipped(*c)).is_some() {}
    }

    fn odd() -> String {
        "toold cannot parse its script".to_owned()
    }

    /// One command with its addresses; false at the end.
    fn command(&mut self) -> Result<bool, String> {
        self.skip(|c| c.is_whitespace() || c == ';');
        if self.chars.peek().is_none() {
            return Ok(false);
        }
        if self.address()? {
            self.skip(|c| c == ' ' || c == '\t');
            if self.chars.next_if_eq(&',').is_some() {
                self.skip(|c| c == ' ' || c == '\t');
                if self.chars.next_if(|c| matches!(c, '+' | '~')).is_some() {
                    self.skip(|c| c.is_ascii_digit());
                } else if !self.address()? {
                    return Err(Self::odd());
                }
            }
        }
        self.skip(|c| c == ' ' || c == '\t' || c == '!');
        match self.chars.next().ok_or_else(Self::odd)? {
            '{' | '}' => {}
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' => self.end()?,
            'l' | 'L' | 'q' | 'Q' => {
                self.skip(|c| c == ' ');
                self.skip(|c| c.is_ascii_digit());
                self.end()?;
            }
            // Text up to the end of the line; a backslash continues it on the next.
            'a' | 'i' | 'c' => {
                while let Some(c) = self.chars.next() {
                    match c {
                        '\\' => drop(self.chars.next()),
                        '\n' => break,
                        _ => {}
                    }
                }
            }
            'b' | 't' | 'T' | ':' => {
                self.skip(|c| c == ' ');
                self.skip(|c| c != ';' && c != '}' && !c.is_whitespace());
            }
            '#' => self.skip(|c| c != '\n'),
            's' => self.substitute()?,
            'y' => {
                let mark = self.chars.next().ok_or_else(Self::odd)?;
                self.until(mark, false)?;
                self.until(mark, false)?;
                self.end()?;
            }
            'w' | 'W' => self.file(FileAccess::Write, "its script writes a file (w)"),
            'r' | 'R' => self.file(FileAccess::Read, "its script reads a file (r)"),
            'e' => return Err("its script runs a command (e)".to_owned()),
            _ => return Err(Self::odd()),
        }
        Ok(true)
    }

    /// A file, whose name ends with the line.
    fn file(&mut self, how: FileAccess, why: &str) {
        self.skip(|c| c == ' ' || c == '\t');
        let mut name = String::new();
        while let Some(c) = self.chars.next_if(|c| *c != '\n') {
            name.push(c);
        }
        self.checked.why.get_or_insert_with(|| why.to_owned());
        // Standard output is open anyway.
        if !matches!(name.as_str(), "/dev/stdout" | "/dev/stderr" | "/dev/stdin") {
            self.checked.files.push(FileUse::new(how, Arg::text(&name)));
        }
    }

    fn address(&mut self) -> Result<bool, String> {
        match self.chars.peek() {
            Some(c) if c.is_ascii_digit() => {
                self.skip(|c| c.is_ascii_digit());
                if self.chars.next_if_eq(&'~').is_some() {
                    self.skip(|c| c.is_ascii_digit());
                }
            }
            Some('$') => drop(self.chars.next()),
            Some('/') => {
                self.chars.next();
                self.until('/', true)?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            Some('\\') => {
                self.chars.next();
                let mark = self.chars.next().ok_or_else(Self::odd)?;
                self.until(mark, true)?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Skips to after the delimiter that ends this part. Whether the delimiter inside a bracket expression is a plain
    /// character depends on the version, so such an expression is not understood.
    fn until(&mut self, mark: char, is_expression: bool) -> Result<(), String> {
        if mark == '\n' || mark == '\\' || mark.is_alphanumeric() {
            return Err(Self::odd());
        }
        let mut in_brackets = false;
        while let Some(c) = self.chars.next() {
            match c {
                '\\' => drop(self.chars.next().ok_or_else(Self::odd)?),
                '[' if is_expression && !in_brackets => {
                    in_brackets = true;
                    self.chars.next_if_eq(&'^');
                    self.chars.next_if_eq(&']');
                }
                '[' if in_brackets && self.chars.next_if_eq(&':').is_some() => {
                    while self.chars.next().ok_or_else(Self::odd)? != ']' {}
                }
                ']' => in_brackets = false,
                c if c == mark && in_brackets => return Err(Self::odd()),
                c if c == mark => return Ok(()),
                _ => {}
            }
        }
        Err(Self::odd())
    }

    fn substitute(&mut self) -> Result<(), String> {
        let mark = self.chars.next().ok_or_else(Self::odd)?;
        self.until(mark, true)?;
        self.until(mark, false)?;
        while let Some(flag) = self.chars.next_if(|c| c.is_ascii_alphanumeric()) {
            match flag {
                'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {}
                'e' => return Err("its script runs a command (s///e)".to_owned()),
                'w' => {
                    self.file(FileAccess::Write, "its script writes a file (s///w)");
                    return Ok(());
                }
                _ => return Err(Self::odd()),
            }
        }
        self.end()
    }

    /// Only the end of the command may follow.
    fn end(&mut self) -> Result<(), String> {
        self.skip(|c| c == ' ' || c == '\t');
        match self.chars.peek() {
            None | Some(';' | '\n' | '}' | '#') => Ok(()),
            Some(_) => Err(Self::odd()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str) -> Option<String> {
        CheckedScript::of(&Arg::text(script)).why
    }

    #[test]
    fn files_of_scripts_are_known() {
        for (script, files, is_odd) in [
            ("r .env", "read .env", false),
            ("1R  a b", "read a b", false),
            ("p;w .git/hooks/pre-push", "write .git/hooks/pre-push", false),
            ("s/a/b/w x\n$r y", "write x|read y", false),
            ("w /dev/stdout\nw f", "write f", false),
            ("r f\n\u{1}", "read f", true),
            ("s/a/b/", "", false),
        ] {
            let checked = CheckedScript::of(&Arg::text(script));
            let shown = checked.files.iter().map(|file| match file.how {
                FileAccess::Read => format!("read {}", file.arg.start()),
                _ => format!("write {}", file.arg.start()),
            });
            assert_eq!((shown.collect::<Vec<_>>().join("|").as_str(), checked.is_odd), (files, is_odd), "{script}");
        }
    }

    #[test]
    fn scripts_that_only_edit_are_known() {
        for script in [
            "1,20p",
            "$d",
            "/a/,/b/p",
            "s/a/b/g",
            "s|/a|/b|",
            "10q",
            "1~2d",
            "/x/{n;d}",
            "s/\\(a\\)/\\1/2p",
            "y/ab/cd/",
            "2,+3p",
            "/^$/d",
            "s/[0-9]*/x/;p",
            "1!G;h;$!d",
            ":a;N;$!ba;s/\\n/ /g",
            "5a\\\ntext",
            "\\,x,p",
            "1i text; w f",
        ] {
            assert_eq!(check(script), None, "{script}");
        }
        for script in [
            "w f",
            "1e",
            "1e touch x",
            "s/a/b/e",
            "s/a/b/w f",
            "s/a/touch/ge",
            "r f",
            "1,2w f",
            "p;w f",
            "/a/{w f\n}",
            "s/a/b/;e",
            "$!w f",
            "s/[/]/x/w f",
            "\\aXawf",
            "sxaxbxe",
            "1W f",
            "y/a/b/;e x",
            "5q;e",
            "l 3e",
            "}e",
            "{w f}",
            ":a w f",
            "ba w f",
            "t w f",
        ] {
            assert!(check(script).is_some(), "{script}");
        }
    }
}
