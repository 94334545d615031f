//! `toold`: serves, on a socket or on stdio.

mod allocator;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use futures_util::FutureExt;
use futures_util::future::LocalBoxFuture;
use toold::config::build_features::unused_sections;
#[cfg(feature = "fleet")]
use toold::config::fleet_key::{self, FleetKeyUse};
use toold::config::options::Options;
use toold::config::paths::DaemonPaths;
use toold::config::plugin_command::TestOutput;
use toold::config::process::LogConfig;
use toold::config::{self, command};
use toold::daemon::serve::{self, SocketSource};
use toold::lifecycle::DRAIN;
use toold::lifecycle::logging::{self, Logging};
use toold::lifecycle::process_statistics::resident_file_bytes;
use toold::lifecycle::restart::successor::Successor;
use toold::lifecycle::service_manager;
use toold::lifecycle::stop_deadline;
use toold::lifecycle::traces::Traces;
use toold_host::launcher;
#[cfg(target_os = "linux")]
use toold_host::launcher::installed;
use toold_host::process::reaper;
use toold_host::tool_mark;

/// One long-lived daemon that holds one tool registry for every agent and editor.
#[derive(Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<DaemonCommand>,
    /// Serve one client on stdin and stdout, with no socket, and end with it
    #[arg(long)]
    stdio: bool,
    #[command(flatten)]
    sources: ConfigSources,
}

#[derive(Subcommand)]
enum DaemonCommand {
    /// Let AppArmor allow user namespaces to toold's launcher, which confines commands; as root, on Ubuntu since 23.10
    #[cfg(target_os = "linux")]
    AllowNamespaces {
        /// Take it back
        #[arg(long)]
        remove: bool,
    },
    /// Check and test plugins without the daemon
    Plugin {
        #[command(subcommand)]
        what: PluginCommand,
    },
    /// Check configurations without the daemon
    Config {
        #[command(subcommand)]
        what: ConfigCommand,
    },
    /// Print the public key of a key file of a fleet
    #[cfg(feature = "fleet")]
    FleetKey {
        /// What the key signs
        #[arg(value_enum)]
        key_use: FleetKeyUse,
        /// The file with the private key
        file: PathBuf,
        /// Make the key if the file does not exist
        #[arg(long)]
        create: bool,
    },
    /// Write the manual pages, one for each subcommand, into a folder
    Man {
        /// The folder, created if needed, such as ~/.local/share/man/man1
        folder: PathBuf,
    },
    /// Serve every client of this user on a Unix socket
    Serve {
        /// Path of the socket; default: $TOOLD_SOCKET, or a path below $XDG_RUNTIME_DIR, /run/user/UID or $XDG_STATE_HOME
        #[arg(long)]
        socket: Option<PathBuf>,
        /// Run detached from the terminal; succeed if another daemon already serves
        #[arg(long)]
        detached: bool,
        /// Serve MCP clients on Streamable HTTP too, as `mcp.listen` of the configuration does
        #[arg(long, value_name = "ADDRESS:PORT")]
        listen: Option<String>,
        /// Allow --listen an address that other machines can reach
        #[arg(long, requires = "listen")]
        allow_remote: bool,
        /// Serve the socket that a daemon hands over on stdin
        #[arg(long, hide = true, conflicts_with_all = ["socket", "detached"])]
        take_over: bool,
        #[command(flatten)]
        sources: ConfigSources,
    },
}

#[derive(Subcommand)]
enum PluginCommand {
    /// Load a plugin and print every problem; exit status 1 when there is one
    Check { path: PathBuf },
    /// Run the tests beside a plugin; exit status 1 when one fails
    Test {
        path: PathBuf,
        #[command(flatten)]
        output: TestOutput,
    },
    /// Run Lua in a plugin with the fakes of tests: each line of stdin is an input as a JSON string
    Repl { path: PathBuf },
    /// Print the digest of the files of each plugin, one a line
    Digest {
        #[arg(required = true)]
        paths: Vec<PathBuf>,
    },
}

#[derive(Subcommand)]
enum ConfigCommand {
    /// Print every error in a file or in the whole configuration; exit status 1 when there is one
    Check {
        file: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        sources: ConfigSources,
    },
    /// Print where the configuration file is
    Path {
        #[command(flatten)]
        sources: ConfigSources,
    },
    /// Print the JSON Schema of configuration files
    Schema,
}

