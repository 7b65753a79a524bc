//! Attacks on the usage of streams that their client leaves: an agent would have what a model generated unseen cost
//! nothing. A model thinks without showing it, or the client does not read what it shows.

use std::time::Duration;

use bench::upstream::ScriptedUpstream;
use harness::{
    Run, World,
    agent::{Answering, chat_body},
    pace,
    raw::{Raw, read_until},
    raw_scripted_upstream::RawScriptedUpstream,
};
use platform_core::record::{ExchangeRecord, Outcome, TokensSource};

use super::CHAT;

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// Tokens a second that a model may generate unseen, as SECURITY.md promises, as long as none is known to be faster.
const RATE: u64 = 200;

/// Tokens of a whole answer.
const TOKENS: u64 = 1000;

/// A model with a rate that an operator has set.
const SET: &str = "[models.set]\ntokens_per_second = 2000";

async fn in_front_of(scripted: &RawScriptedUpstream) -> (World, Run) {
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &scripted.base_url(), SET).await;
    let run = world.run("r1", "acct-1").await;
    (world, run)
}

fn said(word: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{word}\"}}}}]}}\n\n")
}

/// Calls `model`, reads up to `marker`, waits for `pause`, and leaves. Returns record number `count`.
async fn leave(
    (world, run): &(World, Run),
    model: &str,
    marker: &str,
    pause: Duration,
    count: usize,
) -> ExchangeRecord {
    let mut wire = Raw::post(CHAT, &chat_body(model, Answering::Streamed)).begin(&run.agent).await;
    read_until(&mut wire, marker).await;
    pace(pause).await;
    drop(wire);
    let record = world.records(count).await.pop().unwrap().record;
    assert_eq!((record.outcome, record.tokens_source), (Outcome::ClientGone, TokensSource::Estimated));
    record
}

/// A model thinks for two seconds behind its first word, and the client leaves at the last one. The control is the same
/// answer without the thinking.
#[tokio::test]
async fn thinking_behind_a_word_is_booked() {
    let scripted = RawScriptedUpstream::start().await;
    let place = in_front_of(&scripted).await;
    let first = HEAD.to_owned() + &said("first");
    let both = first.clone() + &said("last");
    scripted.delay(Duration::from_secs(2));
    let thought = 2 * RATE;
    scripted.say(&[first.as_bytes(), said("last").as_bytes(), b": behind\n\n"]);
    let thinks = leave(&place, "m", "last", Duration::ZERO, 1).await.tokens.output;
    assert!((thought..8192).contains(&thinks), "{thinks} tokens");
    scripted.say(&[both.as_bytes(), b": behind\n\n"]);
    let speaks = leave(&place, "m", "last", Duration::ZERO, 2).await.tokens.output;
    assert!((9..thought).contains(&speaks), "{speaks} tokens, the control");
}

/// Lets the upstream answer with [`TOKENS`], most of which a client that waits leaves unread.
fn say_tokens(scripted: &RawScriptedUpstream) {
    let logprobs = "0.0123456,".repeat(400);
    let token = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"x\"}},\"logprobs\":[{logprobs}0]}}]}}\n\n"
    );
    let usage = format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\n\
         data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":9,\"completion_tokens\":{TOKENS}}}}}\n\n\
         data: [DONE]\n\n"
    );
    let tokens = token.repeat(usize::try_from(TOKENS).unwrap());
    scripted.say(&[HEAD.as_bytes(), tokens.as_bytes(), usage.as_bytes()]);
}

/// A client reads one event of many, waits for three seconds, and leaves: most of what the model generated is in the
/// buffers of the machine. It is booked by the rate that whole calls of the model have shown. The control is a model of
/// which nothing is known: the promised rate holds for the wait.
#[tokio::test]
async fn unread_tokens_are_booked_at_a_known_rate() {
    let scripted = RawScriptedUpstream::start().await;
    let place = in_front_of(&scripted).await;
    say_tokens(&scripted);
    let (world, run) = &place;
    let pause = Duration::from_secs(3);
    let unknown = leave(&place, "unknown", "\"x\"", pause, 1).await;
    // Each token that was read has one letter. A busy machine makes the wait longer.
    let most = TOKENS + RATE * unknown.duration_us / 1_000_000;
    assert!((3 * RATE..=most).contains(&unknown.tokens.output), "{unknown:?}, the control");
    run.agent.stream("m").await.whole().await.unwrap();
    let whole = world.records(2).await.pop().unwrap().record;
    assert_eq!((whole.tokens_source, whole.tokens.output), (TokensSource::Exact, TOKENS));
    let known = leave(&place, "m", "\"x\"", pause, 3).await.tokens.output;
    let least = TOKENS.min(TOKENS * 2_900_000 / whole.duration_us);
    assert!((least..=8192).contains(&known), "{known} tokens, {whole:?}");
    let set = leave(&place, "set", "\"x\"", pause, 4).await.tokens.output;
    assert!((3 * 2000..=8192).contains(&set), "{set} tokens at the rate that is set");
}

/// The proxy is killed, and later stopped, after a whole call has shown the rate. The control is a model of which nothing
/// is known.
#[tokio::test]
async fn a_known_rate_outlives_a_restart() {
    let scripted = RawScriptedUpstream::start().await;
    let mut place = in_front_of(&scripted).await;
    say_tokens(&scripted);
    place.1.agent.stream("m").await.whole().await.unwrap();
    let whole = place.0.records(1).await.pop().unwrap().record;
    assert!(whole.output_rate.unwrap() > RATE, "{whole:?}");
    let least = TOKENS.min(TOKENS * 2_900_000 / whole.duration_us);
    for count in [2, 4] {
        match count {
            2 => place.0.kill_proxy().await,
            _ => assert!(place.0.stop_proxy().await),
        }
        place.0.start_proxy().await;
        place.1 = place.0.run_with(place.1.grant.clone()).await;
        let pause = Duration::from_secs(3);
        let known = leave(&place, "m", "\"x\"", pause, count).await.tokens.output;
        assert!((least..=8192).contains(&known), "{known} tokens, {whole:?}");
        let unknown = leave(&place, "unknown", "\"x\"", pause, count + 1).await;
        let most = TOKENS + RATE * unknown.duration_us / 1_000_000;
        assert!((3 * RATE..=most).contains(&unknown.tokens.output), "{unknown:?}, the control");
    }
}
