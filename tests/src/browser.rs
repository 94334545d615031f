//! A browser, as far as the daemon's page can tell: a cookie, and the headers that pages cannot choose.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderName;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};
use toold_test_kit::PATIENCE;

use crate::daemon::TestDaemon;

pub struct Browser {
    /// The address that it connects to, and the host that it names.
    pub address: String,
    /// `NAME=VALUE`, once it is signed in.
    pub cookie: Option<String>,
}

/// An answer: its status, its headers as they came, and its body.
pub struct PageAnswer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl PageAnswer {
    pub fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("an answer has a head");
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Self { status, head, body: bytes[end + 4..].to_vec() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Browser {
    /// One that is at the page of a daemon, and the code of a link.
    pub fn at(daemon: &TestDaemon) -> (Self, String) {
        let opened = daemon.connect().result("page.open", json!({}));
        let url = opened["url"].as_str().unwrap();
        let address = url.split("://").nth(1).unwrap().split('/').next().unwrap().to_owned();
        (Self { address, cookie: None }, opened["code"].as_str().unwrap().to_owned())
    }

    /// One that is signed in.
    pub fn signed_in(daemon: &TestDaemon) -> Self {
        let (mut browser, code) = Self::at(daemon);
        let answer = browser.sign_in(&code);
        assert_eq!(answer.status, 204, "{}", answer.text());
        browser
    }

    /// Posts a code, and keeps the cookie.
    pub fn sign_in(&mut self, code: &str) -> PageAnswer {
        let answer = self.post("/page/login", &[], &json!({"code": code}).to_string());
        if let Some(cookie) = answer.header("set-cookie") {
            self.cookie = Some(cookie.split(';').next().unwrap().to_owned());
        }
        answer
    }

    pub fn get(&self, path: &str) -> PageAnswer {
        self.send("GET", path, &[], "")
    }

    /// From the page itself.
    pub fn post(&self, path: &str, own: &[(&str, &str)], body: &str) -> PageAnswer {
        let origin = self.origin();
        let mut headers = vec![("Origin", origin.as_str()), ("Content-Type", "application/json")];
        headers.retain(|(name, _)| own.iter().all(|(own, _)| own != name));
        headers.extend(own);
        self.send("POST", path, &headers, body)
    }

    /// One request on a connection of its own. `own` headers are sent as they are, several of one name, too; `Host` and
    /// `Cookie` replace the usual ones, and empty ones are left out.
    pub fn send(&self, method: &str, path: &str, own: &[(&str, &str)], body: &str) -> PageAnswer {
        let mut stream = self.stream();
        stream.write_all(self.request(method, path, own, body).as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The daemon closes a connection whose body it did not read.
        let _ = stream.read_to_end(&mut answer);
        PageAnswer::parse(&answer)
    }

    /// The text of a request; the connection ends after its answer.
    pub fn request(&self, method: &str, path: &str, own: &[(&str, &str)], body: &str) -> String {
        let length = body.len().to_string();
        let usual = [
            ("Host", self.address.as_str()),
            ("Cookie", self.cookie.as_deref().unwrap_or_default()),
            ("Connection", "close"),
            ("Content-Length", if body.is_empty() { "" } else { &length }),
        ];
        let usual = usual.into_iter().filter(|(name, _)| own.iter().all(|(own, _)| !own.eq_ignore_ascii_case(name)));
        let mut text = format!("{method} {path} HTTP/1.1\r\n");
        for (name, value) in usual.chain(own.iter().copied()).filter(|(_, value)| !value.is_empty()) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text + "\r\n" + body
    }

    pub fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.address)
    }

    /// A WebSocket of the page.
    pub fn connect(&self) -> PageSocket {
        self.upgrade("/page/rpc", &[]).unwrap_or_else(|status| panic!("refused with {status}"))
    }

    /// The same at any path; these headers replace the usual ones, and empty ones are left out.
    ///
    /// # Errors
    /// The status of the refusal.
    pub fn upgrade(&self, path: &str, own: &[(&str, &str)]) -> Result<PageSocket, u16> {
        let mut request = format!("ws://{}{path}", self.address).into_client_request().unwrap();
        let (origin, cookie) = (self.origin(), self.cookie.clone().unwrap_or_default());
        for (name, value) in [("origin", origin.as_str()), ("cookie", &cookie)].iter().chain(own) {
            let name: HeaderName = name.parse().unwrap();
            match value.is_empty() {
                true => _ = request.headers_mut().remove(name),
                false => _ = request.headers_mut().insert(name, value.parse().unwrap()),
            }
        }
        match tungstenite::client(request, self.stream()) {
            Ok((socket, _)) => Ok(PageSocket(socket)),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(refused))) => {
                Err(refused.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// A connection of the page.
pub struct PageSocket(WebSocket<TcpStream>);

impl PageSocket {
    /// Calls a method and gives the whole answer.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let request = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": params});
        self.0.send(Message::text(request.to_string())).unwrap();
        self.find(|message| message["id"] == method)
    }

    /// Calls a method that must work, and gives its result.
    #[track_caller]
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// The next notification of this method.
    pub fn notification(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method)["params"].take()
    }

    /// Reads up to the end.
    pub fn wait_for_end(mut self) {
        while !matches!(self.0.read(), Ok(Message::Close(_)) | Err(_)) {}
    }

    fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            if let Message::Text(text) = self.0.read().unwrap() {
                let message: Value = serde_json::from_str(&text).unwrap();
                if wanted(&message) {
                    return message;
                }
            }
        }
    }
}
