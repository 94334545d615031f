//! A tool that is made of closures.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use toold_engine::callable::Callable;
use toold_engine::cx::Cx;
use toold_engine::need::Need;
use toold_engine::schema::Schema;
use toold_engine::tool::{Origin, ToolError, ToolOutput, ToolSpec};
use toold_proto::tool::{Annotations, Source, SourceKind, ToolName};

type SampleNeeds = Box<dyn Fn(&Value) -> Vec<Need> + Send + Sync>;
type SampleRun = Box<dyn for<'a> Fn(Value, &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> + Send + Sync>;

/// The description of a tool that takes any object and may run beside others.
pub fn sample_spec(name: &str) -> ToolSpec {
    ToolSpec {
        name: ToolName::parse(name).unwrap(),
        label: name.into(),
        description: String::new(),
        input: Schema::compile_input(json!({"type": "object"})).unwrap(),
        output: None,
        source: Source { kind: SourceKind::Builtin, name: "test".into(), path: None },
        origin: Origin::Builtin,
        parallelizable: true,
        permissions: Vec::new(),
        cache_ttl: None,
        timeout: None,
        annotations: Annotations::default(),
        version: None,
        grammar: None,
    }
}

/// A tool that needs and does what the test says; without that, it needs nothing and answers "ran".
pub struct SampleTool {
    pub spec: ToolSpec,
    needs: SampleNeeds,
    run: SampleRun,
}

impl SampleTool {
    pub fn new(name: &str) -> Self {
        Self {
            spec: sample_spec(name),
            needs: Box::new(|_| Vec::new()),
            run: Box::new(|_, _| async { Ok(ToolOutput::text("ran")) }.boxed()),
        }
    }

    pub fn serial(mut self) -> Self {
        self.spec.parallelizable = false;
        self
    }

    pub fn spec(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    pub fn needs(mut self, needs: impl Fn(&Value) -> Vec<Need> + Send + Sync + 'static) -> Self {
        self.needs = Box::new(needs);
        self
    }

    pub fn run(
        mut self,
        run: impl for<'a> Fn(Value, &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> + Send + Sync + 'static,
    ) -> Self {
        self.run = Box::new(run);
        self
    }
}

impl Callable for SampleTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn needs<'a>(&'a self, input: &'a Value, _: &'a Cx) -> BoxFuture<'a, Result<Vec<Need>, ToolError>> {
        async { Ok((self.needs)(input)) }.boxed()
    }

    fn call<'a>(&'a self, input: Value, cx: &'a Cx) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.run)(input, cx)
    }
}
