use super::*;
use crate::need::{CommandForm, FormOption, Word};
use crate::policy::pattern::words::escape_word;

fn shell(words: &[&str]) -> Need {
    let word = |text: &&str| match text.strip_prefix('§') {
        Some(raw) => Word { text: raw.to_owned(), literal: false },
        None => Word { text: (*text).to_owned(), literal: true },
    };
    let given = Some(words.iter().map(word).collect());
    Need::new(Category::Shell, words.join(" ")).with_command(|command| command.words = given)
}

#[track_caller]
fn check_shell(pattern: &str, words: &[&str], expected: bool) {
    let parsed = Pattern::parse(Category::Shell, pattern).unwrap();
    assert_eq!(parsed.matches(&shell(words)).is_some(), expected, "{pattern:?} and {words:?}");
}

#[track_caller]
fn check(category: Category, pattern: &str, target: &str, expected: bool) {
    let parsed = Pattern::parse(category, pattern).unwrap();
    assert_eq!(parsed.matches(&Need::new(category, target)).is_some(), expected, "{pattern:?} and {target:?}");
}

#[test]
fn commands_match_word_by_word() {
    check_shell("git status", &["git", "status"], true);
    check_shell("git status", &["git", "status", "-s"], false);
    check_shell("git status", &["git"], false);
    check_shell("git", &["git status"], false);
    check_shell("'git status'", &["git status"], true);
    check_shell("git\\ status", &["git status"], true);
    check_shell("\"a\\\"b\" 'c*'", &["a\"b", "c*"], true);
    check_shell("\"a\\\"b\" 'c*'", &["a\"b", "cd"], false);
    check_shell("git ''", &["git", ""], true);
    check_shell("ls [a", &["ls", "[a"], true);
    check_shell("ls {a,b}", &["ls", "a"], false);
    check_shell("ls a?c", &["ls", "abc"], false);
}

#[test]
fn a_final_star_is_any_further_words() {
    check_shell("git diff *", &["git", "diff"], true);
    check_shell("git diff *", &["git", "diff", "a", "b"], true);
    check_shell("git diff *", &["git", "difftool"], false);
    check_shell("git diff*", &["git", "difftool"], true);
    check_shell("git diff*", &["git", "diff", "a"], false);
    check_shell("git * main", &["git", "push", "main"], true);
    check_shell("git * main", &["git", "push", "-f", "main"], false);
    check_shell("git * main", &["git", "main"], false);
    check_shell("rm *.log", &["rm", "a.log"], true);
    check_shell("rm *.log", &["rm", "-rf", "x", "a.log"], false);
    check_shell("rm '*.log'", &["rm", "a.log"], false);
    check_shell("a*b*c", &["aXbYbc"], true);
    check_shell("a*b*c", &["abX"], false);
    check_shell("*", &["anything", "at", "all"], true);
}

#[test]
fn a_word_that_the_shell_changes_is_matched_by_a_star_or_as_names_of_files() {
    check_shell("cat *", &["cat", "§$x"], true);
    check_shell("cat * b", &["cat", "§$x", "b"], true);
    check_shell("cat $x".replace('$', "\\$").as_str(), &["cat", "§$x"], false);
    check_shell("cat a*", &["cat", "§a*"], true);
    check_shell("cat '*'", &["cat", "§*"], false);
    check_shell("rm *.log", &["rm", "§*.log"], true);
    check_shell("rm *.log", &["rm", "§a*.log"], true);
    check_shell("rm *.log", &["rm", "§?.log"], true);
    check_shell("rm a*.log", &["rm", "§*.log"], false);
    check_shell("rm *.log", &["rm", "§*"], false);
    check_shell("rm *.log", &["rm", "§$x.log"], false);
    check_shell("rm *.log", &["rm", "§{a,b}.log"], false);
    check_shell("rm '*.log'", &["rm", "§*.log"], false);
    check_shell("rm '?.log'", &["rm", "§?.log"], false);
    check_shell("rm a.log", &["rm", "§*.log"], false);
}

#[test]
fn only_two_stars_match_a_line_that_was_not_understood() {
    let need = Need::new(Category::Shell, "rm $((");
    for (pattern, expected) in [("**", true), ("*", false), ("rm *", false)] {
        assert_eq!(Pattern::parse(Category::Shell, pattern).unwrap().matches(&need).is_some(), expected, "{pattern}");
    }
}

#[test]
fn patterns_of_more_than_a_command_are_refused() {
    for bad in ["a; b", "a && b", "a | b", "a > b", "$(a)", "a `b`", "a\nb", "echo $x", "'a", "\"a", "a\\", "  "] {
        assert!(Pattern::parse(Category::Shell, bad).is_err(), "{bad:?}");
    }
}

