//! Connects the bridge to a scripted or a real gateway, with limits that suit tests, and builds and follows turns.

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

/// Deadline of a turn: longer than a scripted turn takes.
const DEADLINE: Duration = Duration::from_secs(60);
/// Longest wait for a turn's end: longer than any turn's deadline.
const PATIENCE: Duration = Duration::from_secs(75);

static TURNS: AtomicU64 = AtomicU64::new(1);

/// Returns settings for `url` with short retry delays and a short wait for an abort.
///
/// # Panics
/// If `url` is not the address of a gateway.
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

/// Opens a bridge to a scripted gateway.
#[must_use]
pub fn to_scripted(gateway: &ScriptedGateway) -> Gateway {
    Gateway::open(settings(&gateway.url(), TOKEN))
}

/// Opens a bridge to a real gateway.
///
/// # Panics
/// Never: the provider's name is valid.
#[must_use]
pub fn to_openclaw(gateway: &OpenClaw) -> Gateway {
    let mut settings = settings(&gateway.url, gateway.token);
    settings.provider = Some(GatewayProvider::parse(PROVIDER).unwrap());
    Gateway::open(settings)
}

/// Returns the session `key` of account `acct-1`.
///
/// # Panics
/// If `key` is not valid.
#[must_use]
pub fn session(key: &str) -> SessionKey {
    SessionKey::new("main", &AccountId::parse("acct-1").unwrap(), key).unwrap()
}

/// Returns a turn with a run id and its own trace.
///
/// # Panics
/// Never: the run id is valid.
#[must_use]
pub fn asking(session: &SessionKey, message: &str) -> Turn {
    let number = TURNS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let (trace, span) = (TraceId::from_random(u128::from(number) << 64 | 7), SpanId::from_random(number));
    Turn {
        run_id: RunId::parse(&format!("turn-{}-{number}", std::process::id())).unwrap(),
        session: session.clone(),
        message: message.to_owned(),
        model: None,
        directory: None,
        attribution: Attribution::Trace(Traceparent { trace, span, sampled: true }),
        deadline: Instant::now() + DEADLINE,
    }
}

/// Returns `turn` for a gateway without traces: attributed by a header, as an extended gateway accepts it.
///
/// # Panics
/// Never: the header is valid.
#[must_use]
pub fn without_trace(turn: Turn) -> Turn {
    let headers = OutboundHeaders::new([("x-run-token", "token")]).unwrap();
    Turn { attribution: Attribution::Headers(headers), ..turn }
}

/// Returns a turn of the session `key`, in a form that gateways of `dialect` accept.
///
/// # Panics
/// If `key` is not valid.
#[must_use]
pub fn turn_in(dialect: Dialect, key: &str) -> Turn {
    let turn = asking(&session(key), "hello");
    match dialect {
        Dialect::Three => without_trace(turn),
        Dialect::Four => turn,
    }
}

/// Returns `turn`, answered by `model`.
///
/// # Panics
/// If `model` is not a model's name.
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
    /// Returns the pieces of text, joined.
    #[must_use]
    pub fn text(&self) -> String {
        let piece = |event: &TurnEvent| match event {
            TurnEvent::Text(piece) => Some(piece.clone()),
            _ => None,
        };
        self.events.iter().filter_map(piece).collect()
    }

    /// Returns the text at the end.
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

    /// Returns the number of tools that finished.
    #[must_use]
    pub fn tools(&self) -> usize {
        let is_end = |event: &&TurnEvent| matches!(event, TurnEvent::Tool { state: ToolState::Finished, .. });
        self.events.iter().filter(is_end).count()
    }
}

/// Follows a turn to its end.
///
/// # Panics
/// If the end does not come in time.
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
/// If the gateway does not accept it.
pub async fn run(gateway: &Gateway, turn: Turn) -> Told {
    told(gateway.run(turn).await.unwrap()).await
}

/// Waits for the first text of a turn.
///
/// # Panics
/// If the turn ends without text.
pub async fn first_text(running: &mut Running) -> String {
    loop {
        match running.next().await {
            Some(TurnEvent::Text(text)) => return text,
            Some(_) => {}
            None => panic!("the turn ended without a word"),
        }
    }
}