#[derive(Args, Clone)]
struct ConfigSources {
    /// Configuration file in place of $XDG_CONFIG_HOME/toold/config.toml
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set a configuration key over the file and the environment, such as limits.calls=100; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// An additional plugin folder or file; may be repeated
    #[arg(long, value_name = "PATH")]
    plugins: Vec<PathBuf>,
}

fn main() -> ExitCode {
    // Before anything is set up that a sandboxed program must not inherit.
    if let Some(failed) = launcher::run_if_asked(std::env::args_os()) {
        return failed;
    }
    if let Some(ended) = reaper::run_if_asked(std::env::args_os()) {
        return ended;
    }
    let cli = Cli::parse();
    allocator::begin();
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
    let places = DaemonPaths::from_env;
    match cli.command {
        Some(DaemonCommand::Serve { socket, detached, listen, allow_remote, take_over, mut sources }) => {
            let source = match take_over {
                true => SocketSource::HandedOver(Successor::receive()?),
                false => {
                    refuse_below_a_daemon()?;
                    SocketSource::find(service_manager::given_socket()?, socket)?
                }
            };
            sources.set.extend(listen.map(|listen| format!("mcp.listen={listen}")));
            sources.set.extend(allow_remote.then(|| "mcp.allow_remote=true".to_owned()));
            raise_open_files();
            if detached {
                // Fails when it leads a session already, which is the goal.
                let _ = rustix::process::setsid();
            }
            let reporter = source.failure_reporter()?;
            let start = || {
                require_open_files()?;
                let options = options(places()?, sources, None)?;
                let log = start_logging(&options, var("TOOLD_LOG"))?;
                run_to_the_end(serve::serve(source, options, detached, log).boxed_local())
            };
            let served = start();
            if let (Some(reporter), Err(error)) = (reporter, &served) {
                reporter.fail(error);
            }
            served
        }
        Some(DaemonCommand::Plugin { what }) => {
            logging::init(LogConfig::default(), var("TOOLD_LOG"), None)?.without_file();
            author(&what, places)
        }
        Some(DaemonCommand::Config { what }) => configuration(what, places),
        #[cfg(target_os = "linux")]
        Some(DaemonCommand::AllowNamespaces { remove }) => {
            let done = if remove { installed::remove() } else { installed::install() };
            done.map(|()| ExitCode::SUCCESS).map_err(anyhow::Error::msg)
        }
        #[cfg(feature = "fleet")]
        Some(DaemonCommand::FleetKey { key_use, file, create }) => {
            fleet_key::print(key_use, &file, create)?;
            Ok(ExitCode::SUCCESS)
        }
        Some(DaemonCommand::Man { folder }) => manual(&folder),
        None if cli.stdio => {
            refuse_below_a_daemon()?;
            raise_open_files();
            let options = options(places()?, cli.sources, None)?;
            let log = start_logging(&options, var("TOOLD_LOG"))?;
            log.without_file();
            run_to_the_end(serve::serve_stdio(options, log).boxed_local())
        }
        None => {
            <Cli as clap::CommandFactory>::command().print_help()?;
            Ok(ExitCode::from(2))
        }
    }
}

fn start_logging(options: &Options, filter: Option<String>) -> anyhow::Result<Logging> {
    let config = config::load(options).config;
    let unused: Vec<_> = unused_sections(&config).collect();
    // If the other daemon cannot be examined, it serves all the same.
    let (traces, problem) = match Traces::new(&config.trace) {
        Ok(traces) => (traces, None),
        Err(error) => (None, Some(error)),
    };
    let log = logging::init(config.log, filter, traces)?;
    if let Some(error) = problem {
        tracing::error!("calls are not traced: {error:#}");
    }
    for (_, why) in unused {
        tracing::warn!("{why}");
    }
    Ok(log)
}

