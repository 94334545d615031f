//! The refusals of plugins, as they are kept for the person who may grant them.

use futures_util::FutureExt;
use serde_json::json;
use toold_engine::need::Need;
use toold_engine::permission::grant;
use toold_engine::policy::grants::GrantScope;
use toold_engine::registry::SourceScope;
use toold_engine::tool::ToolOutput;
use toold_proto::tool::{Category, SourceKind};
use toold_test_kit::SampleTool;

use crate::calls::test_engine::TestEngine;

/// A tool of the plugin `plug` that needs the host that it is called with.
fn fixture() -> TestEngine {
    let tool = SampleTool::new("fetch").run(|input, cx| {
        async move {
            cx.require(Need::new(Category::Network, input["host"].as_str().unwrap())).await?;
            Ok(ToolOutput::text("fetched"))
        }
        .boxed()
    });
    TestEngine::new(vec![tool.spec(|spec| {
        spec.source.kind = SourceKind::Plugin;
        spec.source.name = "plug".into();
    })])
}

#[tokio::test]
async fn refusals_are_bounded_and_the_newest_come_first() {
    let fixture = fixture();
    for number in 0..150 {
        fixture.call("fetch", json!({"host": format!("h{number}.example:443")})).await.unwrap();
    }
    fixture.call("fetch", json!({"host": format!("{}.example:443", "x".repeat(10_000))})).await.unwrap();
    let refused = fixture.engine.plugin_refusals.of(&SourceScope::Global, "plug", None);
    assert_eq!(refused.len(), 100);
    assert!(refused[0].target.len() < 2_100 && refused[0].pattern.is_none(), "a target that is too long to be kept");
    assert_eq!((refused[1].target.as_str(), refused[99].target.as_str()), ("h149.example:443", "h51.example:443"));
}

#[tokio::test]
async fn a_wide_grant_removes_all_that_it_allows_and_nothing_else() {
    let fixture = fixture();
    for host in ["a.example:443", "b.example:443", "c.test:443"] {
        fixture.call("fetch", json!({"host": host})).await.unwrap();
    }
    let targets = || {
        let refused = fixture.engine.plugin_refusals.of(&SourceScope::Global, "plug", None);
        refused.into_iter().map(|need| need.target).collect::<Vec<_>>()
    };
    let give = |more: serde_json::Value| {
        let mut params = json!({"category": "network", "pattern": "*.example", "scope": "always"});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        grant(&fixture.engine, &serde_json::from_value(params).unwrap(), GrantScope::Always, None).unwrap()
    };
    let without_chain = give(json!({}));
    assert_eq!(without_chain.without_chains, [["plug"]]);
    give(json!({"chain": ["plug"], "action": "deny"}));
    give(json!({"chain": ["plug"], "tools": ["other"]}));
    assert_eq!(targets().len(), 3);
    give(json!({"chain": ["plug"]}));
    assert_eq!(targets(), ["c.test:443"]);
}
