//! MiniMax M3: each argument is a tag of its own name, and values nest as tags do.
//!
//! Each tag follows a token that stands nowhere else: `]<]minimax[>[<KEY>value]<]minimax[>[</KEY>`. Items of a list are
//! tags of the name `item`.

use serde_json::{Map, Value};

use super::Flow;
use crate::mark::Mark;
use crate::parse::found_call::{RawKind, RawParameter};
use crate::parse::lenient_json::{MAX_DEPTH, excerpt};
use crate::parse::markers::{Match, Matcher};
use crate::parse::raw_value;

/// The arguments of a call, after the first token.
#[derive(Debug, Default)]
pub(crate) struct NestedTags {
    /// The open tags, with their contents.
    open: Vec<NestedTag>,
    /// A tag, so far.
    tag: Option<String>,
    matcher: Matcher,
    pub(crate) arguments: Vec<RawParameter>,
}

#[derive(Debug, Default)]
struct NestedTag {
    key: String,
    text: String,
    children: Vec<(String, Value)>,
}

const LONGEST_TAG: usize = 256;
const ITEM: &str = "item";

pub(crate) enum NestedTagsStep {
    More,
    /// The tag of the call is closed.
    Done,
    Fail(Flow),
}

impl NestedTags {
    pub(crate) fn new() -> Self {
        Self { tag: Some(String::new()), ..Self::default() }
    }

    /// Whether the next character is data, whatever it looks like.
    pub(crate) fn in_string(&self) -> bool {
        !self.open.is_empty() && self.tag.is_none()
    }

    pub(crate) fn push(&mut self, c: char) -> NestedTagsStep {
        if let Some(tag) = &mut self.tag {
            let is_tag = match tag.is_empty() {
                true => c == '<' || c.is_whitespace(),
                false => c != '<' && c != '\n' && tag.len() < LONGEST_TAG,
            };
            if !is_tag {
                return fail(format!("expected a tag after the token, found `{c}`"), c);
            }
            if c == '>' {
                let tag = self.tag.take().unwrap_or_default();
                return self.read_tag(&tag[1..]);
            }
            if !(tag.is_empty() && c.is_whitespace()) {
                tag.push(c);
            }
            return NestedTagsStep::More;
        }
        match self.matcher.push(c) {
            Match::Partial => {}
            Match::Full(Mark::Namespace, _) => self.tag = Some(String::new()),
            Match::Full(_, mark) => return self.text(mark),
            Match::None(held) if held.is_empty() => return self.text(c.encode_utf8(&mut [0; 4])),
            Match::None(held) => {
                return match self.text(&held) {
                    NestedTagsStep::More => self.push(c),
                    other => other,
                };
            }
        }
        NestedTagsStep::More
    }

    fn text(&mut self, text: &str) -> NestedTagsStep {
        match self.open.last_mut() {
            Some(node) => node.text.push_str(text),
            None if text.trim().is_empty() => {}
            None => return fail(format!("`{}` stands between the arguments", excerpt(text)), text),
        }
        NestedTagsStep::More
    }

    fn read_tag(&mut self, tag: &str) -> NestedTagsStep {
        let Some(closed) = tag.strip_prefix('/') else {
            if self.open.len() == MAX_DEPTH {
                return fail(format!("it is nested deeper than {MAX_DEPTH} levels"), "");
            }
            self.open.push(NestedTag { key: tag.to_owned(), ..NestedTag::default() });
            return NestedTagsStep::More;
        };
        let Some(node) = self.open.pop() else {
            return match closed {
                "invoke" => NestedTagsStep::Done,
                _ => fail(format!("</{}> closes nothing", excerpt(closed)), ""),
            };
        };
        if node.key != closed {
            return fail(format!("</{}> does not close <{}>", excerpt(closed), excerpt(&node.key)), "");
        }
        let has_children = !node.children.is_empty();
        if has_children && !node.text.trim().is_empty() {
            return fail(format!("<{}> holds tags and text", excerpt(&node.key)), "");
        }
        let argument = match has_children {
            true => node.value().map(|value| (value.to_string(), RawKind::Json)),
            false => Ok((node.text.clone(), RawKind::Unknown)),
        };
        let (text, kind) = match argument {
            Ok(argument) => argument,
            Err(reason) => return fail(reason, ""),
        };
        match self.open.last_mut() {
            Some(parent) => match raw_value::read(&text, kind, None) {
                Ok(value) => parent.children.push((node.key, value)),
                Err(reason) => return fail(reason, ""),
            },
            None if self.arguments.iter().any(|argument| argument.key == node.key) => {
                return fail(format!("the argument `{}` is given twice", excerpt(&node.key)), "");
            }
            None => self.arguments.push(RawParameter { key: node.key, text, kind }),
        }
        NestedTagsStep::More
    }
}

impl NestedTag {
    fn value(&self) -> Result<Value, String> {
        if self.children.iter().all(|(key, _)| key == ITEM) {
            return Ok(self.children.iter().map(|(_, value)| value.clone()).collect());
        }
        let mut map = Map::new();
        for (key, value) in &self.children {
            if map.insert(key.clone(), value.clone()).is_some() {
                return Err(format!("the key `{}` stands twice", excerpt(key)));
            }
        }
        Ok(Value::Object(map))
    }
}

fn fail(reason: impl Into<String>, held: impl Into<String>) -> NestedTagsStep {
    NestedTagsStep::Fail(Flow::fail(reason, held))
}
