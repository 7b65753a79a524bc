//! prometheus sends queries to a Prometheus, and reads answers within bounds of time and size.

use std::time::Duration;

use bytes::Bytes;
use http::{
    Method, Request,
    header::{CONTENT_TYPE, HOST},
};
use platform_core::{
    json::{self, Bounds},
    percent,
};
use platform_outbound::{AnswerLimit, Error, exchange};
use platform_runtime::{report, settings::BaseUrl};
use serde::Deserialize;
use serde_json::Value;
use tokio::net::TcpStream;

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

impl Prometheus {
    pub(super) const fn new(url: BaseUrl, timeout: Duration) -> Self {
        Self { url, timeout }
    }

    /// Returns the data of a query at a time, or now.
    pub(super) async fn query(&self, query: &str, time: Option<u64>) -> Result<Value, ToolError> {
        let mut form = format!("query={}&timeout={}ms", percent::encode(query), self.timeout.as_millis());
        if let Some(time) = time {
            form.push_str(&format!("&time={time}"));
        }
        let opening = TcpStream::connect((self.url.host.as_str(), self.url.port));
        let limit = AnswerLimit::new(self.timeout, MAX_ANSWER);
        match exchange(opening, self.request(form)?, limit).await {
            Ok(answer) => data(answer.body()),
            Err(Error::TooLong { .. }) => {
                Err(ToolError::new(ToolCode::ResultTooLarge, "the answer has more than 1 MiB"))
            }
            Err(Error::TimedOut) => {
                Err(ToolError::new(ToolCode::TimedOut, "the metrics did not answer in time"))
            }
            Err(error) => Err(unreachable(&error)),
        }
    }

    fn request(&self, form: String) -> Result<Request<Bytes>, ToolError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(QUERY_PATH)
            .header(HOST, self.url.authority())
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        request.body(Bytes::from(form)).map_err(|error| unreachable(&error))
    }
}

fn unreachable(error: &dyn std::error::Error) -> ToolError {
    tracing::warn!(error = report::chain(error), "query of metrics failed");
    ToolError::new(ToolCode::ToolFailed, "the metrics cannot be reached")
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
