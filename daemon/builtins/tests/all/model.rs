//! `read`, `write`, `edit` and taking back, in random order, against a model that is obviously right.

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::json;
use toold_builtins::journal::{Selection, Whose, undo};

use crate::house::House;

#[derive(Clone, Debug)]
enum Step {
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
    /// Somebody else, behind the tools' back.
    Outside(Option<String>),
}

fn step() -> impl Strategy<Value = (u8, Step)> {
    let text = || "[abc\n]{0,8}";
    let step = prop_oneof![
        3 => Just(Step::Read),
        3 => (prop_oneof![Just("overwrite"), Just("create"), Just("append")], text())
            .prop_map(|(mode, content)| Step::Write { mode, content }),
        4 => ("[abc]{0,2}", text(), any::<bool>()).prop_map(|(old, new, all)| Step::Edit { old, new, all }),
        2 => Just(Step::Undo),
        1 => prop::option::of(text()).prop_map(Step::Outside),
    ];
    (0u8..2, step)
}

/// A file, as the model has it.
#[derive(Debug, Default)]
struct File {
    disk: Option<String>,
    seen: Option<String>,
    /// Before and after each change that was not taken back.
    changes: Vec<(Option<String>, String)>,
}

impl File {
    /// Whether the step goes well; the file is then as it makes it.
    fn take(&mut self, step: &Step) -> bool {
        let after = match (step, &self.disk) {
            (Step::Outside(content), _) => {
                self.disk = content.clone();
                return true;
            }
            (Step::Read, disk) => {
                self.seen = disk.clone().or(self.seen.take());
                return disk.is_some();
            }
            (Step::Undo, disk) => {
                let Some((before, after)) = self.changes.last() else { return false };
                if disk.as_ref() != Some(after) {
                    return false;
                }
                self.disk = before.clone();
                self.seen = before.clone();
                self.changes.pop();
                return true;
            }
            (Step::Write { content, .. }, None) => content.clone(),
            (Step::Write { mode: "append", content }, Some(disk)) => format!("{disk}{content}"),
            (Step::Write { mode: "create", .. }, Some(_)) | (Step::Edit { .. }, None) => return false,
            (_, Some(disk)) if self.seen.as_ref() != Some(disk) => return false,
            (Step::Write { content, .. }, Some(_)) => content.clone(),
            (Step::Edit { old, new, all }, Some(disk)) => {
                let count = if old.is_empty() { 0 } else { disk.matches(old.as_str()).count() };
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

async fn make(house: &House, path: &str, step: &Step) -> bool {
    let result = match step {
        Step::Read => house.call("read", json!({"path": path})).await,
        Step::Write { mode, content } => {
            house.call("write", json!({"path": path, "content": content, "mode": mode})).await
        }
        Step::Edit { old, new, all } => {
            house.call("edit", json!({"path": path, "old": old, "new": new, "replace_all": all})).await
        }
        Step::Undo => {
            let selection = Selection::Path(house.root.join(path));
            return undo(&house.shared, &house.session, Whose::Everybody, &selection).await.is_ok();
        }
        Step::Outside(content) => {
            let path = house.root.join(path);
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
            let house = House::new();
            let mut files: HashMap<u8, File> = HashMap::new();
            for (index, (file, step)) in steps.iter().enumerate() {
                let path = format!("f{file}");
                let model = files.entry(*file).or_default();
                let expected = model.take(step);
                let made = make(&house, &path, step).await;
                prop_assert_eq!(made, expected, "step {}: {:?} of {:?}", index, step, model);
                let disk = std::fs::read_to_string(house.root.join(&path)).ok();
                prop_assert_eq!(&disk, &model.disk, "step {}: {:?}", index, step);
            }
            Ok(())
        })?;
    }
}
