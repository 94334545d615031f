//! Commands that programs run in a container or on another machine. The permission for the program covers them, but
//! what a rule denies is denied there too.

use super::known::find;
use super::options::parse;
use super::placed::{OptionSpec, skip_options};
use super::{Reading, from_table};
use crate::shell_grammar::arg::Arg;

/// Where an option is not known, its value may come before the place: so many words are tried as the command's first.
const TRIED: usize = 4;

/// Options of `docker`, `podman` and `nerdctl` before the subcommand.
const ENGINE: OptionSpec = OptionSpec {
    flags: "-D|--debug --tls --tlsverify -v|--version -r --remote --debug-full --help",
    values: "-H --host -c --context --config -l --log-level --tlscacert --tlscert --tlskey --url \
             --connection --identity --root --runroot --storage-driver --storage-opt --tmpdir --events- \
             backend --cgroup-manager -n --namespace -a --address --data-root --snapshotter --module --out \
             --volumepath --runtime --network-cmd-path --noout",
};

/// Docker 28.2, Podman 5, nerdctl 2.
const RUN: OptionSpec = OptionSpec {
    flags: "-d --detach --disable-content-trust --help --init -i --interactive --no-healthcheck --oom-kill- \
            disable --privileged -P --publish-all -q --quiet --read-only --rm --sig-proxy -t --tty --use- \
            api-socket --replace --rmi --no-hosts --no-hostname --rootfs --env-host --http-proxy --passwd \
            --read-only-tmpfs --tls-verify --unsetenv-all",
    values: "--add-host --annotation -a --attach --blkio-weight --blkio-weight-device --cap-add --cap-drop \
             --cgroup-parent --cgroupns --cidfile --cpu-count --cpu-percent --cpu-period --cpu-quota --cpu- \
             rt-period --cpu-rt-runtime -c --cpu-shares --cpus --cpuset-cpus --cpuset-mems --detach-keys \
             --device --device-cgroup-rule --device-read-bps --device-read-iops --device-write-bps \
             --device-write-iops --dns --dns-option --dns-opt --dns-search --domainname --entrypoint -e \
             --env --env-file --expose --gpus --group-add --health-cmd --health-interval --health-retries \
             --health-start-interval --health-start-period --health-timeout -h --hostname --io-maxbandwidth \
             --io-maxiops --ip --ip6 --ipc --isolation --kernel-memory -l --label --label-file --link \
             --link-local-ip --log-driver --log-opt --mac-address -m --memory --memory-reservation \
             --memory-swap --memory-swappiness --mount --name --network --net --network-alias --net-alias \
             --oom-score-adj --pid --pids-limit --platform -p --publish --pull --restart --runtime \
             --security-opt --shm-size --stop-signal --stop-timeout --storage-opt --sysctl --tmpfs --ulimit \
             -u --user --userns --uts -v --volume --volume-driver --volumes-from -w --workdir --arch --os \
             --variant --authfile --creds --cert-dir --conmon-pidfile --pod --pod-id-file --pidfile \
             --secret --systemd --tz --umask --requires --retry --retry-delay --timeout --unsetenv --uidmap \
             --gidmap --subuidname --subgidname --hooks-dir --image-volume --decryption-key --chrootdirs \
             --group-entry --passwd-entry --hostuser --preserve-fds --sdnotify --seccomp-policy --shm-size- \
             systemd --rdt-class --personality --gpus --ip-range",
};

const EXEC: OptionSpec = OptionSpec {
    flags: "-d --detach -i --interactive -t --tty --privileged --help -l --latest",
    values: "-e --env --env-file -u --user -w --workdir --detach-keys --preserve-fds --cidfile",
};

/// Options of `docker compose` before its subcommand.
const COMPOSE: OptionSpec = OptionSpec {
    flags: "--all-resources --compatibility --dry-run --verbose -v --version --help -D --debug --tls \
            --tlsverify --no-ansi",
    values: "--ansi --env-file -f --file --parallel --profile --progress --project-directory -p --project- \
             name --podman-path --podman-args --in-pod -H --host -c --context -l --log-level --tlscacert \
             --tlscert --tlskey",
};

