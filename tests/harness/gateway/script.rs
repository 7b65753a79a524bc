//! Describes the behaviour of a scripted gateway: at the handshake, and in each turn, step by step.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

/// Wire protocol of a gateway, which decides the recorded frames that it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Protocol 3, as 2026.2.6-3 speaks it.
    Three,
    /// Protocol 4, as 2026.9.6 speaks it.
    Four,
}

impl Dialect {
    /// Both dialects.
    pub const ALL: [Self; 2] = [Self::Three, Self::Four];

    pub(super) const fn version(self) -> &'static str {
        match self {
            Self::Three => "2026.2.6-3",
            Self::Four => "2026.9.6",
        }
    }

    pub(super) const fn number(self) -> u64 {
        match self {
            Self::Three => 3,
            Self::Four => 4,
        }
    }
}

/// Handshake of a connection. Without one, the gateway accepts a client with the right token and protocol.
#[derive(Debug, Clone)]
pub enum Door {
    /// The challenge never comes.
    Silent,
    /// The connection is closed before the challenge.
    Shut,
    /// The gateway answers the request to connect with a close of this code and reason.
    Closed(u16, &'static str),
    /// The gateway is still starting; the client should try again after this time.
    NotYet(Duration),
    /// The gateway answers as recorded and ignores the client's request: `remote-unpaired`, `handshake-no-scopes`.
    Recorded(&'static str),
    /// The gateway sends this text instead of an answer.
    Text(&'static str),
}

/// Effect of an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Abort {
    /// The behaviour of the dialect's gateway: protocol 3 stops only turns that `chat.send` began.
    #[default]
    AsRecorded,
    /// The abort is confirmed, but the run continues.
    Pretended,
    /// The abort is never answered.
    Unanswered,
}

/// Signal of a test, which scripts wait for.
#[derive(Debug, Clone)]
pub struct Cue(watch::Sender<bool>);

impl Default for Cue {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Cue {
    /// Releases all present and future waiters.
    pub fn give(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn wait(&self) {
        // The wait cannot fail, because this value is the sender.
        self.0.subscribe().wait_for(|given| *given).await.map(drop).unwrap();
    }
}

/// Step of a turn. After the last one the turn succeeds, with all of its text.
#[derive(Debug, Clone)]
pub enum Step {
    /// More text, sent in an `agent` event and a `chat` event.
    Say(String),
    /// This text, which replaces all earlier text.
    Instead(String),
    /// Two pieces of text with their events in the wrong order.
    Swapped(String, String),
    /// A repetition of the last event.
    Again,
    /// Events of another run or session. Without a run or a session, they have this turn's.
    Elsewhere {
        /// Another run's id.
        run: Option<&'static str>,
        /// Another session's key.
        session: Option<&'static str>,
        /// Text of the event.
        text: &'static str,
    },
    /// The events of a recorded tool call; protocol 3 has none.
    Tool,
    /// An `agent` event of the turn with this stream and this data.
    Event(&'static str, Value),
    /// This frame, to all clients.
    Frame(Value),
    /// This text, to all clients; it need not be a frame.
    Text(String),
    /// An event of so many bytes.
    Oversize(usize),
    /// A pause.
    Pause(Duration),
    /// A pause until the test gives the cue.
    Until(Cue),
    /// A model call as OpenClaw makes it. The answer becomes text; a refusal ends the turn as recorded.
    Ask(&'static str),
    /// Every connection is closed with this code and reason.
    Close(u16, &'static str),
    /// Every connection is cut without a close frame.
    Cut,
    /// The gateway restarts and forgets this turn.
    Restart,
    /// The turn succeeds with this text in place of its text so far.
    EndAs(String),
    /// The turn ends as a recorded one did: `status-401`, `empty`, `timeout`, `overflow`.
    Recorded(&'static str),
    /// The request is refused for now; the client should try again after this time. Only valid as the first step.
    NotNow(Duration),
    /// The turn never ends, unless it is aborted.
    Never,
}

impl Step {
    /// Creates a step with more text.
    #[must_use]
    pub fn say(text: &str) -> Self {
        Self::Say(text.to_owned())
    }
}
