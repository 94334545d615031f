//! Who cannot use the page: programs of tools, of agents and of other users, whatever they got to know.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::geteuid;
use serde_json::{Value, json};
use tempfile::TempDir;
use toold_tests::{Browser, Setup, TestDaemon, skip, toolctl, until};

use crate::principals::peers::{ALLOW, nothing_is_granted, start_agent};

/// Tries everything that needs a cookie or a code, and writes the answers to a file. The last argument says how it hides.
const CALL: &str = r#"
import ctypes, json, os, socket, struct, sys, threading
# Loaded now: another user may not be able to read it.
import encodings.idna
address, host, cookie, code, out, way = sys.argv[1:7]
if way.startswith("user "):
    os.setuid(int(way[5:]))
if way == "undumpable":
    assert ctypes.CDLL(None).prctl(4, 0, 0, 0, 0) == 0

def frame(text):
    data = text.encode()
    return bytes([0x81, 0x80 | 126]) + struct.pack("!H", len(data)) + bytes(4) + data

def request(line, headers, rest=b""):
    head = [line + " HTTP/1.1", "Host: " + host, "Origin: http://" + host, "Cookie: " + cookie, *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + rest

def answer(data):
    s = socket.create_connection(address.rsplit(":", 1))
    s.sendall(data)
    text = s.recv(65536).decode(errors="replace")
    s.close()
    return [int(text.split(" ")[1]), text]

GRANT = frame(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "permissions.grant",
                          "params": {"category": "shell", "pattern": "**", "scope": "always"}}))
UPGRADE = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
           "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]

def run():
    if way == "thread":
        # A table of descriptors that is this thread's alone.
        assert ctypes.CDLL(None).unshare(0x400) == 0
    body = json.dumps({"code": code})
    told = {
        "login": answer(request("POST /page/login", ["Content-Type: application/json", f"Content-Length: {len(body)}"],
                                body.encode())),
        "session": answer(request("GET /page/session", [])),
        "push": answer(request("POST /page/push", [f"Content-Length: {len(code)}"], code.encode())),
        "rpc": answer(request("GET /page/rpc", UPGRADE, GRANT)),
    }
    # Sends all at once, and waits for no answer.
    gone = socket.create_connection(address.rsplit(":", 1))
    gone.sendall(request("GET /page/rpc", UPGRADE, GRANT))
    gone.close()
    half = socket.create_connection(address.rsplit(":", 1))
    half.sendall(request("GET /page/rpc", UPGRADE, GRANT))
    half.shutdown(socket.SHUT_WR)
    text = half.recv(65536).decode(errors="replace")
    told["half"] = [int(text.split(" ")[1]), text]
    with open(out + ".part", "w") as file:
        json.dump(told, file)
    os.rename(out + ".part", out)

thread = threading.Thread(target=run)
thread.start()
thread.join()
"#;

/// A program that calls the page with a cookie of a browser that is signed in, and with a code that nobody used.
struct PageCaller<'d> {
    daemon: &'d TestDaemon,
    browser: Browser,
    code: String,
    /// Other users have to reach it.
    folder: TempDir,
}

impl<'d> PageCaller<'d> {
    fn new(daemon: &'d TestDaemon) -> Self {
        // A link may name a host that is not known here.
        let open = || daemon.connect().result("page.open", json!({}));
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (first, second) = (open(), open());
        let mut browser = Browser { address: text(&first["address"]), cookie: None };
        assert_eq!(browser.sign_in(&text(&first["code"])).status, 204);
        let code = text(&second["code"]);
        let folder = tempfile::Builder::new().prefix("toold-page-caller-").tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
        std::fs::write(folder.path().join("call.py"), CALL).unwrap();
        Self { daemon, browser, code, folder }
    }

