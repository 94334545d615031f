//! Prompts for the arguments of a call one by one, by the tool's schema.
//!
//! Types, choices and bounds are checked here at once. The daemon checks everything else, and arguments that it refuses
//! are asked for again.

mod files;

use inquire::validator::{ErrorMessage, Validation};
use inquire::{Confirm, InquireError, MultiSelect, Select, Text};
use serde_json::{Map, Value};
use toold_proto::tool::Tool;

use crate::arguments::{self, members};
use crate::output::{first_sentence, one_line, plain};
use crate::path_names::is_path;
use crate::terminal;

use files::FileCompleter;

/// An argument that the daemon refused, and why.
pub(crate) struct ArgumentProblem {
    /// The top-level argument.
    pub(crate) key: String,
    pub(crate) message: String,
}

/// Asks for the arguments that `given` lacks, or, after a refusal, for those with `problems`. Blocks on the terminal.
/// `None` when the user cancels.
///
/// # Errors
/// When the terminal fails.
pub(crate) fn fill(
    tool: &Tool,
    given: &Map<String, Value>,
    problems: &[ArgumentProblem],
) -> anyhow::Result<Option<Map<String, Value>>> {
    fill_schema(&tool.input_schema, &format!("Call {}", tool.name), given, problems)
}

/// As [`fill`], for the fields of any object schema. `purpose` begins the question at the end.
///
/// # Errors
/// When the terminal fails.
pub(crate) fn fill_schema(
    schema: &Value,
    purpose: &str,
    given: &Map<String, Value>,
    problems: &[ArgumentProblem],
) -> anyhow::Result<Option<Map<String, Value>>> {
    terminal::guard()?;
    Ok(terminal::answered(asked(schema, purpose, given.clone(), problems))?.flatten())
}

fn asked(
    schema: &Value,
    purpose: &str,
    mut arguments: Map<String, Value>,
    problems: &[ArgumentProblem],
) -> Result<Option<Map<String, Value>>, InquireError> {
    // In the order of `required`; the properties of a Lua table have no order.
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for problem in problems {
        ask(schema, &problem.key, Some(&problem.message), &mut arguments)?;
    }
    if problems.is_empty() {
        for name in &required {
            if !arguments.contains_key(*name) {
                ask(schema, name, None, &mut arguments)?;
            }
        }
        let optional: Vec<OptionalArgument<'_>> = names(schema)
            .into_iter()
            .filter(|name| !required.contains(name) && !arguments.contains_key(*name))
            .map(|name| OptionalArgument { name, about: about(schema, name) })
            .collect();
        if !optional.is_empty() {
            let chosen = MultiSelect::new("Set optional arguments?", optional)
                .with_help_message("space selects, enter continues, esc cancels")
                .with_formatter(&|chosen| chosen.iter().map(|option| option.value.name).collect::<Vec<_>>().join(", "))
                .prompt()?;
            for OptionalArgument { name, .. } in chosen {
                ask(schema, name, None, &mut arguments)?;
            }
        }
    }
    let shown = serde_json::to_string(&arguments).unwrap_or_default();
    let call = Confirm::new(&format!("{purpose} {}?", plain(&shown))).with_default(true).prompt()?;
    Ok(call.then_some(arguments))
}

struct OptionalArgument<'a> {
    name: &'a str,
    about: String,
}

impl std::fmt::Display for OptionalArgument<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:<16} {}", one_line(self.name), self.about)
    }
}

fn names(schema: &Value) -> Vec<&str> {
    schema["properties"].as_object().into_iter().flat_map(Map::keys).map(String::as_str).collect()
}

fn about(schema: &Value, name: &str) -> String {
    first_sentence(schema["properties"][name]["description"].as_str().unwrap_or_default(), 80)
}

/// The description of an argument. For a list of objects, also the names of their members.
fn help(schema: &Value, name: &str) -> String {
    let (about, members) = (about(schema, name), members(&schema["properties"][name]["items"]));
    match members.is_empty() {
        true => about,
        false => format!("{about}: a JSON list of {{{}}}", members.join(", ")),
    }
}

