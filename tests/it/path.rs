//! The whole path: a question into a sealed container, its answer out of it, the record of it in the journal.

use harness::World;
use platform_core::record::Outcome;

#[tokio::test]
async fn a_sealed_agent_gets_its_answer_and_the_journal_says_who_asked() {
    let world = World::start().await;
    let outcome = world
        .sluice()
        .run(&["run", "--account", "acct-1", "--run-id", "r1", "--model", "fake", "Hello?"])
        .await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");

    let asked = world.upstream.ledger().last().unwrap();
    let record = &world.records(1).await[0].record;
    assert_eq!(
        (record.run_id.as_str(), record.account.as_str(), record.outcome),
        ("r1", "acct-1", Outcome::Complete)
    );
    assert_eq!(asked.header("x-litellm-end-user-id"), ["acct-1"]);
    assert_eq!(asked.header("x-litellm-call-id"), [record.litellm_call_id.to_string()]);
    assert_eq!(asked.json().unwrap()["messages"][0]["content"], "Hello?");
    world.assert_nothing_left().await;
}
