//! Heredocs in every form, run by real `bash`: what toold reads as data, no shell may run.
//!
//! Seed and number of lines are those of the other hostile lines: see the parent module.

use super::{THREADS, USUAL};
use crate::commands::random::{SplitMix, setting};
use crate::shell_and_bash::{ran_beyond_needs, understood_needs};

/// Commands with a heredoc at `H`; its bodies are at `B`, which begins a line.
const SHAPES: &[&str] = &[
    "aa H\nB",
    "aa H | bb\nB",
    "aa H 2>&1 | bb\nB",
    "aa H && bb\nB",
    "aa H || bb\nB",
    "aa H; bb\nB",
    "aa H |\nBbb\n",
    "aa H &&\nBbb\n",
    "H aa -x\nB",
    "aa H -x\nB",
    "aa - H >f\nB",
    "aa >f H\nB",
    "aa H H\nB",
    "aa H | bb H\nB",
    "aa 3H <<<x\nB",
    "{ aa; bb; } H\nB",
    "{ aa H\nB}\n",
    "( aa H\nB)\n",
    "( aa ) H | bb\nB",
    "aa $(bb H\nB)\n",
    "aa \"$(cat H\nB)\"\n",
    "aa \"$(cat H | bb\nB)\"\n",
    "x=$(cat H\nB)\naa \"$x\"\n",
    "aa <(bb H\nB)\n",
    "aa H \"$(bb)\"\nB",
    "aa H `bb`\nB",
    "if aa H; then bb; fi\nB",
    "if aa; then bb H\nBfi\n",
    "for i in 1; do aa H\nBdone\n",
    "case x in x) aa H\nB;; esac\n",
    "aa $(case x in x) bb H\nB;; esac)\n",
    "! aa H\nB",
    "[[ a == b ]] || aa H\nB",
    "aa H \\\n  | bb\nB",
    "aa H # bb\nB",
];

/// Delimiters as they are written, and without their quotes.
const DELIMITERS: &[(&str, &str)] = &[
    ("EOF", "EOF"),
    ("EOF", "EOF"),
    ("E", "E"),
    ("E", "E"),
    ("'E'", "E"),
    ("'E'", "E"),
    ("\"E\"", "E"),
    ("'EOF'", "EOF"),
    ("'EOF'", "EOF"),
    ("\"EOF\"", "EOF"),
    ("\\EOF", "EOF"),
    ("E'O'F", "EOF"),
    ("'E F'", "E F"),
    ("\"E F\"", "E F"),
    ("E-F.x", "E-F.x"),
    ("-EOF", "-EOF"),
    ("$E", "$E"),
    ("E\\\nF", "EF"),
    ("''", ""),
];

const OPERATORS: &[&str] = &["<<", "<<", "<<", "<<", "<<", "<<", "<<-", "<<-", "<<-", "<< ", "<< ", "<<-\t", "<<\\\n"];

/// Lines of bodies.
const LINES: &[&str] = &[
    "zz",
    "zz 'x'",
    "$(zz)",
    "`zz`",
    "\\$(zz)",
    "\\\\$(zz)",
    "${x:-$(zz)}",
    "${x:-a b}",
    "$((1 + 2))",
    "$x and ${x}",
    "it's",
    "say \"so",
    ")",
    "}",
    "fi",
    ";; esac",
    "",
    "\t",
    "EOF",
    " EOF",
    "\tEOF",
    "EOF ",
    "EOF)",
    "EOF\r",
    "E",
    "E F",
    "EO\\",
    "F",
    "\\",
    "x\\",
    "x\\\\",
    "$(zz \\",
    "x)",
    "<<EOF",
    "# zz",
    "$'zz",
    "é ✨\u{a0}",
];

