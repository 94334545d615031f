//! `toolctl secrets`: values such as tokens that the configuration names and that stand in no file.

use std::io::{IsTerminal, Read, Write};

use anyhow::{Context, ensure};
use clap::{Args, Subcommand};
use comfy_table::Cell;
use inquire::validator::Validation;
use inquire::{CustomUserError, Password, PasswordDisplayMode};
use toold_client::Client;
use toold_proto::daemon::NoParams;
use toold_proto::method::{SecretsList, SecretsRemove, SecretsSet, SecretsUnlock};
use toold_proto::secret::{
    NameSecret, SecretList, SecretStoreKind, SecretStoreState, SecretValue, SetSecret, UnlockSecrets,
};

use crate::exit::{OK, interrupted};
use crate::globals::Globals;
use crate::output::{self, one_line, print_json};
use crate::{connection, table, terminal};

/// Set, list or remove the secrets that the configuration uses
///
/// A secret is a value such as a token. The configuration of an MCP server names it as ${secret:NAME}. The daemon keeps
/// it in the desktop's keyring or, where there is none, in a file that is encrypted with a passphrase or with the
/// systemd credential toold-secrets. No command shows a value again.
#[derive(Debug, Args)]
pub(crate) struct SecretsArgs {
    #[command(subcommand)]
    action: Option<SecretsAction>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum SecretsAction {
    /// List the secrets by name, and the MCP servers that use them
    List,
    /// Set a secret; the value is asked for, or read from stdin if that is no terminal
    Set {
        /// The name: letters, digits and `_`, as in ${secret:NAME}
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Remove a secret
    Remove {
        /// The name of the secret
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Open the encrypted file with its passphrase until the daemon stops, or choose one for a new file; the passphrase
    /// is asked for, or read from stdin if that is no terminal
    Unlock,
}

/// More than the daemon accepts.
const MAX_INPUT: u64 = 1 << 20;

pub(crate) async fn run(args: SecretsArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    let (list, done) = match args.action.unwrap_or(SecretsAction::List) {
        SecretsAction::List => (client.call::<SecretsList>(NoParams {}).await?, None),
        SecretsAction::Set { name } => {
            unlock_if_asked(&client).await?;
            let value = read("Value:", false)?;
            let list = client
                .call::<SecretsSet>(SetSecret { name: name.clone(), value: SecretValue(value), from_file: false })
                .await?;
            (list, Some(format!("{name} is set")))
        }
        SecretsAction::Remove { name } => {
            let list = client.call::<SecretsRemove>(NameSecret { name: name.clone() }).await?;
            (list, Some(format!("{name} is removed")))
        }
        SecretsAction::Unlock => {
            let state = client.call::<SecretsList>(NoParams {}).await?.state;
            (unlock(&client, state).await?, Some("the secrets are unlocked until the daemon stops".to_owned()))
        }
    };
    match done {
        _ if args.json => print_json(&list)?,
        Some(done) => writeln!(output::stderr(), "{}", output::plain(&done))?,
        None => {
            output::print(&render(&list, output::terminal_width()))?;
            writeln!(output::stderr(), "{}", place(&list))?;
        }
    }
    Ok(OK)
}

/// Opens the encrypted file if a person is there to give its passphrase.
pub(crate) async fn unlock_if_asked(client: &Client) -> anyhow::Result<()> {
    if is_interactive() {
        let list = client.call::<SecretsList>(NoParams {}).await?;
        if list.state != SecretStoreState::Unlocked && list.store == SecretStoreKind::File {
            unlock(client, list.state).await?;
        }
    }
    Ok(())
}

/// Asks a person on the terminal for those of these secrets that are not set, and keeps them. Returns how many.
pub(crate) async fn ask_for_missing(client: &Client, names: &[String], purpose: &str) -> anyhow::Result<usize> {
    if !is_interactive() || names.is_empty() {
        return Ok(0);
    }
    unlock_if_asked(client).await?;
    let list = client.call::<SecretsList>(NoParams {}).await?;
    let is_missing =
        |name: &&String| !list.secrets.iter().any(|secret| secret.name == **name && secret.is_set == Some(true));
    let missing: Vec<&String> = names.iter().filter(is_missing).collect();
    for name in &missing {
        let value = read(&format!("{purpose} wants {}:", output::one_line(name)), false)?;
        let set = SetSecret { name: (*name).clone(), value: SecretValue(value), from_file: false };
        client.call::<SecretsSet>(set).await?;
    }
    Ok(missing.len())
}

async fn unlock(client: &Client, state: SecretStoreState) -> anyhow::Result<SecretList> {
    if is_interactive() {
        writeln!(output::stderr(), "{}", why_passphrase(state))?;
    }
    let passphrase = match state {
        SecretStoreState::Absent => read("New passphrase for the secrets:", true)?,
        SecretStoreState::Locked | SecretStoreState::Unlocked => read("Passphrase of the secrets:", false)?,
    };
    Ok(client.call::<SecretsUnlock>(UnlockSecrets { passphrase: SecretValue(passphrase) }).await?)
}

/// Said before a passphrase is asked for.
fn why_passphrase(state: SecretStoreState) -> &'static str {
    match state {
        SecretStoreState::Absent => {
            "This machine has no keyring, so secrets are kept in a file that a passphrase encrypts. Choose one of 8 \
             characters or more: you are asked for it after each start of the daemon."
        }
        SecretStoreState::Locked | SecretStoreState::Unlocked => {
            "The secrets are in an encrypted file, which is locked since the daemon started. Its passphrase opens it until the \
             daemon stops."
        }
    }
}

/// Characters of a new passphrase.
const MIN_PASSPHRASE: usize = 8;

fn is_long_enough(passphrase: &str) -> Result<Validation, CustomUserError> {
    Ok(match passphrase.chars().count() < MIN_PASSPHRASE {
        true => Validation::Invalid(format!("expected {MIN_PASSPHRASE} characters or more").into()),
        false => Validation::Valid,
    })
}

fn is_interactive() -> bool {
    std::io::stdin().is_terminal()
}

/// Reads a secret from the terminal without showing it, or from stdin up to its end; one line break at the end does not
/// count.
fn read(question: &str, twice: bool) -> anyhow::Result<String> {
    let mut text = if is_interactive() {
        terminal::guard()?;
        let mut prompt = Password::new(question).with_display_mode(PasswordDisplayMode::Hidden);
        // Said here, and not when all else has been asked for.
        prompt = match twice {
            true => prompt
                .with_validator(is_long_enough)
                .with_custom_confirmation_message("The same passphrase again:")
                .with_custom_confirmation_error_message("the second passphrase differs from the first one"),
            false => prompt.without_confirmation(),
        };
        match terminal::answered(prompt.prompt())? {
            Some(text) => text,
            None => return Err(interrupted("nothing is changed")),
        }
    } else {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(MAX_INPUT).read_to_string(&mut text);
        ensure!(read.context("can't read stdin")? < MAX_INPUT as usize, "stdin is too long for a secret");
        text
    };
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

fn render(list: &SecretList, width: Option<u16>) -> String {
    if list.secrets.is_empty() {
        return String::new();
    }
    let mut rows = table::new(width);
    rows.set_header(table::header(&["SECRET", "STATE", "USED BY"]));
    for secret in &list.secrets {
        let state = match secret.is_set {
            Some(true) => "set",
            Some(false) => "not set",
            None => "unknown",
        };
        let used_by: Vec<String> = secret.used_by.iter().map(|server| one_line(server)).collect();
        rows.add_row([table::name(&one_line(&secret.name)), Cell::new(state), Cell::new(used_by.join(", "))]);
    }
    table::render(&rows)
}

fn place(list: &SecretList) -> &'static str {
    match (list.store, list.state) {
        (SecretStoreKind::Keyring, SecretStoreState::Locked) => "the desktop's keyring does not answer",
        (SecretStoreKind::Keyring, _) => "secrets are kept in the desktop's keyring",
        (SecretStoreKind::File, SecretStoreState::Unlocked) => "secrets are kept in an encrypted file",
        (SecretStoreKind::File, SecretStoreState::Locked) => {
            "secrets are kept in an encrypted file, which is locked: toolctl secrets unlock"
        }
        (SecretStoreKind::File, SecretStoreState::Absent) => {
            "there is no keyring, and no file of secrets yet: toolctl secrets set NAME"
        }
    }
}

#[cfg(test)]
mod tests {
    use toold_proto::secret::SecretInfo;

    use super::*;

    #[test]
    fn a_list_shows_names_and_users() {
        let info = |name: &str, is_set, used_by: &[&str]| SecretInfo {
            name: name.to_owned(),
            is_set,
            used_by: used_by.iter().map(|server| (*server).to_owned()).collect(),
        };
        let secrets = vec![info("KEY", Some(true), &["web", "mail"]), info("TOKEN", Some(false), &[])];
        let list = SecretList { store: SecretStoreKind::File, state: SecretStoreState::Unlocked, secrets };
        insta::assert_snapshot!(anstream::adapter::strip_str(&render(&list, None)).to_string(), @r"
         SECRET  STATE    USED BY
         KEY     set      web, mail
         TOKEN   not set
        ");
    }
}
