//! Ways around rules that users of the documents have found: each row is rules, lines that do what the rules are about, and the
//! verdict.

use toold_proto::permission::Verdict;

use crate::commands::rules::{RuleRow, check};

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
