//! `toolctl mcp add`: mounts a server: a command, a URL, or one of the MCP registry.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;

use anyhow::bail;
use clap::{Args, Parser, ValueEnum};
use inquire::{Select, Text};
use toold_client::Client;
use toold_proto::mcp_registry::{GetRegistryServer, RegistryInput, RegistryLaunch, RegistryServer};
use toold_proto::method::McpRegistryGet;
use toold_proto::shell_word::quoted;

use crate::commands::mcp::server_entry::{self, McpServerEntry, with_server};
use crate::config_file::{self, difference, read};
use crate::confirm::confirm;
use crate::exit::{OK, interrupted, usage};
use crate::globals::Globals;
use crate::output::{self, BOLD, DIM, NAME, WARN, one_line};
use crate::person::PersonWrites;
use crate::secret_texts::{is_secret_name, is_secret_text};
use crate::{connection, keys, terminal};

/// Mount an MCP server
///
/// `toolctl mcp add NAME -- COMMAND ARGS...` runs a program, `toolctl mcp add NAME URL` reaches a server on HTTP, and
/// `toolctl mcp add NAME` mounts one of the MCP registry. Each adds `[mcp.servers.NAME]` to your configuration, shows the
/// change, and has the daemon read it; `toolctl mcp test NAME` then tries the server.
///
/// For a server of the registry, the command or URL and the values and secrets that it wants are shown before anything is
/// written. Values that are not set with --set are asked for. A secret is never written: its entry refers to `toolctl
/// secrets set`.
#[derive(Debug, Args)]
pub(crate) struct McpAddArgs {
    /// The name under which it is mounted; without a command or URL, its name in the registry, as `toolctl mcp search`
    /// shows it, and the version, the latest by default
    #[arg(value_name = "NAME[@VERSION]")]
    server: String,
    /// The program and its arguments, after --, or the URL
    #[arg(value_name = "COMMAND|URL", trailing_var_arg = true, allow_hyphen_values = true)]
    launch: Vec<String>,
    #[command(flatten)]
    settings: ServerSettings,
    /// Registry only: mount it under this name; defaults to the last part of the server's name
    #[arg(long = "as", value_name = "NAME")]
    alias: Option<String>,
    /// Registry only: run or reach it in this way: npm, pypi, oci, nuget or remote; defaults to the first that works
    #[arg(long, value_name = "KIND")]
    via: Option<String>,
    /// Registry only: set a value that the server wants; can be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// Do not ask for confirmation, nor for values
    #[arg(long, short)]
    yes: bool,
}

/// The settings of a server that is not of the registry. They may also follow its URL.
#[derive(Debug, Default, Args)]
struct ServerSettings {
    /// Set a variable in the environment of the program; can be repeated
    #[arg(long, short, value_name = "KEY=VALUE")]
    env: Vec<String>,
    /// Send a header with each request to the URL; can be repeated
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// The URL
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Send the content of this variable of the daemon's environment as bearer token
    #[arg(long, value_name = "VARIABLE")]
    bearer_token_env_var: Option<String>,
    /// How the server is reached; the command or URL says it too
    #[arg(long, short, value_enum)]
    transport: Option<ServerTransport>,
    /// Whose configuration is changed
    #[arg(long, short, value_enum)]
    scope: Option<ConfigScope>,
}

/// The settings behind a URL, where the first parse has taken them for arguments of a command.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct SettingsBehindUrl {
    #[command(flatten)]
    settings: ServerSettings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ServerTransport {
    /// A program on its stdin and stdout
    Stdio,
    /// Streamable HTTP
    #[value(alias = "streamable-http")]
    Http,
    /// HTTP with SSE; what the server speaks is found out
    Sse,
}

/// Whose configuration is changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ConfigScope {
    /// Yours
    #[default]
    #[value(aliases = ["local", "global"])]
    User,
    /// That of the current project, which you have to trust afterwards
    Project,
}

impl ConfigScope {
    /// Its configuration file, whether or not it exists.
    pub(crate) async fn file(self) -> anyhow::Result<PathBuf> {
        match self {
            Self::User => config_file::find().await,
            Self::Project => config_file::of_project(),
        }
    }
}

pub(super) async fn run(args: McpAddArgs, globals: &Globals) -> anyhow::Result<u8> {
    let own = own_server(&args)?;
    let client = connection::open(globals).await?;
    let right = PersonWrites::with(Some(&client)).await?;
    match own {
        Some((entry, scope)) => add_own(&args.server, &entry, scope, &client, &right).await,
        None => add_of_registry(args, &client, &right).await,
    }
}

