//! The handle of a connection.

use std::{sync::Arc, time::Duration};

use serde_json::Value;

use crate::{
    counts::{Cells, Counts},
    error::Error,
    hello::Hello,
    history::{Message, Waited},
    running::Running,
    session::SessionKey,
    settings::Settings,
    subscription::{Decision, Subscription},
    turn::{Turn, TurnId},
};

/// A connection to one gateway: made in the background, and made again when it breaks. Cheap to clone; the
/// connection is closed when the last handle and the last [`Running`] are gone.
#[derive(Debug, Clone)]
pub struct Gateway {
    cells: Arc<Cells>,
}

impl Gateway {
    /// Begins to connect.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn open(_settings: Settings) -> Self {
        Self { cells: Arc::default() }
    }

    /// The gateway's hello, as soon as there is a connection. Waits as long as that takes: whoever has no time limits it
    /// and asks [`Gateway::trouble`]. Cancel safe.
    ///
    /// # Errors
    /// The final failure, after which nothing is tried any more.
    pub async fn ready(&self) -> Result<Hello, Error> {
        Err(Error::Closed)
    }

    /// Why there is no connection at the moment; none if there is one, or if it is being made for the first time.
    #[must_use]
    pub fn trouble(&self) -> Option<Error> {
        None
    }

    /// Runs one turn. Waits for a connection, then returns at once: everything that happens from then on is an event or
    /// the ending of [`Running`]. Cancel safe: a turn whose future was dropped is not run, or aborted.
    ///
    /// # Errors
    /// What is wrong before anything is sent: [`Error::InvalidTurn`], [`Error::Unsupported`], [`Error::TooLarge`],
    /// [`Error::Busy`], [`Error::TooMany`], and the final failures of the connection.
    pub async fn run(&self, _turn: Turn) -> Result<Running, Error> {
        Err(Error::Closed)
    }

    /// Calls any method of the gateway. Waits for a connection. A call whose future was dropped may be done or not.
    ///
    /// # Errors
    /// The gateway's refusal, a broken connection, no answer in time, and what is wrong before anything is sent.
    pub async fn call(&self, _method: &str, _params: Value) -> Result<Value, Error> {
        Err(Error::Closed)
    }

    /// What was said in a conversation, oldest first; newer gateways cut it to the last messages.
    ///
    /// # Errors
    /// As [`Gateway::call`].
    pub async fn history(&self, _session: &SessionKey) -> Result<Vec<Message>, Error> {
        Err(Error::Closed)
    }

    /// Waits for the end of a turn that this handle did not run, or not on this connection.
    ///
    /// # Errors
    /// As [`Gateway::call`].
    pub async fn wait(&self, _turn: &TurnId, _patience: Duration) -> Result<Waited, Error> {
        Err(Error::Closed)
    }

    /// Aborts a turn, whoever runs it. A turn that is over, or that the gateway does not know, is no error.
    ///
    /// # Errors
    /// As [`Gateway::call`].
    pub async fn abort(&self, _session: &SessionKey, _turn: &TurnId) -> Result<(), Error> {
        Err(Error::Closed)
    }

    /// Events from now on that are no run's.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription {}
    }

    /// Answers a request for approval.
    ///
    /// # Errors
    /// As [`Gateway::call`].
    pub async fn resolve_approval(&self, _id: &str, _decision: Decision) -> Result<(), Error> {
        Err(Error::Closed)
    }

    /// What the connection has seen.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.cells.read()
    }

    /// Closes the connection for every handle. Turns that are running end as [`crate::Failure::Lost`]; cancel them first.
    pub async fn close(self) {}
}
