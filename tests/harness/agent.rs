//! Speaks through a run's socket: HTTP as an SDK sends it, or raw bytes.

use std::{
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::Pin,
    task::{Context, Poll},
    time::Instant,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpStream, UnixStream},
};

use crate::canary::Flow;

/// A client of one address. Every request has its own connection.
#[derive(Debug, Clone)]
pub struct Agent {
    address: Address,
    headers: HeaderMap,
    answers: Answers,
}

/// Canary search of an agent's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answers {
    /// Answers are searched for canaries.
    Searched,
    /// Answers may contain secrets and are not searched: a control.
    Unsearched,
}

#[derive(Debug, Clone)]
enum Address {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// A connection. Dropping it closes it.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A connection that searches its incoming bytes for canaries.
struct Searched {
    wire: Box<dyn Wire>,
    flow: Flow,
}

impl AsyncRead for Searched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.wire).poll_read(context, buffer);
        if polled.is_ready() {
            self.flow.piece(&buffer.filled()[before..]);
        }
        polled
    }
}

impl AsyncWrite for Searched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }
}

/// A whole answer.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Bytes,
}

/// An answer with its body still to come. Dropping it closes the connection.
#[derive(Debug)]
pub struct Stream {
    /// HTTP status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    body: Incoming,
}

impl Agent {
    /// Creates a client of the unix socket at `socket`.
    #[must_use]
    pub fn on(socket: &Path) -> Self {
        Self {
            address: Address::Unix(socket.to_owned()),
            headers: HeaderMap::new(),
            answers: Answers::Searched,
        }
    }

    /// Creates a client of a TCP address: of a bridge in front of a socket, or of an upstream without Sluicegate. Its
    /// answers are not searched; see [`Agent::searched`].
    #[must_use]
    pub fn over_tcp(address: SocketAddr) -> Self {
        Self { address: Address::Tcp(address), headers: HeaderMap::new(), answers: Answers::Unsearched }
    }

    /// Searches its answers for canaries: it speaks to Sluicegate.
    #[must_use]
    pub const fn searched(mut self) -> Self {
        self.answers = Answers::Searched;
        self
    }

    /// Leaves its answers unsearched: it speaks to another proxy.
    #[must_use]
    pub const fn unsearched(mut self) -> Self {
        self.answers = Answers::Unsearched;
        self
    }

    /// Adds the header `name: value` to every request.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .append(HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_str(value).unwrap());
        self
    }

    /// Returns whether `name` is sent with every request.
    #[must_use]
    pub fn has_header(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }

    /// Calls `model` through chat completions, not streamed.
    pub async fn chat(&self, model: &str) -> Answer {
        self.post("/v1/chat/completions", &chat_body(model, Answering::Whole)).await
    }

    /// Calls `model` through chat completions, streamed and with usage.
    pub async fn stream(&self, model: &str) -> Stream {
        self.send(
            Method::POST,
            "/v1/chat/completions",
            chat_body(model, Answering::Streamed).to_string().into(),
        )
        .await
        .unwrap()
    }

    /// Posts `body` and reads the whole answer.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.request(Method::POST, path, body.to_string().into()).await.unwrap()
    }

    /// Sends a GET request for `path` and reads the whole answer.
    pub async fn get(&self, path: &str) -> Answer {
        self.request(Method::GET, path, Bytes::new()).await.unwrap()
    }

    /// Sends any request and reads the whole answer.
    ///
    /// # Errors
    /// If the connection fails or the answer breaks off.
    pub async fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Answer, BoxError> {
        self.send(method, path, body).await?.whole().await
    }

    /// Sends any request and reads the answer's head.
    ///
    /// # Errors
    /// If the connection fails.
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<Stream, BoxError> {
        let (mut sender, connection) = http1::handshake(TokioIo::new(self.connect().await?)).await?;
        spawn(async move { drop(connection.await) });
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost:8080");
        if !self.headers.contains_key("content-type") {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let answer: Response<Incoming> = sender.send_request(request.body(Full::new(body))?).await?;
        let (head, body) = answer.into_parts();
        Ok(Stream { status: head.status, headers: head.headers, body })
    }

    /// Opens a raw connection.
    ///
    /// # Errors
    /// If nothing listens at the address.
    pub async fn connect(&self) -> std::io::Result<Box<dyn Wire>> {
        let (wire, origin): (Box<dyn Wire>, _) = match &self.address {
            Address::Unix(socket) => {
                (Box::new(UnixStream::connect(socket).await?), format!("answer on {}", socket.display()))
            }
            Address::Tcp(address) => {
                (Box::new(TcpStream::connect(address).await?), format!("answer of {address}"))
            }
        };
        Ok(match self.answers {
            Answers::Searched => Box::new(Searched { wire, flow: Flow::of(origin) }),
            Answers::Unsearched => wire,
        })
    }
}

/// Any error between a client and its answer.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Form in which an answer is requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answering {
    /// A JSON document.
    Whole,
    /// Events, the last of them with usage.
    Streamed,
}

/// Returns the body of a chat request.
#[must_use]
pub fn chat_body(model: &str, answering: Answering) -> Value {
    body_for("/v1/chat/completions", model, answering)
}

/// Returns the body of a request in the form of the API at `path`.
#[must_use]
pub fn body_for(path: &str, model: &str, answering: Answering) -> Value {
    saying(path, model, answering, "Say hello.")
}

/// Returns the body of a request in the form of the API at `path`, with `text` as the user's message.
#[must_use]
pub fn saying(path: &str, model: &str, answering: Answering, text: &str) -> Value {
    let messages = json!([{ "role": "user", "content": text }]);
    let mut body = match path {
        "/v1/completions" => json!({ "model": model, "prompt": text }),
        "/v1/embeddings" | "/v1/responses" | "/v1/responses/input_tokens" | "/v1/responses/compact" => {
            json!({ "model": model, "input": text })
        }
        "/v1/messages" => json!({ "model": model, "max_tokens": 100, "messages": messages }),
        _ => json!({ "model": model, "messages": messages }),
    };
    if answering == Answering::Streamed && path != "/v1/embeddings" {
        body["stream"] = json!(true);
        if path.ends_with("/completions") {
            body["stream_options"] = json!({ "include_usage": true });
        }
    }
    body
}

impl Answer {
    /// Parses the body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// Returns the body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

impl Stream {
    /// Reads the next piece of the body and returns it with the time of its arrival; `None` at the end.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn next(&mut self) -> Result<Option<(Bytes, Instant)>, BoxError> {
        while let Some(frame) = self.body.frame().await {
            if let Ok(piece) = frame?.into_data() {
                return Ok(Some((piece, Instant::now())));
            }
        }
        Ok(None)
    }

    /// Reads the rest of the body and returns the whole answer.
    ///
    /// # Errors
    /// If the connection breaks before its end.
    pub async fn whole(mut self) -> Result<Answer, BoxError> {
        let mut body = Vec::new();
        while let Some((piece, _)) = self.next().await? {
            body.extend_from_slice(&piece);
        }
        Ok(Answer { status: self.status, headers: self.headers, body: body.into() })
    }

    /// Returns the text that arrived before the connection broke, and whether it broke.
    pub async fn until_break(mut self) -> (String, Result<(), BoxError>) {
        let mut body = Vec::new();
        let ended = loop {
            match self.next().await {
                Ok(Some((piece, _))) => body.extend_from_slice(&piece),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        (String::from_utf8_lossy(&body).into_owned(), ended)
    }
}

fn spawn(future: impl Future<Output = ()> + Send + 'static) {
    platform_runtime::task::spawn("test client", future);
}
