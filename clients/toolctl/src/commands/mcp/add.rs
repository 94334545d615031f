//! `toolctl mcp add`: mounts a server of the MCP registry.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use clap::Args;
use inquire::{InquireError, Select, Text};
use toml::{Table, Value};
use toold_proto::daemon::NoParams;
use toold_proto::mcp_registry::{GetRegistryServer, RegistryInput, RegistryLaunch, RegistryServer};
use toold_proto::method::{DaemonReload, McpRegistryGet};

use crate::config_file::{self, difference, read};
use crate::confirm::confirm;
use crate::exit::{NOT_RUN, OK, interrupted, usage};
use crate::globals::Globals;
use crate::output::{self, BAD, BOLD, DIM, NAME, WARN, one_line, plain};
use crate::{connection, keys, terminal};

/// Mount a server of the MCP registry
///
/// Shows the server, the command or URL, and the values and secrets that it wants, before anything is written; then adds
/// `[mcp.servers.NAME]` to your configuration. Values that are not set with --set are asked for. A secret is never
/// written: its entry refers to `toolctl secrets set`.
#[derive(Debug, Args)]
pub(crate) struct McpAddArgs {
    /// The server's name in the registry, as `toolctl mcp search` shows it; the latest version when it names none
    #[arg(value_name = "NAME[@VERSION]")]
    server: String,
    /// Mount it under this name; defaults to the last part of the server's name
    #[arg(long = "as", value_name = "NAME")]
    alias: Option<String>,
    /// Run or reach it in this way: npm, pypi, oci, nuget or remote; defaults to the first that works
    #[arg(long, value_name = "KIND")]
    via: Option<String>,
    /// Set a value that the server wants; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Do not ask for confirmation, nor for values
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn run(args: McpAddArgs, globals: &Globals) -> anyhow::Result<u8> {
    let client = connection::open(globals).await?;
    // Names have no `@`.
    let (name, version) = match args.server.split_once('@') {
        Some((name, version)) => (name, Some(version.to_owned())),
        None => (args.server.as_str(), None),
    };
    let wanted = GetRegistryServer { name: name.to_owned(), version };
    let server = client.call::<McpRegistryGet>(wanted).await?;
    let launch = choose(&server, args.via.as_deref())?;
    output::print(&describe(&server, launch))?;

    let mut values = given(&args.set, launch)?;
    let asks = !args.yes && keys::has_terminal();
    for input in &launch.inputs {
        if values.contains_key(&input.name) {
            continue;
        }
        let value = if input.secret { Some(secret_reference(&input.name)) } else { value_of(input, asks)? };
        values.extend(value.map(|value| (input.name.clone(), value)));
    }
    let alias = args.alias.unwrap_or_else(|| alias_of(&server.name));
    let file = config_file::find().await?;
    let before = read(&file)?.unwrap_or_default();
    let after = with_server(&before, &alias, &entry(launch, &values), &file)?;
    output::print(&difference(&file, &before, &after))?;
    if !args.yes && !confirm(&format!("Mount it as {}?", one_line(&alias))).await? {
        return Ok(OK);
    }
    config_file::write_checked(&file, &after).await?;
    let reloaded = client.call::<DaemonReload>(NoParams {}).await?;
    let mut err = output::stderr();
    for problem in &reloaded.problems {
        writeln!(err, "{BAD}{}{BAD:#}", plain(problem))?;
    }
    writeln!(err, "{NAME}{}{NAME:#} is mounted; toolctl mcp servers shows its state", one_line(&alias))?;
    for input in launch.inputs.iter().filter(|input| values.get(&input.name) == Some(&secret_reference(&input.name))) {
        writeln!(err, "set its secret: toolctl secrets set {}", secret_name(&input.name))?;
    }
    Ok(if reloaded.applied { OK } else { NOT_RUN })
}

fn choose<'a>(server: &'a RegistryServer, via: Option<&str>) -> anyhow::Result<&'a RegistryLaunch> {
    let mut launches = server.launches.iter().filter(|launch| via.is_none_or(|via| via == launch.kind));
    let first = launches.clone().next();
    if let Some(works) = launches.find(|launch| launch.problem.is_none()) {
        return Ok(works);
    }
    let kinds: Vec<&str> = server.launches.iter().map(|launch| launch.kind.as_str()).collect();
    match (first.and_then(|launch| launch.problem.as_deref()), via) {
        (Some(problem), _) => bail!("{} cannot be mounted: {problem}", server.name),
        (None, Some(via)) => Err(usage(format!("{} has no {via}, only {}", server.name, kinds.join(", ")))),
        (None, None) => bail!("{} says neither how to run it nor where it is", server.name),
    }
}

