//! Tests turns in which a client, `sluice up` or the gateway goes away between any two frames. The client that comes back
//! has the whole answer, once.

use std::time::Duration;

use harness::gateway::{GatewayClient, Step};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{PATIENCE, Scene, reaches, send};

const PIECES: [&str; 3] = ["One ", "two ", "three."];
/// Frames of a turn that surely come: the acceptance, a beginning, a piece in two events, the end in two.
const FRAMES: usize = 6;

/// Returns the steps of a turn, with `more` before the piece number `at`.
fn steps(at: usize, more: Option<Step>) -> Vec<Step> {
    let mut steps: Vec<_> =
        PIECES.iter().flat_map(|piece| [Step::say(piece), Step::Pause(Duration::from_millis(40))]).collect();
    steps.splice(2 * at..2 * at, more);
    steps
}

/// Account and conversation of a turn.
struct Turn {
    token: String,
    session: String,
    key: String,
}

impl Turn {
    fn new(token: &str, at: usize) -> Self {
        Self { token: token.to_owned(), session: format!("agent:main:s{at}"), key: format!("key-{at}") }
    }

    /// Orders the turn, and reads the first `frames` frames.
    async fn begin(&self, scene: &Scene, frames: usize) -> GatewayClient {
        let mut client = scene.client("own", &self.token).await;
        let order = json!({ "sessionKey": self.session, "message": "Count", "idempotencyKey": self.key });
        client.send("chat.send", order, None).await;
        for _ in 0..frames {
            tokio::time::timeout(PATIENCE, client.next()).await.expect("a frame").expect("a connection");
        }
        client
    }

    /// Comes back, and checks that the answer is there, whole and once.
    async fn ends_whole(&self, scene: &Scene, what: &str) {
        let mut client = scene.client("own", &self.token).await;
        let run = send(&mut client, &self.session, "Count", &self.key).await;
        reaches(&scene.api(&self.token), &run, "succeeded").await;
        let history = client.call("chat.history", json!({ "sessionKey": self.session })).await;
        let messages = history["payload"]["messages"].as_array().unwrap();
        let texts: Vec<_> = messages.iter().map(|message| message["content"][0]["text"].clone()).collect();
        assert_eq!(texts, ["Count", "One two three."], "{what}: {history}");
        let finals = |frame: &&Value| frame["payload"]["state"] == "final" && frame["event"] == "chat";
        assert!(client.seen.iter().filter(finals).count() <= 1, "{what}: {:?}", client.seen);
    }
}

#[tokio::test]
async fn a_client_leaves_between_any_frames() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    scene.own.always(steps(0, None));
    for frames in 0..=FRAMES {
        let turn = Turn::new(&ann, frames);
        drop(turn.begin(&scene, frames).await);
        turn.ends_whole(&scene, &format!("after {frames} frames")).await;
    }
    assert_eq!(scene.own.turns(), FRAMES + 1, "each was ordered once");
    scene.end().await;
}

#[tokio::test]
async fn sluice_is_killed_between_any_frames() {
    let mut scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    scene.own.always(steps(0, None));
    for frames in 1..=FRAMES {
        let turn = Turn::new(&ann, frames);
        let client = turn.begin(&scene, frames).await;
        scene = scene.restarted(Signal::KILL).await;
        drop(client);
        turn.ends_whole(&scene, &format!("killed after {frames} frames")).await;
    }
    scene.end().await;
}

#[tokio::test]
async fn a_gateway_is_cut_off_between_any_pieces() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    for at in 0..=PIECES.len() {
        scene.own.always(steps(at, Some(Step::Cut)));
        let turn = Turn::new(&ann, at);
        drop(turn.begin(&scene, 1).await);
        turn.ends_whole(&scene, &format!("cut off before piece {at}")).await;
    }
    scene.end().await;
}
