//! A tag that names the tool, with JSON in it or with one tag for each argument.
//!
//! - `<function=NAME>{"key": ...}</function>`: Llama 3.1's custom tools
//!   (<https://www.llama.com/docs/model-cards-and-prompt-formats/llama3_1/>, "User-defined custom
//!   tool calling") and Functionary 3.1.
//! - `<function=NAME><parameter=KEY>value</parameter></function>`: Qwen3-Coder.
//! - `<invoke name="NAME"><parameter name="KEY">value</parameter></invoke>` and its like.

use std::collections::HashSet;

use super::Flow;
use super::gap::{Gap, GapStep};
use crate::mark::Mark;
use crate::parse::found_call::{self, FoundCall, RawArguments, RawKind, RawParameter};
use crate::parse::lenient_json::{JsonDialect, JsonReader, JsonStep, excerpt};
use crate::parse::markers::{Match, Matcher};
use crate::parse::shapes::header::TagAttributes;
use crate::parse::shapes::tree::{NestedTags, NestedTagsStep};
use crate::tag_style::{TagStyle, ToolTags};

#[derive(Debug)]
pub(crate) struct ToolTag {
    style: TagStyle,
    state: ToolTagState,
    name: String,
    json: Option<Result<FoundCall, String>>,
    parameters: Vec<RawParameter>,
    keys: HashSet<String>,
}

#[derive(Debug)]
enum ToolTagState {
    /// After the `=`.
    Name,
    /// The attributes of the tool's tag, or of an argument's.
    Attributes {
        attributes: TagAttributes,
        of_parameter: bool,
        /// A `/` has come: the tag closes itself.
        is_closed: bool,
    },
    Gap(Gap),
    Json(JsonReader),
    Key(String),
    Tree(NestedTags),
    Value {
        key: String,
        kind: RawKind,
        text: String,
        matcher: Matcher,
    },
}

const LONGEST_KEY: usize = 256;

impl ToolTag {
    pub(crate) fn new(style: TagStyle) -> Self {
        let state = match style.tags().open.ends_with('=') {
            true => ToolTagState::Name,
            false => attributes(false),
        };
        Self { style, state, name: String::new(), json: None, parameters: Vec::new(), keys: HashSet::new() }
    }

    fn tags(&self) -> ToolTags {
        self.style.tags()
    }

    pub(crate) fn in_string(&self) -> bool {
        match &self.state {
            ToolTagState::Json(reader) => reader.in_string(),
            ToolTagState::Value { .. } => true,
            ToolTagState::Tree(tree) => tree.in_string(),
            ToolTagState::Name | ToolTagState::Attributes { .. } | ToolTagState::Gap(_) | ToolTagState::Key(_) => false,
        }
    }

