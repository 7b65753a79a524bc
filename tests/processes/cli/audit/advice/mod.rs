//! Follows the advice of `sluice audit show`. For each refusal that names commands, a test makes the refusal, runs the
//! commands as they are printed, and looks whether the next call passes.
//!
//! Settings that the advice names are not followed here: a unit test of the command line looks each up in the schema.

mod limits;
mod looks;
mod stops;
mod tokens;

use harness::{World, advice::listed, eventually};
use platform_core::{
    budget::Limit,
    record::{ExchangeRecord, Identity},
    refusal::Refusal,
    untrusted::JournalText,
};

use super::said;

/// Refusals with commands that the tests of this directory follow.
const FOLLOWED: [&[Refusal]; 4] = [limits::FOLLOWED, stops::FOLLOWED, tokens::FOLLOWED, looks::FOLLOWED];

/// Refusals with commands that no test here follows, and why.
const NOT_FOLLOWED: [(Refusal, &str); 5] = [
    (
        Refusal::BalanceExhausted,
        "`sluice up` needs Docker to tell the proxy of balances: the containers' tests",
    ),
    (Refusal::JournalUnavailable, "the remedy is room on a disk, which `sluice doctor` cannot make"),
    (Refusal::PolicyDenied, "`sluice tools explain` needs a run in a container"),
    (
        Refusal::ToolsUnavailable,
        "the remedy is a `sluice up`, which `sluice doctor` asks for and needs Docker",
    ),
    (Refusal::OutcomeUnknown, "the call is over, and `sluice doctor` only shows whether tools answer again"),
];

/// Returns what `sluice audit show` prints about the last call with `refusal`.
async fn shown(world: &World, refusal: Refusal) -> String {
    let refused = || async {
        let mut records = world.journal().await.into_iter().map(|line| line.record);
        records.rfind(|record| record.refusal == Some(refusal))
    };
    let record = eventually("the refusal is recorded", refused, Option::is_some).await.unwrap();
    said(world, &["show", &record.litellm_call_id.to_string()]).await
}

/// Returns the commands that are printed about the last call with `refusal`.
async fn advised(world: &World, refusal: Refusal) -> Vec<String> {
    let text = shown(world, refusal).await;
    let commands = listed(&text);
    assert!(!commands.is_empty(), "{text}");
    commands
}

/// Returns records of `refusal` with each kind of rule.
fn records(refusal: Refusal, record: &ExchangeRecord) -> Vec<ExchangeRecord> {
    let limits = Limit::ALL.map(|limit| format!("run.{}", limit.setting()));
    let others = ["tool:bash", "tools.calls", "field:x", "model:x", "all", "account", "model"];
    let rules = limits.into_iter().chain(others.map(str::to_owned)).map(Some).chain([None]);
    let with = |rule: Option<String>| ExchangeRecord {
        refusal: Some(refusal),
        rule: rule.map(|rule| JournalText::of(&rule)),
        identity: Identity::Socket,
        ..record.clone()
    };
    rules.map(with).collect()
}

/// A refusal that names a command has its row above, and no other has one.
#[tokio::test]
async fn every_refusal_with_a_command_has_a_row() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    run.agent.chat("fake").await;
    let record = world.records(1).await.remove(0).record;
    for refusal in Refusal::ALL {
        let advice =
            records(refusal, &record).into_iter().filter_map(|record| runner_audit::advice::of(&record));
        let names_commands = advice.into_iter().any(|advice| !advice.commands.is_empty());
        let rows = FOLLOWED.concat().into_iter().chain(NOT_FOLLOWED.map(|(refusal, _)| refusal));
        let rows = rows.filter(|row| *row == refusal).count();
        assert_eq!(rows, usize::from(names_commands), "rows of {refusal:?}");
    }
}
