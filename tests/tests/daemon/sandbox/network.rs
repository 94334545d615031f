//! The network by host: what is reached, who is asked, and that there is no other way out.
//!
//! Names below `localhost` are this machine, so that servers of the tests have several hosts. Programs connect to those
//! directly unless `no_proxy` is unset.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use toold_test_kit::{ScriptedServer, ServerStep, answer, ok, redirect};
use toold_tests::{Setup, TestDaemon, Wire, skip, skip_uninstalled, until};

use crate::sandbox::{confined, run};

const THROUGH_GUARD: &str = "unset no_proxy NO_PROXY";

fn server() -> ScriptedServer {
    ScriptedServer::thread_of(ok("text/plain", "what it serves\n"))
}

/// A daemon whose commands reach these hosts, and are asked about others; `None` where the machine cannot give that.
fn by_host(hosts: &[String], setup: Setup) -> Option<TestDaemon> {
    by_host_with(hosts, "", setup)
}

/// The same with more configuration, above the sandbox.
fn by_host_with(hosts: &[String], rules: &str, setup: Setup) -> Option<TestDaemon> {
    if !Path::new("/usr/bin/curl").exists() {
        skip_uninstalled("curl");
        return None;
    }
    let hosts: Vec<String> = hosts.iter().map(|host| format!("{host:?}")).collect();
    confined_with(&format!("mode = \"workspace-write\"\nnetwork = [{}]", hosts.join(", ")), rules, setup)
}

fn confined_with(sandbox: &str, rules: &str, setup: Setup) -> Option<TestDaemon> {
    confined(&format!("{sandbox}\n{rules}"), setup)
}

fn rule(action: &str, host: &str) -> String {
    format!("[[permission.rules]]\ncategory = \"network\"\npattern = \"{host}\"\naction = \"{action}\"\n")
}

fn subscribed(daemon: &TestDaemon) -> Wire {
    let mut wire = daemon.connect();
    wire.result("permissions.subscribe", json!({}));
    wire
}

#[track_caller]
fn asked(wire: &mut Wire) -> Value {
    let mut event = wire.notification("permissions.event")["result"].take();
    assert_eq!(event["type"], "asked", "{event}");
    event["request"].take()
}

