//! Tests the table of transitions.

use std::time::{Duration, UNIX_EPOCH};

use platform_core::json::{self, Bounds, RawBuf};

use super::{
    Input, Next,
    State::{self, AwaitingChallenge, AwaitingHello, Over, Serving, Stopping},
};
use crate::{
    error::{DisconnectReason, Error},
    outcome::Code,
    settings::Scopes,
    wire::{gateway_error::GatewayError, hello},
};

fn raw(json: &str) -> RawBuf {
    json::from_str(json, Bounds::STORED).unwrap()
}

fn greeting(json: &str, scopes: &Scopes) -> Input {
    Input::Hello(hello::read(Some(raw(json).as_raw()), scopes, UNIX_EPOCH).unwrap())
}

fn hello_of(protocol: u8) -> Input {
    greeting(&format!(r#"{{"type":"hello-ok","protocol":{protocol}}}"#), &Scopes::default())
}

fn refusal(error: &str) -> Input {
    Input::Refusal(GatewayError::read(raw(error).as_raw()))
}

/// Writes a transition as text, so that a table of them can be read.
fn describe(next: Next) -> String {
    match next {
        Next::Stay => "stay".into(),
        Next::Connect => "connect".into(),
        Next::Serve(hello) => format!("serve {:?}", hello.generation),
        Next::Handle => "handle".into(),
        Next::Reconnect { why, min_delay } => {
            format!("again {}: {why}", min_delay.unwrap_or_default().as_millis())
        }
        Next::Fail(error) => format!("fail: {error}"),
    }
}

const STOPPING: State = Stopping { back_in: Some(Duration::from_millis(1500)) };

type Step = (State, Input, State, &'static str);

fn check(steps: impl IntoIterator<Item = Step>) {
    for (from, input, to, next) in steps {
        let shown = format!("{from:?} {input:?}");
        let (state, done) = from.step(input);
        assert_eq!(state, to, "{shown}");
        let done = describe(done);
        assert!(done.starts_with(next), "{shown}: {done}");
    }
}

const fn late() -> Input {
    Input::Late(Duration::from_secs(20))
}

const fn closed(code: u16) -> Input {
    Input::Broken(DisconnectReason::Closed(code))
}

#[test]
fn moves_before_the_hello() {
    let second = Some(Duration::from_secs(1));
    check([
        (AwaitingChallenge, Input::Challenge, AwaitingHello, "connect"),
        (AwaitingChallenge, Input::Frame, AwaitingChallenge, "stay"),
        (AwaitingChallenge, hello_of(4), Over, "again 0: the connection to the gateway broke"),
        (AwaitingChallenge, late(), Over, "again 0: the handshake with the gateway timed out after 20s"),
        (
            AwaitingChallenge,
            closed(1000),
            Over,
            "again 0: the connection to the gateway broke: closed with code 1000",
        ),
        (AwaitingChallenge, closed(1013), Over, "again 0: the gateway is not ready (1013)"),
        (AwaitingHello, hello_of(3), Serving, "serve Three"),
        (AwaitingHello, hello_of(4), Serving, "serve Four"),
        (AwaitingHello, hello_of(5), Over, "fail: the gateway speaks protocol 5"),
        (AwaitingHello, Input::Frame, AwaitingHello, "stay"),
        (
            AwaitingHello,
            Input::Challenge,
            Over,
            "again 0: the connection to the gateway broke: the gateway sent data that is no",
        ),
        (AwaitingHello, late(), Over, "again 0: the handshake with the gateway timed out"),
        (AwaitingHello, closed(1002), Over, "fail: the gateway speaks protocol of an unknown number"),
        (
            AwaitingHello,
            closed(1008),
            Over,
            "again 0: the connection to the gateway broke: closed with code 1008",
        ),
        (
            AwaitingHello,
            Input::Shutdown { back_in: second },
            Over,
            "again 1000: the gateway is not ready (shutdown)",
        ),
    ]);
}

#[test]
fn moves_after_the_hello() {
    let second = Some(Duration::from_secs(1));
    check([
        (Serving, Input::Frame, Serving, "handle"),
        (Serving, late(), Serving, "stay"),
        (
            Serving,
            hello_of(4),
            Over,
            "again 0: the connection to the gateway broke: the gateway sent data that is no",
        ),
        (Serving, closed(1002), Over, "again 0: the connection to the gateway broke: closed with code 1002"),
        (Serving, closed(1008), Over, "again 0: the connection to the gateway broke: closed with code 1008"),
        (Serving, closed(1009), Over, "again 0: the connection to the gateway broke: closed with code 1009"),
        (
            Serving,
            Input::Broken(DisconnectReason::Silent),
            Over,
            "again 0: the connection to the gateway broke: two ticks",
        ),
        (Serving, Input::Shutdown { back_in: second }, Stopping { back_in: second }, "handle"),
        (STOPPING, Input::Frame, STOPPING, "handle"),
        (
            STOPPING,
            closed(1012),
            Over,
            "again 1500: the connection to the gateway broke: closed with code 1012",
        ),
        (Over, Input::Frame, Over, "stay"),
        (Over, closed(1000), Over, "stay"),
    ]);
}

#[test]
fn a_refusal_is_final_unless_it_is_retryable() {
    for (error, next) in [
        // Protocol 4.
        (
            r#"{"code":"INVALID_REQUEST","message":"…","details":{"code":"AUTH_TOKEN_MISMATCH","authReason":"token_mismatch"}}"#,
            "fail: the gateway refused the token (AUTH_TOKEN_MISMATCH)",
        ),
        (
            r#"{"code":"NOT_PAIRED","message":"…","details":{"code":"DEVICE_IDENTITY_REQUIRED"}}"#,
            "fail: the gateway requires a token or a paired device",
        ),
        (
            r#"{"code":"NOT_PAIRED","message":"…","details":{"code":"PAIRING_REQUIRED","requestId":"95d4b481-f792"}}"#,
            "fail: this device is not paired with the gateway yet: approve the request with `openclaw devices approve 95d4b481-f792`",
        ),
        (
            r#"{"code":"INVALID_REQUEST","message":"…","details":{"code":"PROTOCOL_MISMATCH","expectedProtocol":5}}"#,
            "fail: the gateway speaks protocol 5",
        ),
        (
            r#"{"code":"INVALID_REQUEST","message":"origin not allowed","details":{"code":"CONTROL_UI_ORIGIN_NOT_ALLOWED"}}"#,
            "fail: the gateway refused the connection (CONTROL_UI_ORIGIN_NOT_ALLOWED): origin not allowed",
        ),
        (
            r#"{"code":"UNAVAILABLE","message":"…","retryable":true,"retryAfterMs":500,"details":{"reason":"startup-sidecars"}}"#,
            "again 500: the gateway is not ready (startup-sidecars)",
        ),
        // Protocol 3 says less.
        (
            r#"{"code":"INVALID_REQUEST","message":"unauthorized: gateway token mismatch"}"#,
            "fail: the gateway refused the token (INVALID_REQUEST)",
        ),
        (r#"{"code":"NOT_PAIRED","message":"…"}"#, "fail: the gateway requires a token"),
        (
            r#"{"code":"INVALID_REQUEST","message":"…","details":{"expectedProtocol":2}}"#,
            "fail: the gateway speaks protocol 2",
        ),
        // Neither.
        (
            r#"{"code":"SOMETHING_NEW","message":"a\u0007b"}"#,
            r"fail: the gateway refused the connection (SOMETHING_NEW): a\u{7}b",
        ),
        ("null", "fail: the gateway refused the connection (unnamed): "),
    ] {
        let (state, done) = AwaitingHello.step(refusal(error));
        assert_eq!(state, Over);
        let done = describe(done);
        assert!(done.starts_with(next), "{error}: {done}");
    }
}

#[test]
fn missing_scopes_are_a_final_error() {
    let scopes = Scopes::default();
    let hello =
        |granted: &str| greeting(&format!(r#"{{"protocol":4,"auth":{{"scopes":{granted}}}}}"#), &scopes);
    let (_, none) = AwaitingHello.step(hello("[]"));
    let Next::Fail(error @ Error::MissingScopes { .. }) = none else { panic!("{none:?}") };
    assert!(error.is_final());
    assert!(
        error.to_string().contains("operator.admin, operator.read, operator.write: off the loopback"),
        "{error}"
    );
    let (_, all) =
        AwaitingHello.step(hello(r#"["operator.admin","operator.read","operator.write","operator.new"]"#));
    assert_eq!(describe(all), "serve Four");
}

#[test]
fn codes_are_codes_or_nothing() {
    assert_eq!(Code::new("AUTH_TOKEN_MISMATCH").as_str(), "AUTH_TOKEN_MISMATCH");
    for bad in ["", "two words", "ü", &"A".repeat(65), "a\n"] {
        assert_eq!(Code::new(bad).as_str(), "unnamed");
    }
}
