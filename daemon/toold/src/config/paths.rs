//! Where the daemon keeps its files, by the XDG Base Directory Specification.

use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use toold_builtins::skills::SkillPlaces;
use toold_proto::agent_programs::AGENT_PROGRAMS;
use toold_proto::socket::others_can_replace_files;

/// The folders of one daemon. Read from the environment once, in `main`; tests make their own.
#[derive(Clone, Debug)]
pub struct DaemonPaths {
    /// `$XDG_CONFIG_HOME/toold`: `config.toml` and `plugins/`.
    pub config: PathBuf,
    /// `$XDG_STATE_HOME/toold`: spool, database, logs.
    pub state: PathBuf,
    pub home: Option<PathBuf>,
}

impl DaemonPaths {
    /// # Errors
    /// When no home folder is known and the XDG variables do not make up for it.
    pub fn from_env() -> anyhow::Result<Self> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        // A relative one would be another folder in each process.
        let home = absolute("HOME").or_else(|| std::env::home_dir().filter(|home| home.is_absolute()));
        let base = |name: &str, below: &str| {
            absolute(name)
                .or_else(|| home.as_ref().map(|home| home.join(below)))
                .with_context(|| format!("neither {name} nor HOME is set to an absolute path"))
        };
        Ok(Self {
            config: base("XDG_CONFIG_HOME", ".config")?.join("toold"),
            state: base("XDG_STATE_HOME", ".local/state")?.join("toold"),
            home,
        })
    }

    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    pub fn user_plugins(&self) -> PathBuf {
        self.config.join("plugins")
    }

    pub fn database(&self) -> PathBuf {
        toold_proto::socket::database_path(&self.state)
    }

    /// The agents that are observed, and until when.
    pub fn observing(&self) -> PathBuf {
        self.state.join("observing.json")
    }

    /// The programs of agents that a person has recorded.
    pub fn agent_programs(&self) -> PathBuf {
        self.state.join(AGENT_PROGRAMS)
    }

    /// Who has paused everything, while it is paused.
    pub fn paused(&self) -> PathBuf {
        self.state.join("paused.json")
    }

    /// The denials of configurations, as last read.
    pub fn strict_rules(&self) -> PathBuf {
        self.state.join("strict-rules.json")
    }

    /// The registrations of plugins, so that unchanged ones are available at once.
    pub fn registrations(&self) -> PathBuf {
        self.state.join("registrations")
    }

    /// The last good version of each plugin, for starts at which its files are broken.
    pub fn plugin_versions(&self) -> PathBuf {
        self.state.join("plugin-versions")
    }

    /// The token of HTTP clients.
    pub fn mcp_token(&self) -> PathBuf {
        self.state.join("mcp-token")
    }

    /// The tokens of HTTP clients that are limited to a profile, each in a file of the profile's name.
    pub fn profile_tokens(&self) -> PathBuf {
        self.state.join("mcp-tokens")
    }

    /// The token of HTTP clients that may also decide. Valid only if a person created it.
    pub fn admin_token(&self) -> PathBuf {
        self.state.join("admin-token")
    }

    /// The identity of this daemon towards other daemons.
    pub fn instance(&self) -> PathBuf {
        self.state.join("instance")
    }

    /// The names of tools that frontends provided.
    pub fn provided_tools(&self) -> PathBuf {
        self.state.join("provided-tools.json")
    }

    /// The running agents, so that after a restart their commands are not mistaken for a person's.
    pub fn agent_processes(&self) -> PathBuf {
        self.state.join("agent-processes")
    }

    /// The last known tools of mounted daemons. A program that could write there could make a tool
    /// look unchanged.
    pub fn remotes(&self) -> PathBuf {
        self.state.join("remotes")
    }

    /// The keys and the state of this daemon in its fleet.
    pub fn fleet(&self) -> PathBuf {
        self.state.join("fleet")
    }

    /// The last known tools of the daemons of the fleet.
    pub fn fleet_tools(&self) -> PathBuf {
        self.fleet().join("tools")
    }

    /// The encrypted secrets, or the note that they are in a keyring.
    pub fn secrets(&self) -> PathBuf {
        self.state.join("secrets.json")
    }

    pub fn spool(&self) -> PathBuf {
        self.state.join("spool")
    }

    /// The content of files before tools changed them.
    pub fn undo(&self) -> PathBuf {
        self.state.join("undo")
    }

    /// The temporary names of files that are being replaced.
    pub fn temporary_names(&self) -> PathBuf {
        self.state.join("temporary-names")
    }

    /// The todo lists and notes of sessions.
    pub fn sessions(&self) -> PathBuf {
        self.state.join("sessions")
    }

    pub fn of_builtins(&self) -> toold_builtins::toolkit::ToolkitFolders {
        toold_builtins::toolkit::ToolkitFolders {
            spool: Some(self.spool()),
            undo: Some(self.undo()),
            sessions: Some(self.sessions()),
            memories: Some(self.config.join("memories")),
            skills: SkillPlaces { config: Some(self.config.join("skills")), home: self.home.clone() },
        }
    }
}

/// Creates a folder that only its owner can enter, with its parents.
pub fn private_dir(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Makes sure that no other user can put a socket in the place of this one.
///
/// A folder that is missing is made, and one that holds nothing else is made private. What else lies in a folder is not the
/// daemon's: then its mode stays as it is.
pub fn prepare_socket_folder(socket: &Path) -> anyhow::Result<()> {
    let folder = socket.parent().context("the socket's path has no folder")?;
    let shown = folder.display();
    private_dir(folder).with_context(|| format!("can't make {shown}"))?;
    let metadata = std::fs::metadata(folder).with_context(|| format!("can't look at {shown}"))?;
    let (owner, user, mode) = (metadata.uid(), rustix::process::geteuid().as_raw(), metadata.mode());
    if owner != user {
        bail!("{shown} belongs to user {owner}, not to {user}: set TOOLD_SOCKET to a place of your own");
    }
    if mode & 0o077 != 0 && is_alone(socket, folder).with_context(|| format!("can't read {shown}"))? {
        return std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))
            .with_context(|| format!("can't make {shown} private"));
    }
    if others_can_replace_files(mode) {
        bail!(
            "other users can replace files in {shown} (mode {:o}): set TOOLD_SOCKET to a path in a folder of your own, or \
             run `chmod go-w {shown}`",
            mode & 0o7777
        );
    }
    Ok(())
}

/// Whether the folder holds nothing but what daemons of this socket leave beside it.
fn is_alone(socket: &Path, folder: &Path) -> io::Result<bool> {
    let name = socket.file_name().unwrap_or_default().as_encoded_bytes();
    for entry in std::fs::read_dir(folder)? {
        if !entry?.file_name().as_encoded_bytes().starts_with(name) {
            return Ok(false);
        }
    }
    Ok(true)
}
