//! Pools connections to the upstream: one pool per data-plane thread, so that a call never waits for another thread.
//!
//! A connection is used for one call at a time and comes back only after an answer that was read to its end. It is not
//! used again once it has been idle for longer than the upstream may keep it. A call is never repeated after any of it
//! may have been sent (RFC 9110, 9.2.2). Threads share a [`Target`]: how the upstream is reached, and whether it is up.

mod circuit;
mod circuit_state;
mod coalescing_waker;
mod connect;
mod connection;
mod health;
mod io;
mod ledger_row;
mod model_info;
mod model_rates;
mod query;
mod resolve;
mod spend;
mod target;
#[cfg(test)]
mod tests;
mod tls;

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use http::{Request, Response};
use hyper::{body::Incoming, client::conn::TrySendError};
use platform_core::{record::Timeout, trace};
use platform_runtime::sync::Mutex;

use self::connect::ConnectError;
pub(crate) use self::{
    connection::{Connection, ReadError},
    model_info::{ModelInfoError, ModelPrices},
    query::QueryError,
    spend::{SpendError, SpendQuery},
    target::{Config, Scheme, Target},
};
use crate::pieces::Pieces;

/// Reason why no answer came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The upstream is down: nothing was tried.
    #[error("the upstream is down")]
    Down {
        /// Time after which a retry may be worth it.
        retry: Duration,
    },
    /// No connection could be opened: nothing was sent.
    #[error("cannot reach the upstream")]
    Unreachable(#[source] ConnectError),
    /// The connection broke before a byte of the answer came. Some of the request may have been sent.
    #[error("the upstream closed the connection before its answer")]
    Reset(#[source] hyper::Error),
    /// The connection broke, or was not understood, in the head of the answer.
    #[error("the upstream broke off in the head of its answer")]
    Broken(#[source] hyper::Error),
}

impl Error {
    /// Returns the timeout that passed, if one did, and its length.
    pub(crate) const fn timeout(&self) -> Option<(Timeout, Duration)> {
        match self {
            Self::Unreachable(failure) => failure.timeout(),
            Self::Down { .. } | Self::Reset(_) | Self::Broken(_) => None,
        }
    }
}

/// Pool of one thread.
#[derive(Debug)]
pub(crate) struct Upstream {
    target: Arc<Target>,
    /// Idle connections; the one that came back last is at the back.
    idle: Mutex<VecDeque<(Connection, Instant)>>,
}

impl Upstream {
    pub(crate) const fn new(target: Arc<Target>) -> Self {
        Self { target, idle: Mutex::new(VecDeque::new()) }
    }

    /// Returns the upstream that all threads share.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Checks whether a call is worth a try. It is not if the upstream is down, and no connection is left from before.
    ///
    /// # Errors
    /// [`Error::Down`], if it is not.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.target.circuit().retry_after() {
            Some(retry) if self.idle() == 0 => Err(Error::Down { retry }),
            _ => Ok(()),
        }
    }

    /// Sends `request` and waits for the head of its answer. Dropping the future cancels the call upstream. `sending`
    /// is called with each connection on which it is tried.
    pub(crate) async fn send(
        &self,
        mut request: Request<Pieces>,
        sending: impl Fn(trace::Connection),
    ) -> Result<(Response<Incoming>, Connection), Error> {
        self.target.address(&mut request);
        while let Some(mut connection) = self.checkout() {
            sending(trace::Connection::Pooled);
            match connection.send(request).await {
                Ok(response) => return Ok((response, connection)),
                // The upstream had closed it before any of the request was written.
                Err(mut unsent) => match unsent.take_message() {
                    Some(message) => request = message,
                    None => return Err(broken(&connection, unsent.into_error())),
                },
            }
        }
        self.check()?;
        let connection = self.connect().await?;
        sending(trace::Connection::Fresh);
        send_on(connection, request).await
    }

    /// Sends `request` on its own connection, also where the circuit is down: for a check by an operator.
    pub(crate) async fn send_on_new_connection(
        &self,
        mut request: Request<Pieces>,
    ) -> Result<(Response<Incoming>, Connection), Error> {
        self.target.address(&mut request);
        send_on(self.connect().await?, request).await
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let stream = self.target.connect().await.map_err(Error::Unreachable)?;
        Connection::over(stream).await.map_err(Error::Reset)
    }

    /// Takes back a connection after its answer has been read to its end.
    pub(crate) fn give_back(&self, connection: Connection) {
        let mut idle = self.idle.lock();
        self.close_stale(&mut idle);
        if idle.len() >= self.target.max_idle {
            idle.pop_front();
        }
        idle.push_back((connection, Instant::now()));
    }

    /// Returns the number of connections that wait for a call.
    pub(crate) fn idle(&self) -> usize {
        self.idle.lock().len()
    }

    /// Closes connections that were idle for too long, and probes an upstream that is down. Runs for ever; no other
    /// code probes.
    pub(crate) async fn maintain(&self) {
        let close = async {
            loop {
                tokio::time::sleep(self.target.idle_timeout).await;
                self.close_stale(&mut self.idle.lock());
            }
        };
        tokio::join!(close, self.target.watch());
    }

    fn close_stale(&self, idle: &mut VecDeque<(Connection, Instant)>) {
        while idle.front().is_some_and(|(_, since)| since.elapsed() >= self.target.idle_timeout) {
            idle.pop_front();
        }
    }

    fn checkout(&self) -> Option<Connection> {
        loop {
            let (mut connection, since) = self.idle.lock().pop_back()?;
            // A connection that is not ready at once still writes a request that was answered early: it would make this
            // call wait.
            let is_ready = connection.is_ready().now_or_never() == Some(true);
            if is_ready && since.elapsed() < self.target.idle_timeout {
                return Some(connection);
            }
        }
    }
}

async fn send_on(
    mut connection: Connection,
    request: Request<Pieces>,
) -> Result<(Response<Incoming>, Connection), Error> {
    match connection.send(request).await.map_err(TrySendError::into_error) {
        Ok(response) => Ok((response, connection)),
        Err(error) => Err(broken(&connection, error)),
    }
}

/// Returns the error for a `connection` that brought no whole head.
fn broken(connection: &Connection, error: hyper::Error) -> Error {
    if connection.has_received() { Error::Broken(error) } else { Error::Reset(error) }
}
