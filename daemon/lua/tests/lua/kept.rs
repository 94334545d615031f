//! The last good version of a plugin serves when its files are broken at the next start.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::json;
use tempfile::TempDir;
use toold_lua::plugin::content::{Content, ContentDigest, ContentTrust};
use toold_lua::plugin::kept_versions::KeptVersions;
use toold_lua::reload::options::{DirKind, PluginDir, PluginHostOptions};
use toold_proto::plugin::PluginStatus;

use crate::world::{TestPlugins, write};

const BROKEN: &str = "local = 1";

fn tool(name: &str, version: &str) -> String {
    format!("hygge.register_tool{{name = '{name}', permission = false, execute = function() return '{version}' end}}\n")
}

/// Trusts one content.
#[derive(Default)]
struct TrustsOne(Mutex<Option<ContentDigest>>);

impl ContentTrust for TrustsOne {
    fn is_trusted(&self, _: &Path, digest: &ContentDigest) -> bool {
        *self.0.lock().unwrap() == Some(*digest)
    }
}

/// KeptFolders that outlive the daemons that use them.
struct KeptFolders(TempDir);

impl KeptFolders {
    fn new(files: &[(&str, &str)]) -> Self {
        let folders = Self(TempDir::new().unwrap());
        fs::create_dir(folders.plugins()).unwrap();
        files.iter().for_each(|(name, text)| folders.write(name, text));
        folders
    }

    fn root(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }

    fn plugins(&self) -> PathBuf {
        self.root().join("plugins")
    }

    fn write(&self, name: &str, text: &str) {
        write(&self.plugins().join(name), text);
    }

    fn versions(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.root().join("versions")).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    async fn start(&self) -> TestPlugins {
        self.start_with(|_| ()).await
    }

    async fn start_with(&self, change: impl FnOnce(&mut PluginHostOptions)) -> TestPlugins {
        TestPlugins::with(&[], |options| {
            options.dirs[0].path = self.plugins();
            options.kept_versions = Some(KeptVersions { dir: self.root().join("versions") });
            change(options);
        })
        .await
    }