    fn arguments(&self, host: &str, way: &str) -> Vec<String> {
        let cookie = self.browser.cookie.clone().unwrap();
        let script = self.folder.path().join("call.py").display().to_string();
        let out = self.out().display().to_string();
        [&script, &self.browser.address, host, &cookie, &self.code, &out, way].map(str::to_owned).to_vec()
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn line(&self, way: &str) -> String {
        let words = self.arguments(&self.browser.address, way);
        words.iter().fold("python3".to_owned(), |line, word| format!("{line} '{word}'"))
    }

    /// What it was answered, once it has tried everything.
    fn told(&self) -> Value {
        let text = until("all is tried", || std::fs::read_to_string(self.out()).ok());
        std::fs::remove_file(self.out()).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    #[track_caller]
    fn is_refused(&self, words: &str, case: &str) {
        let told = self.told();
        for (tried, answer) in told.as_object().unwrap() {
            assert_eq!(answer[0], 403, "{case}: {tried}: {answer}");
            assert!(answer.to_string().contains(words), "{case}: {tried}: {answer}");
        }
        nothing_is_granted(self.daemon);
    }

    /// The code is still good for a browser, and so is the cookie.
    #[track_caller]
    fn a_browser_is_served(mut self) {
        assert_eq!(self.browser.get("/page/session").status, 204);
        self.browser.connect().result("daemon.status", json!({}));
        let code = self.code.clone();
        assert_eq!(self.browser.sign_in(&code).status, 204);
    }
}

#[test]
fn a_tool_cannot_use_the_page() {
    let daemon = Setup::new().config(ALLOW).start();
    let caller = PageCaller::new(&daemon);
    let words = "a tool or an agent cannot use the page";
    for way in ["", "undumpable", "thread"] {
        for before in ["", "env -i PATH=\"$PATH\" setsid -f "] {
            let wait = format!("; until [ -e {} ]; do sleep 0.02; done", caller.out().display());
            let command = format!("{before}{} >/dev/null 2>&1{wait}", caller.line(way));
            let ran = daemon.connect().tool("bash", json!({"command": command}));
            assert_eq!(ran["is_error"], false, "{ran}");
            caller.is_refused(words, &format!("{before}{way}"));
        }
    }
    caller.a_browser_is_served();
}

#[test]
fn an_agent_cannot_use_the_page() {
    let daemon = TestDaemon::start();
    let caller = PageCaller::new(&daemon);
    for line in [caller.line(""), format!("setsid {}", caller.line(""))] {
        let (status, output) = start_agent(&daemon, "connected", &line).done();
        assert_eq!(status, 0, "{output}");
        caller.is_refused("a tool or an agent cannot use the page", &line);
    }
    caller.a_browser_is_served();
}

/// Signs in, then becomes an agent by starting the client of one, and tries the cookie from both sides of that.
const BROWSER_THEN_AGENT: &str = r#"
import json, os, socket, subprocess, sys
address, code, toolctl = sys.argv[1:4]

def ask(line, headers, body=""):
    head = [line + " HTTP/1.1", "Host: " + address, "Origin: http://" + address, *headers]
    s = socket.create_connection(address.rsplit(":", 1))
    s.sendall(("\r\n".join(head) + "\r\n\r\n" + body).encode())
    return s.recv(65536).decode()

def session(cookie):
    return int(ask("GET /page/session", ["Cookie: " + cookie]).split(" ")[1])

def child(work):
    out, into = os.pipe()
    if os.fork() == 0:
        os.write(into, json.dumps(work()).encode())
        os._exit(0)
    return lambda: json.loads(os.read(out, 65536))

def browser():
    body = json.dumps({"code": code})
    headers = ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    login = ask("POST /page/login", headers, body)
    cookie = login.lower().split("set-cookie: ")[1].split(";")[0]
    os.write(signed_in[1], cookie.encode())
    os.read(started[0], 1)
    return session(cookie)

signed_in, started = os.pipe(), os.pipe()
of_browser = child(browser)
cookie = os.read(signed_in[0], 4096).decode()
agent = subprocess.Popen([toolctl, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "codex", "version": "1"}}
agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}) + "\n")
agent.stdin.flush()
agent.stdout.readline()
of_agent = child(lambda: session(cookie))()
os.write(started[1], b"1")
print(json.dumps({"browser": of_browser(), "agent": of_agent}))
agent.stdin.close()
agent.wait()
"#;

#[test]
fn a_browser_stays_a_persons_when_the_program_that_started_it_starts_an_agent() {
    let daemon = TestDaemon::start();
    let opened = daemon.connect().result("page.open", json!({}));
    let mut command = daemon.setup.command(Path::new("python3"));
    let text = |name: &str| opened[name].as_str().unwrap();
    command.args(["-c", BROWSER_THEN_AGENT, text("address"), text("code")]).arg(toolctl());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let told: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(told, json!({"browser": 204, "agent": 403}));
}

/// By whatever name the page is called: one of `page.hosts` is no word for the user who connects.
#[test]
fn another_user_cannot_use_the_page_unless_it_is_the_proxys() {
    if !geteuid().is_root() {
        return skip("only root can be another user");
    }
    const OTHER: &str = "65534";
    let hosts = "[page]\nhosts = [\"desk.example\"]\n";
    let call = |caller: &PageCaller, host: &str| {
        let mut command = std::process::Command::new("python3");
        let status = command.args(caller.arguments(host, &format!("user {OTHER}"))).stdin(Stdio::null()).status();
        assert!(status.unwrap().success());
    };
    let daemon = Setup::new().config(hosts).start();
    let caller = PageCaller::new(&daemon);
    for host in [caller.browser.address.as_str(), "desk.example"] {
        call(&caller, host);
        caller.is_refused("this page belongs to another user of this machine", host);
    }
    drop(caller);
    let daemon = Setup::new().config(&format!("{hosts}proxy_user = \"{OTHER}\"\n")).start();
    let caller = PageCaller::new(&daemon);
    call(&caller, "desk.example");
    let told = caller.told();
    assert_eq!(told["login"][0], 204, "{told}");
}
