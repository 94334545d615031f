//! Programs that run other programs: rules for what they run count as if it were written alone.

use std::path::Path;

use toold_engine::policy::suggest::suggestions;
use toold_host::environment::Environment;
use toold_host::shell_grammar::{Surroundings, needs};
use toold_proto::permission::Verdict;
use toold_proto::tool::Category;

use crate::commands::folders::TestProject;
use crate::commands::judge::{RuleLine, judge};
use crate::commands::rules::check;

use Verdict::{Allow, Ask, Deny};

/// A line for each wrapper, with the command in the place of `CMD`, and the rule for its own permission: none if it
/// adds nothing to the command.
const HERE: &[(&str, Option<&str>)] = &[
    ("timeout 5 CMD", None),
    ("nice -n 5 CMD", None),
    ("env CI=1 CMD", None),
    ("time CMD", None),
    ("stdbuf -oL CMD", None),
    ("ionice -c 3 CMD", None),
    ("taskset -c 0,1 CMD", None),
    ("chronic CMD", None),
    ("bash -c 'CMD'", None),
    ("bash -lc 'CMD'", None),
    ("zsh -c 'CMD'", None),
    ("zsh -lc 'CMD'", None),
    ("sh -c 'CMD'", None),
    ("dash -c 'CMD'", None),
    ("nohup CMD", Some("nohup *")),
    ("setsid -f CMD", Some("setsid *")),
    ("chrt -b 0 CMD", Some("chrt *")),
    ("caffeinate -i CMD", Some("caffeinate *")),
    ("unbuffer CMD", Some("unbuffer *")),
    ("strace -f -e trace=file CMD", Some("strace *")),
    ("strace -f -o trace.txt CMD", Some("strace *")),
    ("ltrace -c CMD", Some("ltrace *")),
    ("valgrind --leak-check=full --tool=memcheck CMD", Some("valgrind *")),
    ("perf stat -r 3 -e cycles CMD", Some("perf stat *")),
    ("perf record -g -- CMD", Some("perf record *")),
    ("hyperfine -w 3 'CMD'", Some("hyperfine *")),
    ("hyperfine true 'CMD'", Some("hyperfine *")),
    ("hyperfine --prepare 'CMD' true", Some("hyperfine *")),
    ("watch -n 5 CMD", Some("watch *")),
    ("watch -n5 -d 'CMD'", Some("watch *")),
    ("watch -x CMD", Some("watch *")),
    ("script -qec 'CMD' out.log", Some("script *")),
    ("script -q -c 'CMD' out.log", Some("script *")),
    ("script -q out.log CMD", Some("script *")),
    ("sudo CMD", Some("sudo *")),
    ("sudo -u deploy -E CMD", Some("sudo *")),
    ("sudo -n CI=1 CMD", Some("sudo *")),
    ("sudo -s CMD", Some("sudo *")),
    ("doas -u deploy CMD", Some("doas *")),
    ("su -c 'CMD'", Some("su *")),
    ("su deploy -c 'CMD'", Some("su *")),
    ("su -s /bin/bash -c 'CMD' deploy", Some("su *")),
    ("runuser deploy -c 'CMD'", Some("runuser *")),
    ("runuser -u deploy -- CMD", Some("runuser *")),
    ("systemd-run --user --scope -p MemoryMax=2G CMD", Some("systemd-run *")),
    ("systemd-run --user -d -t -- CMD", Some("systemd-run *")),
    ("systemd-inhibit --what=sleep CMD", Some("systemd-inhibit *")),
    ("tmux new -d 'CMD'", Some("tmux *")),
    ("tmux new-session -d -s work 'CMD'", Some("tmux *")),
    ("tmux -L own new-session -d -s work CMD", Some("tmux *")),
    ("tmux new -d -s a \\; new -d -s b 'CMD'", Some("tmux *")),
    ("screen -dmS work CMD", Some("screen *")),
    ("screen -S work -dm CMD", Some("screen *")),
    ("nix develop -c CMD", Some("nix *")),
    ("nix develop --command CMD", Some("nix *")),
    ("nix shell nixpkgs#jq -c CMD", Some("nix *")),
    ("nix-shell -p jq --run 'CMD'", Some("nix-shell *")),
    ("direnv exec . CMD", Some("direnv *")),
    ("rustup run stable CMD", Some("rustup *")),
    ("parallel -j 4 ::: 'CMD'", Some("parallel *")),
    ("parallel -k CMD ::: a b", Some("parallel *")),
    ("parallel CMD {} ::: a b", Some("parallel *")),
    ("parallel -j 2 CMD -- a b", Some("parallel *")),
    ("xargs -n 1 CMD", None),
    // In no table.
    ("doppler run -- CMD", Some("doppler *")),
    ("doppler run -p shop -c dev -- CMD", Some("doppler run *")),
    ("doppler run --command='CMD'", Some("doppler run *")),
    ("op run --env-file=prod.env -- CMD", Some("op run *")),
    ("op run --no-masking CMD", Some("op run *")),
    ("infisical run --env=dev -- CMD", Some("infisical run *")),
    ("chamber exec shop -- CMD", Some("chamber *")),
    ("aws-vault exec dev -- CMD", Some("aws-vault exec *")),
    ("aws-vault exec -d 1h dev CMD", Some("aws-vault exec *")),
    ("dotenv -e .env.local -- CMD", Some("dotenv *")),
    ("dotenv -f .env.local run -- CMD", Some("dotenv *")),
    ("dotenvx run -f .env.local -- CMD", Some("dotenvx *")),
    ("env-cmd -f .env.local CMD", Some("env-cmd *")),
    ("cross-env CI=1 CMD", Some("cross-env *")),
    ("sops exec-env secrets.yaml 'CMD'", Some("sops *")),
    ("nodemon --exec 'CMD'", Some("nodemon *")),
    ("nodemon -w src -e ts -x 'CMD'", Some("nodemon *")),
    ("watchexec -e rs -- CMD", Some("watchexec *")),
    ("watchexec -r -w src CMD", Some("watchexec *")),
    ("cargo watch -s 'CMD'", Some("cargo watch *")),
    ("cargo watch -q -w src -- CMD", Some("cargo watch *")),
    ("cargo +nightly watch -c -s 'CMD'", Some("cargo *")),
    ("mise exec -- CMD", Some("mise exec *")),
    ("mise x node@20 -- CMD", Some("mise x *")),
    ("mise exec -c 'CMD'", Some("mise exec *")),
    ("rtx x node@20 -- CMD", Some("rtx *")),
    ("asdf exec CMD", Some("asdf exec *")),
    ("pyenv exec CMD", Some("pyenv exec *")),
    ("nvm exec 18 CMD", Some("nvm exec *")),
    ("nvm exec --silent CMD", Some("nvm exec *")),
    ("volta run --node 20 CMD", Some("volta run *")),
    ("corepack CMD", Some("corepack *")),
    ("conda run -n shop CMD", Some("conda run *")),
    ("gosu www CMD", Some("gosu *")),
    ("wait-for-it db:5432 -t 30 -- CMD", Some("wait-for-it *")),
    ("numactl -N 0 CMD", Some("numactl *")),
    ("concurrently 'true' 'CMD'", Some("concurrently *")),
    ("timeout 5 nice bash -c 'env CI=1 CMD'", None),
    ("sudo -u deploy bash -c 'timeout 5 CMD'", Some("sudo *")),
];

