//! The page: how browsers sign in, and who is kept out.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{CertificateDer, ServerName};
use serde_json::{Value, json};
use toold_tests::{Browser, PageAnswer, Setup, Terminal, TestDaemon, lasting_port, toolctl, until};

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
                      connect-src 'self'; font-src 'self'; manifest-src 'self'; worker-src 'self'; form-action 'none'; \
                      frame-ancestors 'none'; base-uri 'none'";

#[test]
fn a_link_signs_one_browser_in() {
    let daemon = TestDaemon::start();
    let (mut browser, code) = Browser::at(&daemon);
    assert_eq!(browser.get("/page/session").status, 401);
    let answer = browser.sign_in(&code);
    assert_eq!((answer.status, answer.text().as_str()), (204, ""));
    let cookie = answer.header("set-cookie").unwrap();
    assert!(cookie.ends_with("; Path=/page; HttpOnly; SameSite=Strict"), "{cookie}");
    assert_eq!(browser.get("/page/session").status, 204);
    assert_eq!(browser.connect().call("daemon.ping", json!({}))["result"], json!({}));

    let again = browser.sign_in(&code);
    assert_eq!(again.status, 403);
    assert!(again.text().contains("run toolctl page"), "{}", again.text());
    assert_eq!(browser.get("/page/session").status, 204, "the first sign-in holds");
}

#[test]
fn a_code_that_is_not_one_signs_nobody_in() {
    let daemon = TestDaemon::start();
    let (mut browser, code) = Browser::at(&daemon);
    for (body, status) in [
        (json!({"code": ""}).to_string(), 403),
        (json!({"code": &code[1..]}).to_string(), 403),
        (json!({"code": code.to_uppercase() + "0"}).to_string(), 403),
        (json!({"code": 7}).to_string(), 400),
        (json!([]).to_string(), 400),
        ("code".to_owned(), 400),
        (String::new(), 400),
        (json!({"code": "x".repeat(2_000)}).to_string(), 413),
    ] {
        assert_eq!(browser.post("/page/login", &[], &body).status, status, "{body}");
    }
    let form = browser.post("/page/login", &[("Content-Type", "text/plain")], &json!({"code": code}).to_string());
    assert_eq!(form.status, 415);
    // Many wrong ones are refused without a look, and keep nobody out.
    until("there were too many", || (browser.sign_in("wrong").status == 429).then_some(()));
    assert_eq!(browser.sign_in(&code).status, 204);
}

#[test]
fn logging_out_and_revoking_end_connections() {
    let daemon = TestDaemon::start();
    let mut person = daemon.connect();
    let (first, second, third) =
        (Browser::signed_in(&daemon), Browser::signed_in(&daemon), Browser::signed_in(&daemon));
    let sockets = [first.connect(), second.connect(), third.connect()];
    let list = person.result("page.sessions", json!({}))["sessions"].take();
    assert_eq!(list.as_array().unwrap().iter().map(|session| &session["connections"]).collect::<Vec<_>>(), [1, 1, 1]);
    let [of_first, of_second, of_third] = sockets;

    let answer = first.post("/page/logout", &[], "");
    assert_eq!(answer.status, 204);
    assert!(answer.header("set-cookie").unwrap().ends_with("; Max-Age=0"));
    of_first.wait_for_end();
    assert_eq!(first.get("/page/session").status, 401);

    let revoked = person.result("page.revoke", json!({"id": list[1]["id"]}));
    assert_eq!(revoked, json!({"revoked": 1}));
    of_second.wait_for_end();
    assert_eq!(person.error("page.revoke", json!({"id": list[1]["id"]}))["code"], -32004);

    let (mut late, code) = Browser::at(&daemon);
    assert_eq!(person.result("page.revoke", json!({})), json!({"revoked": 1}));
    of_third.wait_for_end();
    assert_eq!(late.sign_in(&code).status, 403, "unused links are void");
}

