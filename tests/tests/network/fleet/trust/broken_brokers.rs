//! Brokers that do not work as they should.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

use serde_json::json;
use toold_tests::{FleetPlan, NatsServer, Proxy, Setup, TestDaemon, until};

use super::scene::status;

fn member(plan: &FleetPlan, url: &str, more: &str) -> TestDaemon {
    Setup::new().config(&plan.config("laptop", url, Some("anna"), more)).start()
}

/// Waits until the status says why the fleet does not work.
#[track_caller]
fn expect_error(daemon: &TestDaemon, words: &[&str]) {
    let error = until(&format!("an error that contains {words:?}"), || {
        let error = status(daemon)["error"].as_str()?.to_owned();
        words.iter().all(|word| error.to_lowercase().contains(word)).then_some(error)
    });
    println!("{error}");
    assert_eq!(daemon.connect().tool("list", json!({}))["is_error"], false, "the rest works");
}

#[test]
fn a_server_without_jetstream_is_reported() {
    let Some(nats) = NatsServer::start_without_jetstream() else { return };
    let plan = FleetPlan::new(&["laptop", "build"], &["anna"]);
    let daemon = member(&plan, &nats.url(), "");
    expect_error(&daemon, &["jetstream"]);
}

#[test]
fn a_refused_login_is_reported_and_right_credentials_are_used_later() {
    let Some(mut nats) = NatsServer::start() else { return };
    nats.kill();
    nats.configure("authorization { token: \"right\" }");
    nats.start_again();
    let plan = FleetPlan::new(&["laptop", "build"], &["anna"]);
    let setup = Setup::new();
    let (wrong, right) = (setup.path("wrong"), setup.path("right"));
    for (file, token) in [(&wrong, "wrong"), (&right, "right")] {
        std::fs::write(file, token).unwrap();
        std::fs::set_permissions(file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    }
    let config = |file: &std::path::Path| {
        plan.config("laptop", &nats.url(), Some("anna"), &format!("credentials = {:?}", file.display().to_string()))
    };
    let (first, second) = (config(&wrong), config(&right));
    let daemon = setup.config(&first).start();
    expect_error(&daemon, &["authorization"]);
    std::fs::write(daemon.setup.path("config/toold/config.toml"), second).unwrap();
    until("it is connected", || (status(&daemon)["connected"] == true).then_some(()));
}

#[test]
fn a_broker_that_answers_nothing_is_reported_and_keeps_nothing_from_stopping() {
    // It greets like a server, and says nothing more than PONG.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let greets = std::thread::spawn(move || {
        let mut links = Vec::new();
        for stream in listener.incoming().flatten() {
            let mut answers = stream.try_clone().unwrap();
            if answers.write_all(GREETING.as_bytes()).is_err() {
                // The end of the test.
            }
            let mut lines = BufReader::new(stream);
            let mut first = String::new();
            if lines.read_line(&mut first).unwrap_or(0) == 0 {
                break;
            }
            links.push(std::thread::spawn(move || {
                for line in lines.lines().map_while(Result::ok) {
                    if line == "PING" && answers.write_all(b"PONG\r\n").is_err() {
                        break;
                    }
                }
            }));
        }
        links.into_iter().for_each(|link| _ = link.join());
    });
    let plan = FleetPlan::new(&["laptop", "build"], &["anna"]);
    let daemon = member(&plan, &format!("nats://127.0.0.1:{port}"), "");
    expect_error(&daemon, &["the broker"]);
    daemon.stop();
    // Ends the thread that accepts.
    drop(std::net::TcpStream::connect(("127.0.0.1", port)));
    greets.join().unwrap();
}

const GREETING: &str = "INFO {\"server_id\":\"X\",\"server_name\":\"X\",\"version\":\"2.15.1\",\"go\":\"go1\",\"host\":\"127.0.0.1\",\
                        \"port\":4222,\"headers\":true,\"max_payload\":1048576,\"proto\":1,\"jetstream\":true}\r\n";

#[test]
fn a_partition_is_noticed_and_its_end_too() {
    let Some(nats) = NatsServer::start() else { return };
    let proxy = Proxy::start(nats.port());
    let plan = FleetPlan::new(&["laptop", "build"], &["anna"]);
    let daemon = member(&plan, &proxy.url(), "");
    let connected = |wanted: bool| {
        until(&format!("connected: {wanted}"), || (status(&daemon)["connected"] == wanted).then_some(()));
    };
    connected(true);
    proxy.cut();
    connected(false);
    proxy.heal();
    connected(true);
    proxy.close();
    until("it has connected again", || {
        (status(&daemon)["connected"] == true
            && daemon.log().matches("the connection to the broker was lost").count() >= 2)
            .then_some(())
    });
}
