//! Answers with the turns of a session, and with the answer that is being given.

use platform_core::event::AgentEvent;
use platform_core::id::{ExternalId, RunId};
use runner_engine::run_request::{RunRequest, thread_session};
use runner_store::{Run, RunRecord, SessionThread, ThreadTurn};
use serde_json::{Value, json};

use super::{
    MethodCall,
    message_bounds::{MAX_TEXTS, MessageBounds, SessionMessage, TextBound, TurnTexts},
};
use crate::gateways::socket::{
    refusal::SocketRefusal,
    session_key::{ClientSession, Conversation},
    tenant::SocketTenant,
};

/// Turns of an answer, and most of them.
const DEFAULT_TURNS: u32 = 100;
const MAX_TURNS: u32 = 500;
/// Turns that are read at once: their whole texts are held for a moment.
const PAGE: u32 = 16;
/// Most runs of a session that are looked at for the active one.
const MAX_ACTIVE: u32 = 100;

/// Turn of a session, cut to what an answer has room for.
struct CutTurn {
    run: Run,
    /// Its messages, the newest first.
    messages: Vec<SessionMessage>,
}

/// Returns the turns of a page that there is room for. The whole texts go with the page.
fn cut_page(page: Vec<ThreadTurn>, bounds: &mut MessageBounds) -> Vec<CutTurn> {
    let cut = page.into_iter().map_while(|ThreadTurn { run, question, answer, .. }| {
        let messages = bounds.admit(texts_of(&run, &question, answer.as_deref()))?;
        Some(CutTurn { run, messages })
    });
    cut.collect()
}

fn texts_of<'t>(run: &Run, question: &'t str, answer: Option<&'t str>) -> TurnTexts<'t> {
    TurnTexts { question, asked_at: run.created.0, answer, answered_at: run.ended.unwrap_or(run.created).0 }
}

/// Returns the messages of a session that is one run alone, the newest first.
fn messages_of(record: &RunRecord, mut bounds: MessageBounds) -> Vec<SessionMessage> {
    let request = RunRequest::stored(record).ok();
    let question = request.as_ref().and_then(|request| request.spec.question()).unwrap_or_default();
    bounds.admit(texts_of(&record.run, question, record.answer.as_deref())).unwrap_or_default()
}

impl SocketTenant {
    /// Returns the last messages of a session, the oldest first. The oldest turns are left out first.
    async fn messages(
        &self,
        session: &ClientSession,
        bounds: MessageBounds,
    ) -> Result<Vec<SessionMessage>, SocketRefusal> {
        let mut messages = match &session.conversation {
            Conversation::Thread(thread) => self.thread_messages(session, thread, bounds).await?,
            Conversation::Single(run_id) => {
                let found = self.run(run_id.as_str()).await?;
                if found.session == *session { messages_of(&found.record, bounds) } else { Vec::new() }
            }
        };
        messages.reverse();
        Ok(messages)
    }

    /// Returns the last messages of a thread's session, the newest first.
    async fn thread_messages(
        &self,
        session: &ClientSession,
        thread: &ExternalId,
        mut bounds: MessageBounds,
    ) -> Result<Vec<SessionMessage>, SocketRefusal> {
        let agent = self.key(&session.agent);
        let Some(name) = thread_session(&session.agent, &self.account, thread) else {
            return Ok(Vec::new());
        };
        let of = SessionThread { agent: &agent, account: &self.account, thread, session: &name };
        let mut messages = Vec::new();
        let mut before: Option<RunId> = None;
        while bounds.turns > 0 {
            let most = bounds.turns.min(PAGE);
            let page = self.store().session_turns(of, before.as_ref(), most).await?;
            let turns = cut_page(page, &mut bounds);
            before = turns.last().map(|turn| turn.run.run_id.clone());
            let is_last = turns.len() < most as usize;
            for turn in turns {
                if self.has_turn(session, &turn.run).await? {
                    messages.extend(turn.messages);
                    bounds.turns -= 1;
                }
            }
            if is_last {
                break;
            }
        }
        Ok(messages)
    }

