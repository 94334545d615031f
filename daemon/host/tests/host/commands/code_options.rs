//! Options by which a program runs another one, loads code, or reads such options from a file: no pattern for the program
//! covers them, and without a rule they are not free where only reading is. Levels that free more confine what runs.

use toold_proto::level::Level;
use toold_proto::permission::Verdict;

use crate::commands::folders::TestProject;
use crate::commands::judge::{RuleLine, judge, judge_at};

/// Operations, each with words that make it run code, separated by ` ; `.
const OPERATIONS: &[(&str, &str)] = &[
    (
        "gcc",
        "-B d a.c ; -Bd a.c ; -fplugin=x.so a.c ; -fplugin-arg-x-y=z a.c ; -wrapper x a.c ; @opts ; -c @opts ; -specs=f a.c ; \
         --specs=f a.c ; -Wl,--plugin,x.so a.c ; -Xlinker --plugin=x.so a.c ; -fuse-ld=x a.c ; -no-integrated-cpp a.c ; a.c -B d",
    ),
    (
        "clang",
        "-Xclang -load -Xclang x.so a.c ; -fpass-plugin=x.so a.c ; --config f a.c ; --config=f a.c ; --ld-path=./x a.c ; \
         -fplugin=x.so a.c ; -B d a.c ; @opts ; -fprofile-use=x -wrapper y a.c",
    ),
    ("g++ -c", "-B d a.cc ; -fplugin=x.so a.cc ; @opts"),
    ("ld", "--plugin x.so a.o ; -plugin x.so a.o ; --plugin=x.so a.o ; @opts"),
    (
        "make",
        "-f F ; -fF ; --file=F ; --file F ; --makefile=F ; --makefile F ; --makef=F ; -C d -f F ; --eval=x ; --eval x ; -E x ; \
         -I d ; -Id ; --include-dir=d ; SHELL=./x ; MAKEFLAGS=x ; CC=./x ; -e ; -sf F ; test -f F",
    ),
    ("make test", "-f F ; --file=F ; --eval=x ; SHELL=./x"),
    ("ninja", "-f F ; -t clean ; -C d -f F"),
    (
        "cmake",
        "-P f ; -E env x ; -C f ; -DCMAKE_C_COMPILER=x ; --toolchain f ; -T x . ; -G x -DCMAKE_PROJECT_INCLUDE=f",
    ),
    ("ctest", "-S f ; --script f ; -D Nightly ; --build-and-test a b"),
    (
        "java",
        "@f ; -javaagent:x.jar Main ; -agentpath:x Main ; -agentlib:x Main ; -XX:OnError=x Main ; -Xbootclasspath/a:x Main ; -cp . -javaagent:x Main",
    ),
    ("java -jar app.jar", "@f"),
    (
        "javac",
        "@f ; -J-javaagent:x A.java ; -processorpath d A.java ; -processor x A.java ; --processor-path d A.java ; -Xplugin:x A.java",
    ),
    (
        "dpkg -i",
        "--pre-invoke=x a.deb ; a.deb --post-invoke=x ; --status-logger=x a.deb ; --pre-in=x a.deb ; --root=d a.deb",
    ),
    (
        "apt",
        "-o Dpkg::Pre-Invoke::=x install y ; install -o Dpkg::Pre-Invoke::=x y ; -oDpkg::Pre-Invoke::=x update ; -c f install y ; \
         --option=APT::Update::Pre-Invoke::=x update ; --config-file=f update ; -yo Dpkg::Pre-Invoke::=x install y",
    ),
    ("apt-get install", "-o APT::Update::Pre-Invoke::=x y ; -c=f y ; -yc f y"),
    ("rpm -qa", "--define a ; --eval %(x) ; -E %(x) ; --pipe x ; --macros f ; --load f"),
    ("docker ps", "--config d"),
    (
        "docker",
        "--config d ps ; --config=d ps ; -c x ps ; -H ssh://x ps ; run -v /:/x img ; run --privileged img ; run --runtime x img",
    ),
    (
        "rsync",
        "-e x a b:c ; -ex a b:c ; -ae x a b:c ; --rsh=x a b:c ; --rsh x a b:c ; --rsync-path=x a b:c ; --rs=x a b:c ; --config=f --daemon",
    ),
    (
        "tar",
        "-I x -xf a.tar ; -Ix -xf a.tar ; --use-compress-program=x -xf a.tar ; --to-command=x -xf a.tar ; --to-comm=x -xf a.tar ; \
         --checkpoint-action=exec=x -cf a.tar b ; -F x -xf a.tar ; --info-script=x -xf a.tar ; --rsh-command=x -xf h:a.tar",
    ),
    ("man", "-P x ls ; -Px ls ; --pager=x ls ; -H x ls ; --html=x ls ; -C f ls ; --config-file=f ls"),
    (
        "git",
        "-c core.pager=x log ; -c alias.x=!x x ; --exec-path=d log ; --config-env=core.pager=X log ; log --ext-diff ; \
         grep -O x ; grep -Ox y ; grep --open-files-in-pager=x y ; rebase -x x main ; rebase --exec=x main ; \
         fetch --upload-pack=x ; clone --upload-pack=x a ; clone -u x a ; clone -c core.pager=x a ; clone --config=core.pager=x a ; \
         clone --template=d a ; init --template=d ; push --receive-pack=x ; push --exec=x ; ls-remote --upload-pack=x a ; \
         archive --exec=x --remote=a HEAD ; clone ext::x ; fetch ext::x ; difftool -x x ; config core.pager x ; config alias.x !x ; \
         rebase -i main ; filter-branch --tree-filter x ; commit -S -m x ; help -w log",
    ),
    ("git log", "--ext-diff ; --textconv ; --show-signature"),
    (
        "ssh",
        "-o ProxyCommand=x h ; -oProxyCommand=x h ; -F f h ; -o LocalCommand=x h ; -o KnownHostsCommand=x h ; -I lib h ; -S x h ; \
         -4o ProxyCommand=x h",
    ),
    ("scp", "-S x a h:b ; -o ProxyCommand=x a h:b ; -F f a h:b"),
    ("sftp", "-o ProxyCommand=x h ; -S x h ; -b f h"),
    ("curl", "-K f ; --config f ; --config=f ; -sKf ; --engine x http://h"),
    ("wget", "-e use_askpass=x http://h ; --config=f http://h ; --use-askpass=x http://h ; --execute=x http://h"),
    ("sed", "-f f a ; s/x/y/e a ; 1e\\ x a ; -n 's/x/y/w f' a"),
    ("sort", "--compress-program=x a ; --compress-prog x a ; -S 1k --compress-program x a"),
    ("split", "--filter=x a ; --filt=x a"),
    ("zip", "-TT x a.zip b ; -T -TT x a.zip b ; --unzip-command=x a.zip b"),
    ("rg", "--pre x y ; --pre=x y ; --hostname-bin=x y"),
    ("fd", "-x x ; -X x ; --exec x ; --exec-batch=x"),
    ("ag", "--pager x y ; --pager=x y"),
    ("bat", "--pager=x a ; --pager x a"),
    ("less", "'+!x' a ; -k f a ; --lesskey-file=f a"),
    ("vim", "-c '!x' a ; --cmd '!x' a ; -S f ; -u f a ; '+!x' a"),
    ("nm", "--plugin x.so a.o ; @opts"),
    ("jq", "-f f a ; --from-file f a ; -L d . a"),
    ("find", ". -exec x '{}' + ; . -execdir x '{}' ';' ; . -ok x ';' ; . -fprintf f x ; -files0-from f"),
    ("pip install", "--index-url http://h x ; -i http://h x ; --config-settings a=b x ; -C a=b x ; --find-links d x"),
    ("pip", "--python x install y"),
    ("pipenv", "--python ./x install ; --python=/tmp/x sync"),
    ("tox", "--discover ./x ; -e py --discover=/tmp/x"),
    ("npm", "--script-shell=x test ; --node-options=--require=x test ; --userconfig=f test ; test --script-shell=x"),
    ("npm run build", "--script-shell=x ; --node-options=--require=./x"),
    ("npx", "--node-options=x tsc ; -n x tsc ; -c x ; --call=x"),
    ("cargo test", "--config build.rustc=x ; --config=f ; -Z x ; --config build.rustc-wrapper=x --lib"),
    ("cargo", "--config build.rustc=x test ; -Zx test"),
    ("go build", "-toolexec x ; -toolexec=x ; -overlay f ; -ldflags=-extld=x ; -modfile=f"),
    ("go test", "-exec x ; -exec=x ; -toolexec x"),
    ("go vet", "-vettool=x ; -vettool x"),
    ("mvn", "-s f test ; --settings=f test ; -Dmaven.ext.class.path=x test ; -gs f test"),
    ("gradle", "-I f test ; --init-script=f test ; -b f test ; -Dx=y test ; -g d test ; --include-build=d test"),
    ("kubectl get pods", "--kubeconfig f ; --kubeconfig=f"),
    ("helm template x", "--post-renderer x ; --post-renderer=x ; --kubeconfig=f"),
    ("psql", "-f f ; --file=f ; -v a=b ; --set=a=b ; -o '|x' -c 'select 1' ; -P pager=x ; -c '\\! x'"),
    ("mysql", "--pager=x ; --plugin-dir=d ; --defaults-file=f ; --init-command=x ; -e '\\! x' ; -e 'source f'"),
    ("sqlite3", "-init f db ; -cmd '.shell x' db ; db '.shell x' ; db '.load x'"),
    ("uv sync", "--config-file=f"),
    ("dotnet build", "-p:x=y ; /p:x=y ; --logger x ; @f"),
    ("tmux", "-f f new ; -c x"),
    ("strace", "-o '|x' ls ; -E LD_PRELOAD=x ls ; -o '!x' ls"),
    ("valgrind", "--tool=./x ls"),
    (
        "env",
        "-S 'x y' ; LD_PRELOAD=x ls ; 'BASH_FUNC_ls%%=() { x; }' bash -c ls ; BASH_ENV=f bash -c ls ; --split-string='x y'",
    ),
    ("sudo", "-e f ; -R d ls ; -A ls ; -D d ls"),
    ("watch", "x y"),
    ("timeout 5", "x y"),
    ("xargs", "x"),
    ("parallel", "x ::: a"),
    ("flock f", "-c x ; x y"),
    ("unzip", "-P x -TT y a.zip"),
    ("ip", "-b f ; -batch f ; netns exec a x"),
    ("xmllint", "--load-trace --catalogs f ; --xinclude --dtdvalid http://h f"),
    ("pandoc", "-F x a.md ; --filter=x a.md ; --lua-filter x a.md ; --pdf-engine=./x a.md ; -d f a.md"),
    ("latexmk", "-pdflatex=x a.tex ; -e x a.tex ; -r f a.tex ; -shell-escape a.tex"),
    ("pdflatex", "-shell-escape a.tex ; --shell-escape a.tex ; -enable-write18 a.tex"),
    ("yt-dlp", "--exec x http://h ; --config-locations f http://h ; --downloader x http://h ; --netrc-cmd x http://h"),
    ("aria2c", "--on-download-complete=x http://h ; --conf-path=f http://h"),
    ("rclone ls r:", "--config f ; --password-command x ; --sftp-ssh x"),
    ("restic backup d", "--password-command x ; -o sftp.command=x"),
    ("tcpdump", "-i lo -z x ; -z x"),
    ("openssl", "req -engine x ; -config f req ; enc -provider-path d"),
    ("gpg", "--options f -d a ; --agent-program=x -d a ; --homedir d -d a ; --photo-viewer x -k"),
    ("ssh-keygen", "-D lib.so ; -w lib.so -t ed25519-sk"),
    ("svn log", "--config-option a:b:c=d ; --diff-cmd x --diff"),
    ("hg log", "--config alias.log=!x ; -R d"),
    ("nginx", "-c f -t ; -g 'load_module x;'"),
    ("redis-server", "--loadmodule x.so"),
    ("mysqldump", "--defaults-file=f db ; --plugin-dir=d db"),
    ("kustomize build", "--enable-exec d ; --enable-alpha-plugins d ; --helm-command x d"),
    ("clang-tidy", "-load x.so a.c ; --load=x.so a.c"),
    ("gs", "-sOutputFile=%pipe%x a.ps ; -c x ; -dNOSAFER a.ps"),
];

