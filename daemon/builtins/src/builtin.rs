//! Adapts a tool of this crate to the engine's tool interface.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_host::file_systems::answering;
use toold_proto::tool::{Annotations, Category, GrammarSyntax, Source, SourceKind, ToolGrammar, ToolName};

use crate::schemas;
use crate::toolkit::Toolkit;

/// A built-in tool.
pub(crate) trait Builtin: Send + Sync + Sized + 'static {
    /// Rejects unknown fields. Its doc comments are the descriptions that a model reads.
    #[cfg(not(test))]
    type Input: DeserializeOwned + Send + Sync;
    /// As without tests, which make the schema.
    #[cfg(test)]
    type Input: DeserializeOwned + schemars::JsonSchema + Send + Sync;

    const NAME: &'static str;
    const FACTS: ToolFacts;
    /// A Lark grammar of the argument `input`, for models that can write it as plain text.
    const GRAMMAR: Option<&'static str> = None;

    fn new(toolkit: Arc<Toolkit>) -> Self;

    /// The permissions that the call needs.
    ///
    /// # Errors
    /// Becomes a result with `is_error`.
    fn needs(&self, input: &Self::Input, cx: &Cx) -> impl Future<Output = anyhow::Result<Vec<Need>>> + Send;

    /// Runs the tool. A [`ToolError`] in the error's chain is passed on unchanged; any other error becomes a result
    /// with `is_error` and the chain's messages.
    fn run(&self, input: Self::Input, cx: &Cx) -> impl Future<Output = anyhow::Result<ToolOutput>> + Send;
}

/// A tool's description of itself, except its schema.
pub(crate) struct ToolFacts {
    pub(crate) label: &'static str,
    pub(crate) description: &'static str,
    pub(crate) parallelizable: bool,
    pub(crate) permissions: &'static [Category],
    /// `None` uses the engine's default limit.
    pub(crate) timeout: Option<Duration>,
    pub(crate) annotations: Annotations,
}

/// Hints for tools that change nothing.
pub(crate) const READS: Annotations = Annotations {
    read_only: Some(true),
    destructive: Some(false),
    idempotent: Some(true),
    open_world: Some(false),
    task: None,
};
/// Hints for tools that may change anything.
pub(crate) const CHANGES: Annotations = Annotations {
    read_only: Some(false),
    destructive: Some(true),
    idempotent: Some(false),
    open_world: Some(false),
    task: None,
};

/// A built-in tool in the list of all.
pub(crate) struct BuiltinEntry {
    pub(crate) make: fn(&Arc<Toolkit>) -> Arc<dyn Callable>,
    /// Its name, and the schema of its input.
    #[cfg(test)]
    pub(crate) schema: fn() -> (String, Value),
}

impl BuiltinEntry {
    pub(crate) const fn of<B: Builtin>() -> Self {
        Self {
            make: make::<B>,
            #[cfg(test)]
            schema: || schemas::made::<B::Input>(B::NAME),
        }
    }
}

pub(crate) fn make<B: Builtin>(toolkit: &Arc<Toolkit>) -> Arc<dyn Callable> {
    make_described::<B>(toolkit, B::FACTS.description.to_owned())
}

/// As `make`, for a tool whose description depends on the available data.
pub(crate) fn make_described<B: Builtin>(toolkit: &Arc<Toolkit>, description: String) -> Arc<dyn Callable> {
    Arc::new(Adapter { spec: ToolSpec { description, ..spec::<B>() }, tool: B::new(toolkit.clone()) })
}

fn spec<B: Builtin>() -> ToolSpec {
    ToolSpec {
        name: ToolName::parse(B::NAME).expect("the name of a built-in is a tool's name"),
        label: B::FACTS.label.to_owned(),
        description: B::FACTS.description.to_owned(),
        // A test compiles all schemas. Doing that at start would take a tenth of the start time.
        input: Schema::compiled_before(schemas::of_input(B::NAME)),
        output: None,
        source: Source { kind: SourceKind::Builtin, name: "toold".to_owned(), path: None },
        origin: Origin::Builtin,
        parallelizable: B::FACTS.parallelizable,
        permissions: B::FACTS.permissions.to_vec(),
        cache_ttl: None,
        timeout: B::FACTS.timeout,
        annotations: B::FACTS.annotations,
        version: None,
        grammar: B::GRAMMAR.map(|text| ToolGrammar { syntax: GrammarSyntax::Lark, definition: text.to_owned() }),
    }
}

struct Adapter<B> {
    spec: ToolSpec,
    tool: B,
}

impl<B: Builtin> Callable for Adapter<B> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, input: &'a Value, cx: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        Box::pin(async move {
            let input = read_input::<B>(input)?;
            self.tool.needs(&input, cx).await.map_err(into_tool_error)
        })
    }

    fn may_block(&self) -> bool {
        answering::any()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input = read_input::<B>(&input)?;
            self.tool.run(input, cx).await.map_err(into_tool_error)
        })
    }
}

/// The schema has been checked; the messages here cover what a schema cannot express.
fn read_input<B: Builtin>(input: &Value) -> Result<B::Input, ToolError> {
    B::Input::deserialize(input).map_err(|error| ToolError::Failed(format!("invalid arguments: {error}")))
}

pub(crate) fn into_tool_error(error: anyhow::Error) -> ToolError {
    let is_of_file_system = error.chain().any(|cause| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| answering::no_answer(error).is_some())
    });
    match error.downcast::<ToolError>() {
        Ok(error) => error,
        Err(error) if is_of_file_system => ToolError::Overloaded(words(&error)),
        Err(error) => ToolError::Failed(words(&error)),
    }
}

/// The messages of the chain, without causes that the message before already ends with.
fn words(error: &anyhow::Error) -> String {
    let mut words = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if !words.ends_with(&cause) {
            words.push_str(if words.is_empty() { "" } else { ": " });
            words.push_str(&cause);
        }
    }
    words
}
