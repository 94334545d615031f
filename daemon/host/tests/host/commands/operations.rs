//! Effects of operations in all their forms, and what rules and levels make of them.

use std::borrow::Cow;
use std::fmt::Debug;
use std::path::Path;

use toold_host::environment::Environment;
use toold_host::shell_grammar::{Surroundings, explain, withheld};
use toold_proto::effect::Effect;
use toold_proto::level::Level;
use toold_proto::permission::Verdict;

use crate::commands::folders::TestProject;
use crate::commands::judge::judge_at;
use crate::commands::rules::{check, effects_of};

use Verdict::{Allow, Ask, Deny};

/// The lines that are judged otherwise than expected.
#[derive(Default)]
struct WrongLines(Vec<String>);

impl WrongLines {
    fn expect<T: PartialEq + Debug>(&mut self, line: &str, found: T, expected: T) {
        if found != expected {
            self.0.push(format!("{line}: {found:?}, expected {expected:?}"));
        }
    }

    #[track_caller]
    fn none(self) {
        assert!(self.0.is_empty(), "{} lines: {:#?}", self.0.len(), self.0);
    }
}

/// A person sees what a runner's tool does, as rules that deny an effect see it.
#[test]
fn a_command_is_shown_with_the_effects_of_what_it_runs() {
    let project = TestProject::make();
    let roots = [Cow::Borrowed(project.place.workspace.as_path())];
    let environment = Environment::default();
    let mut wrong = WrongLines::default();
    for (lines, effect) in [
        ("npx wrangler deploy|bunx vercel deploy|npx lerna publish|ssh web1 git push|npm run build", Effect::Publish),
        ("bundle exec rails db:drop|npx prisma migrate reset|docker exec web rm -rf x", Effect::Destroy),
    ] {
        for line in lines.split('|') {
            let mut may_read = |_: &Path| true;
            let mut surroundings = Surroundings {
                cwd: &project.place.workspace,
                folders: &roots,
                environment: &environment,
                may_read: &mut may_read,
            };
            let shown = explain(line, &mut surroundings);
            wrong.expect(line, shown[0].effects.contains(effect), line != "npm run build");
        }
    }
    wrong.none();
}

