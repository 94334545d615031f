//! Where plugins spend their time.

use std::time::Duration;

use serde_json::json;
use toold_lua::reload::profile::ProfileError;

use crate::world::{TestPlugins, soon};

const BUSY: &str = "local function spin(n) local x = 0 for i = 1, n do x = x + i % 7 end return x end
local function outer(n)
  return spin(n)
end
hygge.register_tool{name = 'busy', execute = function(ctx, input)
  hygge.sleep(1)
  coroutine.wrap(function() spin(1000) end)()
  return outer(20000)
end}";

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_shows_the_functions_that_ran() {
    let world = TestPlugins::of(BUSY).await;
    let path = world.plugin("p").path;
    world.text("busy", json!({})).await;
    let profiling = world.host.profile(&path, Duration::from_secs(1));
    let calls = async {
        loop {
            world.text("busy", json!({})).await;
            tokio::task::yield_now().await;
        }
    };
    let profile = tokio::select! {
        profile = profiling => profile.unwrap(),
        () = calls => unreachable!(),
    };
    let deepest = ["execute (p.lua:5)", "outer (p.lua:2)", "spin (p.lua:1)"];
    let stack = profile.stacks.iter().find(|stack| stack.frames == deepest);
    assert!(stack.is_some_and(|stack| stack.us >= 1_000), "{profile:#?}");
    // Each is rounded down to whole microseconds.
    let sum: u64 = profile.stacks.iter().map(|stack| stack.us).sum();
    assert!(profile.total_us.abs_diff(sum) <= profile.stacks.len() as u64, "{profile:#?}");
    assert!(
        profile.stacks.iter().flat_map(|stack| &stack.frames).all(|frame| frame.contains("(p.lua")),
        "{profile:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_profile_at_a_time() {
    let world = TestPlugins::of(BUSY).await;
    let path = world.plugin("p").path;
    {
        let long = std::pin::pin!(world.host.profile(&path, Duration::from_secs(600)));
        assert!(futures_util::poll!(long).is_pending());
        let second = soon(world.host.profile(&path, Duration::ZERO)).await;
        assert_eq!(second, Err(ProfileError::Busy));
    }
    // Dropping the first one ended it.
    let idle = soon(world.host.profile(&path, Duration::ZERO)).await.unwrap();
    assert_eq!(idle.stacks, []);
    let unknown = soon(world.host.profile("/none", Duration::ZERO)).await;
    assert_eq!(unknown, Err(ProfileError::NotServing));
}
