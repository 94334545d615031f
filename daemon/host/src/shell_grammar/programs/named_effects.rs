//! Effects of operations that no table describes: a rule about an effect means them, and a rule for the program alone
//! does not cover them.

use toold_proto::effect::Effect;

use crate::shell_grammar::arg::Arg;

/// Operations by their effect: a program, and the words behind it that are no options. By the programs' own manuals.
const NAMED: &[(Effect, &[&str])] = &[
    (
        Effect::Publish,
        &[
            "npm publish",
            "cargo release",
            "cargo smart-release",
            "cargo workspaces publish",
            "cargo ws publish",
            "pnpm publish",
            "yarn publish",
            "yarn npm publish",
            "bun publish",
            "lerna publish",
            "changeset publish",
            "semantic-release",
            "release-it",
            "goreleaser release",
            "twine upload",
            "poetry publish",
            "uv publish",
            "flit publish",
            "hatch publish",
            "pdm publish",
            "rye publish",
            "gem push",
            "docker push",
            "docker image push",
            "podman push",
            "nerdctl push",
            "buildah push",
            "skopeo copy",
            "crane push",
            "oras push",
            "vsce publish",
            "ovsx publish",
            "mix hex.publish",
            "dart pub publish",
            "flutter pub publish",
            "dotnet nuget push",
            "nuget push",
            "cabal upload",
            "stack upload",
            "opam publish",
            "luarocks upload",
            "conan upload",
            "git send-email",
            "git svn dcommit",
            "wrangler deploy",
            "wrangler publish",
            "vercel deploy",
            "netlify deploy",
            "firebase deploy",
            "flyctl deploy",
            "fly deploy",
            "surge",
            "serverless deploy",
            "sls deploy",
            "hub push",
            "hub release",
            "deno publish",
            "jsr publish",
            "maturin publish",
            "hg push",
            "svn commit",
            "svn ci",
            "sbt publish",
            "pod trunk push",
            "mkdocs gh-deploy",
            "gh-pages",
            "snapcraft upload",
            "rake release",
            "npm dist-tag",
            "npm deprecate",
            "npm access",
            "npm owner",
        ],
    ),
    (
        Effect::Destroy,
        &[
            "npm unpublish",
            "gem yank",
            "redis-cli flushall",
            "redis-cli flushdb",
            "rails db:drop",
            "rake db:drop",
            "lvremove",
            "vgremove",
            "userdel",
            "dropdb",
            "mysqladmin drop",
            "git filter-branch",
            "git filter-repo",
            "pulumi destroy",
            "cdk destroy",
            "serverless remove",
            "sls remove",
            "mkfs",
            "wipefs",
            "blkdiscard",
            "vagrant destroy",
            "lxc delete",
            "incus delete",
            "virsh undefine",
            "virsh destroy",
            "zfs destroy",
            "zpool destroy",
            "btrfs subvolume delete",
            "kind delete",
            "minikube delete",
            "docker system prune",
            "docker volume prune",
            "docker volume rm",
            "podman system prune",
            "podman volume rm",
            "rclone purge",
            "rclone delete",
            "rclone deletefile",
            "gsutil rm",
            "s3cmd del",
            "s3cmd rm",
            "mc rm",
            "mc rb",
            "heroku apps:destroy",
            "heroku pg:reset",
            "fly apps destroy",
            "flyctl apps destroy",
            "vault delete",
            "vault kv destroy",
            "etcdctl del",
            "consul kv delete",
            "supabase db reset",
            "prisma migrate reset",
        ],
    ),
    (
        Effect::Build,
        &[
            "pytest",
            "py.test",
            "mypy",
            "flake8",
            "pylint",
            "pyright",
            "tox",
            "nox",
            "golangci-lint",
            "rspec",
            "rubocop",
            "rake",
            "phpunit",
            "phpstan",
            "mix test",
            "mix format",
            "mix compile",
            "mix credo",
            "swift build",
            "swift test",
            "swift package dump-package",
            "tsc",
            "eslint",
            "prettier",
            "jest",
            "vitest",
            "ctest",
            "mocha",
            "ava",
            "karma",
            "playwright test",
            "cypress run",
            "rails test",
            "rails db:test:prepare",
            "artisan test",
            "paratest",
            "pre-commit run",
            "coverage run",
            "coverage report",
            "vue-tsc",
            "svelte-check",
            "next build",
            "next lint",
            "vite build",
            "turbo run",
            "nx run",
            "nx test",
            "nx build",
            "lerna run",
            "webpack",
            "rollup",
            "esbuild",
            "tsup",
            "stylelint",
            "markdownlint",
            "biome",
            "oxlint",
            "knip",
            "cspell",
            "bandit",
            "vulture",
            "pyflakes",
            "pycodestyle",
            "pydocstyle",
            "ktlint",
            "detekt",
            "swiftlint",
            "shellcheck",
            "hadolint",
            "yamllint",
            "actionlint",
            "tflint",
            "ansible-lint",
        ],
    ),
    (Effect::Privilege, &["sudoedit", "gosu", "su-exec", "run0", "sudo-rs", "setcap", "usermod", "visudo"]),
    (Effect::Process, &["killall5", "skill", "snice"]),
    // They read their settings and change files, and load no code of the project.
    (Effect::Write, &["ruff", "black", "isort"]),
    (Effect::Change, &["pulumi up", "cdk deploy", "ansible-playbook", "redis-cli", "kubectl patch", "kubectl edit"]),
    (
        Effect::Secret,
        &[
            "vault read",
            "vault kv get",
            "op read",
            "op item get",
            "pass show",
            "secret-tool lookup",
            "npm token",
            "doppler secrets",
            "infisical secrets",
            "chamber read",
            "sops decrypt",
            "ansible-vault view",
            "ansible-vault decrypt",
            "heroku config",
            "heroku auth:token",
            "kubectl create token",
            "flyctl auth token",
            "security find-generic-password",
            "security find-internet-password",
            "aws-vault export",
        ],
    ),
];

