//! The manifest of a plugin: its name, and `plugin.toml`.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use toold_proto::plugin::PluginError;

use crate::plugin::content::read_file;
use crate::plugin::version_files::VersionFiles;
use crate::vm::diagnostics::SourceTexts;

/// A longer `plugin.toml` is not read.
pub(crate) const MAX_MANIFEST: usize = 1 << 20;

/// A plugin that was found in a plugin folder.
#[derive(Clone, Debug)]
pub(crate) struct Manifest {
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    pub(crate) description: Option<String>,
    /// The script.
    pub(crate) entry: PathBuf,
    /// The folder in which `require` looks for modules; `None` for a single-file plugin.
    pub(crate) folder: Option<PathBuf>,
    /// The declared capabilities; `None` for a plugin that does not declare any, which is not restricted.
    pub(crate) capabilities: Option<Capabilities>,
    /// Bytes.
    pub(crate) memory: Option<usize>,
    pub(crate) timeout: Option<Duration>,
    /// The names of the secrets that it may ask for.
    pub(crate) secrets: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Capabilities {
    pub(crate) tools: bool,
    pub(crate) hooks: bool,
    pub(crate) commands: bool,
    pub(crate) subagents: bool,
    pub(crate) messages: bool,
    pub(crate) exec: bool,
    pub(crate) network: bool,
    pub(crate) fs_read: bool,
    pub(crate) fs_write: bool,
    pub(crate) mcp: bool,
    /// Another place for the names of `secrets`.
    pub(crate) secrets: Vec<String>,
}

impl Capabilities {
    /// The names of the declared ones.
    pub(crate) fn names(&self) -> Vec<String> {
        let all = [
            ("tools", self.tools),
            ("hooks", self.hooks),
            ("commands", self.commands),
            ("subagents", self.subagents),
            ("messages", self.messages),
            ("exec", self.exec),
            ("network", self.network),
            ("fs_read", self.fs_read),
            ("fs_write", self.fs_write),
            ("mcp", self.mcp),
            ("secrets", !self.secrets.is_empty()),
        ];
        all.into_iter().filter(|(_, has)| *has).map(|(name, _)| name.to_owned()).collect()
    }
}

#[derive(Deserialize)]
struct PluginToml {
    /// With `toold`, the plugin can use only its declared capabilities.
    api: Option<String>,
    name: Option<String>,
    version: Option<String>,
    description: Option<String>,
    entrypoint: Option<PathBuf>,
    /// Read only with `api`: older manifests have other things here.
    capabilities: Option<toml::Value>,
    limits: Option<ManifestLimits>,
    #[serde(default)]
    secrets: Vec<String>,
}

#[derive(Deserialize)]
struct ManifestLimits {
    memory_mib: Option<usize>,
    timeout_ms: Option<u64>,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum ManifestError {
    #[error("{name:?} is not a plugin name: expected [a-z][a-z0-9_-]*{}", other_name(.name, .of))]
    Name { name: String, of: NamedBy },
    #[error("can't read {}: {source}", .path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("{message}")]
    Toml { path: PathBuf, line: Option<u32>, message: String },
    #[error("the entrypoint {} is outside the plugin's folder", .0.display())]
    Outside(PathBuf),
    #[error("the entrypoint {} does not exist{}", .0.display(), other_entry(.0))]
    NoEntry(PathBuf),
}

/// What a plugin has its name from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NamedBy {
    File,
    Folder,
}

/// A name that would do.
fn other_name(name: &str, of: &NamedBy) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c.to_ascii_lowercase() } else { '-' };
    let made: String = name.chars().map(fits).collect();
    let made = made.trim_matches(['-', '_']);
    match (checked_name(made.to_owned(), *of), of) {
        (Ok(made), NamedBy::File) => format!("; rename it to {made}.lua"),
        (Ok(made), NamedBy::Folder) => {
            format!("; rename it to {made}, or write name = \"{made}\" into a plugin.toml in its folder")
        }
        (Err(_), _) => String::new(),
    }
}

/// What to do about a folder that has the script of other programs' plugins.
fn other_entry(entry: &Path) -> String {
    let other = entry.with_file_name("init.lua");
    match entry.file_name().is_some_and(|name| name == "plugin.lua") && other.is_file() {
        true => {
            "; there is an init.lua: rename it to plugin.lua, or write entrypoint = \"init.lua\" into a plugin.toml"
                .to_owned()
        }
        false => String::new(),
    }
}

