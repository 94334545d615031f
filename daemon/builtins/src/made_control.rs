//! Files that a confined command made and that run code later, or that a rule keeps from being written. A person is asked
//! about each, and those that nobody allows stay set aside.

use toold_engine::cx::Cx;
use toold_engine::tool::ToolOutput;
use toold_host::exclude::Exclusions;
use toold_host::file_needs::write_need;
use toold_host::sandbox::control_watch::{ControlWatch, SetAside};

/// A person is asked about so many. Of more, none is put back.
const MAX_ASKED: usize = 8;

/// What is set aside after a command.
#[derive(Default)]
pub(crate) struct MadeControl {
    aside: Vec<SetAside>,
    /// Why the session's folders could not be looked at.
    failed: Option<String>,
}

impl MadeControl {
    /// Sets aside what the command made, without asking.
    pub(crate) async fn of(watch: ControlWatch) -> Self {
        match tokio::task::spawn_blocking(move || watch.settle()).await {
            Ok(Ok(aside)) => Self { aside, failed: None },
            Ok(Err(why)) => Self { aside: Vec::new(), failed: Some(why) },
            // The runtime stops.
            Err(_) => Self::default(),
        }
    }

    /// Asks about each, and puts back what is allowed.
    pub(crate) async fn ask(mut self, cx: &Cx) -> Self {
        if self.aside.len() > MAX_ASKED {
            return self;
        }
        let mut left = Vec::new();
        for file in self.aside {
            let why = format!("a confined command made it, and it {}; until then it is set aside", file.reason());
            let mut need = write_need(&file.path, &mut Exclusions::default()).because(why);
            // The settings of a repository without `.git` are files like others by their names.
            let is_protected = cx.engine.policy.load().protected_write(cx.session.project(), &need).is_some();
            need.always_asked = !file.by_rule && !is_protected;
            if cx.require(need).await.is_err() || file.put_back().is_err() {
                left.push(file);
            }
        }
        self.aside = left;
        self
    }

    /// Sentences for people and models.
    pub(crate) fn words(&self) -> impl Iterator<Item = String> {
        self.aside.iter().map(SetAside::words).chain(self.failed.clone())
    }

    pub(crate) fn add_to(&self, output: ToolOutput) -> ToolOutput {
        if self.aside.is_empty() {
            return output;
        }
        let paths: Vec<String> = self.aside.iter().map(|file| file.path.to_string_lossy().into_owned()).collect();
        output.with("set_aside", paths)
    }
}