/// Tools that run code of the project to show something and need to change nothing, with one of the first options, if there
/// are any, and without those that begin like the others.
const SHOWING: &[(&str, &[&str], &[&str])] = &[
    ("pytest", &[], &["--cov", "--junit", "--basetemp", "--report-log", "--snapshot-update", "-n"]),
    ("py.test", &[], &["--cov", "--junit", "--basetemp", "--report-log", "--snapshot-update", "-n"]),
    ("unittest", &[], &[]),
    ("json.tool", &[], &[]),
    ("mypy", &[], &["--install-types", "--html-report", "--junit"]),
    ("flake8", &[], &["--output-file"]),
    ("pylint", &[], &["--output"]),
    ("pyright", &[], &["--createstub", "--writebaseline"]),
    ("phpstan", &[], &["--generate-baseline", "-b"]),
    ("tsc", &["--noEmit"], &["--incremental", "--generateTrace", "-b", "--build"]),
    ("eslint", &[], &["--fix", "--cache", "-o", "--output-file", "--init"]),
    ("prettier", &["--check", "-c", "--list-different", "-l"], &["--write", "-w", "--cache"]),
    ("golangci-lint run", &[], &["--fix", "--out", "--output"]),
    ("shellcheck", &[], &["--rcfile", "-o"]),
    ("hadolint", &[], &["-c", "--config"]),
    ("yamllint", &[], &[]),
    ("actionlint", &[], &["-shellcheck", "-pyflakes"]),
    ("pyflakes", &[], &[]),
    ("pycodestyle", &[], &[]),
    ("vulture", &[], &["--make-whitelist"]),
    ("bandit", &[], &["-o", "--output"]),
    ("markdownlint", &[], &["--fix", "-f", "-o", "--output"]),
    ("stylelint", &[], &["--fix", "-o", "--output", "--cache"]),
    ("vue-tsc", &["--noEmit"], &["--incremental", "-b", "--build"]),
    ("rubocop", &[], &["-a", "-A", "--auto", "--fix", "--out", "-o", "--regenerate", "--init"]),
    ("swift package dump-package", &[], &[]),
];

/// Whether the command runs code of the project only to show something.
pub(super) fn shows(words: &[Arg]) -> bool {
    let program = words.first().and_then(Arg::literal).and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let (options, plain): (Vec<&Arg>, Vec<&Arg>) = words.iter().skip(1).partition(|word| word.may_be_option());
    SHOWING.iter().any(|(operation, with, without)| {
        let mut names = operation.split(' ');
        let is_it = names.next() == Some(program)
            && names.enumerate().all(|(at, name)| plain.get(at).is_some_and(|word| word.is(name)));
        let is_one = |option: &&Arg| with.iter().any(|name| option.is(name));
        let is_wrong =
            |option: &&Arg| option.literal().is_none_or(|text| without.iter().any(|name| text.starts_with(name)));
        is_it && (with.is_empty() || options.iter().any(is_one)) && !options.iter().any(is_wrong)
    })
}

/// The effect of a command and the words that name its operation.
pub(super) fn of(words: &[Arg]) -> Option<(Effect, Vec<String>)> {
    let program = words.first()?.literal()?.rsplit('/').next()?;
    if program.starts_with("python") && words.get(1).is_some_and(|option| option.is("-m")) && words.len() > 2 {
        return of(&words[2..]);
    }
    // Words behind `--` are for the program that it runs: `npm test -- --grep publish`.
    let own = words.iter().skip(1).take_while(|word| !word.is("--"));
    let plain = own.filter_map(Arg::literal).filter(|text| !text.starts_with(['-', '+']));
    let plain: Vec<String> = plain.take(8).map(str::to_ascii_lowercase).collect();
    let occurs = |operation: &str| {
        let mut names = operation.split(' ');
        // A value of an option may stand between them.
        let is_program = names.next().is_some_and(|name| {
            name == program || program.strip_prefix(name).is_some_and(|rest| name == "mkfs" && rest.starts_with('.'))
        });
        let mut given = plain.iter();
        is_program && names.all(|name| given.any(|word| word == name))
    };
    NAMED
        .iter()
        .flat_map(|(effect, operations)| operations.iter().map(move |operation| (*effect, *operation)))
        .filter(|(_, operation)| occurs(operation))
        .max_by_key(|(_, operation)| operation.len())
        .map(|(effect, operation)| (effect, operation.split(' ').map(str::to_owned).collect()))
}
