//! The guard's side of a connection from the namespace: HTTP with `CONNECT`, and SOCKS5, by its first byte.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::target::HostPort;
use crate::sandbox::network::call::{CallHosts, HostRefusal};
use crate::sandbox::network::hosts::target_of;
use crate::sandbox::network::proxy_request::{END, ProxyRequest, head_of_response};
use crate::sandbox::network::relay::{TrafficCounter, both_ways};

/// The longest head of a request or a response, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// How long a program may take to send a head.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The first byte of SOCKS5.
const SOCKS: u8 = 5;

/// Finds the call of a secret.
type FindCall<'a> = &'a (dyn Fn(&str) -> Option<Arc<CallHosts>> + Sync);

/// Serves one connection to its end. Errors of the connection are its end.
pub(super) async fn serve(mut client: TcpStream, call_of: FindCall<'_>) {
    let mut first = [0];
    let is_socks = match timeout(HEAD_TIME, client.peek(&mut first)).await {
        Ok(Ok(1)) => first[0] == SOCKS,
        Ok(_) | Err(_) => return,
    };
    let _ = match is_socks {
        true => socks(&mut client, call_of).await,
        false => http(&mut client, call_of).await,
    };
}

/// Passes a connection on to a place of this machine, or closes it.
pub(super) async fn forward(mut client: TcpStream, call: &Arc<CallHosts>, target: &HostPort) {
    let pass_on = async {
        if let Ok((mut host, counter)) = call.connect(target).await {
            both_ways(&mut client, &mut host, &counter).await;
        }
    };
    tokio::select! {
        () = call.ended() => {}
        () = pass_on => {}
    }
}

async fn http(client: &mut TcpStream, call_of: FindCall<'_>) -> io::Result<()> {
    let mut buffer = Vec::new();
    let length = match timeout(HEAD_TIME, read_head(client, &mut buffer)).await {
        Ok(Ok(Some(length))) => length,
        Ok(Ok(None)) => return answer(client, 431, "the head of the request is too long").await,
        Ok(Err(error)) => return Err(error),
        Err(_) => return answer(client, 408, "no whole request has arrived").await,
    };
    let request = match ProxyRequest::parse(&buffer[..length]) {
        Ok(request) => request,
        Err(why) => return answer(client, 400, &why).await,
    };
    let Some(call) = request.secret.as_deref().and_then(call_of) else {
        return answer(client, 407, NO_CALL).await;
    };
    let pass_on = async {
        match call.connect(&request.target).await {
            Ok((mut host, counter)) => {
                let body = &buffer[length..];
                match &request.head {
                    None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
                    Some(head) => {
                        host.write_all(head).await?;
                        counter.sent.fetch_add(head.len() as u64, Ordering::Relaxed);
                    }
                }
                host.write_all(body).await?;
                counter.sent.fetch_add(body.len() as u64, Ordering::Relaxed);
                if request.head.is_some() {
                    pass_response_head(client, &mut host, &counter).await?;
                }
                both_ways(client, &mut host, &counter).await;
                Ok(())
            }
            Err(HostRefusal::Denied(why)) => answer(client, 403, &why).await,
            Err(HostRefusal::Unreachable(why)) => answer(client, 502, &why).await,
        }
    };
    tokio::select! {
        () = call.ended() => Ok(()),
        done = pass_on => done,
    }
}

/// The answer to a program that gives no secret, or one of a call that has ended.
const NO_CALL: &str = "the network is for the programs of a call of toold, which have the credentials in HTTP_PROXY and \
                       HTTPS_PROXY; they end with the call";

/// Passes the head of a response on, and body that came with it, and counts both directions. Meanwhile more of the request
/// may be sent, which the host may wait for.
async fn pass_response_head(client: &mut TcpStream, host: &mut TcpStream, counter: &TrafficCounter) -> io::Result<()> {
    let mut buffer = Vec::new();
    let mut upload = vec![0; 16 * 1024];
    let mut client_is_done = false;
    loop {
        let length = loop {
            if let Some(at) = memchr::memmem::find(&buffer, END) {
                break at + END.len();
            }
            if buffer.len() > MAX_HEAD
                || (!buffer.is_empty() && !b"HTTP/1.".starts_with(&buffer[..buffer.len().min(7)]))
            {
                // It is no HTTP: it is passed on as it is.
                client.write_all(&buffer).await?;
                return Ok(());
            }
            tokio::select! {
                read = host.read_buf(&mut buffer) => match read? {
                    0 => {
                        client.write_all(&buffer).await?;
                        return Ok(());
                    }
                    read => drop(counter.received.fetch_add(read as u64, Ordering::Relaxed)),
                },
                read = client.read(&mut upload), if !client_is_done => match read? {
                    0 => {
                        client_is_done = true;
                        host.shutdown().await?;
                    }
                    read => {
                        host.write_all(&upload[..read]).await?;
                        counter.sent.fetch_add(read as u64, Ordering::Relaxed);
                    }
                },
            }
        };
        let rest = buffer.split_off(length);
        let Some((head, is_last)) = head_of_response(&buffer) else {
            answer(client, 502, "the host's answer cannot be read").await?;
            return Err(io::ErrorKind::InvalidData.into());
        };
        client.write_all(&head).await?;
        buffer = rest;
        if is_last {
            client.write_all(&buffer).await?;
            return Ok(());
        }
    }
}