fn describe(server: &RegistryServer, launch: &RegistryLaunch) -> String {
    let mut text = format!("{NAME}{}{NAME:#} {}\n", one_line(&server.name), one_line(&server.version));
    if server.deprecated {
        text.push_str(&format!("  {WARN}deprecated{WARN:#}\n"));
    }
    text.push_str(&format!("  {}\n", one_line(&server.description)));
    for (label, url) in [("source", &server.repository), ("website", &server.website)] {
        text.extend(url.iter().map(|url| format!("  {label}: {}\n", one_line(url))));
    }
    let command = launch.command.iter().chain(&launch.args).map(|word| one_line(word)).collect::<Vec<_>>().join(" ");
    let what = launch.url.as_deref().map_or(("runs", command), |url| ("reaches", one_line(url)));
    text.push_str(&format!("  {}: {BOLD}{}{BOLD:#}\n", what.0, what.1));
    for input in &launch.inputs {
        let need = match (input.secret, input.required) {
            (true, true) => "secret, required",
            (true, false) => "secret",
            (false, true) => "required",
            (false, false) => "optional",
        };
        let about = input.description.as_deref().map(|about| format!(": {}", one_line(about))).unwrap_or_default();
        text.push_str(&format!("  wants {}{DIM} ({need}){DIM:#}{about}\n", one_line(&input.name)));
    }
    text
}

/// The values of --set.
fn given(set: &[String], launch: &RegistryLaunch) -> anyhow::Result<BTreeMap<String, String>> {
    let known = |name: &str| launch.inputs.iter().find(|input| input.name == name);
    let mut values = BTreeMap::new();
    for pair in set {
        let Some((name, value)) = pair.split_once('=') else {
            return Err(usage(format!("--set {pair}: expected NAME=VALUE")));
        };
        let Some(input) = known(name) else {
            let names: Vec<&str> = launch.inputs.iter().map(|input| input.name.as_str()).collect();
            let names = if names.is_empty() { "no values".to_owned() } else { names.join(", ") };
            return Err(usage(format!("--set {name}: the server wants {names}")));
        };
        if !input.choices.is_empty() && !input.choices.iter().any(|choice| choice == value) {
            return Err(usage(format!("--set {name}: expected one of {}", input.choices.join(", "))));
        }
        values.insert(name.to_owned(), value.to_owned());
    }
    Ok(values)
}

/// Blocks on the terminal if it `asks`. `None` for an optional input without a value.
fn value_of(input: &RegistryInput, asks: bool) -> anyhow::Result<Option<String>> {
    if !asks {
        return match (&input.default, input.required) {
            (Some(default), _) => Ok(Some(default.clone())),
            (None, false) => Ok(None),
            (None, true) => Err(usage(format!("the server wants {}: pass --set {0}=VALUE", input.name))),
        };
    }
    terminal::guard()?;
    let label = format!("{}:", one_line(&input.name));
    let help = one_line(input.description.as_deref().unwrap_or("leave it empty to omit it"));
    let answer = if input.choices.is_empty() {
        let prompt = Text::new(&label).with_help_message(&help);
        match &input.default {
            Some(default) => prompt.with_default(default).prompt(),
            None => prompt.prompt(),
        }
    } else {
        Select::new(&label, input.choices.iter().map(|choice| one_line(choice)).collect())
            .with_help_message(&help)
            .raw_prompt()
            .map(|chosen| input.choices[chosen.index].clone())
    };
    match answer {
        Ok(answer) if !answer.is_empty() => Ok(Some(answer)),
        Ok(_) if input.required => Err(usage(format!("the server wants {}", input.name))),
        Ok(_) => Ok(None),
        Err(InquireError::OperationCanceled | InquireError::OperationInterrupted) => Err(interrupted("cancelled")),
        Err(error) => Err(error).context("can't read from the terminal"),
    }
}

