//! The status of the fleet, and its configuration.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use toold_tests::{Bus, FleetPlan, NatsServer, Setup, TestDaemon, Wire, until};

pub(crate) fn status(wire: &mut Wire) -> Value {
    wire.result("fleet.status", json!({}))
}

/// Waits until the daemon is connected to the server.
#[track_caller]
pub(crate) fn joined(daemon: &TestDaemon) -> Value {
    let mut wire = daemon.connect();
    let mut last = Value::Null;
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("the daemon has joined its fleet", || {
            last = status(&mut wire);
            (last["connected"] == true && last["error"].is_null()).then(|| last.clone())
        })
    }));
    found.unwrap_or_else(|_| panic!("{last}\n{}", daemon.log()))
}

/// Waits until the status shows an error with these words.
#[track_caller]
fn fails(daemon: &TestDaemon, words: &str) {
    let mut wire = daemon.connect();
    let mut last = Value::Null;
    let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        until("the error is shown", || {
            last = status(&mut wire);
            last["error"].as_str()?.contains(words).then_some(())
        })
    }));
    assert!(found.is_ok(), "no {words} in {last}");
    assert_eq!(last["connected"], false, "{last}");
}

fn private(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}

#[test]
fn a_daemon_without_a_fleet_says_so() {
    let daemon = TestDaemon::start();
    let status = status(&mut daemon.connect());
    assert_eq!((&status["configured"], &status["daemons"]), (&json!(false), &json!([])), "{status}");
}

#[test]
fn persons_see_keys_and_addresses_and_agents_do_not() {
    let Some(nats) = NatsServer::start() else { return };
    let plan = FleetPlan::new(&["laptop", "build"], &["anna"]);
    let laptop = Setup::new().config(&plan.config("laptop", &nats.url(), Some("anna"), "labels = [\"gpu\"]")).start();
    let shown = joined(&laptop);
    assert_eq!(shown["name"], "laptop");
    assert_eq!(shown["person"], "anna");
    assert!(shown["key"].as_str().unwrap().starts_with('V') && shown["person_key"].as_str().unwrap().starts_with('U'));
    assert_eq!(shown["servers"], json!([nats.url()]));
    let build = &shown["daemons"][0];
    assert_eq!((&build["name"], &build["state"]), (&json!("build"), &json!("unknown")), "{shown}");
    assert!(build["key"].as_str().unwrap().starts_with('V'));
    assert_eq!(shown["label_groups"][0]["online"], json!(["laptop"]), "{shown}");
    assert_eq!(shown["max_calls"], 4);

    let mut agent = Wire::connect(&laptop.socket());
    agent.result("session.open", json!({"cwd": laptop.work(), "role": "agent"}));
    let shown = status(&mut agent);
    assert_eq!((&shown["name"], &shown["connected"]), (&json!("laptop"), &json!(true)));
    for member in ["key", "person", "person_key", "last_refused"] {
        assert_eq!(shown[member], Value::Null, "{member}");
    }
    assert_eq!((&shown["servers"], &shown["daemons"][0]["key"]), (&json!([]), &json!("")));
}

#[test]
fn subscribers_learn_that_the_fleet_has_changed() {
    let Some(mut nats) = NatsServer::start() else { return };
    let plan = FleetPlan::new(&["laptop"], &[]);
    let laptop = Setup::new().config(&plan.config("laptop", &nats.url(), None, "")).start();
    joined(&laptop);
    let mut wire = laptop.connect();
    wire.result("events.subscribe", json!({"kinds": ["fleet.changed"]}));
    nats.kill();
    let mut is_lost = || {
        wire.notification("events.event");
        !laptop.connect().result("fleet.status", json!({}))["connected"].as_bool().unwrap()
    };
    while !is_lost() {}
}

/// A key that is made later is found without a reload.
#[test]
fn a_missing_key_says_how_to_make_one() {
    let Some(nats) = NatsServer::start() else { return };
    let plan = FleetPlan::new(&["laptop"], &[]);
    let key = plan.daemon_key("laptop");
    let away = key.with_extension("away");
    fs::rename(&key, &away).unwrap();
    let laptop = Setup::new().config(&plan.config("laptop", &nats.url(), None, "")).start();
    fails(&laptop, "toolctl fleet init");
    fs::rename(&away, &key).unwrap();
    joined(&laptop);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let laptop = laptop.into_setup().start();
    fails(&laptop, "chmod 600");
}

