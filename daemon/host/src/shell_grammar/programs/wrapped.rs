//! Programs that set something up and run the command in their words: environments, secrets, versions, watchers. No table
//! describes them, so that they need permission as any unknown program does; what they run is judged by itself.

use super::placed::{OptionSpec, skip_options, verbs_at};
use super::special::skip_dashes;
use super::{CommandContext, Reading, runners};
use crate::shell_grammar::arg::Arg;

/// How the words behind the options are run.
#[derive(Clone, Copy)]
enum Inner {
    /// As they are.
    Command,
    /// A shell reads them, joined.
    Script,
    /// As tools of the project, which a rule for the runner covers.
    ProjectTool,
}

struct Wrapper {
    /// The program, and the words that make it a wrapper.
    name: &'static str,
    options: OptionSpec,
    /// Options whose value a shell reads.
    scripts: &'static str,
    /// So many operands come before the command.
    before: usize,
    /// The command begins behind `--`, and operands of its own stand before it.
    is_marked: bool,
    inner: Inner,
}

const fn wrapper(name: &'static str, flags: &'static str, values: &'static str, before: usize) -> Wrapper {
    Wrapper {
        name,
        options: OptionSpec { flags, values },
        scripts: "",
        before,
        is_marked: false,
        inner: Inner::Command,
    }
}

const fn marked(name: &'static str, flags: &'static str, values: &'static str) -> Wrapper {
    Wrapper { is_marked: true, scripts: "-c --command", ..wrapper(name, flags, values, 0) }
}

const fn project(name: &'static str, flags: &'static str, values: &'static str) -> Wrapper {
    Wrapper { inner: Inner::ProjectTool, ..wrapper(name, flags, values, 0) }
}

