//! The request's body: read whole, bounded, because who may ask for what is in there; sent on as it came.

use std::{borrow::Cow, time::Duration};

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use platform_core::refusal::Refusal;
use serde::Deserialize;
use tokio::time::timeout;

use crate::exchange::settle::Exchange;

/// How much of a refused body is still read, and for how long.
const LINGER_BYTES: usize = 128 << 20;
const LINGER: Duration = Duration::from_secs(3);

/// Reads the body whole. Not cancel safe, and need not be: the call ends with it.
pub(in crate::exchange) async fn read_body(
    exchange: &mut Exchange,
    body: &mut Incoming,
) -> Result<Bytes, Refusal> {
    let limit = exchange.run().grant.limits.request_body.0;
    let announced = body.size_hint().lower();
    if announced > limit {
        return Err(Refusal::BodyTooLarge);
    }
    let (mut whole, mut rest) = (Bytes::new(), BytesMut::new());
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|broken| exchange.upload_broke_off(&broken))?;
        let Ok(piece) = frame.into_data() else { continue };
        if exchange.received(piece.len()) > limit {
            return Err(Refusal::BodyTooLarge);
        }
        // A small body comes in one piece, which is then not copied.
        if whole.is_empty() && rest.is_empty() {
            whole = piece;
        } else {
            if rest.is_empty() {
                // Once, and no more than is coming: growing by doubling would hold up to three times as much.
                rest.reserve(usize::try_from(announced).unwrap_or(0));
                rest.extend_from_slice(&std::mem::take(&mut whole));
            }
            rest.extend_from_slice(&piece);
        }
    }
    Ok(if rest.is_empty() { whole } else { rest.freeze() })
}

/// Reads what a refused client still sends, within bounds: one that is in the middle of its body would meet a
/// broken connection instead of the refusal (RFC 9112, 9.6), a bridge in between all the more.
pub(in crate::exchange) async fn discard(body: &mut Incoming) {
    let reading = async {
        let mut left = LINGER_BYTES;
        while left > 0
            && let Some(Ok(frame)) = body.frame().await
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        }
    };
    // Whoever is slower than that has had his chance.
    drop(timeout(LINGER, reading).await);
}

/// What the body asks for.
#[derive(Deserialize)]
pub(in crate::exchange) struct Asked<'a> {
    #[serde(borrow, default)]
    pub(in crate::exchange) model: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(in crate::exchange) stream: Option<bool>,
}

/// Reads the body. serde would take an array for a struct, so the first byte decides.
pub(super) fn asked(body: &[u8]) -> Result<Asked<'_>, Refusal> {
    let is_object = body.trim_ascii_start().first() == Some(&b'{');
    let parsed = is_object.then(|| serde_json::from_slice(body).ok()).flatten();
    parsed.ok_or(Refusal::BodyInvalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_whole_object_is_a_body() {
        assert_eq!(asked(b" \n{\"stream\":true,\"model\":\"m\"}").unwrap().stream, Some(true));
        let bad: [&[u8]; 9] = [
            b"",
            b"[]",
            b"[\"m\",true]",
            b"null",
            b"\"m\"",
            b"{",
            b"{}{}",
            b"{\"model\":1}",
            b"{\"model\":\"a\",\"model\":\"b\"}",
        ];
        for body in bad {
            assert!(matches!(asked(body), Err(Refusal::BodyInvalid)), "{}", String::from_utf8_lossy(body));
        }
    }
}
