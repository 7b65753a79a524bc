//! prometheus sends queries to a Prometheus, and reads answers within bounds of time and size.

use std::time::Duration;

use bytes::Bytes;
use http::{
    Method, Request,
    header::{CONTENT_TYPE, HOST},
};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use platform_core::json::{self, Bounds};
use platform_runtime::{report, settings::BaseUrl, task};
use serde::Deserialize;
use serde_json::Value;
use tokio::{net::TcpStream, time::timeout};

use crate::tool::{ToolCode, ToolError};

/// Largest answer that is read.
const MAX_ANSWER: usize = 1 << 20;
/// Bounds of an answer. A series has some 15 values.
const BOUNDS: Bounds = Bounds::of(MAX_ANSWER).with_values(50_000);
/// Path of a query.
const QUERY_PATH: &str = "/api/v1/query";

/// Client of a Prometheus.
#[derive(Debug)]
pub(super) struct Prometheus {
    url: BaseUrl,
    timeout: Duration,
}

#[derive(Deserialize)]
struct AnswerBody {
    status: String,
    data: Option<Value>,
    error: Option<String>,
}

/// Cause of a query that failed on its way.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error(transparent)]
    Io(#[from] std::io::Error),
    #[error(transparent)]
    Http(#[from] hyper::Error),
    #[error(transparent)]
    Request(#[from] http::Error),
}

impl Prometheus {
    pub(super) const fn new(url: BaseUrl, timeout: Duration) -> Self {
        Self { url, timeout }
    }

    /// Returns the data of a query at a time, or now.
    pub(super) async fn query(&self, query: &str, time: Option<u64>) -> Result<Value, ToolError> {
        let mut form = format!("query={}&timeout={}ms", encode(query), self.timeout.as_millis());
        if let Some(time) = time {
            form.push_str(&format!("&time={time}"));
        }
        let failed = |message: &str| ToolError::new(ToolCode::ToolFailed, message);
        let body = match timeout(self.timeout, self.post(form)).await {
            Ok(Ok(Some(body))) => body,
            Ok(Ok(None)) => {
                return Err(ToolError::new(ToolCode::ResultTooLarge, "the answer has more than 1 MiB"));
            }
            Ok(Err(error)) => {
                tracing::warn!(error = report::chain(&error), "query of metrics failed");
                return Err(failed("the metrics cannot be reached"));
            }
            Err(_elapsed) => {
                return Err(ToolError::new(ToolCode::TimedOut, "the metrics did not answer in time"));
            }
        };
        data(&body)
    }

    /// Sends a query. Returns the answer, or nothing if it is too large.
    async fn post(&self, form: String) -> Result<Option<Bytes>, Fault> {
        let stream = TcpStream::connect((self.url.host.as_str(), self.url.port)).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // Ends with the sender and the answer's body, which are dropped here.
        drop(task::spawn("prometheus", connection));
        let request = Request::builder()
            .method(Method::POST)
            .uri(QUERY_PATH)
            .header(HOST, format!("{}:{}", self.url.host, self.url.port))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Full::new(Bytes::from(form)))?;
        let response = sender.send_request(request).await?;
        #[expect(clippy::disallowed_methods, reason = "it is limited")]
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect().await;
        match body {
            Ok(body) => Ok(Some(body.to_bytes())),
            Err(error) => match error.downcast::<hyper::Error>() {
                Ok(error) => Err((*error).into()),
                Err(_too_long) => Ok(None),
            },
        }
    }
}

/// Returns the data in an answer.
fn data(body: &[u8]) -> Result<Value, ToolError> {
    let failed = |message: &str| ToolError::new(ToolCode::ToolFailed, message);
    let answer: AnswerBody = json::from_slice(body, BOUNDS).map_err(|error| match error.is_bound() {
        true => ToolError::new(ToolCode::ResultTooLarge, format!("the answer of the metrics: {error}")),
        false => failed("the answer of the metrics server is not a Prometheus response"),
    })?;
    match (answer.status.as_str(), answer.data) {
        ("success", Some(data)) => Ok(data),
        _ => {
            // It may quote the query, but nothing of other series.
            let problem = answer.error.unwrap_or_default();
            let problem = &problem[..problem.floor_char_boundary(500)];
            Err(failed(&format!("the query failed: {problem}")))
        }
    }
}

/// Returns `text` with all bytes but letters, digits and `-._~` percent-encoded.
fn encode(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes().fold(String::with_capacity(text.len()), |mut encoded, byte| {
        if is_plain(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::arguments::tests::raw_nest;

    #[test]
    fn an_answer_is_data_or_a_failure() {
        let answer = |data: &str| format!(r#"{{"status":"success","data":{data}}}"#);
        assert_eq!(data(answer(r#"{"result":[1]}"#).as_bytes()), Ok(json!({ "result": [1] })));
        for (body, code, problem) in [
            (r#"{"status":"error","error":"no metric"}"#.to_owned(), ToolCode::ToolFailed, "no metric"),
            ("<html>".to_owned(), ToolCode::ToolFailed, "not a Prometheus response"),
            (answer(&raw_nest(15)), ToolCode::ToolFailed, "not a Prometheus response"),
            (answer(&"[".repeat(100)), ToolCode::ResultTooLarge, "deeper than 64"),
            (answer(&format!("[{}1]", "1,".repeat(BOUNDS.values))), ToolCode::ResultTooLarge, "50000 values"),
        ] {
            let error = data(body.as_bytes()).unwrap_err();
            assert_eq!(error.code, code.word());
            assert!(error.message.contains(problem), "{}", error.message);
        }
    }
}