/// Read from the programs' own manuals; none of them is needed to run the tests.
const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        scripts: "--command",
        ..wrapper(
            "doppler run",
            "--preserve-env --no-fallback --fallback-readonly --fallback-only --forward-signals --silent --debug",
            "-p|--project -c|--config --command --fallback --mount --mount-format --mount-template --name-transformer \
             -t|--token --scope --only-secrets",
            0,
        )
    },
    wrapper("op run", "--no-masking --debug --cache", "--env-file --account --session --environment", 0),
    Wrapper {
        scripts: "--command",
        ..wrapper(
            "infisical run",
            "--recursive --watch --silent",
            "--command --env --path --projectId --token --tags",
            0,
        )
    },
    Wrapper { scripts: "--command -c", ..wrapper("teller run", "--reset --shell", "--config -c --command", 0) },
    wrapper("chamber exec", "--strict --pristine", "-b|--backend -r|--retries", 1),
    wrapper(
        "aws-vault exec",
        "-n|--no-session --server --ec2-server --ecs-server -j|--json --prompt --lazy -s",
        "-d|--duration --region -t|--mfa-token --backend",
        1,
    ),
    wrapper("envchain", "", "", 1),
    wrapper("dotenv", "-o|--overload -i|--ignore", "-e -v -c -p -f", 0),
    wrapper("dotenv run", "--override --no-override", "", 0),
    wrapper("dotenvx run", "-o|--overload -q|--quiet --strict --verbose --debug", "-f -e|--env -fk --convention", 0),
    wrapper(
        "env-cmd",
        "--silent --verbose --fallback --no-override -x --use-shell",
        "-f|--file -e|--environments -r|--rc-file",
        0,
    ),
    wrapper("cross-env", "", "", 0),
    Wrapper { inner: Inner::Script, ..wrapper("cross-env-shell", "", "", 0) },
    Wrapper { inner: Inner::Script, ..wrapper("sops exec-env", "--background --pristine", "--user", 1) },
    Wrapper { inner: Inner::Script, ..wrapper("sops exec-file", "--background --no-fifo", "--user --filename", 1) },
    Wrapper {
        scripts: "-x --exec",
        ..wrapper(
            "nodemon",
            "-q|--quiet -V|--verbose -L|--legacy-watch -I|--no-stdin -C|--on-change-only",
            "-w|--watch -e|--ext -i|--ignore -d|--delay -x|--exec -s|--signal",
            0,
        )
    },
    Wrapper {
        inner: Inner::Script,
        ..wrapper(
            "watchexec",
            "-r|--restart -c|--clear -q|--quiet -v --verbose -n --no-vcs-ignore --no-project-ignore --no-global-ignore -p|--postpone -1 \
             --notify --color --timings",
            "-e|--exts -w|--watch -i|--ignore -f|--filter -d|--debounce --stop-signal -s|--signal -o|--on-busy-update",
            0,
        )
    },
    marked("mise exec", "--raw -q -v", "-j|--jobs -c|--command"),
    marked("mise x", "--raw -q -v", "-j|--jobs -c|--command"),
    marked("rtx exec", "--raw -q -v", "-j|--jobs -c|--command"),
    marked("rtx x", "--raw -q -v", "-j|--jobs -c|--command"),
    wrapper("asdf exec", "", "", 0),
    wrapper("rbenv exec", "", "", 0),
    wrapper("pyenv exec", "", "", 0),
    wrapper("nodenv exec", "", "", 0),
    wrapper("goenv exec", "", "", 0),
    wrapper("jenv exec", "", "", 0),
    wrapper("nvm exec", "-s --silent --lts", "", 0),
    wrapper("fnm exec", "", "--using --log-level --arch --node-dist-mirror", 0),
    wrapper("volta run", "--bundled-npm --no-yarn --no-pnpm --quiet --verbose", "--node --npm --yarn --pnpm --env", 0),
    wrapper("rvm do", "", "", 0),
    wrapper("corepack", "", "", 0),
    Wrapper { inner: Inner::Script, ..wrapper("bun exec", "", "--cwd", 0) },
    wrapper("conda run", "--no-capture-output --live-stream -v --debug-wrapper-scripts", "-n|--name -p|--prefix", 0),
    wrapper("mamba run", "--no-capture-output --live-stream -v", "-n|--name -p|--prefix", 0),
    wrapper("micromamba run", "-d --detach --clean-env", "-n|--name -p|--prefix -e|--env", 0),
    project(
        "pixi run",
        "-q|--quiet -v|--verbose --frozen --locked --no-install --clean-env --skip-deps",
        "-e|--environment --color",
    ),
    project("hatch run", "", ""),
    marked("flox activate", "", "-d|--dir -r|--remote -c|--command"),
    marked("guix shell", "-D --development -C|--container --pure", "-e -f -m|--manifest"),
    marked("distrobox enter", "-T --no-tty -v", "-n|--name"),
    marked("distrobox-enter", "-T --no-tty -v", "-n|--name"),
    wrapper("toolbox run", "", "-c|--container -d|--distro -r|--release", 0),
    marked("wait-for-it", "-s|--strict -q|--quiet", "-h|--host -p|--port -t|--timeout"),
    marked("wait-for-it.sh", "-s|--strict -q|--quiet", "-h|--host -p|--port -t|--timeout"),
    wrapper("dockerize", "", "-wait -timeout -template -stdout -stderr", 0),
    wrapper("tini", "-s -v -g -w -l", "-p -e", 0),
    wrapper("dumb-init", "-c|--single-child -v|--verbose", "-r|--rewrite", 0),
    wrapper("gosu", "", "", 1),
    wrapper("su-exec", "", "", 1),
    wrapper("setuidgid", "", "", 1),
    wrapper("envdir", "", "", 1),
    wrapper("softlimit", "", "-a -c -d -f -l -m -o -p -r -s -t", 0),
    wrapper("cgexec", "--sticky", "-g", 0),
    wrapper(
        "numactl",
        "-l|--localalloc",
        "-N|--cpunodebind -m|--membind -i|--interleave -p|--preferred -C|--physcpubind",
        0,
    ),
    wrapper("heaptrack", "", "-o|--output", 0),
    wrapper("rr record", "-n -h", "-c -e", 0),
    wrapper("retry", "-v", "-t|--times -d|--delay -m|--max", 0),
    wrapper("pueue add", "-i|--immediate -e|--escape -s|--stashed", "-g|--group -l|--label -a|--after -d|--delay", 0),
    wrapper("tsp", "-n -g -f -m -d", "-L -N -D", 0),
    wrapper("ts", "-n -g -f -m -d", "-L -N -D", 0),
    wrapper("nq", "-c -q", "", 0),
    wrapper("please", "", "-u|--user -d|--dir -r|--reason", 0),
    wrapper("dtach", "-z -E -C", "-r -e -n -c -A", 0),
    wrapper("abduco", "-f -r -p", "-e -n -c -A", 0),
    wrapper("wine", "", "", 0),
    wrapper("ifne", "-n", "", 0),
    wrapper(
        "cpulimit",
        "-b|--background -f|--foreground -i|--include-children -q|--quiet -z|--lazy -v|--verbose -m|--monitor-forks",
        "-l|--limit -c|--cpu -p|--pid -e|--exe -P|--path -s|--signal",
        0,
    ),
    wrapper(
        "run0",
        "--no-ask-password --slice-inherit --pipe --pty",
        "-u|--user -g|--group -D|--chdir -M|--machine --unit --property --description --slice --nice --setenv --background",
        0,
    ),
    wrapper(
        "flatpak-spawn",
        "--host --clear-env --watch-bus --sandbox --no-network --latest-version -v|--verbose",
        "--env --unset-env --forward-fd --directory --sandbox-expose --sandbox-expose-ro --sandbox-flag",
        0,
    ),
    wrapper("sshpass", "-e -v -V -h", "-f -d -p -P", 0),
    wrapper("chpst", "-P -0 -1 -2 -v", "-u -U -b -e -/ -n -l -L -m -d -o -p -f -c -r -t -C", 0),
    wrapper("s6-setuidgid", "", "", 1),
    wrapper("s6-envdir", "-I -i -f -n -c", "", 1),
    wrapper("with-contenv", "", "", 0),
    wrapper("dbus-launch", "--auto-syntax --binary-syntax --close-stderr --exit-with-session --exit-with-x11", "", 0),
    wrapper("tsocks", "", "", 0),
    wrapper("trickle", "-s", "-u -d -w -t -l -n -L -v -P", 0),
    wrapper("aa-exec", "-d|--debug -i|--immediate -v|--verbose", "-p|--profile -n|--namespace", 0),
    wrapper("annotate-output", "", "", 0),
    wrapper("lckdo", "-w -q -E -e -s -x", "-W", 1),
    wrapper("catchsegv", "", "", 0),
    wrapper(
        "fakechroot",
        "-s|--use-system-libs",
        "-l|--lib -d|--elfloader -c|--config-dir -e|--environment -b|--bindir",
        0,
    ),
    wrapper("sandbox-exec", "", "-f -n -p -D", 0),
    wrapper("kubie exec", "-e|--exit-early", "--context-headers", 2),
];