impl Manifest {
    /// The manifest of a single-file plugin.
    pub(crate) fn of_file(path: &Path) -> Result<Self, ManifestError> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self {
            name: checked_name(stem, NamedBy::File)?,
            version: None,
            description: None,
            entry: path.to_owned(),
            folder: None,
            capabilities: None,
            memory: None,
            timeout: None,
            secrets: Vec::new(),
        })
    }

    /// The manifest of a version, and the text of its entry. Blocks.
    pub(crate) fn of_version(plugin: &Path, files: &VersionFiles) -> Result<(Self, Arc<[u8]>), ManifestError> {
        let read = |path: PathBuf| files.text(&path).map_err(|source| ManifestError::Unreadable { path, source });
        let manifest = if files.has(plugin) {
            Self::of_file(plugin)?
        } else {
            let text = read(plugin.join("plugin.toml"))?;
            Self::of_text(plugin, text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).as_deref())?
        };
        match read(manifest.entry.clone())? {
            Some(script) => Ok((manifest, script)),
            None if manifest.entry.exists() => Err(ManifestError::Outside(manifest.entry)),
            None => Err(ManifestError::NoEntry(manifest.entry)),
        }
    }

    /// The manifest of a plugin folder, whether or not its entry exists.
    pub(crate) fn of_folder(folder: &Path) -> Result<Self, ManifestError> {
        let path = folder.join("plugin.toml");
        match read_file(&path, MAX_MANIFEST) {
            Ok(text) => Self::of_text(folder, Some(&String::from_utf8_lossy(&text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Self::of_text(folder, None),
            Err(source) => Err(ManifestError::Unreadable { path, source }),
        }
    }

    /// The same for a `plugin.toml` that was read already; `None` if there is none. Reads nothing.
    pub(crate) fn of_text(folder: &Path, text: Option<&str>) -> Result<Self, ManifestError> {
        let path = folder.join("plugin.toml");
        let manifest: PluginToml = match text {
            Some(text) => toml::from_str(text).map_err(|error| ManifestError::Toml {
                line: error.span().map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count() as u32),
                message: error.message().to_owned(),
                path: path.clone(),
            })?,
            None => PluginToml {
                api: None,
                name: None,
                version: None,
                description: None,
                entrypoint: None,
                capabilities: None,
                limits: None,
                secrets: Vec::new(),
            },
        };
        let name = match manifest.name {
            Some(name) => name,
            None => folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let entrypoint = manifest.entrypoint.unwrap_or_else(|| "plugin.lua".into());
        if !entrypoint.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err(ManifestError::Outside(entrypoint));
        }
        let capabilities: Option<Capabilities> = match (manifest.api.as_deref(), manifest.capabilities) {
            (Some("toold"), given) => {
                let given = given.unwrap_or_else(|| toml::Value::Table(toml::Table::new()));
                Some(given.try_into().map_err(|error: toml::de::Error| ManifestError::Toml {
                    path,
                    line: None,
                    message: format!("[capabilities]: {}", error.message()),
                })?)
            }
            (Some(_) | None, _) => None,
        };
        let more = capabilities.iter().flat_map(|declared| declared.secrets.iter().cloned());
        let secrets = manifest.secrets.into_iter().chain(more).collect();
        let limits = manifest.limits.unwrap_or(ManifestLimits { memory_mib: None, timeout_ms: None });
        Ok(Self {
            name: checked_name(name, NamedBy::Folder)?,
            version: manifest.version,
            description: manifest.description,
            entry: folder.join(&entrypoint),
            folder: Some(folder.to_owned()),
            capabilities,
            memory: limits.memory_mib.map(|mib| mib.clamp(1, 4_096) << 20),
            timeout: limits.timeout_ms.map(Duration::from_millis),
            secrets,
        })
    }

    /// The name of a file of the plugin in messages and tracebacks.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match &self.folder {
            Some(folder) => {
                let within = path.strip_prefix(folder).unwrap_or(path);
                format!("{}/{}", folder.file_name().unwrap_or_default().to_string_lossy(), within.display())
            }
            None => path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        }
    }
}

fn checked_name(name: String, of: NamedBy) -> Result<String, ManifestError> {
    let mut bytes = name.bytes();
    let fits = name.len() <= 64
        && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
    if fits { Ok(name) } else { Err(ManifestError::Name { name: name.chars().take(80).collect(), of }) }
}

/// An error in a manifest, in the form of a script's error.
pub(crate) fn explain(error: &ManifestError) -> PluginError {
    let plain = PluginError::of(error.to_string());
    match error {
        ManifestError::Toml { path, line, message } => {
            let sources = SourceTexts::default();
            if let Ok(text) = read_file(path, MAX_MANIFEST) {
                sources.add("plugin.toml", path, text.into());
            }
            let line = line.unwrap_or(1);
            sources.explain_text(&format!("plugin.toml:{line}: {}", message.trim()), None)
        }
        ManifestError::Unreadable { path, .. } => PluginError { file: Some(show(path)), ..plain },
        ManifestError::Name { .. } | ManifestError::Outside(_) => plain,
        ManifestError::NoEntry(path) => PluginError { file: Some(show(path)), ..plain },
    }
}

fn show(path: &Path) -> String {
    path.display().to_string()
}
