//! Denials of an operation: commands in the words of remote tools and wrappers, and values that are no operation.

use toold_proto::permission::Verdict;

use crate::commands::rules::check;

use Verdict::{Allow, Ask, Deny};

#[test]
fn commands_that_clouds_run_elsewhere_are_denied_there() {
    const RULES: &[&str] = &["allow shell **", "deny shell rm -rf *"];
    check(&[
        (
            RULES,
            &[
                "az vm run-command invoke -g g -n vm --command-id RunShellScript --scripts 'rm -rf /srv'",
                "az vm run-command invoke -g g -n vm --command-id RunShellScript --scripts 'cd /srv' 'rm -rf x'",
                "az vm run-command create --script='rm -rf /srv' -g g --vm-name vm --name r",
                "az aks command invoke -g g -n k --command 'rm -rf /srv'",
                "az container exec -g g -n c --exec-command 'rm -rf /srv'",
                "az acr run -r r --cmd 'rm -rf /srv' /dev/null",
                "aws ssm send-command --document-name AWS-RunShellScript --parameters commands='rm -rf /srv'",
                "aws ssm send-command --document-name AWS-RunShellScript --parameters 'commands=[\"cd /\",\"rm -rf srv\"]'",
                "aws ssm send-command --document-name AWS-RunShellScript --parameters '{\"commands\":[\"rm -rf /srv\"]}'",
                "aws ecs execute-command --cluster c --task t --interactive --command 'rm -rf /srv'",
                "aws ecs run-task --cluster c --overrides '{\"x\":[{\"command\":[\"sh\",\"-c\",\"rm -rf /srv\"]}]}'",
                "aws ecs run-task --cluster c --overrides '{\"x\":[{\"command\":[\"rm\",\"-rf\",\"/srv\"]}]}'",
                "aws ec2 run-instances --user-data 'rm -rf /srv' --image-id i",
                "gcloud compute ssh vm --command 'rm -rf /srv'",
                "gcloud compute instances create vm --metadata startup-script='rm -rf /srv'",
                "gcloud run jobs create j --image i --command rm --args=-rf,/srv",
                "docker service create alpine rm -rf /srv",
            ],
            Deny,
        ),
        (
            RULES,
            &[
                "az vm run-command invoke -g g -n vm --command-id RunShellScript --scripts 'df -h'",
                "aws ssm send-command --document-name AWS-RunShellScript --parameters commands='df -h'",
                "aws ec2 create-tags --resources i --tags Key=rm,Value=-rf",
                "gcloud compute instances list --filter 'description:rm -rf'",
                "az repos pr create --description 'rm -rf is gone'",
            ],
            Allow,
        ),
    ]);
}

