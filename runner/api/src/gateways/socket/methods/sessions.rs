//! Answers about sessions, from the runs that the store has.

use platform_core::id::ExternalId;
use runner_model::lifecycle::{Outcome, State};
use runner_store::GatewaySession;
use serde_json::{Value, json};

use super::{
    MethodCall,
    message_bounds::{MAX_TEXTS, MessageBounds, TextBound},
    service::SHOWN_FOLDER,
};
use crate::gateways::socket::{
    clock::now,
    refusal::SocketRefusal,
    session_key::ClientSession,
    tenant::{KnownAgent, SocketTenant},
};

/// Sessions of an answer, and most of them.
const DEFAULT_SESSIONS: u32 = 50;
pub(super) const MAX_SESSIONS: u32 = 200;
/// Most sessions of which a client asks for the beginning at once.
const MAX_PREVIEWS: usize = 32;

/// Session, as it is listed.
pub(super) struct SessionRow {
    session: ClientSession,
    stored: GatewaySession,
}

impl SessionRow {
    pub(super) fn to_json(&self) -> Value {
        let Self { session, stored } = self;
        let status = match stored.state {
            State::Queued | State::Preparing | State::Starting | State::Running => "running",
            State::Collecting(outcome) | State::Settling(outcome) | State::Ended(outcome) => match outcome {
                Outcome::Succeeded => "done",
                Outcome::Cancelled => "killed",
                Outcome::Failed => "failed",
                Outcome::TimedOut => "timeout",
            },
        };
        json!({
            "key": session.to_string(),
            "kind": "direct",
            "agentId": session.agent.as_str(),
            "displayName": session.thread().map_or("one run", ExternalId::as_str),
            "derivedTitle": stored.question,
            "createdAt": stored.began.0,
            "updatedAt": stored.changed.0,
            "status": status,
            "hasActiveRun": status == "running",
            "archived": false,
            "pinned": false,
            "totalTokensFresh": false,
        })
    }
}

impl SocketTenant {
    /// Returns the sessions of an agent, the last changed first.
    pub(super) async fn sessions_of(
        &self,
        agent: &KnownAgent,
        most: u32,
    ) -> Result<Vec<SessionRow>, SocketRefusal> {
        let key = self.key(&agent.id);
        let stored = self.store().gateway_sessions(&key, &self.scope(), None, most).await?;
        let row = |stored: GatewaySession| SessionRow {
            session: ClientSession::of(agent.id.clone(), stored.thread.clone(), &stored.last_run),
            stored,
        };
        Ok(stored.into_iter().map(row).collect())
    }

    /// Returns a session, if one of its runs has begun.
    pub(super) async fn listed_session(
        &self,
        session: &ClientSession,
    ) -> Result<Option<SessionRow>, SocketRefusal> {
        let agent = self.agent(Some(session.agent.as_str())).await?;
        let rows = self.sessions_of(&agent, MAX_SESSIONS).await?;
        Ok(rows.into_iter().find(|row| row.session == *session))
    }
}

/// Returns the bounds of each of some previews, which share the room of an answer.
fn preview_bounds(previews: usize, limit: Option<u32>, max_chars: Option<usize>) -> MessageBounds {
    MessageBounds {
        turns: limit.unwrap_or(12).clamp(1, 50),
        bytes: MAX_TEXTS / previews.max(1),
        text: TextBound::Chars(max_chars.unwrap_or(240).clamp(20, 2000)),
    }
}

impl MethodCall {
    pub(super) async fn list_sessions(&self) -> Result<Value, SocketRefusal> {
        let named: Option<String> = self.params.optional("agentId")?;
        let limit: Option<u32> = self.params.optional("limit")?;
        let limit = limit.unwrap_or(DEFAULT_SESSIONS).clamp(1, MAX_SESSIONS);
        let agents = match &named {
            Some(_) => vec![self.tenant.agent(named.as_deref()).await?],
            None => self.tenant.agents().await?,
        };
        let mut rows = Vec::new();
        for agent in &agents {
            rows.extend(self.tenant.sessions_of(agent, limit).await?);
        }
        rows.sort_by_key(|row| std::cmp::Reverse(row.stored.changed));
        rows.truncate(limit as usize);
        let sessions: Vec<_> = rows.iter().map(SessionRow::to_json).collect();
        let count = sessions.len();
        Ok(json!({
            "ts": now(), "path": SHOWN_FOLDER, "count": count, "totalCount": count, "sessions": sessions,
            "defaults": { "modelProvider": null, "model": null, "contextTokens": null },
        }))
    }