/// Asks for one argument and sets it. An empty answer omits an optional argument.
fn ask(
    schema: &Value,
    name: &str,
    problem: Option<&str>,
    arguments: &mut Map<String, Value>,
) -> Result<(), InquireError> {
    let property = &schema["properties"][name];
    let label = label(property, name);
    let help = problem.map_or_else(|| help(schema, name), |problem| format!("invalid: {}", one_line(problem)));
    // Without a help message, the keys are shown in its place, or nothing.
    let help = Some(help.as_str()).filter(|help| !help.is_empty());
    let current = arguments.get(name).or(property.get("default"));
    let value = match kind(property) {
        InputKind::Choice(choices) => {
            let at = choices.iter().position(|choice| Some(&choice.value) == current).unwrap_or(0);
            let mut prompt = Select::new(&label, shown(&choices)).with_starting_cursor(at);
            prompt.help_message = help.or(prompt.help_message);
            Some(choices[prompt.raw_prompt()?.index].value.clone())
        }
        InputKind::Choices(choices) => {
            let is_current = |choice: &FormChoice| {
                current.and_then(Value::as_array).is_some_and(|values| values.contains(&choice.value))
            };
            let at: Vec<usize> = (0..choices.len()).filter(|at| is_current(&choices[*at])).collect();
            let mut prompt = MultiSelect::new(&label, shown(&choices)).with_default(&at);
            prompt.help_message = help.or(prompt.help_message);
            let chosen = prompt.raw_prompt()?;
            Some(Value::Array(chosen.into_iter().map(|option| choices[option.index].value.clone()).collect()))
        }
        InputKind::Yes => {
            let mut prompt = Confirm::new(&label).with_default(current.and_then(Value::as_bool).unwrap_or(false));
            prompt.help_message = help;
            Some(Value::Bool(prompt.prompt()?))
        }
        InputKind::Text => text(schema, name, &label, help, current)?,
    };
    match value {
        Some(value) => arguments.insert(name.to_owned(), value),
        None => arguments.remove(name),
    };
    Ok(())
}

/// The name of a field, and its title where that says more.
fn label(property: &Value, name: &str) -> String {
    let plain = |text: &str| text.to_lowercase().replace(['_', '-', ' '], "");
    match property["title"].as_str().filter(|title| plain(title) != plain(name)) {
        Some(title) => format!("{} ({}):", one_line(name), one_line(title)),
        None => format!("{}:", one_line(name)),
    }
}

/// A value to choose, and what a person reads.
#[derive(Clone, Debug, PartialEq)]
struct FormChoice {
    value: Value,
    shown: String,
}

enum InputKind {
    Choice(Vec<FormChoice>),
    Choices(Vec<FormChoice>),
    Yes,
    Text,
}

/// The values of `enum`, with the names of `enumNames` if there are any, or those of alternatives that are one value each.
fn choices(schema: &Value) -> Option<Vec<FormChoice>> {
    let in_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let named = |value: &Value, name: Option<&Value>| FormChoice {
        value: value.clone(),
        shown: one_line(&name.and_then(Value::as_str).map_or_else(|| in_text(value), str::to_owned)),
    };
    let found = match (schema["enum"].as_array(), schema["oneOf"].as_array().or(schema["anyOf"].as_array())) {
        (Some(values), _) => {
            values.iter().enumerate().map(|(at, value)| named(value, schema["enumNames"].get(at))).collect()
        }
        (None, Some(parts)) => {
            parts.iter().map(|part| Some(named(part.get("const")?, part.get("title")))).collect::<Option<Vec<_>>>()?
        }
        (None, None) => return None,
    };
    Some(found).filter(|found| !found.is_empty())
}

fn kind(property: &Value) -> InputKind {
    if let Some(choices) = choices(property) {
        return InputKind::Choice(choices);
    }
    match property["type"].as_str() {
        Some("boolean") => InputKind::Yes,
        Some("array") => choices(&property["items"]).map_or(InputKind::Text, InputKind::Choices),
        _ => InputKind::Text,
    }
}

fn shown(choices: &[FormChoice]) -> Vec<String> {
    choices.iter().map(|choice| choice.shown.clone()).collect()
}

fn text(
    schema: &Value,
    name: &str,
    label: &str,
    help: Option<&str>,
    current: Option<&Value>,
) -> Result<Option<Value>, InquireError> {
    let read = {
        let (schema, name) = (schema.clone(), name.to_owned());
        move |text: &str| read(&schema, &name, text)
    };
    let check = read.clone();
    let validator = move |text: &str| {
        Ok(match check(text) {
            Ok(_) => Validation::Valid,
            Err(message) => Validation::Invalid(ErrorMessage::Custom(message)),
        })
    };
    let current = current.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let mut prompt = Text::new(label).with_validator(validator);
    prompt.help_message = help;
    if let Some(current) = current.as_deref().filter(|text| !text.contains('\n')) {
        prompt = prompt.with_initial_value(current);
    }
    if is_path(name) {
        prompt = prompt.with_autocomplete(FileCompleter);
    }
    // The validator has accepted the text already.
    Ok(read(&prompt.prompt()?).unwrap_or_default())
}