/// Every combination of what a browser says about where a request comes from.
#[test]
fn only_the_page_itself_passes() {
    let daemon = TestDaemon::start();
    let (browser, _) = Browser::at(&daemon);
    let (own, port) = (browser.address.as_str(), browser.address.rsplit(':').next().unwrap());
    let named = format!("localhost:{port}");
    let foreign = format!("evil.example:{port}");
    let rebound = format!("127.0.0.1.evil.example:{port}");
    let hosts: [(&[&str], bool); 7] = [
        (&[own], true),
        (&[&named], true),
        (&[&foreign], false),
        (&[&rebound], false),
        (&["10.0.0.1"], false),
        (&[own, own], false),
        (&[""], false),
    ];
    let of = |host: &str| format!("http://{host}");
    let (other_port, other_host) = (of("127.0.0.1:1"), of(&foreign));
    let sites: [(&str, bool); 5] =
        [("", true), ("same-origin", true), ("same-site", false), ("cross-site", false), ("none", false)];
    for (host, known_host) in hosts {
        let its_own = of(host[0]);
        let origins: [(&[&str], bool); 8] = [
            (&[&its_own], true),
            (&[], false),
            (&["null"], false),
            (&[&other_port], false),
            (&[&other_host], host[0] == foreign),
            (&[&its_own, &its_own], false),
            (&["file://"], false),
            (&["https://evil.example"], false),
        ];
        for (origin, own_origin) in origins {
            for (site, own_site) in sites {
                let mut headers: Vec<(&str, &str)> = host.iter().map(|host| ("Host", *host)).collect();
                headers.extend(origin.iter().map(|origin| ("Origin", *origin)));
                headers.extend([("Sec-Fetch-Site", site), ("Content-Type", "application/json")]);
                let case = format!("{headers:?}");
                let login = browser.send("POST", "/page/login", &headers, "{\"code\": 7}");
                let passes = known_host && own_origin && own_site;
                assert_eq!(login.status, if passes { 400 } else { 403 }, "{case}: {}", login.text());
                let logout = browser.send("POST", "/page/logout", &headers, "");
                assert_eq!(logout.status, if passes { 204 } else { 403 }, "{case}: {}", logout.text());
                let session = browser.send("GET", "/page/session", &headers, "");
                assert_eq!(session.status, if known_host && own_site { 401 } else { 403 }, "{case}");
                headers.extend([
                    ("Connection", "Upgrade"),
                    ("Upgrade", "websocket"),
                    ("Sec-WebSocket-Version", "13"),
                    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
                ]);
                let mut stream = browser.stream();
                stream.write_all(browser.request("GET", "/page/rpc", &headers, "").as_bytes()).unwrap();
                let mut status = [0; 12];
                stream.read_exact(&mut status).unwrap();
                let expected: &[u8] = if passes { b"HTTP/1.1 401" } else { b"HTTP/1.1 403" };
                assert_eq!(status, expected, "{case}");
            }
        }
    }
}

#[test]
fn a_cookie_is_for_the_page_of_one_daemon_and_for_nothing_else() {
    let listen = "[mcp]\nlisten = \"127.0.0.1:0\"\n";
    let (daemon, other) = (Setup::new().config(listen).start(), Setup::new().config(listen).start());
    let (browser, mut foreign) = (Browser::signed_in(&daemon), Browser::signed_in(&other));
    let (name, value) = browser.cookie.as_deref().unwrap().split_once('=').unwrap();
    let (other_name, other_value) = foreign.cookie.as_deref().unwrap().split_once('=').unwrap();
    assert_ne!(name, other_name, "cookies are shared by all ports of a host");
    // A browser sends both to both.
    let both = format!("{other_name}={other_value}; {name}={value}");
    assert!(browser.upgrade("/page/rpc", &[("cookie", &both)]).is_ok());
    let mixed = format!("{name}={other_value}");
    assert_eq!(browser.upgrade("/page/rpc", &[("cookie", &mixed)]).err(), Some(401));
    foreign.cookie = browser.cookie.clone();
    assert_eq!(foreign.get("/page/session").status, 401);

    for path in ["/rpc", "/mcp", "/metrics"] {
        assert_eq!(browser.post(path, &[], "{}").status, 401, "{path}");
    }
    assert_eq!(browser.upgrade("/rpc", &[]).err(), Some(401));
    let token = std::fs::read_to_string(daemon.state().join("mcp-token")).unwrap();
    let bearer = format!("Bearer {token}");
    let with_token = |own: &[(&str, &str)]| {
        let headers: Vec<(&str, &str)> =
            [("cookie", ""), ("authorization", &bearer)].iter().chain(own).copied().collect();
        browser.upgrade("/page/rpc", &headers).err()
    };
    assert_eq!(with_token(&[]), Some(401));
    assert_eq!(with_token(&[("sec-websocket-protocol", &format!("toold, bearer.{token}"))]), Some(401));
}