/// Docker Compose 2.36.
const COMPOSE_RUN: OptionSpec = OptionSpec {
    flags: "--build -d --detach -i --interactive -T --no-TTY --no-tty --no-deps -q --quiet --quiet-build \
            --quiet-pull --remove-orphans --rm -P --service-ports -t --tty --use-aliases --dry-run \
            --privileged --help",
    values: "--cap-add --cap-drop --entrypoint -e --env --env-from-file -l --label --name -p --publish \
             --pull -u --user -v --volume -w --workdir --index",
};

/// kubectl 1.32, of all its subcommands.
const CLUSTER: OptionSpec = OptionSpec {
    flags: "--insecure-skip-tls-verify --match-server-version --warnings-as-errors --disable-compression -i \
            --stdin -t --tty -q --quiet --help -h",
    values: "-n --namespace --context --cluster --user --kubeconfig -s --server --token --as --as-group \
             --as-uid --request-timeout -v --v --cache-dir --certificate-authority --client-certificate \
             --client-key --tls-server-name --username --password --profile --profile-output --vmodule -c \
             --container -f --filename --pod-running-timeout --log-flush-frequency --loglevel",
};

/// OpenSSH 9.2: the options that its `getopt` knows.
const SSH: OptionSpec = OptionSpec {
    flags: "-1 -2 -4 -6 -A -a -C -f -G -g -K -k -M -N -n -q -s -T -t -V -v -X -x -Y -y",
    values: "-B -b -c -D -E -e -F -I -i -J -L -l -m -O -o -P -p -Q -R -S -W -w",
};

const FLATPAK: OptionSpec = OptionSpec {
    flags: "-d --devel --sandbox --die-with-parent --user --system -v --verbose --log-session-bus --log- \
            system-bus --no-documents-portal --file-forwarding --no-session-bus --no-a11y-bus --parent- \
            expose-pids --parent-share-pids",
    values: "--arch --branch --command --cwd --runtime --runtime-version --runtime-commit --share --unshare \
             --socket --nosocket --device --nodevice --allow --disallow --filesystem --nofilesystem --add- \
             policy --remove-policy --env --unset-env --env-fd --own-name --talk-name --no-talk-name \
             --system-own-name --system-talk-name --persist --instance-id-fd --parent-pid --commit \
             --installation --app-path --usr-path",
};

const LXC: OptionSpec = OptionSpec {
    flags: "-n -t --force-interactive -T --force-noninteractive --debug -v --verbose -q --quiet",
    values: "--cwd --env --mode --user --group --project",
};

/// `None` if the program is not one of these.
pub(super) fn read(name: &str, words: &[Arg]) -> Option<Reading> {
    let found = match name {
        "ssh" => return Some(ssh(words)),
        "docker" | "podman" | "nerdctl" => engine(words),
        "docker-compose" | "podman-compose" => compose(words, 0),
        "kubectl" | "oc" => cluster(words),
        "flatpak" => flatpak(words),
        "lxc" | "incus" | "multipass" => machine(words),
        "adb" | "vagrant" => {
            let mut reading = from_table(name, words);
            reading.scripts_elsewhere = shell_of(name, words);
            return Some(reading);
        }
        _ => return None,
    };
    let mut reading = from_table(name, words);
    // `-o jsonpath-file=F` and the like print a template that they read (kubectl get, "--output").
    let names_template = |word: &&Arg| {
        let text = word.start();
        (text.contains("-file=") || text.contains("templatefile=")) && !text.starts_with("--from-")
    };
    if let Some(word) = words.iter().find(names_template).filter(|_| matches!(name, "kubectl" | "oc")) {
        reading.doubt(format!("{} reads a file as a template", word.raw));
    }
    reading.elsewhere = found.unwrap_or_default();
    reading.reads_in = mounted(name, words).into_iter().map(|mount| mount.source).collect();
    Some(reading)
}

/// A folder of this machine that a container gets.
pub(super) struct ContainerFolder {
    pub(super) source: Arg,
    pub(super) is_read_only: bool,
}

