//! How a daemon is reached.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Request};
use tokio_tungstenite::tungstenite::{Error, http};
use toold_client::Client;
use toold_host::descendants::{OWNER, owner};
use toold_host::files;
use toold_host::process::ProcessCommand;
use toold_host::process::piped_child::{PipedChild, start_piped};
use toold_host::stderr_log::StderrLog;

use crate::RemoteOptions;
use crate::config::Reach;
use crate::websocket::{Bounds, Lines};

/// Between closed stdin, TERM and KILL.
const GRACE: Duration = Duration::from_secs(1);
/// Longer messages end the connection, as [`Client`] does.
const MAX_RECEIVED: usize = 64 << 20;
/// Bytes of the file of a token.
const MAX_TOKEN: u64 = 64 << 10;

/// A way to a daemon, open.
pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) talker: Option<PipedChild>,
    /// Reads the program's stderr to the end.
    pub(crate) stderr: Option<JoinHandle<()>>,
}

/// Starts the program, or opens the WebSocket. Nothing is asked of the daemon yet.
///
/// # Errors
/// Why it cannot be, for people.
pub(crate) async fn open(reach: &Reach, options: &RemoteOptions, chatter: &Arc<StderrLog>) -> Result<Link, String> {
    match reach {
        Reach::Command { program, args, env } => {
            let environment = options.environment.clone().with(env).with([(OWNER, owner())]);
            let mut command = ProcessCommand::new(program, &options.home, environment).args(args);
            command.grace = GRACE;
            let (talker, pipes) = start_piped(command).map_err(|error| error.to_string())?;
            let chatter = chatter.clone();
            let stderr = tokio::spawn(async move { chatter.read(pipes.stderr).await });
            let client = Client::over(pipes.stdout, pipes.stdin).map_err(|error| error.to_string())?;
            Ok(Link { client, talker: Some(talker), stderr: Some(stderr) })
        }
        Reach::WebSocket { url, token_file } => {
            let file = token_file.clone();
            let token =
                tokio::task::spawn_blocking(move || token(&file)).await.map_err(|error| error.to_string())??;
            let client = websocket(url, &token).await?;
            Ok(Link { client, talker: None, stderr: None })
        }
        Reach::Unusable { why } => Err(why.clone()),
    }
}

/// Where the address of a WebSocket leads.
pub(crate) struct Address {
    request: Request<()>,
    host: String,
    port: u16,
    is_tls: bool,
}

impl Address {
    /// # Errors
    /// Why it is none.
    pub(crate) fn read(url: &str) -> Result<Self, String> {
        let request = url.into_client_request().map_err(|error| format!("{url:?}: {error}"))?;
        let is_tls = match request.uri().scheme_str() {
            Some("ws") => false,
            Some("wss") => true,
            Some(_) | None => return Err(format!("{url:?} is no address of ws or wss")),
        };
        let host = request.uri().host().ok_or_else(|| format!("{url:?} names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let port = request.uri().port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        Ok(Self { request, host, port, is_tls })
    }

    /// Whether a token would go over a network as it is.
    pub(crate) fn is_in_the_clear(&self) -> bool {
        let is_here =
            self.host == "localhost" || self.host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
        !self.is_tls && !is_here
    }
}

async fn websocket(url: &str, token: &str) -> Result<Client, String> {
    let Address { mut request, host, port, is_tls } = Address::read(url)?;
    let header =
        HeaderValue::from_str(&format!("Bearer {token}")).map_err(|_| "the token cannot be sent".to_owned())?;
    request.headers_mut().insert(AUTHORIZATION, header);
    let stream = TcpStream::connect((host.as_str(), port)).await;
    let stream = stream.map_err(|error| format!("can't connect to {host}:{port}: {error}"))?;
    // Small messages would wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    if !is_tls {
        return shake_hands(request, stream).await;
    }
    let config =
        tokio::task::spawn_blocking(toold_host::http::tls_config).await.map_err(|error| error.to_string())??;
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    shake_hands(request, stream.map_err(|error| format!("TLS: {error}"))?).await
}

async fn shake_hands<S>(request: Request<()>, stream: S) -> Result<Client, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bounds = Bounds { max_message: MAX_RECEIVED, too_large: None };
    let lines = Lines::client(request, stream, bounds).await.map_err(|error| match *error {
        Error::Http(answer) => match answer.status() {
            http::StatusCode::UNAUTHORIZED => "it does not know the token".to_owned(),
            status => {
                let words = String::from_utf8_lossy(answer.body().as_deref().unwrap_or_default()).trim().to_owned();
                format!("it answers with {status}: {}", words.chars().take(200).collect::<String>())
            }
        },
        error => error.to_string(),
    })?;
    let (read, write) = tokio::io::split(lines);
    Client::over(read, write).map_err(|error| error.to_string())
}

/// The token in a file that only its owner reads.
fn token(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let resolved = files::resolve(file, Path::new("/")).map_err(|error| format!("can't resolve {shown}: {error}"))?;
    let mut opened = files::open(&resolved).map_err(|error| error.to_string())?;
    let metadata = opened.metadata().map_err(|error| format!("can't look at {shown}: {error}"))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(format!("{shown} is open to others: chmod 600 it"));
    }
    let token = files::read_opened(&mut opened, &resolved, MAX_TOKEN).map_err(|error| error.to_string())?;
    let token = String::from_utf8(token).map_err(|_| format!("{shown} is no text"))?;
    match token.trim() {
        "" => Err(format!("{shown} is empty")),
        token => Ok(token.to_owned()),
    }
}
