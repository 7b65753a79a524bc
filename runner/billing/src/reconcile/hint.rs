//! Reads hints: calls of which LiteLLM's generic callback tells.
//!
//! A hint says only when a call began, and the ledger alone says what it cost. So a hint that is forged, repeated or cut
//! changes only the time at which the ledger is read.

use platform_core::{
    json::{self, Bounds, Raw},
    limit::Millis,
};
use runner_store::UnixMillis;
use serde::Deserialize;

/// Longest time for which a hint reaches back: older calls are found by `sluice billing reconcile --since`.
const MAX_AGE: Millis = Millis::seconds(60 * 60);

/// Bounds of a callback; the API bounds its length. Only its events are built.
const BOUNDS: Bounds = Bounds::of(usize::MAX).with_depth(usize::MAX).with_values(usize::MAX);

/// CallbackEvent, as far as it is a hint.
#[derive(Deserialize)]
struct CallbackEvent {
    /// Time at which the call began, in seconds since the epoch.
    #[serde(rename = "startTime")]
    began: f64,
}

/// Returns the time at which the first call of a callback began, not longer ago than is useful; `None` if the body is
/// not a callback or tells of no call.
pub(super) fn earliest_call(body: &[u8], now: UnixMillis) -> Option<UnixMillis> {
    let events = events(body).into_iter().filter_map(|event| event.read::<CallbackEvent>().ok());
    let earliest = events.map(|event| event.began).reduce(f64::min)?;
    #[expect(clippy::cast_possible_truncation, reason = "saturates, and is bounded below")]
    let millis = (earliest * 1000.0) as i64;
    Some(UnixMillis(millis).clamp(now.before(MAX_AGE), now))
}

/// Returns the events of a callback: a list, one object, or objects line by line, as LiteLLM's `log_format` says.
fn events(body: &[u8]) -> Vec<Raw<'_>> {
    match json::from_slice::<Raw<'_>>(body, BOUNDS) {
        Ok(whole) => whole.read().unwrap_or_else(|_no_list| vec![whole]),
        Err(_) => {
            let lines = body.split(|byte| *byte == b'\n');
            lines.filter_map(|line| json::from_slice(line, BOUNDS).ok()).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a text in which each layer is written in a string beside a name that serde_json reserves.
    fn raw_nest(layers: usize) -> String {
        let escaped = |text: &str| text.replace('\\', "\\u005c").replace('"', "\\u0022");
        (0..layers).fold("1".to_owned(), |inner, _| {
            format!(r#"{{"$serde_json::private::RawValue":"{}"}}"#, escaped(&inner))
        })
    }

    #[test]
    fn a_hint_says_only_when_a_call_began() {
        let now = UnixMillis(1_795_199_800_000);
        let nested = raw_nest(15);
        let deep = "[".repeat(200) + &"]".repeat(200);
        let deep = format!(r#"[{{"startTime": 1795199760}}, {{"startTime": 1795199770, "x": {deep}}}]"#);
        let table: [(&str, Option<i64>); 16] = [
            (r#"[{"startTime": 1795199762.5, "id": "x", "response_cost": 9e9}]"#, Some(1_795_199_762_500)),
            (r#"{"startTime": 1795199762.5}"#, Some(1_795_199_762_500)),
            (r#"[{"startTime": 1795199770}, {"startTime": 1795199760}]"#, Some(1_795_199_760_000)),
            ("{\"startTime\": 1795199770}\n{\"startTime\": 1795199760}\n", Some(1_795_199_760_000)),
            // Forged times: neither all of the ledger is read for them, nor the future.
            (r#"[{"startTime": 0}]"#, Some(1_795_196_200_000)),
            (deep.as_str(), Some(1_795_199_760_000)),
            (r#"[{"startTime": -1e300}]"#, Some(1_795_196_200_000)),
            (r#"[{"startTime": 1e300}]"#, Some(1_795_199_800_000)),
            (r#"[{"startTime": "now"}, {"startTime": 1795199760}]"#, Some(1_795_199_760_000)),
            ("[]", None),
            ("", None),
            (r#"[{"startTime": 17951"#, None),
            (r#"[{"startTime": "now"}]"#, None),
            (r#"[{"id": "x"}]"#, None),
            ("\u{0}", None),
            (&nested, None),
        ];
        for (body, expected) in table {
            assert_eq!(earliest_call(body.as_bytes(), now), expected.map(UnixMillis), "{body}");
        }
    }
}
