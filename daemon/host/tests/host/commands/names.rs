//! One operation under several names, from another folder, behind programs that no table knows, and by the paths of files.

use toold_proto::permission::Verdict;

use crate::commands::folders::{TestProject, write};
use crate::commands::judge::{RuleLine, judge};
use crate::commands::rules::check;

use Verdict::{Allow, Ask, Deny};

#[test]
fn a_rule_that_denies_an_operation_means_all_of_its_names() {
    check(&[
        (
            &["allow shell **", "deny shell npm install *", "deny shell npm run deploy *"],
            &[
                "npm i x",
                "npm add x",
                "npm -w web i x",
                "npm isntall x",
                "npm run-script deploy",
                "npm rum deploy",
                "npm run -w web deploy",
                "bash -c 'npm i x'",
            ],
            Deny,
        ),
        (&["allow shell **", "deny shell npm i *"], &["npm install x", "npm add x"], Deny),
        (&["allow shell **", "deny shell npm install *"], &["npm test", "npm run install-hooks", "npm ci"], Allow),
        (
            &["allow shell **", "deny shell pip install *"],
            &[
                "pip3 install x",
                "pip3.11 install x",
                ".venv/bin/pip install x",
                "python3 -m pip install x",
                "python3.11 -I -m pip install x",
                "uv run pip install x",
            ],
            Deny,
        ),
        (&["allow shell **", "deny shell pip install *"], &["pip list", "python3 -m pytest", "python3 x.py"], Allow),
        (
            &[
                "allow shell **",
                "deny shell docker compose down *",
                "deny shell docker rmi *",
                "deny shell docker container rm *",
            ],
            &["docker-compose down", "docker-compose -f x.yml down", "docker image rm x", "docker rm x"],
            Deny,
        ),
        (
            &["allow shell **", "deny shell make deploy *", "deny shell gradle publish *", "deny shell mvn deploy *"],
            &[
                "gmake deploy",
                "make VAR=1 deploy",
                "./gradlew publish",
                "gradle :web:publish",
                "./mvnw deploy",
                "mvn deploy:deploy",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell yarn run deploy *", "deny shell git add *", "deny shell cargo build *"],
            &["yarn deploy", "git stage x", "git -C . stage x", "cargo b", "cargo +nightly b"],
            Deny,
        ),
        // Programs that take the beginning of a name for it.
        (
            &[
                "allow shell **",
                "deny shell npm publish *",
                "deny shell npm run deploy *",
                "deny shell gem push *",
                "deny shell hg push *",
                "deny shell bundle remove *",
                "deny shell composer require *",
                "deny shell ip link *",
                "deny shell tmux kill-server *",
            ],
            &[
                "npm publ",
                "npm -s pub --tag next",
                "npm --prefix web publis",
                "npm run-s deploy",
                "gem pus x.gem",
                "hg -R repo pus",
                "chg pus",
                "bundle rem x",
                "composer req x",
                "ip li set eth0 down",
                "tmux kill-ser",
                "bash -c 'npm publ'",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell npm publish *", "deny shell hg push *"],
            &["npm pack publ", "npm run pub", "npm unpublish x", "hg status pus", "hg pull"],
            Allow,
        ),
        // Operations that an option, an operand or another one does.
        (
            &[
                "allow shell **",
                "deny shell git branch --delete --force *",
                "deny shell git branch -M *",
                "deny shell git push --force *",
                "deny shell git push --delete *",
                "deny shell git switch -C *",
                "deny shell terraform destroy *",
                "deny shell apt-get purge *",
                "deny shell cp -r *",
                "deny shell systemctl stop *",
            ],
            &[
                "git branch -D x",
                "git branch -fd x",
                "git -C . branch -qD x",
                "git branch -m --force a b",
                "git push origin +main",
                "git push origin :main",
                "git push --mirror",
                "git checkout -B x",
                "terraform apply -destroy",
                "terraform -chdir=src apply --destroy -auto-approve",
                "apt-get remove --purge x",
                "apt remove -y --purge x",
                "cp -a x y",
                "systemctl disable --now x",
            ],
            Deny,
        ),
        (
            &[
                "allow shell **",
                "deny shell git branch --delete --force *",
                "deny shell git branch -D *",
                "deny shell git push --force *",
                "deny shell terraform destroy *",
                "deny shell cp -a *",
            ],
            &["git branch -d x", "git branch -f x HEAD", "git push origin main:main", "terraform apply", "cp -r x y"],
            Allow,
        ),
        // An approval is for the name that it has.
        (&["allow shell npm install *"], &["npm install"], Allow),
        (&["allow shell npm publish *", "allow shell git branch -d *"], &["npm publ", "git branch -D x"], Ask),
        (&["allow shell git branch -D *"], &["git branch -D x"], Allow),
        (&["allow shell pip install *"], &["python3.11 -m pip install x"], Ask),
    ]);
}

/// Options of many programs run what stands in them.
#[test]
fn a_word_that_the_shell_changes_may_be_an_option_that_runs_a_program() {
    check(&[
        (
            &["allow shell **", "deny shell rm *"],
            &[
                "make $TARGET",
                "make x$TARGET",
                "make -j$JOBS test",
                "make -C $FOLDER",
                "find \"$dir\" -name x",
                "cargo test \"$name\"",
                "git fetch origin \"$branch\"",
                "rsync \"$flags\" src docs",
                "python3 \"$script\"",
                "python3 -c \"$code\"",
                "perl -ne \"$code\" README.md",
                "git ls-files --others --exclude-standard $x | xargs make",
            ],
            Ask,
        ),
        (
            &["allow shell **", "deny shell rm *"],
            &[
                "make test",
                "make -j\"$JOBS\" test",
                "make -C src test",
                "cargo test -- \"$name\"",
                "git commit -m \"$message\"",
                "git checkout \"$branch\"",
                "git show \"$hash\"",
                "git tag \"$version\"",
                "docker rm \"$id\"",
                "docker logs $id",
                "kubectl get pods \"$name\"",
                "gh pr view \"$number\"",
                "systemctl restart \"$unit\"",
                "kill $pid",
                "python3 tool.py \"$name\" $more",
                "python3 -m pytest \"$name\"",
                "mytool run $x",
            ],
            Allow,
        ),
        (&["allow shell **"], &["make $TARGET", "python3 -c \"$code\""], Allow),
        (
            &["allow shell **", "deny shell rm *"],
            &["perl -ne 'system \"rm x\"' README.md", "python3.11 -c 'import os; os.system(\"rm x\")'"],
            Deny,
        ),
    ]);
}

#[test]
fn a_command_in_another_folder_names_the_files_there() {
    check(&[
        (
            &["allow shell **", "deny file.write {project}/web/**"],
            &[
                "env -C web touch x",
                "env --chdir=web touch x",
                "pnpm -C web exec touch x",
                "pnpm exec -C web touch x",
                "yarn --cwd web exec touch x",
                "uv run --directory web touch x",
                "uv --directory web run touch x",
                "poetry -C web run touch x",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny file.write {project}/x"],
            &["env -C web touch x", "npm --prefix web exec touch y"],
            Allow,
        ),
        (&["allow shell uv run *"], &["uv --directory web run pytest", "uv run --directory web pytest"], Allow),
        (&["allow shell pnpm exec *"], &["pnpm -C web exec vitest"], Allow),
        (&[], &["env -C .. cat notes", "env -C /root cat notes"], Ask),
        (&[], &["env -C src cat lib.rs"], Allow),
    ]);
}

#[test]
fn a_program_in_no_table_may_run_an_operation_of_another() {
    check(&[
        (
            &["allow shell **", "deny shell git push *"],
            &[
                "wrap git push",
                "wrap -x 3 git push",
                "wrap -c 'git push'",
                "wrap --exec 'git push -f'",
                "hatch -e test run git push",
                "wrap git -C . push",
                "wrap -x 3 git --no-pager push",
                "wrap git -c user.name=x -P push",
                "wrap -c 'git -C . push'",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell git push *", "deny shell npm *"],
            &[
                "brew install git npm",
                "wrap git",
                "wrap -m 'git push'",
                "wrap push",
                "wrap git x push",
                "wrap git log push",
            ],
            Allow,
        ),
        (
            &["allow shell **", "deny shell rm *"],
            &[
                "sshpass -p x rm y",
                "ifne rm x",
                "run0 rm x",
                "cpulimit -l 50 rm x",
                "pdm -p web run rm x",
                "xonsh -c 'rm x'",
            ],
            Deny,
        ),
        (&["allow shell **", "deny shell rm *"], &["dvc rm x"], Allow),
    ]);
}

#[test]
fn git_writes_the_files_whose_paths_it_is_given() {
    check(&[
        (
            &["allow shell **", "deny file.write {project}/web/**"],
            &[
                "git checkout -- web/package.json",
                "git checkout web/package.json",
                "git checkout HEAD~1 web/gone",
                "git checkout HEAD -- web",
                "git checkout .",
                "git checkout -- .",
                "git checkout HEAD -- ':(top)web'",
                "git checkout -- '*.json'",
                "git -C web checkout -- package.json",
                "git restore web/package.json",
                "git restore .",
                "git restore -s HEAD~1 -- .",
                "git restore --source=HEAD :/",
                "git rm -r web",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny file.write {project}/web/**"],
            &[
                "git checkout main",
                "git checkout -b web",
                "git checkout -- src",
                "git restore src/lib.rs",
                "git checkout -- ':!web'",
            ],
            Allow,
        ),
        // A folder with a secret that is not tracked is no reason to refuse what Git does with the others.
        (
            &["allow shell git restore *", "allow shell git checkout -- *"],
            &["git restore .", "git checkout -- ."],
            Allow,
        ),
        (
            &["allow shell **", "deny file.write {project}/web/**"],
            &[
                "chattr +i web/package.json",
                "setfacl -m u:me:r web/package.json",
                "tar -xf a.tar -C web",
                "patch web/package.json p.diff",
                "find . -fprintf web/x %p",
            ],
            Deny,
        ),
    ]);
}

/// GNU programs and Git take the beginning of a long option for it.
#[test]
fn a_rule_that_denies_an_option_means_its_beginnings() {
    check(&[
        (
            &[
                "allow shell **",
                "deny shell rm -rf *",
                "deny shell git push -f *",
                "deny shell git reset --hard *",
                "deny shell git commit -n *",
                "deny shell chmod -R *",
            ],
            &[
                "rm --recurs --for x",
                "rm -f --rec x",
                "rm --r --f x",
                "git push --forc",
                "git push origin main --fo",
                "git reset --har",
                "git -C . reset --ha HEAD",
                "git commit --mess x --no-ver",
                "chmod --recu 700 x",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell rm -rf *", "deny shell git push -f *"],
            &["rm --for x", "rm --recurs x", "git push --fol", "git push --tag"],
            Allow,
        ),
        // What is abbreviated is covered by no wildcard.
        (&["allow shell rm --force *", "allow shell git push --tags *"], &["rm --forc x", "git push --tag"], Ask),
        (&["allow shell **", "deny shell go test -race *"], &["go test --race ./...", "go test -race ./..."], Deny),
    ]);
}

/// Git runs what its settings name, with any command after.
#[test]
fn a_setting_that_may_name_a_program_is_a_doubt() {
    check(&[
        (
            &["allow shell **", "deny shell rm *"],
            &[
                "git config core.pager x",
                "git config --global core.hooksPath x",
                "git config --add diff.x.textconv x",
                "git config set core.editor x",
                "git config -f .git/config core.fsmonitor x",
                "git config \"$key\" x",
            ],
            Ask,
        ),
        (
            &["allow shell **", "deny shell rm *"],
            &["git config core.pager 'rm -rf x'", "git config alias.x '!rm x'"],
            Deny,
        ),
        (
            &["allow shell **", "deny shell rm *"],
            &[
                "git config user.name Ada",
                "git config --unset core.pager",
                "git config --get core.pager",
                "git config set user.email ada@example.com",
            ],
            Allow,
        ),
        (&["allow shell git *"], &["git config core.pager x"], Ask),
    ]);
}

/// A person is asked where a command may throw away changes of a file that may not be written, or a patch may change it.
#[test]
fn what_git_throws_away_is_compared_with_rules_that_deny_writing() {
    let rules = &["allow shell **", "deny file.write **/README.md", "deny file.write **/note.txt"];
    check(&[
        (
            rules,
            &[
                "git reset --hard",
                "git reset -q --hard HEAD~1",
                "git reset --har",
                "git checkout -f main",
                "git switch --discard-changes main",
                "git stash",
                "git stash push -m x",
                "git stash pop",
                "git apply fix.diff",
                "git apply --check --apply fix.diff",
                "git am fix.mbox",
                "git -C src stash",
                "echo x > other; git stash -u",
            ],
            Ask,
        ),
        (
            rules,
            &[
                "git reset",
                "git reset --soft HEAD~1",
                "git checkout main",
                "git switch main",
                "git stash list",
                "git stash drop",
                "git clean -n",
                "git clean -fd",
                "git apply --check fix.diff",
                "git apply --stat fix.diff",
                "git am --abort",
                "git pull",
            ],
            Allow,
        ),
        (&["allow shell **", "deny file.write **/data/*"], &["git reset --hard"], Ask),
        (&["allow shell git stash", "deny file.write **/README.md"], &["git stash"], Allow),
        (&["allow shell git *", "deny file.write **/elsewhere/**"], &["git stash", "git stash pop"], Allow),
    ]);
    let project = TestProject::make();
    let read: Vec<RuleLine> = rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect();
    write(&project.place.workspace, &[("src/note.txt", "untracked\n")]);
    for (line, verdict) in [("git clean -f", Ask), ("git clean -n", Allow), ("git stash -a", Ask)] {
        assert_eq!(judge(line, &project.place, &read).verdict, verdict, "{line}");
    }
}