fn start(wire: &mut Wire, command: &str, call_id: &str) -> u64 {
    wire.request("tools.execute", json!({"name": "bash", "arguments": {"command": command}, "call_id": call_id}))
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

/// The decisions about hosts of the last call of `bash` in the audit log.
fn hosts_in_audit(daemon: &TestDaemon) -> Vec<Value> {
    let list = daemon.connect().result("audit.query", json!({"tool": "bash", "limit": 1}));
    // None before the call has ended.
    let decisions = list["entries"][0]["decisions"].as_array().cloned().unwrap_or_default();
    decisions.into_iter().filter(|decision| decision["category"] == "network").collect()
}

#[test]
fn a_listed_host_is_reached_in_each_way_and_recorded() {
    let server = server();
    let port = server.address.port();
    let Some(daemon) = by_host(&[format!("*.localhost:{port}")], Setup::new()) else { return };
    let mut wire = daemon.connect();
    let url = format!("http://a.localhost:{port}/");
    for way in ["", "-p", "-x \"${http_proxy/http/socks5h}\""] {
        let result = wire.tool("bash", json!({"command": format!("{THROUGH_GUARD}; curl -sS {way} {url}")}));
        assert_eq!(text(&result), "what it serves\n", "{way}");
        assert_eq!(result["metadata"]["sandbox"], "workspace-write, network by host");
        let [decision] = &hosts_in_audit(&daemon)[..] else { panic!("one host") };
        assert_eq!(decision["target"], format!("a.localhost:{port}"));
        assert_eq!((&decision["verdict"], &decision["rule"]), (&json!("allow"), &json!("[sandbox] network lists it")));
        let traffic = &decision["traffic"];
        assert_eq!(traffic["connections"], 1, "{decision}");
        assert!(traffic["sent_bytes"].as_u64().unwrap() > 50, "{decision}");
        assert!(traffic["received_bytes"].as_u64().unwrap() > 50, "{decision}");
    }
    let shown = daemon.toolctl(&["audit", "--decisions"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains(" bytes sent, "), "{shown:?}");
}

#[test]
fn a_host_waits_for_a_person_once_for_each_call() {
    let server = server();
    let port = server.address.port();
    let rules = rule("ask", &format!("*.localhost:{port}"));
    let Some(daemon) = by_host_with(&[format!("*.localhost:{port}")], &rules, Setup::new()) else { return };
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let get = |host: &str| format!("curl -sS http://{host}.localhost:{port}/");
    // Two at once, and one later: all wait for the same answer.
    let line = format!("{THROUGH_GUARD}; {0} & {0}; wait; {0}; {1} -f", get("a"), get("b"));
    let id = start(&mut agent, &line, "c");
    let ask = asked(&mut person);
    assert_eq!((&ask["category"], &ask["target"]), (&json!("network"), &json!(format!("a.localhost:{port}"))));
    assert!(ask["reason"].as_str().unwrap().contains("curl -sS"), "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    assert_eq!(person.notification("permissions.event")["result"]["type"], "resolved");
    let ask = asked(&mut person);
    assert_eq!(ask["target"], format!("b.localhost:{port}"));
    let reply = json!({"request_id": ask["request_id"], "action": "deny", "message": "not that one"});
    person.result("permissions.reply", reply);
    let result = agent.answer(id)["result"].take();
    assert!(text(&result).starts_with(&"what it serves\n".repeat(3)), "{result}");
    assert!(text(&result).contains("403") && text(&result).contains("the user said no: not that one"), "{result}");
    assert_eq!(server.requests().len(), 3);
    let verdicts: Vec<Value> = hosts_in_audit(&daemon).iter().map(|decision| decision["verdict"].clone()).collect();
    assert_eq!(verdicts, ["allow", "deny"]);
}

#[test]
fn a_denied_host_is_answered_with_the_reason() {
    let server = server();
    let port = server.address.port();
    let Some(daemon) = by_host(&[format!("a.localhost:{port}")], Setup::new()) else { return };
    let mut wire = daemon.connect();
    // Nobody is there to be asked.
    let text = run(&mut wire, "curl -sS http://other.example/x; curl -sS -o out https://other.example/x");
    let reason = "not allowed: network other.example:80: requests to this host need approval";
    assert!(text.starts_with(&format!("toold: {reason}")) && text.contains(&format!("[network: {reason}")), "{text}");
    assert!(text.contains("response 403"), "{text}");
    // What the program asks for and what the answer leads to are different hosts.
    let elsewhere = ScriptedServer::thread_of(redirect("302 Found", "http://other.example/y"));
    let listed = format!("a.localhost:{}", elsewhere.address.port());
    drop(daemon);
    let Some(daemon) = by_host(std::slice::from_ref(&listed), Setup::new()) else { return };
    let text = run(&mut daemon.connect(), &format!("{THROUGH_GUARD}; curl -sSL http://{listed}/"));
    assert!(text.starts_with(&format!("toold: {reason}")), "{text}");
    assert_eq!(elsewhere.requests().len(), 1);
}

#[test]
fn rules_decide_before_the_list() {
    let server = server();
    let port = server.address.port();
    let rules = rule("deny", &format!("a.localhost:{port}"));
    let Some(daemon) = by_host_with(&[format!("*.localhost:{port}")], &rules, Setup::new()) else { return };
    let line = |host: &str| format!("{THROUGH_GUARD}; curl -sS http://{host}.localhost:{port}/");
    let text = run(&mut daemon.connect(), &line("a"));
    assert!(text.contains("(by rule deny network"), "{text}");
    assert_eq!(run(&mut daemon.connect(), &line("b")), "what it serves\n");
    assert_eq!(server.requests().len(), 1);
}

/// Tries every way out that needs no guard.
const WAYS_OUT: &str = r#"
import os, socket, sys
port, guard = int(sys.argv[1]), sys.argv[2]
def report(name, make):
    try:
        make(); print(name, "reached")
    except OSError as error:
        print(name, error.strerror or error)
def enter():
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(os.open("/proc/%d/ns/net" % os.getppid(), os.O_RDONLY), 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def datagram(family, address):
    s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(5); s.sendto(b"x", address)
report("loopback", lambda: socket.create_connection(("127.0.0.1", port), 5))
report("loopback6", lambda: socket.create_connection(("::1", port), 5))
report("address", lambda: socket.create_connection(("192.0.2.1", 80), 5))
report("address6", lambda: socket.create_connection(("2001:db8::1", 80), 5))
report("datagram", lambda: datagram(socket.AF_INET, ("192.0.2.1", 53)))
report("name", lambda: socket.getaddrinfo("packages.example", 80))
report("unix", lambda: socket.socket(socket.AF_UNIX).connect(guard))
report("abstract", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
report("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
report("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP))
report("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
report("namespace", enter)
report("routes", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
report("open-sockets", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4))
report("audit", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 9))
report("devices", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15))
"#;

#[test]
fn there_is_no_other_way_out() {
    let server = server();
    let setup = Setup::new().file("out.py", WAYS_OUT);
    let Some(daemon) = by_host(&["a.example".to_owned()], setup) else { return };
    let port = server.address.port();
    let said = run(&mut daemon.connect(), &format!("python3 out.py {port} {}", daemon.socket().display()));
    let lines: Vec<(&str, &str)> = said.lines().filter_map(|line| line.split_once(' ')).collect();
    let of = |name: &str| lines.iter().find(|(own, _)| *own == name).unwrap_or_else(|| panic!("{said}")).1;
    for name in ["unix", "abstract", "packet", "vsock", "raw", "audit", "devices"] {
        assert_eq!(of(name), "Operation not permitted", "{name}: {said}");
    }
    for name in ["loopback", "loopback6", "address", "address6", "datagram", "name", "namespace"] {
        assert_ne!(of(name), "reached", "{name}: {said}");
    }
    assert_eq!((of("routes"), of("open-sockets")), ("reached", "reached"), "{said}");
    let said = run(&mut daemon.connect(), "python3 -c 'import socket; socket.getaddrinfo(\"packages.example\", 80)'");
    assert!(said.contains("[network: hosts are reached only by programs that use the proxy"), "{said}");
    assert!(server.requests().is_empty());
}

#[test]
fn this_machine_and_the_addresses_of_clouds_are_refused_without_an_ask() {
    let server = server();
    let port = server.address.port();
    let Some(daemon) = by_host(&["*".to_owned(), "*.example".to_owned()], Setup::new()) else { return };
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    for host in [
        format!("127.0.0.1:{port}"),
        format!("2130706433:{port}"),
        format!("0x7f.1:{port}"),
        format!("[::1]:{port}"),
        format!("[::ffff:127.0.0.1]:{port}"),
        format!("localhost:{port}"),
        format!("a.localhost:{port}"),
        format!("0.0.0.0:{port}"),
        "169.254.169.254".to_owned(),
    ] {
        // The proxy is named by hand, since curl would connect to some of them directly.
        let line = format!("{THROUGH_GUARD}; curl -sS -g -p -x $http_proxy http://{host}/");
        let said = run(&mut agent, &line);
        assert!(
            said.contains("is not a public address, and neither [sandbox] network nor a rule or a grant names it"),
            "{host}: {said}"
        );
        assert!(said.contains("403"), "{host}: {said}");
    }
    assert_eq!(person.result("permissions.pending", json!({}))["asks"], json!([]));
    assert!(server.requests().is_empty());
}

#[test]
fn a_name_that_leads_to_this_machine_is_not_connected_to() {
    let server = server();
    let port = server.address.port();
    // The daemon has a file of hosts of its own, in which the name of a listed host leads here.
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    let probe = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", "mount --bind /etc/hosts /etc/hosts"];
    let can = std::process::Command::new(probe[0]).args(&probe[1..]).output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skip("this machine allows no mounts in user namespaces");
    }
    let setup = Setup::new();
    let hosts = setup.path("hosts");
    std::fs::write(&hosts, "127.0.0.1 localhost\n127.0.0.1 rebound.example\n").unwrap();
    let hosts = hosts.display().to_string();
    let setup = setup.through(&["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, &hosts]);
    let Some(daemon) = by_host(&[format!("rebound.example:{port}")], setup) else { return };
    let said = run(&mut daemon.connect(), &format!("curl -sS http://rebound.example:{port}/"));
    assert!(said.contains("127.0.0.1 is not a public address"), "{said}");
    assert!(server.requests().is_empty());
}

/// A firewall may hide what listens at this machine's public address, but not from the daemon.
#[test]
fn a_public_address_of_this_machine_is_no_host_of_the_internet() {
    let script = "ip link set lo up && ip address add 1.1.1.1/32 dev lo && exec \"$@\"";
    let apart = ["unshare", "--user", "--map-root-user", "--net", "sh", "-c", script, "sh"];
    let can = std::process::Command::new(apart[0]).args(&apart[1..]).arg("true").output();
    if !can.is_ok_and(|output| output.status.success()) {
        return skip("this machine allows no network namespaces, or has no ip");
    }
    let Some(daemon) = by_host(&["*:8080".to_owned(), "*.example".to_owned()], Setup::new().through(&apart)) else {
        return;
    };
    let said = run(&mut daemon.connect(), "curl -sS http://1.1.1.1:8080/");
    assert!(said.contains("1.1.1.1 is an address of this machine, and neither [sandbox] network"), "{said}");
    // Listed as it is.
    let Some(daemon) = by_host(&["1.1.1.1:8080".to_owned()], Setup::new().through(&apart)) else { return };
    let said = run(&mut daemon.connect(), "curl -sS http://1.1.1.1:8080/");
    assert!(said.contains("can't connect to 1.1.1.1:8080"), "{said}");
}

#[test]
fn a_named_port_of_this_machine_is_there_at_the_same_port() {
    let server = server();
    let port = server.address.port();
    let Some(daemon) = by_host(&[format!("localhost:{port}")], Setup::new()) else { return };
    let mut wire = daemon.connect();
    assert_eq!(run(&mut wire, &format!("curl -sS http://localhost:{port}/")), "what it serves\n");
    let [decision] = &hosts_in_audit(&daemon)[..] else { panic!("one host") };
    assert_eq!((&decision["target"], &decision["verdict"]), (&json!(format!("localhost:{port}")), &json!("allow")));
    assert_eq!(decision["traffic"]["connections"], 1);
}

/// A person's rule or grant is as good as an entry of the list, if it names the port; a wildcard reaches no such place.
#[test]
fn a_grant_that_names_a_port_of_this_machine_reaches_it() {
    let server = server();
    let port = server.address.port();
    let rules = rule("allow", &format!("*.localhost:{port}"));
    let Some(daemon) = by_host_with(&[], &rules, Setup::new()) else { return };
    let mut wire = daemon.connect();
    let through_guard = |host: &str| format!("{THROUGH_GUARD}; curl -sS -p -x $http_proxy http://{host}:{port}/");
    let said = run(&mut wire, &through_guard("localhost"));
    let way = format!("allow it with toolctl permissions grant network localhost:{port}");
    assert!(said.contains(&way), "{said}");
    let pattern = format!("localhost:{port}");
    wire.result("permissions.grant", json!({"category": "network", "pattern": pattern, "scope": "session"}));
    assert_eq!(run(&mut wire, &format!("curl -sS http://localhost:{port}/")), "what it serves\n");
    assert_eq!(run(&mut wire, &through_guard("localhost")), "what it serves\n");
    let said = run(&mut wire, &through_guard("a.localhost"));
    assert!(said.contains("is not a public address"), "{said}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_server_of_the_session_is_there_for_its_next_command() {
    let Some(daemon) = by_host(&[], Setup::new().file("page.txt", "of the session\n")) else { return };
    let (mut wire, mut other) = (daemon.connect(), daemon.connect());
    let serve = "python3 -u -c 'import http.server as h; s = h.ThreadingHTTPServer((\"127.0.0.1\", 0), \
                 h.SimpleHTTPRequestHandler); print(s.server_port, flush=True); s.serve_forever()'";
    let result = wire.tool("bash", json!({"command": serve, "background": true}));
    let shell = result["metadata"]["shell_id"].as_str().unwrap().to_owned();
    let port = until("the server has a port", || {
        let output = wire.tool("bash_output", json!({"shell_id": shell}));
        text(&output).lines().next()?.trim().parse::<u16>().ok()
    });
    let get = format!("curl -sS http://localhost:{port}/page.txt");
    assert_eq!(run(&mut wire, &get), "of the session\n");
    assert!(run(&mut other, &get).contains("exit code 7"), "another session has a network of its own");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "it is not there outside");
    wire.tool("kill_shell", json!({"shell_id": shell}));
}

/// Speaks with the guard by hand. The first argument is what to do.
const BY_HAND: &str = r#"
import os, re, socket, sys
secret, host, port = re.match(r"http://toold:(\w+)@([\d.]+):(\d+)", os.environ["http_proxy"]).groups()
target = sys.argv[2] if len(sys.argv) > 2 else "a.example:80"
def connect():
    return socket.create_connection((host, int(port)), 20)
def status(text, more=b""):
    s = connect(); s.sendall(text.encode() + more)
    try:
        return s.recv(4096).split(b"\r\n")[0].decode()[:12]
    except ConnectionError:
        return "closed"
def basic(password):
    import base64
    return "Proxy-Authorization: Basic " + base64.b64encode(("toold:" + password).encode()).decode() + "\r\n"
what = sys.argv[1]
if what == "credentials":
    head = "GET http://%s/ HTTP/1.1\r\n" % target
    print(status(head + "\r\n"), status(head + basic("x" * 32) + "\r\n"), status(head + basic("") + "\r\n"))
    print(status("CONNECT %s HTTP/1.1\r\n\r\n" % target))
    for answer in (b"\x05\x01\x00", b"\x05\x01\x02\x01\x05toold\x01x"):
        s = connect(); s.sendall(answer); print(s.recv(2).hex())
elif what == "heads":
    print(status("GET http://%s/ HTTP/1.1\r\n" % target + "X: " + "x" * 70000 + "\r\n\r\n"))
    print(status("GET http://%s/ HTTP/1.1\r\n" % target + "X: 1\r\n" * 500 + "\r\n"))
    print(status("GET / HTTP/1.1\r\n\r\n"), status("\x16\x03\x01\r\n\r\n"), status("CONNECT a HTTP/1.1\r\n\r\n"))
elif what == "half":
    # A program that has said everything closes its half, and still gets the answer.
    s = connect()
    s.sendall(("CONNECT %s HTTP/1.1\r\n" % target + basic(secret) + "\r\n").encode())
    assert s.recv(4096).startswith(b"HTTP/1.1 200")
    s.sendall(b"all of it"); s.shutdown(socket.SHUT_WR)
    text = b""
    while more := s.recv(4096): text += more
    print(text.decode())
elif what == "idle":
    held = [connect() for _ in range(60)]
    for s in held: s.sendall(b"GET http://" )
    print(status("GET http://%s/ HTTP/1.1\r\n" % target + basic(secret) + "\r\n"))
elif what == "pipelined":
    # The second request is for a host that is not listed: it is not answered by the first one's.
    s = connect()
    one = "GET http://%s/one HTTP/1.1\r\n" % target + basic(secret) + "\r\n"
    s.sendall((one + one.replace(target, "b.example").replace("/one", "/two")).encode())
    text = b""
    while more := s.recv(4096): text += more
    print(text.count(b"HTTP/1.1"), b"connection: close" in text.lower())
elif what == "old":
    print(secret)
elif what == "again":
    print(status("GET http://%s/ HTTP/1.1\r\n" % target + basic(sys.argv[3]) + "\r\n"))
"#;

#[test]
fn the_guard_serves_the_programs_of_a_call_alone() {
    let Some(daemon) = by_host(&[], Setup::new().file("by_hand.py", BY_HAND)) else { return };
    let mut wire = daemon.connect();
    let no_call = "HTTP/1.1 407";
    let said = run(&mut wire, "python3 by_hand.py credentials");
    assert_eq!(said, format!("{no_call} {no_call} {no_call}\n{no_call}\n05ff\n0502\n"), "{said}");
    // The credentials end with the call, also for a process that it left behind.
    let secret = run(&mut wire, "python3 by_hand.py old").trim().to_owned();
    assert_eq!(run(&mut wire, &format!("python3 by_hand.py again a.example:80 {secret}")), format!("{no_call}\n"));
    // The listener is in the namespace: nobody is there outside.
    let guard: SocketAddr = run(&mut wire, "echo ${http_proxy##*@}").trim().parse().unwrap();
    assert!(TcpStream::connect(guard).is_err());
}

#[test]
fn odd_connections_end_and_others_go_on() {
    let server = ScriptedServer::thread_of(answer("200 OK", &[("connection", "keep-alive")], "served"));
    let port = server.address.port();
    let target = format!("a.localhost:{port}");
    let Some(daemon) = by_host(std::slice::from_ref(&target), Setup::new().file("by_hand.py", BY_HAND)) else {
        return;
    };
    let mut wire = daemon.connect();
    let said = run(&mut wire, &format!("python3 by_hand.py heads {target}"));
    assert_eq!(said, "HTTP/1.1 431\nHTTP/1.1 400\nHTTP/1.1 400 HTTP/1.1 400 HTTP/1.1 400\n", "{said}");
    assert_eq!(run(&mut wire, &format!("python3 by_hand.py idle {target}")), "HTTP/1.1 200\n");
    assert_eq!(run(&mut wire, &format!("python3 by_hand.py pipelined {target}")), "1 True\n");
}

/// Reads until its client has no more to say, and then answers.
fn patient_server() -> (u16, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        stream.write_all(format!("got {text}").as_bytes()).unwrap();
        text
    });
    (port, serving)
}

#[test]
fn a_connection_may_be_closed_by_halves() {
    let (port, serving) = patient_server();
    let target = format!("a.localhost:{port}");
    let setup = Setup::new().file("by_hand.py", BY_HAND);
    let Some(daemon) = by_host(std::slice::from_ref(&target), setup) else {
        // The server waits for one connection.
        drop(TcpStream::connect(("127.0.0.1", port)));
        serving.join().unwrap();
        return;
    };
    assert_eq!(run(&mut daemon.connect(), &format!("python3 by_hand.py half {target}")), "got all of it\n");
    assert_eq!(serving.join().unwrap(), "all of it");
}

#[test]
fn an_upload_is_counted_before_it_is_answered() {
    const LENGTH: usize = 300_000;
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = format!("a.localhost:{}", listener.local_addr().unwrap().port());
    let setup = Setup::new().file("body", "x".repeat(LENGTH));
    let Some(daemon) = by_host(std::slice::from_ref(&target), setup) else { return };
    let serving = std::thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).unwrap();
        }
        stream.read_exact(&mut vec![0; LENGTH]).unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\nconnection: close\r\n\r\nall";
        stream.get_mut().write_all(answer).unwrap();
    });
    let line = format!("{THROUGH_GUARD}; curl -sS -H 'Expect:' --data-binary @body http://{target}/");
    assert_eq!(run(&mut daemon.connect(), &line), "all");
    serving.join().unwrap();
    let sent = hosts_in_audit(&daemon)[0]["traffic"]["sent_bytes"].as_u64().unwrap();
    assert!(sent > LENGTH as u64, "{sent}");
}

#[test]
fn an_ask_about_a_host_ends_with_its_call_and_with_the_daemon() {
    let rules = rule("ask", "*.example");
    let Some(mut daemon) = by_host_with(&[], &rules, Setup::new()) else { return };
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = start(&mut agent, "curl -sS http://a.example/", "c");
    asked(&mut person);
    agent.result("tools.cancel", json!({"call_id": "c"}));
    assert_eq!(agent.answer(id)["error"]["code"], -32800);
    let resolved = person.notification("permissions.event")["result"].take();
    assert_eq!((&resolved["type"], &resolved["action"]), (&json!("resolved"), &json!("cancelled")), "{resolved}");
    until("its processes are gone", || daemon.processes().is_empty().then_some(()));
    // A program that ends by itself leaves no ask.
    let id = start(
        &mut agent,
        "curl -sS http://a.example/ & until [ -e go ]; do sleep 0.1; done; kill $!; wait; echo done",
        "d",
    );
    asked(&mut person);
    std::fs::write(daemon.work().join("go"), "").unwrap();
    assert!(text(&agent.answer(id)["result"]).contains("done"));
    assert_eq!(person.notification("permissions.event")["result"]["action"], "cancelled");
    start(&mut agent, "curl -sS http://a.example/", "e");
    asked(&mut person);
    daemon.signal("TERM");
    assert!(daemon.wait().success());
    daemon.start_again();
    assert_eq!(daemon.connect().result("permissions.pending", json!({}))["asks"], json!([]));
}

#[test]
fn a_program_in_the_background_asks_and_is_recorded_at_its_end() {
    let server = server();
    let port = server.address.port();
    let rules = rule("ask", &format!("*.localhost:{port}"));
    let Some(daemon) = by_host_with(&[format!("*.localhost:{port}")], &rules, Setup::new()) else { return };
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let line = format!("{THROUGH_GUARD}; curl -sS http://a.localhost:{port}/");
    let result = agent.tool("bash", json!({"command": line, "background": true}));
    let shell = result["metadata"]["shell_id"].as_str().unwrap().to_owned();
    let ask = asked(&mut person);
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "allow"}));
    until("it has its answer", || {
        let output = agent.tool("bash_output", json!({"shell_id": shell}));
        text(&output).contains("what it serves").then_some(())
    });
    let row = until("its hosts are recorded", || {
        let row = hosts_in_audit(&daemon);
        (!row.is_empty()).then_some(row)
    });
    assert_eq!((&row[0]["verdict"], &row[0]["traffic"]["connections"]), (&json!("allow"), &json!(1)), "{row:?}");
}

