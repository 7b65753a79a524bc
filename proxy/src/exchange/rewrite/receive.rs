//! Reads the request's body: whole and plain, because its content decides whether the call may pass, and bounded.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use platform_core::{limit::ByteSize, record::Outcome, refusal::Refusal};
use tokio::time::timeout;

use super::decode::{Coding, DecodeError, DecodeStatus, Decoder};
use crate::{body_memory::BodyPermit, exchange::call::Exchange, refusal::Refused, server::ConnectionState};

/// Most bytes of a refused body that are still read, for `DISCARD_TIMEOUT` at most.
const MAX_DISCARDED: usize = 128 << 20;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(3);

/// Most bytes of a plain body, and the setting that says so.
#[derive(Debug, Clone, Copy)]
pub(in crate::exchange) struct BodyLimit {
    pub(in crate::exchange) bytes: ByteSize,
    pub(in crate::exchange) setting: &'static str,
}

impl BodyLimit {
    /// Returns the refusal of a larger body.
    fn refusal(self) -> Refused {
        let Self { bytes, setting } = self;
        let message = format!("the request body is larger than {bytes}, which the setting {setting} allows");
        Refused::from(Refusal::BodyTooLarge).saying(message)
    }

    /// Returns the refusal of a body that was not decoded because of `error`.
    fn refusal_of(self, error: DecodeError) -> Refused {
        match error {
            DecodeError::TooLarge => self.refusal(),
            other => Refused::from(Refusal::BodyEncoded).saying(other.to_string()),
        }
    }
}

/// Returns whether a body with these headers is not encoded.
pub(in crate::exchange) fn is_plain(headers: &HeaderMap) -> bool {
    Coding::of(headers) == Ok(None)
}

/// Reads the body of a request with these `headers` whole and plain. Not cancel safe, and need not be: the call ends
/// with it.
pub(in crate::exchange) async fn read_plain_body(
    exchange: &mut Exchange,
    headers: &HeaderMap,
    body: &mut Incoming,
    permit: &mut BodyPermit,
    limit: BodyLimit,
) -> Result<Bytes, Refused> {
    let coding = Coding::of(headers).map_err(|error| limit.refusal_of(error))?;
    let encoded = read_body(exchange, body, permit, limit).await?;
    let Some(coding) = coding else { return Ok(encoded) };
    // In a box, so that calls with plain bodies need no memory for its state.
    let plain = Box::pin(decode(coding, encoded, permit, limit)).await?;
    exchange.note(|record| record.request_bytes = plain.len() as u64);
    Ok(plain)
}

/// Decodes a body, with a pause for other calls of the thread after each step.
async fn decode(
    coding: Coding,
    encoded: Bytes,
    permit: &mut BodyPermit,
    limit: BodyLimit,
) -> Result<Bytes, Refused> {
    let refusal = |error| limit.refusal_of(error);
    let mut decoder = Decoder::new(coding, &encoded, limit.bytes).map_err(refusal)?;
    while decoder.step().map_err(refusal)? == DecodeStatus::More {
        permit.resize(encoded.len() as u64 + decoder.memory())?;
        tokio::task::yield_now().await;
    }
    let plain = Bytes::from(decoder.into_plain());
    permit.resize(plain.len() as u64)?;
    Ok(plain)
}

/// Reads the body whole, up to `limit`, as it was sent.
async fn read_body(
    exchange: &mut Exchange,
    body: &mut Incoming,
    permit: &mut BodyPermit,
    limit: BodyLimit,
) -> Result<Bytes, Refused> {
    let ByteSize(most) = limit.bytes;
    let times = exchange.run().grant.limits.times;
    let announced = body.size_hint().lower();
    if announced > most {
        return Err(limit.refusal());
    }
    let connection_state = exchange.connection_state().clone();
    connection_state.await_body();
    let mut whole = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = connection_state
        .within_timeouts(body.frame())
        .await
        .map_err(|timeout| exchange.timeout_refusal(Refusal::BodyTooSlow, timeout))?
    {
        let frame = frame.map_err(|broken| exchange.upload_failed(&broken))?;
        let Ok(piece) = frame.into_data() else { continue };
        if exchange.count_body(piece.len()) > most {
            return Err(limit.refusal());
        }
        connection_state.received_body(piece.len(), &times);
        permit.grow(piece.len() as u64)?;
        // A small body comes in one piece, which is then not copied.
        if whole.is_empty() && rest.is_empty() {
            whole = piece;
        } else {
            if rest.is_empty() {
                // Reserved once, and no more than was announced: growing by doubling would use up to three times as
                // much.
                rest.reserve(usize::try_from(announced).unwrap_or(0));
                rest.extend_from_slice(&std::mem::take(&mut whole));
            }
            rest.extend_from_slice(&piece);
        }
    }
    connection_state.arrived();
    Ok(if rest.is_empty() { whole } else { rest.freeze() })
}

/// Reads the bytes that a refused client still sends, within bounds: a client in the middle of its body would meet a
/// broken connection instead of the refusal (RFC 9112, 9.6), a bridge in between all the more.
pub(in crate::exchange) async fn discard(body: &mut Incoming, connection_state: &ConnectionState) {
    connection_state.discard_body();
    let reading = async {
        let mut left = MAX_DISCARDED;
        while left > 0
            && let Some(Ok(frame)) = body.frame().await
        {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            connection_state.discarded(bytes);
            left = left.saturating_sub(bytes);
        }
    };
    // A slower client is not waited for.
    drop(timeout(DISCARD_TIMEOUT, reading).await);
}

impl Exchange {
    /// Counts `bytes` bytes of the request's body. Returns how many that makes in all.
    fn count_body(&mut self, bytes: usize) -> u64 {
        self.note(|record| record.request_bytes += bytes as u64);
        self.builder.as_ref().map_or(0, |builder| builder.record.request_bytes)
    }

    /// Ends a call because its body did not arrive whole: its sender has left, or it is not framed as HTTP wants it.
    fn upload_failed(&mut self, broken: &hyper::Error) -> Refusal {
        if broken.is_incomplete_message() || broken.is_closed() {
            drop(self.settle(Outcome::ClientGone));
        }
        Refusal::BodyInvalid
    }
}