#[test]
fn files_are_found_by_their_exact_names() {
    let daemon = TestDaemon::start();
    let (browser, _) = Browser::at(&daemon);
    let index = browser.get("/page/");
    assert_eq!((index.status, index.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert_eq!(index.header("cache-control"), Some("no-cache"));
    assert_eq!(browser.get("/page/index.html").body, index.body);
    for path in [
        "/page/../index.html",
        "/page/./index.html",
        "/page/%2e%2e/Cargo.toml",
        "/page/..%2f..%2fpackage.json",
        "/page/index.html/",
        "/page/index.html%00",
        "/page/INDEX.HTML",
        "/page/index",
        "/page//etc/passwd",
        "/page/etc/passwd",
        "/page/assets",
        "/page/assets/",
        "/page/\\index.html",
        "/page/login/",
        "/pages/",
        "/index.html",
        "/page/../../../../../../etc/passwd",
    ] {
        assert_eq!(browser.get(path).status, 404, "{path}");
    }
    for path in ["/", "/page"] {
        let answer = browser.get(path);
        assert_eq!((answer.status, answer.header("location")), (308, Some("/page/")), "{path}");
    }
    let head = browser.send("HEAD", "/page/", &[], "");
    assert_eq!(head.body, b"");
    assert_eq!(head.header("content-length"), index.header("content-length"));
    let known = browser.send("GET", "/page/", &[("If-None-Match", index.header("etag").unwrap())], "");
    assert_eq!((known.status, known.body), (304, Vec::new()));
    let compressed = browser.send("GET", "/page/", &[("Accept-Encoding", "br, gzip;q=0.5")], "");
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert!(compressed.body.starts_with(&[0x1f, 0x8b]));
    for refused in ["gzip;q=0", "br", "identity"] {
        let plain = browser.send("GET", "/page/", &[("Accept-Encoding", refused)], "");
        assert_eq!((plain.header("content-encoding"), &plain.body), (None, &index.body), "{refused}");
    }
    let embedded =
        browser.send("GET", "/page/", &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "no-cors")], "");
    assert_eq!(embedded.status, 403);
    let linked = browser.send("GET", "/page/", &[("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Mode", "navigate")], "");
    assert_eq!(linked.status, 200);
}

#[test]
fn every_answer_has_the_headers_that_protect_it() {
    let daemon = TestDaemon::start();
    let (mut browser, code) = Browser::at(&daemon);
    let check = |answer: &PageAnswer, case: &str| {
        for (name, expected) in [
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(answer.header(name), Some(expected), "{case}: {}", answer.head);
        }
        assert!(answer.header("permissions-policy").is_some(), "{case}");
        assert!(answer.header("cache-control").is_some(), "{case}");
        for name in ["access-control-allow-origin", "server"] {
            assert_eq!(answer.header(name), None, "{case}");
        }
    };
    let paths = ["/", "/page", "/page/", "/page/x", "/page/login", "/page/logout", "/page/session", "/page/rpc"];
    let methods = [
        ("GET", "GET"),
        ("HEAD", "HEAD"),
        ("POST", "POST"),
        ("PUT", ""),
        ("DELETE", ""),
        ("OPTIONS", ""),
        ("PATCH", ""),
        ("TRACE", ""),
        ("QUERY", ""),
    ];
    for path in paths {
        for (method, known) in methods {
            for host in [browser.address.clone(), "evil.example".to_owned()] {
                let answer = browser.send(method, path, &[("Host", host.as_str())], "");
                check(&answer, &format!("{method} {path} {host}"));
                if known.is_empty() && path != "/" && host != "evil.example" {
                    assert_eq!(answer.status, 405, "{method} {path}");
                    assert!(answer.header("allow").is_some(), "{method} {path}");
                }
            }
        }
    }
    check(&browser.sign_in("wrong"), "wrong code");
    check(&browser.sign_in(&code), "sign-in");
    check(&browser.get("/page/session"), "session");
}