#[test]
fn no_tool_reads_or_writes_keys_and_credentials() {
    let plan = FleetPlan::new(&["laptop"], &["anna"]);
    let setup = Setup::new();
    let token = setup.path("home/token");
    private(&token, "secret token");
    let own = setup.path("state/toold/fleet");
    fs::create_dir_all(&own).unwrap();
    private(&own.join("daemon.key"), "secret seed");
    let more = format!("credentials = {token:?}");
    let allow = ["file.read", "file.write", "shell"].map(|category| {
        format!("\n[[permission.rules]]\ncategory = {category:?}\npattern = \"**\"\naction = \"allow\"\n")
    });
    // Nothing listens there.
    let config = plan.config("laptop", "nats://127.0.0.1:1", Some("anna"), &more);
    let laptop = setup.config(&(config + &allow.concat())).start();
    let mut wire = laptop.connect();
    for file in [plan.daemon_key("laptop"), plan.person_key("anna"), token, own.join("daemon.key")] {
        let before = fs::read(&file).unwrap();
        let text = String::from_utf8(before.clone()).unwrap();
        for (tool, arguments) in [
            ("read", json!({"path": file})),
            ("write", json!({"path": file, "content": "x"})),
            ("bash", json!({"command": format!("cat {}", file.display())})),
        ] {
            let result = wire.tool(tool, arguments);
            assert!(result["is_error"] == true && !result.to_string().contains(text.trim()), "{tool}: {result}");
        }
        assert_eq!(fs::read(&file).unwrap(), before);
    }
}

/// An authority, and the certificate that it gives a server at 127.0.0.1, as files in a folder.
struct Certificates {
    dir: tempfile::TempDir,
}

impl Certificates {
    fn make() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca_key = KeyPair::generate().unwrap();
        let ca = params.self_signed(&ca_key).unwrap();
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::new(params, ca_key);
        let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let dir = tempfile::Builder::new().prefix("toold-tls-").tempdir().expect("there is a place for temp files");
        for (name, text) in [("ca.pem", ca.pem()), ("server.pem", server.pem()), ("server.key", key.serialize_pem())] {
            fs::write(dir.path().join(name), text).unwrap();
        }
        Self { dir }
    }

    fn file(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }
}

#[test]
fn the_servers_certificate_is_checked() {
    let Some(mut nats) = NatsServer::start() else { return };
    let (ours, others) = (Certificates::make(), Certificates::make());
    nats.kill();
    let (cert, key) = (ours.file("server.pem"), ours.file("server.key"));
    nats.configure(&format!("tls {{ cert_file: {cert:?}, key_file: {key:?} }}\n"));
    nats.start_again();
    let url = nats.url().replace("nats://", "tls://");
    let plan = FleetPlan::new(&["laptop"], &[]);
    let config = |ca: &str| plan.config("laptop", &url, None, &format!("ca_file = {ca:?}"));
    let laptop = Setup::new().config(&config(&ours.file("ca.pem"))).start();
    joined(&laptop);
    let laptop = laptop.into_setup().config(&config(&others.file("ca.pem"))).start();
    fails(&laptop, "certificate");
    // Without `ca_file`, the authorities of this machine count.
    let laptop = laptop.into_setup().config(&plan.config("laptop", &url, None, "")).start();
    fails(&laptop, "certificate");
}

/// A server that turns out to have no TLS gets neither credentials nor messages.
#[test]
fn tls_is_not_given_up() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let ours = Certificates::make();
    let plan = FleetPlan::new(&["laptop"], &[]);
    let more = format!("ca_file = {:?}", ours.file("ca.pem"));
    let laptop =
        Setup::new().config(&plan.config("laptop", &nats.url().replace("nats://", "tls://"), None, &more)).start();
    let mut wire = laptop.connect();
    until("it tries to connect", || {
        let error = status(&mut wire)["error"].take();
        (error.is_string() && error != "the NATS server: connecting").then_some(())
    });
    assert_eq!(status(&mut wire)["connected"], false);
    assert_eq!(bus.seen(|message| message.subject.contains("toold")).len(), 0);
}