#[test]
fn hosts_that_a_lock_file_names_are_asked_about_before_the_run() {
    let lock = r#"{"packages": {"node_modules/a": {
        "resolved": "https://packages.example.org/a.tgz"}, "node_modules/b": {
        "resolved": "https://mirror.example.net/b.tgz"}}}"#;
    let Some(daemon) = by_host(&[], Setup::new().file("package-lock.json", lock)) else { return };
    let (mut person, mut agent) = (subscribed(&daemon), daemon.connect());
    let id = start(&mut agent, "touch ran; npm ci", "c");
    let ask = asked(&mut person);
    assert_eq!(ask["target"], "mirror.example.net:443", "{ask}");
    assert!(ask["parts"].to_string().contains("packages.example.org:443"), "{ask}");
    person.result("permissions.reply", json!({"request_id": ask["request_id"], "action": "deny"}));
    let result = agent.answer(id)["result"].take();
    assert!(text(&result).contains("network mirror.example.net:443"), "{result}");
    assert!(!daemon.work().join("ran").exists());
}

#[test]
fn the_programs_of_plugins_reach_hosts_in_the_same_way() {
    let server = server();
    let port = server.address.port();
    let plugin = r#"
hygge.register_tool{ name = "fetch", description = "Fetches", input_schema = {type = "object"},
  execute = function(ctx, input)
    return hygge.exec("env", {"-u", "no_proxy", "-u", "NO_PROXY", "curl", "-sS", input.url}).stdout end }"#;
    let setup = Setup::new().plugin("fetch.lua", plugin);
    let Some(daemon) = by_host(&[format!("a.localhost:{port}")], setup) else { return };
    let result = daemon.connect().tool("fetch", json!({"url": format!("http://a.localhost:{port}/")}));
    assert_eq!(text(&result), "what it serves\n");
}

