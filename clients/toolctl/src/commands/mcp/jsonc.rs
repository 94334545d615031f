//! Sets or removes one member of a JSON text that may hold comments and trailing commas, and leaves the rest as it is.

use anyhow::{Context, bail};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstObjectProp, CstRootNode};
use serde_json::{Map, Value};

/// The text with this member. Missing parents are created. Of an object that is there already, the other members stay.
///
/// # Errors
/// The text is not a JSON object, or a parent is not an object.
pub(crate) fn with_member(text: &str, path: &[&str], value: &Value) -> anyhow::Result<String> {
    let (name, parents) = path.split_last().context("the path is empty")?;
    let (mark, text) = without_byte_order_mark(text);
    let root = parse(text)?;
    let object = object_or_create(&root, parents)?;
    match (object.object_value(name), value.as_object()) {
        (Some(there), Some(members)) => members.iter().for_each(|(name, value)| set(&there, name, value)),
        _ => set(&object, name, value),
    }
    let after = format!("{mark}{root}");
    // A file of somebody else: nothing is written that does not read back. Of a name that stands twice, the last one counts.
    let read = whole(&after).unwrap_or_default();
    if path.iter().try_fold(&read, |value, name| value.get(*name)).is_none() {
        bail!("it cannot be changed safely: is a name in it twice?");
    }
    Ok(after)
}

/// The text without this member; with the one of `before` in its place, if there is one.
///
/// # Errors
/// One of the texts is not JSON.
pub(crate) fn without_member(text: &str, holder: &str, name: &str, before: &str) -> anyhow::Result<String> {
    let (mark, text) = without_byte_order_mark(text);
    let root = parse(text)?;
    let earlier = parse(without_byte_order_mark(before).1)?;
    let earlier = earlier.object_value().and_then(|earlier| earlier.object_value(holder));
    if let Some(object) = root.object_value()
        && let Some(servers) = object.object_value(holder)
        && let Some(member) = servers.get(name)
    {
        let there_before = earlier.as_ref().and_then(|servers| member_value(&servers.get(name)?));
        match there_before {
            Some(value) => member.set_value(input(&value)),
            None => member.remove(),
        }
        if earlier.is_none()
            && servers.properties().is_empty()
            && let Some(empty) = object.get(holder)
        {
            empty.remove();
        }
    }
    Ok(format!("{mark}{root}"))
}

pub(crate) fn has_member(text: &str, path: &[&str]) -> bool {
    find(text, path).is_some()
}

/// The value of this member; `None` if the text has none, or is not JSON.
pub(crate) fn member(text: &str, path: &[&str]) -> Option<Value> {
    member_value(&find(text, path)?)
}

/// The value of the whole text; `None` if it is not JSON.
pub(crate) fn whole(text: &str) -> Option<Value> {
    jsonc_parser::parse_to_serde_value(without_byte_order_mark(text).1, &OPTIONS).ok()
}

fn find(text: &str, path: &[&str]) -> Option<CstObjectProp> {
    let (name, parents) = path.split_last()?;
    let root = parse(without_byte_order_mark(text).1).ok()?;
    let object = parents.iter().try_fold(root.object_value()?, |object, parent| object.object_value(parent))?;
    object.get(name)
}

/// The member of an item that lists several entries: such an item is a group, which may have entries of several programs.
const GROUPED: &str = "hooks";

/// The text with this item in the list at `path`, in place of the entries that are `ours`. Missing parents are created.
///
/// # Errors
/// The text is not a JSON object, a parent is not an object, or the member is not a list.
pub(crate) fn with_item(
    text: &str,
    path: &[&str],
    item: &Value,
    ours: impl Fn(&Value) -> bool,
) -> anyhow::Result<String> {
    let (name, parents) = path.split_last().context("the path is empty")?;
    let (mark, text) = without_byte_order_mark(text);
    let root = parse(text)?;
    let object = object_or_create(&root, parents)?;
    let list = match object.get(name) {
        Some(member) => member.array_value().with_context(|| format!("{name} is not a list"))?,
        None => object.array_value_or_set(name),
    };
    let mut there = false;
    for element in list.elements() {
        match node_value(&element) {
            Some(value) if !there && holds(&value, item) => there = true,
            _ => take_ours(element, &ours),
        }
    }
    if !there {
        list.append(input(item));
    }
    let after = format!("{mark}{root}");
    // A file of somebody else: nothing is written that does not read back.
    if !items(&after, path).iter().any(|there| holds(there, item)) {
        bail!("it cannot be changed safely");
    }
    Ok(after)
}