    /// Returns whether a run that names the session is a turn of it at this gateway. One that has not begun may be ordered at
    /// another gateway, where the session has the same name.
    async fn has_turn(&self, session: &ClientSession, run: &Run) -> Result<bool, SocketRefusal> {
        if run.started.is_some() {
            return Ok(true);
        }
        Ok(self.gateway_run(run).await?.is_some_and(|found| found.session == *session))
    }

    /// Returns the first run of a session that has not ended. Further ones wait behind it.
    pub(super) async fn active_run(&self, session: &ClientSession) -> Result<Option<Run>, SocketRefusal> {
        let runs = match &session.conversation {
            Conversation::Single(run_id) => vec![self.run(run_id.as_str()).await?.record.run],
            Conversation::Thread(thread) => {
                let agent = self.key(&session.agent);
                let Some(name) = thread_session(&session.agent, &self.account, thread) else {
                    return Ok(None);
                };
                let of = SessionThread { agent: &agent, account: &self.account, thread, session: &name };
                self.store().active_session_runs(of, MAX_ACTIVE).await?
            }
        };
        for run in runs.into_iter().filter(|run| run.ended.is_none()) {
            let found = self.gateway_run(&run).await?;
            if found.is_some_and(|found| found.session == *session) {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    /// Returns the text that a run has given since it last called a tool, or the beginning of a long one.
    async fn text_so_far(&self, run: &Run) -> Result<String, SocketRefusal> {
        let mut text = String::new();
        let mut is_closed = false;
        let mut after = self.store().attempt_begin(run).await?;
        loop {
            let (_, events) = self.store().events_after(&run.run_id, after).await?;
            let Some(last) = events.last() else { return Ok(text) };
            after = last.seq;
            for event in &events {
                match event.shown() {
                    AgentEvent::TextDelta { delta } => {
                        if std::mem::take(&mut is_closed) {
                            text.clear();
                        }
                        let room = MAX_TEXTS.saturating_sub(text.len());
                        text.push_str(TextBound::Bytes(room).cut(&delta));
                    }
                    AgentEvent::Tool { .. } | AgentEvent::ToolCall { .. } => is_closed = true,
                    _ => {}
                }
            }
        }
    }

    /// Returns the beginnings of the last messages of a session, at most one for each turn of `bounds`.
    pub(super) async fn preview(
        &self,
        session: &ClientSession,
        bounds: MessageBounds,
    ) -> Result<Vec<Value>, SocketRefusal> {
        let messages = self.messages(session, bounds).await?;
        let first = messages.len().saturating_sub(bounds.turns as usize);
        Ok(messages[first..].iter().map(SessionMessage::to_preview).collect())
    }
}

impl MethodCall {
    pub(super) async fn read_history(&self) -> Result<Value, SocketRefusal> {
        let session = self.named_session("sessionKey").await?;
        let limit: Option<u32> = self.params.optional("limit")?;
        let bounds = MessageBounds {
            turns: limit.unwrap_or(DEFAULT_TURNS).clamp(1, MAX_TURNS),
            bytes: MAX_TEXTS,
            text: TextBound::Bytes(MAX_TEXTS / 2),
        };
        let messages = self.tenant.messages(&session, bounds).await?;
        let messages: Vec<_> = messages.iter().map(SessionMessage::to_json).collect();
        let mut history = json!({
            "sessionKey": session.to_string(), "agentId": session.agent.as_str(), "messages": messages,
            "thinkingLevel": "off",
        });
        if let Some(row) = self.tenant.listed_session(&session).await? {
            history["sessionInfo"] = row.to_json();
        }
        if let Some(run) = self.tenant.active_run(&session).await? {
            let text = self.tenant.text_so_far(&run).await?;
            history["inFlightRun"] = json!({ "runId": run.run_id.as_str(), "text": text });
        }
        Ok(history)
    }
}
