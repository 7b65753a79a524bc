//! Pages about the HTTP API, executed as they are written.

use std::fs;

use harness::{Up, World, book::Page, bridge::free_port, canary};
use rustix::process::Signal;
use serde_json::{Deserializer, Value};

/// Plays a page against a `sluice up`; returns the world with it, and what the page printed.
async fn played(page: &str, token: &str) -> (World, Up, Vec<Value>) {
    let mut world = World::with("").await;
    assert!(world.stop_proxy().await);
    let address = free_port().to_string();
    let sluice = world.sluice().env("SLUICE_API_LISTEN", &address);
    let up = Up::start(sluice.env("SLUICE_UPSTREAM_DEFAULT_MODEL", "fake")).await;
    let page = Page::read(page).with("127.0.0.1:4180", &address);
    let stdout = page.succeeds(&[("SLUICE_CONFIG", world.config().to_str().unwrap())]).await;
    canary::hand_out(fs::read_to_string(format!("{}/{token}", page.root())).unwrap().trim());
    let answers = Deserializer::from_str(&stdout).into_iter().map(Result::unwrap).collect();
    (world, up, answers)
}

#[tokio::test]
async fn the_http_api_works_as_written() {
    let (world, up, answers) = played("docs/src/reference/http-api.md", "app.token").await;
    assert_eq!(answers[0]["defaultAgentId"], "sandbox:agent", "{answers:?}");
    let run = &answers[1];
    assert_eq!((&run["account"], &run["user"]), (&"acct-7".into(), &"app".into()), "{answers:?}");
    let signed_in: Value = serde_json::json!({ "principal": "app", "account": "acct-7", "role": "member" });
    assert_eq!(answers[2..], [signed_in.clone(), signed_in], "{answers:?}");
    let id = run["runId"].as_str().unwrap();
    let waited = world.sluice().run(&["runs", "wait", id]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn chat_and_completions_work_as_written() {
    let mut world = World::with("").await;
    assert!(world.stop_proxy().await);
    let address = free_port().to_string();
    let sluice = world.sluice().env("SLUICE_API_LISTEN", &address);
    let up = Up::start(sluice.env("SLUICE_UPSTREAM_DEFAULT_MODEL", "fake")).await;
    let page = Page::read("docs/src/reference/chat-api.md").with("127.0.0.1:4180", &address);
    let added = world.sluice().run(&["principals", "add", "app", "--account", "acct-7"]).await;
    canary::hand_out(added.stdout.trim());
    fs::write(format!("{}/app.token", page.root()), &added.stdout).unwrap();
    let stdout = page.succeeds(&[("SLUICE_CONFIG", world.config().to_str().unwrap())]).await;
    let (threads, rest) = stdout.split_once("data: ").expect(&stdout);
    let threads: Value = serde_json::from_str(threads).unwrap();
    assert_eq!(threads, serde_json::json!({ "threads": [], "nextCursor": null }), "{stdout}");
    let (chat, rest) = rest.split_once("data: [DONE]").expect(&stdout);
    assert!(chat.contains("\"type\":\"finish\""), "{stdout}");
    let answers: Vec<Value> = Deserializer::from_str(rest).into_iter().map(Result::unwrap).collect();
    assert_eq!(answers[0]["data"][0]["id"], "sandbox:agent", "{stdout}");
    assert_eq!(answers[1]["object"], "chat.completion", "{stdout}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn chat_programs_connect_as_written() {
    let (world, up, answers) = played("docs/src/how-to/chat-clients.md", "chat.token").await;
    assert_eq!(answers[0]["data"][0]["id"], "sandbox:agent", "{answers:?}");
    let message = &answers[1]["choices"][0]["message"];
    assert!(message["content"].as_str().is_some_and(|text| !text.is_empty()), "{answers:?}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