#[test]
fn no_answer_is_taken_for_another_type() {
    let alone = TestDaemon::start();
    let with_clients = Setup::new().config("[mcp]\nlisten = \"127.0.0.1:0\"\n").start();
    for (daemon, status) in [(alone, 404), (with_clients, 401)] {
        let (browser, _) = Browser::at(&daemon);
        for path in ["/x", "/mcp", "/rpc", "/metrics"] {
            let answer = browser.get(path);
            assert_eq!((answer.status, answer.header("x-content-type-options")), (status, Some("nosniff")), "{path}");
        }
    }
}

#[test]
fn a_proxys_user_has_to_exist() {
    let setup = Setup::new().config("[page]\nproxy_user = \"no such user\"\n");
    let check = setup.command(toold_tests::toold()).args(["config", "check"]).output().unwrap();
    let found = String::from_utf8(check.stdout).unwrap() + &String::from_utf8(check.stderr).unwrap();
    assert!(!check.status.success() && found.contains("page.proxy_user"), "{found}");
    let setup = Setup::new().config("[page]\nproxy_user = \"root\"\n");
    assert!(setup.command(toold_tests::toold()).args(["config", "check"]).status().unwrap().success());
}

#[test]
fn those_who_are_not_signed_in_push_nobody_out() {
    let daemon = TestDaemon::start();
    let browser = Browser::signed_in(&daemon);
    let mut socket = browser.connect();
    // The limit of connections is 256.
    let flood: Vec<TcpStream> = (0..400)
        .map(|number| {
            let mut stream = browser.stream();
            let begin = match number % 3 {
                0 => "",
                1 => "POST /page/login HTTP/1.1\r\nHost: x",
                _ => "GET /page/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
            };
            stream.write_all(begin.as_bytes()).unwrap();
            stream
        })
        .collect();
    assert_eq!(socket.call("daemon.ping", json!({}))["result"], json!({}));
    assert!(Browser::signed_in(&daemon).connect().call("daemon.ping", json!({}))["error"].is_null());
    drop(flood);
}

#[test]
fn a_grant_says_that_it_is_from_a_page_or_a_phone_and_keeps_what_the_person_wrote() {
    let daemon = TestDaemon::asking();
    let browser = Browser::signed_in(&daemon);
    let phone = "Mozilla/5.0 (Linux; Android 16; Pixel 9) AppleWebKit/537.36 Chrome/141.0.0.0 Mobile Safari/537.36";
    for (by, name) in [("page", "Mozilla/5.0 (X11; Linux x86_64; rv:143.0) Firefox/143.0"), ("phone", phone)] {
        // Without a session, as a page that has just been opened.
        let mut page = browser.upgrade("/page/rpc", &[("User-Agent", name)]).unwrap();
        page.result("permissions.subscribe", json!({}));
        let mut agent = daemon.connect();
        let call =
            agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": format!("echo {by}")}}));
        let ask = until("the ask", || {
            let pending = page.result("permissions.pending", json!({}));
            pending["asks"][0]["request_id"].as_str().map(str::to_owned)
        });
        let reply = json!({"request_id": ask, "action": "deny", "scope": "always", "message": "not today"});
        page.result("permissions.reply", reply);
        assert_eq!(agent.answer(call)["result"]["is_error"], true);
        let grants = page.result("permissions.list", json!({}))["grants"].take();
        let of = |grant: &&Value| grant["pattern"] == format!("echo {by}");
        let grant = grants.as_array().unwrap().iter().find(of).unwrap();
        assert_eq!((grant["by"].as_str(), grant["asked"]["words"].as_str()), (Some(by), Some("not today")), "{grant}");
    }
    let listed = String::from_utf8(daemon.toolctl(&["permissions", "list"]).stdout).unwrap();
    assert!(listed.contains("page") && listed.contains("phone") && listed.contains(": not today"), "{listed}");
}

