//! Programs that run what their standard input says: rules are about its text.

use toold_proto::permission::Verdict;

use crate::commands::folders::TestProject;
use crate::commands::judge::{RuleLine, judge};
use crate::commands::rules::check;

use Verdict::{Allow, Ask, Deny};

/// Programs with a text for each by which it runs the program `evil`.
const READERS: &[(&str, &str)] = &[
    ("sqlite3 db", ".shell evil x"),
    ("sqlite3 db", ".system evil x"),
    ("sqlite3 db", ".output |evil x"),
    ("sqlite3 db", ".import |evil t"),
    ("sqlite3 -csv db", ".once |evil"),
    ("psql", "\\! evil x"),
    ("psql -d app", "\\o |evil x"),
    ("psql -U me app", "\\copy t to program \"evil x\""),
    ("psql", "copy t to program \"evil x\";"),
    ("mysql", "\\! evil x"),
    ("mysql -u me app", "system evil x"),
    ("mariadb app", "pager evil"),
    ("duckdb", ".shell evil x"),
    ("mongosh", "run(\"evil\")"),
    ("bash", "evil x"),
    ("bash -s", "evil x"),
    ("sh", "if true; then evil x; fi"),
    ("zsh", "evil x"),
    ("fish", "evil x"),
    ("python3", "import os; os.system(\"evil x\")"),
    ("python3 -", "import os; os.system(\"evil x\")"),
    ("python3.12 -W ignore -", "import os; os.system(\"evil x\")"),
    ("node", "require(\"child_process\").execSync(\"evil x\")"),
    ("ruby", "system(\"evil x\")"),
    ("perl -w", "system(\"evil x\")"),
    ("php", "<?php system(\"evil x\");"),
    ("Rscript -", "system(\"evil x\")"),
    ("make -f -", "all:; evil x"),
    ("gdb", "shell evil x"),
    ("ed notes.txt", "!evil x"),
    ("ssh web1", "evil x"),
    ("ssh -p 22 web1", "evil x"),
    ("docker exec -i web sh", "evil x"),
    ("docker exec -i web psql", "\\! evil x"),
    ("kubectl exec -i pod -- bash", "evil x"),
    ("sudo -s", "evil x"),
    ("su root", "evil x"),
    ("timeout 5 sqlite3 db", ".shell evil x"),
    ("env A=1 sudo psql", "\\! evil x"),
];

/// The ways to hand a text to a program.
fn lines(program: &str, text: &str) -> Vec<String> {
    vec![
        format!("{program} <<< '{text}'"),
        format!("{program} <<<'{text}'"),
        format!("<<< '{text}' {program}"),
        format!("{program} 0<<< '{text}'"),
        format!("{program} <<'END'\n{text}\nEND"),
        format!("{program} <<-'END' 2>&1 | head\n\t{text}\n\tEND"),
        format!("printf '%s\\n' '{text}' | {program}"),
        format!("printf -- '%s\\n%s\\n' 'x' '{text}' | {program}"),
        format!("echo '{text}' | {program}"),
        format!("echo -n '{text}' | tee /dev/null | {program}"),
        format!("cat <<'END' | {program}\n{text}\nEND"),
        format!("cd src && echo '{text}' | cat | {program}"),
    ]
}

