//! Controls of the search that every world ends with: a planted secret is found in each kind of place, in each form.

use std::{
    fs,
    process::{Command, Stdio},
};

use harness::{
    CANARY_KEY, World,
    agent::{Answering, saying},
    canary::{self, CANARY_SECRET, Flow, Places, assert_found},
    eventually, grant,
    shared::token,
};

const CHAT: &str = "/v1/chat/completions";

#[tokio::test]
async fn a_secret_in_a_file_or_its_name_is_found() {
    let mut world = World::start().await;
    assert_eq!(world.canaries(), Vec::<String>::new());
    let run = world.run("r1", "acct-1").await;
    assert_eq!(run.agent.chat("fake").await.status, 200, "the key is in use");
    assert_eq!(world.canaries(), Vec::<String>::new());
    world.has_planted("planted");
    let secrets = [CANARY_KEY, &format!("{CANARY_SECRET}any"), &token("r1", 0, "new", 60)];
    for dir in ["state/journal", "run", "."] {
        for (number, secret) in secrets.iter().enumerate() {
            fs::write(world.path().join(dir).join(format!("found-{number}")), format!("a\n{secret}\nb"))
                .unwrap();
        }
    }
    fs::write(world.path().join(format!("state/{CANARY_KEY}")), "").unwrap();
    let found = world.canaries();
    assert_eq!(found.len(), 10, "{found:#?}");
    assert_found(&found, &["journal/found-0", "run/found-1", "/found-2: ", "name of a file in"]);
    assert!(!found.iter().any(|place| place.contains("/key: ")), "where it belongs: {found:#?}");
    for place in
        found.iter().filter_map(|place| place.split(": ").next().filter(|place| place.starts_with('/')))
    {
        fs::remove_file(place).unwrap();
    }
    fs::remove_file(world.path().join(format!("state/{CANARY_KEY}"))).unwrap();
}

#[test]
fn a_secret_is_found_in_each_of_its_forms() {
    let token = token("r1", 0, "new", 60);
    let (_, proof) = token.rsplit_once('.').unwrap();
    let planted = [
        ("as it is", format!("Bearer {CANARY_KEY}\r\n")),
        ("in base64", "eyJhIjoic2stY2FuYXJ5LTdmM2E5MWMyIn0=".to_owned()),
        ("in base64", "eHNrLWNhbmFyeS03ZjNhOTFjMg".to_owned()),
        ("in base64", "eHhzay1jYW5hcnktN2YzYTkxYzI=".to_owned()),
        ("percent-encoded", "key=sk%2Dcanary%2d7f3a91c2".replace("%2d", "%2D")),
        ("percent-encoded", "key=sk%2dcanary%2d7f3a91c2".to_owned()),
        ("escaped as in JSON", r#"{"key":"sk\u002dcanary\u002d7f3a91c2"}"#.to_owned()),
        ("as it is", format!("of another run: {proof}")),
        ("percent-encoded", format!("token={}", token.replace('|', "%7C"))),
    ];
    for (form, text) in planted {
        canary::search("a text", text.as_bytes());
        let found = canary::found();
        assert!(found.len() == 1 && found[0].starts_with(&format!("a text: {form}, ")), "{text}: {found:?}");
        // In pieces of any size.
        for size in [1, 7, text.len() - 1] {
            let mut flow = Flow::of("a flow".to_owned());
            text.as_bytes().chunks(size).for_each(|piece| flow.piece(piece));
            assert_eq!(canary::found().len(), 1, "{text} in pieces of {size}");
        }
    }
    canary::search("a text", b"a canary-bird, canary-5d20e8b2-, sk-canary-7f3a91c3, c2stY2FuYXJ5");
    assert_eq!(canary::found(), Vec::<String>::new());
}

#[tokio::test]
async fn a_secret_that_a_process_shows_is_found() {
    for (arguments, variable) in [(["60", "0"], CANARY_KEY), (["60", CANARY_KEY], "")] {
        let mut process = Command::new("bash")
            .args(["-c", "read", arguments[0], arguments[1]])
            .env("VARIABLE", variable)
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let look = || async {
            Places::process(process.id());
            canary::found()
        };
        // A program that has just begun shows neither.
        let found = eventually("it is found", look, |found| !found.is_empty()).await;
        let file = if variable.is_empty() { "cmdline" } else { "environ" };
        assert!(found.len() == 1 && found[0].starts_with(file), "{found:?}");
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

#[tokio::test]
async fn a_secret_in_control_or_an_answer_is_found() {
    let agents = format!(
        "[agents.'team:one']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['node', '/agent/run.mjs']\nmodel = '{CANARY_KEY}'\n"
    );
    let mut world = World::with(&agents).await;
    let run = world.run_with(grant(CANARY_KEY, &format!("{CANARY_SECRET}acct"))).await;
    for answering in [Answering::Whole, Answering::Streamed] {
        // The upstream's key would be overwritten on its way; the proxy does not know this secret.
        let body = saying(CHAT, "fake-echo", answering, &format!("my secret is {CANARY_SECRET}"));
        assert_eq!(run.agent.post(CHAT, &body).await.status, 200);
        assert_found(&canary::found(), &["answer on /tmp/"]);
    }
    run.agent.chat(CANARY_KEY).await;
    assert_found(
        &world.canaries(),
        &["control's /v1/metrics", "control's /v1/runs", "control's /v1/accounts", ".ndjson", "sluice.toml"],
    );
    for piece in ["control", "state/", "run/kept", "sluice.toml", "proxy.log"] {
        world.has_planted(piece);
    }
}