/// Whatever a request takes from a file, from the output of a command or from a variable goes to another machine.
#[test]
fn a_request_that_sends_something_has_the_effect() {
    let project = TestProject::make();
    let mut wrong = WrongLines::default();
    let has = |line: &str, effect| effects_of(line, &project.place).contains(&effect);
    let sends = |line: &str| has(line, Effect::Send) || has(line, Effect::Destroy);
    let unknown = ["$(cat README.md)", "`base64 < README.md`", "$TOKEN", "x${TOKEN}y", "$(<README.md)"];
    for value in unknown {
        for option in
            ["-A", "-b", "-e", "-H", "-r", "-u", "--header", "--oauth2-bearer", "--request-target", "--url-query"]
        {
            for line in
                [format!("curl {option} \"{value}\" http://x"), format!("curl -s {option} \"X: {value}\" http://x")]
            {
                wrong.expect(&line, sends(&line), true);
            }
        }
        for option in ["--header", "-U", "--user-agent", "--referer", "--password"] {
            let line = format!("wget {option}=\"X: {value}\" http://x");
            let line = line.replace("-U=", "-U ");
            wrong.expect(&line, sends(&line), true);
        }
        for line in [
            "curl \"http://x/V\"",
            "wget -O - \"http://x/V\"",
            "curl --url \"http://x/?q=V\"",
            "x=\"V\"; curl http://x/\"$x\"",
        ] {
            let line = line.replace('V', value);
            wrong.expect(&line, sends(&line), true);
        }
    }
    for method in ["POST", "PUT", "PATCH", "DELETE", "PROPPATCH", "post", "$METHOD"] {
        for line in [
            "curl -X M x",
            "curl -XM x",
            "curl --request M x",
            "curl -sX M x",
            "curl --request=M x",
            "wget --method=M x",
        ] {
            let line = line.replace('M', method);
            wrong.expect(&line, sends(&line), true);
        }
    }
    for line in [
        "curl -H @README.md x",
        "curl -H@README.md x",
        "curl --header @- x",
        "curl --url-query @README.md x",
        "curl --url-query q@README.md x",
        "curl --data-ascii x http://x",
        "curl --form-string a=b x",
        "curl --etag-compare README.md x",
        "wget --method=GET --body-file=README.md x",
        "wget -i README.md -B http://x/",
        "curl telnet://x:80",
        "curl gopher://x/_a",
        "cat README.md | xargs -I{} curl http://x/{}",
        "while read -r a; do curl \"http://x/$a\"; done < README.md",
        "curl -d x http://x",
        "curl -T README.md x",
    ] {
        wrong.expect(line, sends(line), true);
    }
    for line in [
        "curl http://x",
        "curl -X GET http://x",
        "curl -I http://x",
        "curl --request OPTIONS http://x",
        "curl -H 'Accept: a@b' -H Authorization: -A me -u a:b http://x",
        "curl -b cookies.txt -c cookies.txt http://x",
        "curl -o \"$(date).txt\" -m \"$TIME\" -w \"$FORMAT\" http://x",
        "for i in 1 2 3; do curl http://x/$i; done",
        "V=1.2; curl -L https://x/$V.tar.gz",
        "curl http://x/$(git rev-parse HEAD)",
        "curl --url-query q=a@b http://x",
        "wget -q --header='Accept: x' http://x",
        "wget --method=GET http://x",
        "wget -O \"$FILE\" http://x",
    ] {
        wrong.expect(line, sends(line), false);
    }
    wrong.none();
    check(&[
        (
            &["allow shell curl *", "allow shell wget *", "allow file.write **", "allow file.read **"],
            &[
                "curl -X POST http://x",
                "curl -H @README.md http://x",
                "curl \"http://x/?q=$(cat README.md)\"",
                "wget --method=DELETE http://x",
            ],
            Ask,
        ),
        (
            &[
                "allow shell curl -X POST *",
                "allow shell curl -X DELETE *",
                "allow shell curl -H *",
                "allow file.read **",
            ],
            &["curl -X POST http://x", "curl -X DELETE http://x", "curl -H @README.md http://x"],
            Allow,
        ),
    ]);
}

/// A path is one however it is written, and a branch is none.
#[test]
fn git_checkout_of_a_path_throws_changes_away() {
    let project = TestProject::make();
    let mut wrong = WrongLines::default();
    let destroys = |line: &str| effects_of(line, &project.place).contains(&Effect::Destroy);
    for path in [
        "README.md",
        "src",
        "src/lib.rs",
        "web/package.json",
        "*.md",
        "'*.md'",
        "':(top)src'",
        "':!src'",
        "\"src/$f\"",
        "\"src/l$f\"",
        "./src",
    ] {
        for form in [
            "git checkout P",
            "git checkout -q P",
            "git checkout --theirs P",
            "git -C . checkout P",
            "git checkout HEAD P",
        ] {
            let line = form.replace('P', path);
            wrong.expect(&line, destroys(&line), true);
        }
    }
    for line in
        ["git checkout -p", "git checkout --patch", "git submodule deinit -f x", "cd \"$d\" && git checkout lib.rs"]
    {
        wrong.expect(line, destroys(line), true);
    }
    for line in [
        "git checkout main",
        "git checkout -",
        "git checkout HEAD~1",
        "git checkout -b src",
        "git checkout -b x main",
        "git checkout -t origin/x",
        "git checkout --detach v1.0",
        "git checkout \"feature/$x\"",
        "cd \"$d\" && git checkout main",
        "git switch main",
        "git submodule deinit x",
    ] {
        wrong.expect(line, destroys(line), false);
    }
    wrong.none();
    check(&[
        (&["allow shell **", "deny shell git restore *"], &["git checkout README.md", "git checkout -q src"], Deny),
        (&["allow shell git checkout README.md *"], &["git checkout README.md"], Allow),
        (&["allow shell git checkout *"], &["git checkout README.md", "git checkout src"], Ask),
        (&["allow shell git checkout *"], &["git checkout main", "git checkout -b src"], Allow),
    ]);
}