#[test]
fn denials_see_through_folders_and_quotes() {
    let deny = |pattern: &str, need: &Need| Pattern::parse(Category::Shell, pattern).unwrap().may_match(need).is_some();
    assert!(deny("rm *", &shell(&["/bin/rm", "-rf", "x"])));
    assert!(!deny("rm *", &shell(&["/bin/rmdir", "x"])));
    assert!(deny("rm *", &Need::new(Category::Shell, "r'm' -rf $((x))")));
    assert!(deny("git push *", &Need::new(Category::Shell, "if git -c a push; then")));
    assert!(!deny("git push *", &Need::new(Category::Shell, "git log $((x))")));
    assert!(!deny("rm *", &Need::new(Category::Shell, "echo farm $((x))")));
}

/// `-x=V` and `-x V` are options of the command, `|` stands between the spellings of one.
fn formed(words: &str) -> Need {
    let mut form = CommandForm::default();
    let word = |text: &str| Word { text: text.to_owned(), literal: !text.starts_with('$') };
    for text in words.split(' ').skip(1) {
        match text.split_once('=').or((text.starts_with('-')).then_some((text, ""))) {
            Some((names, value)) => form.options.push(FormOption {
                names: names.split('|').map(str::to_owned).collect(),
                values: Some(value).filter(|value| !value.is_empty()).map(word).into_iter().collect(),
            }),
            None => form.plain.push(word(text)),
        }
    }
    let words: Vec<&str> = words.split(' ').collect();
    shell(&words).with_command(|command| command.form = Some(form))
}

#[test]
fn a_denial_means_options_in_any_order_and_spelling() {
    for (pattern, command, expected) in [
        ("git push *", "git -C=. push origin", true),
        ("git push *", "git push", true),
        ("git push *", "git commit -m=push", false),
        ("git push *", "git stash push", false),
        ("git push --force *", "git push origin -f|--force", true),
        ("git push --force *", "git push origin", false),
        ("git push -f *", "git push --force|-f origin", true),
        ("git push --force origin *", "git push origin main -f|--force", true),
        ("git push --force origin *", "git push other -f|--force", false),
        ("rm -rf *", "rm -r|--recursive -f|--force x", true),
        ("rm -rf *", "rm -r x", false),
        ("rm -r -f *", "rm -f|--force x -r", true),
        ("rm -rf *", "rm $x", true),
        ("kubectl -n prod delete *", "kubectl delete -n|--namespace=prod pod", true),
        ("kubectl -n prod delete *", "kubectl delete -n|--namespace=web pod", false),
        ("kubectl --namespace=prod delete *", "kubectl -n|--namespace=prod delete pod", true),
        ("make -j4 *", "make -j=4 all", true),
        ("make deploy", "make -s deploy", true),
        ("make deploy", "make deploy now", false),
        ("kubectl * secrets *", "kubectl -n=x get secrets -o=yaml", true),
        ("git push --force-* *", "git push --force-with-lease=x", true),
    ] {
        let found = Pattern::parse(Category::Shell, pattern).unwrap().may_match(&formed(command));
        assert_eq!(found.is_some(), expected, "{pattern}: {command}");
    }
}

#[test]
fn words_of_an_unknown_program_count_in_their_order() {
    for (pattern, command, expected) in [
        ("aws ec2 terminate *", "aws --profile p ec2 terminate x", true),
        ("aws ec2 terminate *", "aws terminate ec2", false),
        ("aws ec2 terminate *", "aws ec2 describe", false),
        ("tool drop --all *", "tool --all drop", true),
        ("tool drop --all *", "tool drop --al", true),
        ("tool drop --everything *", "tool drop --every", true),
        ("tool -xy *", "tool -y a -x", true),
        ("tool -xy *", "tool -y --x", false),
        ("tool drop", "tool -q drop", true),
        ("tool drop", "tool drop it", false),
        ("tool *", "tools x", false),
        ("x=* y *", "x=$y", false),
        ("sudo *", "§n=$(wc)", false),
        ("nano *", "§n=$(wc)", false),
        ("n=*", "§n=$(wc)", true),
        ("n*", "§n=$(wc)", true),
        ("sudo *", "§$x", true),
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        let found = Pattern::parse(Category::Shell, pattern).unwrap().may_match(&shell(&words));
        assert_eq!(found.is_some(), expected, "{pattern}: {command}");
    }
}

#[test]
fn a_pattern_that_allows_covers_the_command_without_harmless_first_options() {
    let short = shell(&["git", "commit", "-m", "x"]).words().map(<[Word]>::to_vec);
    let need = shell(&["git", "-C", "a", "commit", "-m", "x"]).with_command(|command| command.short = short);
    let covers = |pattern: &str, need: &Need| Pattern::parse(Category::Shell, pattern).unwrap().matches(need).is_some();
    assert!(covers("git commit *", &need) && covers("git *", &need) && covers("git -C a *", &need));
    assert!(!covers("git commit -m x", &need), "a rule for exactly another command");
    assert!(!covers("git commit *", &need.with_command(|command| command.unsure = Some("why".into()))));
}