/// The folders that a command hands to a container: `-v ./data:/data`, `--mount type=bind,source=./data,target=/data`.
pub(super) fn mounted(name: &str, words: &[Arg]) -> Vec<ContainerFolder> {
    let mut found = Vec::new();
    if !matches!(name, "docker" | "podman" | "nerdctl" | "docker-compose" | "podman-compose") {
        return found;
    }
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.start();
        let attached =
            ["--volume=", "--mount=", "-v"].iter().find(|start| text.starts_with(**start) && text.len() > start.len());
        let value = match attached {
            Some(start) => Some(word.without_start(start.len())),
            None if ["-v", "--volume", "--mount"].iter().any(|option| word.is(option)) => words.next().cloned(),
            None => None,
        };
        let Some(value) = value else { continue };
        let Some(text) = value.literal() else {
            found.push(ContainerFolder { source: value, is_read_only: false });
            continue;
        };
        let source =
            text.split(',').find_map(|pair| pair.strip_prefix("source=").or_else(|| pair.strip_prefix("src=")));
        let path = source.unwrap_or_else(|| text.split(':').next().unwrap_or_default());
        if path.contains('/') || matches!(path, "." | "..") {
            let is_read_only =
                text.split([',', ':']).skip(1).any(|part| matches!(part, "ro" | "readonly" | "readonly=true"));
            found.push(ContainerFolder { source: Arg::text(path), is_read_only });
        }
    }
    found
}

/// The words from `at` on as a command, and some more beginnings where that one is not certain.
fn commands(words: &[Arg], at: usize, is_certain: bool) -> Vec<Vec<Arg>> {
    let tried = if is_certain { 1 } else { TRIED };
    let behind = (at..at + tried).filter_map(|at| words.get(at..));
    behind.filter(|words| !words.is_empty()).map(<[Arg]>::to_vec).collect()
}

/// `docker [container] exec|run`, `docker compose exec|run`.
fn engine(words: &[Arg]) -> Option<Vec<Vec<Arg>>> {
    let (mut at, _) = skip_options(words, 0, &ENGINE);
    if words.get(at).is_some_and(|word| word.is("container")) {
        at += 1;
    }
    match words.get(at)?.literal()? {
        "exec" => Some(behind_place(words, at + 1, &EXEC)),
        "run" | "create" => Some(behind_place(words, at + 1, &RUN)),
        "service" if words.get(at + 1).is_some_and(|word| word.is("create")) => Some(behind_place(words, at + 2, &RUN)),
        "compose" => compose(words, at + 1),
        _ => None,
    }
}

fn compose(words: &[Arg], at: usize) -> Option<Vec<Vec<Arg>>> {
    let (at, _) = skip_options(words, at, &COMPOSE);
    match words.get(at)?.literal()? {
        "exec" | "run" => Some(behind_place(words, at + 1, &COMPOSE_RUN)),
        _ => None,
    }
}

/// Behind the options and the name of a container, a service or an image. `--entrypoint` names another program.
fn behind_place(words: &[Arg], at: usize, options: &OptionSpec) -> Vec<Vec<Arg>> {
    let (place, is_certain) = skip_options(words, at, options);
    let mut found = commands(words, place + 1, is_certain);
    let own = words.get(at..place.min(words.len())).unwrap_or_default();
    for (index, word) in own.iter().enumerate() {
        let entry = match word.start().strip_prefix("--entrypoint=") {
            Some(_) => Some(word.without_start("--entrypoint=".len())),
            None => own.get(index + 1).filter(|_| word.is("--entrypoint")).cloned(),
        };
        let behind = words.get(place + 1..).unwrap_or_default().to_vec();
        // Compose takes it apart as a shell does, and Podman as a list of JSON.
        let of_entry = |entry: Arg| match entry.literal() {
            Some(list) if list.starts_with('[') => {
                let words = list.trim_matches(['[', ']']).split(',');
                words.map(|word| Arg::text(word.trim().trim_matches('"'))).collect()
            }
            Some(text) if text.contains(char::is_whitespace) => text.split_whitespace().map(Arg::text).collect(),
            Some(_) | None => vec![entry],
        };
        found.extend(entry.map(|entry| [of_entry(entry), behind].concat()));
    }
    found
}

/// `kubectl exec POD [-c NAME] [--] COMMAND`; also the command of a new pod.
fn cluster(words: &[Arg]) -> Option<Vec<Vec<Arg>>> {
    let (verb, _) = skip_options(words, 0, &CLUSTER);
    let is_exec = words.get(verb)?.is("exec") || words.get(verb)?.is("rsh");
    if !is_exec && !["run", "debug", "create"].iter().any(|starting| words[verb].is(starting)) {
        return None;
    }
    if let Some(at) = words.iter().skip(verb).position(|word| word.is("--")) {
        return Some(commands(words, verb + at + 1, true));
    }
    if !is_exec {
        return None;
    }
    let (place, is_certain) = skip_options(words, verb + 1, &CLUSTER);
    let (at, is_certain_too) = skip_options(words, place + 1, &CLUSTER);
    Some(commands(words, at, is_certain && is_certain_too))
}

