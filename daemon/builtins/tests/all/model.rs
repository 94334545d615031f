//! `read`, `write`, `edit` and undo in random order, compared with a model that is obviously right.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;
use toold_builtins::journal::{JournalScope, Selection};
use toold_builtins::undo::undo;

use crate::builtin_test::BuiltinTest;

#[derive(Clone, Debug)]
enum ModelStep {
    Read,
    Write {
        mode: &'static str,
        content: String,
    },
    Edit {
        old: String,
        new: String,
        all: bool,
    },
    Undo,
    /// Another program changes the file, unknown to the tools.
    Outside(Option<String>),
}

fn step() -> impl Strategy<Value = (u8, ModelStep)> {
    let text = || "[abc\n]{0,8}";
    let step = prop_oneof![
        3 => Just(ModelStep::Read),
        3 => (prop_oneof![Just("overwrite"), Just("create"), Just("append")], text())
            .prop_map(|(mode, content)| ModelStep::Write { mode, content }),
        4 => ("[abc]{0,2}", text(), any::<bool>()).prop_map(|(old, new, all)| ModelStep::Edit { old, new, all }),
        2 => Just(ModelStep::Undo),
        1 => prop::option::of(text()).prop_map(ModelStep::Outside),
    ];
    (0u8..2, step)
}

/// A file in the model.
#[derive(Debug, Default)]
struct ModelFile {
    disk: Option<String>,
    seen: Option<String>,
    /// Contents before and after each change that is not undone.
    changes: Vec<(Option<String>, String)>,
}

impl ModelFile {
    /// Whether the step succeeds; if so, it is applied to the model.
    fn take(&mut self, step: &ModelStep) -> bool {
        let after = match (step, &self.disk) {
            (ModelStep::Outside(content), _) => {
                self.disk = content.clone();
                return true;
            }
            (ModelStep::Read, disk) => {
                self.seen = disk.clone().or(self.seen.take());
                return disk.is_some();
            }
            (ModelStep::Undo, disk) => {
                let Some((before, after)) = self.changes.last() else { return false };
                // What is as before counts as undone.
                if disk.as_ref() != Some(after) && disk != before {
                    return false;
                }
                self.disk = before.clone();
                self.seen = before.clone();
                self.changes.pop();
                return true;
            }
            (ModelStep::Write { content, .. }, None) => content.clone(),
            (ModelStep::Write { mode: "append", content }, Some(disk)) => format!("{disk}{content}"),
            (ModelStep::Write { mode: "create", .. }, Some(_)) | (ModelStep::Edit { .. }, None) => return false,
            (_, Some(disk)) if self.seen.as_ref() != Some(disk) => return false,
            (ModelStep::Write { content, .. }, Some(_)) => content.clone(),
            (ModelStep::Edit { old, new, all }, Some(disk)) => {
                // Places that overlap are as ambiguous as others.
                let begins_here = |(at, _): &(usize, char)| disk[*at..].starts_with(old.as_str());
                let count = if old.is_empty() { 0 } else { disk.char_indices().filter(begins_here).count() };
                if old == new || count == 0 || (count > 1 && !all) {
                    return false;
                }
                disk.replace(old.as_str(), new)
            }
        };
        if self.disk.as_ref() != Some(&after) {
            self.changes.push((self.disk.clone(), after.clone()));
            self.seen = Some(after.clone());
            self.disk = Some(after);
        }
        true
    }
}

async fn make(test: &BuiltinTest, path: &str, step: &ModelStep) -> bool {
    let result = match step {
        ModelStep::Read => test.call("read", json!({"path": path})).await,
        ModelStep::Write { mode, content } => {
            test.call("write", json!({"path": path, "content": content, "mode": mode})).await
        }
        ModelStep::Edit { old, new, all } => {
            test.call("edit", json!({"path": path, "old": old, "new": new, "replace_all": all})).await
        }
        ModelStep::Undo => {
            let selection = Selection::Path(test.root.join(path));
            return undo(&test.toolkit, &test.session, JournalScope::Everybody, &selection).await.is_ok();
        }
        ModelStep::Outside(content) => {
            let path = test.root.join(path);
            match content {
                Some(content) => std::fs::write(path, content).unwrap(),
                None => drop(std::fs::remove_file(path)),
            }
            return true;
        }
    };
    !result.is_error
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn files_are_as_the_model_says(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let test = BuiltinTest::new();
            let mut files: HashMap<u8, ModelFile> = HashMap::new();
            for (index, (file, step)) in steps.iter().enumerate() {
                let path = format!("f{file}");
                let model = files.entry(*file).or_default();
                let expected = model.take(step);
                let made = make(&test, &path, step).await;
                prop_assert_eq!(made, expected, "step {}: {:?} of {:?}", index, step, model);
                let disk = std::fs::read_to_string(test.root.join(&path)).ok();
                prop_assert_eq!(&disk, &model.disk, "step {}: {:?}", index, step);
            }
            Ok(())
        })?;
    }
}