    pub(crate) fn push(&mut self, c: char) -> Flow {
        let close = self.tags().parameter_close;
        match &mut self.state {
            ToolTagState::Name if c == '>' && !self.name.is_empty() => self.gap(),
            ToolTagState::Name if found_call::is_name_char(c) && self.name.len() < LONGEST_KEY => {
                self.name.push(c);
                Flow::More
            }
            ToolTagState::Name if c == '`' && self.name.is_empty() => Flow::Mentioned,
            ToolTagState::Name => Flow::fail("expected the name of a tool and `>` after `<function=`", c),
            ToolTagState::Attributes { attributes, of_parameter, is_closed } => {
                if *is_closed && c != '>' {
                    return Flow::fail("expected `>` after `/`", c);
                }
                if c == '/' && !*of_parameter && !attributes.in_quotes() && !attributes.are_empty() {
                    *is_closed = true;
                    return Flow::More;
                }
                if c != '>' || attributes.in_quotes() {
                    // Anything else is prose or a program.
                    let is_prose = !*of_parameter && attributes.are_empty();
                    return match attributes.push(c) {
                        Ok(()) => Flow::More,
                        Err(_) if is_prose => Flow::Mentioned,
                        Err(reason) => Flow::fail(reason, c),
                    };
                }
                let (name, of_parameter, is_closed) = (attributes.take("name"), *of_parameter, *is_closed);
                let kind = match attributes.take("string").as_deref() {
                    Some("true") => RawKind::Text,
                    Some("false") => RawKind::Json,
                    Some(_) | None => RawKind::Unknown,
                };
                match (name, of_parameter) {
                    (Some(key), true) => self.value(key, kind),
                    (None, true) => Flow::fail(format!("expected {}name=\"KEY\">", self.tags().parameter), c),
                    (Some(name), false) => {
                        self.name = name;
                        if is_closed { Flow::Done(vec![self.close()]) } else { self.gap() }
                    }
                    (None, false) if attributes.are_empty() => Flow::Mentioned,
                    (None, false) => Flow::fail(format!("expected {}name=\"NAME\">", self.tags().open), c),
                }
            }
            ToolTagState::Gap(gap) => match gap.push(c) {
                GapStep::More => Flow::More,
                GapStep::Char('{') if self.json.is_none() && self.parameters.is_empty() => {
                    let mut reader = JsonReader::new(JsonDialect::Json);
                    // An opening bracket is always taken.
                    reader.push('{');
                    self.state = ToolTagState::Json(reader);
                    Flow::More
                }
                GapStep::Mark(Mark::ParameterOpen(style), _) if self.json.is_none() => {
                    self.style = if style.tags().close == self.tags().close { style } else { self.style };
                    self.state = match style.tags().parameter.ends_with('=') {
                        true => ToolTagState::Key(String::new()),
                        false => attributes(true),
                    };
                    Flow::More
                }
                GapStep::Mark(Mark::Namespace, _) if self.json.is_none() && self.parameters.is_empty() => {
                    self.state = ToolTagState::Tree(NestedTags::new());
                    Flow::More
                }
                GapStep::Mark(Mark::Namespace, _) => Flow::More,
                GapStep::Mark(Mark::ElementClose, _) => Flow::Done(vec![self.close()]),
                GapStep::Mark(_, text) => Flow::fail(self.expected(), text),
                GapStep::Mentioned | GapStep::Char(_) => Flow::fail(self.expected(), c),
                GapStep::Other(held) => Flow::fail(self.expected(), held),
            },
            ToolTagState::Tree(tree) => match tree.push(c) {
                NestedTagsStep::More => Flow::More,
                NestedTagsStep::Fail(flow) => flow,
                NestedTagsStep::Done => {
                    self.parameters = std::mem::take(&mut tree.arguments);
                    Flow::Done(vec![self.close()])
                }
            },
            ToolTagState::Json(reader) => match reader.push(c) {
                JsonStep::More => Flow::More,
                JsonStep::Fail(reason) => Flow::fail(reason, reader.rejected(c)),
                JsonStep::Done(value) => {
                    self.json = Some(found_call::named(self.name.clone(), value));
                    self.gap()
                }
            },
            ToolTagState::Key(key) => {
                if c == '>' && !key.is_empty() {
                    let key = std::mem::take(key);
                    return self.value(key, RawKind::Unknown);
                }
                if c == '\n' || c == '<' || c == '>' || key.len() >= LONGEST_KEY {
                    return Flow::fail("expected a key and `>` after `<parameter=`", c);
                }
                key.push(c);
                Flow::More
            }
            ToolTagState::Value { text, matcher, .. } => {
                match matcher.push(c) {
                    Match::Partial => return Flow::More,
                    Match::Full(Mark::ParameterClose, tag) if tag == close && !is_open_cdata(text) => {
                        return self.take();
                    }
                    Match::Full(_, mark) => text.push_str(mark),
                    Match::None(held) if held.is_empty() => text.push(c),
                    Match::None(held) => {
                        text.push_str(&held);
                        // It may begin the next mark, and only that can hold it back again.
                        return self.push(c);
                    }
                }
                Flow::More
            }
        }
    }

