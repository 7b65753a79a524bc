//! Turns `chat.send` and `agent` into stored runs, as the chat of the HTTP API does, and `chat.abort` into their cancellation.

use gateway_bridge::client_frame::{MessageKind, read_message};
use platform_core::{
    id::{AgentId, ModelName},
    priority::Priority,
};
use platform_runtime::settings::{Agent, Execution, Settings};
use runner_engine::{
    gateway_agent_choice::GatewayAgentOrder, run_order::RunOrder, run_request::Keep, thread::ThreadOrder,
};
use runner_store::{Created, GatewayAgentKey, Run};
use serde_json::{Value, json};

use super::{MethodAnswer, MethodCall, waiting};
use crate::{
    error::Error,
    gateways::socket::{
        clock::now, refusal::SocketRefusal, session_key::ClientSession, tenant::SocketTenant,
    },
    runs::{self, RepositoryBody, hash_of_value},
};

/// Longest idempotency key, in bytes.
const MAX_KEY: usize = 256;

/// Order of a turn, as a client sends it.
struct TurnOrder {
    session: ClientSession,
    message: String,
    model: Option<ModelName>,
    key: String,
}

impl SocketTenant {
    /// Returns the entry of the catalog through which runs of the caller reach an agent of the gateway.
    fn entry(&self, settings: &Settings, key: &GatewayAgentKey) -> Result<AgentId, SocketRefusal> {
        let reaches =
            |entry: &Agent| entry.mode == Execution::Gateway && entry.gateways.contains(&key.gateway);
        let reaching = || {
            let entries = settings.agents.iter().filter(|(_, entry)| reaches(entry));
            entries.filter(|(id, _)| self.caller.may_run(id).is_ok())
        };
        if let Some((id, _)) = reaching().find(|(_, entry)| entry.gateway_agent == key.agent.as_str()) {
            return Ok(id.clone());
        }
        // A token that is limited to some agents is not for all that their gateways have.
        self.caller.gateway_agent_order(Some(key.agent.clone()))?;
        let first = reaching().next().map(|(id, _)| id.clone());
        first.ok_or_else(|| {
            SocketRefusal::invalid(
                "AGENT_NOT_ORDERABLE",
                format!(
                    "no entry of [agents] that this principal may run reaches gateway {}: an operator adds one with `mode = \"gateway\"`",
                    key.gateway
                ),
            )
        })
    }

    /// Stores an order as a run. The same order again returns the same run.
    async fn submit(&self, order: TurnOrder) -> Result<Run, SocketRefusal> {
        let TurnOrder { session, message, model, key } = order;
        let Some(thread) = session.thread().cloned() else {
            return Err(SocketRefusal::invalid(
                "SESSION_CLOSED",
                "the session is one run alone, and takes no other: name another session",
            ));
        };
        let settings = self.settings();
        let agent = self.key(&session.agent);
        let agent_id = self.entry(&settings, &agent)?;
        let hash = hash_of_value(&json!(["gateway", session.to_string(), message, model]));
        let _permit = self.context.orders.acquire(&self.account).await?;
        let order = RunOrder {
            run_id: self.run_id_of_key(&key)?,
            account: self.account.clone(),
            correlation: self.caller.correlation(Some(thread.clone())),
            agent_id,
            gateway_agent: GatewayAgentOrder::At(agent),
            model,
            image: None,
            limits: self.caller.limits(),
            priority: Priority::default(),
            history: Vec::new(),
            question: message,
            thread: Some(ThreadOrder::behind(thread)),
            repo: RepositoryBody::default().choice(&self.caller),
            host_tools: None,
            keep: Keep::Nothing,
            hash: Some(hash),
        };
        let (Created::New(run) | Created::Existing(run)) =
            runs::submit(&self.context, &self.opened, &self.caller, order, None).await?;
        Ok(run)
    }

    /// Asks for the end of a run.
    async fn cancel(&self, run: &Run) -> Result<(), SocketRefusal> {
        Ok(self.store().request_cancel(&run.run_id).await.map(drop)?)
    }
}

impl MethodCall {
    /// Orders a turn, and answers once it is stored.
    pub(super) async fn send_chat(&self) -> Result<Value, SocketRefusal> {
        let message = self.params.text("message")?;
        if read_message(&message)? == MessageKind::Stop {
            return self.abort().await;
        }
        let run = self.order(message).await?;
        let status = if run.ended.is_some() { "ok" } else { "started" };
        Ok(json!({ "runId": run.run_id.as_str(), "status": status }))
    }

    /// Orders a turn, answers once it is stored, and again at its end.
    pub(super) async fn order_with_end(self) -> Result<MethodAnswer, SocketRefusal> {
        let message = self.params.text("message")?;
        if read_message(&message)? == MessageKind::Stop {
            return Ok(self.abort().await?.into());
        }
        let run = self.order(message).await?;
        let session = self.order_session().await?;
        let payload = json!({
            "runId": run.run_id.as_str(), "sessionKey": session.to_string(), "agentId": session.agent.as_str(),
            "status": "accepted", "acceptedAt": now(),
        });
        let later = waiting::answer_at_end(self.tenant, run.run_id);
        Ok(MethodAnswer { payload, later: Some(Box::pin(later)) })
    }

    async fn order(&self, message: String) -> Result<Run, SocketRefusal> {
        let key = self.params.text("idempotencyKey")?;
        if key.len() > MAX_KEY {
            return Err(self.refuse(&format!("at /idempotencyKey: must not have more than {MAX_KEY} bytes")));
        }
        if self.params.optional("deliver")?.unwrap_or(false) {
            return Err(
                self.refuse("at /deliver: must be false: answers go to the clients of the gateway alone")
            );
        }
        let model: Option<String> = self.params.optional("model")?;
        let model = model.as_deref().map(ModelName::parse).transpose();
        let model = model.map_err(|error| self.refuse(&format!("at /model: {error}")))?;
        let session = self.order_session().await?;
        self.tenant.require_up().await?;
        self.tenant.submit(TurnOrder { session, message, model, key }).await
    }

    /// Returns the session of an order: the main one of an agent, if the order names none.
    async fn order_session(&self) -> Result<ClientSession, SocketRefusal> {
        if self.params.part("sessionKey").is_some() {
            return self.named_session("sessionKey").await;
        }
        let agent: Option<String> = self.params.optional("agentId")?;
        self.tenant.session(crate::gateways::socket::session_key::MAIN, agent.as_deref()).await
    }

    /// Asks for the end of the run that a client names, or of the one that is active in its session.
    pub(super) async fn abort(&self) -> Result<Value, SocketRefusal> {
        let session = self.order_session().await?;
        let named: Option<String> = self.params.optional("runId")?;
        let run = match named {
            Some(named) => {
                let found = self.tenant.run(&named).await?;
                if found.session != session {
                    return Err(self.refuse("at /runId: the run belongs to another session"));
                }
                Some(found.record.run).filter(|run| run.ended.is_none())
            }
            None => self.tenant.active_run(&session).await?,
        };
        let Some(run) = run else { return Ok(json!({ "ok": true, "aborted": false, "runIds": [] })) };
        self.tenant.cancel(&run).await?;
        Ok(
            json!({ "ok": true, "aborted": true, "runId": run.run_id.as_str(), "runIds": [run.run_id.as_str()] }),
        )
    }
}

impl From<runner_engine::run_order::OrderError> for SocketRefusal {
    fn from(error: runner_engine::run_order::OrderError) -> Self {
        Error::from(error).into()
    }
}
