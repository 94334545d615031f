//! Logins at remote MCP servers, with `mcp/oauth_stand_in.py` as the server and its authorization server. The tests with
//! the official client suite and with a real authorization server are in `.ci/mcp_client`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use toold_tests::{Setup, TestDaemon, Wire, toolctl, until};

/// The server, which ends with the test.
struct RemoteServer {
    program: Child,
    /// `http://127.0.0.1:PORT`
    base: String,
}

impl RemoteServer {
    fn start() -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("mcp/oauth_stand_in.py");
        let mut program = Command::new("python3").arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut base = String::new();
        BufReader::new(program.stdout.take().unwrap()).read_line(&mut base).unwrap();
        Self { program, base: base.trim().to_owned() }
    }

    fn seen(&self) -> Value {
        serde_json::from_str(get(&format!("{}/seen", self.base)).split_once("\r\n\r\n").unwrap().1).unwrap()
    }
}

impl Drop for RemoteServer {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

/// The answer to a request of a browser, with its head.
fn get(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Where a page redirects to.
fn redirect_of(page: &str) -> String {
    let answer = get(page);
    let location = answer.lines().find_map(|line| line.strip_prefix("Location: "));
    location.unwrap_or_else(|| panic!("{page} does not redirect: {answer}")).trim().to_owned()
}

/// Logs in as a person does whose browser goes where the page sends it. Returns whether it succeeded, and what it says.
fn login(daemon: &TestDaemon) -> (bool, String) {
    let mut command = daemon.setup.command(toolctl());
    command.args(["mcp", "login", "s", "--no-browser"]);
    let mut toolctl = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A second page follows if it registers once more.
    for page in BufReader::new(toolctl.stdout.take().unwrap()).lines() {
        get(&redirect_of(page.unwrap().trim()));
    }
    let output = toolctl.wait_with_output().unwrap();
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

/// Logs out; what it says.
#[track_caller]
fn logout(daemon: &TestDaemon) -> String {
    let output = daemon.toolctl(&["mcp", "logout", "s"]);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

/// A daemon that mounts the server. A systemd credential opens its secrets.
fn mounted(server: &RemoteServer) -> TestDaemon {
    mounted_in(Setup::new(), server, "")
}

/// The same with more lines in the server's section.
fn mounted_in(setup: Setup, server: &RemoteServer, more: &str) -> TestDaemon {
    let config = format!(
        "[[permission.rules]]\ncategory = \"mcp\"\npattern = \"**\"\naction = \"allow\"\n\
         [mcp.servers.s]\nurl = \"{}/mcp\"\n{more}",
        server.base
    );
    let setup = setup.config(&config);
    fs::create_dir(setup.path("credentials")).unwrap();
    fs::write(setup.path("credentials/toold-secrets"), "the key of this test").unwrap();
    let credentials = format!("CREDENTIALS_DIRECTORY={}", setup.path("credentials").display());
    setup.through(&["env", &credentials]).start()
}

/// The error and the login of the server, as soon as it has failed.
fn failed(wire: &mut Wire) -> Value {
    until("the server has failed", || {
        Some(wire.result("mcp.servers", json!({}))["servers"][0].take()).filter(|server| server["error"].is_string())
    })
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

#[track_caller]
fn refused(wire: &mut Wire, tool: &str, words: &str) {
    let result = wire.tool(tool, json!({}));
    assert!(result["is_error"] == true && text(&result).contains(words), "{result}");
}

#[test]
fn one_login_serves_every_client_until_the_logout() {
    let server = RemoteServer::start();
    let mut daemon = mounted(&server);
    let mut wire = daemon.connect();
    let before = failed(&mut wire);
    assert!(before["error"].as_str().unwrap().contains("toolctl mcp login s"), "{before}");
    assert_eq!(before["login"]["state"], "required");
    let (done, said) = login(&daemon);
    assert!(done, "{said}");
    let mut agent = Wire::connect(&daemon.socket());
    agent.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    for wire in [&mut wire, &mut agent] {
        until("the tool is listed", || wire.call("tools.schema", json!({"name": "s_read"})).get("result").map(|_| ()));
        assert_eq!(text(&wire.tool("s_read", json!({}))), "read with read");
    }
    // The first token was about to expire: it was refreshed, for this server alone.
    let seen = server.seen();
    assert_eq!((&seen["registrations"], &seen["refreshes"]), (&json!(1), &json!(1)));
    let resources = seen["resources"].as_array().unwrap();
    assert!(resources.iter().all(|resource| *resource == format!("{}/mcp", server.base)), "{resources:?}");

    // A call that needs a wider login names the command, and what was given is kept.
    refused(&mut agent, "s_write", "lacks the scope write: run toolctl mcp login s");
    let (done, said) = login(&daemon);
    assert!(done, "{said}");
    assert_eq!(text(&agent.tool("s_write", json!({}))), "write with read write");
    // A scope that is asked for and not given does not lead to one login after another.
    refused(&mut agent, "s_never", "toolctl mcp login s");
    assert!(login(&daemon).0);
    refused(&mut agent, "s_never", "though it was asked for");

    daemon.restart("TERM");
    let mut wire = daemon.connect();
    assert_eq!(text(&wire.tool("s_write", json!({}))), "write with read write never");
    let login = wire.result("mcp.servers", json!({}))["servers"][0]["login"].take();
    assert_eq!((&login["state"], &login["client_id"]), (&json!("logged_in"), &json!("client-1")));
    let status = String::from_utf8(daemon.toolctl(&["mcp", "status"]).stdout).unwrap();
    assert!(status.contains("logged in") && status.contains("read write"), "{status}");
    assert_eq!(logout(&daemon), "logged out of s; its tokens are revoked\n");
    assert_eq!(server.seen()["revoked"], json!(["refresh_token of client-1", "access_token of client-1"]));
    refused(&mut wire, "s_read", "toolctl mcp login s");
    assert!(!daemon.toolctl(&["mcp", "logout", "s"]).status.success());

    let log = daemon.log();
    let state = fs::read_to_string(daemon.state().join("secrets.json")).unwrap();
    for token in ["access-", "refresh-", "code-"] {
        assert!(!log.contains(token) && !state.contains(token), "{token} is written in the clear");
    }
}

#[test]
fn clients_and_workloads_that_have_access_themselves_need_no_login() {
    let server = RemoteServer::start();
    let files = Setup::new();
    let (token, other) = (files.path("work/token"), files.path("work/other"));
    fs::write(&token, "a.work.load\n").unwrap();
    fs::write(&other, "root:x:0:0").unwrap();
    let client = "grant = \"client_credentials\"\nclient_id = \"service\"\nclient_secret = \"pass: word\"\n";
    let workload = format!("grant = \"jwt_bearer\"\nassertion_file = {token:?}\n");
    for grant in [client, &workload] {
        let daemon = mounted_in(Setup::new(), &server, &format!("[mcp.servers.s.oauth]\n{grant}"));
        let mut wire = daemon.connect();
        until("the tool is listed", || wire.call("tools.schema", json!({"name": "s_read"})).get("result").map(|_| ()));
        assert_eq!(text(&wire.tool("s_read", json!({}))), "read with read");
        refused(&mut wire, "s_write", "lacks the scope write: add it to `scopes` in [mcp.servers.s.oauth]");
        // A token that is not valid any more is replaced.
        get(&format!("{}/expire", server.base));
        refused(&mut wire, "s_read", "it refuses the token");
        assert_eq!(text(&wire.tool("s_read", json!({}))), "read with read");
        let begin = json!({"name": "s", "redirect_uri": "http://127.0.0.1:1/callback"});
        assert!(wire.error("mcp.login.begin", begin)["message"].as_str().unwrap().contains("nobody logs in"));
        assert!(!daemon.log().contains("access-"), "a token is written in the clear");
    }
    let resources = server.seen()["resources"].take();
    assert!(resources.as_array().unwrap().iter().all(|resource| *resource == format!("{}/mcp", server.base)));

    for (grant, words) in [
        (client.replace("word", "words"), "gives no token: 401 Unauthorized invalid_client: who is this?"),
        (format!("grant = \"jwt_bearer\"\nassertion_file = {other:?}\n"), "does not hold a JSON Web Token"),
        ("grant = \"client_credentials\"\n".to_owned(), "needs client_id and client_secret"),
    ] {
        let daemon = mounted_in(Setup::new(), &server, &format!("[mcp.servers.s.oauth]\n{grant}"));
        let error = failed(&mut daemon.connect())["error"].take();
        assert!(error.as_str().unwrap().contains(words), "{error}");
    }
}

#[test]
fn a_logout_forgets_the_tokens_also_when_the_authorization_server_does_not_revoke_them() {
    let server = RemoteServer::start();
    let daemon = mounted(&server);
    let mut wire = daemon.connect();
    failed(&mut wire);
    for (behavior, why) in [("keep", "503"), ("stall", "did not answer within 10 s")] {
        get(&format!("{}/{behavior}", server.base));
        assert!(login(&daemon).0);
        let said = logout(&daemon);
        assert!(said.contains("forgotten here, but may stay valid until they expire") && said.contains(why), "{said}");
        let state = until("it wants a login", || {
            let login = wire.result("mcp.servers", json!({}))["servers"][0]["login"].take();
            Some(login).filter(|login| login.is_object())
        });
        assert_eq!(state["state"], "required");
    }
}

#[test]
fn a_refused_or_expired_login_says_why_and_what_to_do() {
    let server = RemoteServer::start();
    let daemon = mounted(&server);
    let mut wire = daemon.connect();
    failed(&mut wire);
    assert!(login(&daemon).0);
    until("the tool is listed", || wire.call("tools.schema", json!({"name": "s_read"})).get("result").map(|_| ()));
    get(&format!("{}/expire", server.base));
    refused(&mut wire, "s_read", "it needs a login: run toolctl mcp login s");
    get(&format!("{}/refuse", server.base));
    let (done, said) = login(&daemon);
    assert!(!done && said.contains("access_denied: not today"), "{said}");
}

#[test]
fn a_client_that_the_authorization_server_does_not_know_registers_again() {
    let server = RemoteServer::start();
    let daemon = mounted(&server);
    let mut wire = daemon.connect();
    failed(&mut wire);
    // Its token needs to be refreshed at once.
    get(&format!("{}/forgets", server.base));
    assert!(login(&daemon).0);
    let why = until("the server names the reason", || {
        let error = wire.result("mcp.servers", json!({}))["servers"][0]["error"].take();
        error.as_str().filter(|error| error.contains("invalid_client")).map(str::to_owned)
    });
    assert!(why.contains("run toolctl mcp login s, which registers it again"), "{why}");
    get(&format!("{}/knows", server.base));
    assert!(login(&daemon).0);
    until("the tool is listed", || wire.call("tools.schema", json!({"name": "s_read"})).get("result").map(|_| ()));
    assert_eq!(server.seen()["registrations"], 2);

    // A client that is refused when it has just registered is tried with another registration.
    get(&format!("{}/forgets_once", server.base));
    let (done, said) = login(&daemon);
    assert!(done && said.contains("invalid_client") && said.contains("trying once more"), "{said}");
    assert_eq!(server.seen()["registrations"], 4);
    assert_eq!(text(&wire.tool("s_read", json!({}))), "read with read");
}

#[test]
fn a_configured_redirect_is_where_logins_end() {
    let server = RemoteServer::start();
    let redirect = "[mcp.servers.s.oauth]\nredirect = \"localhost/back\"\n";
    let daemon = mounted_in(Setup::new(), &server, redirect);
    let mut wire = daemon.connect();
    failed(&mut wire);
    assert_eq!(wire.result("mcp.servers", json!({}))["servers"][0]["login_redirect"], "localhost/back");
    let elsewhere = json!({"name": "s", "redirect_uri": "http://127.0.0.1:1/back"});
    let refusal = wire.error("mcp.login.begin", elsewhere)["message"].take();
    assert!(refusal.as_str().unwrap().contains("[mcp.servers.s.oauth] redirect says"), "{refusal}");
    let (done, said) = login(&daemon);
    assert!(done, "{said}");
    let redirects = server.seen()["redirects"].take();
    let used = redirects[0].as_str().unwrap();
    assert!(used.starts_with("http://localhost:") && used.ends_with("/back"), "{redirects}");
}

#[test]
fn a_redirect_counts_for_the_login_that_it_belongs_to_alone() {
    let server = RemoteServer::start();
    let daemon = mounted(&server);
    let mut wire = daemon.connect();
    failed(&mut wire);
    let redirect_uri = "http://127.0.0.1:1/callback";
    let begin = json!({"name": "s", "redirect_uri": redirect_uri});
    for elsewhere in ["https://a.example/callback", "http://a.example:1/callback"] {
        wire.error("mcp.login.begin", json!({"name": "s", "redirect_uri": elsewhere}));
    }
    let begun = wire.result("mcp.login.begin", begin);
    let good = redirect_of(begun["url"].as_str().unwrap());
    assert!(good.starts_with(redirect_uri), "{good}");
    let finish = |wire: &mut Wire, url: &str| wire.call("mcp.login.finish", json!({"redirected_to": url}));
    let state = good.split("state=").nth(1).unwrap().split('&').next().unwrap();
    for forged in [
        "http://127.0.0.1:1/callback?code=c&state=other".to_owned(),
        format!("{redirect_uri}?code=c&state={state}&iss=https%3A%2F%2Fevil.example"),
        // The server announces that it names itself.
        format!("{redirect_uri}?code=c&state={state}"),
    ] {
        let answer = finish(&mut wire, &forged);
        assert_eq!(answer["error"]["data"]["kind"], "login_failed", "{forged}: {answer}");
    }
    assert_eq!(finish(&mut wire, &good)["result"]["name"], "s");
    assert!(finish(&mut wire, &good).get("error").is_some(), "it counts once");
}