/// A name of `toolctl secrets`: at most 64 letters, digits, `-` and `_`, not with a digit first.
fn secret_name(input: &str) -> String {
    let plain = input.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' });
    let first = if input.starts_with(|c: char| c.is_ascii_alphabetic()) { "" } else { "_" };
    first.chars().chain(plain).take(64).collect()
}

fn secret_reference(input: &str) -> String {
    format!("${{secret:{}}}", secret_name(input))
}

/// The last part of a name such as `io.github.someone/weather`, as tools' names begin with it.
fn alias_of(server: &str) -> String {
    let last = server.rsplit('/').next().unwrap_or(server).to_lowercase();
    last.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

/// `[mcp.servers.NAME]`; texts whose input has no value are left out.
fn entry(launch: &RegistryLaunch, values: &BTreeMap<String, String>) -> Table {
    let texts = |texts: &BTreeMap<String, String>| -> Table {
        texts.iter().filter_map(|(name, text)| Some((name.clone(), Value::String(filled(text, values)?)))).collect()
    };
    let mut entry = Table::new();
    for (key, text) in [("command", &launch.command), ("url", &launch.url)] {
        entry.extend(text.as_ref().and_then(|text| filled(text, values)).map(|text| (key.to_owned(), text.into())));
    }
    let args: Vec<Value> = launch.args.iter().filter_map(|arg| Some(Value::String(filled(arg, values)?))).collect();
    for (key, value, is_empty) in [
        ("args", Value::Array(args), launch.args.is_empty()),
        ("env", texts(&launch.env).into(), launch.env.is_empty()),
        ("headers", texts(&launch.headers).into(), launch.headers.is_empty()),
    ] {
        if !is_empty {
            entry.insert(key.to_owned(), value);
        }
    }
    entry
}

/// The text with the values of its inputs; `None` if one has none.
fn filled(text: &str, values: &BTreeMap<String, String>) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${input:") {
        let (name, behind) = after.split_once('}')?;
        filled.push_str(before);
        filled.push_str(values.get(name)?);
        rest = behind;
    }
    filled.push_str(rest);
    Some(filled)
}

/// The configuration's text with one more server at its end.
fn with_server(text: &str, alias: &str, entry: &Table, file: &Path) -> anyhow::Result<String> {
    let parsed: Table = text.parse().with_context(|| format!("{} is not valid TOML", file.display()))?;
    let servers = parsed.get("mcp").and_then(|mcp| mcp.get("servers"));
    if servers.is_some_and(|servers| servers.get(alias).is_some()) {
        return Err(usage(format!("{} has a server {alias} already: pass --as NAME", file.display())));
    }
    let nested =
        Table::from_iter([("servers".to_owned(), Table::from_iter([(alias.to_owned(), entry.clone().into())]).into())]);
    let table = toml::to_string(&Table::from_iter([("mcp".to_owned(), Value::Table(nested))]))?;
    let after = config_file::appended(text, &table);
    after.parse::<Table>().with_context(|| format!("{} cannot be extended by this program", file.display()))?;
    Ok(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_without_a_value_are_left_out() {
        let launch = RegistryLaunch {
            command: Some("npx".to_owned()),
            args: ["-y", "weather@1", "--port=${input:port}", "${input:place}"].map(str::to_owned).to_vec(),
            env: BTreeMap::from([("KEY".to_owned(), "k-${input:KEY}".to_owned())]),
            ..RegistryLaunch::default()
        };
        let values =
            BTreeMap::from([("place", "Graz"), ("KEY", "${secret:KEY}")].map(|(k, v)| (k.to_owned(), v.to_owned())));
        let text = with_server("# mine\n", "weather", &entry(&launch, &values), Path::new("c.toml")).unwrap();
        insta::assert_snapshot!(text, @r#"
        # mine

        [mcp.servers.weather]
        args = ["-y", "weather@1", "Graz"]
        command = "npx"

        [mcp.servers.weather.env]
        KEY = "k-${secret:KEY}"
        "#);
        assert!(with_server(&text, "weather", &entry(&launch, &values), Path::new("c.toml")).is_err());
    }
}
