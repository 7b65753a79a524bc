//! http exchanges messages with a server over streamable HTTP: each message is its own request.
//!
//! No redirect is followed, no stream is kept open, and a credential is sent to the address of the settings alone. A message
//! that has the credential in it is not read.

mod address;
mod bearer;
mod echo;
mod events;

use std::{
    fmt,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT},
};
use platform_core::{connection::ConnectionId, json::RawBuf};
use platform_outbound::{AGENT, Dialer, Error, OpenAnswer};
use platform_runtime::{report, settings::ServiceUrl, sync::Mutex};
use serde_json::{Value, json};

pub(crate) use self::bearer::Bearer;
use self::{address::open, events::EventReader};
use crate::{error::ServerError, frame::RpcFrame, stdio::answer_to_server, text::quote};

/// Header with the session that the server gave.
const SESSION: &str = "mcp-session-id";
/// Header with the version that both speak.
const VERSION: &str = "mcp-protocol-version";
/// Longest id of a session.
const MAX_SESSION: usize = 512;
/// Forms of answers that are read.
const ACCEPTED: &str = "application/json, text/event-stream";
/// Most messages of an answer that were not asked for.
const MAX_UNASKED: usize = 1000;
/// Most bytes of all messages of an answer besides the longest one.
const MAX_SURPLUS: usize = 8 << 20;
/// Notification after which the list of tools is read again.
const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Link to a server.
pub(crate) struct HttpLink {
    url: ServiceUrl,
    dialer: Dialer,
    bearer: Option<Bearer>,
    /// Headers that the server and its version gave.
    session: Mutex<HeaderMap>,
    next_id: AtomicU64,
    max_message: usize,
    is_stale: AtomicBool,
    /// Set once the server knows the session no more.
    is_over: AtomicBool,
}

impl fmt::Debug for HttpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLink").field("url", &self.url).finish_non_exhaustive()
    }
}

impl HttpLink {
    /// Creates a link. Does no I/O but reading this system's certificates.
    pub(crate) fn new(
        url: ServiceUrl,
        bearer: Option<Bearer>,
        max_message: usize,
    ) -> Result<Self, ServerError> {
        Ok(Self {
            dialer: Dialer::to(&url.base).map_err(|_nothing| ServerError::Unreachable {
                problem: "this system trusts no certificate".to_owned(),
            })?,
            url,
            bearer,
            session: Mutex::new(HeaderMap::new()),
            next_id: AtomicU64::new(1),
            max_message,
            is_stale: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        })
    }

