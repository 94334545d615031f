//! Validates the schemas of all built-ins, which the daemon assumes to be valid.

use toold_engine::schema::Schema;

use crate::builtin_test::BuiltinTest;

#[tokio::test]
async fn they_compile() {
    let test = BuiltinTest::strict();
    let tools = toold_builtins::all(&test.toolkit);
    assert!(tools.len() > 10, "{}", tools.len());
    for tool in tools {
        let spec = tool.spec();
        Schema::compile_input(spec.input.as_value().clone()).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    }
}
