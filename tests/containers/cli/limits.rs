//! `sluice run` with its own limits.

use harness::{World, shell_agents::shell_agent};
use serde_json::Value;

/// A limit of cost needs a price for each model that may be called.
const PRICES: &str = "[prices.'*']\ninput = '1'\noutput = '2'\n";

async fn sluice(world: &World, arguments: &[&str]) -> String {
    let outcome = world.sluice().run(arguments).await;
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{arguments:?}: {outcome:?}");
    outcome.stdout
}

fn limit<'v>(view: &'v Value, name: &str) -> &'v Value {
    view["limits"].as_array().unwrap().iter().find(|limit| limit["limit"] == name).unwrap()
}

/// The limits are those of its agent's entry.
#[tokio::test]
async fn a_run_may_lower_limits_but_not_raise_them() {
    let world = World::with(&(shell_agent("echo done", "total_tokens = 20000") + PRICES)).await;
    for (run, asked, allowed) in [("less", "5000", 5000), ("more", "90000", 20_000)] {
        let arguments =
            ["run", "--agent", "test:sh", "--run-id", run, "--total-tokens", asked, "--cost", "1.25", "q"];
        assert_eq!(sluice(&world, &arguments).await, "done\n");
        let view: Value =
            serde_json::from_str(&sluice(&world, &["usage", "--run", run, "--json"]).await).unwrap();
        assert_eq!(limit(&view, "total_tokens")["allowed"], allowed, "{view}");
        assert_eq!(limit(&view, "cost_nanodollars")["allowed"], 1_250_000_000, "{view}");
    }
}
