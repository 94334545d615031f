//! The floor of builds: Unix sockets of their own, and caches that fill.

use std::io::{BufRead, BufReader};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use toold_test_kit::{ScriptedServer, ServerStep, answer, ok};
use toold_tests::{Setup, skip, skip_uninstalled};

use crate::sandbox::floors::{at, git, machine_has_floors};
use crate::sandbox::run;

/// Connects in each way, and says which of them worked. The arguments are sockets of others.
const SOCKETS: &str = r#"import ctypes, multiprocessing, os, socket, sys, tempfile, threading
def tell(name, act):
    try:
        print(name, act())
    except OSError as error:
        print(name, error.strerror or error)
def answered(server):
    connection, _ = server.accept()
    connection.sendall(connection.recv(9).upper())
def exchange(kind, address, bound=None):
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(bound or address)
    server.listen()
    threading.Thread(target=answered, args=[server]).start()
    client = socket.socket(socket.AF_UNIX, kind)
    client.connect(address)
    client.sendall(b"tea")
    return client.recv(9).decode()
def connect(address):
    client = socket.socket(socket.AF_UNIX)
    client.connect(address)
    return "reached"
def through_link(target):
    os.symlink(target, temp + "/link")
    return connect(temp + "/link")
def in_another_root(folder):
    # Here the daemon would take the folder for the private one.
    os.makedirs(folder + "/dev/shm", exist_ok=True)
    child = os.fork()
    if child == 0:
        try:
            ctypes.CDLL(None).unshare(0x10000000)
            os.chroot(folder)
            connect("/project")
            os._exit(1)
        except OSError:
            os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        raise OSError(1, "refused")
    return "reached"
if __name__ == "__main__":
    work = os.getcwd()
    temp = tempfile.mkdtemp()
    tell("path", lambda: exchange(socket.SOCK_STREAM, temp + "/a"))
    tell("packets", lambda: exchange(socket.SOCK_SEQPACKET, temp + "/b"))
    tell("abstract", lambda: exchange(socket.SOCK_STREAM, "\0own"))
    os.chdir(temp)
    tell("relative", lambda: exchange(socket.SOCK_STREAM, "c"))
    with multiprocessing.Manager() as manager:
        shared = manager.list([1])
        shared.append(2)
        print("manager", list(shared))
    with socket.create_server(("127.0.0.1", 0)) as server:
        tell("loopback", lambda: bool(socket.create_connection(server.getsockname())))
    daemon, outside, named, project, elsewhere = sys.argv[1:]
    tell("daemon", lambda: connect(daemon))
    tell("outside", lambda: connect(outside))
    tell("link", lambda: through_link(outside))
    tell("project", lambda: connect(project))
    tell("named", lambda: connect(named))
    tell("missing", lambda: connect(temp + "/none"))
    tell("file", lambda: connect(__file__))
    tell("abstract of others", lambda: connect("\0" + elsewhere))
    tell("in another root", lambda: in_another_root(work))
    tell("datagrams", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    tell("raw", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_RAW))
    tell("wrong family", lambda: socket.socket(socket.AF_UNIX).connect(""))
"#;

#[test]
fn a_build_makes_unix_sockets_and_reaches_those_alone_and_named_ones() {
    if !machine_has_floors() {
        return;
    }
    let setup = Setup::new().file("sockets.py", SOCKETS);
    let (outside, named, project) = (setup.path("home/outside"), setup.path("home/named"), setup.path("work/project"));
    let listeners = [&outside, &named, &project].map(|path| UnixListener::bind(path).unwrap());
    let abstract_name = format!("toold-test-{}", std::process::id());
    let elsewhere = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&abstract_name).unwrap()).unwrap();
    // A command has put a link in the place of one.
    let linked = setup.path("work/linked");
    std::os::unix::fs::symlink(&outside, &linked).unwrap();
    let config = format!(
        "[permission]\nlevel = \"develop\"\n[sandbox]\nsockets = [{:?}, {:?}, \"~/missing\"]\n",
        named.display(),
        linked.display()
    );
    let daemon = setup.config(&config).start();
    let line = [&daemon.socket(), &outside, &named, &project].map(|path| path.display().to_string()).join(" ");
    std::fs::write(daemon.work().join("test.sh"), format!("python3 sockets.py {line} {abstract_name}\n")).unwrap();
    let said = run(&mut daemon.connect(), "sh test.sh");
    let refused = "Permission denied";
    let expected = [
        "path TEA",
        "packets TEA",
        "abstract TEA",
        "relative TEA",
        "manager [1, 2]",
        "loopback True",
        // It sees nothing in the folders of the daemon.
        "daemon No such file or directory",
        "outside Permission denied",
        "link Permission denied",
        "project Permission denied",
        "named reached",
        "missing No such file or directory",
        "file Connection refused",
        "abstract of others Connection refused",
        "in another root refused",
        "datagrams Operation not permitted",
        "raw Operation not permitted",
        "wrong family Invalid argument",
    ];
    let lines: Vec<&str> = said.lines().collect();
    for line in expected {
        let is_daemon = line.starts_with("daemon ") && lines.contains(&format!("daemon {refused}").as_str());
        assert!(lines.contains(&line) || is_daemon, "{line}: {said}");
    }
    drop((listeners, elsewhere));
    // Without a build, there are pairs alone.
    assert!(run(&mut daemon.connect(), "ls").contains("sockets.py"));
}