/// Whether an item is this one, or this group with entries of others beside its own.
pub(crate) fn holds(there: &Value, item: &Value) -> bool {
    let (Some(there), Some(item)) = (there.as_object(), item.as_object()) else { return there == item };
    let entries = |item: &Map<String, Value>| item.get(GROUPED).and_then(Value::as_array).cloned().unwrap_or_default();
    let (all, own) = (entries(there), entries(item));
    there.len() == item.len()
        && item.iter().all(|(name, value)| name == GROUPED || there.get(name) == Some(value))
        && there.contains_key(GROUPED) == item.contains_key(GROUPED)
        && own.iter().all(|entry| all.contains(entry))
}

/// Removes an item that is `ours`, and of a group the entries that are, with the group when they were all.
fn take_ours(item: CstNode, ours: impl Fn(&Value) -> bool) {
    if node_value(&item).is_some_and(|value| ours(&value)) {
        return item.remove();
    }
    let Some(entries) = item.as_object().and_then(|group| group.array_value(GROUPED)) else { return };
    let is_ours = |entry: &CstNode| node_value(entry).is_some_and(|value| ours(&value));
    let (own, others): (Vec<CstNode>, Vec<CstNode>) = entries.elements().into_iter().partition(is_ours);
    match others.is_empty() && !own.is_empty() {
        true => item.remove(),
        false => own.into_iter().for_each(CstNode::remove),
    }
}

/// The text without the entries of the list that are `ours`, and without a list that is empty then, unless `before` has it.
///
/// # Errors
/// The text is not JSON.
pub(crate) fn without_items(
    text: &str,
    path: &[&str],
    before: &str,
    ours: impl Fn(&Value) -> bool,
) -> anyhow::Result<String> {
    let (name, parents) = path.split_last().context("the path is empty")?;
    let (mark, text) = without_byte_order_mark(text);
    let root = parse(text)?;
    let Some(whole) = root.object_value() else { return Ok(format!("{mark}{root}")) };
    let mut objects = vec![whole];
    for parent in parents {
        let Some(object) = objects.last().and_then(|object| object.object_value(parent)) else { break };
        objects.push(object);
    }
    let holder = objects.last().filter(|_| objects.len() == path.len());
    if let Some(member) = holder.and_then(|holder| holder.get(name))
        && let Some(list) = member.array_value()
    {
        list.elements().into_iter().for_each(|element| take_ours(element, &ours));
        if list.elements().is_empty() && !has_member(before, path) {
            member.remove();
        }
        // From the innermost outwards.
        for depth in (1..path.len()).rev() {
            if objects[depth].properties().is_empty()
                && !has_member(before, &path[..depth])
                && let Some(empty) = objects[depth - 1].get(path[depth - 1])
            {
                empty.remove();
            }
        }
    }
    Ok(format!("{mark}{root}"))
}

/// The entries of the list at `path`: its items, and those of its groups.
pub(crate) fn entries(text: &str, path: &[&str]) -> Vec<Value> {
    let mut entries = Vec::new();
    for mut item in items(text, path) {
        match item.get_mut(GROUPED).map(Value::take) {
            Some(Value::Array(grouped)) => entries.extend(grouped),
            _ => entries.push(item),
        }
    }
    entries
}

/// The items of the list at `path`; none when there is no such list.
pub(crate) fn items(text: &str, path: &[&str]) -> Vec<Value> {
    let list = find(text, path).and_then(|member| member.array_value());
    list.map(|list| list.elements().iter().filter_map(node_value).collect()).unwrap_or_default()
}

/// The object at `path`. Missing ones are created.
///
/// # Errors
/// The text is not a JSON object, or a member of the path is not an object.
fn object_or_create(root: &CstRootNode, path: &[&str]) -> anyhow::Result<CstObject> {
    let mut object = match root.value() {
        Some(value) => value.as_object().context("it is not a JSON object")?,
        None => root.object_value_or_set(),
    };
    for parent in path {
        object = match object.get(parent) {
            Some(member) => member.object_value().with_context(|| format!("{parent} is not an object"))?,
            None => object.object_value_or_set(parent),
        };
    }
    Ok(object)
}

fn node_value(node: &CstNode) -> Option<Value> {
    jsonc_parser::parse_to_serde_value(&node.to_string(), &OPTIONS).ok()
}

fn set(object: &CstObject, name: &str, value: &Value) {
    match object.get(name) {
        Some(member) => {
            if member_value(&member).as_ref() != Some(value) {
                member.set_value(input(value));
            }
        }
        None => drop(object.append(name, input(value))),
    }
}

fn member_value(member: &CstObjectProp) -> Option<Value> {
    jsonc_parser::parse_to_serde_value(&member.value()?.to_string(), &OPTIONS).ok()
}

/// As editors read their files: JSON with comments and trailing commas, and no other extensions.
pub(crate) const OPTIONS: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

