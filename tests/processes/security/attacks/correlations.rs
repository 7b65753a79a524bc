//! Attacks on the attribution of a gateway's call: claims that are wrong, stale, another run's or contradictory.

use harness::{Agent, shared::token};
use http::Method;
use platform_core::record::Identity;

use super::{CHAT, status, told};
use crate::proxy::shared::{SLOT, Shared, TRACE, good, open};

/// Trace of r2.
const OTHER_TRACE: &str = "5bf92f3577b34da6a3ce929d0e0e4736";
const OTHER_SLOT: &str = "1123456789abcdef0123456789abcdef";
/// Trace of r3, which is closed.
const CLOSED_TRACE: &str = "6bf92f3577b34da6a3ce929d0e0e4736";
const CLOSED_SLOT: &str = "2123456789abcdef0123456789abcdef";
/// Trace of r1, withdrawn.
const WITHDRAWN_TRACE: &str = "7bf92f3577b34da6a3ce929d0e0e4736";
const WITHDRAWN_SLOT: &str = "3123456789abcdef0123456789abcdef";
/// Slot of r4; its tokens are revoked.
const REVOKED_SLOT: &str = "5123456789abcdef0123456789abcdef";
/// Trace that is registered for no run.
const NO_TRACE: &str = "8bf92f3577b34da6a3ce929d0e0e4736";
const NO_SLOT: &str = "4123456789abcdef0123456789abcdef";

const SPAN: &str = "00f067aa0ba902b7";

