//! Executes one turn: its steps, sent as events to all clients, and its end.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    model::{self, Identity},
    recorded::{Names, Story},
    script::{Cue, Step},
    shared::{Order, Shared},
};

/// Method that began a turn, which decides the shape of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Agent,
    ChatSend,
}

impl Method {
    /// The recorded turn whose frames have this turn's shapes, and what was said there.
    pub(super) const fn model(self) -> (&'static str, &'static str) {
        match self {
            Self::Agent => ("success", "Hello from a scripted model"),
            Self::ChatSend => ("chat-history", "Remember this."),
        }
    }

    pub(super) const fn aborted(self) -> &'static str {
        match self {
            Self::Agent => "agent-abort",
            Self::ChatSend => "chat-abort",
        }
    }
}

/// A turn that was begun.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) names: Names,
    pub(super) method: Method,
    /// The connection that asked for it.
    pub(super) from: u64,
    pub(super) message: String,
    pub(super) identity: Option<Identity>,
    pub(super) abort: Cue,
    /// Answer to `agent.wait`, once the turn is over; and the answer to its request, if it has one.
    pub(super) ended: watch::Sender<Option<(Value, Option<Value>)>>,
}

/// A turn while its events are sent.
pub(super) struct Telling<'a> {
    pub(super) shared: &'a Shared,
    pub(super) run: &'a Run,
    pub(super) story: Story,
    pub(super) text: String,
    seq: u64,
}

/// Runs a turn until it is over or aborted.
pub(super) async fn run(shared: Arc<Shared>, run: Arc<Run>, steps: Vec<Step>) {
    let story = Story::of(shared.dialect, run.method.model().0);
    let mut telling = Telling { shared: &shared, run: &run, story, text: String::new(), seq: 0 };
    telling.start();
    let is_aborted = tokio::select! {
        () = telling.all(steps) => false,
        () = run.abort.wait() => true,
    };
    if is_aborted {
        telling.abort();
    }
}