/// `flatpak run [--command=PROGRAM] APP WORDS`: without the option, the app's own program gets the words.
fn flatpak(words: &[Arg]) -> Option<Vec<Vec<Arg>>> {
    let (verb, _) = skip_options(words, 0, &FLATPAK);
    if !words.get(verb)?.is("run") {
        return None;
    }
    let (app, is_certain) = skip_options(words, verb + 1, &FLATPAK);
    let own = words.get(verb + 1..app.min(words.len())).unwrap_or_default();
    let mut programs = own.iter().enumerate().filter_map(|(at, word)| match word.start().strip_prefix("--command=") {
        Some(_) => Some(word.without_start("--command=".len())),
        None => own.get(at + 1).filter(|_| word.is("--command")).cloned(),
    });
    let program = programs.next();
    let behind = commands(words, app + 1, is_certain);
    Some(match program {
        Some(program) if behind.is_empty() => vec![vec![program]],
        Some(program) => behind.into_iter().map(|words| [vec![program.clone()], words].concat()).collect(),
        None if is_certain => Vec::new(),
        None => behind,
    })
}

/// `lxc exec NAME -- COMMAND`
fn machine(words: &[Arg]) -> Option<Vec<Vec<Arg>>> {
    let (verb, _) = skip_options(words, 0, &LXC);
    if !words.get(verb)?.is("exec") {
        return None;
    }
    if let Some(at) = words.iter().skip(verb).position(|word| word.is("--")) {
        return Some(commands(words, verb + at + 1, true));
    }
    let (place, is_certain) = skip_options(words, verb + 1, &LXC);
    let (at, is_certain_too) = skip_options(words, place + 1, &LXC);
    Some(commands(words, at, is_certain && is_certain_too))
}

/// `adb shell WORDS`, `vagrant ssh -c SCRIPT`
fn shell_of(name: &str, words: &[Arg]) -> Vec<String> {
    let verb = if name == "adb" { "shell" } else { "ssh" };
    let Some(at) = words.iter().position(|word| word.is(verb)) else { return Vec::new() };
    let behind = words.get(at + 1..).unwrap_or_default();
    match name {
        "adb" => vec![joined(behind)],
        _ => {
            behind.iter().skip_while(|word| !word.is("-c") && !word.is("--command")).skip(1).take(1).map(text).collect()
        }
    }
}

fn text(word: &Arg) -> String {
    word.literal().unwrap_or(&word.raw).to_owned()
}

/// As a shell on another machine gets them.
fn joined(words: &[Arg]) -> String {
    words.iter().map(text).collect::<Vec<_>>().join(" ")
}

/// Options may follow the host's name. The words behind are joined, and a shell reads them there.
fn ssh(words: &[Arg]) -> Reading {
    let (host, is_certain) = skip_options(words, 0, &SSH);
    let (at, is_certain_too) = skip_options(words, host + 1, &SSH);
    let is_certain = is_certain && is_certain_too;
    let own = if is_certain { words.get(..at).unwrap_or(words) } else { words };
    let Some(known) = find("ssh") else { return Reading::default() };
    let mut parsed = parse(known, own);
    if is_certain {
        parsed.rest = words.get(at..).unwrap_or_default().to_vec();
    }
    let mut reading = parsed.into_reading();
    reading.scripts_elsewhere = commands(words, at, is_certain).iter().map(|words| joined(words)).collect();
    // Its shell reads all words as one line.
    let is_syntax = |word: &&Arg| word.start().contains([';', '|', '&', '<', '>', '`', '$', '(', ')', '\n']);
    let further = words.get(at + 1..).unwrap_or_default();
    if let Some(word) = further.iter().find(is_syntax) {
        reading.doubt(format!("the other machine's shell reads {} as a part of its line", word.raw));
    }
    reading.runs_input = words.len() > host && reading.scripts_elsewhere.is_empty() && !has_no_command(own);
    reading
}

/// Options by which `ssh` starts no shell: `-N`, and those that control a connection or show something.
fn has_no_command(words: &[Arg]) -> bool {
    let is_one = |word: &Arg| {
        let text = word.start();
        text.starts_with('-') && text.contains(['N', 'O', 'Q', 'W', 'V', 'G', 'n'])
    };
    words.iter().any(is_one)
}
