//! A client that is only a socket: it sends exactly the bytes that the test wrote.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use toold_test_kit::PATIENCE;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum WireFraming {
    Lines,
    Headers,
}

pub struct Wire {
    reader: BufReader<UnixStream>,
    framing: WireFraming,
    next_id: u64,
    /// Messages that came while another one was waited for.
    set_aside: VecDeque<Value>,
}

impl Wire {
    pub fn connect(socket: &Path) -> Self {
        Self::connect_framed(socket, WireFraming::Lines)
    }

    pub fn connect_framed(socket: &Path, framing: WireFraming) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { reader: BufReader::new(stream), framing, next_id: 1, set_aside: VecDeque::new() }
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }

    /// Sends one message in the connection's framing.
    pub fn send(&mut self, message: &Value) {
        self.send_bytes(self.framed(message).as_bytes());
    }

    fn framed(&self, message: &Value) -> String {
        let text = message.to_string();
        match self.framing {
            WireFraming::Lines => format!("{text}\n"),
            WireFraming::Headers => format!("Content-Length: {}\r\n\r\n{text}", text.len()),
        }
    }

    /// Sends a request and gives its id.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        let (id, message) = self.next_request(method, params);
        self.send(&message);
        id
    }

    /// The same if the other end may have closed the connection: what it sent before can still be read.
    pub fn try_request(&mut self, method: &str, params: Value) -> u64 {
        let (id, message) = self.next_request(method, params);
        let framed = self.framed(&message);
        let _ = self.reader.get_mut().write_all(framed.as_bytes());
        id
    }

    fn next_request(&mut self, method: &str, params: Value) -> (u64, Value) {
        let id = self.next_id;
        self.next_id += 1;
        (id, json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    }

    /// The next message, whatever it is; `None` at the end of the stream.
    pub fn next_message(&mut self) -> Option<Value> {
        if let Some(message) = self.set_aside.pop_front() {
            return Some(message);
        }
        self.read()
    }

    /// The next notification of this method; other messages wait.
    #[track_caller]
    pub fn notification(&mut self, method: &str) -> Value {
        self.find(|message| message["method"] == method)["params"].take()
    }

    /// The answer to a request; other messages wait.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        self.find(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Calls a method and gives the whole answer.
    #[track_caller]
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Calls a method that must work, and gives its result.
    #[track_caller]
    pub fn result(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params);
        assert!(answer.get("error").is_none(), "{method}: {answer}");
        answer["result"].take()
    }

    /// Calls a method that must not work, and gives its error.
    #[track_caller]
    pub fn error(&mut self, method: &str, params: Value) -> Value {
        let mut answer = self.call(method, params);
        assert!(answer.get("result").is_none(), "{method}: {answer}");
        answer["error"].take()
    }

    /// Calls a tool and gives its result.
    #[track_caller]
    pub fn tool(&mut self, name: &str, arguments: Value) -> Value {
        self.result("tools.execute", json!({"name": name, "arguments": arguments}))
    }

    /// The stream itself, with what was read ahead.
    pub fn stream(&mut self) -> &mut impl Read {
        &mut self.reader
    }

    /// Ends the sending side only.
    pub fn end_sending(&self) {
        self.reader.get_ref().shutdown(std::net::Shutdown::Write).unwrap();
    }

    #[track_caller]
    fn find(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(place) = self.set_aside.iter().position(&wanted) {
            return self.set_aside.remove(place).expect("it was just found");
        }
        loop {
            let message = self.read().expect("the daemon closed the connection");
            if wanted(&message) {
                return message;
            }
            self.set_aside.push_back(message);
        }
    }

    #[track_caller]
    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.framing {
            WireFraming::Lines => {
                if self.reader.read_line(&mut line).expect("the daemon answers in time") == 0 {
                    return None;
                }
            }
            WireFraming::Headers => {
                let mut header = String::new();
                if self.reader.read_line(&mut header).expect("the daemon answers in time") == 0 {
                    return None;
                }
                let length = header.strip_prefix("Content-Length: ").expect("the only header").trim().parse().unwrap();
                let mut blank = String::new();
                self.reader.read_line(&mut blank).unwrap();
                assert_eq!(blank, "\r\n");
                let mut body = vec![0; length];
                self.reader.read_exact(&mut body).unwrap();
                line = String::from_utf8(body).unwrap();
            }
        }
        Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}")))
    }
}
