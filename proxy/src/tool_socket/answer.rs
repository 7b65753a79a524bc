//! Reads an answer of the control plane: whole, within a bound.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use platform_core::{
    host_tools::{TOOL_PROTOCOL, ToolOutcome, header as own},
    limit::ByteSize,
    untrusted::JournalText,
};
use platform_outbound::OpenAnswer;

use super::Error;

/// Headers of an answer that an agent receives.
const PASSED: [HeaderName; 2] = [header::CONTENT_TYPE, HeaderName::from_static("mcp-protocol-version")];

/// Answer to a call of a host tool.
#[derive(Debug)]
pub(crate) struct ToolAnswer {
    pub(crate) status: StatusCode,
    /// Headers that the agent receives.
    pub(crate) headers: HeaderMap,
    /// Outcome of the call, as the control plane reports it.
    pub(crate) outcome: Option<ToolOutcome>,
    /// Connection with the credential that the tool used.
    pub(crate) connection: Option<JournalText>,
    pub(crate) body: Bytes,
}

impl ToolAnswer {
    fn of_head(status: StatusCode, headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let passed = PASSED.into_iter().filter_map(|name| Some((name.clone(), headers.get(&name)?.clone())));
        Self {
            status,
            headers: passed.collect(),
            outcome: text(own::OUTCOME).and_then(ToolOutcome::of_word),
            connection: text(own::CONNECTION).map(JournalText::of),
            body: Bytes::new(),
        }
    }

    /// Returns the error if this is not an answer that an agent may receive.
    fn check(&self, headers: &HeaderMap) -> Result<(), Error> {
        let status = self.status.as_u16();
        let is_plain = !headers.contains_key(header::CONTENT_ENCODING);
        let speaks_other =
            headers.get(own::PROTOCOL).is_some_and(|version| *version != TOOL_PROTOCOL.to_string());
        match (self.status, self.outcome) {
            (StatusCode::SERVICE_UNAVAILABLE | StatusCode::HTTP_VERSION_NOT_SUPPORTED, None) => {
                Err(Error::Refused { status })
            }
            _ if !is_plain || speaks_other => Err(Error::Protocol { status }),
            (code, _) if code.is_informational() || code.is_redirection() => Err(Error::Protocol { status }),
            (code, None) if code.is_server_error() => Err(Error::Protocol { status }),
            _ => Ok(()),
        }
    }
}

/// Reads an answer whole, up to `limit`.
pub(super) async fn read(answer: OpenAnswer, limit: ByteSize) -> Result<ToolAnswer, Error> {
    let mut read = ToolAnswer::of_head(answer.status(), answer.headers());
    read.check(answer.headers())?;
    match answer.read(usize::try_from(limit.0).unwrap_or(usize::MAX)).await {
        Ok(whole) => {
            read.body = whole.into_body();
            Ok(read)
        }
        Err(platform_outbound::Error::Broken(source)) => Err(Error::Broken(source)),
        Err(_too_long) => Err(Error::TooLarge { limit, head: Box::new(read) }),
    }
}