fn lines(operation: &str, words: &str) -> Vec<String> {
    let written = words.split(" ; ").map(|words| format!("{operation} {}", words.trim()));
    written
        .flat_map(|line| [line.clone(), format!("timeout 5 {line}"), format!("cd src && {line} 2>&1 | head")])
        .collect()
}

fn rules(operation: &str) -> Vec<RuleLine> {
    let mut rules = vec![format!("allow shell {operation} *")];
    let others = ["timeout *", "cd *", "head *", "ls *", "bash *", "sh *"];
    rules.extend(
        others.iter().filter(|other| **other != format!("{operation} *")).map(|other| format!("allow shell {other}")),
    );
    rules.extend(["file.read", "file.write"].map(|category| format!("allow {category} **")));
    rules.iter().map(|rule| RuleLine::parse(rule).unwrap()).collect()
}

#[test]
fn no_pattern_for_a_program_covers_an_option_that_carries_code() {
    let project = TestProject::make();
    let mut wrong = Vec::new();
    for (operation, words) in OPERATIONS {
        let rules = rules(operation);
        for line in lines(operation, words) {
            if judge(&line, &project.place, &rules).verdict == Verdict::Allow {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{} covered:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_option_that_carries_code_is_not_free_where_only_reading_is() {
    let project = TestProject::make();
    let mut wrong = Vec::new();
    for (operation, words) in OPERATIONS {
        for line in lines(operation, words) {
            if judge_at(Level::Read, &line, &project.place, &[]).verdict == Verdict::Allow {
                wrong.push(line);
            }
        }
    }
    assert!(wrong.is_empty(), "{} free:\n{}", wrong.len(), wrong.join("\n"));
}