/// Claims of a call about itself, and the run and identity it is attributed to, if any.
pub(super) struct Attack {
    row: &'static str,
    /// Slot in front of the path.
    slot: String,
    lines: String,
    of: Option<(&'static str, Identity)>,
}

fn attack(row: &'static str, slot: &str, lines: &[String]) -> Attack {
    let slot = if slot.is_empty() { String::new() } else { format!("/slot/{slot}") };
    let lines = lines.iter().map(|line| format!("{line}\r\n")).collect();
    Attack { row, slot, lines, of: None }
}

fn trace(id: &str) -> String {
    format!("traceparent: 00-{id}-{SPAN}-01")
}

fn with_token(run: &str) -> String {
    format!("x-run-token: {}", good(run))
}

fn bearer(run: &str) -> String {
    format!("authorization: Bearer {}", good(run))
}

/// Returns spellings of r1's own trace that are not a valid trace.
fn spellings() -> Vec<Attack> {
    let parent = |row, value: String| attack(row, "", &[format!("traceparent: {value}")]);
    vec![
        parent("upper case", format!("00-{}-{SPAN}-01", TRACE.to_uppercase())),
        parent("version ff", format!("ff-{TRACE}-{SPAN}-01")),
        parent("version 01", format!("01-{TRACE}-{SPAN}-01")),
        parent("a version of one digit", format!("0-{TRACE}-{SPAN}-01")),
        parent("data behind it", format!("00-{TRACE}-{SPAN}-01-what")),
        parent("a dash behind it", format!("00-{TRACE}-{SPAN}-01-")),
        parent("a blank within", format!("00-{TRACE} -{SPAN}-01")),
        parent("a blank in its flags", format!("00-{TRACE}-{SPAN}-01 x")),
        parent("two in one", format!("00-{TRACE}-{SPAN}-01,00-{TRACE}-{SPAN}-01")),
        parent("no parent", format!("00-{TRACE}--01")),
        parent("a parent of zeros", format!("00-{TRACE}-0000000000000000-01")),
        parent("a parent in upper case", format!("00-{TRACE}-00F067AA0BA902B7-01")),
        parent("a parent that is too short", format!("00-{TRACE}-00f067aa-01")),
        parent("flags that are none", format!("00-{TRACE}-{SPAN}-zz")),
        parent("flags that are too long", format!("00-{TRACE}-{SPAN}-001")),
        parent("no flags", format!("00-{TRACE}-{SPAN}")),
        parent("one digit less", format!("00-{}-{SPAN}-01", &TRACE[1..])),
        parent("one digit more", format!("00-0{TRACE}-{SPAN}-01")),
        parent("zeros", format!("00-{}-{SPAN}-01", "0".repeat(32))),
        parent("the bare id", TRACE.to_owned()),
        parent("underscores", format!("00_{TRACE}_{SPAN}_01")),
        parent("quotes", format!("\"00-{TRACE}-{SPAN}-01\"")),
        parent("full-width digits", format!("00-\u{ff14}{}-{SPAN}-01", &TRACE[1..])),
        attack("sent twice", "", &[trace(TRACE), trace(TRACE)]),
        attack("sent beside an empty one", "", &[trace(TRACE), "traceparent:".to_owned()]),
        attack("in tracestate", "", &[format!("tracestate: a=00-{TRACE}-{SPAN}-01")]),
        attack("as b3", "", &[format!("b3: {TRACE}-{SPAN}-1")]),
        attack("with an underscore", "", &[format!("trace_parent: 00-{TRACE}-{SPAN}-01")]),
        attack("with a prefix", "", &[format!("x-traceparent: 00-{TRACE}-{SPAN}-01")]),
    ]
}

/// Returns slots that are malformed, no longer assigned, or another run's.
fn slots() -> Vec<Attack> {
    vec![
        attack("nobody's slot", NO_SLOT, &[]),
        attack("a slot in upper case", &SLOT.to_uppercase(), &[]),
        attack("a slot of zeros", &"0".repeat(32), &[]),
        attack("a slot one digit short", &SLOT[1..], &[]),
        attack("a slot one digit long", &format!("{SLOT}0"), &[]),
        attack("a slot encoded", &format!("%30{}", &SLOT[1..]), &[]),
        attack("a slot behind dots", &format!("../slot/{SLOT}"), &[]),
        attack("a slot in a slot", &format!("{NO_SLOT}/slot/{SLOT}"), &[]),
        attack("a slot as a header", "", &[format!("x-slot: {SLOT}")]),
        attack("a slot as a trace", "", &[trace(SLOT)]),
        attack("a trace as a slot", TRACE, &[]),
        attack("a closed run's slot", CLOSED_SLOT, &[]),
        attack("a closed run's trace", "", &[trace(CLOSED_TRACE)]),
        attack("a withdrawn slot", WITHDRAWN_SLOT, &[]),
        attack("a withdrawn trace", "", &[trace(WITHDRAWN_TRACE)]),
        attack("nobody's trace", "", &[trace(NO_TRACE)]),
    ]
}

/// Returns combinations of which not all are good, or not all the same run's.
fn disagreements() -> Vec<Attack> {
    vec![
        attack("my trace, another's slot", OTHER_SLOT, &[trace(TRACE)]),
        attack("another's trace, my slot", SLOT, &[trace(OTHER_TRACE)]),
        attack("my token, another's slot", OTHER_SLOT, &[with_token("r1")]),
        attack("my token, another's trace", "", &[with_token("r1"), trace(OTHER_TRACE)]),
        attack("my key, another's trace", "", &[bearer("r1"), trace(OTHER_TRACE)]),
        attack("my key, another's token", "", &[bearer("r1"), with_token("r2")]),
        attack("all mine but the slot", OTHER_SLOT, &[with_token("r1"), bearer("r1"), trace(TRACE)]),
        attack("my trace, a slot of nobody", NO_SLOT, &[trace(TRACE)]),
        attack("my trace, a withdrawn slot", WITHDRAWN_SLOT, &[trace(TRACE)]),
        attack("my trace, a closed run's slot", CLOSED_SLOT, &[trace(TRACE)]),
        attack("my token, a closed run's slot", CLOSED_SLOT, &[with_token("r1")]),
        attack("two traces", "", &[trace(TRACE), trace(OTHER_TRACE)]),
        attack("my trace, a closed run's token", "", &[trace(TRACE), with_token("r3")]),
        attack("my trace, a revoked token", "", &[trace(TRACE), with_token("r4")]),
        attack("a revoked run's token", "", &[with_token("r4")]),
        attack("my slot, an expired token", SLOT, &[format!("x-run-token: {}", token("r1", 0, "new", -60))]),
        attack("my slot, a forged token", SLOT, &[format!("x-run-token: {}", token("r1", 0, "bad", 60))]),
        attack("my slot, a forged key", SLOT, &[format!("x-api-key: {}", token("r1", 0, "bad", 60))]),
        attack(
            "my slot, a forged Google key",
            SLOT,
            &[format!("x-goog-api-key: {}", token("r1", 0, "bad", 60))],
        ),
        attack("my slot, two tokens", SLOT, &[with_token("r1"), with_token("r1")]),
    ]
}

/// Returns calls that leave no doubt: the rows above without the offence.
fn good_ones() -> Vec<Attack> {
    use Identity::{Slot, Token, Trace};
    let of = |run, identity, attack: Attack| Attack { of: Some((run, identity)), ..attack };
    let blanks = format!("traceparent:\t 00-{TRACE}-{SPAN}-00 ");
    let capitals = trace(TRACE).replace("traceparent", "TRACEPARENT");
    let no_token = "authorization: Bearer sk-1".to_owned();
    let all_mine = [with_token("r1"), bearer("r1"), trace(TRACE)];
    vec![
        of("r1", Trace, attack("my trace", "", &[trace(TRACE)])),
        of("r1", Trace, attack("with blanks around", "", &[blanks])),
        of("r1", Trace, attack("its name in capitals", "", &[capitals])),
        of("r1", Slot, attack("my slot", SLOT, &[])),
        of("r1", Slot, attack("my slot, a trace of nobody", SLOT, &[trace(NO_TRACE)])),
        of("r1", Slot, attack("my slot, my trace twice", SLOT, &[trace(TRACE), trace(TRACE)])),
        of("r1", Slot, attack("my slot, a key that is not a token", SLOT, &[no_token])),
        of("r1", Token, attack("all mine", SLOT, &all_mine)),
        of("r2", Slot, attack("another's slot alone", OTHER_SLOT, &[])),
        of("r2", Trace, attack("another's trace alone", "", &[trace(OTHER_TRACE)])),
        of("r4", Slot, attack("a slot of one whose tokens are revoked", REVOKED_SLOT, &[])),
    ]
}

pub(super) fn attacks() -> Vec<Attack> {
    spellings().into_iter().chain(slots()).chain(disagreements()).collect()
}

async fn asked(agent: &Agent, attack: &Attack) -> String {
    let body = harness::agent::chat_body("fake", harness::agent::Answering::Whole).to_string();
    let Attack { slot, lines, .. } = attack;
    let request = format!(
        "POST {slot}{CHAT} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{lines}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    told(agent, request.as_bytes()).await
}

async fn gateway() -> Shared {
    let shared = Shared::serving("gateways").await;
    for run in ["r2", "r3", "r4"] {
        open(&shared.world, run, &format!("acct-{run}")).await;
    }
    for (run, what, id) in [
        ("r1", "traces", TRACE),
        ("r1", "slots", SLOT),
        ("r1", "traces", WITHDRAWN_TRACE),
        ("r1", "slots", WITHDRAWN_SLOT),
        ("r2", "traces", OTHER_TRACE),
        ("r2", "slots", OTHER_SLOT),
        ("r3", "traces", CLOSED_TRACE),
        ("r3", "slots", CLOSED_SLOT),
        ("r4", "slots", REVOKED_SLOT),
    ] {
        assert_eq!(shared.control(Method::PUT, &format!("/v1/runs/{run}/{what}/{id}")).await, 200, "{what}");
    }
    for id in [format!("traces/{WITHDRAWN_TRACE}"), format!("slots/{WITHDRAWN_SLOT}")] {
        let path = format!("/v1/runs/r1/{id}?grace_ms=0");
        assert_eq!(shared.control(Method::DELETE, &path).await, 200, "{id}");
    }
    shared.world.control.close(&"r3".parse().unwrap(), 0).await.unwrap();
    let revoked = shared.world.sluice().run(&["token", "revoke", "--run", "r4"]).await;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    shared
}

/// No refusal locks a gateway's provider.
#[tokio::test]
async fn ambiguous_correlations_are_unattributed() {
    let shared = gateway().await;
    for attack in attacks() {
        let answer = asked(&shared.agent(), &attack).await;
        let row = format!("{}: {answer}", attack.row);
        assert!([400, 404].contains(&status(&answer)), "{row}");
        assert!(answer.contains("unattributed") || answer.contains("route_unknown"), "{row}");
        assert!(shared.world.upstream.ledger().is_empty(), "{row}");
    }
    let lines = shared.world.records(attacks().len()).await;
    assert!(lines.iter().all(|line| line.record.run_id.as_str() == "unattributed"), "{lines:?}");
}

#[tokio::test]
async fn unambiguous_correlations_attribute_calls() {
    let shared = gateway().await;
    for (count, attack) in (1..).zip(good_ones()) {
        let answer = asked(&shared.agent(), &attack).await;
        assert_eq!(status(&answer), 200, "{}: {answer}", attack.row);
        let record = shared.world.records(count).await.pop().unwrap().record;
        assert_eq!(Some((record.run_id.as_str(), record.identity)), attack.of, "{}", attack.row);
    }
}
