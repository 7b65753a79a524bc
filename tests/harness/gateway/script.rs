//! Describes the behaviour of a scripted gateway: at the handshake, and in each turn, step by step.

use std::time::Duration;

use serde_json::Value;
use tokio::sync::watch;

/// The wire protocol that a gateway speaks, and whose recorded frames it uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Protocol 3, as 2026.2.6-3 speaks it.
    Three,
    /// Protocol 4, as 2026.9.6 speaks it.
    Four,
}

impl Dialect {
    /// Both.
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

/// Handshake of a connection. Without one a client with the right token and protocol is let in.
#[derive(Debug, Clone)]
pub enum Door {
    /// No challenge, ever.
    Silent,
    /// Closed before the challenge.
    Shut,
    /// A challenge, then a close with this code and reason when the client wants to connect.
    Closed(u16, &'static str),
    /// Not yet: try again after this long.
    NotYet(Duration),
    /// As in a recorded story, whatever the client says: `remote-unpaired`, `handshake-no-scopes`.
    Recorded(&'static str),
    /// This text instead of an answer.
    Text(&'static str),
}

/// Effect of an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Abort {
    /// The behaviour of the dialect's gateway: protocol 3 stops what `chat.send` began and nothing else.
    #[default]
    AsRecorded,
    /// The abort is confirmed, but the run goes on.
    Pretended,
    /// The abort is never answered.
    Unanswered,
}

/// Something that a test lets happen when it wants to.
#[derive(Debug, Clone)]
pub struct Cue(watch::Sender<bool>);

impl Default for Cue {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Cue {
    /// Lets go on what waits for it, now and later.
    pub fn give(&self) {
        self.0.send_replace(true);
    }

    pub(super) async fn wait(&self) {
        // Its sender is this very value.
        self.0.subscribe().wait_for(|given| *given).await.map(drop).unwrap();
    }
}

/// Step of a turn. After the last one the turn ends well, with all of its text.
#[derive(Debug, Clone)]
pub enum Step {
    /// More text, sent in an event of either kind.
    Say(String),
    /// All text so far was wrong: this is it.
    Instead(String),
    /// Two pieces of text whose events come in the wrong order.
    Swapped(String, String),
    /// The last event once more.
    Again,
    /// An event of a run or of a session that is another's. Without a run or session: this one's.
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
    /// This frame, to everybody.
    Frame(Value),
    /// This text, which need not be a frame.
    Text(String),
    /// An event of so many bytes.
    Oversize(usize),
    /// Nothing for so long.
    Pause(Duration),
    /// Nothing until a test says so.
    Until(Cue),
    /// Calls a model as OpenClaw does; the answer becomes text, and a refusal ends the turn as recorded.
    Ask(&'static str),
    /// Every connection is closed with this code and reason.
    Close(u16, &'static str),
    /// Every connection is cut without a word.
    Cut,
    /// The whole gateway is gone and back, and knows nothing of this turn any more.
    Restart,
    /// The turn ends well, with this text, whatever was said.
    EndAs(String),
    /// The turn ends as a recorded one did: `status-401`, `empty`, `timeout`, `overflow`.
    Recorded(&'static str),
    /// As the first: the turn is not begun, try again after this long.
    NotNow(Duration),
    /// The turn never ends, unless it is aborted.
    Never,
}

impl Step {
    /// More text.
    #[must_use]
    pub fn say(text: &str) -> Self {
        Self::Say(text.to_owned())
    }
}
