//! The bridge, connected to a gateway of either kind, with limits that suit tests; and turns to give it.

use std::{sync::atomic::AtomicU64, time::Duration};

use gateway_bridge::{
    Attribution, Ending, Gateway, GatewayLimits, OutboundHeaders, Running, SessionKey, Settings, ToolState,
    Turn, TurnEvent,
};
use platform_core::{
    id::{AccountId, GatewayProvider, ModelName, RunId},
    secret::Secret,
    traceparent::{SpanId, TraceId, Traceparent},
};
use tokio::time::Instant;

use super::{Dialect, ScriptedGateway, TOKEN};
use crate::openclaw::{OpenClaw, PROVIDER};

/// Longer than a scripted turn takes.
const DEADLINE: Duration = Duration::from_secs(15);
/// Longer than any turn may take that has a deadline.
const PATIENCE: Duration = Duration::from_secs(75);

static TURNS: AtomicU64 = AtomicU64::new(1);

/// Settings for `url`: quick to try again, quick to give up an abort.
///
/// # Panics
/// If `url` is no gateway's address.
#[must_use]
pub fn settings(url: &str, token: &str) -> Settings {
    let limits = GatewayLimits {
        handshake: Duration::from_secs(10),
        call: Duration::from_secs(10),
        abort: Duration::from_secs(2),
        first_pause: Duration::from_millis(20),
        longest_pause: Duration::from_millis(200),
        ..GatewayLimits::default()
    };
    Settings { limits, ..Settings::new(url.parse().unwrap(), Some(Secret::new(token.to_owned()))) }
}

/// A bridge to a scripted gateway.
#[must_use]
pub fn to_scripted(gateway: &ScriptedGateway) -> Gateway {
    Gateway::open(settings(&gateway.url(), TOKEN))
}

/// A bridge to a real one.
///
/// # Panics
/// Never: the provider's name is one.
#[must_use]
pub fn to_openclaw(gateway: &OpenClaw) -> Gateway {
    let mut settings = settings(&gateway.url, gateway.token);
    settings.provider = Some(GatewayProvider::parse(PROVIDER).unwrap());
    Gateway::open(settings)
}

/// A session of account `acct-1`.
///
/// # Panics
/// Never: these are names.
#[must_use]
pub fn session(key: &str) -> SessionKey {
    SessionKey::new("main", &AccountId::parse("acct-1").unwrap(), key).unwrap()
}

/// A turn with an id and a trace of its own.
///
/// # Panics
/// Never: these are names.
#[must_use]
pub fn asking(session: &SessionKey, message: &str) -> Turn {
    let number = TURNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (trace, span) = (TraceId::from_random(u128::from(number) << 64 | 7), SpanId::from_random(number));
    Turn {
        run_id: RunId::parse(&format!("turn-{}-{number}", std::process::id())).unwrap(),
        session: session.clone(),
        message: message.to_owned(),
        model: None,
        attribution: Attribution::Trace(Traceparent { trace, span, sampled: true }),
        deadline: Instant::now() + DEADLINE,
    }
}

/// The same for a gateway that knows no traces: by a header of an extended one.
///
/// # Panics
/// Never: it is a header.
#[must_use]
pub fn without_trace(turn: Turn) -> Turn {
    let headers = OutboundHeaders::new([("x-run-token", "token")]).unwrap();
    Turn { attribution: Attribution::Headers(headers), ..turn }
}

/// A turn of the session with this key, as gateways of `dialect` take one.
///
/// # Panics
/// Never: these are names.
#[must_use]
pub fn turn_in(dialect: Dialect, key: &str) -> Turn {
    let turn = asking(&session(key), "hello");
    match dialect {
        Dialect::Three => without_trace(turn),
        Dialect::Four => turn,
    }
}

/// The same, answered by `model`.
///
/// # Panics
/// If it is no name.
#[must_use]
pub fn by_model(turn: Turn, model: &str) -> Turn {
    Turn { model: Some(ModelName::parse(model).unwrap()), ..turn }
}

/// Events of a turn and its end.
#[derive(Debug)]
pub struct Told {
    /// All of its events.
    pub events: Vec<TurnEvent>,
    /// Its end.
    pub ending: Ending,
}

impl Told {
    /// The pieces of text, joined.
    #[must_use]
    pub fn text(&self) -> String {
        let piece = |event: &TurnEvent| match event {
            TurnEvent::Text(piece) => Some(piece.clone()),
            _ => None,
        };
        self.events.iter().filter_map(piece).collect()
    }

    /// The text at the end.
    ///
    /// # Panics
    /// If the turn failed.
    #[must_use]
    pub fn answer(&self) -> &str {
        match &self.ending {
            Ending::Completed { text, .. } => text,
            Ending::Failed(failure) => panic!("the turn failed: {failure} {:?}", self.events),
        }
    }

    /// Tools that returned.
    #[must_use]
    pub fn tools(&self) -> usize {
        let is_end = |event: &&TurnEvent| matches!(event, TurnEvent::Tool { state: ToolState::Finished, .. });
        self.events.iter().filter(is_end).count()
    }
}

/// Follows a turn to its end.
///
/// # Panics
/// If that does not come.
pub async fn told(mut running: Running) -> Told {
    let mut events = Vec::new();
    let all = async {
        while let Some(event) = running.next().await {
            events.push(event);
        }
        running.ending().await
    };
    let ending = tokio::time::timeout(PATIENCE, all).await.expect("a turn ends by its deadline");
    Told { events, ending }
}

/// Runs a turn and follows it to its end.
///
/// # Panics
/// If it is not taken.
pub async fn run(gateway: &Gateway, turn: Turn) -> Told {
    told(gateway.run(turn).await.unwrap()).await
}

/// Waits for the first text of a turn.
///
/// # Panics
/// If it ends without any.
pub async fn first_text(running: &mut Running) -> String {
    loop {
        match running.next().await {
            Some(TurnEvent::Text(text)) => return text,
            Some(_) => {}
            None => panic!("the turn ended without a word"),
        }
    }
}