    pub(super) async fn describe_session(&self) -> Result<Value, SocketRefusal> {
        let session = self.named_session("key").await?;
        let row = self.tenant.listed_session(&session).await?;
        Ok(json!({ "session": row.map(|row| row.to_json()) }))
    }

    pub(super) async fn resolve_session(&self) -> Result<Value, SocketRefusal> {
        let session = self.named_session("key").await?;
        Ok(json!({ "ok": true, "key": session.to_string() }))
    }

    /// Takes the settings that a session has anyway, as clients send them before their first message.
    pub(super) async fn patch_session(&self) -> Result<Value, SocketRefusal> {
        let session = self.named_session("key").await?;
        let agent = self.tenant.agent(Some(session.agent.as_str())).await?;
        let model: Option<String> = self.params.optional("model")?;
        if model.is_some() && model != agent.model {
            return Err(self.refuse(
                "at /model: must be null, or the model of the agent: `agents.update` changes it, and `agent` takes one for a turn",
            ));
        }
        Ok(json!({ "ok": true, "path": SHOWN_FOLDER, "key": session.to_string(), "entry": {} }))
    }

    /// Refuses to begin the conversation of a session anew: it is the thread of its key.
    pub(super) async fn refuse_reset(&self) -> Result<Value, SocketRefusal> {
        let agent = self.named_session("key").await?.agent;
        Err(SocketRefusal::invalid(
            "SESSION_NOT_RESET",
            format!(
                "a session keeps its conversation: begin another one with a key of its own, such as `agent:{agent}:KEY`"
            ),
        ))
    }

    pub(super) async fn preview_sessions(&self) -> Result<Value, SocketRefusal> {
        let keys: Vec<String> = self.params.required("keys")?;
        if keys.len() > MAX_PREVIEWS {
            return Err(self.refuse(&format!("at /keys: must not have more than {MAX_PREVIEWS} items")));
        }
        let limit: Option<u32> = self.params.optional("limit")?;
        let most: Option<usize> = self.params.optional("maxChars")?;
        let bounds = preview_bounds(keys.len(), limit, most);
        let mut previews = Vec::new();
        for key in keys {
            let session = self.tenant.session(&key, None).await?;
            let items = self.tenant.preview(&session, bounds).await?;
            let status = if items.is_empty() { "empty" } else { "ok" };
            previews.push(json!({ "key": key, "status": status, "items": items }));
        }
        Ok(json!({ "ts": now(), "previews": previews }))
    }

    /// Returns the session that a parameter names.
    pub(super) async fn named_session(&self, name: &str) -> Result<ClientSession, SocketRefusal> {
        let key = self.params.text(name)?;
        let agent: Option<String> = self.params.optional("agentId")?;
        self.tenant.session(&key, agent.as_deref()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateways::socket::methods::message_bounds::TurnTexts;

    /// Each control takes the most bytes in a frame, `\u0001`.
    #[test]
    fn all_previews_fit_into_a_frame() {
        let long = "\u{1}".repeat(4000);
        let turn = TurnTexts { question: &long, asked_at: 1, answer: Some(&long), answered_at: 2 };
        for previews in [1, MAX_PREVIEWS] {
            let mut bounds = preview_bounds(previews, Some(500), Some(9999));
            let mut turns = 0;
            let mut bytes = 0;
            while let Some(messages) = bounds.admit(turn) {
                turns += 1;
                assert!(turns <= 1000, "there is a bound");
                bytes += messages.iter().map(|message| message.to_preview().to_string().len()).sum::<usize>();
            }
            assert!(turns > 0, "each session has room for a turn");
            assert!(bytes * previews < 7 << 20, "{previews} previews have {bytes} bytes each");
        }
    }
}
