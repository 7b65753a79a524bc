//! Ends turns: successfully, as recorded, or aborted.

use serde_json::{Value, json};

use super::{
    recorded::{Recording, is_acceptance, replace},
    run::{Method, TurnPlayer},
    script::Dialect,
};

impl TurnPlayer<'_> {
    pub(super) fn end(&mut self, text: &str) {
        if !self.shared.knows(self.run) {
            return;
        }
        let recorded_text = self.run.method.model().1;
        let frames = [self.like("agent", "phase", "end"), self.like("chat", "state", "final")];
        for mut frame in frames.into_iter().flatten() {
            replace(&mut frame, recorded_text, text);
            self.event(frame);
        }
        let method = match self.run.method {
            Method::Agent => "agent",
            Method::ChatSend => "chat.send",
        };
        let last = self.recording.answers(method).into_iter().rfind(|frame| !is_acceptance(frame));
        let answer = last.map(|frame| self.recording.renamed(&frame, &self.run.names));
        let answer = answer.map(|mut frame| {
            replace(&mut frame, recorded_text, text);
            frame
        });
        let mut waited = json!({ "runId": self.run.names.run, "status": "ok", "startedAt": 1, "endedAt": 2 });
        if self.shared.dialect == Dialect::Four {
            waited["terminalReply"] = json!({ "disposition": "visible", "text": text });
        }
        let session = self.shared.key(&self.run.names.session);
        self.shared.inner().sessions.entry(session).or_default().history.push(("assistant", text.to_owned()));
        self.finish(waited, answer);
    }

    pub(super) fn recorded(&mut self, name: &str) {
        if !self.shared.knows(self.run) {
            return;
        }
        let mut answer = None;
        for frame in Recording::of(self.shared.dialect, name).replay(&self.run.names) {
            if frame["type"] == "res" { answer = Some(frame) } else { self.shared.event(frame) }
        }
        let is_ok =
            answer.as_ref().is_some_and(|frame| frame["ok"] == true && frame["payload"]["status"] == "ok");
        let status = if is_ok { "ok" } else { "error" };
        self.finish(json!({ "runId": self.run.names.run, "status": status, "endedAt": 2 }), answer);
    }

    pub(super) fn abort(&mut self) {
        let recording = Recording::of(self.shared.dialect, self.run.method.aborted());
        if let Some(frame) = recording.event(|frame| frame["payload"]["state"] == "aborted") {
            let mut frame = recording.renamed(&frame, &self.run.names);
            if let Some(text) = frame.pointer_mut("/payload/message/content/0/text") {
                *text = json!(self.text);
            }
            self.event(frame);
        }
        let answer = recording.answers("agent").into_iter().rfind(|frame| !is_acceptance(frame));
        let answer = answer.map(|frame| recording.renamed(&frame, &self.run.names));
        let waited =
            json!({ "runId": self.run.names.run, "status": "error", "stopReason": "rpc", "endedAt": 2 });
        self.finish(waited, answer);
    }

    /// Sends the final answer and releases the waiters. A turn that `chat.send` began has no second answer.
    fn finish(&self, waited: Value, answer: Option<Value>) {
        let answer = answer.filter(|_| self.run.method == Method::Agent);
        if let Some(answer) = answer.clone() {
            self.shared.answer(self.run.from, answer);
        }
        self.run.ended.send_replace(Some((waited, answer)));
    }
}
