//! `toolctl fleet broker-config`: a configuration for nats-server.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;

use super::membership::{configuration, public_key};
use super::roster::{FleetSection, key_path};
use crate::exit::{OK, usage};
use crate::output;

/// Print a configuration of nats-server for this fleet
///
/// Makes a key that the daemons log in with, unless the configuration names one, and prints a configuration that lets in
/// only who has it, and only to the subjects of a fleet. The server is reached from this machine only, unless --tls-cert
/// is given.
#[derive(Debug, Args)]
pub(super) struct BrokerConfigArgs {
    /// The address that the server listens on; defaults to 127.0.0.1:4222, or with TLS to 0.0.0.0:4222
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<String>,
    /// The server's certificate
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The private key of the certificate
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// The folder for what the server stores
    #[arg(long, value_name = "FOLDER", default_value = "nats")]
    store: PathBuf,
    /// The file with the key that daemons log in with; defaults to that of the configuration, or else to
    /// fleet/login.key in the state folder. Made if it does not exist
    #[arg(long, value_name = "FILE")]
    credentials: Option<PathBuf>,
}

pub(super) async fn run(args: BrokerConfigArgs) -> anyhow::Result<u8> {
    let (_, text) = configuration().await?;
    let configured = FleetSection::read(&text)?.map(|fleet| fleet.credentials()).transpose()?.flatten();
    let file = match args.credentials.map(std::path::absolute).transpose()?.or(configured) {
        Some(file) => file,
        None => key_path("login.key")?,
    };
    let user = public_key("login", &file, true)
        .await
        .map_err(|error| usage(format!("{error:#}; name another file with --credentials")))?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some((std::path::absolute(cert)?, std::path::absolute(key)?)),
        _ => None,
    };
    let listen =
        args.listen.unwrap_or_else(|| if tls.is_some() { "0.0.0.0:4222" } else { "127.0.0.1:4222" }.to_owned());
    let store = std::path::absolute(&args.store).context("can't find the folder of --store")?;
    output::print_unfolded(&rendered(&listen, tls.as_ref(), &store, &user))?;
    writeln!(output::stderr(), "daemons log in with --credentials {}; copy it to each machine", file.display())?;
    Ok(OK)
}

fn rendered(listen: &str, tls: Option<&(PathBuf, PathBuf)>, store: &std::path::Path, user: &str) -> String {
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let path = |path: &std::path::Path| quoted(&path.to_string_lossy());
    let tls = match tls {
        Some((cert, key)) => format!("tls {{\n  cert_file: {}\n  key_file: {}\n}}\n", path(cert), path(key)),
        None => "# Without TLS, for this machine alone. Other machines need a certificate:\n\
                 #   toolctl fleet broker-config --tls-cert FILE --tls-key FILE\n"
            .to_owned(),
    };
    format!(
        "# nats-server 2.11 or newer, for a fleet of toold. Start it with: nats-server -c FILE
server_name: toold
listen: {listen}

{tls}
# Records of daemons and tools, asks, grants and rows of audit logs are stored here.
jetstream {{
  store_dir: {store}
  max_file_store: 2GB
}}

# All daemons of the fleet are one user, who reaches the subjects of a fleet and nothing else. For a login that you can
# take from one machine alone, repeat the entry with a key of that machine.
authorization {{
  users: [
    {{
      nkey: {user}
      permissions: {{
        publish: [
          \"toold.>\", \"$SRV.>\", \"_INBOX.>\", \"$JS.API.>\", \"$JS.ACK.>\", \"$JS.FC.>\",
          \"$KV.toold_daemons.>\", \"$KV.toold_tools.>\", \"$KV.toold_grants.>\", \"$O.TOOLD_BLOBS.>\"
        ]
        subscribe: [\"toold.>\", \"$SRV.>\", \"_INBOX.>\"]
      }}
    }}
  ]
}}
",
        store = path(store),
    )
}