    /// Sends a request, and returns its result. Cancel safe: the connection ends with it.
    pub(crate) async fn request(&self, method: &str, params: &Value) -> Result<RawBuf, ServerError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let mut answered = self.post(message.to_string()).await?;
        let headers = answered.headers();
        if method == "initialize" {
            self.begin(headers)?;
        }
        let content_type = headers.get(CONTENT_TYPE);
        let media_type = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match media_type.as_str() {
            "application/json" => self.read_json(answered, id).await,
            "text/event-stream" => self.read_events(&mut answered, id).await,
            other => {
                self.check(content_type.map_or(&[], HeaderValue::as_bytes))?;
                Err(ServerError::protocol(format!("an answer is of the media type `{}`", quote(other))))
            }
        }
    }

    /// Sends a notification.
    pub(crate) async fn notify(&self, method: &str) -> Result<(), ServerError> {
        self.post(json!({ "jsonrpc": "2.0", "method": method }).to_string()).await.map(drop)
    }

    /// Remembers the version that both speak.
    pub(crate) fn set_version(&self, version: &'static str) {
        self.session.lock().insert(VERSION, HeaderValue::from_static(version));
    }

    /// Returns the connection with the credential of the last request, if it had one.
    pub(crate) fn connection(&self) -> Option<ConnectionId> {
        self.bearer.as_ref()?.connection()
    }

    /// Returns whether the server knows the session no more.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Returns whether the list of tools has changed since the last time.
    pub(crate) fn take_stale(&self) -> bool {
        self.is_stale.swap(false, Ordering::Relaxed)
    }

    /// Ends the session at the server, if it gave one.
    pub(crate) async fn close(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        let has_session = self.session.lock().contains_key(SESSION);
        if has_session && let Err(error) = self.send(Method::DELETE, String::new()).await {
            tracing::debug!(error = report::chain(&error), "session at a tool server not ended");
        }
    }

    fn begin(&self, headers: &HeaderMap) -> Result<(), ServerError> {
        if let Some(session) = headers.get(SESSION) {
            let is_plain =
                session.len() <= MAX_SESSION && session.as_bytes().iter().all(u8::is_ascii_graphic);
            if !is_plain {
                return Err(ServerError::protocol("its session has no plain id"));
            }
            self.session.lock().insert(SESSION, session.clone());
        }
        Ok(())
    }

    /// Sends a message. Returns the answer if it is a success.
    ///
    /// # Errors
    /// [`ServerError::NotSent`] if the server does not know the session: then it has read no more of the message (MCP,
    /// Transports, Session Management).
    async fn post(&self, message: String) -> Result<OpenAnswer, ServerError> {
        let answered = self.send(Method::POST, message).await?;
        let status = answered.status();
        if status.is_redirection() {
            return Err(ServerError::Redirected { status: status.as_u16() });
        }
        if status == StatusCode::NOT_FOUND && self.session.lock().contains_key(SESSION) {
            self.is_over.store(true, Ordering::Relaxed);
            return Err(ServerError::NotSent);
        }
        if !status.is_success() {
            return Err(ServerError::Status { status: status.as_u16() });
        }
        Ok(answered)
    }

    /// Answers a request of the server. One that does not take the answer may give its own all the same, and may have
    /// acted before it asked: its failure says nothing about the call that it works on.
    async fn answer(&self, id: &RawBuf, method: &str) {
        if let Err(error) = self.post(answer_to_server(id, method)).await {
            tracing::debug!(
                error = report::chain(&error),
                "tool server did not take the answer to its request"
            );
        }
    }

    /// Checks that what the server has sent has no credential in it.
    fn check(&self, received: &[u8]) -> Result<(), ServerError> {
        self.bearer.as_ref().map_or(Ok(()), |bearer| bearer.check(received))
    }

    async fn send(&self, method: Method, body: String) -> Result<OpenAnswer, ServerError> {
        let request = self.with_headers(method, body).await?;
        let stream = open(&self.dialer, &self.url.base).await?;
        platform_outbound::send(stream, request).await.map_err(|error| lost(&error))
    }

    async fn with_headers(&self, method: Method, body: String) -> Result<Request<Bytes>, ServerError> {
        let path = if self.url.path.is_empty() { "/" } else { &self.url.path };
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, self.url.authority())
            .header(USER_AGENT, AGENT)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, ACCEPTED)
            .body(Bytes::from(body))
            .map_err(|error| ServerError::Unreachable { problem: error.to_string() })?;
        request.headers_mut().extend(self.session.lock().clone());
        if let Some(bearer) = &self.bearer {
            request.headers_mut().insert(AUTHORIZATION, bearer.header().await?);
        }
        Ok(request)
    }

    /// Reads an answer that is one message.
    async fn read_json(&self, answered: OpenAnswer, id: u64) -> Result<RawBuf, ServerError> {
        let message = answered.read(self.max_message).await.map_err(|error| match error {
            Error::TooLong { max } => ServerError::TooLarge { limit: max },
            error => lost(&error),
        })?;
        let message = message.into_body();
        self.check(&message)?;
        match RpcFrame::read(&message)? {
            RpcFrame::Answer { id: found, result } if found == id => result,
            _ => Err(ServerError::protocol("an answer is none to its request")),
        }
    }

    /// Reads a stream of messages up to the answer.
    async fn read_events(&self, answered: &mut OpenAnswer, id: u64) -> Result<RawBuf, ServerError> {
        let mut events = EventReader::new(self.max_message);
        let mut messages = 0;
        let mut bytes = 0_usize;
        while let Some(mut chunk) = answered.next().await.map_err(|error| lost(&error))? {
            bytes = bytes.saturating_add(chunk.len());
            if bytes > self.max_message + MAX_SURPLUS {
                return Err(ServerError::TooLarge { limit: self.max_message + MAX_SURPLUS });
            }
            while let Some(data) = events.take(&mut chunk)? {
                self.check(&data)?;
                match RpcFrame::read(&data)? {
                    RpcFrame::Answer { id: found, result } if found == id => return result,
                    RpcFrame::Answer { .. } => {
                        return Err(ServerError::protocol("it answers a request that was not made"));
                    }
                    RpcFrame::Request { id, method } => self.answer(&id, &method).await,
                    RpcFrame::Notification { method } if method == LIST_CHANGED => {
                        self.is_stale.store(true, Ordering::Relaxed);
                    }
                    RpcFrame::Notification { .. } => {}
                }
                messages += 1;
                if messages > MAX_UNASKED {
                    return Err(ServerError::Flood { limit: "1000 messages in an answer" });
                }
            }
            tokio::task::yield_now().await;
        }
        Err(ServerError::protocol("its stream ended without the answer"))
    }
}

fn lost(error: &dyn std::error::Error) -> ServerError {
    ServerError::Protocol { problem: quote(&error.to_string()) }
}
