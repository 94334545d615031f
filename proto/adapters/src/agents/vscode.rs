//! The tools of the agent of Visual Studio Code 1.139.1, from the code of its Copilot extension and its documentation of hooks.

use serde_json::Value;
use toold_proto::tool::Category;

use crate::agents::input::{ToolInput, mcp_tools, patch_actions, patch_text, searched_folder};
use crate::agents::{AgentAction, AgentInputError, ContentSearch, SUB_AGENT};

pub(super) fn actions(tool: &str, value: &Value) -> Result<Vec<AgentAction>, AgentInputError> {
    let input = ToolInput { tool, value };
    let action = match tool {
        "run_in_terminal" => AgentAction::Command { line: input.text("command")?, cwd: None },
        "create_and_run_task" | "run_task" | "runTests" | "run_notebook_cell" | "copilot_runNotebookCell" => {
            unclear(input, Category::Shell)?
        }
        "create_file" | "copilot_createFile" => {
            AgentAction::Write { path: input.text("filePath")?, text: Some(input.content("content")?) }
        }
        "create_directory" | "copilot_createDirectory" => {
            AgentAction::Write { path: input.text("dirPath")?, text: None }
        }
        "replace_string_in_file" | "copilot_replaceString" => replaced(input)?,
        "multi_replace_string_in_file" | "copilot_multiReplaceString" => {
            return match input.list("replacements")? {
                [] => Err(input.refuse("expected at least one replacement")),
                items => items.iter().map(|value| replaced(ToolInput { tool, value })).collect(),
            };
        }
        // The texts are not those of the file.
        "insert_edit_into_file" | "copilot_insertEdit" | "edit_notebook_file" | "copilot_editNotebook" => {
            AgentAction::Edit { path: input.text("filePath")?, old: None, new: None, all: false }
        }
        "apply_patch" | "copilot_applyPatch" => return patch_actions(tool, &patch_text(input, &["input"])?),
        "read_file"
        | "copilot_readFile"
        | "copilot_getNotebookSummary"
        | "read_notebook_cell_output"
        | "copilot_readNotebookCellOutput"
        | "view_image"
        | "copilot_viewImage" => AgentAction::Read { path: input.text("filePath")? },
        "list_dir" | "copilot_listDirectory" => AgentAction::List { path: input.folder("path")? },
        "file_search" | "copilot_findFiles" => AgentAction::List { path: searched_folder(None, &input.text("query")?) },
        "grep_search" | "copilot_findTextInFiles" => AgentAction::Search(ContentSearch {
            path: ".".to_owned(),
            globs: input.texts("includePattern")?.into_iter().filter(|glob| !glob.is_empty()).collect(),
            file_type: None,
            hidden: None,
            ignored: input.flag("includeIgnoredFiles")?,
        }),
        "semantic_search" | "copilot_searchCodebase" | "get_changed_files" | "copilot_getChangedFiles" => {
            unclear(input, Category::FileRead)?
        }
        "fetch_webpage" | "copilot_fetchWebPage" => {
            let urls = input.texts("urls")?;
            if urls.is_empty() {
                return Err(input.error("urls", "a list of texts", value.get("urls")));
            }
            return Ok(urls.into_iter().map(|url| AgentAction::Fetch { url }).collect());
        }
        "get_errors"
        | "copilot_getErrors"
        | "get_task_output"
        | "get_terminal_output"
        | "manage_todo_list"
        | "terminal_last_command"
        | "terminal_selection"
        | "test_failure"
        | "vscode_get_confirmation"
        | "vscode_get_terminal_confirmation" => AgentAction::Nothing,
        "runSubagent" => AgentAction::SubAgent { kind: input.optional_text("agentName")?.unwrap_or_default() },
        "execution_subagent" | "explore_subagent" | "search_subagent" => SUB_AGENT,
        _ => {
            // `mcp_SERVER_TOOL`
            let named = tool.strip_prefix("mcp_").filter(|names| !names.starts_with('_'));
            return Ok(named.and_then(|names| mcp_tools(names, &["_"])).unwrap_or_else(|| vec![AgentAction::Unknown]));
        }
    };
    Ok(vec![action])
}

/// The input does not name what it touches.
fn unclear(input: ToolInput<'_>, category: Category) -> Result<AgentAction, AgentInputError> {
    match input.value.is_object() {
        true => Ok(AgentAction::Unclear { category }),
        false => Err(input.refuse("expected an object")),
    }
}

fn replaced(input: ToolInput<'_>) -> Result<AgentAction, AgentInputError> {
    Ok(AgentAction::Edit {
        path: input.text("filePath")?,
        old: input.optional_text("oldString")?,
        new: input.optional_text("newString")?,
        all: false,
    })
}