/// Programs whose operands are scripts, one each.
const SEVERAL_SCRIPTS: &[&str] = &["concurrently"];

/// `None` if the program is not one of these, or does not run a command here.
pub(super) fn read(name: &str, words: &[Arg], site: &CommandContext) -> Option<Reading> {
    if name == "cargo" {
        return cargo_watch(words);
    }
    if SEVERAL_SCRIPTS.contains(&name) {
        let mut reading = Reading::default();
        let scripts = words.iter().filter(|word| !word.start().starts_with('-'));
        scripts.for_each(|script| reading.script(std::slice::from_ref(script)));
        return Some(reading);
    }
    let named = |wrapper: &'static Wrapper| {
        let verbs = wrapper.name.strip_prefix(name).filter(|verbs| verbs.is_empty() || verbs.starts_with(' '))?;
        Some((wrapper, verbs_at(name, words, verbs)?))
    };
    let (wrapper, at) = WRAPPERS.iter().filter_map(named).max_by_key(|(wrapper, _)| wrapper.name.len())?;
    Some(wrapper.read(words, at + wrapper.name.split(' ').count() - 1, site))
}

impl Wrapper {
    fn read(&self, words: &[Arg], start: usize, site: &CommandContext) -> Reading {
        // The environment is another one, and may hold secrets.
        let mut reading = Reading { other_shell: true, ..Reading::default() };
        let (mut at, mut is_certain) = skip_options(words, start, &self.options);
        let own = words.get(start..at).unwrap_or_default();
        for script in values_of(own, self.scripts) {
            // nodemon puts the other words behind it.
            let behind = words.get(at..).filter(|_| self.name == "nodemon").unwrap_or_default();
            reading.script(&[std::slice::from_ref(&script), behind].concat());
        }
        if self.is_marked && !words.get(at.wrapping_sub(1)).is_some_and(|word| word.is("--")) {
            match words.iter().skip(at).position(|word| word.is("--")) {
                Some(place) => (at, is_certain) = (at + place + 1, true),
                None if reading.scripts.is_empty() => return reading.runs_any("the command that it runs is unknown"),
                None => return reading,
            }
        }
        let before = words.get(at..).unwrap_or_default().iter().take(self.before);
        is_certain &= before.clone().all(|word| word.is_one() && !word.may_be_option());
        at += before.count();
        at += usize::from(self.before > 0 && words.get(at).is_some_and(|word| word.is("--")));
        let mut command = words.get(at..).unwrap_or_default();
        if self.name.starts_with("nvm ") && command.len() > 1 && is_version(&command[0]) {
            command = &command[1..];
        }
        if self.name.starts_with("dotenv") && command.first().is_some_and(|first| first.is("run")) {
            command = skip_dashes(&command[1..]);
        }
        let assignments =
            command.iter().take_while(|word| self.name.starts_with("cross-env") && word.start().contains('='));
        let count = assignments.count();
        reading.assignments.extend_from_slice(&command[..count]);
        command = &command[count..];
        if command.is_empty() {
            return reading;
        }
        if !is_certain {
            let tried = command.len().min(4);
            reading.elsewhere.extend((0..tried).map(|first| command[first..].to_vec()));
            return reading.runs_any("which of its words are the command that it runs is not known");
        }
        let first = &command[0];
        if !first.is_one() || first.may_be_option() || first.literal().is_none() {
            return reading.runs_any(format!("the program that {} names is unknown", first.raw));
        }
        match self.inner {
            Inner::Script => reading.script(command),
            Inner::Command if self.name == "nodemon" => {
                reading.elsewhere.push([&[Arg::text("node")], command].concat());
            }
            Inner::Command => reading.command(&[&[self.program(first)], &command[1..]].concat()),
            Inner::ProjectTool => {
                let command = [&[self.program(first)], &command[1..]].concat();
                match runners::is_own_tool(command[0].start(), &command, site) {
                    true => reading.elsewhere.push(command),
                    false => reading.command(&command),
                }
            }
        }
        reading
    }

