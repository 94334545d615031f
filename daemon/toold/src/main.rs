//! `toold`: serves, on a socket or on stdio.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use tokio::signal::unix::{Signal, SignalKind, signal};
use toold::config::{self, command};
use toold::daemon::{Daemon, Options};
use toold::logging::{self, LogConfig, Logging};
use toold::peer::Peer;
use toold::places::Places;
use toold::traces::Traces;
use toold::transport::stdio::Stdio;
use toold::transport::unix::{BindError, Socket};
use toold_host::process::keeper;

/// Two threads allocate 1.4 times faster with it than with the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// One long-lived daemon that holds one tool registry for every agent and editor.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Serve one client on stdin and stdout, with no socket, and end with it
    #[arg(long)]
    stdio: bool,
    #[command(flatten)]
    sources: Sources,
}

#[derive(Subcommand)]
enum Command {
    /// What plugin authors run apart from the daemon
    Plugin {
        #[command(subcommand)]
        what: PluginCommand,
    },
    /// What can be told of configurations apart from the daemon
    Config {
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Serve every client of this user on a Unix socket
    Serve {
        /// Where the socket is; else $TOOLD_SOCKET, else below $XDG_RUNTIME_DIR or $XDG_STATE_HOME
        #[arg(long)]
        socket: Option<PathBuf>,
        /// Leave the terminal: a session of its own, and no complaint if another daemon serves already
        #[arg(long)]
        detached: bool,
        /// Serve MCP clients on Streamable HTTP too, as `mcp.listen` of the configuration does
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<String>,
        /// Let --listen name an address that other machines reach
        #[arg(long, requires = "listen")]
        allow_remote: bool,
        #[command(flatten)]
        sources: Sources,
    },
}

#[derive(Subcommand)]
enum PluginCommand {
    /// Load a plugin and print every problem; exit status 1 when there is one
    Check { path: PathBuf },
    /// Run the tests beside a plugin; exit status 1 when one fails
    Test { path: PathBuf },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print every mistake of a file, or of the whole configuration; exit status 1 when there is one
    Check {
        file: Option<PathBuf>,
        #[command(flatten)]
        sources: Sources,
    },
    /// Print where the configuration file is
    Path {
        #[command(flatten)]
        sources: Sources,
    },
    /// Print the JSON Schema of configuration files
    Schema,
}

#[derive(Args, Clone)]
struct Sources {
    /// Another configuration file than $XDG_CONFIG_HOME/toold/config.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A key of the configuration, over the file and the environment, as limits.calls=100; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// A plugin folder or file beside the configured ones; may be repeated
    #[arg(long, value_name = "PATH")]
    plugins: Vec<PathBuf>,
}

fn main() -> ExitCode {
    // Before anything is set up that a confined program must not inherit.
    if let Some(failed) = toold_host::sandbox::helper::run_if_asked(std::env::args_os()) {
        return failed;
    }
    if let Some(ended) = keeper::run_if_asked(std::env::args_os()) {
        return ended;
    }
    let cli = Cli::parse();
    match run(cli) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("toold: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let var = |name: &str| std::env::var(name).ok();
    let places = Places::from_env;
    match cli.command {
        Some(Command::Serve { socket, detached, listen, allow_remote, mut sources }) => {
            refuse_below_a_daemon()?;
            sources.set.extend(listen.map(|listen| format!("mcp.listen={listen}")));
            sources.set.extend(allow_remote.then(|| "mcp.allow_remote=true".to_owned()));
            let socket = socket.or_else(|| toold_proto::socket::socket_path(var)).context("no place for a socket")?;
            let socket = std::path::absolute(socket)?;
            raise_open_files();
            let options = options(places()?, sources, Some(&socket))?;
            let log = start_logging(&options, var("TOOLD_LOG"))?;
            if detached {
                // Fails when it leads a session already, which is what is wanted.
                let _ = rustix::process::setsid();
            }
            runtime()?.block_on(serve(&socket, options, detached, log))
        }
        Some(Command::Plugin { what }) => {
            logging::init(LogConfig::default(), var("TOOLD_LOG"), None)?.without_file();
            author(&what)
        }
        Some(Command::Config { what }) => configuration(what, places),
        None if cli.stdio => {
            refuse_below_a_daemon()?;
            raise_open_files();
            let options = options(places()?, cli.sources, None)?;
            let log = start_logging(&options, var("TOOLD_LOG"))?;
            log.without_file();
            runtime()?.block_on(serve_stdio(options, log))
        }
        None => {
            <Cli as clap::CommandFactory>::command().print_help()?;
            Ok(ExitCode::from(2))
        }
    }
}

fn start_logging(options: &Options, filter: Option<String>) -> anyhow::Result<Logging> {
    let config = config::load(options).config;
    // A daemon that cannot be looked at serves all the same.
    let (traces, problem) = match Traces::new(&config.trace) {
        Ok(traces) => (traces, None),
        Err(error) => (None, Some(error)),
    };
    let log = logging::init(config.log, filter, traces)?;
    if let Some(error) = problem {
        tracing::error!("calls are not traced: {error:#}");
    }
    Ok(log)
}

/// A tool that starts a daemon of its own could answer its own asks there, and both share one database.
fn refuse_below_a_daemon() -> anyhow::Result<()> {
    anyhow::ensure!(
        !toold::peer::is_below_a_daemon(),
        "what a tool started cannot start a daemon: use the one that runs, at $TOOLD_SOCKET"
    );
    Ok(())
}

fn author(what: &PluginCommand) -> anyhow::Result<ExitCode> {
    let good = match what {
        PluginCommand::Check { path } => toold::authors::check(path)?,
        PluginCommand::Test { path } => runtime()?.block_on(toold::authors::test(path))?,
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn configuration(what: ConfigCommand, places: impl Fn() -> anyhow::Result<Places>) -> anyhow::Result<ExitCode> {
    match what {
        ConfigCommand::Check { file, sources } => {
            let good = command::check(&options(places()?, sources, None)?, file)?;
            return Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ConfigCommand::Path { sources } => command::print_path(&options(places()?, sources, None)?)?,
        ConfigCommand::Schema => command::print_schema()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn options(places: Places, sources: Sources, socket: Option<&Path>) -> anyhow::Result<Options> {
    let absolute = |path: PathBuf| std::path::absolute(&path).with_context(|| format!("can't use {}", path.display()));
    Ok(Options {
        places,
        config: sources.config.map(absolute).transpose()?,
        plugins: sources.plugins.into_iter().map(absolute).collect::<anyhow::Result<_>>()?,
        set: sources.set,
        socket: socket.map(Path::to_owned),
        environment: std::env::vars_os().collect(),
    })
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().context("can't start the runtime")
}

async fn serve(path: &Path, options: Options, detached: bool, log: Logging) -> anyhow::Result<ExitCode> {
    // Before there is a socket that an early signal could leave behind.
    let mut signals = Signals::install()?;
    let socket = match Socket::bind(path) {
        Ok(socket) => socket,
        Err(BindError::Running(_)) if detached => return Ok(ExitCode::SUCCESS),
        Err(BindError::Running(path)) => {
            anyhow::bail!("a daemon serves {} already: stop it with `toolctl stop`", path.display())
        }
        Err(BindError::Other(error)) => return Err(error),
    };
    become_shared()?;
    match toold_proto::socket::log_file(socket.path(), |name| std::env::var(name).ok()) {
        Some(path) => log.open_file(&path, detached),
        None => log.without_file(),
    }
    let daemon = Daemon::start(options)?;
    log.clone().follow(&daemon.state);
    tracing::info!(socket = %socket.path().display(), pid = std::process::id(), "serving");
    daemon.listen();
    tokio::select! {
        () = socket.accept(&daemon) => {}
        signal = signals.stop(&daemon) => tracing::info!(signal, "stopping"),
    }
    // A second signal: do not wait for calls in flight.
    daemon.stop(async { _ = signals.next().await }).await;
    drop(socket);
    log.end().await;
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

async fn serve_stdio(options: Options, log: Logging) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::install()?;
    let peer = Peer::parent();
    adopt_orphans();
    let daemon = Daemon::start(options)?;
    log.clone().follow(&daemon.state);
    tokio::select! {
        () = daemon.serve_here(Stdio::open()?, peer) => {}
        signal = signals.stop(&daemon) => tracing::info!(signal, "stopping"),
    }
    daemon.stop(std::future::ready(())).await;
    log.end().await;
    Ok(ExitCode::SUCCESS)
}

/// Nothing of whoever started the daemon may leak into other people's calls.
fn become_shared() -> anyhow::Result<()> {
    std::env::set_current_dir("/").context("can't change to /")?;
    adopt_orphans();
    Ok(())
}

/// Orphans of our tools stay below us, where they are found and told from people; and when we are killed, they end.
fn adopt_orphans() {
    keeper::allow();
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::process::set_child_subreaper(rustix::process::Pid::from_raw(1)) {
        tracing::warn!(%error, "can't become a subreaper: what a tool leaves behind is not found");
    }
}

/// What tells the daemon to stop, or to read its configuration anew.
struct Signals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

impl Signals {
    fn install() -> anyhow::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    /// Reads the configuration anew at each SIGHUP; gives the name of the first other signal.
    async fn stop(&mut self, daemon: &Daemon) -> &'static str {
        loop {
            tokio::select! {
                _ = self.term.recv() => return "SIGTERM",
                _ = self.int.recv() => return "SIGINT",
                _ = self.hup.recv() => {
                    let state = daemon.state.clone();
                    // Fails when it panicked, which is told already.
                    let _ = tokio::task::spawn_blocking(move || state.reload_all()).await;
                }
            }
        }
    }

    /// The next one's name.
    async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.term.recv() => "SIGTERM",
            _ = self.int.recv() => "SIGINT",
        }
    }
}

/// Ten thousand idle clients are ten thousand descriptors.
fn raise_open_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%error, "can't raise the limit of open files");
    }
}