#[test]
fn tokens_and_nkeys_log_in() {
    let Some(mut nats) = NatsServer::start() else { return };
    let plan = FleetPlan::new(&["laptop"], &[]);
    let user = nkeys::KeyPair::new_user();
    let laptop = Setup::new();
    let file = laptop.path("home/login");
    let more = format!("credentials = {file:?}");
    let mut laptop = laptop.config(&plan.config("laptop", &nats.url(), None, &more));
    for (server, login) in [
        ("authorization { token: \"a token\" }\n".to_owned(), "a token".to_owned()),
        (
            format!("authorization {{ users: [{{ nkey: {} }}] }}\n", user.public_key()),
            format!("{}\n", user.seed().unwrap()),
        ),
    ] {
        nats.kill();
        nats.configure(&server);
        nats.start_again();
        private(&file, "another");
        let daemon = laptop.start();
        fails(&daemon, "authorization");
        private(&file, &login);
        let daemon = daemon.into_setup().start();
        joined(&daemon);
        laptop = daemon.into_setup();
    }
}

/// A token of NATS: claims that somebody signed.
fn jwt(signer: &nkeys::KeyPair, subject: &str, claims: Value) -> String {
    use base64::Engine;
    let encode = |bytes: &[u8]| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
    let body =
        json!({"jti": subject, "iat": 1, "iss": signer.public_key(), "name": "test", "sub": subject, "nats": claims});
    let header = encode(br#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
    let text = format!("{header}.{}", encode(body.to_string().as_bytes()));
    let signature = signer.sign(text.as_bytes()).unwrap();
    format!("{text}.{}", encode(&signature))
}

#[test]
fn nats_credentials_log_in() {
    let Some(mut nats) = NatsServer::start() else { return };
    let (operator, account, user) =
        (nkeys::KeyPair::new_operator(), nkeys::KeyPair::new_account(), nkeys::KeyPair::new_user());
    let unlimited = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1, "consumer": -1});
    let of_operator = jwt(&operator, &operator.public_key(), json!({"type": "operator", "version": 2}));
    let claims = json!({"type": "account", "version": 2, "limits": unlimited});
    let of_account = jwt(&operator, &account.public_key(), claims);
    let claims = json!({"type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1});
    // JetStream needs one.
    let system = nkeys::KeyPair::new_account();
    let of_system = jwt(&operator, &system.public_key(), json!({"type": "account", "version": 2}));
    let of_user = jwt(&account, &user.public_key(), claims);
    nats.kill();
    nats.configure(&format!(
        "operator: {of_operator}\nsystem_account: {system}\nresolver: MEMORY\n\
         resolver_preload: {{ {}: {of_account}, {system}: {of_system} }}\n",
        account.public_key(),
        system = system.public_key()
    ));
    nats.start_again();
    let plan = FleetPlan::new(&["laptop"], &[]);
    let laptop = Setup::new();
    let file = laptop.path("home/user.creds");
    private(
        &file,
        &format!(
            "-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
            user.seed().unwrap()
        ),
    );
    let laptop = laptop.config(&plan.config("laptop", &nats.url(), None, &format!("credentials = {file:?}"))).start();
    joined(&laptop);
}

#[test]
fn the_services_api_shows_each_daemon() {
    let Some(nats) = NatsServer::start() else { return };
    let bus = Bus::connect(&nats.url());
    let plan = FleetPlan::new(&["laptop", "build"], &[]);
    let laptop = Setup::new().config(&plan.config("laptop", &nats.url(), None, "")).start();
    let build = Setup::new().config(&plan.config("build", &nats.url(), None, "labels = [\"gpu\", \"linux\"]")).start();
    joined(&laptop);
    joined(&build);
    let ask = |subject: &str| {
        let answer = until("the daemon answers", || bus.request(subject, b"", Duration::from_secs(5)));
        answer.json()
    };
    let ping = ask("$SRV.PING.toold.build");
    assert_eq!(ping["type"], "io.nats.micro.v1.ping_response");
    assert_eq!((&ping["name"], &ping["id"]), (&json!("toold"), &json!("build")));
    assert_eq!(ping["metadata"]["labels"], "gpu,linux");
    let info = ask("$SRV.INFO.toold.build");
    assert_eq!(info["type"], "io.nats.micro.v1.info_response");
    assert_eq!(
        (&info["endpoints"][0]["name"], &info["endpoints"][0]["subject"]),
        (&json!("call"), &json!("toold.build.call"))
    );
    let stats = ask("$SRV.STATS.toold.laptop");
    assert_eq!((&stats["type"], &stats["id"]), (&json!("io.nats.micro.v1.stats_response"), &json!("laptop")));
    assert_eq!(stats["endpoints"][0]["num_requests"], 0, "{stats}");
    // Everybody answers these.
    for subject in ["$SRV.PING", "$SRV.PING.toold"] {
        bus.send(subject, Some("inbox.of.test"), b"");
        for name in ["laptop", "build"] {
            bus.wait_for("each daemon answers", |message| {
                message.subject == "inbox.of.test" && message.json()["id"] == name
            });
        }
        bus.forget();
    }
}

/// No agent here gets at the sessions in which calls of other daemons run; persons see and close them.
#[test]
fn sessions_of_the_fleet_belong_to_the_daemon_that_calls() {
    let Some(nats) = NatsServer::start() else { return };
    let plan = FleetPlan::new(&["laptop", "build"], &[]);
    let allow = "\n[[permission.rules]]\ncategory = \"mcp\"\npattern = \"fleet:build/*\"\naction = \"allow\"\n";
    let laptop = Setup::new().config(&(plan.config("laptop", &nats.url(), None, "") + allow)).start();
    let build = Setup::new().file("note", "tea");
    let cwd = format!("cwd = {:?}", build.path("work"));
    let mut build = build.config(&plan.config("build", &nats.url(), None, &cwd)).start();
    joined(&laptop);
    joined(&build);
    let mut caller = laptop.connect();
    until("the tools are listed", || {
        let tools = caller.result("tools.list", json!({}))["tools"].take();
        tools.as_array()?.iter().find(|tool| tool["name"] == "build_read").map(drop)
    });
    let read = |caller: &mut Wire| {
        let result = caller.tool("build_read", json!({"path": "note"}));
        assert!(result["content"][0]["text"].as_str().is_some_and(|text| text.contains("tea")), "{result}");
    };
    read(&mut caller);
    let find = |wire: &mut Wire| {
        let sessions = wire.result("session.list", json!({}))["sessions"].take();
        sessions.as_array().unwrap().iter().find(|session| session["client"]["name"] == "test on laptop").cloned()
    };
    let mut person = build.connect();
    let session = find(&mut person).expect("a person sees the session");
    let id = session["session_id"].clone();
    assert_eq!(session["cwd"], json!(build.work()));

    let mut agent = Wire::connect(&build.socket());
    agent.result("session.open", json!({"cwd": build.work(), "role": "agent"}));
    assert_eq!(find(&mut agent), None);
    let mut other = Wire::connect(&build.socket());
    for (method, params) in [
        ("session.open", json!({"session_id": id, "cwd": build.work(), "role": "agent"})),
        ("session.close", json!({"session_id": id})),
    ] {
        let error = other.error(method, params);
        assert_eq!(error["data"]["kind"], "unknown_session", "{method}: {error}");
    }

    // The same session is found again after a restart, in the mode that a person chose.
    person.result("session.open", json!({"session_id": id}));
    person.result("permissions.set_mode", json!({"mode": "plan"}));
    build.restart("KILL");
    joined(&build);
    until("the daemon is known again", || (status(&mut caller)["daemons"][0]["state"] == "online").then_some(()));
    let mut other = Wire::connect(&build.socket());
    let error = other.error("session.open", json!({"session_id": id, "role": "agent"}));
    assert_eq!(error["data"]["kind"], "unknown_session", "{error}");
    until("the call runs", || {
        let result = caller.tool("build_read", json!({"path": "note"}));
        result["content"][0]["text"].as_str()?.contains("tea").then_some(())
    });
    let mut person = build.connect();
    let session = find(&mut person).expect("a person sees the session");
    assert_eq!((&session["session_id"], &session["mode"]), (&id, &json!("plan")));
    person.result("session.close", json!({"session_id": id}));
    read(&mut caller);
    assert_eq!(find(&mut person).expect("there is a new session")["mode"], "default");
    let rows = person.result("audit.query", json!({}))["entries"].take();
    assert_eq!(rows[0]["client"], "test on laptop", "{rows}");
}
