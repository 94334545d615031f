//! `toolctl plugins profile`: a flame graph of a plugin at work.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use toold_proto::method::PluginsProfile;
use toold_proto::plugin_profile::{PluginProfile, ProfilePlugin};

use crate::connection;
use crate::exit::OK;
use crate::flame_graph::flame_graph;
use crate::globals::Globals;
use crate::output::{self, DIM, one_line, print_json};

/// How many functions are printed.
const MOST: usize = 10;

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    /// The name of the plugin
    name: String,
    /// For how long
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=600))]
    seconds: u32,
    /// The file for the flame graph; NAME.svg when absent
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) async fn profile(args: &ProfileArgs, json: bool, globals: &Globals) -> anyhow::Result<u8> {
    let ProfileArgs { name, seconds, out } = args;
    let client = connection::open(globals).await?;
    if !json {
        writeln!(output::stderr(), "recording {} for {seconds} s: call its tools meanwhile", one_line(name))?;
    }
    let profile = client.call::<PluginsProfile>(ProfilePlugin { name: name.clone(), seconds: *seconds }).await?;
    if json && out.is_none() {
        print_json(&profile)?;
        return Ok(OK);
    }
    if profile.stacks.is_empty() {
        writeln!(output::stderr(), "no Lua of {} ran for a millisecond, so there is no graph", one_line(name))?;
        return Ok(OK);
    }
    let file = out.clone().unwrap_or_else(|| format!("{name}.svg").into());
    let time = Duration::from_micros(profile.total_us);
    let title = format!("{name}: {time:.1?} of Lua in {seconds} s");
    let stacks = profile.stacks.iter().map(|stack| (stack.frames.as_slice(), stack.us));
    std::fs::write(&file, flame_graph(&title, stacks)).with_context(|| format!("can't write {}", file.display()))?;
    if json {
        print_json(&profile)?;
        return Ok(OK);
    }
    let mut out = output::stdout();
    for (function, us) in longest(&profile).into_iter().take(MOST) {
        let percent = us as f64 * 100.0 / profile.total_us.max(1) as f64;
        writeln!(out, "{percent:5.1} %  {:>9.1?}  {}", Duration::from_micros(us), one_line(&function))?;
    }
    writeln!(out, "{DIM}{} of Lua in {seconds} s:{DIM:#} {}", format_args!("{time:.1?}"), file.display())?;
    out.flush()?;
    Ok(OK)
}

/// The functions, by the time that they ran themselves.
fn longest(profile: &PluginProfile) -> Vec<(String, u64)> {
    let mut own = BTreeMap::<&str, u64>::new();
    for stack in &profile.stacks {
        *own.entry(stack.frames.last().map_or("host", String::as_str)).or_default() += stack.us;
    }
    let mut own: Vec<(String, u64)> = own.into_iter().map(|(name, us)| (name.to_owned(), us)).collect();
    own.sort_by_key(|(_, us)| std::cmp::Reverse(*us));
    own
}