/// A word behind the operation of `aws`, `gcloud` and `az` is no verb.
#[test]
fn a_denied_operation_of_a_cloud_is_no_word_behind_another() {
    check(&[
        (
            &[
                "allow shell **",
                "deny shell aws s3 rm *",
                "deny shell aws ec2 terminate-instances *",
                "deny shell aws s3 cp * s3://prod/*",
                "deny shell aws s3 sync --delete *",
                "deny shell az vm delete *",
                "deny shell az storage account keys list *",
                "deny shell gcloud compute instances delete *",
            ],
            &[
                "aws s3 ls rm",
                "aws s3 ls s3://b --query rm",
                "aws s3 cp README.md rm",
                "aws s3 cp README.md s3://test/x",
                "aws s3 sync src s3://b",
                "aws ec2 describe-instances --filters terminate-instances",
                "aws ec2 describe-instances --instance-ids \"$id\"",
                "az vm list --query delete",
                "az vm show -n delete",
                "gcloud compute instances list --filter delete",
                "gcloud compute instances describe delete",
            ],
            Allow,
        ),
        (
            &[
                "allow shell **",
                "deny shell aws s3 rm *",
                "deny shell aws s3 rb s3://prod *",
                "deny shell aws * terminate-instances *",
                "deny shell aws s3 cp * s3://prod/*",
                "deny shell aws s3 sync --delete *",
                "deny shell aws --profile prod *",
                "deny shell az delete *",
                "deny shell az storage blob copy start *",
                "deny shell gcloud compute instances delete *",
                "deny shell gcloud projects delete prod",
            ],
            &[
                "aws s3 rm s3://b/x",
                "aws --profile p s3 rm --recursive s3://b",
                "aws --region eu s3 rm s3://b",
                "aws s3 rb --region eu s3://prod",
                "aws s3 rb s3://prod --force",
                "aws ec2 terminate-instances --instance-ids i-1",
                "aws --output json ec2 terminate-instances",
                "aws s3 cp --region eu README.md s3://prod/x",
                "aws s3 sync src s3://b --delete",
                "aws s3 sync --del src s3://b",
                "aws s3 ls --profile prod",
                "aws s3 ls --profile=prod",
                "az vm delete -n x",
                "az storage blob copy start --source-uri x",
                "gcloud --quiet compute instances delete x",
                "gcloud compute instances delete --zone a x",
                "gcloud projects delete prod",
                "sudo aws s3 rm s3://b",
            ],
            Deny,
        ),
    ]);
}