/// Connects to each socket of the daemon that takes over programs, before they do, until its input ends.
const FIRST: &str = r#"import select, socket, sys
taken = []
print("looks", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for line in open("/proc/net/unix"):
        name = line.split()[-1]
        if name.startswith("@toold-"):
            try:
                taken.append(socket.socket(socket.AF_UNIX))
                taken[-1].connect("\0" + name[1:])
            except OSError:
                pass
"#;

#[test]
fn another_user_keeps_no_build_from_running() {
    let mut other = Command::new("setpriv");
    other.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "/usr/bin/python3", "-c", FIRST]);
    other.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Some(mut other) = other.spawn().ok().filter(|_| machine_has_floors()) else {
        return skip("another user cannot be tried here");
    };
    let mut line = String::new();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line != "looks\n" {
        other.wait().unwrap();
        return skip("only root can try another user");
    }
    let daemon = at("develop", Setup::new().file("build.sh", "echo built\n"));
    let mut wire = daemon.connect();
    let said: Vec<String> = (0..8).map(|_| run(&mut wire, "sh build.sh")).collect();
    drop(other.stdin.take());
    other.wait().unwrap();
    assert_eq!(said, ["built\n"; 8]);
}

/// The programs of Cargo of this toolchain, which need no home folder.
fn toolchain() -> Option<PathBuf> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let bin = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim()).join("bin");
    bin.join("cargo").exists().then_some(bin)
}

/// A crate as a registry has it, and its digest.
fn packed_crate(folder: &Path) -> (Vec<u8>, String) {
    let top = folder.join("tea-1.0.0");
    std::fs::create_dir_all(top.join("src")).unwrap();
    std::fs::write(top.join("Cargo.toml"), "[package]\nname = \"tea\"\nversion = \"1.0.0\"\nedition = \"2021\"\n")
        .unwrap();
    std::fs::write(top.join("src/lib.rs"), "pub fn drink() -> u32 { 7 }\n").unwrap();
    let tar = Command::new("tar").args(["czf", "tea.crate", "tea-1.0.0"]).current_dir(folder).status().unwrap();
    assert!(tar.success());
    let sum = Command::new("sha256sum").arg("tea.crate").current_dir(folder).output().unwrap();
    let sum = String::from_utf8(sum.stdout).unwrap().split(' ').next().unwrap().to_owned();
    (std::fs::read(folder.join("tea.crate")).unwrap(), sum)
}

/// A registry of one crate, on a port of this machine, and the digest of the crate.
fn registry(folder: &Path) -> (ScriptedServer, String) {
    let (content, digest) = packed_crate(folder);
    let entry = json!({"name": "tea", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}, "yanked": false});
    let server = ScriptedServer::start_thread(move |request| {
        let host = request.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("host: ").map(str::to_owned));
        let answer = match request.split(' ').nth(1).unwrap_or_default() {
            "/index/config.json" => {
                let downloads = format!("http://{}/crates", host.unwrap_or_default());
                ok("application/json", json!({"dl": downloads}).to_string())
            }
            "/index/3/t/tea" => ok("text/plain", format!("{entry}\n")),
            path if path.starts_with("/crates/") => ok("application/gzip", &content),
            _ => answer("404 Not Found", &[("Connection", "close")], ""),
        };
        vec![ServerStep::Send(answer)]
    });
    (server, digest)
}

