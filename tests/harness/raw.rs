//! Writes requests byte by byte: odd case, a repeated header, half a request. An HTTP library would correct these.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::agent::{Agent, Wire};

/// A request under construction.
#[derive(Debug, Clone)]
pub struct Raw {
    head: String,
    body: String,
}

impl Raw {
    /// Creates `POST path` with a JSON body.
    #[must_use]
    pub fn post(path: &str, body: &Value) -> Self {
        let raw = Self::request("POST", path).header("content-type", "application/json");
        let body = body.to_string();
        Self { body: body.clone(), ..raw.header("content-length", &body.len().to_string()) }
    }

    /// Creates a request without a body.
    #[must_use]
    pub fn request(method: &str, target: &str) -> Self {
        Self { head: format!("{method} {target} HTTP/1.1\r\nhost: localhost:8080\r\n"), body: String::new() }
    }

    /// Adds a header with unchanged spelling.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.head += &format!("{name}: {value}\r\n");
        self
    }

    /// Returns the request as bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        format!("{}\r\n{}", self.head, self.body).into()
    }

    /// Sends it to the address of `agent`, and returns the open connection.
    ///
    /// # Panics
    /// If the connection fails.
    pub async fn begin(&self, agent: &Agent) -> Box<dyn Wire> {
        let mut wire = agent.connect().await.unwrap();
        wire.write_all(&self.bytes()).await.unwrap();
        wire
    }

    /// Sends it to the address of `agent` as the only request of a connection, and returns the whole answer.
    ///
    /// # Panics
    /// If the connection fails.
    pub async fn ask(self, agent: &Agent) -> String {
        let mut wire = self.header("connection", "close").begin(agent).await;
        let mut answer = Vec::new();
        wire.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }
}

/// Reads until the received text contains `marker`, and returns that text.
///
/// # Panics
/// If the connection ends before.
pub async fn read_until(wire: &mut Box<dyn Wire>, marker: &str) -> String {
    let (mut received, mut piece) = (Vec::new(), vec![0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&received);
        if text.contains(marker) {
            return text.into_owned();
        }
        let length = wire.read(&mut piece).await.unwrap();
        assert_ne!(length, 0, "the connection ended before `{marker}`, after {text:?}");
        received.extend_from_slice(&piece[..length]);
    }
}
