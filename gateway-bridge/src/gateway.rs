//! Provides the handle of a connection to a gateway.

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use platform_core::{
    id::RunId,
    json::{self, Bounds, RawBuf},
};
use platform_runtime::task::spawn;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    connection_phase::ConnectionPhase,
    connection_task::ConnectionTask,
    counts::ConnectionCounts,
    error::Error,
    handle::{Command, ConnectionHandle, Shared},
    hello::Hello,
    history::{Message, Waited},
    routes::Routes,
    running::Running,
    session::SessionKey,
    settings::Settings,
    subscription::{Decision, MAX_NOTICES, Subscription},
    turn::{Begun, Turn},
    turn_state::TurnState,
    turn_task::{self, TurnTask},
    wire::{
        Malformed,
        request::{Abort, History, Resolve, Wait},
        transcript,
    },
};

/// Most calls in the channel to the connection's task; further calls wait at the caller.
const MAX_COMMANDS: usize = 32;

/// Extra time for a gateway's answer beyond the requested wait.
const RESPONSE_GRACE: Duration = Duration::from_secs(5);

/// Connection to one gateway. A task opens it in the background, and opens it again when it breaks. Cheap to clone; the
/// connection is closed when the last handle and the last turn are gone.
#[derive(Debug, Clone)]
pub struct Gateway {
    connection: ConnectionHandle,
}

impl Gateway {
    /// Begins to connect in the background.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    #[must_use]
    pub fn open(settings: Settings) -> Self {
        let (commands, requests) = mpsc::channel(MAX_COMMANDS);
        let (announce, phase) = watch::channel(ConnectionPhase::Down(None));
        let (notices, _) = broadcast::channel(MAX_NOTICES);
        let shared = Arc::new(Shared {
            routes: Routes::default(),
            cells: Arc::default(),
            limits: settings.limits,
            provider: settings.provider.clone(),
            ids: AtomicU64::new(1),
        });
        let task = ConnectionTask::new(settings, shared.clone(), requests, announce, notices.clone());
        drop(spawn("gateway connection", task.run()));
        Self { connection: ConnectionHandle { commands, phase, notices, shared } }
    }

    /// Waits for a connection and returns the gateway's hello. That may take for ever: a caller that cannot wait sets a
    /// timeout and reads [`Gateway::trouble`]. Cancel safe.
    ///
    /// # Errors
    /// The final failure, after which no further attempt is made.
    pub async fn ready(&self) -> Result<Hello, Error> {
        self.connection.connected().await.map(|up| up.hello.clone())
    }

    /// Returns why the connection is down at the moment; `None` if it is up, or if the first is being opened.
    #[must_use]
    pub fn trouble(&self) -> Option<Error> {
        self.connection.trouble()
    }

    /// Runs one turn. Waits for a connection, then returns at once: everything later is an event or the ending of
    /// [`Running`]. Cancel safe: a turn with a dropped future is not run.
    ///
    /// # Errors
    /// Any error before something is sent: [`Error::InvalidTurn`], [`Error::Unsupported`], [`Error::TooLarge`],
    /// [`Error::Busy`], [`Error::TooMany`], and the final failures of the connection.
    pub async fn run(&self, turn: Turn) -> Result<Running, Error> {
        self.begin(turn, None).await
    }

    /// Continues a turn that another process has begun, under the same id. A turn that the gateway has accepted is not
    /// begun again, and its model calls keep the attribution it was begun with. If it is unknown whether the gateway
    /// accepted the turn, the turn is sent again, but only to the same start of the gateway. That start does not run it
    /// twice. Any other start is only asked what it knows of the turn. Text that was reported before is not repeated;
    /// the text at the end is whole. Waits for a connection. Cancel safe.
    ///
    /// # Errors
    /// As [`Gateway::run`].
    pub async fn resume(&self, turn: Turn, begun: Begun) -> Result<Running, Error> {
        self.begin(turn, Some(begun)).await
    }

