//! Checks what a body may ask for: the model API is itself a way out, and LiteLLM takes orders from the body. The
//! tables of every field and type are beside the code. These tests check that calls pass through that check.

use harness::{
    CANARY_KEY, OriginalProxy, World,
    agent::{Answering, chat_body, saying},
    grant,
};
use http::{Method, StatusCode};
use platform_core::{
    grant::RunGrant,
    record::{Outcome, TokensSource},
    refusal::Refusal,
};
use serde_json::{Value, json};

use crate::security::attacks::bodies::{self, Attack};

const CHAT: &str = "/v1/chat/completions";
const MESSAGES: &str = "/v1/messages";

/// Returns all attacks by bodies.
fn attacks() -> Vec<Attack> {
    [bodies::fields(), bodies::egress(), bodies::stored()].concat()
}

fn attacking((path, member, value, ..): &Attack) -> Value {
    let mut body = saying(path, "fake", Answering::Whole, "Hello");
    body[*member] = value.clone();
    body
}

#[tokio::test]
async fn bodies_that_reach_beyond_the_model_fail() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for (count, attack) in (1..).zip(attacks()) {
        let (path, member, _, reason, _) = &attack;
        let answer = run.agent.post(path, &attacking(&attack)).await;
        let code = answer.json()["error"]["code"].clone();
        assert_eq!((answer.status, code), (StatusCode::BAD_REQUEST, json!(reason.code())), "{path} {member}");
        assert_eq!(answer.headers["x-should-retry"], "false");
        let record = world.records(count).await.pop().unwrap().record;
        assert_eq!((record.outcome, record.refusal), (Outcome::Refused, Some(*reason)), "{path} {member}");
    }
    assert!(world.upstream.ledger().is_empty());
}

/// The template is the predecessor's nginx; this is the control.
#[tokio::test]
async fn the_template_passes_all_of_these_bodies() {
    let world = World::start().await;
    let original = OriginalProxy::start(world.upstream.address(), &grant("r1", "acct-1"), CANARY_KEY).await;
    for (count, attack) in (1..).zip(attacks()) {
        original.agent.post(attack.0, &attacking(&attack)).await;
        let seen = world.upstream.ledger().last().unwrap();
        assert_eq!(world.upstream.ledger().len(), count, "{} {}", attack.0, attack.1);
        assert_eq!(seen.json().unwrap()[attack.1], attack.2);
    }
}

#[tokio::test]
async fn granted_capabilities_pass() {
    let world = World::start().await;
    for (count, attack) in attacks().into_iter().enumerate() {
        let Some(capability) = attack.4 else { continue };
        let capabilities = [capability].into_iter().collect();
        let grant = RunGrant { capabilities, ..grant(&format!("r{count}"), "acct-1") };
        let run = world.run_with(grant).await;
        run.agent.post(attack.0, &attacking(&attack)).await;
        let seen = world.upstream.ledger().last().unwrap().json().unwrap();
        assert_eq!(seen[attack.1], attack.2, "{capability}: {attack:?}");
    }
}

#[tokio::test]
async fn only_granted_models_are_called() {
    let world = World::start().await;
    let models = Some(vec!["fake-words3".parse().unwrap(), "fake-words4".parse().unwrap()]);
    let run = world.run_with(RunGrant { models, ..grant("r1", "acct-1") }).await;
    assert_eq!(run.agent.chat("fake-words4").await.status, 200);
    for other in ["fake-words5", "fake-words", "FAKE-WORDS3", " fake-words3"] {
        let answer = run.agent.chat(other).await;
        assert_eq!(answer.status, 400, "{other}");
    }
    assert_eq!(world.upstream.ledger().len(), 1);
}

#[tokio::test]
async fn listed_models_are_the_granted_ones() {
    let world = World::start().await;
    let models = Some(vec!["fake-words3".parse().unwrap(), "openai/gpt-4o".parse().unwrap()]);
    let run = world.run_with(RunGrant { models, ..grant("r1", "acct-1") }).await;
    let list = run.agent.get("/v1/models").await.json();
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    assert_eq!((ids, &list["object"]), (vec![json!("fake-words3"), json!("openai/gpt-4o")], &json!("list")));
    let one = run.agent.get("/v1/models/openai/gpt-4o").await;
    assert_eq!((one.status.as_u16(), &one.json()["id"]), (200, &json!("openai/gpt-4o")));
    assert_eq!(run.agent.get("/v1/models/gpt-4o").await.status, 404);
    let records = world.records(3).await;
    assert_eq!(records[0].record.outcome, Outcome::Complete);
    assert_eq!((records[0].record.status, records[2].record.refusal), (200, Some(Refusal::RouteUnknown)));
    assert!(world.upstream.ledger().is_empty(), "the upstream was never asked");
}

