//! Takes a model's thinking out of the stream before anything else looks at it.
//!
//! `<think>` and `<thinking>`, in any case and with attributes, as Qwen3, DeepSeek-R1 and many
//! prompts have them (<https://huggingface.co/Qwen/Qwen3-8B>, `chat_template`), and Gemma 4's
//! `<|channel>thought ... <channel|>` (<https://ai.google.dev/gemma/docs/core/prompt-formatting-gemma4>); the tokens of
//! other families are in [`TAGS`].

/// The sort of a block of thinking: only a close tag of its own sort ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Think,
    Thinking,
    Channel,
    Cohere,
    Seed,
    Mistral,
    Apertus,
    MiniCpm,
    Plamo,
    Solar,
    Hunyuan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Open(Sort),
    Close(Sort),
    /// `<think/>`: nothing was thought.
    Empty,
}

/// In lower case; no tag begins another.
const TAGS: [(&str, Tag); 22] = [
    ("<think>", Tag::Open(Sort::Think)),
    ("</think>", Tag::Close(Sort::Think)),
    ("<thinking>", Tag::Open(Sort::Thinking)),
    ("</thinking>", Tag::Close(Sort::Thinking)),
    ("<|channel>thought", Tag::Open(Sort::Channel)),
    ("<channel|>", Tag::Close(Sort::Channel)),
    ("<|start_thinking|>", Tag::Open(Sort::Cohere)),
    ("<|end_thinking|>", Tag::Close(Sort::Cohere)),
    ("<seed:think>", Tag::Open(Sort::Seed)),
    ("</seed:think>", Tag::Close(Sort::Seed)),
    ("[think]", Tag::Open(Sort::Mistral)),
    ("[/think]", Tag::Close(Sort::Mistral)),
    ("<|inner_prefix|>", Tag::Open(Sort::Apertus)),
    ("<|inner_suffix|>", Tag::Close(Sort::Apertus)),
    ("<|thought_start|>", Tag::Open(Sort::MiniCpm)),
    ("<|thought_end|>", Tag::Close(Sort::MiniCpm)),
    ("<|plamo:begin_think:plamo|>", Tag::Open(Sort::Plamo)),
    ("<|plamo:end_think:plamo|>", Tag::Close(Sort::Plamo)),
    ("<|think:start|>", Tag::Open(Sort::Solar)),
    ("<|think:end|>", Tag::Close(Sort::Solar)),
    ("<think:opensource>", Tag::Open(Sort::Hunyuan)),
    ("</think:opensource>", Tag::Close(Sort::Hunyuan)),
];

/// Finds thinking's tags. Fed from a `<` or `[` on, until it decides.
#[derive(Debug, Default)]
pub(crate) struct TagMatcher {
    held: String,
    /// After `<think` and a space, up to the `>`.
    attributes: Option<Sort>,
}

pub(crate) enum TagVerdict {
    /// May be a tag; the character is held.
    Partial,
    /// The tag and its text.
    Tag(Tag, String),
    /// No tag. The character itself is not among what was held.
    None(String),
}

/// More than this is no list of attributes; it bounds what is held, and so the time.
const LONGEST_TAG: usize = 256;

impl TagMatcher {
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn take(&mut self) -> String {
        self.attributes = None;
        std::mem::take(&mut self.held)
    }

    pub(crate) fn push(&mut self, c: char) -> TagVerdict {
        if self.held.is_empty() && c != '<' && c != '[' {
            return TagVerdict::None(String::new());
        }
        if let Some(sort) = self.attributes {
            if c == '>' {
                let tag = if self.held.ends_with('/') { Tag::Empty } else { Tag::Open(sort) };
                self.held.push(c);
                return TagVerdict::Tag(tag, self.take());
            }
            if c == '<' || self.held.len() >= LONGEST_TAG {
                return TagVerdict::None(self.take());
            }
            self.held.push(c);
            return TagVerdict::Partial;
        }
        let before = self.held.to_ascii_lowercase();
        self.held.push(c);
        let text = self.held.to_ascii_lowercase();
        if let Some((_, tag)) = TAGS.into_iter().find(|(tag, _)| *tag == text) {
            return TagVerdict::Tag(tag, self.take());
        }
        if c.is_whitespace() || c == '/' {
            self.attributes = match before.as_str() {
                "<think" => Some(Sort::Think),
                "<thinking" => Some(Sort::Thinking),
                _ => None,
            };
        }
        if self.attributes.is_some() || TAGS.iter().any(|(tag, _)| tag.starts_with(&text)) {
            return TagVerdict::Partial;
        }
        self.held.pop();
        TagVerdict::None(std::mem::take(&mut self.held))
    }
}

/// A tag is spoken of when it stands between two of the same.
pub(crate) const QUOTES: [char; 3] = ['`', '"', '\''];

/// A block of thinking that has begun.
#[derive(Debug)]
pub(crate) struct OpenThinking {
    /// `None` when the model's template has opened it: any close tag ends it.
    pub sort: Option<Sort>,
    /// How many open tags of its sort wait for their close tag.
    pub depth: usize,
}

impl OpenThinking {
    /// Whether the block ends with this tag. Tags of other sorts are part of the thinking.
    pub(crate) fn meets(&mut self, tag: Tag) -> bool {
        match tag {
            Tag::Open(sort) if self.sort.is_none_or(|own| own == sort) => self.depth += 1,
            Tag::Close(sort) if self.sort.is_none_or(|own| own == sort) => self.depth -= 1,
            Tag::Open(_) | Tag::Close(_) | Tag::Empty => {}
        }
        self.depth == 0
    }
}
