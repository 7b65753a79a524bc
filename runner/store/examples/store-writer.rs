//! Writes runs to a store until it is killed, and prints each step once it is stored; for the conformance suite.
//!
//! usage: store-writer URL PREFIX

use std::io::{self, Write};

use platform_core::{
    control::Usage,
    grant::Correlation,
    id::{AccountId, AgentId, InstallationId, RunId},
    limit::Millis,
    priority::Priority,
};
use runner_model::lifecycle::{Completion, Transition};
use runner_store::{
    Address, Claimant, Created, HostId, HostIdentity, NewRun, ResourceChange, ResourceKind, Step, Store,
    Worker,
};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [url, prefix] = arguments.as_slice() else { return Err("usage: store-writer URL PREFIX".into()) };
    let store = Store::open(&Address::parse(url, None)?, InstallationId::parse("here")?).await?;
    let store = store.serving(HostIdentity { id: HostId::from_random(1), name: String::new() }).await?;
    let worker = Worker::this_process();
    for n in 0_u64.. {
        let new = NewRun {
            run_id: RunId::parse(&format!("{prefix}-{n}"))?,
            account: AccountId::parse("acct-1")?,
            agent: AgentId::parse("sandbox:agent")?,
            correlation: Correlation::default(),
            priority: Priority::default(),
            session: None,
            turn: None,
            model: None,
            question: None,
            wanted: "{}".to_owned(),
        };
        let Created::New(run) = store.create(&new, Claimant::Worker(&worker, Millis(0))).await? else {
            continue;
        };
        print_state(&run.run_id, run.state.name())?;
        let completion =
            Completion { exit_code: Some(0), oom_seen: Some(false), answer: Ok("answer".to_owned()) };
        let transitions = [
            Transition::Prepare,
            Transition::Start,
            Transition::Run,
            Transition::Settle(completion),
            Transition::Finish(Some(Usage::default())),
        ];
        for transition in transitions {
            let mut step = Step::from(transition);
            if step.transition == Some(Transition::Prepare) {
                step = step.with([ResourceChange::wanted(ResourceKind::Workspace, "/w")]);
            }
            let run = store.step(&run.fencing_token(), &step).await?;
            print_state(&run.run_id, run.state.name())?;
        }
    }
    Ok(())
}

/// Prints one line, and flushes it at once.
fn print_state(run_id: &RunId, state: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{run_id} {state}")?;
    out.flush()
}