/// The wrappers whose command is in a container, on another machine, or a tool of a package.
const ELSEWHERE: &[(&str, &str)] = &[
    ("ssh web1 CMD", "ssh web1 *"),
    ("ssh -p 22 web1 CMD", "ssh *"),
    ("ssh web1 -p 22 CMD", "ssh web1 *"),
    ("ssh -4 -i key.pub -l me web1 'cd /srv && CMD'", "ssh *"),
    ("ssh web1 -- CMD", "ssh web1 *"),
    ("ssh web1 sudo CMD", "ssh web1 *"),
    ("ssh web1 'bash -lc \"CMD\"'", "ssh web1 *"),
    ("docker exec web CMD", "docker exec *"),
    ("docker exec -it -e A=1 -w /srv web CMD", "docker exec *"),
    ("docker exec web sh -c 'CMD'", "docker exec *"),
    ("docker run --rm alpine CMD", "docker run *"),
    ("docker run --rm -e A=1 --name x alpine:3 CMD", "docker run *"),
    ("docker --log-level error run alpine CMD", "docker *"),
    ("docker compose exec web CMD", "docker compose *"),
    ("docker compose -p shop run --rm web CMD", "docker compose *"),
    ("podman exec web CMD", "podman exec *"),
    ("podman run --rm alpine CMD", "podman run *"),
    ("nerdctl run --rm alpine CMD", "nerdctl run *"),
    ("kubectl exec web -- CMD", "kubectl exec *"),
    ("kubectl exec -it web -c app -- CMD", "kubectl exec *"),
    ("kubectl -n prod exec web -- sh -c 'CMD'", "kubectl *"),
    ("flatpak run --command=sh org.x.App -c 'CMD'", "flatpak run *"),
    ("npx CMD", "npx *"),
    ("npx -y CMD", "npx *"),
    ("npx -p x CMD", "npx *"),
    ("bunx CMD", "bunx *"),
    ("pnpm dlx CMD", "pnpm *"),
    ("yarn dlx CMD", "yarn *"),
    ("uvx CMD", "uvx *"),
    ("uvx --from x CMD", "uvx *"),
    ("uv tool run CMD", "uv *"),
    ("pipx run --spec x CMD", "pipx *"),
    // A wrapper that no table knows.
    ("wrap -- CMD", "wrap *"),
    ("wrap --level 3 x -- CMD", "wrap *"),
];