    fn gap(&mut self) -> Flow {
        self.state = ToolTagState::Gap(Gap::default());
        Flow::More
    }

    fn value(&mut self, key: String, kind: RawKind) -> Flow {
        self.state = ToolTagState::Value { key, kind, text: String::new(), matcher: Matcher::default() };
        Flow::More
    }

    fn take(&mut self) -> Flow {
        let gap = ToolTagState::Gap(Gap::default());
        let ToolTagState::Value { key, mut kind, mut text, .. } = std::mem::replace(&mut self.state, gap) else {
            return Flow::More;
        };
        let data = cdata(&text).map(str::to_owned);
        let is_data = data.is_some();
        if let Some(data) = data {
            text = data;
            kind = RawKind::Text;
        } else if self.style == TagStyle::Equals {
            text = without_lone_line_break(text);
        }
        if !self.keys.insert(key.clone()) {
            return Flow::fail(format!("the parameter `{}` is given twice", excerpt(&key)), "");
        }
        // Then its own close tag is missing, most likely, and the value is not what was meant.
        let ToolTags { open, close, parameter, parameter_close } = self.tags();
        let tags = [parameter_close, parameter, close, open];
        if let Some(tag) = tags.into_iter().find(|tag| !is_data && text.contains(*tag)) {
            let key = excerpt(&key);
            return Flow::fail(format!("the parameter `{key}` holds `{tag}`; is its {parameter_close} missing?"), "");
        }
        self.parameters.push(RawParameter { key, text, kind });
        Flow::More
    }

    fn close(&mut self) -> Result<FoundCall, String> {
        match self.json.take() {
            Some(found) => found,
            None => Ok(FoundCall {
                name: std::mem::take(&mut self.name),
                arguments: RawArguments::Raw(std::mem::take(&mut self.parameters)),
                only_name: false,
            }),
        }
    }

    fn expected(&self) -> String {
        let ToolTags { close, parameter, .. } = self.tags();
        let key = if parameter.ends_with('=') { "KEY>" } else { "name=\"KEY\">" };
        format!("expected {parameter}{key}, a JSON object or {close}")
    }
}

fn attributes(of_parameter: bool) -> ToolTagState {
    ToolTagState::Attributes { attributes: TagAttributes::default(), of_parameter, is_closed: false }
}

const CDATA: &str = "<![CDATA[";
const CDATA_CLOSE: &str = "]]>";

/// The content of a value that is one section of XML's character data.
fn cdata(text: &str) -> Option<&str> {
    text.trim().strip_prefix(CDATA)?.strip_suffix(CDATA_CLOSE)
}

/// Whether a tag that comes now is data.
fn is_open_cdata(text: &str) -> bool {
    text.trim_start().starts_with(CDATA) && !text.trim_end().ends_with(CDATA_CLOSE)
}

/// Qwen3-Coder writes a line break at each end of a value, and some leave one out.
fn without_lone_line_break(text: String) -> String {
    match (text.strip_prefix('\n'), text.strip_suffix('\n')) {
        (Some(""), _) => String::new(),
        (Some(rest), None) | (None, Some(rest)) => rest.to_owned(),
        (Some(_), Some(_)) | (None, None) => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::markers::marks;
    use crate::parse::raw_value;

    #[test]
    fn the_marks_of_the_styles_are_marks() {
        let has = |text: &str, mark: Mark| marks().any(|other| other == (text, mark));
        for style in TagStyle::ALL {
            let ToolTags { open, close, parameter, parameter_close } = style.tags();
            assert!(has(open, Mark::ElementOpen(style)), "{open}");
            assert!(has(parameter, Mark::ParameterOpen(style)), "{parameter}");
            assert!(has(close, Mark::ElementClose), "{close}");
            assert!(has(parameter_close, Mark::ParameterClose), "{parameter_close}");
        }
        let ToolTags { open, close, parameter, parameter_close } = TagStyle::Equals.tags();
        assert_eq!(raw_value::TAGS, [parameter_close, parameter, close, open]);
    }
}