/// The value of a text for the argument; `None` to omit it.
fn read(schema: &Value, name: &str, text: &str) -> Result<Option<Value>, String> {
    let property = &schema["properties"][name];
    let required = schema["required"].as_array().is_some_and(|required| required.iter().any(|r| r == name));
    let takes_text = matches!(property["type"].as_str(), Some("string") | None);
    if text.is_empty() && !(required && takes_text) {
        return if required { Err("required".to_owned()) } else { Ok(None) };
    }
    let pair = format!("{name}={text}");
    let read = arguments::read(Map::new(), &[pair], schema).map_err(|error| format!("{error:#}"))?;
    let value = read.into_iter().next().map(|(_, value)| value).unwrap_or_default();
    match fault(property, &value) {
        Some(fault) => Err(fault),
        None => Ok(Some(value)),
    }
}

/// The message that says how to type a list of objects.
fn wanted_items(items: &Value) -> String {
    match members(items).as_slice() {
        [] => "expected: a list of objects, as JSON".to_owned(),
        members => format!("expected: a list of objects, as JSON, with the members {}", members.join(", ")),
    }
}

/// A problem that can be found without the daemon.
fn fault(property: &Value, value: &Value) -> Option<String> {
    let fits = match property["type"].as_str() {
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some("string") => value.is_string(),
        _ => true,
    };
    if !fits {
        let kind = property["type"].as_str().unwrap_or_default();
        let how = if matches!(kind, "array" | "object") { ", as JSON" } else { "" };
        return Some(format!("expected: {kind}{how}"));
    }
    if let Value::Array(items) = value
        && property["items"]["type"] == "object"
        && !items.iter().all(Value::is_object)
    {
        return Some(wanted_items(&property["items"]));
    }
    let bound = |name: &str| property[name].as_f64();
    if let Some(text) = value.as_str() {
        let length = text.chars().count() as f64;
        return match (bound("minLength"), bound("maxLength")) {
            (Some(least), _) if length < least => Some(format!("at least {least} characters")),
            (_, Some(most)) if length > most => Some(format!("at most {most} characters")),
            _ => None,
        };
    }
    let number = value.as_f64()?;
    match (bound("minimum"), bound("maximum")) {
        (Some(least), _) if number < least => Some(format!("at least {least}")),
        (_, Some(most)) if number > most => Some(format!("at most {most}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "properties": {
                "path": {"type": "string"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 9},
                "edits": {"type": "array", "items": {"type": "object", "required": ["label"],
                    "properties": {"about": {}, "label": {}}}},
                "anything": {},
                "name": {"type": "string", "title": "Your name", "minLength": 3, "maxLength": 5},
                "env": {"enum": ["dev", "prod"], "enumNames": ["Development"]},
                "level": {"oneOf": [{"const": 1, "title": "low"}, {"const": 2}], "title": "LEVEL"},
                "mixed": {"oneOf": [{"const": 1}, {"type": "string"}]},
            },
            "required": ["path", "edits"],
        })
    }

    #[track_caller]
    fn check(name: &str, text: &str, expected: Result<Option<Value>, &str>) {
        assert_eq!(read(&schema(), name, text), expected.map_err(str::to_owned));
    }

    #[test]
    fn a_text_is_read_as_the_schema_wants_it() {
        check("limit", "3", Ok(Some(json!(3))));
        check("path", "3", Ok(Some(json!("3"))));
        check("edits", r#"[{"old": "a,b"}]"#, Ok(Some(json!([{"old": "a,b"}]))));
        check("anything", "true", Ok(Some(json!(true))));
    }

    #[test]
    fn invalid_values_are_refused_before_the_call() {
        check("limit", "many", Err("expected: integer"));
        check("limit", "0", Err("at least 1"));
        check("limit", "10", Err("at most 9"));
        check("name", "ab", Err("at least 3 characters"));
        check("name", "abcdef", Err("at most 5 characters"));
        check("name", "äöü", Ok(Some(json!("äöü"))));
        check("edits", "", Err("required"));
        check("edits", "green,black", Err("expected: a list of objects, as JSON, with the members label, about?"));
    }

    #[test]
    fn fields_and_choices_have_the_names_that_a_person_reads() {
        let schema = schema();
        let property = |name: &str| &schema["properties"][name];
        let shown = |name: &str| choices(property(name)).map(|choices| super::shown(&choices));
        assert_eq!(shown("env"), Some(vec!["Development".to_owned(), "prod".to_owned()]));
        assert_eq!(shown("level"), Some(vec!["low".to_owned(), "2".to_owned()]));
        assert_eq!((shown("mixed"), shown("path")), (None, None));
        assert_eq!(label(property("name"), "name"), "name (Your name):");
        assert_eq!(label(property("level"), "level"), "level:");
    }

    #[test]
    fn empty_input_omits_an_optional_argument_and_is_a_text_for_a_required_one() {
        check("limit", "", Ok(None));
        check("anything", "", Ok(None));
        check("path", "", Ok(Some(json!(""))));
    }
}
