//! Calls that a session makes again with the same result, so that a model that goes round in circles can stop.

use std::hash::{DefaultHasher, Hash, Hasher};

use parking_lot::Mutex;
use serde_json::Value;
use toold_proto::tool::Block;

use crate::cx::Cx;
use crate::tool::ToolOutput;

/// The last call of a session, kept in one of its slots.
#[derive(Default)]
struct LastCall(Mutex<CallCount>);

/// How often in a row a call was made with one result. Tool, arguments and result are kept as one number each.
#[derive(Default)]
struct CallCount {
    call: u64,
    result: u64,
    times: u64,
}

/// A number for a call of this tool with these arguments, whatever the order of their members.
pub(crate) fn number_of(tool: &str, arguments: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    tool.hash(&mut hasher);
    arguments.hash(&mut hasher);
    hasher.finish()
}

/// Counts a call that ends with this output, before the output is cut: a cut one names a file of its call. Returns how
/// often in a row the session has made the call and got this output.
pub(crate) fn count_repeat(cx: &Cx, call: u64, output: &ToolOutput) -> u64 {
    let result = number_of_result(output);
    let slot = cx.session.slot::<LastCall>();
    let mut last = slot.0.lock();
    let same = last.times > 0 && (last.call, last.result) == (call, result);
    let times = if same { last.times + 1 } else { 1 };
    *last = CallCount { call, result, times };
    times
}

/// A call that could not run is between two that could.
pub(crate) fn forget_last_call(cx: &Cx) {
    if let Some(slot) = cx.session.slot_if_any::<LastCall>() {
        *slot.0.lock() = CallCount::default();
    }
}

/// From the second time on the output says so in `metadata.repeated`; from the time that the settings name, in a text for
/// the model too.
pub(crate) fn mark_repeat(cx: &Cx, times: u64, output: &mut ToolOutput) {
    if times < 2 {
        return;
    }
    output.metadata.insert("repeated".to_owned(), times.into());
    let warn = cx.engine.settings.load().warn_repeats;
    if warn.is_some_and(|warn| times >= warn.get()) {
        output.content.push(Block::text(format!(
            "[this call was made {times} times in a row, with the same result each time: try other arguments or another way]"
        )));
    }
}

fn number_of_result(output: &ToolOutput) -> u64 {
    struct HashedBytes(DefaultHasher);
    impl std::io::Write for HashedBytes {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut bytes = HashedBytes(DefaultHasher::new());
    let seen = (&output.content, output.is_error, &output.structured);
    serde_json::to_writer(&mut bytes, &seen).expect("any result is JSON, and hashing cannot fail");
    bytes.0.finish()
}
