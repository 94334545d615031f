//! Checks the resources and prompts that a server lists. They are untrusted, as its tools are.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Map, Value};
use toold_engine::offers::template::Template;
use toold_mounts::offer_listing::{ListedOffers, ListedPrompt, ListedResource};
use toold_mounts::offers::is_uri;
use toold_proto::offer::PromptArgument;

use super::listing::{MAX_DESCRIPTION, MAX_NAME, MAX_PROBLEMS, MAX_TITLE, cut, is_hidden, shorter};

/// Limit of the resources of one server.
const MAX_RESOURCES: usize = 2_000;
const MAX_TEMPLATES: usize = 256;
const MAX_PROMPTS: usize = 512;
/// Limit of the arguments of one prompt.
const MAX_ARGUMENTS: usize = 64;
/// Limit of one list, as JSON.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Limit of the members of one description that are passed on as they are.
const MAX_MORE: usize = 16 * 1024;
const MORE: [&str; 4] = ["_meta", "annotations", "icons", "size"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfferKind {
    Resource,
    Template,
    Prompt,
}

impl OfferKind {
    pub(super) fn method(self) -> &'static str {
        match self {
            Self::Resource => "resources/list",
            Self::Template => "resources/templates/list",
            Self::Prompt => "prompts/list",
        }
    }

    /// The member of an answer that holds the list.
    pub(super) fn member(self) -> &'static str {
        match self {
            Self::Resource => "resources",
            Self::Template => "resourceTemplates",
            Self::Prompt => "prompts",
        }
    }

    fn max(self) -> usize {
        match self {
            Self::Resource => MAX_RESOURCES,
            Self::Template => MAX_TEMPLATES,
            Self::Prompt => MAX_PROMPTS,
        }
    }
}

/// A list that is being read.
#[derive(Debug, Default)]
pub(super) struct OfferListing {
    pub(super) offers: ListedOffers,
    /// The omissions and cuts, as sentences for the user.
    pub(super) problems: Vec<String>,
    /// How long the lists are good, as the server says, of whose changes it does not tell.
    pub(super) ttl: Option<Duration>,
    known: HashSet<String>,
    taken: usize,
    bytes: usize,
}

impl OfferListing {
    /// Adds another list, which was read on its own.
    pub(super) fn join(&mut self, other: Self) {
        self.offers.resources.extend(other.offers.resources);
        self.offers.prompts.extend(other.offers.prompts);
        self.ttl = self.ttl.into_iter().chain(other.ttl).min();
        other.problems.into_iter().for_each(|problem| self.problem(problem));
    }

    /// Adds a page of a list, and returns the cursor of the next one.
    ///
    /// # Errors
    /// When the answer is not a list.
    pub(super) fn take(&mut self, kind: OfferKind, page: &Value) -> Result<Option<String>, String> {
        let member = kind.member();
        self.ttl = shorter(self.ttl, page);
        let list = page.get(member).and_then(Value::as_array);
        for one in list.ok_or_else(|| format!("its answer has no list of {member}"))? {
            if self.taken >= kind.max() {
                self.problem(format!("it lists more than {} {member}: those beyond are left out", kind.max()));
                return Ok(None);
            }
            if let Err(problem) = self.take_one(kind, one) {
                self.problem(problem);
            }
        }
        Ok(page.get("nextCursor").and_then(Value::as_str).map(str::to_owned))
    }

    pub(super) fn problem(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS && !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn take_one(&mut self, kind: OfferKind, listed: &Value) -> Result<(), String> {
        let id = match kind {
            OfferKind::Resource => resource_id(listed, "uri")?,
            OfferKind::Template => resource_id(listed, "uriTemplate")?,
            OfferKind::Prompt => prompt_name(listed)?,
        };
        if self.known.contains(id) {
            return Err(format!("{id} is listed twice: the second is left out"));
        }
        let (more, are_whole) = more(listed);
        if !are_whole {
            self.problem(format!(
                "what {id} says of itself for certain clients is longer than {MAX_MORE} bytes: left out"
            ));
        }
        let text = |member: &str, max: usize| {
            let text = listed.get(member).and_then(Value::as_str).map(|text| cut(text.trim(), max));
            text.filter(|text| !text.is_empty())
        };
        let (title, description) = (text("title", MAX_TITLE), text("description", MAX_DESCRIPTION));
        let arguments = if kind == OfferKind::Prompt { arguments(id, listed)? } else { Vec::new() };
        let of_arguments: usize = arguments.iter().map(|own| own.name.len() + length(&own.description)).sum();
        let bytes = id.len() + length(&description) + Value::Object(more.clone()).to_string().len() + of_arguments;
        if self.bytes + bytes > MAX_BYTES {
            return Err(format!("its list is longer than {MAX_BYTES} bytes: {id} and others are left out"));
        }
        let is_template = kind == OfferKind::Template;
        if is_template {
            Template::parse_any(id).map_err(|error| format!("the template {id} is left out: {error}"))?;
        }
        self.bytes += bytes;
        self.taken += 1;
        self.known.insert(id.to_owned());
        match kind {
            OfferKind::Prompt => {
                let upstream_name = id.to_owned();
                self.offers.prompts.push(ListedPrompt { upstream_name, title, description, arguments, more });
            }
            OfferKind::Resource | OfferKind::Template => self.offers.resources.push(ListedResource {
                address: id.to_owned(),
                is_template,
                name: text("name", MAX_NAME).unwrap_or_else(|| id.to_owned()),
                title,
                description,
                mime_type: text("mimeType", MAX_NAME),
                more,
            }),
        }
        Ok(())
    }
}

fn length(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

fn resource_id<'l>(listed: &'l Value, member: &str) -> Result<&'l str, String> {
    let address = listed.get(member).and_then(Value::as_str).unwrap_or_default();
    match is_uri(address) && !address.chars().any(is_hidden) {
        true => Ok(address),
        false => Err(format!("a resource with the {member} {:?} is left out", cut(address, 80))),
    }
}