/// The entry of a server that the command line describes, and where it goes; `None` for one of the registry.
fn own_server(args: &McpAddArgs) -> anyhow::Result<Option<(McpServerEntry, ConfigScope)>> {
    let first = args.launch.first().map(String::as_str);
    let behind = match first {
        Some(first) if is_url(first) => {
            let rest = &args.launch[1..];
            SettingsBehindUrl::try_parse_from(rest)
                .map_err(|error| usage(error.render().to_string().trim().to_owned()))?
                .settings
        }
        Some(_) | None => ServerSettings::default(),
    };
    let before = &args.settings;
    let url = first.filter(|first| is_url(first)).or(before.url.as_deref()).or(behind.url.as_deref());
    let command = first.filter(|first| !is_url(first));
    let transport = behind.transport.or(before.transport);
    let headers: Vec<&String> = before.header.iter().chain(&behind.header).collect();
    let bearer = behind.bearer_token_env_var.as_ref().or(before.bearer_token_env_var.as_ref());
    let mut entry = McpServerEntry::default();
    match (command, url) {
        (Some(_), Some(url)) => return Err(usage(format!("expected a command or the URL {url}, not both"))),
        (None, None) if transport.is_some() || !headers.is_empty() || !before.env.is_empty() => {
            return Err(usage(format!(
                "expected a command or a URL: toolctl mcp add {0} -- COMMAND ARGS..., or toolctl mcp add {0} URL",
                args.server
            )));
        }
        (None, None) => return Ok(None),
        (Some(_), None) if !headers.is_empty() || bearer.is_some() => {
            return Err(usage(
                "headers are sent to a URL, and this server is a command: set variables with -e".to_owned(),
            ));
        }
        (Some(_), None) if transport.is_some_and(|transport| transport != ServerTransport::Stdio) => {
            return Err(usage("this transport needs a URL, which begins with http:// or https://".to_owned()));
        }
        (Some(command), None) if command.contains("://") => {
            return Err(usage(format!(
                "expected a command, or a URL that begins with http:// or https://, got {command}"
            )));
        }
        (Some(command), None) => {
            entry.command = Some(command.to_owned());
            entry.args = args.launch[1..].to_vec();
        }
        (None, Some(_)) if transport == Some(ServerTransport::Stdio) => {
            return Err(usage("the transport stdio needs a command, not a URL".to_owned()));
        }
        (None, Some(_)) if !before.env.is_empty() || !behind.env.is_empty() => {
            return Err(usage("a server at a URL has no environment here: send headers with --header".to_owned()));
        }
        (None, Some(url)) => entry.url = Some(url.to_owned()),
    }
    for pair in &before.env {
        let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
            return Err(usage(format!("-e {pair}: expected KEY=VALUE")));
        };
        entry.env.insert(name.to_owned(), value.to_owned());
    }
    for header in headers {
        let pair = header.split_once(':').or_else(|| header.split_once('='));
        let Some((name, value)) = pair.filter(|(name, _)| !name.trim().is_empty()) else {
            return Err(usage(format!("--header {header}: expected NAME: VALUE")));
        };
        entry.headers.insert(name.trim().to_owned(), value.trim().to_owned());
    }
    if let Some(variable) = bearer {
        entry.headers.insert("Authorization".to_owned(), format!("Bearer ${{env:{variable}}}"));
    }
    Ok(Some((entry, behind.scope.or(before.scope).unwrap_or_default())))
}

