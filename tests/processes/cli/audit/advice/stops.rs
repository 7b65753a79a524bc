//! Follows advice about what an operator stopped.

use harness::{World, advice::follow};
use platform_core::refusal::Refusal;

use super::advised;

pub(super) const FOLLOWED: &[Refusal] = &[Refusal::Frozen];

#[tokio::test]
async fn an_advised_thaw_lets_calls_pass() {
    let world = World::start().await;
    let run = world.run("r1", "auth0|acct").await;
    for stop in ["sluice freeze --account 'auth0|acct'", "sluice freeze --model fake", "sluice freeze --all"]
    {
        assert_eq!(follow(world.sluice(), stop, &[]).await.code, Some(0), "{stop}");
        assert_ne!(run.agent.chat("fake").await.status, 200, "control: {stop}");
        for command in advised(&world, Refusal::Frozen).await {
            let outcome = follow(world.sluice(), &command, &[]).await;
            assert_eq!(outcome.code, Some(0), "{command}: {outcome:?}");
        }
        assert_eq!(run.agent.chat("fake").await.status, 200, "{stop}");
    }
}