#[test]
fn a_project_narrows_the_hosts_of_the_user() {
    let server = server();
    let port = server.address.port();
    let project = format!("[sandbox]\nmode = \"workspace-write\"\nnetwork = [\"a.localhost:{port}\"]\n");
    let setup = Setup::new().file(".toold/config.toml", project);
    let Some(daemon) = by_host(&[format!("*.localhost:{port}")], setup) else { return };
    let mut wire = daemon.connect();
    let line = |host: &str| format!("{THROUGH_GUARD}; curl -sS http://{host}.localhost:{port}/");
    assert_eq!(run(&mut wire, &line("b")), "what it serves\n");
    wire.result("plugins.trust", json!({"path": daemon.work()}));
    assert_eq!(run(&mut wire, &line("a")), "what it serves\n");
    assert!(run(&mut wire, &line("b")).contains("not allowed"));
}

#[test]
fn a_flood_is_counted_and_ends_with_its_program() {
    let server = ScriptedServer::start_thread(|_| vec![ServerStep::Flood(vec![b'x'; 64 * 1024])]);
    let port = server.address.port();
    let Some(daemon) = by_host(&[format!("a.localhost:{port}")], Setup::new()) else { return };
    let line = format!(
        "{THROUGH_GUARD}; curl -sS -p http://a.localhost:{port}/ --http0.9 2> /dev/null | head -c 3000000 | wc -c"
    );
    assert_eq!(run(&mut daemon.connect(), &line), "3000000\n");
    let received = hosts_in_audit(&daemon)[0]["traffic"]["received_bytes"].as_u64().unwrap();
    assert!(received >= 3_000_000, "{received}");
}