#[test]
fn paths_match_by_segment() {
    let read = Category::FileRead;
    check(read, "/src/**", "/src/a/b.rs", true);
    check(read, "/src/**", "/src", true);
    check(read, "/src/**", "/src2/a", false);
    check(read, "/etc", "/etcetera", false);
    check(read, "/etc", "/etc/passwd", false);
    check(read, "/src/*", "/src/a", true);
    check(read, "/src/*", "/src/a/b", false);
    check(read, "/src/*.rs", "/src/a.rs", true);
    check(read, "/src/*.rs", "/src/d/a.rs", false);
    check(read, "**/test/*.go", "/p/test/a.go", true);
    check(read, "/p/**/test/**/x", "/p/a/test/b/c/x", true);
    check(read, "/p/**/test/**/x", "/p/test/x", true);
    check(read, "/p/{a,b}/c", "/p/b/c", true);
    check(read, "/p/[ab]/c", "/p/b/c", true);
    check(read, "/p/\\[ab\\]", "/p/[ab]", true);
    check(read, "/p/\\*", "/p/x", false);
    check(read, "**", "/anything", true);
    for bad in ["", "src/**", "~/x", "/a[b", "/a{b"] {
        assert!(Pattern::parse(read, bad).is_err(), "{bad:?}");
    }
}

#[test]
fn hosts_match_by_label_and_port() {
    let net = Category::Network;
    check(net, "example.com", "example.com:443", true);
    check(net, "Example.COM.", "example.com:80", true);
    check(net, "example.com:443", "example.com:443", true);
    check(net, "example.com:443", "example.com:80", false);
    check(net, "example.com", "badexample.com:443", false);
    check(net, "example.com", "example.com.evil.org:443", false);
    check(net, "*.example.com", "a.example.com:443", true);
    check(net, "*.example.com", "a.b.example.com:443", false);
    check(net, "*.example.com", "example.com:443", false);
    check(net, "**.example.com", "a.b.example.com:443", true);
    check(net, "**.example.com", "evilexample.com:443", false);
    check(net, "api-*.example.com", "api-1.example.com:1", true);
    check(net, "*:443", "localhost:443", true);
    check(net, "*", "example.com:443", false);
    check(net, "**:443", "example.com:443", true);
    check(net, "10.0.0.*", "10.0.0.7:22", true);
    check(net, "[::1]:443", "[::1]:443", true);
    check(net, "[::1]", "[::1]:443", true);
    check(net, "[::1]:80", "[::1]:443", false);
    for bad in ["https://x", "a b", ":443", "x:y", "x:", "[::1]443", "[::1"] {
        assert!(Pattern::parse(net, bad).is_err(), "{bad:?}");
    }
}

#[test]
fn names_match_by_glob() {
    check(Category::Mcp, "github/*", "github/search", true);
    check(Category::Mcp, "github/*", "github2/search", false);
    check(Category::Mcp, "github/*", "github/repos/list", true);
    check(Category::Mcp, "github/*", "github/resource/file:///a/b", true);
    check(Category::Mcp, "github/resource/file:///a/**", "github/resource/file:///a/b/c", true);
    check(Category::Mcp, "github/resource/file:///a/*", "github/resource/file:///a/b/c", false);
    check(Category::Plugin, "git_*", "git_log", true);
    check(Category::Agent, "reviewer", "reviewer", true);
}

#[test]
fn specific_patterns_stand_before_wide_ones() {
    let order = |category, patterns: &[&str]| {
        let found: Vec<Specificity> =
            patterns.iter().map(|text| Pattern::parse(category, text).unwrap().specificity).collect();
        assert!(found.is_sorted_by(|a, b| a > b), "{patterns:?}: {found:?}");
    };
    order(Category::Shell, &["git push", "git push origin *", "git push *", "git *", "git * *", "*", "**"]);
    order(Category::FileRead, &["/a", "/a/b/**", "/a/*", "/a/**", "/**", "**"]);
    order(Category::Network, &["a.b:443", "a.b", "*.b:1", "*.b", "**"]);
}

#[test]
fn escaped_text_matches_itself_and_nothing_else() {
    for text in ["plain", "a b", "it's", "*", "a[b", "{}", "a\\b", "\"", "$(x)", "new\nline", "", "-rf", "!x", "é"] {
        check_shell(&format!("x {}", escape_word(text)), &["x", text], true);
        check_shell(&format!("x {}", escape_word(text)), &["x", "other"], false);
        if !text.is_empty() {
            let path = format!("/d/{text}");
            check(Category::FileRead, &escape_glob(&path), &path, true);
            check(Category::FileRead, &escape_glob(&path), "/d/other", false);
        }
    }
}
