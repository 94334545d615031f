//! The answer of a call: checked against the tool's output schema, changed by hooks, and cut to size.

use serde_json::{Value, json};
use toold_proto::tool::{Block, NOT_RUN, ToolResult};

use super::call_record::CallRecord;
use crate::cache::json_bytes;
use crate::call::{CallError, list};
use crate::cx::Cx;
use crate::spool::cut;
use crate::tool::{ToolError, ToolOutput, ToolSpec};

/// A result whose structured part does not match the tool's output schema is an error of the tool.
pub(super) fn hold_to_schema(spec: &ToolSpec, output: &mut ToolOutput) {
    let (Some(schema), Some(structured)) = (&spec.output, &output.structured) else { return };
    let errors = schema.check(structured);
    if !errors.is_empty() {
        let words = format!("the result of {} does not match its output schema: {}", spec.name, list(&errors));
        *output = ToolOutput { metadata: std::mem::take(&mut output.metadata), ..ToolOutput::error(words) };
    }
}

pub(super) fn change_output(output: &mut ToolOutput, changed: Value) {
    let Value::Object(mut changed) = changed else {
        if let Value::String(text) = changed {
            output.content = vec![Block::text(text)];
        }
        return;
    };
    match changed.remove("content") {
        Some(Value::String(text)) => output.content = vec![Block::text(text)],
        Some(blocks) => {
            if let Ok(blocks) = serde_json::from_value(blocks) {
                output.content = blocks;
            }
        }
        None => {}
    }
    if let Some(Value::Bool(is_error)) = changed.remove("is_error") {
        output.is_error = is_error;
    }
    if let Some(Value::Object(metadata)) = changed.remove("metadata") {
        output.metadata = metadata;
    }
}

/// Maps an error of a tool or of the policy to an answer.
pub(super) async fn into_answer(cx: &Cx, record: &CallRecord, error: ToolError) -> Result<ToolResult, CallError> {
    match error {
        ToolError::Failed(words) => answer(cx, record, ToolOutput::error(words)).await,
        ToolError::Stopped(words) => {
            let output = ToolOutput::error(words);
            // A tool that runs may have done something before it asked.
            let output = if record.has_run() { output } else { output.with(NOT_RUN, true) };
            answer(cx, record, output).await
        }
        ToolError::Denied(denial) => {
            let permission = json!({"category": denial.category, "target": denial.target, "rule": denial.rule});
            answer(cx, record, ToolOutput::error(&denial.message).with("permission", permission)).await
        }
        ToolError::Cancelled => Err(CallError::Cancelled),
        ToolError::Unavailable(words) => Err(CallError::Failed(words)),
        ToolError::Overloaded(words) => Err(CallError::Overloaded(words)),
        ToolError::PermissionEngine(words) => Err(CallError::PermissionEngine(words)),
    }
}

/// Truncates the text, stores the whole in the spool, tells of the arguments, and builds the result.
pub(super) async fn answer(cx: &Cx, record: &CallRecord, mut output: ToolOutput) -> Result<ToolResult, CallError> {
    output.content.iter_mut().for_each(Block::make_readable);
    let times = record.count(&output);
    let max = cx.engine.settings.load().max_result_text;
    let total: usize = output.content.iter().filter_map(Block::as_text).map(str::len).sum();
    if total > max {
        // Boxed: few results are this long, and inline it would enlarge every call.
        Box::pin(cap(cx, &mut output, max)).await;
    }
    record.tell(times, &mut output);
    Ok(ToolResult {
        call_id: cx.call_id.clone(),
        content: output.content,
        is_error: output.is_error,
        metadata: output.metadata,
        structured: output.structured,
        duration_ms: record.duration().as_millis() as u64,
        cached: false,
    })
}

/// Keeps a structured part that is longer than the text of a result may be in the spool, and puts the place of the file in
/// its stead. Of a tool with an output schema, that no longer fits, so the result is an error that names the file.
pub(super) async fn cap_structure(spec: &ToolSpec, cx: &Cx, output: &mut ToolOutput) {
    let max = cx.engine.settings.load().max_result_text;
    let Some(structured) = output.structured.take_if(|structured| json_bytes(structured) > max) else { return };
    let mut whole = structured.to_string();
    let bytes = whole.len();
    // Servers repeat it as text. One file has both.
    output.content.retain(|block| match block.as_text() {
        Some(text) if text.len() > max => {
            whole.push_str("\n\n");
            whole.push_str(text);
            false
        }
        Some(_) | None => true,
    });
    let kept = match &cx.engine.spool {
        Some(spool) => spool.keep(&cx.session.id, &cx.call_id, &whole).await.map_err(|error| error.to_string()),
        None => Err("there is no folder to keep it in".to_owned()),
    };
    let mut instead = json!({"left_out_bytes": bytes});
    let note = match kept {
        Ok(path) => {
            instead["spool"] = path.clone().into();
            output.metadata.insert("spool".into(), path.clone().into());
            format!("[the structured result of {bytes} bytes is in {path}: read it there]")
        }
        Err(error) => format!("[the structured result of {bytes} bytes is lost: {error}]"),
    };
    if spec.output.is_some() {
        output.is_error = true;
    } else {
        output.structured = Some(instead);
    }
    output.content.push(Block::text(note));
}

async fn cap(cx: &Cx, output: &mut ToolOutput, max: usize) {
    let (texts, mut others): (Vec<Block>, Vec<Block>) =
        output.content.drain(..).partition(|block| block.as_text().is_some());
    let whole = texts.iter().filter_map(Block::as_text).collect::<Vec<_>>().join("\n");
    let Some((mut text, left_out)) = cut(&whole, max) else { return };
    let kept = match &cx.engine.spool {
        Some(spool) => spool.keep(&cx.session.id, &cx.call_id, &whole).await.map_err(|error| error.to_string()),
        None => Err("there is no folder to keep it in".to_owned()),
    };
    match kept {
        Ok(path) => {
            text.push_str(&format!(
                "\n[{left_out} of {} bytes cut; the full text is in {path}: read it there]",
                whole.len()
            ));
            output.metadata.insert("spool".into(), path.into());
        }
        Err(error) => text.push_str(&format!("\n[{left_out} of {} bytes cut and lost: {error}]", whole.len())),
    }
    output.metadata.insert("truncated_bytes".into(), left_out.into());
    output.content.push(Block::text(text));
    output.content.append(&mut others);
}