#[tokio::test]
async fn a_run_without_a_list_sees_priced_models() {
    let prices = "[prices.'*']\ninput = '1'\noutput = '1'\n[prices.'openai/gpt-4o']\ninput = '1'\noutput = '2'\n\
        [prices.fake]\ninput = '1'\noutput = '2'";
    let world = World::with(prices).await;
    let run = world.run("r1", "acct-1").await;
    let list = run.agent.get("/v1/models").await.json();
    let ids: Vec<_> = list["data"].as_array().unwrap().iter().map(|model| model["id"].clone()).collect();
    assert_eq!(ids, [json!("fake"), json!("openai/gpt-4o")], "its default, then those with a price");
    assert_eq!((&list["first_id"], &list["last_id"]), (&json!("fake"), &json!("openai/gpt-4o")));
    for (id, name) in [("other", "other"), ("openai/gpt-4o", "openai/gpt-4o"), ("a%2Fb", "a/b")] {
        let one = run.agent.get(&format!("/v1/models/{id}")).await;
        assert_eq!((one.status.as_u16(), &one.json()["id"]), (200, &json!(name)));
    }
    for id in ["", "a,b", "..%2Fkey"] {
        assert_eq!(run.agent.get(&format!("/v1/models/{id}")).await.status, 404, "{id}");
    }
    assert!(world.upstream.ledger().is_empty(), "the upstream was never asked");
}

#[tokio::test]
async fn identity_fields_of_bodies_are_overwritten() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut chat = chat_body("fake", Answering::Whole);
    chat["user"] = json!("victim");
    chat["metadata"] = json!({ "tags": ["victim"] });
    chat["store"] = json!(true);
    assert_eq!(run.agent.post(CHAT, &chat).await.status, 200);
    let seen = world.upstream.ledger().last().unwrap().json().unwrap();
    let ours = [&seen["user"], &seen["metadata"], &seen["store"]];
    assert_eq!(ours, [&json!("acct-1"), &Value::Null, &json!(false)]);
    let mut message = saying(MESSAGES, "fake", Answering::Whole, "Hello");
    message["metadata"] = json!({ "user_id": "victim" });
    assert_eq!(run.agent.post(MESSAGES, &message).await.status, 200);
    let seen = world.upstream.ledger().last().unwrap().json().unwrap();
    assert_eq!(seen["metadata"], json!({ "user_id": "acct-1" }));
}

#[tokio::test]
async fn usage_is_always_metered_but_shown_on_request() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let paths = [CHAT, "/v1/completions"];
    for (count, (path, asks)) in (1..).zip(paths.iter().flat_map(|path| [(*path, true), (*path, false)])) {
        let mut body = saying(path, "fake-words20", Answering::Streamed, "Hello");
        if !asks {
            body.as_object_mut().unwrap().remove("stream_options");
        }
        let text = run.agent.post(path, &body).await.text();
        assert!(text.ends_with("data: [DONE]\n\n") && text.contains("\"finish_reason\":\"stop\""), "{text}");
        assert_eq!(text.contains("\"usage\":{"), asks, "{path}: {text}");
        let record = world.records(count).await.pop().unwrap().record;
        let figures = (record.tokens_source, record.tokens.output, record.response_bytes);
        assert_eq!(figures, (TokensSource::Exact, 20, text.len() as u64), "{path}");
    }
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_refused_by_name() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let good = chat_body("fake", Answering::Whole).to_string();
    let gzip = run.agent.clone().with_header("content-encoding", "gzip");
    let answer = gzip.request(Method::POST, CHAT, good.clone().into()).await.unwrap();
    assert_eq!(answer.json()["error"]["code"], "body_encoded", "{}", answer.text());
    let invalid_utf8 = good
        .clone()
        .into_bytes()
        .iter()
        .map(|byte| if *byte == b'S' { 0xff } else { *byte })
        .collect::<Vec<u8>>();
    for body in [Vec::new(), b"null".to_vec(), good.replace('}', "").into_bytes(), invalid_utf8] {
        let answer = run.agent.request(Method::POST, CHAT, body.into()).await.unwrap();
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (400, &json!("body_invalid")));
    }
    let plain = run.agent.clone().with_header("content-encoding", "identity");
    assert_eq!(plain.request(Method::POST, CHAT, good.into()).await.unwrap().status, 200);
}

#[tokio::test]
async fn body_memory_is_bounded_per_run_and_in_total() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    world.reconfigure(
        "threads = 2",
        "threads = 2\nmax_body_memory_per_run = '1 MiB'\nmax_body_memory = '1536 KiB'",
    );
    world.start_proxy().await;
    let (one, other) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    let large = |model: &str| saying(CHAT, model, Answering::Whole, &"x".repeat(900 << 10));
    // The upstream thinks before it answers; until then the body is held.
    let slow = large("fake-firstbyte1500ms");
    let holding = one.agent.post(CHAT, &slow);
    let meanwhile = async {
        let seen = || async { world.upstream.ledger().len() };
        harness::eventually("the first body is with the upstream", seen, |seen| *seen == 1).await;
        for agent in [&one.agent, &other.agent] {
            let answer = agent.post(CHAT, &large("fake")).await;
            assert_eq!(
                (answer.status.as_u16(), &answer.json()["error"]["code"]),
                (503, &json!("body_memory_exhausted"))
            );
            assert!(answer.headers.contains_key("retry-after"));
        }
        assert_eq!(other.agent.chat("fake").await.status, 200, "small ones pass");
    };
    let (held, ()) = tokio::join!(holding, meanwhile);
    assert_eq!(held.status, 200);
    assert_eq!(one.agent.post(CHAT, &large("fake")).await.status, 200, "it was given back");
}
