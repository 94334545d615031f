//! A server as a registry describes it (`server.json`), and the ways to run it.
//!
//! Everything in it was written by strangers. It becomes texts of the configuration and words of a command line, never of
//! a shell; texts that the configuration would expand are refused.

use std::collections::BTreeMap;

use serde::Deserialize;
use toold_proto::mcp_registry::{RegistryInput, RegistryLaunch, RegistryServer};

/// `ServerResponse` of the specification.
#[derive(Deserialize)]
pub(super) struct ListedServer {
    pub(super) server: ServerDetail,
    #[serde(default, rename = "_meta")]
    meta: ListedMeta,
}

#[derive(Default, Deserialize)]
struct ListedMeta {
    #[serde(default, rename = "io.modelcontextprotocol.registry/official")]
    official: OfficialMeta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct OfficialMeta {
    status: String,
    is_latest: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerDetail {
    pub(super) name: String,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default)]
    version: String,
    #[serde(default)]
    repository: Option<ListedRepository>,
    #[serde(default)]
    website_url: Option<String>,
    #[serde(default)]
    packages: Vec<Package>,
    #[serde(default)]
    remotes: Vec<Transport>,
}

#[derive(Deserialize)]
struct ListedRepository {
    #[serde(default)]
    url: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Package {
    registry_type: String,
    #[serde(default)]
    registry_base_url: Option<String>,
    identifier: String,
    #[serde(default)]
    version: Option<String>,
    #[serde(default)]
    runtime_hint: Option<String>,
    #[serde(default)]
    transport: Transport,
    #[serde(default)]
    runtime_arguments: Vec<PackageArgument>,
    #[serde(default)]
    package_arguments: Vec<PackageArgument>,
    #[serde(default)]
    environment_variables: Vec<NamedInput>,
}

#[derive(Default, Deserialize)]
struct Transport {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    headers: Vec<NamedInput>,
    #[serde(default)]
    variables: BTreeMap<String, ListedInput>,
}

/// `Input` of the specification, with its variables.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ListedInput {
    description: Option<String>,
    is_required: bool,
    is_secret: bool,
    value: Option<String>,
    default: Option<String>,
    choices: Vec<String>,
    variables: BTreeMap<String, ListedInput>,
}

#[derive(Deserialize)]
struct NamedInput {
    name: String,
    #[serde(flatten)]
    input: ListedInput,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PackageArgument {
    /// Absent for a positional argument.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    value_hint: Option<String>,
    #[serde(flatten)]
    input: ListedInput,
}

impl ListedServer {
    pub(super) fn is_deleted(&self) -> bool {
        self.meta.official.status == "deleted"
    }

    pub(super) fn is_latest(&self) -> bool {
        self.meta.official.is_latest
    }

    pub(super) fn describe(self) -> RegistryServer {
        let Self { server, meta } = self;
        let packages = server.packages.iter().map(of_package);
        let remotes = server.remotes.iter().map(|remote| of_url("remote", remote, LaunchTemplate::default()));
        RegistryServer {
            launches: packages.chain(remotes).collect(),
            name: server.name,
            title: server.title,
            description: server.description,
            version: server.version,
            deprecated: meta.official.status == "deprecated",
            repository: server.repository.and_then(|repository| repository.url),
            website: server.website_url,
        }
    }
}

/// The program that runs packages of a kind, and the arguments before the package.
fn runner(package: &Package) -> Result<(String, Vec<String>), String> {
    let hint = package.runtime_hint.as_deref();
    let base = package.registry_base_url.as_deref().map(|base| base.trim_end_matches('/'));
    let (usual, others, before): (&str, &[&str], &[&str]) = match package.registry_type.as_str() {
        "npm" => ("npx", &["bunx"], &["-y"]),
        "pypi" => ("uvx", &[], &[]),
        "oci" => ("docker", &["podman"], &["run", "-i", "--rm"]),
        "nuget" => ("dnx", &[], &["--yes"]),
        "mcpb" => return Err(format!("a bundle must be downloaded by hand: {}", package.identifier)),
        other => return Err(format!("packages of the kind {other:?} are not known here")),
    };
    let program = hint.filter(|hint| others.contains(hint)).unwrap_or(usual);
    // `bunx` asks nothing, and has no such option.
    let mut before: Vec<String> = before.iter().filter(|_| program != "bunx").map(|word| (*word).to_owned()).collect();
    match (package.registry_type.as_str(), base) {
        ("npm", Some(base)) if !base.ends_with("//registry.npmjs.org") => before.push(format!("--registry={base}")),
        ("pypi", Some(base)) if !base.ends_with("//pypi.org") => before.push(format!("--default-index={base}/simple")),
        _ => {}
    }
    Ok((program.to_owned(), before))
}

/// The package with its version, as its runner writes it.
fn package_name(package: &Package) -> String {
    match (package.registry_type.as_str(), &package.version) {
        ("oci", Some(version)) if !package.identifier.contains('@') && !has_tag(&package.identifier) => {
            format!("{}:{version}", package.identifier)
        }
        ("npm" | "pypi" | "nuget", Some(version)) => format!("{}@{version}", package.identifier),
        _ => package.identifier.clone(),
    }
}

/// A colon of a port is before the last slash.
fn has_tag(image: &str) -> bool {
    image.rsplit('/').next().is_some_and(|last| last.contains(':'))
}

fn of_package(package: &Package) -> RegistryLaunch {
    let kind = package.registry_type.as_str();
    let mut launch = LaunchTemplate::default();
    for argument in &package.runtime_arguments {
        launch.add_argument(argument);
    }
    let of_runtime = std::mem::take(&mut launch.args);
    for argument in &package.package_arguments {
        launch.add_argument(argument);
    }
    let of_package = std::mem::take(&mut launch.args);
    for variable in &package.environment_variables {
        let text = launch.text(&variable.name, &variable.input);
        launch.env.insert(variable.name.clone(), text);
    }
    if !matches!(package.transport.kind.as_str(), "" | "stdio") {
        let why = "it serves a URL once it runs: start it yourself, and mount the URL";
        return RegistryLaunch { problem: Some(why.to_owned()), ..of_url(kind, &package.transport, launch) };
    }
    match runner(package) {
        Ok((command, mut args)) => {
            args.extend(of_runtime.into_iter().filter(|word| !is_repeated(word, &args)).collect::<Vec<_>>());
            if kind == "oci" {
                // The container gets the variables of the runner that are named.
                args.extend(launch.env.keys().flat_map(|name| ["-e".to_owned(), name.clone()]));
            }
            args.push(package_name(package));
            args.extend(of_package);
            launch.finish(kind, Some(command), args, None, BTreeMap::new())
        }
        Err(problem) => RegistryLaunch { kind: kind.to_owned(), problem: Some(problem), ..RegistryLaunch::default() },
    }
}

/// Entries repeat the words that their runner needs anyway.
fn is_repeated(word: &str, args: &[String]) -> bool {
    args.iter().any(|known| known == word) || (word == "--yes" && args.iter().any(|known| known == "-y"))
}

fn of_url(kind: &str, transport: &Transport, mut launch: LaunchTemplate) -> RegistryLaunch {
    for (name, variable) in &transport.variables {
        launch.text(name, variable);
    }
    let url = launch.url(transport.url.as_deref().unwrap_or_default());
    let headers: BTreeMap<String, String> = transport
        .headers
        .iter()
        .map(|header| (header.name.clone(), launch.text(&header.name, &header.input)))
        .collect();
    let mut launch = launch.finish(kind, None, Vec::new(), Some(url), headers);
    if !matches!(transport.kind.as_str(), "streamable-http" | "sse") {
        launch.problem = Some(format!("the transport {:?} is not known here", transport.kind));
    }
    launch
}

/// A launch that is being described.
#[derive(Default)]
struct LaunchTemplate {
    args: Vec<String>,
    env: BTreeMap<String, String>,
    inputs: Vec<RegistryInput>,
}

impl LaunchTemplate {
    fn add_argument(&mut self, argument: &PackageArgument) {
        let name = argument.name.as_deref().unwrap_or_default();
        let input_name = if name.is_empty() { argument.value_hint.as_deref().unwrap_or("value") } else { name };
        let input = &argument.input;
        // A flag alone.
        if !name.is_empty() && input.value.as_deref().is_none_or(str::is_empty) && !is_asked(input) {
            self.args.push(name.to_owned());
            return;
        }
        let text = self.text(input_name.trim_start_matches('-'), input);
        self.args.push(if name.is_empty() { text } else { format!("{name}={text}") });
    }