fn prompt_name(listed: &Value) -> Result<&str, String> {
    let name = listed.get("name").and_then(Value::as_str).unwrap_or_default();
    match is_name(name) {
        true => Ok(name),
        false => Err(format!("a prompt with the name {:?} is left out", cut(name, 80))),
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= MAX_NAME && !name.chars().any(is_hidden)
}

fn arguments(prompt: &str, listed: &Value) -> Result<Vec<PromptArgument>, String> {
    let none = Vec::new();
    let given = listed.get("arguments").and_then(Value::as_array).unwrap_or(&none);
    let mut arguments: Vec<PromptArgument> = Vec::new();
    for argument in given {
        let text = |member: &str| argument.get(member).and_then(Value::as_str);
        let name = text("name").unwrap_or_default();
        let is_good = is_name(name) && !arguments.iter().any(|other| other.name == name);
        if !is_good || arguments.len() >= MAX_ARGUMENTS {
            return Err(format!("the prompt {prompt} is left out: its argument {:?} cannot be used", cut(name, 80)));
        }
        arguments.push(PromptArgument {
            name: name.to_owned(),
            title: text("title").map(|title| cut(title, MAX_TITLE)),
            description: text("description").map(|description| cut(description, MAX_DESCRIPTION)),
            required: argument.get("required") == Some(&Value::Bool(true)),
        });
    }
    Ok(arguments)
}

/// The members that are passed on unchanged; false when they are too long.
fn more(listed: &Value) -> (Map<String, Value>, bool) {
    let given = MORE.into_iter().filter_map(|member| Some((member.to_owned(), listed.get(member)?.clone())));
    let more: Map<String, Value> = given.filter(|(_, value)| !value.is_null()).collect();
    match Value::Object(more.clone()).to_string().len() <= MAX_MORE {
        true => (more, true),
        false => (Map::new(), false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn offers_that_cannot_be_used_are_left_out_and_reported() {
        let mut listing = OfferListing::default();
        let page = json!({"resources": [
            {"uri": "ui://a", "name": "a", "mimeType": "text/html;profile=mcp-app", "_meta": {"ui": {"csp": {}}}, "other": 1},
            {"uri": "ui://a", "name": "again"},
            {"uri": "", "name": "nowhere"},
            {"uri": "x://\u{202e}", "name": "hidden"},
            {"uri": "x://long", "description": "é".repeat(10_000_000)},
            {"uri": "x://meta", "_meta": {"a": "x".repeat(100_000)}},
            {"uri": "x".repeat(5000)},
            7
        ], "nextCursor": "more"});
        assert_eq!(listing.take(OfferKind::Resource, &page), Ok(Some("more".into())));
        let uris: Vec<&str> = listing.offers.resources.iter().map(|resource| resource.address.as_str()).collect();
        assert_eq!(uris, ["ui://a", "x://long", "x://meta"]);
        assert_eq!(Value::Object(listing.offers.resources[0].more.clone()), json!({"_meta": {"ui": {"csp": {}}}}));
        assert_eq!(listing.offers.resources[1].description.as_ref().unwrap().chars().count(), MAX_DESCRIPTION + 1);
        assert!(listing.offers.resources[2].more.is_empty());
        // The resource without a URI and the number are the same problem.
        assert_eq!(listing.problems.len(), 5, "{:#?}", listing.problems);
        let page = json!({"resourceTemplates": [{"uriTemplate": "x://{a}"}, {"uriTemplate": "x://{"}, {"uriTemplate": "x://a"}]});
        let mut templates = OfferListing::default();
        assert_eq!(templates.take(OfferKind::Template, &page), Ok(None));
        listing.join(templates);
        let page = json!({"prompts": [
            {"name": "p", "arguments": [{"name": "a", "required": true}, {"name": "b", "required": "yes"}]},
            {"name": "q", "arguments": [{"name": "a"}, {"name": "a"}]},
            {"name": "a\nb"},
        ]});
        let mut prompts = OfferListing::default();
        assert_eq!(prompts.take(OfferKind::Prompt, &page), Ok(None));
        listing.join(prompts);
        assert_eq!((listing.offers.resources.len(), listing.offers.prompts.len()), (4, 1));
        let required: Vec<bool> = listing.offers.prompts[0].arguments.iter().map(|own| own.required).collect();
        assert_eq!(required, [true, false]);
        assert_eq!(listing.problems.len(), 9, "{:#?}", listing.problems);
        assert!(listing.take(OfferKind::Prompt, &json!({"prompts": 7})).is_err());
    }

    #[test]
    fn a_huge_list_of_resources_is_cut() {
        let mut listing = OfferListing::default();
        let all: Vec<Value> = (0..5000).map(|n| json!({"uri": format!("x://{n}")})).collect();
        assert_eq!(listing.take(OfferKind::Resource, &json!({"resources": all, "nextCursor": "more"})), Ok(None));
        assert_eq!((listing.offers.resources.len(), listing.problems.len()), (MAX_RESOURCES, 1));
    }
}