/// Words that look like heredocs, or like the end of something.
const WORDS: &[&str] = &[
    "'<<E'",
    "\"<<E\"",
    "\\<\\<E",
    "$((1<<2))",
    "$[1<<2]",
    "${x:-<<E}",
    "\"${x:-<<E}\"",
    "<<<E",
    "'a\nb'",
    "\"a\nb\"",
    "$'\\'<<E'",
    "$'a'",
    "$#",
    "a#b",
    "{a,b}",
    "\"$(bb '<<E')\"",
    "$(bb\nzz)",
    "\"`bb`\"",
    "\\\n",
];

/// Inserted anywhere.
const NOISE: &[&str] =
    &["'", "\"", "\\", "\n", "E", ")", "(", "<", "#", " ", "\t", "$(", "`", "\\\n", "}", "EOF\n", "<<E", "case "];

fn heredoc_line(random: &mut SplitMix) -> String {
    let mut bodies = String::new();
    let mut line = String::new();
    if random.chance(20) {
        line.push_str(random.pick(&["aa\n", "((1<<2)); ", "aa $((1<<2))\n", "# <<E\n", "aa '\n'\n", "x='<<E'; "]));
    }
    for c in random.pick(SHAPES).chars() {
        match c {
            'H' => {
                let operator = random.pick(OPERATORS);
                let (written, delimiter) = random.pick(DELIMITERS);
                line.push_str(operator);
                line.push_str(written);
                if random.chance(10) {
                    line.push(' ');
                    line.push_str(random.pick(WORDS));
                }
                for _ in 0..random.below(4) {
                    bodies.push_str(random.pick(LINES));
                    bodies.push('\n');
                }
                bodies.push_str(if operator.starts_with("<<-") && random.chance(50) { "\t" } else { "" });
                if !random.chance(3) {
                    bodies.push_str(delimiter);
                    bodies.push_str(if random.chance(6) { random.pick(&[" \n", ")\n", "\r\n"]) } else { "\n" });
                }
            }
            'B' => line.push_str(&std::mem::take(&mut bodies)),
            ' ' if random.chance(3) => {
                line.push(' ');
                line.push_str(random.pick(WORDS));
                line.push(' ');
            }
            c => line.push(c),
        }
    }
    line.push_str(random.pick(&["", "bb\n", "bb 'x'\n", "bb \"$(aa)\"\n", "EOF\n"]));
    if random.chance(25) {
        let mut characters: Vec<char> = line.chars().collect();
        for _ in 0..=random.below(2) {
            let at = random.below(characters.len() + 1);
            let removed = at..characters.len().min(at + random.below(2));
            characters.splice(removed, random.pick(NOISE).chars());
        }
        line = characters.into_iter().collect();
    }
    line
}

/// Nothing stays behind: no command in the background.
fn ends(line: &str) -> bool {
    !line.replace("&&", "").replace(">&", "").contains('&')
}

#[test]
fn bodies_of_heredocs_are_never_run() {
    let (seed, lines) = (setting("COMMAND_SEED", 1), setting("COMMAND_LINES", USUAL) / 2);
    let work = |first: u64| {
        let (mut understood, mut wrong) = (0, Vec::new());
        for at in (first..lines).step_by(THREADS as usize) {
            let line = heredoc_line(&mut SplitMix::of_line(seed, at));
            if ends(&line)
                && let Some(needs) = understood_needs(&line)
            {
                understood += 1;
                wrong.extend(ran_beyond_needs(&line, &needs));
            }
        }
        (understood, wrong)
    };
    let parts: Vec<(u64, Vec<String>)> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|first| scope.spawn(move || work(first))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a thread that runs lines ends")).collect()
    });
    let understood: u64 = parts.iter().map(|(understood, _)| understood).sum();
    let wrong: Vec<String> = parts.into_iter().flat_map(|(_, wrong)| wrong).collect();
    println!("heredocs: {lines} lines of seed {seed}, {understood} were understood and ran");
    assert!(wrong.is_empty(), "{} of {understood} lines:\n{}", wrong.len(), wrong.join("\n"));
    assert!(understood * 4 >= lines, "only {understood} of {lines} lines were understood, and so ran");
}
