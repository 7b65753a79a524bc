//! Tests epochs: a worker that takes a run over registers it again in a later epoch. Every request of the previous
//! holder is then refused.

use harness::{World, grant};
use http::Method;
use platform_core::{grant::RunGrant, id::AccountId};
use serde_json::json;

#[tokio::test]
async fn a_later_epoch_brings_no_other_grant() {
    let world = World::start().await;
    let granted = grant("r1", "acct-1");
    world.control.register_in(1, &granted).await.unwrap();
    let other = RunGrant { account: AccountId::parse("acct-2").unwrap(), ..granted.clone() };
    assert_eq!(world.control.register_in(2, &other).await.unwrap_err().error.code, "run_conflict");
    assert_eq!(
        world.control.run(&granted.run_id).await.unwrap().epoch,
        1,
        "what was refused changes nothing"
    );
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