    async fn begin(&self, turn: Turn, begun: Option<Begun>) -> Result<Running, Error> {
        let up = self.connection.connected().await?;
        let start = turn_task::prepare(&self.connection, &turn, &up.hello)?;
        let shared = &self.connection.shared;
        let unread = shared.limits.unread.as_usize();
        let state =
            Arc::new(TurnState::new(turn.run_id.clone(), turn.session.clone(), unread, shared.cells.clone()));
        shared.routes.register(&state)?;
        let cancel = CancellationToken::new();
        let detached = CancellationToken::new();
        let task = TurnTask::new(self.connection.clone(), turn, state.clone(), start, up);
        let task = match begun {
            Some(begun) => task.continuing(&begun),
            None => task,
        };
        let when_cancelled = cancel.clone();
        let when_detached = detached.clone();
        drop(spawn("gateway turn", async move {
            tokio::select! {
                () = task.run(when_cancelled) => {}
                () = when_detached.cancelled() => {}
            }
        }));
        Ok(Running::new(state, cancel, detached))
    }

    /// Calls any method of the gateway. Waits for a connection. If the future is dropped, the call may be executed or
    /// not.
    ///
    /// # Errors
    /// The gateway's refusal, a broken connection, no answer in time, and any error before something is sent.
    pub async fn call(&self, method: &str, params: Value) -> Result<RawBuf, Error> {
        let payload = self.call_raw(method, &params).await?;
        json::from_str(payload.get(), Bounds::of(usize::MAX)).map_err(|_error| Error::Malformed {
            method: method.to_owned(),
            reason: "it is nested too deeply, or has too many values",
        })
    }

    async fn call_raw(&self, method: &str, params: &impl Serialize) -> Result<RawBuf, Error> {
        self.connection.call(method, params, self.connection.shared.limits.call).await
    }

    /// Reads the messages of a conversation, oldest first; the last 200 of them.
    ///
    /// # Errors
    /// As [`Gateway::call`].
    pub async fn history(&self, session: &SessionKey) -> Result<Vec<Message>, Error> {
        let payload = self.call_raw("chat.history", &History::new(session)).await?;
        let entries = transcript::read(&payload).map_err(malformed("chat.history"))?;
        Ok(entries.into_iter().map(|entry| entry.message).collect())
    }

    /// Waits for the end of a turn that this handle did not run, or not on this connection.
    ///
    /// # Errors
    /// As [`Gateway::call`].
    pub async fn wait(&self, run_id: &RunId, time: Duration) -> Result<Waited, Error> {
        let limit = time.saturating_add(RESPONSE_GRACE);
        let payload = self.connection.call("agent.wait", &Wait::new(run_id, time), limit).await?;
        transcript::waited(&payload).map_err(malformed("agent.wait"))
    }

    /// Aborts a turn, whichever process runs it. A turn that has ended, or that the gateway does not know, is not an error.
    ///
    /// # Errors
    /// As [`Gateway::call`].
    pub async fn abort(&self, session: &SessionKey, run_id: &RunId) -> Result<(), Error> {
        self.call_raw("chat.abort", &Abort::new(session, run_id)).await.map(drop)
    }

    /// Subscribes to events from now on that belong to no run: requests for approval, the gateway's shutdown, the
    /// presence of clients. Left out are events of runs, events with conversations in them, and events larger than 256
    /// KiB.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        Subscription::new(self.connection.notices.subscribe(), self.connection.phase.clone())
    }

    /// Answers a request for approval.
    ///
    /// # Errors
    /// As [`Gateway::call`].
    pub async fn resolve_approval(&self, id: &str, decision: Decision) -> Result<(), Error> {
        let params = Resolve { id, decision: decision.as_str() };
        self.call_raw("exec.approval.resolve", &params).await.map(drop)
    }

    /// Returns the counters of the connection.
    #[must_use]
    pub fn counts(&self) -> ConnectionCounts {
        self.connection.shared.cells.read()
    }

    /// Closes the connection for every handle, and waits until it is closed. Turns that are running end as
    /// [`crate::TurnFailure::Lost`]; cancel them first.
    pub async fn close(mut self) {
        // A connection that has failed has no task any more, and is closed.
        drop(self.connection.commands.send(Command::Close).await);
        drop(self.connection.phase.wait_for(ConnectionPhase::is_failed).await);
    }
}

fn malformed(method: &'static str) -> impl FnOnce(Malformed) -> Error {
    move |_malformed| Error::Malformed {
        method: method.to_owned(),
        reason: "fields are missing or of another type",
    }
}