    /// Starts a daemon, and stops it when everything is loaded.
    async fn run(&self) {
        self.start().await.host.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_is_broken_at_the_start_serves_its_last_good_version() {
    let folders = KeptFolders::new(&[
        (
            "f/plugin.lua",
            "local m = require('m')
             hygge.register_tool{name = 'f', execute = function() return m .. require('lib.n') end}",
        ),
        ("f/m.lua", "return 'modules '"),
        ("f/lib/n.lua", "return 'are kept'"),
        ("f/plugin.toml", "name = 'folder'"),
        ("g.lua", &tool("g", "v1")),
    ]);
    let world = folders.start().await;
    let loaded_at = world.plugin("g").loaded_at;
    world.host.stop().await;
    folders.write("g.lua", BROKEN);
    folders.write("f/plugin.toml", "name = ");
    fs::remove_dir_all(folders.plugins().join("f/lib")).unwrap();
    for _ in 0..2 {
        let world = folders.start().await;
        assert_eq!(world.text("g", json!({})).await, "v1");
        assert_eq!(world.text("f", json!({})).await, "modules are kept");
        let (g, f) = (world.plugin("g"), world.plugin("folder"));
        assert_eq!((g.status, g.tools, g.loaded_at), (PluginStatus::Failed, vec!["g".to_owned()], loaded_at.clone()));
        assert_eq!(g.error.unwrap().line, Some(1));
        assert_eq!(f.status, PluginStatus::Failed);
        assert!(f.error.unwrap().file.unwrap().ends_with("plugin.toml"));
        world.host.stop().await;
    }
    let world = folders.start().await;
    folders.write("g.lua", &tool("g", "v2"));
    world.until(|world| world.plugin("g").status == PluginStatus::Loaded).await;
    assert_eq!((world.text("g", json!({})).await.as_str(), world.plugin("g").error), ("v2", None));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_that_was_deleted_disabled_or_shadowed_meanwhile_does_not_come_back() {
    let names = ["deleted.lua", "disabled.lua", "shadowed.lua"];
    let folders = KeptFolders::new(&names.map(|name| (name, "hygge.register_tool{name = 't', execute = print}")));
    for name in names {
        folders.write(name, &tool(&name.replace(".lua", ""), "v1"));
    }
    folders.run().await;
    assert_eq!(folders.versions().len(), 3);
    fs::remove_file(folders.plugins().join("deleted.lua")).unwrap();
    folders.write("disabled.lua", BROKEN);
    folders.write("shadowed.lua", BROKEN);
    let first = folders.root().join("first");
    write(&first.join("shadowed.lua"), &tool("first", "v1"));
    let start = || {
        folders.start_with(|options| {
            options.dirs.insert(0, PluginDir { path: first.clone(), kind: DirKind::User });
            options.disabled.insert("disabled".to_owned());
        })
    };
    let world = start().await;
    assert_eq!(world.tools(), ["first"]);
    assert_eq!(world.plugin("disabled").status, PluginStatus::Disabled);
    // Another plugin in the place of the deleted one.
    folders.write("deleted.lua", BROKEN);
    world.until_failed("deleted").await;
    assert_eq!(world.tools(), ["first"]);
    world.host.stop().await;
    let world = start().await;
    assert_eq!(world.tools(), ["first"]);
    // Deleted while a daemon runs.
    fs::remove_file(first.join("shadowed.lua")).unwrap();
    world.until(|world| world.tools().is_empty()).await;
    world.host.stop().await;
    write(&first.join("shadowed.lua"), BROKEN);
    let world = start().await;
    assert!(!world.tools().contains(&"first".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_version_that_was_damaged_does_not_run() {
    let folders = KeptFolders::new(&[("g.lua", &tool("g", "v1"))]);
    folders.run().await;
    folders.write("g.lua", BROKEN);
    let file = folders.versions().pop().unwrap();
    let whole = fs::read_to_string(&file).unwrap();
    let place = whole.find("\"files\":{\"\":\"").unwrap() + 13;
    let mut other = whole.clone();
    other.replace_range(place..place + 4, "cmV0");
    for damaged in [&other, &whole[..whole.len() / 2], ""] {
        fs::write(&file, damaged).unwrap();
        let world = folders.start().await;
        assert_eq!(world.tools(), [""; 0], "{damaged}");
        assert_eq!(world.plugin("g").status, PluginStatus::Failed);
        world.host.stop().await;
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(folders.start().await.tools(), ["g"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_newest_good_version_is_kept_and_only_for_its_user() {
    let folders = KeptFolders::new(&[("g.lua", &tool("g", "v1"))]);
    let world = folders.start().await;
    for version in ["v2", "v3"] {
        let before = world.revision();
        folders.write("g.lua", &tool("g", version));
        world.until(|world| world.revision() > before).await;
    }
    folders.write("g.lua", BROKEN);
    world.until_failed("g").await;
    world.host.stop().await;
    let files = folders.versions();
    assert_eq!(files.len(), 1, "{files:?}");
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&files[0]), mode(files[0].parent().unwrap())), (0o600, 0o700));
    assert_eq!(folders.start().await.text("g", json!({})).await, "v3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kept_version_of_a_project_serves_only_while_its_content_is_trusted() {
    let folders = KeptFolders::new(&[]);
    let project = folders.root().join("project");
    let plugin = project.join(".toold/plugins/p");
    write(&plugin.join("plugin.lua"), &tool("t", "trusted"));
    let trust = Arc::<TrustsOne>::default();
    let trust_now = || *trust.0.lock().unwrap() = Some(Content::read(&plugin).unwrap().digest);
    trust_now();
    let start = async || {
        let path = project.join(".toold/plugins");
        let kind = DirKind::Project { project: project.clone() };
        let world = folders.start_with(|options| {
            options.trust = trust.clone();
            options.dirs.push(PluginDir { path, kind });
        });
        let world = world.await;
        let snapshot = world.engine.registry.snapshot();
        let serves = snapshot.view(&project).find("t").is_some();
        let plugin = world.host.list().iter().find(|plugin| plugin.name == "p").unwrap().clone();
        world.host.stop().await;
        (plugin.status, serves)
    };
    assert_eq!(start().await, (PluginStatus::Loaded, true));
    // As while a daemon runs, the trusted version serves until a person has reviewed the new one.
    write(&plugin.join("plugin.lua"), &tool("t", "changed"));
    assert_eq!(start().await, (PluginStatus::Untrusted, true));
    write(&plugin.join("plugin.toml"), "name = ");
    assert_eq!(start().await, (PluginStatus::Failed, true));
    // Other content is trusted now, and the old one no longer.
    write(&plugin.join("plugin.toml"), "");
    write(&plugin.join("plugin.lua"), BROKEN);
    trust_now();
    assert_eq!(start().await, (PluginStatus::Failed, false));
    *trust.0.lock().unwrap() = None;
    assert_eq!(start().await, (PluginStatus::Untrusted, false));
}
