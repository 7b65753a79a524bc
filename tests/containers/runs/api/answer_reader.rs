//! Reads the stream of a chat's answer chunk by chunk, and writes the answer in a form that can be compared.

use harness::agent::Stream;
use serde_json::Value;
use tokio::time::timeout;

use crate::recovery::survival::PATIENCE;

/// Client that reads an answer. It fails at a chunk that does not continue the expected answer.
pub(super) struct AnswerReader<'e> {
    stream: Stream,
    /// Whole answer, as [`written`] writes it.
    expected: &'e str,
    unread: String,
    answer: String,
    /// Type of the last chunk.
    last: String,
    pub(super) has_ended: bool,
}

impl<'e> AnswerReader<'e> {
    pub(super) fn of(stream: Stream, expected: &'e str) -> Self {
        assert_eq!(stream.status, 200);
        let [unread, answer, last] = [(); 3].map(|()| String::new());
        Self { stream, expected, unread, answer, last, has_ended: false }
    }

    /// Reads until the answer has come as far as `expected`.
    pub(super) async fn until(&mut self, expected: &str) {
        let reading = async {
            while self.answer != expected {
                assert!(self.step().await, "{expected} did not come: {}", self.answer);
            }
        };
        let in_time = timeout(PATIENCE, reading).await;
        assert!(in_time.is_ok(), "{expected} does not come: {}", self.answer);
    }

    /// Reads until the agent works.
    pub(super) async fn until_running(&mut self) {
        let reading = async {
            while self.last != "running" {
                assert!(self.step().await, "it does not run: {}", self.last);
            }
        };
        timeout(PATIENCE, reading).await.expect("it runs in time");
    }

    /// Reads until the stream breaks or ends.
    pub(super) async fn until_break(&mut self) {
        let reading = async { while self.step().await {} };
        timeout(PATIENCE, reading).await.expect("it breaks in time");
    }

    /// Reads the whole rest; checks that it is the answer, and that it ends as the protocol says.
    pub(super) async fn finish(&mut self) {
        self.until_break().await;
        assert!(self.has_ended, "the stream broke: {}", self.answer);
        assert_eq!((self.answer.as_str(), self.last.as_str()), (self.expected, "finish"));
    }

    /// Reads a piece; returns false at a break or the end.
    async fn step(&mut self) -> bool {
        let Ok(Some((piece, _))) = self.stream.next().await else { return false };
        self.unread += std::str::from_utf8(&piece).unwrap();
        while let Some((line, rest)) = self.unread.split_once('\n') {
            let (line, rest) = (line.to_owned(), rest.to_owned());
            self.unread = rest;
            match line.strip_prefix("data: ") {
                Some("[DONE]") => self.has_ended = true,
                Some(chunk) => self.take(&serde_json::from_str(chunk).unwrap()),
                None => {}
            }
        }
        true
    }

    fn take(&mut self, chunk: &Value) {
        assert!(!self.has_ended, "a chunk after the end: {chunk}");
        chunk["data"]["phase"].as_str().or(chunk["type"].as_str()).unwrap().clone_into(&mut self.last);
        self.answer += &written_chunk(chunk);
        let is_lost = !self.expected.starts_with(&self.answer);
        assert!(!is_lost, "lost or repeated: {} is not a beginning of {}", self.answer, self.expected);
    }
}

fn written_chunk(chunk: &Value) -> String {
    match chunk["type"].as_str().unwrap() {
        "text-start" => "[".to_owned(),
        "text-delta" => chunk["delta"].as_str().unwrap().to_owned(),
        "text-end" => "]".to_owned(),
        "tool-input-available" => call(chunk),
        "tool-output-available" => output(chunk),
        _ => String::new(),
    }
}

/// Writes the parts of a message as a reader writes their chunks.
pub(super) fn written(parts: &Value) -> String {
    let part = |part: &Value| match part["type"].as_str().unwrap() {
        "text" => format!("[{}]", part["text"].as_str().unwrap()),
        _ => call(part) + &output(part),
    };
    parts.as_array().unwrap().iter().map(part).collect()
}

fn call(of: &Value) -> String {
    format!("<{} {} {}", of["toolCallId"], of["toolName"], of["input"])
}

fn output(of: &Value) -> String {
    format!(": {}>", of["output"])
}
