//! Connects to a daemon.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Request};
use tokio_tungstenite::tungstenite::{Error, http};
use toold_client::Client;
use toold_host::files;
use toold_host::process::ProcessCommand;
use toold_host::stderr_log::StderrLog;
use toold_mounts::adapter::OpenedChannel;
use toold_mounts::program::SourceProgram;

use crate::address::WebSocketAddress;
use crate::endpoint::{Reach, RemoteOptions};
use crate::websocket::lines::WebSocketLines;
use crate::websocket::{Bounds, WebSocketMessages};

/// Longer messages end the connection, as [`Client`] does.
const MAX_RECEIVED: usize = 64 << 20;
/// Bytes of a token's file.
const MAX_TOKEN: u64 = 64 << 10;

/// Starts the program, or opens the WebSocket. Sends nothing to the daemon yet.
///
/// # Errors
/// Why that failed, as a sentence for the user.
pub(crate) async fn open(
    reach: &Reach,
    options: &RemoteOptions,
    stderr_log: &Arc<StderrLog>,
) -> Result<OpenedChannel<Client>, String> {
    match reach {
        Reach::Command { program, args, env } => {
            let command = ProcessCommand::new(program, &options.home, options.environment.clone().with(env)).args(args);
            let (program, stdout, stdin) = SourceProgram::start(command, stderr_log)?;
            let client = Client::over(stdout, stdin).map_err(|error| error.to_string())?;
            Ok(OpenedChannel { channel: client, program: Some(program) })
        }
        Reach::WebSocket { url, token_file } => {
            let file = token_file.clone();
            let token = tokio::task::spawn_blocking(move || read_token(&file));
            let token = token.await.map_err(|error| error.to_string())??;
            Ok(OpenedChannel { channel: open_websocket(url, &token).await?, program: None })
        }
        Reach::Unusable { why } => Err(why.clone()),
    }
}

async fn open_websocket(url: &str, token: &str) -> Result<Client, String> {
    let WebSocketAddress { mut request, host, port, is_tls } = WebSocketAddress::parse(url)?;
    let header = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| "the token has characters that HTTP does not allow".to_owned())?;
    request.headers_mut().insert(AUTHORIZATION, header);
    let stream = TcpStream::connect((host.as_str(), port)).await;
    let stream = stream.map_err(|error| format!("can't connect to {host}:{port}: {error}"))?;
    // Small messages would otherwise wait for the acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    if !is_tls {
        return handshake(request, stream).await;
    }
    let config =
        tokio::task::spawn_blocking(toold_host::http::tls_config).await.map_err(|error| error.to_string())??;
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
    handshake(request, stream.map_err(|error| format!("TLS: {error}"))?).await
}

async fn handshake<S>(request: Request<()>, stream: S) -> Result<Client, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let bounds = Bounds { max_message: MAX_RECEIVED, too_large: None };
    let messages = WebSocketMessages::client(request, stream, bounds).await.map_err(|error| match *error {
        Error::Http(answer) => match answer.status() {
            http::StatusCode::UNAUTHORIZED => "it does not accept the token".to_owned(),
            status => {
                let text = String::from_utf8_lossy(answer.body().as_deref().unwrap_or_default()).trim().to_owned();
                format!("it answered with HTTP status {status}: {}", text.chars().take(200).collect::<String>())
            }
        },
        error => error.to_string(),
    })?;
    let (read, write) = tokio::io::split(WebSocketLines::new(messages));
    Client::over(read, write).map_err(|error| error.to_string())
}

/// The token in a file that only its owner may read.
fn read_token(file: &Path) -> Result<String, String> {
    let shown = file.display();
    let resolved = files::resolve(file, Path::new("/")).map_err(|error| format!("can't resolve {shown}: {error}"))?;
    let mut opened = files::open(&resolved).map_err(|error| error.to_string())?;
    let metadata = opened.metadata().map_err(|error| format!("can't read the permissions of {shown}: {error}"))?;
    if metadata.mode() & 0o077 != 0 {
        return Err(format!("other users can access {shown}: run chmod 600 on it"));
    }
    let token = files::read_opened(&mut opened, &resolved, MAX_TOKEN).map_err(|error| error.to_string())?;
    let token = String::from_utf8(token).map_err(|_| format!("{shown} is not UTF-8"))?;
    match token.trim() {
        "" => Err(format!("{shown} is empty")),
        token => Ok(token.to_owned()),
    }
}
