//! Ways around rules that users of the documents have found: each row is rules, lines that do what the rules are about, and the
//! verdict.

use toold_engine::policy::Policy;
use toold_host::exclude::Exclusions;
use toold_host::file_needs::write_need;
use toold_proto::cut;
use toold_proto::permission::Verdict;

use crate::commands::folders::{TestProject, write};
use crate::commands::judge::{RuleLine, judge};
use crate::commands::rules::{RuleRow, check, check_in};

use Verdict::{Allow, Ask, Deny};

#[test]
fn a_repository_that_git_reads_is_a_file_that_the_command_names() {
    let rows: &[RuleRow] = &[
        (
            &["allow shell **", "deny file.read ~/other/**"],
            &[
                "git --git-dir=../../other/.git show HEAD:f",
                "git --git-dir ../../other/.git --work-tree ../../other show HEAD:f",
                "git clone ~/other x",
                "git clone -q file://$HOME/other x",
                "git fetch ../../other main",
                "git -C src fetch ../../../other main",
                "git pull ../../other",
                "git archive --remote=../../other HEAD",
                "git submodule add ../../other",
                "git ls-remote ../../other",
                "git remote add o ../../other",
                "GIT_DIR=../../other/.git git log",
                "GIT_ALTERNATE_OBJECT_DIRECTORIES=../../other/.git/objects git cat-file -p X",
                "export GIT_DIR=../../other/.git; git log",
            ],
            Deny,
        ),
        (&["allow shell git clone *", "allow shell git fetch *"], &["git clone ~/other x", "git fetch ~/other"], Ask),
        (
            &["allow shell git clone *", "allow shell git fetch *", "allow shell git pull *", "allow shell git push *"],
            &[
                "git clone https://example.com/a/b",
                "git clone git@example.com:a/b.git",
                "git clone ./docs copy",
                "git fetch origin feature/x",
                "git pull origin main",
                "git push origin HEAD:feature/x",
            ],
            Allow,
        ),
    ];
    check(rows);
}

#[test]
fn a_script_is_the_same_one_from_each_folder() {
    let rows: &[RuleRow] = &[(
        &["allow shell **", "deny shell ./run.sh *"],
        &[
            "cd docs && ../run.sh",
            "env -C docs ../run.sh",
            "cd docs; bash ../run.sh",
            "cd docs; . ../run.sh",
            "(cd src; ../run.sh x)",
            "cd ..; shop/run.sh",
            "cd ..; ./shop/run.sh",
            "PATH=.:$PATH; run.sh",
            "PATH=. run.sh",
            "export PATH=$PWD:$PATH; run.sh x",
        ],
        Deny,
    )];
    check(rows);
    let rows: &[RuleRow] = &[(
        &["allow shell **", "deny shell ./run.sh *"],
        &["cd docs && ../build.sh", "cd docs && ./run2.sh", "export PATH=$HOME/.cargo/bin:$PATH; cargo test"],
        Allow,
    )];
    check(rows);
}

