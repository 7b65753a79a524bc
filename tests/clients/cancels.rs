//! Tests cancels at random moments of turns of a real gateway. `tests/examples/cancel-gateway.rs` makes a hundred.

use harness::{
    Agent,
    cancels::{Cancels, gateway, judge},
};
use serde_json::json;

#[tokio::test]
async fn no_model_is_asked_once_a_run_is_cancelled() {
    let sessions = gateway().await;
    let (runs, found) = Cancels { runs: 8, at_a_time: 4, seed: 1 }.run(&sessions).await;
    assert_eq!(found.faults, Vec::<String>::new(), "{found:?}");
    assert!(found.calls > 0 && found.before_the_first_call < found.runs, "{found:?}");

    // The control: a late call, here from another client, is found.
    let late = json!({ "model": "fake", "messages": [{ "role": "user", "content": runs[0].mark }] });
    let upstream = sessions.world.upstream.base_url().replace("http://", "");
    let direct = Agent::over_tcp(upstream.parse().unwrap());
    assert_eq!(direct.post("/v1/chat/completions", &late).await.status, 200);
    let found = judge(&runs, &sessions.world.upstream.ledger());
    assert_eq!(found.faults.len(), 1, "{found:?}");
    sessions.gateway.stop().await;
}