#[test]
fn a_page_is_a_person_with_fewer_rights() {
    let daemon = TestDaemon::start();
    let mut page = Browser::signed_in(&daemon).connect();
    let mut person = daemon.connect();
    let theirs =
        person.result("session.open", json!({"cwd": daemon.work(), "session_id": "theirs"}))["session_id"].take();
    let own = page.result("session.open", json!({"cwd": daemon.work(), "client": {"name": "page"}}));
    let listed = page.result("tools.execute", json!({"name": "list"}));
    assert_eq!(listed["is_error"], false, "{listed}");

    // It sees all sessions, and decides for them, but its calls run in its own.
    assert!(page.result("session.list", json!({}))["sessions"].to_string().contains("theirs"));
    page.result("permissions.set_mode", json!({"mode": "plan", "session_id": theirs}));
    for (method, params) in [
        ("tools.execute", json!({"name": "list", "session_id": theirs})),
        ("tools.execute_batch", json!({"calls": [{"name": "list"}], "session_id": theirs})),
        ("session.open", json!({"session_id": theirs})),
        ("session.close", json!({"session_id": theirs})),
    ] {
        assert_eq!(page.call(method, params)["error"]["code"], -32002, "{method}");
    }
    let code = person.result("session.share", json!({}))["code"].take();
    assert_eq!(page.call("session.open", json!({"session_id": code}))["error"]["code"], -32004);
    // Another tab of it comes back to its session.
    let mut tab = Browser::signed_in(&daemon).connect();
    assert_eq!(tab.result("session.open", json!({"session_id": own["session_id"]}))["resumed"], true);

    // Its folders and variables give agents nothing.
    let elsewhere = daemon.setup.path("home/elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let opened = page.result("session.open", json!({"cwd": elsewhere, "env": {"PATH": "/evil", "LANG": "C"}}));
    assert_eq!(opened["env_ignored"], json!(["PATH"]));
    assert!(!person.result("workspaces.list", json!({})).to_string().contains("elsewhere"));
}

#[test]
fn a_page_answers_an_agents_ask() {
    let daemon = TestDaemon::asking();
    let mut page = Browser::signed_in(&daemon).connect();
    page.result("permissions.subscribe", json!({}));
    let mut agent = toold_tests::Wire::connect(&daemon.socket());
    agent.result("session.open", json!({"cwd": daemon.work(), "role": "agent"}));
    let call = agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": "echo told"}}));
    let ask = page.notification("permissions.event");
    let id = ask["result"]["request"]["request_id"].clone();
    page.result("permissions.reply", json!({"request_id": id, "action": "allow"}));
    assert!(agent.answer(call).to_string().contains("told"));
}

#[test]
fn a_page_speaks_no_mcp() {
    let daemon = TestDaemon::start();
    let mut page = Browser::signed_in(&daemon).connect();
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    assert_eq!(page.call("initialize", params)["error"]["code"], -32601);
}

#[test]
fn browsers_stay_signed_in_when_the_daemon_restarts() {
    let listen = format!("[page]\nlisten = \"127.0.0.1:{}\"\n", lasting_port());
    let mut daemon = Setup::new().config(&listen).start();
    let browser = Browser::signed_in(&daemon);
    let mut socket = browser.connect();
    let pid = daemon.connect().result("daemon.restart", json!({}))["pid"].take();
    assert_eq!(socket.notification("daemon.closing")["reason"], "restart");
    socket.wait_for_end();
    // The old daemon holds the port until it ends: whoever answers then is the next one.
    daemon.wait();
    until("the next daemon serves the page", || TcpStream::connect(&browser.address).ok());
    assert_eq!(browser.connect().result("daemon.status", json!({}))["pid"], pid);
    let process = pid.as_u64().unwrap().to_string();
    assert!(std::process::Command::new("kill").arg(&process).status().unwrap().success());
    until("the next daemon ends", || (!Path::new("/proc").join(&process).exists()).then_some(()));
}

#[test]
fn the_page_is_served_where_the_configuration_says() {
    // At the address of MCP, if there is one.
    let daemon = Setup::new().config("[mcp]\nlisten = \"127.0.0.1:0\"\n").start();
    let status = daemon.connect().result("daemon.status", json!({}));
    assert_eq!(status["page_url"], json!(status["mcp_url"].as_str().unwrap().replace("/mcp", "/page/")));
    let (browser, _) = Browser::at(&daemon);
    assert_eq!((browser.get("/page/").status, browser.get("/").status), (200, 401));
    // At its own.
    let daemon = Setup::new().config("[mcp]\nlisten = \"127.0.0.1:0\"\n[page]\nlisten = \"127.0.0.1:0\"\n").start();
    let status = daemon.connect().result("daemon.status", json!({}));
    let (mcp, page) = (status["mcp_url"].as_str().unwrap(), status["page_url"].as_str().unwrap());
    assert_ne!(mcp.replace("/mcp", "/page/"), page);
    let (mut browser, _) = Browser::at(&daemon);
    assert!(page.contains(&browser.address));
    assert_eq!(browser.get("/mcp").status, 404);
    browser.address = mcp.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap().to_owned();
    assert_eq!(browser.get("/page/").status, 401);
    // Nowhere, before anybody wants it, and when it is turned off.
    let daemon = TestDaemon::start();
    assert_eq!(daemon.connect().result("daemon.status", json!({})).get("page_url"), None);
    let daemon = Setup::new().config("[page]\nenabled = false\n").start();
    let refused = daemon.toolctl(&["page"]);
    let words = String::from_utf8(refused.stderr).unwrap();
    assert!(words.contains("page.enabled"), "{words}");
    assert_eq!(refused.status.code(), Some(3));
}

#[test]
fn turning_the_page_off_takes_effect_at_once() {
    let daemon = TestDaemon::start();
    let browser = Browser::signed_in(&daemon);
    let open = browser.connect();
    let (mut late, code) = Browser::at(&daemon);
    let config = daemon.setup.path("config/toold/config.toml");
    std::fs::write(&config, "[page]\nenabled = false\n").unwrap();
    assert_eq!(daemon.connect().result("daemon.reload", json!({}))["applied"], true);
    assert_eq!(browser.get("/page/").status, 404);
    assert_eq!(browser.upgrade("/page/rpc", &[]).err(), Some(404));
    open.wait_for_end();
    // Nobody who was signed in comes back with it.
    std::fs::write(&config, "").unwrap();
    assert_eq!(daemon.connect().result("daemon.reload", json!({}))["applied"], true);
    assert_eq!(browser.get("/page/session").status, 401);
    assert_eq!(daemon.connect().result("page.sessions", json!({}))["sessions"], json!([]));
    assert_eq!(late.sign_in(&code).status, 403);
}

/// A self-made certificate for these names, in `cert.pem` and `key.pem` of a folder; gives the certificate.
fn certificate(folder: &Path, names: &[&str]) -> CertificateDer<'static> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    let key = folder.join("key.pem");
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    cert.der().clone()
}