/// A committed project with a lock file that needs the crate of the registry.
fn project_of_cargo(port: u16, digest: &str) -> Setup {
    let source = format!("sparse+http://localhost:{port}/index/");
    let lock = format!(
        "version = 3\n\n[[package]]\nname = \"shop\"\nversion = \"0.1.0\"\ndependencies = [\n \"tea\",\n]\n\n[[package]]\n\
         name = \"tea\"\nversion = \"1.0.0\"\nsource = \"{source}\"\nchecksum = \"{digest}\"\n"
    );
    let setup = Setup::new()
        .file("Cargo.toml", "[package]\nname = \"shop\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\ntea = { version = \"1\", registry = \"own\" }\n")
        .file("src/main.rs", "fn main() { println!(\"{}\", tea::drink()); }\n")
        .file(".cargo/config.toml", format!("[registries.own]\nindex = \"{source}\"\n"))
        .file("Cargo.lock", lock);
    let work = setup.path("work");
    for arguments in [&["init", "-q"][..], &["add", "-A"], &["commit", "-qm", "first"]] {
        git(&work, arguments);
    }
    setup
}

/// Everything that a person's cache holds afterwards.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}

#[test]
fn the_first_build_fills_a_cache_of_its_own_above_that_of_the_person() {
    if !machine_has_floors() {
        return;
    }
    let Some(bin) = toolchain() else { return skip_uninstalled("cargo") };
    // Nobody has run Cargo before; or somebody has, and has settings.
    for has_home in [false, true] {
        let packed = tempfile::tempdir().unwrap();
        let (server, digest) = registry(packed.path());
        let port = server.address.port();
        let mut setup = project_of_cargo(port, &digest);
        if has_home {
            setup = setup.file("../home/.cargo/config.toml", "[term]\nquiet = false\n");
        }
        let config = format!(
            "[permission]\nlevel = \"develop\"\n[sandbox]\nmode = \"workspace-write\"\nnetwork = [\"localhost:{port}\"]\n"
        );
        let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
        let daemon = setup.config(&config).start_by(|setup| {
            let mut command = setup.daemon_command();
            command.env("PATH", path);
            command
        });
        let result = daemon.connect().tool("bash", json!({"command": "cargo build --locked"}));
        assert_eq!(result["metadata"]["exit_code"], json!(0), "{result}");
        assert!(daemon.work().join("target/debug/shop").exists(), "{result}");
        assert!(server.requests().iter().any(|request| request.starts_with("GET /crates/")), "{result}");
        let settings = daemon.setup.path("home/.cargo/config.toml");
        let left = files_below(&daemon.setup.path("home/.cargo"));
        assert_eq!(left, if has_home { vec![settings] } else { Vec::new() });
    }
}

/// A build could leave code in the cache that is compiled elsewhere.
#[test]
fn a_build_changes_no_cache_of_the_person() {
    if !machine_has_floors() {
        return;
    }
    let script = "set -e\ncd ~/.cargo/registry\ncat src/tea/lib.rs\necho evil > src/tea/lib.rs\nrm cache/tea.crate\nmkdir new\n\
                  cat src/tea/lib.rs\n(echo x > ../bin/cargo) || echo refused\n(echo x > ../config.toml) || echo refused\n";
    let setup = Setup::new()
        .file("../home/.cargo/registry/src/tea/lib.rs", "good\n")
        .file("../home/.cargo/registry/cache/tea.crate", "packed\n")
        .file("../home/.cargo/bin/cargo", "#!/bin/sh\n")
        .file("../home/.cargo/config.toml", "token = \"secret\"\n[shown]\n")
        .file("build.sh", script);
    let daemon = at("develop", setup);
    let said = run(&mut daemon.connect(), "sh build.sh 2> /dev/null");
    assert_eq!(said, "good\nevil\nrefused\nrefused\n");
    let home = |name: &str| std::fs::read_to_string(daemon.setup.path("home/.cargo").join(name)).unwrap();
    assert_eq!(
        (home("registry/src/tea/lib.rs"), home("registry/cache/tea.crate")),
        ("good\n".into(), "packed\n".into())
    );
    assert!(!daemon.setup.path("home/.cargo/registry/new").exists());
    assert_eq!(
        (home("bin/cargo"), home("config.toml")),
        ("#!/bin/sh\n".into(), "token = \"secret\"\n[shown]\n".into())
    );
}
