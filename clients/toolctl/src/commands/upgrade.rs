//! `toolctl upgrade`: how this program was installed, and what to type for a newer one.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use clap::Args;
use serde_json::json;

use crate::exit::OK;
use crate::output::{self, one_line, print_json};

/// Show how toold was installed here, and the commands that upgrade or remove it
///
/// It only prints the commands, for you to run: it upgrades and removes nothing by itself. After an upgrade, `toolctl restart`
/// replaces the running daemon by the new version.
#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &UpgradeArgs) -> anyhow::Result<u8> {
    let installed = Installation::find()?;
    let version = env!("CARGO_PKG_VERSION");
    let program = installed.program.display().to_string();
    if args.json {
        print_json(&json!({
            "version": version,
            "program": program,
            "installed_by": installed.way.name(),
            "upgrade": installed.upgrade(),
            "before_remove": "toolctl setup --undo --purge",
            "remove": installed.remove(),
        }))?;
        return Ok(OK);
    }
    let mut out = output::stdout();
    writeln!(out, "toolctl {version}, installed by {}: {}", installed.way.name(), one_line(&program))?;
    writeln!(out, "To upgrade: {}", installed.upgrade())?;
    writeln!(out, "then:       toolctl restart")?;
    // First: agents whose hooks are left behind refuse every tool.
    writeln!(out, "To remove:  toolctl setup --undo --purge")?;
    writeln!(out, "then:       {}", installed.remove())?;
    Ok(OK)
}

/// How this program came here.
pub(crate) struct Installation {
    program: PathBuf,
    way: InstallWay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InstallWay {
    Debian,
    Arch,
    Npm,
    Pipx,
    UvTool,
    Pip,
    Homebrew,
    Nix,
    Cargo,
    /// `install.sh` of the archive.
    Script,
    Source,
    Unknown,
}

impl InstallWay {
    fn name(self) -> &'static str {
        match self {
            Self::Debian => "the Debian package",
            Self::Arch => "pacman",
            Self::Npm => "npm",
            Self::Pipx => "pipx",
            Self::UvTool => "uv tool",
            Self::Pip => "pip",
            Self::Homebrew => "Homebrew",
            Self::Nix => "Nix",
            Self::Cargo => "cargo install",
            Self::Script => "install.sh",
            Self::Source => "a build from source",
            Self::Unknown => "hand",
        }
    }
}

impl Installation {
    /// # Errors
    /// The path of this program is not known.
    pub(crate) fn find() -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("can't find the path of this program")?;
        let program = program.canonicalize().unwrap_or(program);
        let way = way_of(&program, &owns);
        Ok(Self { program, way })
    }

    pub(crate) fn upgrade(&self) -> String {
        match self.way {
            InstallWay::Debian => "sudo apt install ./toold_VERSION_ARCH.deb".to_owned(),
            InstallWay::Arch => "update the package toold with your AUR helper".to_owned(),
            InstallWay::Npm => "npm install --global toold-cli@latest".to_owned(),
            InstallWay::Pipx => "pipx upgrade toold-cli".to_owned(),
            InstallWay::UvTool => "uv tool upgrade toold-cli".to_owned(),
            InstallWay::Pip => "pip install --upgrade toold-cli".to_owned(),
            InstallWay::Homebrew => "brew upgrade toold".to_owned(),
            InstallWay::Nix => "nix profile upgrade toold".to_owned(),
            InstallWay::Cargo => {
                "cargo install --locked --path daemon/toold && cargo install --locked --path clients/toolctl, in the new source".to_owned()
            }
            InstallWay::Script => format!("unpack the new archive and run: sh install.sh --prefix {}", self.prefix().display()),
            InstallWay::Source => "git pull && cargo build --release".to_owned(),
            InstallWay::Unknown => "replace toold and toolctl beside each other".to_owned(),
        }
    }

    pub(crate) fn remove(&self) -> String {
        match self.way {
            InstallWay::Debian => "sudo apt purge toold".to_owned(),
            InstallWay::Arch => "sudo pacman -Rns toold".to_owned(),
            InstallWay::Npm => "npm uninstall --global toold-cli".to_owned(),
            InstallWay::Pipx => "pipx uninstall toold-cli".to_owned(),
            InstallWay::UvTool => "uv tool uninstall toold-cli".to_owned(),
            InstallWay::Pip => "pip uninstall toold-cli".to_owned(),
            InstallWay::Homebrew => "brew uninstall toold".to_owned(),
            InstallWay::Nix => "nix profile remove toold".to_owned(),
            InstallWay::Cargo => "cargo uninstall toold toolctl".to_owned(),
            InstallWay::Script => format!("sh {}", self.prefix().join("share/toold/uninstall.sh").display()),
            InstallWay::Source | InstallWay::Unknown => {
                let folder = self.program.parent().unwrap_or(Path::new("/"));
                format!("rm {0}/toold {0}/toolctl", folder.display())
            }
        }
    }

    /// The folder above `bin`.
    fn prefix(&self) -> &Path {
        self.program.parent().and_then(Path::parent).unwrap_or(Path::new("/"))
    }
}