/// One request with TLS; `None` when the certificate is not the expected one.
fn over_tls(browser: &Browser, expected: &CertificateDer<'static>, request: &str) -> Option<PageAnswer> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(expected.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(connection, browser.stream());
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // The daemon may end the connection without saying so in TLS.
    let _ = stream.read_to_end(&mut answer);
    (!answer.is_empty()).then(|| PageAnswer::parse(&answer))
}

#[test]
fn a_certificate_serves_the_page_with_tls_and_is_read_again() {
    let setup = Setup::new();
    let folder = setup.path("home");
    let first = certificate(&folder, &["localhost"]);
    let config = "[page]\nlisten = \"127.0.0.1:0\"\ntls_cert = \"~/cert.pem\"\ntls_key = \"~/key.pem\"\nhosts = [\"localhost\"]\n";
    let daemon = setup.config(config).start();
    let mut person = daemon.connect();
    let opened = person.result("page.open", json!({}));
    assert!(opened["url"].as_str().unwrap().starts_with("https://localhost:"), "{opened}");
    let browser = Browser { address: opened["address"].as_str().unwrap().to_owned(), cookie: None };
    let login = |scheme: &str, code: &Value| {
        let host = browser.address.replace("127.0.0.1", "localhost");
        let origin = format!("{scheme}://{host}");
        let headers = [("Host", host.as_str()), ("Origin", &origin), ("Content-Type", "application/json")];
        browser.request("POST", "/page/login", &headers, &json!({"code": code}).to_string())
    };
    let plain = over_tls(&browser, &first, &login("http", &opened["code"])).unwrap();
    assert_eq!(plain.status, 403, "a page without TLS is another one");
    let answer = over_tls(&browser, &first, &login("https", &opened["code"])).unwrap();
    assert_eq!(answer.status, 204);
    assert!(answer.header("set-cookie").unwrap().ends_with("; Secure"), "{}", answer.head);
    // Without TLS, there is no answer of HTTP.
    let mut plain = browser.stream();
    plain.write_all(b"GET /page/ HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP"));

    let get = browser.request("GET", "/page/", &[("Host", "localhost")], "");
    let second = certificate(&folder, &["localhost"]);
    assert_eq!(person.result("daemon.reload", json!({}))["applied"], true);
    until("the new certificate is served", || over_tls(&browser, &second, &get));
    assert!(over_tls(&browser, &first, &get).is_none());
    // While the new files are wrong, the last good ones stay.
    std::fs::write(folder.join("cert.pem"), "no certificate").unwrap();
    let reloaded = person.result("daemon.reload", json!({}));
    assert!(reloaded["problems"][0].as_str().unwrap().contains("page.tls_cert"), "{reloaded}");
    assert_eq!(over_tls(&browser, &second, &get).unwrap().status, 200);
}

