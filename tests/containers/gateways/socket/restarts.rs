//! Tests clients while `sluice up` ends in mid-answer.

use harness::gateway::{Cue, Step};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::{PATIENCE, Scene, last_event, reaches, send, text_of};

const SESSION: &str = "agent:main:main";

/// Ends `sluice up` with a signal in the middle of an answer; returns the close that the client got.
async fn survives(signal: Signal) -> Option<(u16, String)> {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let cue = Cue::default();
    scene.own.always(vec![
        Step::say("One "),
        Step::say("two "),
        Step::Until(cue.clone()),
        Step::say("three."),
    ]);
    let mut client = scene.client("own", &ann).await;
    let run = send(&mut client, SESSION, "Count", "key-1").await;
    let has_two = |frame: &Value| text_of(&frame["payload"]) == "One two ";
    tokio::time::timeout(PATIENCE, client.until(has_two)).await.expect("the beginning");
    let scene = scene.restarted(signal).await;
    let close = client.until_closed().await;

    let mut client = scene.client("own", &ann).await;
    let history = client.call("chat.history", json!({ "sessionKey": SESSION })).await;
    assert_eq!(history["payload"]["inFlightRun"]["runId"], run.as_str(), "{history}");
    assert_eq!(send(&mut client, SESSION, "Count", "key-1").await, run, "the order is not repeated");
    cue.give();
    assert_eq!(text_of(&last_event(&mut client, &run).await), "One two three.");
    let finals = client.seen.iter().filter(|frame| frame["payload"]["state"] == "final");
    assert_eq!(finals.count(), 1, "nothing is told twice");
    reaches(&scene.api(&ann), &run, "succeeded").await;
    scene.end().await;
    close
}

#[tokio::test]
async fn a_kill_of_sluice_loses_no_answer() {
    survives(Signal::KILL).await;
}

#[tokio::test]
async fn a_stop_of_sluice_is_told_to_clients() {
    let close = survives(Signal::TERM).await;
    assert_eq!(close, Some((1012, "service restart".to_owned())));
}
