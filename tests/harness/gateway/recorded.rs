//! Reads recorded frames and replays them for another run.

use std::{fs, path::Path};

use serde_json::Value;

use super::script::Dialect;

/// Frames recorded on one connection to a real gateway.
pub(super) struct Recording {
    lines: Vec<Value>,
}

/// Ids of the run that frames belong to.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) run: String,
    pub(super) session: String,
    pub(super) request: String,
}

impl Recording {
    /// Reads the recording `name`.
    ///
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

    /// Returns the ids that the run has in these frames.
    fn names(&self) -> Names {
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

    /// Returns every answer to requests of `method`, in order.
    pub(super) fn answers(&self, method: &str) -> Vec<Value> {
        let ids: Vec<&Value> =
            self.frames("send").filter(|frame| frame["method"] == method).map(|frame| &frame["id"]).collect();
        self.frames("recv")
            .filter(|frame| frame["type"] == "res" && ids.contains(&&frame["id"]))
            .cloned()
            .collect()
    }

    /// Returns the first received frame that `wanted` accepts.
    pub(super) fn event(&self, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        self.frames("recv").find(|frame| wanted(frame)).cloned()
    }

    /// Returns the code and the reason of the connection's close.
    pub(super) fn close(&self) -> (u16, String) {
        let frame = self.frames("close").last().unwrap();
        (
            u16::try_from(frame["code"].as_u64().unwrap()).unwrap(),
            frame["reason"].as_str().unwrap().to_owned(),
        )
    }

    /// Returns all frames of the run after its acceptance, with the ids of its run replaced by `names`.
    pub(super) fn replay(&self, names: &Names) -> Vec<Value> {
        let own = self.names();
        let is_end = |frame: &Value| frame["id"] == own.request.as_str() && !is_acceptance(frame);
        let is_event = |frame: &Value| frame.to_string().contains(&own.run) && frame["type"] == "event";
        self.frames("recv")
            .filter(|frame| is_event(frame) || is_end(frame))
            .map(|frame| self.renamed(frame, names))
            .collect()
    }

    /// Returns `frame` with the ids of its run replaced by `names`.
    pub(super) fn renamed(&self, frame: &Value, names: &Names) -> Value {
        let own = self.names();
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

/// Replaces every text that equals `old` by `new`.
pub(super) fn replace(value: &mut Value, old: &str, new: &str) {
    match value {
        Value::String(text) if text == old => new.clone_into(text),
        Value::Array(list) => list.iter_mut().for_each(|inner| replace(inner, old, new)),
        Value::Object(fields) => fields.values_mut().for_each(|inner| replace(inner, old, new)),
        _ => {}
    }
}