#[test]
fn rules_that_deny_are_about_the_text_on_standard_input() {
    let project = TestProject::make();
    let rules: Vec<RuleLine> =
        ["allow shell **", "deny shell evil *"].iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
    let mut wrong = Vec::new();
    for (program, text) in READERS {
        for line in lines(program, text) {
            let verdict = judge(&line, &project.place, &rules).verdict;
            if verdict != Deny {
                wrong.push(format!("{verdict:?}: {line}"));
            }
        }
        // What other commands print, and what the shell inserts, may be anything.
        for line in [
            format!("{program} <<< \"$x\""),
            format!("ls | {program}"),
            format!("{program} < <(ls)"),
            format!("{{ {program}; }} <<< '{text}'"),
            format!("while true; do {program}; done <<< '{text}'"),
            format!("printf '%b' '{text}' | {program}"),
        ] {
            let verdict = judge(&line, &project.place, &rules).verdict;
            if verdict == Allow {
                wrong.push(format!("allowed: {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_file_on_standard_input_counts_with_its_content() {
    let project = TestProject::make();
    std::fs::write(project.place.workspace.join("evil.sql"), "select 1;\n\\! evil x\n").unwrap();
    let rules: Vec<RuleLine> =
        ["allow shell **", "deny shell evil *"].iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
    for (line, expected) in [
        ("psql < evil.sql", Deny),
        ("psql 0<evil.sql", Deny),
        ("cat evil.sql | psql", Deny),
        ("mysql app < ./evil.sql", Deny),
        ("bash < evil.sql", Deny),
        ("psql < notes.txt", Allow),
        ("echo x > notes.sql; psql < notes.sql", Ask),
    ] {
        let verdict = judge(line, &project.place, &rules).verdict;
        assert_eq!(verdict, expected, "{line}");
    }
}

#[test]
fn a_pattern_covers_statements_on_standard_input_that_only_read() {
    let rules: &[&str] = &[
        "allow shell sqlite3 *",
        "allow shell psql *",
        "allow shell mysql *",
        "allow shell python3 *",
        "allow file.read **",
        "allow file.write **",
    ];
    check(&[
        (
            rules,
            &[
                "sqlite3 db <<< 'select 1'",
                "echo 'select count(*) from t;' | sqlite3 -csv db",
                "sqlite3 db <<'END'\nselect a,\n  b\nfrom t\nwhere a = 1;\n.tables\nselect 2;\nEND",
                "psql -d app <<< '\\dt'",
                "psql -d app <<'END'\n\\d users\nselect 1;\nEND",
                "psql -d app < /dev/null",
                "mysql app <<< 'show tables'",
                "python3 - <<'END'\nprint(1)\nEND",
            ],
            Allow,
        ),
        (
            rules,
            &[
                "sqlite3 db <<< 'drop table t'",
                "sqlite3 db <<< '.shell x'",
                "sqlite3 db <<< '.output x'",
                "sqlite3 db <<'END'\nselect 1\ngo\n.shell x\nEND",
                "sqlite3 db <<'END'\nselect 1\n/\n.shell x\nEND",
                "sqlite3 db <<'END'\nselect 1\n.shell x\nEND",
                "sqlite3 db <<< \"select '$x'\"",
                "sqlite3 db < notes.txt",
                "cat notes.txt | sqlite3 db",
                "ls | psql",
                "psql <<< 'select 1 \\g |x'",
                "mysql app <<< 'source x'",
                "mysql app <<'END'\nselect 1\n\\! x\nEND",
            ],
            Ask,
        ),
    ]);
}

#[test]
fn a_rule_for_exact_words_is_not_about_a_program_that_they_do_not_show() {
    check(&[
        (
            &[
                "allow shell python3 -",
                "allow shell python3",
                "allow shell node",
                "allow shell sqlite3 db",
                "allow shell psql -d app",
                "allow shell ssh web1",
                "allow shell make -f -",
                "allow shell bash",
            ],
            &[
                "python3 - <<'END'\nimport os\nEND",
                "echo 'import os' | python3",
                "node <<< 'x()'",
                "sqlite3 db <<< 'drop table t;'",
                "psql -d app <<< '\\! x'",
                "ssh web1 <<< 'reboot'",
                "make -f - <<< 'all:; x'",
                "bash <<< 'x'",
            ],
            Ask,
        ),
        (&["allow shell python3 -", "allow shell psql -d app"], &["python3 -"], Allow),
    ]);
}

#[test]
fn files_that_statements_name_are_judged() {
    check(&[
        (
            &["allow shell **", "allow file.read **", "allow file.write **"],
            &[
                "sqlite3 db <<< '.read .env'",
                "sqlite3 db <<< \"select readfile('.env')\"",
                "echo '\\i .env' | psql",
                "mysql <<< 'source .env'",
                "sqlite3 db '.output ~/.config/toold/config.toml' 'select 1'",
                "printf '.output ~/.config/toold/config.toml\\nselect 1;\\n' | sqlite3 db",
                "psql <<< '\\o ~/.config/toold/config.toml'",
                "mysql -e 'tee ~/.config/toold/config.toml'",
                "bash <<< 'cat .env'",
            ],
            Deny,
        ),
        (&["allow shell sqlite3 *"], &["sqlite3 db \"select '/home/x', 1\""], Allow),
    ]);
}