#[test]
fn a_program_may_come_from_a_descriptor_an_alias_or_a_function() {
    let rows: &[RuleRow] = &[
        (
            &["allow shell **", "deny shell git push *"],
            &[
                "/dev/fd/3 push 3</usr/bin/git",
                "exec 3</usr/bin/git; /proc/self/fd/3 push",
                "env 'BASH_FUNC_ls%%=() { x; }' bash -c ls",
            ],
            Ask,
        ),
        (&["allow shell **", "deny shell git push *"], &["env 'BASH_FUNC_ls%%=() { git push; }' bash -c ls"], Deny),
        (
            &["allow shell **", "deny shell cargo publish *"],
            &[
                "CARGO_ALIAS_X=publish cargo x",
                "export CARGO_ALIAS_X=publish; cargo x",
                "env CARGO_ALIAS_X=publish cargo x",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell cargo publish *"],
            &["CARGO_ALIAS_X=$v cargo x", "export CARGO_ALIAS_X=$v; cargo x"],
            Ask,
        ),
    ];
    check(rows);
}

#[test]
fn commands_inside_of_other_programs_are_found() {
    let rows: &[RuleRow] = &[
        (
            &["allow shell **", "deny shell git push *"],
            &[
                "vagrant ssh <<< 'git push'",
                "gcloud compute ssh h <<< 'git push'",
                "docker run -i bash <<< 'git push'",
                "docker compose run s <<< 'git push'",
                "chroot / <<< 'git push'",
                "fakeroot <<< 'git push'",
                "lxc shell c <<< 'git push'",
                "nodemon --exec git push",
                "npx nodemon --exec git push",
                "gcloud compute ssh h -- git push",
                "az ssh vm -n x -- git push",
                "gcloud cloud-shell ssh --command='git push'",
                "kubectl create job x --image=x -- git push",
                "kubectl create cronjob x --image=x --schedule=x -- git push",
                "docker compose run --entrypoint 'git push' s",
                "sops exec-file x 'git push'",
                "infisical run --command='git push'",
                "python3 -m timeit 'import os; os.system(\"git push\")'",
                "just -f /dev/stdin x <<'E'\nx:\n  git push\nE",
                "cmake -P /dev/stdin <<< 'execute_process(COMMAND git push)'",
            ],
            Deny,
        ),
        (&["allow shell **", "deny shell npm publish *"], &["pnpm recursive publish", "pnpm m publish"], Deny),
        (&["allow shell **", "deny shell docker run --privileged *"], &["docker create --privileged x"], Deny),
        (
            &["allow shell **", "deny shell git push *"],
            &["ssh h ls <<< 'git push'", "docker run -i x cat <<< 'git push'"],
            Allow,
        ),
    ];
    check(rows);
}

#[test]
fn effects_and_files_that_the_words_only_imply_count() {
    let rows: &[RuleRow] = &[
        (
            &["allow shell git clone *", "allow shell gh repo clone *"],
            &[
                "git clone https://e.com/.husky",
                "git clone https://e.com/.vscode.git",
                "gh repo clone x/.husky",
                "gh repo clone x/.husky -- --depth 1",
            ],
            Ask,
        ),
        (&["allow shell gh repo clone *"], &["gh repo clone x/shop"], Allow),
        (
            &["allow shell gh api *", "allow shell glab api *"],
            &[
                "gh api repos/o/r/issues -f title=x",
                "gh api repos/o/r/issues --raw-field title=x",
                "gh api graphql -f query='mutation{x}'",
                "gh api -ftitle=x repos/o/r/issues",
                "glab api projects/1/issues -f title=x",
            ],
            Ask,
        ),
        (&["allow shell gh api *"], &["gh api repos/o/r", "gh api -X GET search/issues -f q=x"], Allow),
        (&["allow shell gh api *", "deny shell gh api -X POST *"], &["gh api repos/o/r/issues -f title=x"], Deny),
        (
            &["allow shell ssh web1 uptime *"],
            &[
                "ssh web1 uptime '; rm x'",
                "ssh web1 uptime '$(rm x)'",
                "ssh web1 uptime '|' sh",
                "ssh web1 uptime '&&' rm x",
            ],
            Ask,
        ),
        (
            &["allow shell ssh web1 *"],
            &["ssh web1 'cd /srv && ls | head'", "ssh web1 docker ps --format '{{.Names}}'"],
            Allow,
        ),
    ];
    check(rows);
}

#[test]
fn a_file_is_the_same_one_however_the_shell_comes_to_its_name() {
    // Where the folder is not known, the last part of the path is compared.
    let secret: &[&str] = &["allow shell **", "deny file.read **/docs/secret.txt"];
    let rows: &[RuleRow] = &[
        (secret, &["cat ~+/docs/secret.txt", "cd docs && cat ~+/secret.txt", "cat < ~+/docs/secret.txt"], Deny),
        (
            secret,
            &[
                "cat ~-/secret.txt",
                "cat ~other/secret.txt",
                "cat \"$d\"/secret.txt",
                "CDPATH=docs cd a; cat secret.txt",
                "CDPATH=docs builtin cd a && cat secret.txt",
                "CDPATH=docs pushd a && cat secret.txt",
                "CDPATH=docs bash -c 'cd a; cat secret.txt'",
                "env CDPATH=docs bash -c 'cd a; cat secret.txt'",
                "HOME=$PWD/docs cd; cat secret.txt",
                "HOME=$PWD/docs bash -c 'cat ~/secret.txt'",
                "env HOME=$PWD/docs bash -c 'cd; cat secret.txt'",
                "CDPATH=docs; cd a; cat secret.txt",
            ],
            Ask,
        ),
        (secret, &["cat \"$d\"/other.txt", "FOO=1 cd docs; cat other.txt"], Allow),
        // No folder makes it another file.
        (
            &["allow shell cat .env", "allow shell set *", "allow shell **"],
            &[
                "set -a; cat .env",
                "set -e; cat .env",
                "set -o posix; cat .env",
                "shopt -s extglob; cat .env",
                "set -f; cat ./.env",
                "set -- x; cat .env",
                "cd \"$d\"; cat .env",
                "cd \"$d\" && cp x .toold/config.toml",
            ],
            Deny,
        ),
        (
            &["allow shell make *"],
            &["set -a; make test", "set -aeu; make test", "set -C; make test", "set -- kk; make"],
            Allow,
        ),
    ];
    check(rows);
    let denied: &[&str] = &["allow shell **", "deny file.write **/deny.txt", "deny file.read **/docs/secret.txt"];
    let rows: &[RuleRow] = &[
        (
            denied,
            &[
                "echo hi >! deny.txt",
                "echo hi >!deny.txt",
                "echo hi 1>! deny.txt",
                "echo hi >! $PWD/deny.txt",
                "echo hi >>! deny.txt",
                "echo hi >>| deny.txt",
                "echo hi &>! deny.txt",
                "echo hi &>| deny.txt",
                "echo hi >&! deny.txt",
                "echo hi >>&! deny.txt",
                "echo hi &>>! deny.txt",
                "echo \"$(echo hi >! deny.txt)\"",
                "echo hi >| deny.txt",
            ],
            Deny,
        ),
        (
            denied,
            &[
                "cdpath=(docs); cd a; cat secret.txt",
                "cdpath=(docs); cd a && echo x > deny.txt",
                "cdpath+=(docs) && cd a && tee deny.txt",
                "typeset -a cdpath=(docs); cd a; cat secret.txt",
            ],
            Ask,
        ),
    ];
    check_in("zsh", rows);
}

#[test]
fn a_file_that_the_line_writes_is_unknown_inside_of_scripts_too() {
    check(&[
        (
            &["allow shell **", "allow file.write **", "deny shell git push *"],
            &[
                "echo 'git push' > x.sh; bash -c 'sh x.sh'",
                "echo 'git push' > x.sh; tmux new -d 'sh x.sh'",
                "cp docs/guide.md x.sh && sh -c './x.sh'",
            ],
            Ask,
        ),
        (
            &["allow shell **", "allow file.write **", "deny shell git push *"],
            &["echo x > a.txt; bash -c 'sh b.sh'"],
            Allow,
        ),
    ]);
}

#[test]
fn a_star_among_the_words_of_a_rule_that_denies_stands_for_any_words_or_none() {
    let rows: &[RuleRow] = &[
        (
            &[
                "allow shell **",
                "deny shell kubectl * delete *",
                "deny shell terraform * destroy *",
                "deny shell cargo * publish *",
            ],
            &[
                "kubectl delete pod x",
                "kubectl -n x delete pod y",
                "kubectl get pods -o name | xargs kubectl delete",
                "terraform destroy",
                "terraform -chdir=x destroy -auto-approve",
                "cargo publish",
                "cargo +nightly publish",
            ],
            Deny,
        ),
        (
            &[
                "allow shell **",
                "deny shell * secrets *",
                "deny shell * --force",
                "deny shell git * push",
                "deny shell aws * terminate-instances *",
            ],
            &[
                "kubectl get secrets",
                "gh secrets",
                "secrets x",
                "git push --force",
                "rm --force",
                "git push",
                "git -C x push",
                "aws ec2 terminate-instances",
                "aws --profile p ec2 terminate-instances --x y",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell git * push *", "deny shell kubectl * delete *", "deny shell docker * rm *"],
            &["git commit -m push", "git log --grep push", "kubectl get pods", "docker run --rm x", "docker ps"],
            Allow,
        ),
    ];
    check(rows);
}

/// A word with blanks, of a program that no table knows, may be a command that it runs, and so may the name of a program with its
/// options.
#[test]
fn a_program_that_is_not_known_may_run_what_its_words_say() {
    let rules: &[&str] = &[
        "allow shell **",
        "deny shell git push *",
        "deny shell npm publish *",
        "deny shell rm -rf *",
        "ask shell kubectl delete *",
    ];
    let rows: &[RuleRow] = &[
        (
            rules,
            &[
                "bench 'npm publish'",
                "poop 'git push origin main' 'git status'",
                "meta exec 'git push'",
                "run-s build 'npm publish --access public'",
                "npx tsc-watch --onSuccess 'npm publish'",
                "npx start-server-and-test start 3000 'CI=1 npm publish'",
                "chokidar 'src/**' -c 'npm test && git push'",
                "sbatch --wrap='git push'",
                "multitime -n 3 rm -rf build",
                "mpirun -n 2 rm -r -f build",
                "timelimit -t 3 rm -fr build",
                "salt '*' cmd.run 'kubectl delete pod x'",
            ],
            Ask,
        ),
        (
            rules,
            &[
                "cargo flamegraph -- npm publish",
                "cargo with 'x' -- git push",
                "deno run npm:npm publish",
                "deno run -A npm:npm@10 publish --access public",
                "deno x npm:npm publish",
                "deno run npm:/npm@10.2.0/npm publish",
                "yarn exec 'npm publish'",
                "bun exec 'npm publish'",
            ],
            Deny,
        ),
        (
            rules,
            &[
                "bench 'npm test'",
                "mytool push 'git status'",
                "mytool note -m 'git push is for people'",
                "bd create --title 'rm -rf fails'",
                "mytool rm x",
                "mytool rm --recursive x",
                "cargo nextest run -E 'test(push)'",
                "deno run npm:cowsay publish",
                "deno add npm:npm",
            ],
            Allow,
        ),
    ];
    check(rows);
}

#[test]
fn help_about_an_operation_is_asked_about_where_the_operation_is_denied() {
    let rules: &[&str] = &[
        "allow shell **",
        "deny shell git push *",
        "deny shell npm publish *",
        "deny shell gh pr merge *",
        "deny shell cargo publish *",
        "deny shell rm -rf *",
        "deny shell sudo *",
    ];
    let rows: &[RuleRow] = &[
        (
            rules,
            &[
                "git push --help",
                "npm publish --help",
                "npm help publish",
                "gh pr merge --help",
                "cargo publish --locked x --help",
                "docker exec web npm publish --help",
            ],
            Ask,
        ),
        (
            rules,
            &[
                "git push -- --help",
                "gh pr merge --title --help",
                "git push --help origin",
                "rm -rf --help",
                "rm -rf src --help",
                "sudo --help",
                "git push --help && git push",
            ],
            Deny,
        ),
        (&["allow shell **", "deny shell git push --help"], &["git push --help"], Deny),
        (rules, &["git status --help", "npm test --help", "cargo help build"], Allow),
    ];
    check(rows);
}

#[test]
fn a_push_to_an_address_needs_a_pattern_that_shows_it() {
    let rows: &[RuleRow] = &[
        (
            &["allow shell git push *"],
            &[
                "git push https://example.org/a.git main",
                "git push git@example.org:a.git HEAD",
                "git push ssh://example.org/a main",
                "git push --repo=https://example.org/a.git",
                "git push ../other main",
            ],
            Ask,
        ),
        (
            &["allow shell git push *"],
            &["git push", "git push origin main", "git push -u origin feature/x", "git push origin a:b"],
            Allow,
        ),
        (&["allow shell git push https://example.org/a.git *"], &["git push https://example.org/a.git main"], Allow),
    ];
    check(rows);
}

#[test]
fn a_rule_is_about_programs_that_do_the_same() {
    let rules: &[&str] = &[
        "allow shell **",
        "deny shell sudo *",
        "deny shell redis-cli flushall *",
        "deny shell npm run deploy *",
        "deny shell helm uninstall *",
    ];
    let rows: &[RuleRow] = &[
        (
            rules,
            &[
                "doas ls",
                "run0 ls",
                "valkey-cli flushall",
                "echo flushall | redis-cli",
                "redis-cli -n 1 <<< 'FLUSHALL async'",
                "run-s build deploy",
                "npx npm-run-all deploy",
                "turbo run deploy --filter=web",
                "lerna run deploy",
                "nx run web:deploy",
                "helm3 uninstall x",
            ],
            Deny,
        ),
        (
            rules,
            &[
                "echo ping | redis-cli",
                "run-s build test",
                "turbo run build",
                "nx run deploy:test",
                "run-s test -- deploy",
            ],
            Allow,
        ),
    ];
    check(rows);
}

#[test]
fn a_rule_for_a_script_is_about_the_file_in_the_sessions_folder() {
    let rows: &[RuleRow] = &[
        (
            &[
                "allow shell python3 scripts/report.py *",
                "allow shell bash scripts/check.sh *",
                "allow shell python3 top.py *",
            ],
            &[
                "python3 scripts/report.py",
                "cd docs && python3 ../scripts/report.py x",
                "cd scripts && python3 report.py",
                "(cd scripts && bash check.sh)",
                "cd docs && python3 ../top.py",
            ],
            Allow,
        ),
        (
            &[
                "allow shell python3 scripts/report.py *",
                "allow shell bash scripts/check.sh *",
                "allow shell python3 top.py *",
            ],
            &[
                "cd docs && python3 scripts/report.py",
                "cd docs && bash scripts/check.sh",
                "cd docs && python3 top.py",
                "cd \"$d\" && python3 scripts/report.py",
            ],
            Ask,
        ),
        (
            &["allow shell python3 *", "allow shell uv run *"],
            &["cd docs && python3 x.py", "cd docs && uv run pytest"],
            Allow,
        ),
        (
            &["allow shell **", "deny shell python3 scripts/report.py *"],
            &[
                "cd docs && python3 ../scripts/report.py",
                "cd scripts && python3 report.py x",
                "cd scripts; ./report.py",
            ],
            Deny,
        ),
        (&["allow shell **", "deny shell python3 scripts/report.py *"], &["cd docs && python3 report.py"], Allow),
    ];
    check(rows);
}

/// The time for a line must not grow with the square of its length: an agent goes on without an answer that takes too long.
/// Git takes settings and programs from such a folder whatever its name is.
#[test]
fn the_settings_of_a_repository_without_a_git_folder_are_protected() {
    let project = TestProject::make();
    let top = &project.place.workspace;
    write(
        top,
        &[("bare/HEAD", "ref: refs/heads/main\n"), ("bare/refs/x", ""), ("bare/objects/x", ""), ("a/config", "")],
    );
    let rules = ["allow shell **", "allow file.write {project}/**"];
    let rules: Vec<RuleLine> = rules.into_iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
    for (line, expected) in [
        ("echo | tee bare/config", Ask),
        ("cd bare && echo | tee config", Ask),
        ("cd bare/refs && echo > ../CONFIG", Ask),
        ("cp README.md bare/config", Ask),
        ("cp a/config bare", Ask),
        ("cp -r a/. bare/", Ask),
        ("mv a/config bare/", Ask),
        ("ln -s ../README.md bare/commondir", Ask),
        ("sed -i s/a/b/ bare/config.worktree", Ask),
        ("echo x >> bare/hooks/pre-commit", Ask),
        ("install -m 755 scripts/build.sh bare/hooks/anything", Ask),
        ("echo '* filter=x' > bare/info/attributes", Ask),
        ("mkdir bare/hooks", Ask),
        ("mv a/config a/x && mv a/x bare/config", Ask),
        ("git init --bare b.x && echo x > b.x/config", Ask),
        ("git init --bare && echo x > config", Ask),
        ("git init --separate-git-dir=b.x && echo x > b.x/config", Ask),
        ("echo x > bare/notes.txt", Allow),
        ("echo x > a/config", Allow),
        ("mkdir -p hooks info && echo x > hooks/useState.ts", Allow),
        ("git init x && echo x > x/config", Allow),
        ("git init --bare b.x && cat b.x/config", Allow),
    ] {
        let judged = judge(line, &project.place, &rules);
        assert_eq!(judged.verdict, expected, "{line}: {:?}", judged.parts);
    }
    // The need that the tools `write`, `edit` and `apply_patch` declare.
    for (file, expected) in
        [("bare/config", true), ("bare/hooks/new/x", true), ("bare/notes.txt", false), ("a/config", false)]
    {
        let need = write_need(&top.join(file), &mut Exclusions::default());
        assert_eq!(Policy::default().protected_write(top, &need).is_some(), expected, "{file}");
    }
}

#[test]
fn the_longest_lines_are_asked_about() {
    const LENGTH: usize = 250_000;
    const DEPTH: usize = 5_000;
    let project = TestProject::make();
    let rules = ["allow shell **", "deny shell git push *", "deny file.write {project}/tools/**"];
    let rules: Vec<RuleLine> = rules.into_iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
    let repeated = |text: &str| text.repeat(LENGTH / text.len());
    // The system opens no such path.
    assert_eq!(judge(&format!("cat {}", repeated("d/")), &project.place, &rules).verdict, Allow);
    for line in [
        format!("git log -p {}", repeated("a1 ")),
        format!("cat {}", repeated("b2 ")),
        format!("rm -r {}", repeated("c3 ")),
        format!("cd {} && cat x", repeated("e/")),
        format!("git log -p -- {}", repeated("':(glob)**/g/**' ")),
        format!("rm {}", repeated("*h* ")),
        format!("echo {}ls{}", "$(".repeat(DEPTH), ")".repeat(DEPTH)),
        format!("echo {}ls{}", "\"$(".repeat(DEPTH), ")\"".repeat(DEPTH)),
        format!("frob{}", repeated(" tools/i")),
    ] {
        let judged = judge(&line, &project.place, &rules);
        assert_eq!(judged.verdict, Ask, "{}", cut::before(&line, 40));
    }
}
