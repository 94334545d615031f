//! A TCP proxy in front of a server, whose connections a test interrupts, delays and closes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A running proxy, on a port of its own. Ends with all its connections on drop.
pub struct Proxy {
    port: u16,
    link: Arc<Link>,
    accepts: Option<JoinHandle<()>>,
}

/// The link between the two sides.
struct Link {
    server: u16,
    state: Mutex<LinkState>,
    changed: Condvar,
}

#[derive(Default)]
struct LinkState {
    is_cut: bool,
    is_over: bool,
    delay: Duration,
    streams: Vec<TcpStream>,
}

impl Proxy {
    /// To a port of this machine.
    pub fn start(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let link = Arc::new(Link { server, state: Mutex::default(), changed: Condvar::new() });
        let accepts = Some(std::thread::spawn({
            let link = link.clone();
            move || link.accept(&listener)
        }));
        Self { port, link, accepts }
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// From now on nothing arrives on either side, and neither side learns that: a partition of the network. Bytes that
    /// are under way arrive after [`heal`](Self::heal), as TCP would send them again.
    pub fn cut(&self) {
        self.link.state.lock().is_cut = true;
    }

    /// Ends a partition.
    pub fn heal(&self) {
        self.link.state.lock().is_cut = false;
        self.link.changed.notify_all();
    }

    /// Delays everything by this time, in both directions.
    pub fn delay(&self, delay: Duration) {
        self.link.state.lock().delay = delay;
    }

    /// Closes all connections. New ones are accepted.
    pub fn close(&self) {
        self.link.state.lock().close();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let mut state = self.link.state.lock();
        state.is_over = true;
        state.close();
        drop(state);
        self.link.changed.notify_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        let _ = self.accepts.take().map(JoinHandle::join);
    }
}

impl LinkState {
    fn close(&mut self) {
        for stream in self.streams.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Link {
    fn accept(&self, listener: &TcpListener) {
        std::thread::scope(|scope| {
            for client in listener.incoming() {
                if self.state.lock().is_over {
                    break;
                }
                let Ok(client) = client else { continue };
                scope.spawn(|| self.carry(client));
            }
        });
    }

    fn carry(&self, client: TcpStream) {
        if !self.keep(&client) || !self.pass() {
            return;
        }
        let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.server)) else {
            let _ = client.shutdown(Shutdown::Both);
            return;
        };
        if !self.keep(&server) {
            return;
        }
        std::thread::scope(|scope| {
            scope.spawn(|| self.pump(&server, &client));
            self.pump(&client, &server);
        });
    }

    /// Remembers a stream, to close it; false when everything is over.
    fn keep(&self, stream: &TcpStream) -> bool {
        let _ = stream.set_nodelay(true);
        let mut state = self.state.lock();
        state.streams.extend(stream.try_clone().ok());
        if state.is_over {
            state.close();
        }
        !state.is_over
    }

    fn pump(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let mut buffer = [0; 16 * 1024];
        loop {
            let length = from.read(&mut buffer).unwrap_or(0);
            // Not even the end of a connection gets through a partition.
            if !self.pass() || length == 0 || to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }

    /// Waits until something may pass; false when everything is over.
    fn pass(&self) -> bool {
        let mut state = self.state.lock();
        let delay = state.delay;
        if !delay.is_zero() {
            self.changed.wait_while_for(&mut state, |state| !state.is_over, delay);
        }
        self.changed.wait_while(&mut state, |state| state.is_cut && !state.is_over);
        !state.is_over
    }
}