/// Reads until the end of a head; returns its length, or `None` if it is too long.
async fn read_head(client: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<usize>> {
    loop {
        let seen = buffer.len().saturating_sub(END.len());
        if client.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(at) = memchr::memmem::find(&buffer[seen..], END) {
            return Ok(Some(seen + at + END.len()).filter(|length| *length <= MAX_HEAD));
        }
        if buffer.len() > MAX_HEAD {
            return Ok(None);
        }
    }
}

/// Answers with a sentence. It is the reason of the status too: of the answer to `CONNECT`, most programs show nothing
/// else.
async fn answer(client: &mut TcpStream, status: u16, why: &str) -> io::Result<()> {
    let reason: String =
        why.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).take(300).collect();
    let ask = if status == 407 { "Proxy-Authenticate: Basic realm=\"toold\"\r\n" } else { "" };
    let body = format!("toold: {why}\n");
    let text = format!(
        "HTTP/1.1 {status} {reason}\r\n{ask}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    );
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}

/// The answers of SOCKS5.
const GRANTED: u8 = 0;
const NOT_ALLOWED: u8 = 2;
const UNREACHABLE: u8 = 4;
const NO_SUCH_COMMAND: u8 = 7;
const NO_SUCH_ADDRESS: u8 = 8;

async fn socks(client: &mut TcpStream, call_of: FindCall<'_>) -> io::Result<()> {
    let greeted = timeout(HEAD_TIME, greet(client, call_of)).await;
    let Ok(Some((call, target))) = greeted? else { return Ok(()) };
    let target = match target {
        Ok(target) => target,
        Err(code) => return socks_answer(client, code).await,
    };
    let pass_on = async {
        match call.connect(&target).await {
            Ok((mut host, counter)) => {
                socks_answer(client, GRANTED).await?;
                both_ways(client, &mut host, &counter).await;
                Ok(())
            }
            Err(HostRefusal::Denied(_)) => socks_answer(client, NOT_ALLOWED).await,
            Err(HostRefusal::Unreachable(_)) => socks_answer(client, UNREACHABLE).await,
        }
    };
    tokio::select! {
        () = call.ended() => Ok(()),
        done = pass_on => done,
    }
}

/// The call of the credentials, and what the program wants to connect to, or the answer to what it wants instead. `None`
/// if it gives no credentials of a call.
async fn greet(
    client: &mut TcpStream,
    call_of: FindCall<'_>,
) -> io::Result<Option<(Arc<CallHosts>, Result<HostPort, u8>)>> {
    const BY_PASSWORD: u8 = 2;
    const NO_METHOD: u8 = 0xff;
    client.read_u8().await?;
    let methods = read_short(client).await?;
    if !methods.contains(&BY_PASSWORD) {
        client.write_all(&[SOCKS, NO_METHOD]).await?;
        return Ok(None);
    }
    client.write_all(&[SOCKS, BY_PASSWORD]).await?;
    client.read_u8().await?;
    read_short(client).await?;
    let secret = read_short(client).await?;
    let call = std::str::from_utf8(&secret).ok().and_then(call_of);
    client.write_all(&[1, u8::from(call.is_none())]).await?;
    let Some(call) = call else { return Ok(None) };
    let mut request = [0; 4];
    client.read_exact(&mut request).await?;
    let [_, command, _, kind] = request;
    let host = match kind {
        1 => std::net::Ipv4Addr::from_bits(client.read_u32().await?).to_string(),
        3 => String::from_utf8_lossy(&read_short(client).await?).into_owned(),
        4 => format!("[{}]", std::net::Ipv6Addr::from_bits(client.read_u128().await?)),
        _ => return Ok(Some((call, Err(NO_SUCH_ADDRESS)))),
    };
    let port = client.read_u16().await?;
    let target = match command {
        1 => target_of(&format!("{host}:{port}")).map_err(|_| NO_SUCH_ADDRESS),
        _ => Err(NO_SUCH_COMMAND),
    };
    Ok(Some((call, target)))
}

/// A text with its length in the first byte.
async fn read_short(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut text = vec![0; client.read_u8().await?.into()];
    client.read_exact(&mut text).await?;
    Ok(text)
}

async fn socks_answer(client: &mut TcpStream, code: u8) -> io::Result<()> {
    // The address that the daemon connects from is nobody's business.
    client.write_all(&[SOCKS, code, 0, 1, 0, 0, 0, 0, 0, 0]).await
}
