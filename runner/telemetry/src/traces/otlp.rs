//! Sends spans to the collector, over OTLP/HTTP in JSON. Each request has its own connection: batches are rare.

use std::{
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode, header};
use platform_core::{
    code::{Code, Coded},
    json::{self, Bounds},
    limit::ByteSize,
};
use platform_outbound::{Dialer, send};
use platform_runtime::{
    file::{self, Unread},
    settings::{BaseUrl, Telemetry},
    trust::Trusted,
};
use tokio::time::timeout;

/// Path on which collectors accept traces.
const TRACES_PATH: &str = "/v1/traces";
/// Longest time of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of a file of headers.
const MAX_HEADERS: ByteSize = ByteSize::kib(64);
/// Maximum size of an answer, of which only the count of refused spans is used.
const MAX_ANSWER: usize = 64 << 10;

/// Reason why the telemetry settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// The file cannot be read.
    #[error("cannot read telemetry.otlp_headers_file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Error of the read.
        #[source]
        source: Unread,
    },
    /// A line is not a header. The error does not contain the line, which may be a secret.
    #[error("{}:{line}: expected `name: value`", path.display())]
    NoHeader {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
    },
    /// The endpoint is not an address.
    #[error("telemetry.otlp_endpoint: {0}")]
    Endpoint(String),
}

impl Coded for Unusable {
    fn code(&self) -> Code {
        Code::ConfigurationInvalid
    }
}

/// Reason why a batch was not accepted.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportError {
    #[error("the collector cannot be reached")]
    Unreachable(#[source] io::Error),
    #[error("the connection to the collector broke")]
    Broken(#[source] hyper::Error),
    #[error("the collector did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Silent,
    #[error("the collector answered {0}")]
    Refused(StatusCode),
}

impl ExportError {
    /// Returns whether the same batch may be accepted later.
    pub(super) const fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::Silent => true,
            Self::Refused(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
        }
    }
}

/// Address and headers of the collector.
#[derive(Debug)]
pub(super) struct Collector {
    url: BaseUrl,
    headers: HeaderMap,
}

impl Collector {
    /// Returns the collector that `settings` name, if they name one.
    pub(super) fn of(settings: &Telemetry) -> Result<Option<Self>, Unusable> {
        let Some(endpoint) = &settings.otlp_endpoint else { return Ok(None) };
        let url = BaseUrl::parse(endpoint).map_err(|fault| Unusable::Endpoint(fault.to_string()))?;
        let headers =
            settings.otlp_headers_file.as_deref().map(read_headers).transpose()?.unwrap_or_default();
        Ok(Some(Self { url, headers }))
    }

    /// Sends a batch, and returns the number of spans that were refused.
    pub(super) async fn send(&self, body: Bytes) -> Result<u64, ExportError> {
        timeout(REQUEST_TIMEOUT, self.send_now(body)).await.unwrap_or(Err(ExportError::Silent))
    }

    async fn send_now(&self, body: Bytes) -> Result<u64, ExportError> {
        let stream = Dialer::default().open(&self.url.host, self.url.port).await;
        let stream = stream.map_err(ExportError::Unreachable)?;
        let mut request = Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = http::Uri::from_static(TRACES_PATH);
        *request.headers_mut() = self.headers.clone();
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Ok(host) = HeaderValue::from_str(&self.url.authority()) {
            headers.insert(header::HOST, host);
        }
        let answer = send(stream, request).await.map_err(ExportError::Broken)?;
        if !answer.status().is_success() {
            return Err(ExportError::Refused(answer.status()));
        }
        // The status alone shows the success; a body that cannot be read changes nothing.
        Ok(answer.read(MAX_ANSWER).await.map_or(0, |answer| rejected_spans(answer.body())))
    }
}

/// Returns the number of refused spans in an answer. OTLP allows 64-bit numbers as text.
fn rejected_spans(answer: &[u8]) -> u64 {
    let bounds = Bounds::of(MAX_ANSWER).with_values(10_000);
    let answer: serde_json::Value = json::from_slice(answer, bounds).unwrap_or_default();
    let count = &answer["partialSuccess"]["rejectedSpans"];
    count.as_u64().or_else(|| count.as_str()?.parse().ok()).unwrap_or_default()
}

/// Reads the headers in a file with one header in each line.
fn read_headers(path: &Path) -> Result<HeaderMap, Unusable> {
    let text = file::secret(path, MAX_HEADERS, &Trusted::own())
        .map_err(|source| Unusable::Unreadable { path: path.to_owned(), source })?;
    let mut headers = HeaderMap::new();
    for (index, line) in text.expose().lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let parsed = line.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
            let mut value = HeaderValue::from_str(value.trim()).ok()?;
            value.set_sensitive(true);
            Some((name, value))
        });
        let Some((name, value)) = parsed else {
            return Err(Unusable::NoHeader { path: path.to_owned(), line: index + 1 });
        };
        headers.append(name, value);
    }
    Ok(headers)
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
    fn refused_spans_are_read_in_every_form() {
        for (answer, count) in [
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":3}}"#, 3),
            (r#"{"partialSuccess":{}}"#, 0),
            ("{}", 0),
            ("", 0),
            ("<html>", 0),
            (r#"{"partialSuccess":[3]}"#, 0),
            (&raw_nest(15), 0),
        ] {
            assert_eq!(rejected_spans(answer.as_bytes()), count, "{answer}");
        }
    }

    #[test]
    fn permanent_failures_are_not_retried() {
        for (status, is_transient) in
            [(429, true), (502, true), (503, true), (504, true), (400, false), (401, false), (500, false)]
        {
            assert_eq!(
                ExportError::Refused(StatusCode::from_u16(status).unwrap()).is_transient(),
                is_transient,
                "{status}"
            );
        }
        assert!(ExportError::Silent.is_transient());
    }
}
