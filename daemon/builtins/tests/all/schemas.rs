//! The schemas of all built-ins, which the daemon takes for right.

use toold_engine::schema::Schema;

use crate::house::House;

#[tokio::test]
async fn they_compile() {
    let house = House::strict();
    let tools = toold_builtins::all(&house.shared);
    assert!(tools.len() > 10, "{}", tools.len());
    for tool in tools {
        let spec = tool.spec();
        Schema::compile_input(spec.input.as_value().clone()).unwrap_or_else(|error| panic!("{}: {error}", spec.name));
    }
}