impl Telling<'_> {
    async fn all(&mut self, steps: Vec<Step>) {
        for step in steps {
            if !self.step(step).await {
                return;
            }
        }
        self.end(&self.text.clone());
    }

    /// Executes a step; returns whether the turn goes on.
    async fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Say(piece) => self.say(&piece),
            Step::Instead(text) => {
                self.text = text;
                self.assistant(&self.text.clone(), "", json!(true));
            }
            Step::Swapped(first, second) => self.swapped(&first, &second),
            Step::Again => self.shared.again(),
            Step::Elsewhere { run, session, text } => self.elsewhere(run, session, text),
            Step::Tool => self.tool(),
            Step::Frame(frame) => self.shared.order_all(&Order::Frame(frame)),
            Step::Text(text) => self.shared.order_all(&Order::Text(text)),
            Step::Oversize(bytes) => {
                let frame = json!({ "type": "event", "event": "health", "payload": "x".repeat(bytes) });
                self.shared.order_all(&Order::Text(frame.to_string()));
            }
            Step::Pause(time) => tokio::time::sleep(time).await,
            Step::Until(cue) => cue.wait().await,
            Step::Ask(model) => return self.ask(model).await,
            Step::Close(code, reason) => self.shared.order_all(&Order::Close(code, reason.to_owned())),
            Step::Cut => self.shared.order_all(&Order::Cut),
            Step::Never => std::future::pending().await,
            last => {
                self.last(last);
                return false;
            }
        }
        true
    }

    fn last(&mut self, step: Step) {
        match step {
            Step::Restart => self.shared.restart(),
            Step::EndAs(text) => self.end(&text),
            Step::Recorded(name) => self.recorded(name),
            other => panic!("{other:?} ends no turn"),
        }
    }

    /// Sends one event of the turn, unless the gateway has forgotten it.
    pub(super) fn event(&mut self, mut frame: Value) {
        if !self.shared.knows(self.run) {
            return;
        }
        self.seq += 1;
        frame["payload"]["seq"] = json!(self.seq);
        self.shared.event(frame);
    }

    /// A recorded event of this kind.
    fn find(&self, event: &str, kind: &str, value: &str) -> Option<Value> {
        self.story.event(|frame| {
            let payload = &frame["payload"];
            frame["event"] == event && (payload[kind] == value || payload["data"][kind] == value)
        })
    }

    /// The same, made this turn's.
    pub(super) fn like(&self, event: &str, kind: &str, value: &str) -> Option<Value> {
        Some(self.story.renamed(&self.find(event, kind, value)?, &self.run.names))
    }

    fn start(&mut self) {
        let frames = [self.like("agent", "phase", "start"), self.like("agent", "phase", "model")];
        frames.into_iter().flatten().for_each(|frame| self.event(frame));
    }

    fn say(&mut self, piece: &str) {
        self.text.push_str(piece);
        let text = self.text.clone();
        self.assistant(&text, piece, Value::Null);
        self.chat(&text, piece);
    }

    fn assistant(&mut self, text: &str, delta: &str, replaces: Value) {
        let Some(mut frame) = self.like("agent", "stream", "assistant") else { return };
        let data = &mut frame["payload"]["data"];
        (data["text"], data["delta"]) = (json!(text), json!(delta));
        if !replaces.is_null() {
            data["replace"] = replaces;
        }
        self.event(frame);
    }

    fn chat(&mut self, text: &str, delta: &str) {
        let Some(mut frame) = self.like("chat", "state", "delta") else { return };
        if frame["payload"].get("deltaText").is_some() {
            frame["payload"]["deltaText"] = json!(delta);
        }
        frame["payload"]["message"]["content"][0]["text"] = json!(text);
        self.event(frame);
    }

    fn swapped(&mut self, first: &str, second: &str) {
        let (before, both) = (format!("{}{first}", self.text), format!("{}{first}{second}", self.text));
        self.assistant(&both, second, Value::Null);
        self.chat(&both, second);
        self.assistant(&before, first, Value::Null);
        self.chat(&before, first);
        self.text = both;
    }

    fn elsewhere(&self, run: Option<&str>, session: Option<&str>, text: &str) {
        let own = &self.run.names;
        let names = Names {
            run: run.unwrap_or(&own.run).to_owned(),
            session: session.unwrap_or(&own.session).to_owned(),
            request: own.request.clone(),
        };
        let events =
            [("agent", "stream", "assistant"), ("chat", "state", "delta"), ("chat", "state", "final")];
        for mut frame in events.into_iter().filter_map(|(event, kind, value)| {
            let found = self.find(event, kind, value)?;
            Some(self.story.renamed(&found, &names))
        }) {
            let payload = &mut frame["payload"];
            if payload["stream"] == "assistant" {
                (payload["data"]["text"], payload["data"]["delta"]) = (json!(text), json!(text));
            } else {
                payload["message"]["content"][0]["text"] = json!(text);
            }
            if payload.get("deltaText").is_some() {
                payload["deltaText"] = json!(text);
            }
            self.shared.event(frame);
        }
    }

    fn tool(&mut self) {
        let tool = Story::of(self.shared.dialect, "tool");
        let streams = ["item", "tool", "command_output"];
        let is_tools =
            |frame: &Value| frame["payload"]["stream"].as_str().is_some_and(|s| streams.contains(&s));
        for frame in tool.retold(&self.run.names).into_iter().filter(is_tools) {
            self.event(frame);
        }
    }

    async fn ask(&mut self, model: &str) -> bool {
        let identity = self.run.identity.clone().expect("the gateway has no provider");
        let count = self.shared.inner().calls.len();
        let made = model::ask(&identity, model, &self.run.message, count).await;
        let (status, said) = (made.status, made.said.clone());
        let session = self.run.names.session.clone();
        self.shared.inner().calls.push(model::Made { session, ..made });
        match status {
            Some(200) => self.say(&said),
            Some(401) => self.recorded("status-401"),
            Some(402) => self.recorded("status-402"),
            Some(403) => self.recorded("status-403"),
            Some(429) => self.recorded("status-429"),
            Some(_) => self.recorded("status-500"),
            None => self.recorded("refused"),
        }
        status == Some(200)
    }
}
