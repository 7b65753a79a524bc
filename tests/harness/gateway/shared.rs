//! Holds the state that all connections and turns of a scripted gateway share.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::{
    model::{ModelCall, Provider},
    run::Run,
    script::{Abort, Dialect, Door, Step},
};

/// Frames kept for a client that does not read; a real gateway closes its connection, too.
pub(super) const BACKLOG: usize = 4096;

/// Time by which each restart shortens the reported uptime, so that no test waits for a clock.
const HOUR: Duration = Duration::from_secs(3600);
/// Reported uptime at the start.
const INITIAL_UPTIME: Duration = Duration::from_secs(240 * 3600);

/// Settings that a test may change while a gateway runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Effect of an abort.
    pub abort: Abort,
    /// If true, the gateway accepts `outboundHeaders`, as by a gateway with that extension.
    pub takes_headers: bool,
    /// If true, the plugin is loaded that adds headers to the calls of a session.
    pub has_plugin: bool,
    /// Interval between ticks; none are sent without it. The announced interval is [`Options::announced_tick`].
    pub tick: Option<Duration>,
    /// Interval between ticks that the hello announces.
    pub announced_tick: Duration,
    /// Version that it reports; by default the recorded one.
    pub version: Option<String>,
    /// Its providers, by name. The first is the default of turns.
    pub providers: BTreeMap<String, Provider>,
}

/// Provider, headers and history of a session.
#[derive(Debug, Clone, Default)]
pub(super) struct Session {
    pub(super) provider: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) history: Vec<(&'static str, String)>,
}

/// A received frame.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Number of the connection, from 1.
    pub connection: u64,
    /// The frame; a text that is not JSON is a string.
    pub frame: Value,
}

/// Instruction to a connection.
#[derive(Debug, Clone)]
pub(super) enum Command {
    Frame(Value),
    Text(String),
    Close(u16, String),
    Cut,
}

#[derive(Debug, Default)]
pub(super) struct Inner {
    pub(super) connections: BTreeMap<u64, mpsc::Sender<Command>>,
    pub(super) accepted: u64,
    pub(super) doors: VecDeque<Door>,
    pub(super) scripts: BTreeMap<String, VecDeque<Vec<Step>>>,
    pub(super) always: Vec<Step>,
    pub(super) runs: BTreeMap<String, Arc<Run>>,
    pub(super) sessions: BTreeMap<String, Session>,
    pub(super) seen: Vec<Seen>,
    pub(super) calls: Vec<ModelCall>,
    pub(super) seq: u64,
    /// Number of restarts.
    pub(super) restarts: u32,
    pub(super) last: Vec<Value>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) dialect: Dialect,
    created: Instant,
    options: Mutex<Options>,
    inner: Mutex<Inner>,
}

impl Shared {
    pub(super) fn new(dialect: Dialect) -> Self {
        let options = Options {
            abort: Abort::default(),
            takes_headers: false,
            has_plugin: false,
            tick: Some(Duration::from_secs(30)),
            announced_tick: Duration::from_secs(30),
            version: None,
            providers: BTreeMap::new(),
        };
        Self { dialect, created: Instant::now(), options: Mutex::new(options), inner: Mutex::default() }
    }

    pub(super) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    pub(super) fn options(&self) -> MutexGuard<'_, Options> {
        self.options.lock().unwrap()
    }

    /// Returns the key as a gateway of this dialect writes it.
    pub(super) fn key(&self, session: &str) -> String {
        match self.dialect {
            Dialect::Three => session.to_owned(),
            Dialect::Four => session.to_lowercase(),
        }
    }

    pub(super) fn command(&self, connection: u64, command: Command) {
        let mut inner = self.inner();
        let is_slow = inner.connections.get(&connection).is_some_and(|to| to.try_send(command).is_err());
        if is_slow {
            inner.connections.remove(&connection);
        }
    }

    pub(super) fn answer(&self, connection: u64, frame: Value) {
        self.command(connection, Command::Frame(frame));
    }

    pub(super) fn command_all(&self, command: &Command) {
        let connections: Vec<u64> = self.inner().connections.keys().copied().collect();
        for connection in connections {
            self.command(connection, command.clone());
        }
    }

    /// Sends a numbered event to all clients, as gateways do.
    pub(super) fn event(&self, mut frame: Value) {
        {
            let mut inner = self.inner();
            inner.seq += 1;
            frame["seq"] = json!(inner.seq);
            inner.last = vec![frame.clone()];
        }
        self.command_all(&Command::Frame(frame));
    }

    /// Sends the last event to all clients again.
    pub(super) fn repeat_last_event(&self) {
        let last = self.inner().last.clone();
        for frame in last {
            self.command_all(&Command::Frame(frame));
        }
    }

    /// Restarts the gateway: closes its connections and forgets its runs.
    pub(super) fn restart(&self) {
        {
            let mut inner = self.inner();
            inner.runs.clear();
            inner.restarts += 1;
        }
        let reason = json!({ "reason": "gateway restarting", "restartExpectedMs": 100 });
        self.event(json!({ "type": "event", "event": "shutdown", "payload": reason }));
        self.command_all(&Command::Close(1012, "service restart".to_owned()));
    }

    /// Returns the reported uptime.
    pub(super) fn uptime(&self) -> Duration {
        self.created.elapsed() + INITIAL_UPTIME.saturating_sub(HOUR * self.inner().restarts)
    }

    /// Returns whether this gateway still knows the run.
    pub(super) fn knows(&self, run: &Run) -> bool {
        self.inner().runs.get(&run.names.run).is_some_and(|known| std::ptr::eq(&raw const **known, run))
    }
}
