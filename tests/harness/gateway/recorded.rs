//! Reads recorded frames and replays them for another run.

use std::{fs, path::Path};

use serde_json::Value;

use super::script::Dialect;

/// Frames recorded on one connection to a real gateway.
pub(super) struct Story {
    lines: Vec<Value>,
}

/// Ids of the run that frames belong to.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) run: String,
    pub(super) session: String,
    pub(super) request: String,
}

impl Story {
    /// # Panics
    /// If it was not recorded for this dialect.
    pub(super) fn of(dialect: Dialect, name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("openclaw/frames").join(dialect.version());
        let path = folder.join(format!("{name}.jsonl"));
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { lines: text.lines().map(|line| serde_json::from_str(line).unwrap()).collect() }
    }

    fn frames(&self, dir: &'static str) -> impl Iterator<Item = &Value> {
        self.lines.iter().filter(move |line| line["dir"] == dir).map(|line| &line["frame"])
    }

    /// The request by which the run began, and what it is called in these frames.
    fn run(&self) -> Names {
        let begins = |frame: &&Value| frame["method"] == "agent" || frame["method"] == "chat.send";
        let request = self.frames("send").find(begins).expect("a story of a run has a request for one");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let params = &request["params"];
        Names {
            run: text(&params["idempotencyKey"]),
            session: text(&params["sessionKey"]).to_lowercase(),
            request: text(&request["id"]),
        }
    }

    /// Every answer to requests of `method`, in order.
    pub(super) fn answers(&self, method: &str) -> Vec<Value> {
        let ids: Vec<&Value> =
            self.frames("send").filter(|frame| frame["method"] == method).map(|frame| &frame["id"]).collect();
        self.frames("recv")
            .filter(|frame| frame["type"] == "res" && ids.contains(&&frame["id"]))
            .cloned()
            .collect()
    }

    /// The first frame received that is wanted.
    pub(super) fn event(&self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        self.frames("recv").find(|frame| wanted(frame)).cloned()
    }

    /// With which code and reason it was closed.
    pub(super) fn close(&self) -> (u16, String) {
        let frame = self.frames("close").last().unwrap();
        (
            u16::try_from(frame["code"].as_u64().unwrap()).unwrap(),
            frame["reason"].as_str().unwrap().to_owned(),
        )
    }

    /// All that was received of the run after it was accepted, as if it were the one that `names` are of.
    pub(super) fn retold(&self, names: &Names) -> Vec<Value> {
        let own = self.run();
        let is_end = |frame: &Value| frame["id"] == own.request.as_str() && !is_acceptance(frame);
        let is_event = |frame: &Value| frame.to_string().contains(&own.run) && frame["type"] == "event";
        self.frames("recv")
            .filter(|frame| is_event(frame) || is_end(frame))
            .map(|frame| self.renamed(frame, names))
            .collect()
    }

    /// Returns `frame` with the ids of its run replaced by `names`.
    pub(super) fn renamed(&self, frame: &Value, names: &Names) -> Value {
        let own = self.run();
        let text = frame.to_string().replace(&own.run, &names.run).replace(&own.session, &names.session);
        let mut frame: Value = serde_json::from_str(&text).unwrap();
        if frame["type"] == "res" {
            frame["id"] = names.request.clone().into();
        }
        frame
    }
}

/// Returns whether an answer only says that its run has begun.
pub(super) fn is_acceptance(frame: &Value) -> bool {
    let status = frame["payload"]["status"].as_str();
    status.is_some_and(|status| ["accepted", "started", "in_flight"].contains(&status))
}

/// Puts `new` in the place of every text that is `old`.
pub(super) fn replace(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text == old => new.clone_into(text),
        Value::Array(list) => list.iter_mut().for_each(|inner| replace(inner, old, new)),
        Value::Object(fields) => fields.values_mut().for_each(|inner| replace(inner, old, new)),
        _ => {}
    }
}
