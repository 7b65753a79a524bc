//! Executes one turn: its steps, sent as events to all clients, and its end.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::watch;

use super::{
    model::{self, Identity},
    recorded::{Names, Recording},
    script::{Cue, Step},
    shared::{Command, Shared},
};

use crate::pace::pace;

/// Method that began a turn, which decides the shape of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Agent,
    ChatSend,
}

impl Method {
    /// Returns the name of the recording with frames of this turn's shapes, and the text in it.
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

/// A turn that has begun.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) names: Names,
    pub(super) method: Method,
    /// Number of the connection that requested it.
    pub(super) from: u64,
    pub(super) message: String,
    pub(super) identity: Option<Identity>,
    pub(super) abort: Cue,
    /// Answer to `agent.wait`, once the turn has ended; and the answer to its request, if it has one.
    pub(super) ended: watch::Sender<Option<(Value, Option<Value>)>>,
}

/// A turn while its events are sent.
pub(super) struct TurnPlayer<'a> {
    pub(super) shared: &'a Shared,
    pub(super) run: &'a Run,
    pub(super) recording: Recording,
    pub(super) text: String,
    seq: u64,
}

/// Runs a turn until it ends or is aborted.
pub(super) async fn run(shared: Arc<Shared>, run: Arc<Run>, steps: Vec<Step>) {
    let recording = Recording::of(shared.dialect, run.method.model().0);
    let mut player = TurnPlayer { shared: &shared, run: &run, recording, text: String::new(), seq: 0 };
    player.start();
    let is_aborted = tokio::select! {
        () = player.play(steps) => false,
        () = run.abort.wait() => true,
    };
    if is_aborted {
        player.abort();
    }
}

impl TurnPlayer<'_> {
    async fn play(&mut self, steps: Vec<Step>) {
        for step in steps {
            if !self.step(step).await {
                return;
            }
        }
        self.end(&self.text.clone());
    }

    /// Executes a step; returns whether the turn continues.
    async fn step(&mut self, step: Step) -> bool {
        match step {
            Step::Say(piece) => self.say(&piece),
            Step::Instead(text) => {
                self.text = text;
                self.assistant(&self.text.clone(), "", json!(true));
            }
            Step::Swapped(first, second) => self.say_swapped(&first, &second),
            Step::Again => self.shared.repeat_last_event(),
            Step::Elsewhere { run, session, text } => self.send_foreign_events(run, session, text),
            Step::Tool => self.replay_tool(),
            Step::Event(stream, data) => self.agent_event(stream, data),
            Step::Frame(frame) => self.shared.command_all(&Command::Frame(frame)),
            Step::Text(text) => self.shared.command_all(&Command::Text(text)),
            Step::Oversize(bytes) => {
                let frame = json!({ "type": "event", "event": "health", "payload": "x".repeat(bytes) });
                self.shared.command_all(&Command::Text(frame.to_string()));
            }
            Step::Pause(time) => pace(time).await,
            Step::Until(cue) => cue.wait().await,
            Step::Ask(model) => return self.call_model(model).await,
            Step::Close(code, reason) => self.shared.command_all(&Command::Close(code, reason.to_owned())),
            Step::Cut => self.shared.command_all(&Command::Cut),
            Step::Never => std::future::pending().await,
            last => {
                self.end_with(last);
                return false;
            }
        }
        true
    }

    fn end_with(&mut self, step: Step) {
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

    /// Returns the first recorded event of this kind.
    fn find(&self, event: &str, kind: &str, value: &str) -> Option<Value> {
        self.recording.event(|frame| {
            let payload = &frame["payload"];
            frame["event"] == event && (payload[kind] == value || payload["data"][kind] == value)
        })
    }

    /// Returns the first recorded event of this kind, with the ids of this turn.
    pub(super) fn like(&self, event: &str, kind: &str, value: &str) -> Option<Value> {
        Some(self.recording.renamed(&self.find(event, kind, value)?, &self.run.names))
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

    fn say_swapped(&mut self, first: &str, second: &str) {
        let (before, both) = (format!("{}{first}", self.text), format!("{}{first}{second}", self.text));
        self.assistant(&both, second, Value::Null);
        self.chat(&both, second);
        self.assistant(&before, first, Value::Null);
        self.chat(&before, first);
        self.text = both;
    }

    fn send_foreign_events(&self, run: Option<&str>, session: Option<&str>, text: &str) {
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
            Some(self.recording.renamed(&found, &names))
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

    fn agent_event(&mut self, stream: &str, data: Value) {
        let Some(mut frame) = self.like("agent", "stream", "assistant") else { return };
        (frame["payload"]["stream"], frame["payload"]["data"]) = (json!(stream), data);
        self.event(frame);
    }

    fn replay_tool(&mut self) {
        let recording = Recording::of(self.shared.dialect, "tool");
        let streams = ["item", "tool", "command_output"];
        let is_tools =
            |frame: &Value| frame["payload"]["stream"].as_str().is_some_and(|s| streams.contains(&s));
        for frame in recording.replay(&self.run.names).into_iter().filter(is_tools) {
            self.event(frame);
        }
    }

    async fn call_model(&mut self, model: &str) -> bool {
        let identity = self.run.identity.clone().expect("the gateway has no provider");
        let count = self.shared.inner().calls.len();
        let call = model::call(&identity, model, &self.run.message, count).await;
        let (status, said) = (call.status, call.said.clone());
        let session = self.run.names.session.clone();
        self.shared.inner().calls.push(model::ModelCall { session, ..call });
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
