//! What must hold of any plugin: driven by proptest, by fuzzers and by kept corpora.

use std::path::{Component, Path};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Runtime;
use toold_engine::Engine;
use toold_engine::call::{Call, Principal};
use toold_engine::execute::execute;
use toold_engine::tool::Origin;
use toold_proto::session::Mode;

use crate::plugin::manifest::{Manifest, ManifestError};
use crate::plugin::prepared::PreparedPlugin;
use crate::plugin::version_files::VersionFiles;
use crate::plugin::{PluginPlace, PluginVersion};
use crate::reload::load::{LoadOptions, LoadedScript, load_with};
use crate::reload::options::StandaloneOptions;
use crate::reload::standalone;

/// Loads and calls are stopped after this, so that an input that loops costs no more.
const LIMIT: Duration = Duration::from_millis(200);

/// Takes any bytes as a folder's `plugin.toml`; panics when what is read of it is not what a plugin may be, or a
/// mistake's line is none of the file's.
#[doc(hidden)]
pub fn fuzz_manifest(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    match Manifest::of_text(folder, Some(text)) {
        Ok(manifest) => {
            assert!((1..=64).contains(&manifest.name.len()), "{:?}", manifest.name);
            let mut within = manifest.entry.strip_prefix(folder).expect("it is in the folder").components();
            assert!(within.all(|part| matches!(part, Component::Normal(_))), "{}", manifest.entry.display());
            assert!(manifest.memory.is_none_or(|memory| (1 << 20..=4 << 30).contains(&memory)));
            assert!(manifest.capabilities.is_none() || text.contains("toold"), "{text:?}");
        }
        Err(ManifestError::Toml { line, .. }) => {
            assert!(
                line.is_none_or(|line| (1..=1 + text.matches('\n').count()).contains(&(line as usize))),
                "{text:?}"
            );
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Takes any bytes as a plugin's script, loads it and calls each tool that it registers, with no client to allow
/// anything; panics when a script can make the host panic. One that could make it wait for ever would be found by the
/// fuzzer's own time limit.
#[doc(hidden)]
pub fn fuzz_source(data: &[u8]) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    let runtime = RUNTIME.get_or_init(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        runtime.expect("the system gives threads")
    });
    let engine = Arc::new(Engine::new("fuzz"));
    let plugin = plugin_of(data, &engine);
    let _inside = runtime.enter();
    let (Ok(LoadedScript { loaded, registered, .. }), _) =
        load_with(&plugin, &LoadOptions { lenient: true, ..LoadOptions::default() })
    else {
        return;
    };
    let names: Vec<String> = registered.tools.iter().map(|(spec, _)| spec.name.to_string()).collect();
    let prepared = PreparedPlugin::new(plugin, Some(loaded), registered.as_data(), false);
    engine.hooks.replace(&prepared.key, prepared.hooks);
    if engine.registry.put(prepared.key, Origin::UserPlugin, prepared.tools).is_err() {
        return;
    }
    for name in names.into_iter().take(3) {
        // Whether it fails is the script's affair.
        let _ = runtime.block_on(execute(&engine, call_of(name)));
    }
}

fn plugin_of(script: &[u8], engine: &Arc<Engine>) -> Arc<PluginVersion> {
    let shared =
        standalone::shared(engine.clone(), LIMIT, StandaloneOptions::default()).expect("the system gives threads");
    let path = Path::new("/nowhere/fuzzed.lua");
    let manifest = Manifest::of_file(path).expect("letters are a name");
    let place = PluginPlace::of_user(path.to_owned());
    PluginVersion::new(place, (manifest, script.into()), blake3::hash(script), VersionFiles::default(), shared)
}

fn call_of(name: String) -> Call {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Nothing is written or run, whatever a script says.
    let session = standalone::session_in("fuzz", folder, Mode::Plan);
    standalone::call_in(session, Principal::Agent, name, LIMIT)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{fuzz_manifest, fuzz_source};

    const MANIFEST: &[&str] = &[
        "api = \"toold\"\n",
        "name = ",
        "entrypoint = ",
        "\"Cargo.toml\"\n",
        "\"../lua/src\"\n",
        "\"x\"\n",
        "[capabilities]\n",
        "exec = true\n",
        "[limits]\n",
        "memory_mib = ",
        "9223372036854775807\n",
        "-1\n",
        "\n",
        "\r\n",
        "=",
        "[",
        "\"\"\"",
    ];

    const SCRIPT: &[&str] = &[
        "hygge.register_tool{name=\"t\",description=\"d\",input_schema={type=\"object\"},execute=function(ctx, input) ",
        "hygge.register_hook(",
        "hygge.json.decode(",
        "hygge.fs.read(",
        "ctx.progress(",
        "string.format(",
        "table.move(",
        "pcall(",
        "error(",
        "setmetatable({}, {",
        "function() ",
        "while true do ",
        " end",
        "}",
        ")",
        "{",
        ", ",
        "__index = ",
        "\"%99d%s\"",
        "\"t\"",
        "1e308",
        "-1",
        "nil",
        "ctx",
        "return ",
        "local x = ",
        "x",
        "\n",
        "\0",
        "\u{fffd}",
    ];

    /// Few scripts, since each gets a Lua state of its own.
    fn config(cases: u32) -> ProptestConfig {
        ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
    }

    #[test]
    fn manifests_are_read_or_refused() {
        proptest!(config(500), |(words in prop::collection::vec(prop::sample::select(MANIFEST), 0..16))| {
            fuzz_manifest(words.concat().as_bytes());
        });
    }

    #[test]
    fn scripts_cannot_crash_the_host() {
        proptest!(config(100), |(words in prop::collection::vec(prop::sample::select(SCRIPT), 0..16))| {
            fuzz_source(words.concat().as_bytes());
        });
    }
}
