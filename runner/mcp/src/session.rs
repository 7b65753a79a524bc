//! session speaks the protocol over a link: it begins, lists tools and calls them. Each wait has an end.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use platform_core::{connection::ConnectionId, json::RawBuf, limit::Millis};
use platform_runtime::settings::ToolServer;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{sync::Mutex, time::timeout};

use crate::{
    definition::{Listing, ToolPage},
    error::ServerError,
    http::HttpLink,
    result::ServerResult,
    stdio::StdioLink,
    text::quote,
};

/// Versions of the protocol, the one that is asked for first.
const VERSIONS: [&str; 4] = ["2025-06-18", "2025-11-25", "2025-03-26", "2024-11-05"];
/// Longest wait for an answer that is not a result of a tool.
const CONTROL_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest wait for a sign of life.
const PING_TIMEOUT: Duration = Duration::from_secs(5);
/// Most pages of a list of tools.
const MAX_PAGES: usize = 32;
/// Longest place in a list of tools.
const MAX_CURSOR: usize = 1024;

/// Way to a server.
#[derive(Debug)]
pub(crate) enum Link {
    Stdio(StdioLink),
    Http(Box<HttpLink>),
}

/// Session with a server.
#[derive(Debug)]
pub struct ServerSession {
    link: Link,
    /// Names of the tools that may be used.
    wanted: Vec<String>,
    timeout: Millis,
    listing: Mutex<Option<Listing>>,
    /// Set after a call without an answer of the server's own: it may hang, or have been replaced.
    is_suspect: AtomicBool,
}

#[derive(Deserialize)]
struct Initialized {
    #[serde(rename = "protocolVersion")]
    version: String,
}

impl Link {
    async fn request(&self, method: &str, params: &Value) -> Result<RawBuf, ServerError> {
        match self {
            Self::Stdio(link) => link.request(method, params).await,
            Self::Http(link) => link.request(method, params).await,
        }
    }

    /// Sends a request that is answered at once.
    async fn control(&self, method: &str, params: &Value) -> Result<RawBuf, ServerError> {
        match timeout(CONTROL_TIMEOUT, self.request(method, params)).await {
            Ok(answer) => answer,
            Err(_elapsed) => Err(ServerError::TimedOut { seconds: CONTROL_TIMEOUT.as_secs() }),
        }
    }

    async fn notify(&self, method: &str) -> Result<(), ServerError> {
        match self {
            Self::Stdio(link) => link.notify(method).await,
            Self::Http(link) => match timeout(CONTROL_TIMEOUT, link.notify(method)).await {
                Ok(sent) => sent,
                Err(_elapsed) => Err(ServerError::TimedOut { seconds: CONTROL_TIMEOUT.as_secs() }),
            },
        }
    }

    fn take_stale(&self) -> bool {
        match self {
            Self::Stdio(link) => link.take_stale(),
            Self::Http(link) => link.take_stale(),
        }
    }
}

impl ServerSession {
    /// Begins a session over `link`, and lists the tools.
    ///
    /// # Errors
    /// [`ServerError`].
    pub(crate) async fn open(link: Link, server: &ToolServer) -> Result<Self, ServerError> {
        // No capability: a server may ask for nothing.
        let client = json!({ "name": "sluicegate", "version": env!("CARGO_PKG_VERSION") });
        let params = json!({ "protocolVersion": VERSIONS[0], "capabilities": {}, "clientInfo": client });
        let answer = link.control("initialize", &params).await?;
        let Initialized { version } =
            answer.read().map_err(|_other| ServerError::protocol("it names no version of the protocol"))?;
        let Some(version) = VERSIONS.into_iter().find(|known| *known == version) else {
            return Err(ServerError::Version { found: quote(&version), known: VERSIONS.join(", ") });
        };
        if let Link::Http(link) = &link {
            link.set_version(version);
        }
        link.notify("notifications/initialized").await?;
        let wanted = server.tools.keys().cloned().collect();
        let session = Self {
            link,
            wanted,
            timeout: server.timeout,
            listing: Mutex::default(),
            is_suspect: AtomicBool::new(false),
        };
        *session.listing.lock().await = Some(session.list().await?);
        Ok(session)
    }

