//! Plugins of projects: only trusted content runs, and only sessions of the project see it.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Map, Value, json};
use toold_engine::registry::SourceScope;
use toold_lua::plugin::content::{Content, ContentDigest, ContentTrust};
use toold_lua::reload::options::{DirKind, PluginDir};
use toold_proto::plugin::PluginStatus;

use crate::world::{TestPlugins, soon, write};

/// Trusts the content that is listed here, by digest.
#[derive(Default)]
struct TrustingPerson(Mutex<HashSet<(PathBuf, ContentDigest)>>);

impl TrustingPerson {
    fn trusts(&self, plugin: &Path) {
        let digest = Content::read(plugin).unwrap().digest;
        self.0.lock().unwrap().insert((plugin.to_owned(), digest));
    }
}

impl ContentTrust for TrustingPerson {
    fn is_trusted(&self, plugin: &Path, digest: &ContentDigest) -> bool {
        self.0.lock().unwrap().contains(&(plugin.to_owned(), *digest))
    }
}

/// Answers the first question only when the test allows it.
struct Hesitant {
    person: TrustingPerson,
    asked: Mutex<Option<Sender<()>>>,
    go_on: Mutex<Receiver<()>>,
}

impl ContentTrust for Hesitant {
    fn is_trusted(&self, plugin: &Path, digest: &ContentDigest) -> bool {
        let trusted = self.person.is_trusted(plugin, digest);
        if let Some(asked) = self.asked.lock().unwrap().take() {
            asked.send(()).unwrap();
            self.go_on.lock().unwrap().recv().unwrap();
        }
        trusted
    }
}

fn says(tool: &str, text: &str) -> String {
    format!(
        "hygge.register_tool{{name = '{tool}', permission = false, parallelizable = true, \
         execute = function() return '{text}' end}}\n"
    )
}

struct ProjectFolder {
    world: TestPlugins,
    person: Arc<TrustingPerson>,
    root: PathBuf,
}

impl ProjectFolder {
    /// A user's plugins, and a project's, in `.toold/plugins`.
    async fn new(users: &[(&str, &str)], files: &[(&str, &str)]) -> Self {
        Self::with(users, files, |_| ()).await
    }

    /// The same, after `change` prepared the folder, before the host scans it.
    async fn with(users: &[(&str, &str)], files: &[(&str, &str)], change: impl FnOnce(&Self)) -> Self {
        let person = Arc::<TrustingPerson>::default();
        let trust = person.clone();
        let world = TestPlugins::with(users, |options| options.trust = trust).await;
        let root = world.work().to_owned();
        let project = Self { world, person, root };
        for (name, text) in files {
            write(&project.plugin(name), text);
        }
        change(&project);
        project.open().await;
        project
    }

    fn plugin(&self, name: &str) -> PathBuf {
        self.root.join(".toold/plugins").join(name)
    }

    async fn open(&self) {
        let (path, project) = (self.root.join(".toold/plugins"), self.root.clone());
        self.world.host.update_settings(|settings| {
            settings.dirs.push(PluginDir { path, kind: DirKind::Project { project } });
        });
        soon(self.world.host.settled()).await;
    }

    /// Trusts the current content.
    async fn trust(&self, name: &str) {
        self.person.trusts(&self.plugin(name));
        self.world.host.update_settings(|_| ());
        soon(self.world.host.settled()).await;
    }

    fn status(&self, name: &str) -> PluginStatus {
        self.world.plugin(name).status
    }

