//! Connections to the upstream: one pool per data-plane thread, so that a call never waits for another thread.
//!
//! A connection is used for one call at a time and comes back only after an answer that was read to its end.
//! It is not used again once it has been idle for longer than the upstream may keep it, and a call is never
//! repeated after any of it may have been sent (RFC 9110, 9.2.2). Name resolution happens for each new
//! connection.

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderValue, Request, Response, header};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use platform_runtime::task;
use tokio::{net::TcpStream, time::timeout};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// No connection could be made: nothing was sent.
    #[error("cannot connect to {authority}")]
    Unreachable {
        /// Who was tried.
        authority: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The connection broke after some of the request may have been sent.
    #[error("the upstream broke off before its answer")]
    Broken(#[source] hyper::Error),
}

/// What the pool is made with.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// `host:port`.
    pub(crate) authority: String,
    /// The same, for the `host` header.
    pub(crate) host: HeaderValue,
    /// Longest wait for a connection.
    pub(crate) connect: Duration,
    /// How long an idle connection is used again.
    pub(crate) idle: Duration,
}

/// The pool.
#[derive(Debug)]
pub(crate) struct Upstream {
    config: Config,
    /// The one that came back last is at the back.
    idle: Mutex<VecDeque<(SendRequest<Full<Bytes>>, Instant)>>,
}

/// A connection that carries an answer. Dropping it closes the connection, which cancels the call upstream.
#[derive(Debug)]
pub(crate) struct Connection(SendRequest<Full<Bytes>>);

impl Upstream {
    pub(crate) const fn new(config: Config) -> Self {
        Self { config, idle: Mutex::new(VecDeque::new()) }
    }

    /// Sends `request` and waits for the head of its answer. Dropping the future cancels the call upstream.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), Error> {
        request.headers_mut().insert(header::HOST, self.config.host.clone());
        while let Some(mut sender) = self.checkout().await {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, Connection(sender))),
                // The upstream had closed it before any of the request was written.
                Err(mut unsent) => match unsent.take_message() {
                    Some(message) => request = message,
                    None => return Err(Error::Broken(unsent.into_error())),
                },
            }
        }
        let mut sender = self.connect().await?;
        let response = sender.send_request(request).await.map_err(Error::Broken)?;
        Ok((response, Connection(sender)))
    }

    /// Takes back a connection whose answer has been read to its end.
    pub(crate) fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        while idle.front().is_some_and(|(_, since)| since.elapsed() >= self.config.idle) {
            idle.pop_front();
        }
        idle.push_back((connection.0, Instant::now()));
    }

    async fn checkout(&self) -> Option<SendRequest<Full<Bytes>>> {
        loop {
            let (mut sender, since) = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop_back()?;
            if since.elapsed() < self.config.idle && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    async fn connect(&self) -> Result<SendRequest<Full<Bytes>>, Error> {
        let unreachable = |source| Error::Unreachable { authority: self.config.authority.clone(), source };
        let stream = timeout(self.config.connect, TcpStream::connect(&self.config.authority))
            .await
            .unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()))
            .map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(Error::Broken)?;
        task::spawn("upstream connection", async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "upstream connection ended");
            }
        });
        Ok(sender)
    }
}
