//! Connections to the upstream: one pool per data-plane thread, so that a call never waits for another thread.
//!
//! A connection is used for one call at a time and comes back only after an answer that was read to its end.
//! It is not used again once it has been idle for longer than the upstream may keep it, and a call is never
//! repeated after any of it may have been sent (RFC 9110, 9.2.2). Name resolution happens for each new
//! connection.

mod connection;
mod quiet;

use std::{
    collections::VecDeque,
    io,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use http::{HeaderValue, Request, Response, header};
use hyper::{body::Incoming, client::conn::TrySendError};
use platform_core::trace;
use tokio::{net::TcpStream, time::timeout};

pub(crate) use self::connection::{Connection, Unread};
use crate::pieces::Pieces;

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
    idle: Mutex<VecDeque<(Connection, Instant)>>,
}

impl Upstream {
    pub(crate) const fn new(config: Config) -> Self {
        Self { config, idle: Mutex::new(VecDeque::new()) }
    }

    /// Sends `request` and waits for the head of its answer. Dropping the future cancels the call upstream. `sending` is
    /// told of each connection on which it is tried.
    pub(crate) async fn send(
        &self,
        mut request: Request<Pieces>,
        sending: impl Fn(trace::Connection),
    ) -> Result<(Response<Incoming>, Connection), Error> {
        request.headers_mut().insert(header::HOST, self.config.host.clone());
        while let Some(mut connection) = self.checkout() {
            sending(trace::Connection::Pooled);
            match connection.send(request).await {
                Ok(response) => return Ok((response, connection)),
                // The upstream had closed it before any of the request was written.
                Err(mut unsent) => match unsent.take_message() {
                    Some(message) => request = message,
                    None => return Err(Error::Broken(unsent.into_error())),
                },
            }
        }
        let mut connection = self.connect().await?;
        sending(trace::Connection::Fresh);
        let response =
            connection.send(request).await.map_err(TrySendError::into_error).map_err(Error::Broken)?;
        Ok((response, connection))
    }

    /// Takes back a connection whose answer has been read to its end.
    pub(crate) fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        self.close_stale(&mut idle);
        idle.push_back((connection, Instant::now()));
    }

    /// How many connections wait for a call.
    pub(crate) fn idle(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Closes connections that were idle for too long, again and again: nobody else watches them.
    pub(crate) async fn tidy(&self) {
        loop {
            tokio::time::sleep(self.config.idle).await;
            self.close_stale(&mut self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn close_stale(&self, idle: &mut VecDeque<(Connection, Instant)>) {
        while idle.front().is_some_and(|(_, since)| since.elapsed() >= self.config.idle) {
            idle.pop_front();
        }
    }

    fn checkout(&self) -> Option<Connection> {
        loop {
            let (mut connection, since) =
                self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop_back()?;
            // One that is not ready at once still writes a request that was answered early: it would make this call wait.
            let is_ready = connection.is_ready().now_or_never() == Some(true);
            if is_ready && since.elapsed() < self.config.idle {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let unreachable = |source| Error::Unreachable { authority: self.config.authority.clone(), source };
        let stream = timeout(self.config.connect, TcpStream::connect(&self.config.authority))
            .await
            .unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()))
            .map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        Connection::over(stream).await.map_err(Error::Broken)
    }
}