/// A tool that starts a daemon of its own could answer its own asks there, and both share one database.
fn refuse_below_a_daemon() -> anyhow::Result<()> {
    anyhow::ensure!(
        !toold::peer::is_below_a_daemon(),
        "a process that a tool started can't start a daemon: use the running one at $TOOLD_SOCKET"
    );
    if let Some(limit) = tool_mark::of_this_process() {
        let least = tool_mark::HIGHEST + 1;
        anyhow::bail!(
            "a process that a tool started can't start a daemon. The hard limit of POSIX message queues (ulimit -Hq) is {limit} \
             bytes here, and a limit below {least} is the mark of such processes; if no tool started this shell, \
             raise the limit"
        );
    }
    Ok(())
}

fn author(what: &PluginCommand, places: impl Fn() -> anyhow::Result<DaemonPaths>) -> anyhow::Result<ExitCode> {
    let good = match what {
        PluginCommand::Test { path, output } => {
            runtime()?.block_on(toold::config::plugin_command::test(path, output).boxed_local())?
        }
        PluginCommand::Check { path } => {
            let options =
                options(places()?, ConfigSources { config: None, set: Vec::new(), plugins: Vec::new() }, None)?;
            runtime()?.block_on(toold::config::plugin_command::check(path, &options).boxed_local())?
        }
        PluginCommand::Repl { path } => runtime()?.block_on(toold::config::plugin_command::repl(path).boxed_local())?,
        PluginCommand::Digest { paths } => toold::config::plugin_command::digest(paths).map(|()| true)?,
    };
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn configuration(what: ConfigCommand, places: impl Fn() -> anyhow::Result<DaemonPaths>) -> anyhow::Result<ExitCode> {
    match what {
        ConfigCommand::Check { file, json, sources } => {
            let good = command::check(&options(places()?, sources, None)?, file, json)?;
            return Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE });
        }
        ConfigCommand::Path { sources } => command::print_path(&options(places()?, sources, None)?)?,
        ConfigCommand::Schema => command::print_schema()?,
    }
    Ok(ExitCode::SUCCESS)
}

fn options(places: DaemonPaths, sources: ConfigSources, socket: Option<&Path>) -> anyhow::Result<Options> {
    let absolute = |path: PathBuf| std::path::absolute(&path).with_context(|| format!("can't use {}", path.display()));
    Ok(Options {
        paths: places,
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

/// The time after which most of the code that only the start runs has run.
const STARTED: Duration = Duration::from_secs(2);
/// How often it is seen whether the process rests: it has used less than a hundredth of a processor since.
const REST: Duration = Duration::from_secs(10);
/// Code that stays in memory at rest, in bytes.
const RESIDENT_CODE: u64 = 12 << 20;

/// Returns the memory of code that has run after the start, and whenever the process rests after work.
async fn return_code_at_rest() {
    tokio::time::sleep(STARTED).await;
    allocator::return_code();
    let mut used = processor_time();
    loop {
        tokio::time::sleep(REST).await;
        let before = std::mem::replace(&mut used, processor_time());
        let rests = used.saturating_sub(before) < REST / 100;
        if rests && resident_file_bytes().is_some_and(|bytes| bytes > RESIDENT_CODE) {
            allocator::return_code();
        }
    }
}

/// The processor time that this process has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.try_into().unwrap_or_default()
}

/// Threads that wait for an unresponsive file system are not waited for. Takes a box, or the daemon's code would be
/// compiled for each kind of runtime.
fn run_to_the_end(serving: LocalBoxFuture<'_, anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    stop_deadline::after_signals(DRAIN).context("can't wait for signals")?;
    let runtime = runtime()?;
    runtime.spawn(return_code_at_rest());
    let ended = runtime.block_on(serving);
    runtime.shutdown_background();
    ended
}

fn manual(folder: &Path) -> anyhow::Result<ExitCode> {
    std::fs::create_dir_all(folder).with_context(|| format!("can't make {}", folder.display()))?;
    let command = <Cli as clap::CommandFactory>::command();
    clap_mangen::generate_to(command, folder).with_context(|| format!("can't write to {}", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// The fewest descriptors with which a client is served.
const LEAST_OPEN_FILES: u64 = 44;

/// With fewer, the daemon would serve nobody, and not say why.
fn require_open_files() -> anyhow::Result<()> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit.filter(|limit| *limit < LEAST_OPEN_FILES) {
        None => Ok(()),
        Some(limit) => anyhow::bail!(
            "the limit of open files is {limit}, and toold needs {LEAST_OPEN_FILES} at least: raise it with `ulimit -n 1024`"
        ),
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
