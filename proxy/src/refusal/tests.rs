//! Tests what each refusal looks like to each kind of client.

use platform_core::{
    refusal::Refusal,
    route::{Dialect, Route},
};
use serde_json::{Value, json};

use super::{
    Refused, error_json, respond,
    table::{Retry, row},
    words::message,
};

#[test]
fn every_refusal_has_one_shape_per_dialect() {
    for refusal in Refusal::ALL {
        for dialect in [Dialect::OpenAi, Dialect::Anthropic] {
            let refused = Refused::from(refusal);
            let response = respond(&refused, dialect);
            let json: serde_json::Value = serde_json::from_str(&error_json(&refused, dialect)).unwrap();
            assert_eq!(json["error"]["code"], refusal.code());
            assert_eq!(
                response.headers().contains_key("retry-after"),
                [408, 429, 503].contains(&response.status().as_u16()),
                "{refusal:?}"
            );
            assert_ne!(
                response.headers().contains_key("retry-after"),
                response.headers().contains_key("x-should-retry")
            );
        }
    }
}

#[test]
fn tool_clients_get_shapes_of_their_own() {
    for refusal in Refusal::ALL {
        let refused = Refused::from(refusal).answering(Some("\"a\"".to_owned()));
        let json = |dialect| -> Value { serde_json::from_str(&error_json(&refused, dialect)).unwrap() };
        let exec = json(Dialect::ToolExec);
        assert_eq!((&exec["ok"], &exec["error"]["code"]), (&json!(false), &json!(refusal.code())));
        let rpc = json(Dialect::JsonRpc);
        assert_eq!((&rpc["id"], &rpc["error"]["data"]["code"]), (&json!("a"), &json!(refusal.code())));
        assert!(rpc["error"]["code"].as_i64().unwrap() < 0);
    }
    let unread: Value =
        serde_json::from_str(&error_json(&Refusal::BodyInvalid.into(), Dialect::JsonRpc)).unwrap();
    assert_eq!((&unread["id"], &unread["error"]["code"]), (&Value::Null, &json!(-32600)));
    let response = respond(&Refusal::MethodNotAllowed.into(), Dialect::JsonRpc);
    assert_eq!((response.status().as_u16(), &response.headers()["allow"]), (405, &"POST".parse().unwrap()));
}

#[test]
fn an_unknown_route_is_told_of_all_others() {
    let text = message(Refusal::RouteUnknown);
    for path in Route::ALL.into_iter().filter_map(Route::upstream_path) {
        let is_named =
            |word: &str| path.strip_prefix(word).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        assert!(text.split([' ', ',']).any(is_named), "{path}: {text}");
    }
}

#[test]
fn gateways_get_no_provider_locking_status() {
    for refusal in Refusal::ALL {
        let refused = Refused::from(refusal).for_gateway();
        assert!(![401, 402, 403, 429].contains(&refused.status().as_u16()), "{refusal:?}");
    }
}

/// Keeps the file that `tests/clients/openclaw.rs` shows to the classifier of the real OpenClaw. Delete the file to
/// write it again.
#[test]
fn refusals_are_as_they_were_shown_to_openclaw() {
    let row = |(refusal, dialect, api): (Refusal, Dialect, &str)| {
        let refused = Refused::from(refusal).for_gateway();
        let status = refused.status();
        let (_, _, retry) = row(refused.reason);
        let body = error_json(&refused, dialect);
        json!({ "code": refusal.code(), "status": status.as_u16(), "api": api, "final": retry == Retry::Never, "body": body })
    };
    let both = |refusal| {
        [
            (refusal, Dialect::OpenAi, "openai-completions"),
            (refusal, Dialect::Anthropic, "anthropic-messages"),
        ]
    };
    let rows: String =
        Refusal::ALL.into_iter().flat_map(both).map(|pair| row(pair).to_string() + "\n").collect();
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/refusals.jsonl");
    let Ok(shown) = std::fs::read_to_string(golden) else {
        std::fs::write(golden, &rows).unwrap();
        panic!("{golden} is written anew: read it, then run this again");
    };
    assert_eq!(rows, shown);
}