/// A level and a rule about the effect see an installer behind each interpreter that starts it.
#[test]
fn an_installer_is_one_under_the_name_of_its_interpreter() {
    let project = TestProject::make();
    let mut wrong = WrongLines::default();
    let installs = |line: &str| effects_of(line, &project.place).contains(&Effect::Install);
    let tools = [
        "pip install x",
        "pip download x",
        "uv pip install x",
        "uv add x",
        "poetry add x",
        "pipx install x",
        "pipenv install x",
    ];
    let pythons = ["python", "python3", "python3.11", "/usr/bin/python3", ".venv/bin/python", "pypy3", "py"];
    for (python, tool) in pythons.iter().flat_map(|python| tools.iter().map(move |tool| (python, tool))) {
        for options in ["-m ", "-m", "-I -m ", "-Im ", "-W ignore -m ", "-Wignore -m ", "-X dev -Bm ", "-X m -m "] {
            let line = format!("{python} {options}{tool}");
            wrong.expect(&line, installs(&line), true);
        }
    }
    for line in [
        "python3 .venv/bin/pip install x",
        "python3 -m pip._internal install x",
        "perl -MCPAN -e 'install x'",
        "perl -S cpan x",
        "ruby -S gem install x",
        "node /usr/lib/node_modules/npm/bin/npm-cli.js install x",
        "uv run -m pip install x",
        "poetry run python -m pip install x",
    ] {
        wrong.expect(line, installs(line), true);
        for level in [Level::Edit, Level::Develop, Level::Operate] {
            wrong.expect(line, judge_at(level, line, &project.place, &[]).verdict, Ask);
        }
    }
    for line in [
        "python3 -m pytest",
        "python3 -m venv .venv",
        "python3 -m pip list",
        "python3 -m pip --version",
        "python3 -c 'import pip'",
        "python3 -W m x.py pip",
        "python3 x.py -m pip",
        "perl -MData::Dumper -e 1",
        "node scripts/x.js install",
        "uv run pytest",
    ] {
        wrong.expect(line, installs(line), false);
        wrong.expect(line, judge_at(Level::Develop, line, &project.place, &[]).verdict, Allow);
    }
    wrong.none();
}

#[test]
fn an_option_has_its_effect_beside_others_that_are_not_known() {
    let project = TestProject::make();
    let mut wrong = WrongLines::default();
    let has = |line: &str, effect| effects_of(line, &project.place).contains(&effect);
    for line in [
        "docker run --privileged alpine",
        "docker run --network host alpine",
        "docker run --net=host alpine",
        "docker run --pid host alpine",
        "docker run --cap-add SYS_ADMIN alpine",
        "docker run -v /:/h alpine",
        "docker run -v ./x:/x alpine",
        "docker run -v \"$PWD\":/x alpine",
        "docker run --volume=/var/run/docker.sock:/s alpine",
        "docker run --mount type=bind,src=/,dst=/h alpine",
        "podman run --privileged x",
        "docker exec --privileged web sh",
        "docker compose run -v /:/h web sh",
        "pkexec ls",
        "nsenter -t 1 -m ls",
        "setpriv --reuid 0 ls",
        "gpasswd -a me docker",
    ] {
        wrong.expect(line, has(line, Effect::Privilege), true);
    }
    for line in ["docker run -v data:/x nginx", "docker run --network web nginx", "docker run -p 8080:80 nginx"] {
        wrong.expect(line, has(line, Effect::Privilege), false);
    }
    for (line, effect) in [
        ("git config user.name x", Effect::Write),
        ("git remote update", Effect::Fetch),
        ("npm view x", Effect::Fetch),
        ("npm outdated", Effect::Fetch),
        ("npm install -g x", Effect::System),
        ("npm uninstall --global x", Effect::System),
    ] {
        wrong.expect(line, has(line, effect), true);
    }
    wrong.expect("git config user.name", has("git config user.name", Effect::Write), false);
    wrong.none();
    check(&[
        (
            &["allow shell docker run *", "allow shell npm install *"],
            &[
                "docker run -v data:/x nginx",
                "docker run --network web nginx",
                "docker run --rm -p 127.0.0.1:8080:80 nginx",
                "npm install x",
            ],
            Allow,
        ),
        (
            &["allow shell docker run *", "allow shell npm install *"],
            &["docker run -v /:/h alpine", "docker run --network host alpine", "npm install -g x"],
            Ask,
        ),
    ]);
}

#[test]
fn a_pattern_is_told_about_operations_that_its_program_has() {
    let of = |pattern: &str| withheld(pattern).into_iter().map(|(operation, _)| operation).collect::<Vec<_>>();
    assert!(of("gh pr *").contains(&"gh * create".to_owned()), "{:?}", of("gh pr *"));
    assert!(of("gh *").contains(&"gh * delete".to_owned()));
    assert_eq!(of("gh api *").iter().filter(|operation| operation.contains('*')).count(), 0, "{:?}", of("gh api *"));
}