/// Runners of a project's tools, by the name and a rule for it.
const RUNNERS: &[(&str, &str)] = &[
    ("uv run CMD", "uv run *"),
    ("uv run -p 3.12 --extra dev CMD", "uv run *"),
    ("poetry run CMD", "poetry run *"),
    ("pipenv run CMD", "pipenv run *"),
    ("bundle exec CMD", "bundle exec *"),
    ("pnpm exec CMD", "pnpm exec *"),
    ("yarn exec CMD", "yarn exec *"),
    ("devbox run CMD", "devbox run *"),
    ("devbox run -- CMD", "devbox run *"),
    ("hatch run CMD", "hatch run *"),
    ("hatch run test:CMD", "hatch run *"),
    ("pixi run -e dev CMD", "pixi run *"),
    ("rye run CMD", "rye run *"),
    ("pdm run CMD", "pdm run *"),
];

/// Rules, a line, and the verdict.
type WrappedRow = (Vec<String>, String, Verdict);

#[track_caller]
fn check_all(rows: &[WrappedRow]) {
    let project = TestProject::make();
    let mut wrong = Vec::new();
    for (rules, line, expected) in rows {
        let read: Vec<RuleLine> = rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
        let judged = judge(line, &project.place, &read);
        if judged.verdict != *expected {
            let parts = judged.parts.iter().map(|part| format!("{} ({})", part.target, part.rule));
            let why = parts.collect::<Vec<_>>().join("; ");
            wrong.push(format!("{rules:?}: {line}: expected {expected:?}, got {:?}: {why}", judged.verdict));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

fn rules(all: &[&str]) -> Vec<String> {
    all.iter().map(|rule| (*rule).to_owned()).collect()
}

/// Each line with a command in the place of `CMD`.
fn wrapped(command: &str) -> impl Iterator<Item = String> {
    let others = ELSEWHERE.iter().chain(RUNNERS).map(|(line, _)| *line);
    HERE.iter()
        .map(|(line, _)| *line)
        .chain(others)
        .map(|line| line.replace("CMD", command))
        .collect::<Vec<_>>()
        .into_iter()
}

#[test]
fn what_is_denied_is_denied_inside_of_each_wrapper() {
    let mut rows = Vec::new();
    for line in wrapped("drop x").chain(wrapped("/opt/drop -a x")) {
        rows.push((rules(&["allow shell **", "deny shell drop *"]), line.clone(), Deny));
        rows.push((rules(&["allow shell **", "ask shell drop *"]), line, Ask));
    }
    check_all(&rows);
}

#[test]
fn a_rule_for_another_program_is_about_no_wrapper() {
    let rows = wrapped("mytool -la x").map(|line| (rules(&["allow shell **", "deny shell drop *"]), line, Allow));
    check_all(&rows.collect::<Vec<_>>());
}

#[test]
fn a_wrapper_that_adds_nothing_needs_no_rule_of_its_own() {
    let mut rows = Vec::new();
    for (wrapper, own) in HERE {
        let line = wrapper.replace("CMD", "mytool test");
        let inner = "allow shell mytool *".to_owned();
        rows.push((vec![inner.clone()], line.clone(), if own.is_none() { Allow } else { Ask }));
        if let Some(own) = own {
            rows.push((vec![format!("allow shell {own}"), inner], line.clone(), Allow));
            rows.push((vec![format!("allow shell {own}")], line, Ask));
        }
    }
    check_all(&rows);
}

#[test]
fn a_rule_for_the_wrapper_covers_what_runs_elsewhere() {
    let mut rows = Vec::new();
    for (wrapper, own) in ELSEWHERE {
        let line = wrapper.replace("CMD", "mytool -la x");
        rows.push((vec![format!("allow shell {own}")], line.clone(), Allow));
        rows.push((rules(&["allow shell mytool *"]), line, Ask));
    }
    check_all(&rows);
}

/// A runner starts a tool of the project, unless it is a program that toold knows.
#[test]
fn a_rule_for_a_runner_covers_the_projects_tools_alone() {
    let mut rows = Vec::new();
    for (wrapper, own) in RUNNERS {
        let rule = format!("allow shell {own}");
        rows.push((vec![rule.clone()], wrapper.replace("CMD", "mytool -q"), Allow));
        if !wrapper.contains("devbox") {
            for command in ["rm x", "curl -s https://example.org", "python -c 1", "bash x.sh"] {
                rows.push((vec![rule.clone()], wrapper.replace("CMD", command), Ask));
            }
            rows.push((vec![rule, "allow shell rm *".to_owned()], wrapper.replace("CMD", "rm x"), Allow));
        }
    }
    check_all(&rows);
    check(&[
        (
            &["allow shell **", "deny shell python -m http.server *", "deny shell tsc *"],
            &["uv run -m http.server", "uv run python -m http.server 80", "npx tsc@5 -p .", "npx -y @x/tsc"],
            Deny,
        ),
        (&["allow shell **", "deny shell deploy *"], &["npx -c 'deploy x'", "npx --call='deploy x' y"], Deny),
    ]);
}

/// Where the command or its files are not known, no wildcard covers it.
#[test]
fn what_a_wrapper_hides_is_a_doubt() {
    check(&[
        (
            &["deny shell drop *", "allow shell **"],
            &[
                "tmux send-keys -t work ls Enter",
                "tmux new -d 'a' \\; source-file x",
                "tmux -f own.conf new",
                "tmux display -p '#(id)'",
                "tmux new -d -s \"$x\"",
                "su deploy",
                "su - deploy",
                "su -c \"$x\"",
                "sudo -i",
                "sudo -s",
                "runuser -u deploy",
                "script out.log",
                "parallel",
                "parallel < list",
                "nix develop",
                "nix run nixpkgs#hello",
                "nix-shell",
                "screen -S work -X stuff ls",
                "systemd-run -p ExecStartPre=x ls",
                "strace -o '|x' ls",
                "valgrind --tool=../x ls",
                "perf stat -e ./x.c ls",
                "zsh -c 'print ${(e)x}'",
                "zsh script.zsh",
                "zsh",
                "ssh web1 \"$x\"",
                "docker exec web $x",
                "gdb -p 1",
                "doppler run --new-option x -- ls",
                "mise exec node@20",
                "nodemon --exec \"$x\"",
                "cargo watch -C web -s 'npm test'",
                "asdf exec $x",
            ],
            Ask,
        ),
        // The command counts, but which files it names does not show.
        (
            &[
                "allow shell cat *",
                "allow shell su *",
                "allow shell tmux *",
                "allow shell systemd-run *",
                "allow shell sudo *",
            ],
            &[
                "su - deploy -c 'cat x'",
                "tmux split-window 'cat x'",
                "tmux new-window -c '#{pane_current_path}' 'cat x'",
                "systemd-run --user cat x",
                "sudo -i cat x",
            ],
            Ask,
        ),
        (
            &["allow shell cat *", "allow shell tmux *", "allow shell systemd-run *"],
            &["tmux new -d -c /root 'cat x'", "systemd-run --working-directory=/root cat x"],
            Ask,
        ),
        (
            &["allow shell cat *", "allow shell parallel *"],
            &["ls | parallel cat", "parallel \"cat '{}'\" < list", "parallel cat ::: /root/x"],
            Ask,
        ),
        (&["allow shell uv run *"], &["uv run --with x pytest", "uv run --with-requirements r.txt pytest"], Ask),
        // Nothing is free as another user, in a session, or where zsh may read a line in another way.
        (&["allow shell tmux *", "allow shell su *"], &["tmux new -d ls", "su -c ls", "zsh -c 'ls *'"], Ask),
        (&[], &["zsh -c ls", "zsh -lc 'git status && cat README.md'"], Allow),
    ]);
}

/// One rule that denies does not refuse wrappers that are looked into, and a rule for exactly the command decides.
#[test]
fn a_rule_for_exactly_this_command_decides() {
    check(&[(
        &[
            "deny shell sudo *",
            "allow shell npm test",
            "allow shell make -f x",
            "allow shell ssh -o BatchMode=yes web1 uptime",
            "allow shell docker run -v /x:/w img ls",
            "allow shell tmux new -d 'npm test'",
            "allow shell tmux new -d -c src 'npm test'",
        ],
        &[
            "zsh -lc 'npm test'",
            "bash -lc 'npm test'",
            "make -f x",
            "ssh -o BatchMode=yes web1 uptime",
            "docker run -v /x:/w img ls",
            "tmux new -d 'npm test'",
            "zsh -lc 'cd src && npm test'",
            "tmux new -d -c src 'npm test'",
        ],
        Allow,
    )]);
}

#[test]
fn each_target_of_a_build_tool_counts() {
    check(&[
        (
            &[
                "allow shell **",
                "deny shell make deploy *",
                "deny shell ./gradlew deploy *",
                "deny shell just deploy *",
            ],
            &[
                "make deploy",
                "make ./deploy",
                "make build .//deploy",
                "make build deploy",
                "make -j4 build test deploy",
                "./gradlew build deploy",
                "./gradlew -q deploy",
                "just -q deploy",
                "just build deploy",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell mvn deploy *", "deny shell task deploy *"],
            &["mvn -q clean deploy", "mvn deploy -DskipTests", "task build deploy", "task -p deploy"],
            Deny,
        ),
        (
            &["allow shell **", "deny shell make deploy *", "deny shell mvn deploy *", "deny shell ./gradlew deploy *"],
            &["make build", "mvn package", "./gradlew test --tests deploy"],
            Allow,
        ),
        (
            &["allow shell mvn *", "allow shell ./gradlew *", "allow shell just *"],
            &[
                "mvn -s other.xml test",
                "mvn -Dmaven.ext.class.path=x.jar test",
                "./gradlew -I x.gradle test",
                "./gradlew -Dorg.gradle.jvmargs=-javaagent:x test",
                "just -f other deploy",
                "just x=1 build",
            ],
            Ask,
        ),
        (
            &[
                "allow shell mvn test *",
                "allow shell ./gradlew test *",
                "allow shell just build *",
                "allow shell npx tsc *",
            ],
            &[
                "mvn -q test",
                "mvn -B -ntp test -Dtest=A",
                "./gradlew -q test --tests A",
                "just -q build",
                "npx -y tsc -p .",
            ],
            Allow,
        ),
        (
            &[
                "allow shell make test *",
                "allow shell gmake -j4 test *",
                "allow shell just test *",
                "allow shell task test *",
                "allow shell ninja test *",
                "allow shell gradle :web:test *",
                "allow shell ./gradlew build *",
                "allow shell mvn test *",
            ],
            &[
                "make test deploy",
                "make -j8 -C web test deploy",
                "make test ./deploy",
                "make test DEBUG=1 deploy",
                "make test $TARGET",
                "gmake -j4 test deploy",
                "just test deploy",
                "task test deploy",
                "ninja test deploy",
                "gradle :web:test uploadArchives",
                "./gradlew build uploadArchives",
                "mvn test exec:java",
            ],
            Ask,
        ),
        (
            &[
                "allow shell make test *",
                "allow shell make clean lint-* *",
                "allow shell ninja *",
                "allow shell task test *",
                "allow shell mvn *",
            ],
            &[
                "make -j4 test DEBUG=1 -k",
                "make clean lint-js lint-css",
                "ninja -C build test install",
                "task test -p",
                "task test -- deploy",
                "mvn -q clean install",
            ],
            Allow,
        ),
    ]);
}

#[test]
fn clouds_are_judged_by_service_and_verb() {
    check(&[
        (
            &[
                "allow shell **",
                "deny shell aws s3 rm *",
                "deny shell aws ec2 terminate-instances *",
                "deny shell gcloud compute instances delete *",
                "deny shell az vm delete *",
                "deny shell rm *",
            ],
            &[
                "aws s3 rm s3://b --recursive",
                "aws --profile p s3 rm s3://b",
                "aws --region x ec2 terminate-instances --instance-ids i",
                "aws ec2 terminate-instances --profile p",
                "gcloud --project p compute instances delete x",
                "gcloud compute instances --format json delete x",
                "az --subscription s vm delete -n x",
                "az vm delete -n x",
                "gcloud compute ssh vm --command='rm -rf x'",
                "gcloud compute ssh vm --command 'sudo rm -rf x'",
            ],
            Deny,
        ),
        (
            &["allow shell aws s3 ls *", "allow shell gcloud compute instances list *", "allow shell az vm list *"],
            &[
                "aws s3 ls",
                "aws --output json s3 ls s3://b",
                "aws s3 ls s3://b --recursive --human-readable",
                "gcloud --format json compute instances list",
                "gcloud compute instances list --filter x",
                "az -o table vm list",
                "az vm list -g x --query '[].name'",
            ],
            Allow,
        ),
        (
            &["allow shell aws s3 ls *", "allow shell gcloud compute instances list *", "allow shell az vm list *"],
            &[
                "aws --profile prod s3 ls",
                "aws s3 ls --profile prod",
                "aws s3 ls --endpoint-url https://example.org",
                "aws s3 rm s3://b",
                "aws --new-option s3 ls",
                "gcloud --project prod compute instances list",
                "gcloud compute instances list --project=prod",
                "gcloud compute instances list --flags-file x",
                "az vm list --subscription prod",
                "az vm delete -n x",
            ],
            Ask,
        ),
        (&["allow shell aws --profile dev s3 ls *"], &["aws --profile dev s3 ls s3://b"], Allow),
        (
            &["allow shell aws *"],
            &[
                "aws s3 cp /root/x s3://b/x",
                "aws s3 cp s3://b/x /etc/x",
                "aws ec2 run-instances --user-data file:///root/x",
            ],
            Ask,
        ),
    ]);
}

#[test]
fn single_queries_are_known() {
    check(&[
        (
            &["allow shell psql *", "allow shell sqlite3 *", "allow shell mysql *"],
            &[
                "psql -d shop -c '\\dt'",
                "psql -h localhost -U shop -c 'select id from users limit 5'",
                "psql postgresql://me@localhost:5432/shop -c 'select 1'",
                "psql -l",
                "sqlite3 shop.db .tables",
                "sqlite3 -header -csv shop.db 'select count(*) from users;'",
                "sqlite3 shop.db '.schema users'",
                "mysql -u root -e 'show tables' shop",
                "mysql -N -B -D shop -e 'select id from users where name = \"x\"'",
            ],
            Allow,
        ),
        (
            &["allow shell psql *", "allow shell sqlite3 *", "allow shell mysql *"],
            &[
                "psql -c 'drop table users'",
                "psql -c 'select 1; drop table users'",
                "psql -c 'select pg_read_file($$x$$)'",
                "psql -c '\\! id'",
                "psql -f x.sql",
                "psql",
                "psql -o '|id' -c 'select 1'",
                "psql -h db.example.org -c 'select 1'",
                "psql postgresql://db.example.org/shop -c 'select 1'",
                "psql 'service=prod' -c 'select 1'",
                "psql -c \"select $x\"",
                "sqlite3 shop.db '.shell id'",
                "sqlite3 shop.db 'delete from users'",
                "sqlite3 shop.db \"select writefile('x', 'y')\"",
                "sqlite3 shop.db < x.sql",
                "sqlite3 -init x shop.db 'select 1'",
                "sqlite3 -cmd '.load x' shop.db 'select 1'",
                "sqlite3 /root/shop.db 'select 1'",
                "sqlite3 'file:/root/shop.db?mode=rwc' 'select 1'",
                "mysql -e 'drop table users'",
                "mysql -e 'system id'",
                "mysql -e '\\! id'",
                "mysql -h db.example.org -e 'select 1'",
                "mysql < x.sql",
            ],
            Ask,
        ),
    ]);
}

#[test]
fn forges_and_infrastructure_are_known_by_their_verbs() {
    check(&[
        (
            &[
                "allow shell gh pr view *",
                "allow shell gh run *",
                "allow shell helm list *",
                "allow shell helm template *",
            ],
            &[
                "gh pr view 42 --json title,body -q .title",
                "gh pr view 42 -R owner/name --comments",
                "gh run view 1 --log-failed",
                "helm -n prod list -q",
                "helm list -A",
                "helm template x ./chart -f values.yaml --set a=b",
            ],
            Allow,
        ),
        (
            &[
                "allow shell **",
                "deny shell gh pr merge *",
                "deny shell helm uninstall *",
                "deny shell terraform destroy *",
            ],
            &[
                "gh pr merge 42 --squash",
                "gh pr merge -R owner/name 42",
                "helm -n prod uninstall x",
                "terraform destroy -auto-approve",
                "terraform -chdir=infra destroy",
                "docker run hashicorp/terraform terraform destroy",
            ],
            Deny,
        ),
        (
            &["allow shell gh *", "allow shell helm *", "allow shell glab *", "allow shell terraform *"],
            &[
                "gh pr create --web",
                "gh pr merge 42 -R other/name",
                "gh api -F x=@.env repos",
                "gh unknown-extension",
                "gh auth status --show-token",
                "glab mr merge 1 -R other/name",
                "helm --kube-context prod list",
                "helm list --kube-context prod",
                "helm install x ./chart --post-renderer ./x",
                "helm install x ./chart --set-file a=.env",
                "terraform init -plugin-dir x",
            ],
            Ask,
        ),
    ]);
}

/// The widest suggestion for the first command of a line.
fn widest_offer(line: &str) -> String {
    let environment = Environment::default().with([("HOME", "/nowhere"), ("PATH", "/usr/bin:/bin")]);
    let cwd = Path::new("/nowhere");
    let mut surroundings = Surroundings { cwd, folders: &[], environment: &environment, may_read: &mut |_| true };
    let all = needs(line, &mut surroundings);
    let need = all.iter().find(|need| need.category() == Category::Shell).unwrap();
    suggestions(need, None).pop().map(|suggestion| suggestion.pattern).unwrap_or_default()
}

#[test]
fn an_offer_names_the_whole_operation() {
    let mut wrong = Vec::new();
    for (line, offer) in [
        ("aws s3 rm s3://b --recursive", "aws s3 rm s3://b --recursive"),
        ("aws s3 ls s3://b", "aws s3 ls *"),
        ("aws --region x ec2 describe-instances --max-items 3", "aws --region x ec2 describe-instances *"),
        ("aws ec2 wait instance-running --instance-ids i", "aws ec2 wait instance-running *"),
        ("gcloud compute instances list --filter x", "gcloud compute instances list *"),
        ("az vm list -g x", "az vm list *"),
        ("gh pr view 42", "gh pr view *"),
        ("gh api repos/a/b -q .name", "gh api repos/a/b -q .name"),
        ("terraform state rm x.y", "terraform state rm x.y"),
        ("helm -n prod upgrade x ./chart", "helm -n prod upgrade *"),
        ("kubectl get pods -A", "kubectl get *"),
        ("docker compose -p shop up -d", "docker compose -p shop up *"),
        ("docker exec web ls -la /x", "docker exec web ls *"),
        ("docker exec -it web rm -rf /x", "docker exec -it web rm -rf /x"),
        ("docker exec web sh -c 'ls -la'", "docker exec web sh -c 'ls -la'"),
        ("kubectl exec web -- npm run build -- -v", "kubectl exec web -- npm run build *"),
        ("ssh web1 systemctl status x", "ssh web1 systemctl status x"),
        ("npm run build -- -v", "npm run build *"),
        ("npm run -s build", "npm run -s build"),
        ("pnpm --filter web build --x", "pnpm --filter web build *"),
        ("pnpm --filter web deploy x", "pnpm --filter web deploy x"),
        ("yarn release --x", "yarn release *"),
        ("cargo xtask release --x", "cargo xtask release *"),
        ("cargo nextest run -p x", "cargo nextest *"),
        ("make deploy X=1", "make deploy X=1"),
        ("make -j4 test", "make -j4 test"),
        ("make test -j4", "make test *"),
        ("./gradlew test --tests A", "./gradlew test *"),
        ("mvn clean deploy -DskipTests", "mvn clean deploy *"),
        ("just deploy --force", "just deploy *"),
        ("npx tsc --noEmit -p x", "npx tsc *"),
        ("npx -y prisma migrate reset --force", "npx -y prisma migrate reset *"),
        ("uvx ruff check src/a.py", "uvx ruff check *"),
        ("uv run pytest -q", "uv run pytest *"),
        ("poetry run python -c 1", "poetry run python -c 1"),
        ("sudo systemctl restart x", "sudo systemctl restart x"),
        ("sudo rm -rf x", "sudo rm -rf x"),
        ("strace -f npm test -v", "strace -f npm test *"),
        ("su -c 'ls -la'", "su -c 'ls -la'"),
        ("psql -d shop -c 'select 1'", "psql -d shop -c 'select 1'"),
        ("tmux kill-session -t x", "tmux kill-session -t x"),
    ] {
        let found = widest_offer(line);
        if found != offer {
            wrong.push(format!("{line}: expected {offer:?}, got {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Neither the stack nor the time grows with what a line nests.
#[test]
fn thousands_of_nested_wrappers_are_no_command_that_is_allowed() {
    let mut rows = Vec::new();
    for wrapper in [
        "timeout 1 ",
        "uv run ",
        "poetry run ",
        "ssh -Z web1 ",
        "docker exec web ",
        "npx ",
        "sudo -u x ",
        "make a ",
        "wrap -- ",
    ] {
        rows.push((rules(&["allow shell mytool *"]), format!("{}mytool x", wrapper.repeat(9000)), Ask));
    }
    check_all(&rows);
}