    /// Returns the tools of the settings that the server lists. They are listed anew if the server says that they changed.
    ///
    /// # Errors
    /// [`ServerError`]; [`ServerError::NotSent`] if the session is over, and another one may begin.
    pub async fn listing(&self) -> Result<Listing, ServerError> {
        let mut listing = self.listing.lock().await;
        if self.is_suspect.swap(false, Ordering::Relaxed) {
            self.check_answers().await?;
        }
        if self.link.take_stale() {
            // A list that fails now is asked for again by the next call: the one before is not used.
            *listing = None;
        }
        match &*listing {
            Some(listing) => Ok(listing.clone()),
            None => Ok(listing.insert(self.list().await?).clone()),
        }
    }

    /// Calls a tool. Cancel safe.
    ///
    /// # Errors
    /// [`ServerError`]; [`ServerError::may_have_run`] says whether the tool may have acted.
    pub async fn call(&self, tool: &str, args: &Value) -> Result<ServerResult, ServerError> {
        let params = json!({ "name": tool, "arguments": args });
        let timed_out = ServerError::TimedOut { seconds: self.timeout.0 / 1000 };
        let answered = timeout(self.timeout.duration(), self.link.request("tools/call", &params)).await;
        let answered = answered.unwrap_or(Err(timed_out));
        if matches!(answered, Err(ServerError::TimedOut { .. } | ServerError::Status { .. })) {
            self.is_suspect.store(true, Ordering::Relaxed);
        }
        ServerResult::read(&answered?)
    }

    /// Returns the connection with the credential that the server was sent last, if it was sent one. A session is of
    /// one account, and its calls all use the same connection, unless it is replaced meanwhile.
    #[must_use]
    pub fn connection(&self) -> Option<ConnectionId> {
        match &self.link {
            Link::Stdio(_) => None,
            Link::Http(link) => link.connection(),
        }
    }

    /// Ends the session if the server does not answer.
    async fn check_answers(&self) -> Result<(), ServerError> {
        let error = match timeout(PING_TIMEOUT, self.link.request("ping", &json!({}))).await {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(_refused)) => ServerError::NotSent,
            Err(_elapsed) => ServerError::TimedOut { seconds: PING_TIMEOUT.as_secs() },
        };
        self.close().await;
        Err(error)
    }

    /// Returns the reason why the session is over, if it is.
    pub(crate) fn ended(&self) -> Option<ServerError> {
        match &self.link {
            Link::Stdio(link) => link.ended(),
            Link::Http(link) => link.is_over().then_some(ServerError::Stopped),
        }
    }

    /// Ends the session. The end of a container is not waited for.
    pub(crate) async fn close(&self) {
        match &self.link {
            Link::Stdio(link) => link.stop(),
            Link::Http(link) => drop(timeout(CONTROL_TIMEOUT, link.close()).await),
        }
    }

    async fn list(&self) -> Result<Listing, ServerError> {
        let mut listing = Listing::default();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let answer = self.link.control("tools/list", &params).await?;
            let page: ToolPage<'_> = answer.read().map_err(|error| {
                ServerError::protocol(format!(
                    "its list of tools has another form: {}",
                    quote(&error.to_string())
                ))
            })?;
            listing.add(&page, |name| self.wanted.iter().any(|wanted| wanted == name))?;
            match page.next {
                None => return Ok(listing),
                Some(next) if next.len() > MAX_CURSOR => break,
                Some(next) => params = json!({ "cursor": next }),
            }
        }
        Err(ServerError::protocol(format!("its list of tools has more than {MAX_PAGES} pages")))
    }
}