    fn sees(&self, project: &Path, tool: &str) -> bool {
        self.world.engine.registry.snapshot().view(project).find(tool).is_some()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_untrusted_plugin_is_listed_and_does_not_run() {
    let loud = "error('it runs')";
    let project = ProjectFolder::new(&[], &[("p.lua", loud)]).await;
    let plugin = project.world.plugin("p");
    assert_eq!((plugin.status, plugin.error), (PluginStatus::Untrusted, None));
    assert_eq!(plugin.project, Some(project.root.display().to_string()));
}

#[tokio::test(flavor = "multi_thread")]
async fn plugin_trusted_during_its_first_scan_serves() {
    let ((asks, asked), (goes_on, go_on)) = (channel(), channel());
    let hesitant = Arc::new(Hesitant {
        person: TrustingPerson::default(),
        asked: Mutex::new(Some(asks)),
        go_on: Mutex::new(go_on),
    });
    let trust = hesitant.clone();
    let world = TestPlugins::with(&[], |options| options.trust = trust).await;
    let project = world.work().to_owned();
    let path = project.join(".toold/plugins");
    write(&path.join("p.lua"), &says("t", "v1"));
    let plugin = path.join("p.lua");
    world.host.update_settings(|settings| settings.dirs.push(PluginDir { path, kind: DirKind::Project { project } }));
    tokio::task::spawn_blocking(move || asked.recv().unwrap()).await.unwrap();
    hesitant.person.trusts(&plugin);
    world.host.update_settings(|_| ());
    // Once this is answered, the settings have been applied or are next.
    assert!(world.host.reload(Some("nothing")).await.is_err());
    goes_on.send(()).unwrap();
    soon(world.host.settled()).await;
    assert_eq!(world.text("t", json!({})).await, "v1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trusted_plugin_serves_sessions_of_its_project_alone() {
    let hook = "hygge.register_hook('pre_tool', function() return {decision = 'deny', reason = 'mine'} end)\n";
    let script = says("here", "yes") + hook;
    let project = ProjectFolder::new(&[("u.lua", &says("other", "x"))], &[("p.lua", &script)]).await;
    project.trust("p.lua").await;
    assert_eq!(project.status("p"), PluginStatus::Loaded);
    assert!(project.sees(&project.root, "here") && !project.sees(Path::new("/elsewhere"), "here"));
    assert!(project.world.call("other", json!({})).await.text().contains("mine"));
    let elsewhere = project.world.session.project().parent().unwrap().to_owned();
    let hooks = project.world.engine.hooks.snapshot();
    assert_eq!(hooks[0].spec().source.scope, SourceScope::Project(project.root.clone()));
    assert!(!project.sees(&elsewhere, "here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_waits_for_a_person_while_the_trusted_version_serves() {
    let project = ProjectFolder::new(&[], &[("p.lua", &says("t", "v1"))]).await;
    project.trust("p.lua").await;
    write(&project.plugin("p.lua"), &says("t", "v2"));
    project.world.until(|_| project.status("p") == PluginStatus::Untrusted).await;
    assert_eq!(project.world.text("t", json!({})).await, "v1");
    assert_eq!(project.world.plugin("p").tools, ["t"]);
    project.trust("p.lua").await;
    assert_eq!((project.status("p"), project.world.text("t", json!({})).await), (PluginStatus::Loaded, "v2".into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_that_changed_is_not_run_by_the_version_that_was_trusted() {
    let main = "hygge.register_tool{name = 't', permission = false, execute = function(ctx, input) \
                return require(input.module) end}\n";
    let files = [("p/plugin.lua", main), ("p/m.lua", "return 'trusted'"), ("p/n.lua", "return 'also'")];
    let project = ProjectFolder::new(&[], &files).await;
    project.trust("p").await;
    write(&project.plugin("p/m.lua"), "return 'another'");
    write(&project.plugin("p/new.lua"), "return 'new'");
    project.world.until(|_| project.status("p") == PluginStatus::Untrusted).await;
    assert_eq!(project.world.text("t", json!({"module": "m"})).await, "trusted");
    assert_eq!(project.world.text("t", json!({"module": "n"})).await, "also");
    let refused = project.world.call("t", json!({"module": "new"})).await;
    assert!(
        refused.is_error && refused.text().contains("not part of this version of the plugin"),
        "{}",
        refused.text()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn names_belong_to_the_user_before_the_project() {
    let users = [("same.lua", says("mine", "user")), ("b.lua", says("taken", "user"))];
    let users: Vec<(&str, &str)> = users.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let files = [("same.lua", says("theirs", "project")), ("c.lua", says("taken", "project"))];
    let files: Vec<(&str, &str)> = files.iter().map(|(name, text)| (*name, text.as_str())).collect();
    let project = ProjectFolder::new(&users, &files).await;
    for name in ["same.lua", "c.lua"] {
        project.trust(name).await;
    }
    let list = project.world.host.list();
    let of_project = |name: &str| list.iter().find(|p| p.name == name && p.project.is_some()).unwrap().clone();
    assert_eq!(of_project("same").status, PluginStatus::Shadowed);
    assert!(of_project("c").error.unwrap().message.contains("taken"));
    assert_eq!(project.world.text("taken", json!({})).await, "user");
    // The other way round: a later plugin with higher precedence takes over the name.
    fs::remove_file(project.world.plugins.join("same.lua")).unwrap();
    project.world.until(|_| project.sees(&project.root, "theirs")).await;
    project.world.write("same.lua", &says("mine", "user"));
    project.world.until(|_| !project.sees(&project.root, "theirs") && project.sees(&project.root, "mine")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_is_no_longer_wanted_goes_out_of_service() {
    let project = ProjectFolder::new(&[], &[("p.lua", &says("t", "v1"))]).await;
    project.trust("p.lua").await;
    project.world.host.update_settings(|settings| settings.dirs.truncate(1));
    soon(project.world.host.settled()).await;
    assert!(!project.sees(&project.root, "t") && project.world.host.list().is_empty());
    project.open().await;
    assert_eq!(project.world.text("t", json!({})).await, "v1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_switch_and_a_table_count_at_once_and_are_the_projects_own() {
    let script = "hygge.register_tool{name = hygge.config.tool or 'plain', permission = false, \
                  execute = function() return '' end}\n";
    let project = ProjectFolder::new(&[], &[("p.lua", script)]).await;
    project.trust("p.lua").await;
    let scope = SourceScope::Project(project.root.clone());
    let table = |tool: &str| Map::from_iter([("p".to_owned(), json!({"tool": tool}) as Value)]);
    let arrange = async |change: &dyn Fn(&mut toold_lua::reload::options::PluginSettings)| {
        project.world.host.update_settings(change);
        soon(project.world.host.settled()).await;
    };
    arrange(&|all| _ = all.tables.insert(SourceScope::Global, table("users"))).await;
    assert!(project.sees(&project.root, "plain"));
    arrange(&|all| _ = all.tables.insert(scope.clone(), table("projects"))).await;
    assert!(project.sees(&project.root, "projects") && !project.sees(&project.root, "plain"));
    arrange(&|all| _ = all.disabled.insert((SourceScope::Global, "p".into()))).await;
    assert_eq!(project.status("p"), PluginStatus::Loaded);
    arrange(&|all| _ = all.disabled.insert((scope.clone(), "p".into()))).await;
    assert_eq!(project.status("p"), PluginStatus::Disabled);
    arrange(&|all| all.disabled.clear()).await;
    assert_eq!(project.status("p"), PluginStatus::Loaded);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_one_name_the_users_comes_first_then_the_bundled_then_the_projects() {
    let project = ProjectFolder::new(&[("p.lua", &says("users", "x"))], &[("p.lua", &says("projects", "x"))]).await;
    project.trust("p.lua").await;
    let shipped = project.world.root.path().join("shipped");
    write(&shipped.join("p.lua"), &says("shipped", "x"));
    project.world.host.update_settings(|settings| {
        settings.dirs.push(PluginDir { path: shipped, kind: DirKind::Bundled });
        settings.enabled.insert("p".to_owned());
    });
    soon(project.world.host.settled()).await;
    let tools = || {
        let snapshot = project.world.engine.registry.snapshot();
        let view = snapshot.view(&project.root);
        view.iter().map(|tool| tool.spec().name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(tools(), ["users"]);
    fs::remove_file(project.world.plugins.join("p.lua")).unwrap();
    project.world.until(|_| tools() == ["shipped"]).await;
    project.world.host.update_settings(|settings| _ = settings.enabled.remove("p"));
    project.world.until(|_| tools() == ["projects"]).await;
}

/// A repository can hold links to any place: nothing of those files is revealed, and their content makes no difference.
#[tokio::test(flavor = "multi_thread")]
async fn links_out_of_a_projects_plugin_are_not_followed() {
    let mut lists = Vec::new();
    for secret in ["TOKEN=abc = = x", "name = \"other\""] {
        let project = ProjectFolder::with(&[], &[("f/plugin.lua", ""), ("g/lib.lua", "")], |project| {
            write(&project.root.join("../secret"), secret);
            symlink("../../../../secret", project.plugin("f/plugin.toml")).unwrap();
            symlink("../../../../secret", project.plugin("g/plugin.lua")).unwrap();
            symlink("../../../secret", project.plugin("p.lua")).unwrap();
        });
        let project = project.await;
        for name in ["f", "g", "p.lua"] {
            project.trust(name).await;
        }
        for name in ["f", "g", "p"] {
            let plugin = project.world.plugin(name);
            assert_eq!(plugin.status, PluginStatus::Failed, "{name}");
            assert!(plugin.error.unwrap().message.contains("is a link to a file outside the plugin"));
        }
        let list = serde_json::to_string(&project.world.host.list()).unwrap();
        assert!(!list.contains("TOKEN"), "{list}");
        lists.push(list.replace(project.world.root.path().to_str().unwrap(), "TOP"));
    }
    assert_eq!(lists[0], lists[1]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_projects_plugin_folder_that_is_a_link_out_of_it_has_no_plugins() {
    let project = ProjectFolder::with(&[], &[], |project| {
        write(&project.root.join("../private/p.lua"), &says("p", "x"));
        fs::create_dir(project.root.join(".toold")).unwrap();
        symlink("../../private", project.root.join(".toold/plugins")).unwrap();
    });
    assert!(project.await.world.host.list().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn links_within_a_project_and_within_its_plugin_are_followed() {
    let files = [("f/plugin.lua", "require('linked')"), ("f/lib.lua", &says("f", "x"))];
    let project = ProjectFolder::with(&[], &files, |project| {
        write(&project.root.join("tools/p.lua"), &says("p", "y"));
        symlink("lib.lua", project.plugin("f/linked.lua")).unwrap();
        symlink("../../tools/p.lua", project.plugin("p.lua")).unwrap();
    });
    let project = project.await;
    for name in ["f", "p.lua"] {
        project.trust(name).await;
    }
    for name in ["f", "p"] {
        assert_eq!((project.status(name), project.world.plugin(name).error), (PluginStatus::Loaded, None));
    }
}