/// `owns`: whether a package manager, asked with these words, knows the file.
fn way_of(program: &Path, owns: &dyn Fn(&[&str], &Path) -> bool) -> InstallWay {
    let text = program.to_string_lossy();
    let has = |part: &str| text.contains(part);
    let prefix = program.parent().and_then(Path::parent);
    match () {
        () if has("/node_modules/") => InstallWay::Npm,
        () if has("/pipx/venvs/") => InstallWay::Pipx,
        () if has("/uv/tools/") => InstallWay::UvTool,
        () if has("/site-packages/") => InstallWay::Pip,
        () if has("/Cellar/") || has("/homebrew/") || has("/linuxbrew/") => InstallWay::Homebrew,
        () if has("/nix/store/") => InstallWay::Nix,
        () if has("/.cargo/bin/") => InstallWay::Cargo,
        () if has("/target/release/") || has("/target/debug/") => InstallWay::Source,
        () if prefix.is_some_and(|prefix| prefix.join("share/toold/uninstall.sh").is_file()) => InstallWay::Script,
        () if owns(&["dpkg", "-S"], program) => InstallWay::Debian,
        () if owns(&["pacman", "-Qo"], program) => InstallWay::Arch,
        () if prefix.is_some_and(is_of_pip) => InstallWay::Pip,
        () => InstallWay::Unknown,
    }
}

/// Whether pip has put programs there: a virtual environment has them beside its Python, and other folders have the record of
/// the package.
fn is_of_pip(prefix: &Path) -> bool {
    let entries = |folder: PathBuf| folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
    let pythons = entries(prefix.join("lib"));
    let mut packages = pythons.map(|python| python.join("site-packages")).flat_map(entries);
    let is_ours = |path: PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("toold_cli-"));
    prefix.join("pyvenv.cfg").is_file() || packages.any(is_ours)
}

fn owns(words: &[&str], program: &Path) -> bool {
    let [manager, arguments @ ..] = words else { return false };
    let mut command = Command::new(manager);
    command.args(arguments).arg(program).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_tells_how_it_was_installed() {
        for (path, way) in [
            ("/usr/lib/node_modules/toold/node_modules/@toold/linux-x64/bin/toolctl", InstallWay::Npm),
            ("/home/u/.local/share/pipx/venvs/toold/bin/toolctl", InstallWay::Pipx),
            ("/home/u/.local/share/uv/tools/toold/bin/toolctl", InstallWay::UvTool),
            ("/opt/homebrew/Cellar/toold/1/bin/toolctl", InstallWay::Homebrew),
            ("/nix/store/x-toold/bin/toolctl", InstallWay::Nix),
            ("/home/u/.cargo/bin/toolctl", InstallWay::Cargo),
            ("/home/u/toold/target/release/toolctl", InstallWay::Source),
            ("/usr/bin/toolctl", InstallWay::Debian),
            ("/opt/bin/toolctl", InstallWay::Unknown),
        ] {
            let owns = |words: &[&str], path: &Path| words[0] == "dpkg" && path.starts_with("/usr/bin");
            assert_eq!(way_of(Path::new(path), &owns), way, "{path}");
        }
    }

    #[test]
    fn what_pip_put_into_a_folder_of_the_user_has_its_record_there() {
        let home = tempfile::tempdir().unwrap();
        let program = home.path().join("bin/toolctl");
        assert_eq!(way_of(&program, &|_, _| false), InstallWay::Unknown);
        std::fs::create_dir_all(home.path().join("lib/python3.13/site-packages/toold_cli-0.2.0.dist-info")).unwrap();
        assert_eq!(way_of(&program, &|_, _| false), InstallWay::Pip);
    }
}