    /// `pnpm` of `corepack pnpm@9`, and `test` of `hatch run env:test`.
    fn program(&self, word: &Arg) -> Arg {
        let text = word.literal().unwrap_or_default();
        match self.name {
            "corepack" => Arg::text(text.split_once('@').map_or(text, |(name, _)| name)),
            "hatch run" => Arg::text(text.split_once(':').map_or(text, |(_, name)| name)),
            _ => word.clone(),
        }
    }
}

/// The values of these options, attached or the next word.
fn values_of(words: &[Arg], options: &str) -> Vec<Arg> {
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        for option in options.split_whitespace() {
            let attached = word.start().strip_prefix(option).is_some_and(|rest| rest.starts_with('='));
            if attached {
                found.push(word.without_start(option.len() + 1));
            } else if word.is(option) {
                found.extend(words.get(at + 1).cloned());
            }
        }
    }
    found
}

fn is_version(word: &Arg) -> bool {
    let text = word.start();
    let digits = text.strip_prefix('v').unwrap_or(text);
    digits.starts_with(|c: char| c.is_ascii_digit())
        || text.starts_with("lts/")
        || matches!(text, "node" | "default" | "stable")
}

/// `cargo watch -x 'test --lib' -s 'echo done' -- COMMAND`: `-x` is a command of cargo, `-s` a script.
fn cargo_watch(words: &[Arg]) -> Option<Reading> {
    const OPTIONS: OptionSpec = OptionSpec {
        flags: "-c|--clear -q|--quiet --no-vcs-ignores --no-dot-ignores --ignore-nothing --postpone --poll --why \
                --no-restart -B -N --notify --debug --skip-local-deps",
        values: "-w|--watch -i|--ignore -d|--delay -x|--exec -s|--shell -F|--features -E|--env -C|--workdir --use-shell",
    };
    let words = words.strip_prefix(&[Arg::text("watch")]).or_else(|| {
        let first = words.first()?;
        first.start().starts_with('+').then(|| words[1..].strip_prefix(&[Arg::text("watch")]))?
    })?;
    let (at, is_certain) = skip_options(words, 0, &OPTIONS);
    let own = words.get(..at).unwrap_or_default();
    let mut reading = Reading { other_shell: true, ..Reading::default() };
    for script in values_of(own, "-s --shell") {
        reading.script(std::slice::from_ref(&script));
    }
    for command in values_of(own, "-x --exec") {
        match command.literal() {
            Some(text) => reading.scripts.push(format!("cargo {text}")),
            None => reading = reading.runs_any("the command that it runs is unknown"),
        }
    }
    let command = words.get(at..).unwrap_or_default();
    reading.command(command);
    if values_of(own, "-C --workdir --use-shell").is_empty() && is_certain {
        if command.is_empty() && reading.scripts.is_empty() {
            reading.scripts.push("cargo check".to_owned());
        }
        return Some(reading);
    }
    Some(reading.runs_any("which of its words are the command that it runs, and in which folder, is not known"))
}

#[cfg(test)]
mod tests {
    use super::super::known;
    use super::*;

    #[test]
    fn no_table_describes_a_wrapper() {
        for wrapper in WRAPPERS {
            assert!(known::find(wrapper.name).is_none(), "{}", wrapper.name);
        }
    }
}