#[test]
fn a_wrapper_may_hand_one_text_to_a_shell() {
    check(&[
        (
            &["allow shell **", "deny shell npm publish *"],
            &[
                "pueue add 'npm publish'",
                "pueue add --label x 'npm publish --tag next'",
                "retry -t 3 'npm publish'",
                "nq npm publish",
                "please npm publish",
                "timeout 5 'npm publish'",
                "yarn run npm publish",
                "yarn --cwd web run npm publish",
                "bun run --bun npm publish",
                "pnpm run npm publish",
                "npx --no npm publish",
                "bunx npm publish",
                "pnpm exec npm publish",
                "zx -e 'await $`npm publish`'",
                "npx zx --eval 'await $`npm publish`'",
                "docker exec web node -e 'require(\"child_process\").execSync(\"npm publish\")'",
                "ssh web1 \"python3 -c 'import os; os.system(\\\"npm publish\\\")'\"",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell frobnicate now *"],
            &["xterm -e frobnicate now", "alacritty --command frobnicate now", "pdsh -w web1 frobnicate now"],
            Ask,
        ),
    ]);
}

#[test]
fn a_value_is_no_operation() {
    check(&[
        (
            &["allow shell **", "deny shell make deploy *", "deny shell just deploy *", "deny shell mvn deploy *"],
            &[
                "make test ENV=deploy",
                "make ENV=deploy test",
                "make -j4 test TARGET=deploy",
                "just test target=deploy",
                "just test deploy=1",
                "mvn -Dstage=deploy test",
            ],
            Allow,
        ),
        (
            &["allow shell **", "deny shell make deploy *", "deny shell just deploy *", "deny shell mvn deploy *"],
            &[
                "make deploy ENV=test",
                "make ENV=test deploy",
                "make test deploy",
                "make test CMD='make deploy'",
                "make --eval='x:;make deploy' x",
                "just target=x deploy",
                "mvn -Dstage=test deploy",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell git push *", "deny shell rm -rf *"],
            &["make test CMD='git push'", "make test 'CLEAN=rm -rf x'"],
            Deny,
        ),
        // A recipe may run it.
        (&["allow shell make *"], &["make test ENV=prod", "make release VERSION=v1.2.0 JOBS=4 DEBUG="], Allow),
        (
            &["allow shell make *"],
            &["make test RUN=ls", "make test X=.", "make test X=1x", "make test ENV=prod,x"],
            Ask,
        ),
        (
            &["allow shell **", "deny shell npm run deploy *", "deny shell npm publish *"],
            &[
                "nx build deploy",
                "nx test publish",
                "nx run deploy:build",
                "nx run deploy:build:production",
                "nx affected -t build,test",
                "yarn workspace publish build",
                "yarn workspace deploy test",
            ],
            Allow,
        ),
        (
            &["allow shell **", "deny shell npm run deploy *", "deny shell npm publish *"],
            &[
                "nx deploy web",
                "nx run web:deploy",
                "nx run web:deploy:production",
                "nx run-many -t build deploy",
                "nx affected --targets=build,deploy",
                "yarn workspace web deploy",
                "yarn workspace web npm publish",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell redis-cli flushall *", "deny shell nx deploy *"],
            &[
                "redis-cli get flushall",
                "redis-cli -h web1 -n 3 GET FLUSHALL",
                "valkey-cli set flushall 1",
                "echo get flushall | redis-cli",
                "nx build deploy",
                "nx build deploy --verbose",
            ],
            Allow,
        ),
        (
            &["allow shell **", "deny shell redis-cli flushall *", "deny shell nx deploy *"],
            &[
                "redis-cli -h web1 -n 3 flushall async",
                "redis-cli FLUSHALL",
                "valkey-cli -p 1 FlushAll",
                "echo flushall | redis-cli",
                "redis-cli --option x flushall",
                "nx deploy web",
                "nx --verbose deploy web",
                "nx run-many -t deploy",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell git push *", "deny shell ./scripts/build.sh *"],
            &["tldr git push", "bash -n scripts/build.sh", "npx jest -t 'git push'", "pytest -k 'git push'"],
            Allow,
        ),
    ]);
}

#[test]
fn a_shell_with_a_text_is_judged_by_the_text() {
    check(&[
        (
            &["allow shell npm test *"],
            &[
                "bash -c 'npm test'",
                "sh -c 'npm test'",
                "dash -c 'npm test'",
                "ash -c 'cd web && npm test | head -5'",
                "sh -lc 'npm test -- --watch=false'",
                "/bin/sh -ec 'npm test'",
                "busybox sh -c 'npm test'",
                "sh -c 'ls src'",
                "sh -n scripts/build.sh",
            ],
            Allow,
        ),
        (
            &["allow shell npm test *"],
            &[
                "sh -c '[[ a > b ]]'",
                "sh -c 'echo $'\\''x'\\'''",
                "sh -c 'ls ${x//a/b}'",
                "sh -c 'a=README.md; a=.env :; cat $a'",
                "sh -c 'npm install'",
                "busybox sh -c 'rm x'",
                "sh scripts/build.sh",
            ],
            Ask,
        ),
        (&["allow shell **", "deny shell rm -rf *"], &["busybox sh -c 'rm -rf x'", "dash -c 'rm -rf x'"], Deny),
    ]);
}

#[test]
fn options_that_move_what_a_program_writes_name_a_file() {
    const RULES: &[&str] = &[
        "allow shell make *",
        "allow shell npm ci *",
        "allow shell yarn *",
        "allow shell cargo install *",
        "allow shell tsc *",
        "allow shell esbuild *",
        "allow shell npx *",
        "allow shell gem install *",
        "allow shell composer install *",
        "allow shell git commit *",
        "allow shell python3 -m venv *",
        "allow shell pytest *",
        "allow shell protoc *",
        "allow shell npm init *",
    ];
    check(&[
        (
            RULES,
            &[
                "make -C /etc test",
                "make -C .git/hooks",
                "npm ci --prefix /etc",
                "npm --prefix=/etc ci",
                "yarn --cwd /etc install",
                "cargo install --root /usr x",
                "tsc --outDir /etc",
                "npx tsc --outDir .git/hooks",
                "esbuild a.js --outfile=.git/hooks/pre-commit",
                "gem install -i /etc x",
                "composer install --working-dir=/etc",
                "git -C /etc commit -m x",
                "python3 -m venv /etc/v",
                "pytest --junitxml=/etc/x.xml",
                "protoc --go_out=/etc a.proto",
                "esbuild a.js --outfile=mise.toml",
                "npx create-vite /etc/x",
                "npm init vite /etc/x",
            ],
            Ask,
        ),
        (
            RULES,
            &[
                "make -C web test",
                "npm ci --prefix web",
                "yarn --cwd web install",
                "tsc --outDir dist",
                "npx tsc --outDir build",
                "git -C src commit -m x",
                "python3 -m venv .venv",
                "pytest --junitxml=report.xml",
                "protoc --go_out=. a.proto",
            ],
            Allow,
        ),
    ]);
}

#[test]
fn an_address_and_an_interpreter_in_the_words_are_covered_only_where_the_rule_shows_them() {
    check(&[
        (
            &["allow shell git pull *", "allow shell uv run *", "allow shell uvx *"],
            &["git pull https://example.org/a.git main", "uv run --python ./x pytest", "uvx -p /tmp/x ruff"],
            Ask,
        ),
        (
            &["allow shell git pull *", "allow shell uv run *"],
            &["git pull origin main", "git pull", "uv run --python 3.12 pytest"],
            Allow,
        ),
        (&["allow shell git pull https://example.org/a.git *"], &["git pull https://example.org/a.git main"], Allow),
        (
            &[
                "allow shell git fetch *",
                "allow shell git remote *",
                "allow shell git submodule *",
                "allow shell helm install *",
            ],
            &[
                "git fetch https://example.org/a.git main",
                "git remote add up https://example.org/a.git",
                "git remote set-url origin example.org:a.git",
                "git submodule add https://example.org/a.git vendor/a",
                "helm install x oci://example.org/chart",
            ],
            Ask,
        ),
        (
            &["allow shell gh *", "allow shell gh pr checkout *", "allow shell git checkout *"],
            &["gh pr merge 5", "gh pr checkout 5 -f", "git checkout --ours README.md"],
            Ask,
        ),
        (&["allow shell gh pr merge *"], &["gh pr merge 5 --admin"], Ask),
        (
            &["allow shell git fetch *", "allow shell gh pr merge *", "allow shell gh pr checkout *"],
            &["git fetch origin main", "gh pr merge 5 --squash", "gh pr checkout 5"],
            Allow,
        ),
    ]);
}

#[test]
fn a_build_may_push_its_image_and_programs_have_further_names() {
    check(&[
        (
            &["allow shell **", "deny shell docker push *"],
            &[
                "docker build --push .",
                "docker buildx build -t x --push .",
                "docker buildx bake --push",
                "docker buildx build --output type=registry .",
                "docker buildx build -o type=image,push=true .",
                "docker compose build --push",
                "podman build --push .",
                "crane copy a b",
                "crane append -b a -t b -f x.tar",
                "skopeo copy docker://a docker://b",
                "skopeo sync --src dir --dest docker x reg/a",
                "oras push reg/a:1 x",
                "oras cp reg/a:1 reg/b:1",
                "regctl image copy a b",
                "ko build ./cmd/x",
                "pack build a --publish",
                "ctr images push a",
                "docker buildx imagetools create -t a b",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell rm -rf *", "deny shell make deploy *"],
            &["podman run --entrypoint '[\"rm\",\"-rf\"]' web x", "bmake deploy", "colormake -j4 deploy"],
            Deny,
        ),
        (&["allow shell **", "deny shell make deploy *"], &["bear make deploy", "scan-build -o x make deploy"], Ask),
        (
            &["allow shell **", "deny shell docker push *"],
            &[
                "docker image ls push",
                "docker build -t push .",
                "docker buildx build --load .",
                "docker compose build push",
            ],
            Allow,
        ),
        (
            &["allow shell **", "deny shell kubectl delete *", "deny shell aws s3 rm *", "deny shell cargo publish *"],
            &[
                "kubectl.exe delete pod x",
                "k delete pod x",
                "aws2 s3 rm s3://b/x",
                "awslocal s3 rm s3://b/x",
                "python3 -m awscli s3 rm s3://b/x",
                "cross publish",
            ],
            Deny,
        ),
    ]);
}

#[test]
fn a_request_to_a_forge_that_is_not_known_is_asked_about() {
    const RULES: &[&str] = &["allow shell **", "deny shell gh pr merge *"];
    check(&[
        (
            RULES,
            &[
                "gh api graphql -F query=@merge.graphql",
                "gh api graphql --input merge.json",
                "gh api -X PUT \"$url\"",
                "gh api -X PUT \"repos/$repo/pulls/$number/$what\"",
                "gh api -X \"$method\" repos/o/r/pulls/1/merge",
            ],
            Ask,
        ),
        (RULES, &["gh api -X PUT \"repos/$repo/pulls/$number/merge\""], Deny),
        (RULES, &["gh api \"repos/$repo/pulls/$number\"", "gh api -X PUT \"repos/$repo/topics\""], Allow),
    ]);
}

#[test]
fn a_place_where_writing_is_denied_may_be_an_output() {
    const RULES: &[&str] = &["allow shell **", "deny file.write {project}/tools/**"];
    check(&[
        (
            RULES,
            &[
                "tsc --outDir tools",
                "npx tsc --outDir=tools/x",
                "pnpm exec tsc --outDir tools",
                "yarn tsc --outFile tools/x.js",
                "node_modules/.bin/tsc --outDir tools",
                "cd docs && npx esbuild x.ts --outdir=../tools",
                "bun build x.ts --outfile tools/x",
                "dot -Tpng -otools/x.png x.dot",
                "ffmpeg -i a.mp4 tools/b.mp4",
                "sass src:tools",
                "javac -d tools A.java",
                "cargo vendor tools/v",
                "python3 -m venv tools/v",
                "python3 -c 'open(\"tools/x\", \"w\").write(\"x\")'",
                "node -e 'fs.writeFileSync(\"tools/x\", \"\")'",
                "make DESTDIR=tools install",
                "make -C tools",
                "pytest --junitxml=tools/x.xml",
                "jest --coverageDirectory tools",
                "docker build -o tools .",
                "aria2c -d tools https://example.org/x",
                "unknown-tool tools",
                "unknown-tool --to=tools/x",
            ],
            Ask,
        ),
        (
            RULES,
            &[
                "tsc --outDir dist",
                "tsc -p .",
                "npx esbuild x.ts --outdir=dist",
                "make -C docs",
                "make tools",
                "cargo test -p tools",
                "npm run tools",
                "prettier --write .",
                "pytest tools",
                "cat tools/x",
                "unknown-tool docs",
                "python3 -c 'import tools'",
            ],
            Allow,
        ),
    ]);
}

#[test]
fn a_variable_that_names_a_place_where_writing_is_denied_may_move_what_is_written() {
    const RULES: &[&str] = &["allow shell **", "deny file.write {project}/tools/**"];
    check(&[
        (
            RULES,
            &[
                "CARGO_TARGET_DIR=tools cargo build",
                "CARGO_TARGET_DIR=\"$PWD/tools\" cargo build",
                "export CARGO_TARGET_DIR=tools; cargo build",
                "declare -x OUT=tools; make",
                "OUT=tools; export OUT; make",
                "set -a; OUT=tools; make",
                "env CARGO_TARGET_DIR=tools/target cargo build",
                "cd src && CARGO_TARGET_DIR=../tools cargo build",
                "export OUT=../tools; cd src && make",
                "GOBIN=$PWD/tools go install ./...",
                "GOBIN=$(realpath tools) go install ./...",
                "DESTDIR=$(pwd)/tools make install",
                "npm_config_prefix=tools npm install -g x",
                "PIP_TARGET=tools pip install x",
                "DIRS=docs:tools ./run.sh",
                "make OUT=tools",
                "cmake -DCMAKE_INSTALL_PREFIX=$PWD/tools -B build",
                "mvn package -DoutputDirectory=tools",
                "cargo build --config 'build.target-dir=\"tools\"'",
                "(cd tools && make)",
                "docker run -v \"$PWD/tools\":/t image",
                "nyc --report-dir tools npm test",
            ],
            Ask,
        ),
        (
            RULES,
            &[
                "CARGO_TARGET_DIR=target/x cargo build",
                "PYTHONPATH=tools pytest",
                "PATH=\"$PWD/tools:$PATH\" make",
                "folder=tools; ls \"$folder\" && cargo build",
                "FOLDER=tools ls",
                "export FOLDER=tools; ls",
                "export FOLDER=docs; make",
                "make -j4 V=1",
                "cd docs && make",
                "docker run -v \"$PWD/tools\":/t:ro image",
                "node tools/x.js",
                "bash tools/x.sh",
                "python3 -m pytest tools",
                "docker compose -f tools/compose.yml ps",
                "cargo test -p tools",
            ],
            Allow,
        ),
    ]);
}

#[test]
fn a_formatter_changes_the_files_of_the_folders_that_it_gets() {
    const RULES: &[&str] = &["allow shell **", "deny file.write {project}/scripts/**"];
    check(&[
        (
            RULES,
            &[
                "prettier --write .",
                "npx prettier -w .",
                "prettier -w '**/*.js'",
                "pnpm prettier --write .",
                "black .",
                "python3 -m black .",
                "poetry run black .",
                "ruff format",
                "ruff format .",
                "ruff check --fix",
                "isort .",
                "eslint . --fix",
                "npx eslint --fix",
                "biome check --write",
                "codespell -w",
                "fastmod a b",
                "cd docs && black ..",
                "black scripts",
                "autopep8 -ir scripts/",
                "vim -c 'w scripts/x' src/main.rs",
                "vim -es -c 'wq! scripts/x' src/main.rs",
                "ex -sc 'w scripts/x' src/main.rs",
                "nvim --headless '+w scripts/x' +q src/main.rs",
                "printf 'w scripts/x\\nq\\n' | ed src/main.rs",
                "emacs --batch --eval '(write-region \"x\" nil \"scripts/x\")'",
            ],
            Ask,
        ),
        (
            RULES,
            &[
                "prettier --write src",
                "prettier -w 'src/**/*.ts'",
                "prettier --check .",
                "black --check .",
                "black tests",
                "cargo fmt",
                "cargo fmt --check",
                "gofmt -w .",
                "go fmt ./...",
                "rubocop -a",
                "terraform fmt -recursive",
                "ruff format tests",
                "ruff format -",
                "ruff check .",
                "vim -c 'w docs/x' src/main.rs",
            ],
            Allow,
        ),
        (&["allow shell **", "deny file.write **/*.rs"], &["cargo fmt", "cargo clippy --fix --allow-dirty"], Ask),
        (
            &["allow shell **", "deny shell rsync --delete *", "deny shell tar --extract *", "deny shell git log -p *"],
            &[
                "rsync -a --delete-after a/ b/",
                "rsync -a --del a/ b/",
                "rsync -a --delete-excluded a/ b/",
                "tar --get -f a.tar",
                "bsdtar -xf a.tar",
                "git log --patch",
                "git log -u -3",
            ],
            Deny,
        ),
        (
            &["allow shell **", "deny shell docker rm *", "deny shell docker run *", "deny shell docker exec *"],
            &[
                "docker compose down",
                "docker compose run web x",
                "docker compose exec web x",
                "finch rm x",
                "docker.io rm x",
            ],
            Deny,
        ),
        (&["allow shell **", "deny file.write **/.env"], &["prettier --write .", "black .", "eslint --fix ."], Allow),
    ]);
}