fn parse(text: &str) -> anyhow::Result<CstRootNode> {
    CstRootNode::parse(text, &OPTIONS).context("it is not JSON")
}

fn without_byte_order_mark(text: &str) -> (&str, &str) {
    let rest = text.trim_start_matches('\u{feff}');
    text.split_at(text.len() - rest.len())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            CstInputValue::Object(members.iter().map(|(name, value)| (name.clone(), input(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(with_member(text, &["a", "b"], &json!(1)).unwrap(), expected);
    }

    #[test]
    fn a_member_is_put_where_it_belongs() {
        check("", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n");
        check("{\"x\": 1}", "{\n  \"x\": 1,\n  \"a\": {\n    \"b\": 1\n  }\n}");
        check("{\"a\": {\"b\": 2, \"c\": 3}}", "{\"a\": {\"b\": 1, \"c\": 3}}");
        check("{\"a\": {\n    \"c\": 3, // see\n  }}", "{\"a\": {\n    \"c\": 3, // see\n    \"b\": 1,\n  }}");
        check("{\"a\": {\n    \"c\": 3 // see\n  }}", "{\"a\": {\n    \"c\": 3, // see\n    \"b\": 1\n  }}");
        check("/* x */ {\"a\": {}}", "/* x */ {\"a\": {\n    \"b\": 1\n  }}");
        check("{\n\t\"x\": 1\n}\n", "{\n\t\"x\": 1,\n\t\"a\": {\n\t\t\"b\": 1\n\t}\n}\n");
        check("\u{feff}{}", "\u{feff}{\n  \"a\": {\n    \"b\": 1\n  }\n}");
    }

    #[test]
    fn other_members_of_an_object_stay() {
        let text = "{\"a\": {\"b\": {\"env\": {\"K\": \"v\"}, \"command\": \"old\"}}}";
        let after = with_member(text, &["a", "b"], &json!({"command": "new"})).unwrap();
        assert_eq!(after, text.replace("old", "new"));
    }

    #[test]
    fn only_the_member_is_removed() {
        let before = "{\n  \"x\": 1,\n  \"a\": {\n    \"c\": 2 // theirs\n  }\n}\n";
        let with = with_member(before, &["a", "b"], &json!({"command": "x"})).unwrap().replace("\"x\": 1", "\"x\": 3");
        let undone = without_member(&with, "a", "b", before).unwrap();
        assert!(undone.contains("\"x\": 3") && undone.contains("// theirs") && !undone.contains("command"), "{undone}");
        assert!(!has_member(&without_member(&with, "a", "b", "{}").unwrap(), &["a", "b"]));
        let earlier = "{\"a\": {\"b\": {\"command\": \"old\"}}}";
        let with = with_member(earlier, &["a", "b"], &json!({"command": "new"})).unwrap();
        let undone: Value = serde_json::from_str(&without_member(&with, "a", "b", earlier).unwrap()).unwrap();
        assert_eq!(undone, json!({"a": {"b": {"command": "old"}}}));
    }

    #[test]
    fn text_that_is_no_object_is_unchanged() {
        for text in ["[]", "{", "{\"a\": 1}", "x", "{\"a\" 1}", "{} {}"] {
            assert!(with_member(text, &["a", "b"], &json!(1)).is_err(), "{text}");
        }
    }

    #[test]
    fn an_item_is_added_changed_and_removed_alone() {
        let before = "{\n  // mine\n  \"hooks\": {\"Pre\": [{\"c\": \"theirs\"}, /* x */ ]}\n}\n";
        let ours = |value: &Value| value["c"].as_str().is_some_and(|text| text.starts_with("toolctl"));
        let path = ["hooks", "Pre"];
        let after = with_item(before, &path, &json!({"c": "toolctl 1"}), ours).unwrap();
        assert!(after.contains("// mine") && after.contains("theirs"), "{after}");
        let changed = with_item(&after, &path, &json!({"c": "toolctl 2"}), ours).unwrap();
        assert_eq!(items(&changed, &path), [json!({"c": "theirs"}), json!({"c": "toolctl 2"})]);
        assert_eq!(with_item(&changed, &path, &json!({"c": "toolctl 2"}), ours).unwrap(), changed);
        let undone = without_items(&changed, &path, before, ours).unwrap();
        assert_eq!(items(&undone, &path), [json!({"c": "theirs"})]);
        let added = with_item("{\"a\": 1}", &path, &json!({"c": "toolctl"}), ours).unwrap();
        let undone: Value = serde_json::from_str(&without_items(&added, &path, "{}", ours).unwrap()).unwrap();
        assert_eq!(undone, json!({"a": 1}));
    }
}