    /// The text of an input: its fixed value, whose variables become inputs, or an input of this name.
    fn text(&mut self, name: &str, input: &ListedInput) -> String {
        let Some(value) = &input.value else { return self.input(name, input) };
        let mut text = value.clone();
        for (variable, input) in &input.variables {
            let place = format!("{{{variable}}}");
            if text.contains(&place) {
                let inner = match &input.value {
                    Some(fixed) => fixed.clone(),
                    None => self.input(variable, input),
                };
                text = text.replace(&place, &inner);
            }
        }
        text
    }

    fn input(&mut self, name: &str, input: &ListedInput) -> String {
        let name: String = name.chars().map(|c| if c == '}' || c.is_control() { '_' } else { c }).collect();
        if !self.inputs.iter().any(|known| known.name == name) {
            self.inputs.push(RegistryInput {
                name: name.clone(),
                description: input.description.clone(),
                required: input.is_required,
                secret: input.is_secret,
                default: input.default.clone(),
                choices: input.choices.clone(),
            });
        }
        format!("${{input:{name}}}")
    }

    /// Names in braces are those of other inputs.
    fn url(&self, template: &str) -> String {
        let mut url = template.to_owned();
        for input in &self.inputs {
            url = url.replace(&format!("{{{}}}", input.name), &format!("${{input:{}}}", input.name));
        }
        url
    }

    fn finish(
        self,
        kind: &str,
        command: Option<String>,
        args: Vec<String>,
        url: Option<String>,
        headers: BTreeMap<String, String>,
    ) -> RegistryLaunch {
        let Self { env, inputs, .. } = self;
        let problem = None;
        let launch = RegistryLaunch { kind: kind.to_owned(), command, args, env, url, headers, inputs, problem };
        let problem = (!is_plain(&launch)).then(|| "one of its texts holds ${ or a control character".to_owned());
        RegistryLaunch { problem, ..launch }
    }
}

/// Whether no text of strangers is one that the configuration would expand: it could name a secret of the user, and send
/// it to a server of theirs.
fn is_plain(launch: &RegistryLaunch) -> bool {
    let named = |texts: &BTreeMap<String, String>| -> Vec<String> {
        texts.iter().flat_map(|(name, text)| [name.clone(), text.clone()]).collect()
    };
    let of_inputs = launch.inputs.iter().flat_map(|input| input.default.iter().chain(&input.choices).cloned());
    let texts = launch.args.iter().cloned().chain(launch.url.clone()).chain(of_inputs);
    let mut texts = texts.chain(named(&launch.env)).chain(named(&launch.headers));
    texts.all(|text| !text.replace("${input:", "").contains("${") && !text.contains(char::is_control))
}

/// Whether the user gives a value.
fn is_asked(input: &ListedInput) -> bool {
    input.value.is_none()
        && (input.is_required || input.default.is_some() || input.description.is_some() || !input.choices.is_empty())
}
