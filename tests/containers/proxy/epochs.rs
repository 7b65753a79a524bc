//! Tests epochs: a worker that takes a run over registers it again in a later epoch. Every request of the previous
//! holder is then refused.

use harness::{Agent, World, grant};
use platform_core::{
    budget::Budget,
    control::{RunState, RunView},
    grant::RunGrant,
    id::RunId,
};

fn id() -> RunId {
    RunId::parse("r1").unwrap()
}

async fn view(world: &World) -> RunView {
    world.control.run(&id()).await.unwrap()
}

/// Returns the error codes for a worker that registers and closes the run in `epoch`, and no longer holds it.
async fn stale(world: &World, epoch: u64) -> [String; 2] {
    let registered = world.control.register_in(epoch, &grant("r1", "acct-1")).await.map(drop);
    let closed = world.control.close_in(epoch, &id(), 0).await.map(drop);
    [registered, closed].map(|answer| answer.unwrap_err().error.code)
}

#[tokio::test]
async fn a_fenced_worker_cannot_register_or_close() {
    let mut world = World::start().await;
    let granted = grant("r1", "acct-1");
    let first = world.control.register_in(1, &granted).await.unwrap();
    assert_eq!((view(&world).await.epoch, view(&world).await.socket), (1, first.socket.clone()));
    assert_eq!(
        world.control.register_in(2, &granted).await.unwrap(),
        first,
        "who takes it over finds its socket"
    );
    assert_eq!(view(&world).await.epoch, 2);

    let agent = Agent::on(&first.socket.clone().unwrap().path.join("llm.sock"));
    for restarted in [false, true] {
        if restarted {
            world.kill_proxy().await;
            world.start_proxy().await;
        }
        for epoch in [0, 1] {
            assert_eq!(stale(&world, epoch).await, ["fenced", "fenced"], "restarted: {restarted}");
        }
        assert_eq!((view(&world).await.epoch, view(&world).await.state), (2, RunState::Open));
        assert_eq!(agent.chat("fake").await.status, 200, "the run goes on");
    }

    // The same requests of the worker that holds it.
    assert_eq!(world.control.register_in(2, &granted).await.unwrap(), first);
    let closed = world.control.close_in(2, &id(), 0).await.unwrap();
    assert_eq!((closed.epoch, closed.state, &closed.socket), (2, RunState::Closed, &None));
    let late = world.control.close_in(3, &id(), 0).await.unwrap();
    assert_eq!(late, RunView { epoch: 3, ..closed }, "asking late is harmless");
    assert_eq!(stale(&world, 2).await, ["fenced", "fenced"], "also while a closed run is remembered");
    assert_eq!(world.control.register_in(3, &granted).await.unwrap_err().error.code, "run_closed");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_closed_run_opens_as_its_next_attempt() {
    let mut world = World::start().await;
    let budget = Budget { requests: Some(2), ..Budget::default() };
    let attempt = |attempt| RunGrant { attempt, budget, ..grant("r1", "acct-1") };
    for number in 0..2_u32 {
        let epoch = u64::from(number) + 1;
        let opened = world.control.register_in(epoch, &attempt(number)).await.unwrap();
        let agent = Agent::on(&opened.socket.unwrap().path.join("llm.sock"));
        assert_eq!(agent.chat("fake").await.status, 200);
        // Its budget, and what it has used, outlive a restart, and end with the attempt.
        world.kill_proxy().await;
        world.start_proxy().await;
        assert_eq!(view(&world).await.usage.calls, 1, "attempt {number}");
        assert_eq!(agent.chat("fake").await.status, 200);
        assert_eq!(agent.chat("fake").await.status, 400, "control: the budget of one attempt is used up");
        let next = world.control.register_in(epoch + 1, &attempt(number + 1)).await;
        assert_eq!(next.unwrap_err().error.code, "run_conflict", "one attempt at a time");
        world.control.close_in(epoch + 1, &id(), 0).await.unwrap();
        for restarted in [false, true] {
            if restarted {
                world.kill_proxy().await;
                world.start_proxy().await;
            }
            for before in 0..=number {
                let again = world.control.register_in(9, &attempt(before)).await;
                assert_eq!(again.unwrap_err().error.code, "run_closed", "attempt {before}, {restarted}");
            }
        }
    }
    let records = world.journal().await.into_iter().map(|line| line.record);
    let sent: Vec<_> = records.filter(|record| record.status == 200).map(|record| record.attempt).collect();
    assert_eq!(sent, [0, 0, 1, 1], "the journal names the attempt");
    world.assert_nothing_left().await;
}
