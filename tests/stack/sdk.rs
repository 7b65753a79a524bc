//! The official OpenAI SDK, through Sluicegate and LiteLLM.

use harness::Bridge;
use platform_core::record::{Outcome, TokensSource};

use crate::world_with_litellm;

#[tokio::test]
async fn streams_of_the_official_sdk_are_complete_and_metered() {
    let (world, litellm) = world_with_litellm().await;
    let run = world.run("r1", "acct-1").await;
    let bridge = Bridge::to(&run.socket).await;
    let outcome =
        litellm.python("sdk_streams.py", &[run.socket.to_str().unwrap(), &bridge.base_url(), "5"]).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let records = world.records(10).await;
    let ends: Vec<_> = records.iter().map(|line| (line.record.outcome, line.record.tokens_source)).collect();
    assert_eq!(ends, [(Outcome::Complete, TokensSource::Exact); 10]);
    assert!(records.iter().all(|line| line.record.tokens.output == 10));
}