fn is_url(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

async fn add_own(
    name: &str,
    entry: &McpServerEntry,
    scope: ConfigScope,
    client: &Client,
    right: &PersonWrites,
) -> anyhow::Result<u8> {
    let file = scope.file().await?;
    let before = read(&file)?.unwrap_or_default();
    let after = with_server(&before, name, entry, &file)?;
    output::print(&difference(&file, &before, &after))?;
    let exit = server_entry::write(&file, &after, client, right).await?;
    let mut err = output::stderr();
    let shown = one_line(name);
    for (variable, _) in entry.env.iter().filter(|(name, value)| is_open_secret(name, value)) {
        let variable = one_line(variable);
        writeln!(
            err,
            "{WARN}{variable} looks like a secret and stands in the file as it is{WARN:#}: to keep it in toold, run `toolctl \
             secrets set {variable}`, and write -e '{variable}=${{secret:{variable}}}'"
        )?;
    }
    match scope {
        ConfigScope::User => {
            writeln!(err, "{NAME}{shown}{NAME:#} is mounted; to try it: toolctl mcp test {}", quoted(&shown))?
        }
        ConfigScope::Project => writeln!(
            err,
            "{NAME}{shown}{NAME:#} is in the project's configuration; review and trust it: toolctl plugins trust"
        )?,
    }
    Ok(exit)
}

/// Whether a variable has a secret as its value, and not the place of one.
fn is_open_secret(name: &str, value: &str) -> bool {
    (is_secret_name(name) || is_secret_text(value)) && !value.is_empty() && !value.contains("${")
}

async fn add_of_registry(args: McpAddArgs, client: &Client, right: &PersonWrites) -> anyhow::Result<u8> {
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
    let file = args.settings.scope.unwrap_or_default().file().await?;
    let before = read(&file)?.unwrap_or_default();
    let after = with_server(&before, &alias, &entry(launch, &values), &file)?;
    output::print(&difference(&file, &before, &after))?;
    if !args.yes && !confirm(&format!("Mount it as {}?", one_line(&alias))).await? {
        return Ok(OK);
    }
    let exit = server_entry::write(&file, &after, client, right).await?;
    let mut err = output::stderr();
    writeln!(err, "{NAME}{}{NAME:#} is mounted; toolctl mcp list shows its state", one_line(&alias))?;
    for input in launch.inputs.iter().filter(|input| values.get(&input.name) == Some(&secret_reference(&input.name))) {
        writeln!(err, "set its secret: toolctl secrets set {}", secret_name(&input.name))?;
    }
    Ok(exit)
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
    match terminal::answered(answer)? {
        Some(answer) if !answer.is_empty() => Ok(Some(answer)),
        Some(_) if input.required => Err(usage(format!("the server wants {}", input.name))),
        Some(_) => Ok(None),
        None => Err(interrupted("cancelled")),
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

/// The entry with these values; texts whose input has no value are left out.
fn entry(launch: &RegistryLaunch, values: &BTreeMap<String, String>) -> McpServerEntry {
    let texts = |texts: &BTreeMap<String, String>| {
        texts.iter().filter_map(|(name, text)| Some((name.clone(), filled(text, values)?))).collect()
    };
    McpServerEntry {
        command: launch.command.as_ref().and_then(|text| filled(text, values)),
        args: launch.args.iter().filter_map(|arg| filled(arg, values)).collect(),
        env: texts(&launch.env),
        cwd: None,
        url: launch.url.as_ref().and_then(|text| filled(text, values)),
        headers: texts(&launch.headers),
    }
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

#[cfg(test)]
mod tests {
    use std::path::Path;

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

    /// The entry of a command line behind `toolctl mcp add`.
    fn typed(words: &[&str]) -> Result<Option<(McpServerEntry, ConfigScope)>, String> {
        #[derive(Parser)]
        #[command(no_binary_name = true)]
        struct Typed {
            #[command(flatten)]
            add: McpAddArgs,
        }
        let typed = Typed::try_parse_from(words).map_err(|error| error.to_string())?;
        own_server(&typed.add).map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(line: &str, expected: &str) {
        let words: Vec<&str> = line.split(' ').map(|word| if word == "HEADER" { "X-Key: a b" } else { word }).collect();
        let (entry, _) = typed(&words).unwrap().unwrap();
        let text = with_server("", "s", &entry, Path::new("c.toml")).unwrap();
        assert_eq!(text.trim_end().replace('\n', "; "), expected, "{line}");
    }

    #[test]
    fn servers_are_added_as_users_of_agents_type_it() {
        let npx = r#"[mcp.servers.s]; args = ["-y", "pkg", "--port", "1"]; command = "npx""#;
        check("s -- npx -y pkg --port 1", npx);
        check("s npx -y pkg --port 1", npx);
        check("--transport stdio s -- npx -y pkg --port 1", npx);
        let with_env = r#"[mcp.servers.s]; command = "npx"; ; [mcp.servers.s.env]; A = "1=2"; B = """#;
        check("-e A=1=2 --env B= s -- npx", with_env);
        check("s -e A=1=2 -e B= -- npx", with_env);
        let url = r#"[mcp.servers.s]; url = "https://h/mcp""#;
        check("s https://h/mcp", url);
        check("--transport http s https://h/mcp", url);
        check("s --url https://h/mcp", url);
        check("s https://h/mcp -t sse -s user", url);
        let with_header = r#"[mcp.servers.s]; url = "https://h/mcp"; ; [mcp.servers.s.headers]; X-Key = "a b""#;
        check("s https://h/mcp --header HEADER", with_header);
        check("-t http s https://h/mcp -H HEADER", with_header);
        check("-H HEADER s https://h/mcp", with_header);
        check(
            "s --url https://h/mcp --bearer-token-env-var T",
            r#"[mcp.servers.s]; url = "https://h/mcp"; ; [mcp.servers.s.headers]; Authorization = "Bearer ${env:T}""#,
        );
    }

    #[test]
    fn a_name_alone_is_one_of_the_registry() {
        assert_eq!(typed(&["io.github.someone/weather@1", "--yes"]), Ok(None));
    }

    #[test]
    fn scopes_and_mistakes_are_told() {
        let scope = |words: &[&str]| typed(words).unwrap().unwrap().1;
        assert_eq!(scope(&["-s", "local", "s", "--", "x"]), ConfigScope::User);
        assert_eq!(scope(&["s", "http://h/", "--scope", "project"]), ConfigScope::Project);
        for (words, expected) in [
            (&["s", "-e", "A=1"][..], "toolctl mcp add s -- COMMAND"),
            (&["-H", "a: b", "s", "--", "x"], "set variables with -e"),
            (&["-t", "http", "s", "--", "x"], "needs a URL"),
            (&["s", "ftp://h/"], "a URL that begins with http:// or https://, got ftp://h/"),
            (&["-t", "stdio", "s", "http://h/"], "needs a command"),
            (&["-e", "A", "s", "--", "x"], "expected KEY=VALUE"),
            (&["s", "http://h/", "--header", "x"], "expected NAME: VALUE"),
            (&["s", "http://h/", "extra"], "extra"),
        ] {
            let error = typed(words).unwrap_err();
            assert!(error.contains(expected), "{words:?}: {error}");
        }
    }
}
