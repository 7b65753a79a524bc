//! Tests epochs: a worker that takes a run over registers it again in a later epoch. Every request of the previous
//! holder is then refused.

use harness::{Agent, World, grant};
use http::Method;
use platform_core::{
    control::{RunState, RunView},
    grant::RunGrant,
    id::{AccountId, RunId},
};
use serde_json::json;

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
async fn a_later_epoch_brings_no_other_grant() {
    let world = World::start().await;
    let granted = grant("r1", "acct-1");
    world.control.register_in(1, &granted).await.unwrap();
    let other = RunGrant { account: AccountId::parse("acct-2").unwrap(), ..granted.clone() };
    assert_eq!(world.control.register_in(2, &other).await.unwrap_err().error.code, "run_conflict");
    assert_eq!(view(&world).await.epoch, 1, "what was refused changes nothing");
    world.control.register_in(1, &granted).await.unwrap();
    // A client that knows no epochs is in the first.
    let old = world.control.send(Method::DELETE, "/v1/runs/r1", String::new()).await;
    assert_eq!((old.status.as_u16(), &old.json()["error"]["code"]), (409, &json!("fenced")));
}

#[tokio::test]
async fn a_registered_run_can_be_connected_to() {
    let world = World::start().await;
    for run in 0..40 {
        let granted = grant(&format!("r{run}"), "acct-1");
        let register = async || {
            let registered = world.control.register(&granted).await.unwrap();
            let socket = registered.socket.unwrap().path.join("llm.sock");
            tokio::net::UnixStream::connect(&socket).await.map(drop).map_err(|error| (socket, error))
        };
        let (a, b, c, d) = tokio::join!(register(), register(), register(), register());
        for connected in [a, b, c, d] {
            connected.unwrap();
        }
    }
}