#[test]
fn a_wrong_section_is_found_and_listens_nowhere() {
    let setup = Setup::new();
    let folder = setup.path("home");
    certificate(&folder, &["localhost"]);
    std::fs::rename(folder.join("key.pem"), folder.join("other.pem")).unwrap();
    certificate(&folder, &["localhost"]);
    std::fs::write(folder.join("open.pem"), std::fs::read(folder.join("key.pem")).unwrap()).unwrap();
    std::fs::set_permissions(folder.join("open.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::write(folder.join("no-key.pem"), std::fs::read(folder.join("cert.pem")).unwrap()).unwrap();
    std::fs::set_permissions(folder.join("no-key.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let tls =
        |cert: &str, key: &str| format!("listen = \"127.0.0.1:0\"\ntls_cert = \"~/{cert}\"\ntls_key = \"~/{key}\"\n");
    let mut setup = Some(setup);
    for (section, words) in [
        ("listen = \"page.example:1\"\n".to_owned(), ["page.listen", "not an address"]),
        ("listen = \"0.0.0.0:0\"\n".to_owned(), ["page.tls_cert", "page.allow_remote"]),
        ("tls_cert = \"~/cert.pem\"\n".to_owned(), ["page.tls_cert", "page.listen"]),
        ("listen = \"127.0.0.1:0\"\ntls_cert = \"~/cert.pem\"\n".to_owned(), ["page.tls_key", "missing"]),
        ("listen = \"127.0.0.1:0\"\ntls_key = \"~/key.pem\"\n".to_owned(), ["page.tls_cert", "missing"]),
        (tls("none.pem", "key.pem"), ["page.tls_cert", "none.pem"]),
        (tls("key.pem", "key.pem"), ["page.tls_cert", "no certificate"]),
        (tls("cert.pem", "no-key.pem"), ["page.tls_key", "no private key"]),
        (tls("cert.pem", "open.pem"), ["page.tls_key", "chmod 600"]),
        (tls("cert.pem", "other.pem"), ["page.tls_key", "does not match"]),
    ] {
        let daemon = setup.take().unwrap().config(&format!("[page]\n{section}")).start();
        let check = daemon.setup.command(toold_tests::toold()).args(["config", "check"]).output().unwrap();
        let found = String::from_utf8(check.stdout).unwrap() + &String::from_utf8(check.stderr).unwrap();
        assert!(!check.status.success(), "{section}: {found}");
        let status = daemon.connect().result("daemon.status", json!({}));
        let refused = daemon.connect().error("page.open", json!({}))["message"].take();
        for word in words {
            for text in [&found, &status["problems"].to_string(), &refused.to_string()] {
                assert!(text.contains(word), "{section}: {word}: {text}");
            }
        }
        assert_eq!(status.get("page_url"), None, "{section}");
        setup = Some(daemon.into_setup());
    }
}

#[test]
fn the_page_is_served_to_other_machines_only_when_allowed() {
    let daemon = Setup::new().config("[page]\nlisten = \"0.0.0.0:0\"\nallow_remote = true\n").start();
    let opened = daemon.connect().result("page.open", json!({}));
    assert_eq!((&opened["loopback"], &opened["tls"]), (&json!(false), &json!(false)));
    assert!(daemon.log().contains("without TLS"));
    // `mcp.allow_remote` is not for the page.
    let daemon = Setup::new().config("[mcp]\nlisten = \"0.0.0.0:0\"\nallow_remote = true\n").start();
    let opened = daemon.connect().result("page.open", json!({}));
    assert_eq!(opened["loopback"], true, "{opened}");
}

#[test]
fn toolctl_prints_the_link_and_nothing_else_to_a_pipe() {
    let daemon = TestDaemon::asking();
    let mut person = daemon.connect();
    person.result("permissions.subscribe", json!({}));
    let mut agent = daemon.connect();
    agent.request("tools.execute", json!({"name": "bash", "arguments": {"command": "touch x"}}));
    let ask = until("the ask", || {
        let pending = person.result("permissions.pending", json!({}))["asks"].take();
        Some(pending[0]["request_id"].as_str()?.to_owned())
    });
    let link = daemon.toolctl(&["page", "--ask", &ask]);
    let link = String::from_utf8(link.stdout).unwrap();
    let rest = link.strip_prefix("http://127.0.0.1:").unwrap();
    let (port, rest) = rest.split_once("/page/#code=").unwrap();
    let (code, asked) = rest.split_once("&ask=").unwrap();
    assert!(port.parse::<u16>().is_ok() && code.len() == 32 && asked == format!("{ask}\n"), "{link}");
    let answer = daemon.toolctl(&["page", "--json"]);
    let opened: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert!(opened["url"].as_str().unwrap().ends_with(opened["code"].as_str().unwrap()));
    assert_eq!(daemon.toolctl(&["page", "--ask", "a b"]).status.code(), Some(2));

    let mut browser = Browser { address: opened["address"].as_str().unwrap().to_owned(), cookie: None };
    assert_eq!(browser.sign_in(opened["code"].as_str().unwrap()).status, 204);
    let shown = String::from_utf8(daemon.toolctl(&["page", "sessions"]).stdout).unwrap();
    assert!(shown.lines().count() == 2 && shown.contains("127.0.0.1"), "{shown}");
    let revoked = daemon.toolctl(&["page", "revoke"]);
    assert_eq!(String::from_utf8(revoked.stderr).unwrap(), "signed out 1 browser\n");
    assert_eq!(browser.get("/page/session").status, 401);
}

#[test]
fn toolctl_opens_the_browser_of_the_environment() {
    let daemon =
        Setup::new().file("browser.sh", "#!/bin/sh\necho \"$1\" > opened.new && mv opened.new opened\n").start();
    let program = daemon.work().join("browser.sh");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = daemon.setup.command(toolctl());
        command.arg("page").args(arguments).env("BROWSER", &program).envs(variables.iter().copied());
        let (status, shown) = Terminal::run(&mut command).end();
        assert!(status.success(), "{shown}");
        shown
    };
    let shown = run(&[], &[]);
    let link = shown.lines().next().unwrap().trim();
    let opened = std::fs::read_to_string(daemon.work().join("opened")).unwrap();
    assert_eq!(opened.trim(), link);
    assert!(shown.contains("opened in your browser") && !shown.contains('█'), "{shown}");

    std::fs::remove_file(daemon.work().join("opened")).unwrap();
    let variables = [("SSH_CONNECTION", "192.0.2.1 5 192.0.2.7 22"), ("USER", "eve")];
    let shown = run(&["--no-open", "--qr"], &variables);
    assert!(shown.contains('█') && shown.contains("ssh -N -L ") && shown.contains(" eve@192.0.2.7"), "{shown}");
    assert_eq!(run(&["--plain"], &variables).lines().count(), 1);
    assert!(!daemon.work().join("opened").exists());
}
