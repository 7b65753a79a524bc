//! Shows commands of the gateway's agents that wait for a person, and takes decisions, which the store keeps as those of the
//! HTTP API.
//!
//! Clients of OpenClaw know two forms: its own commands (`exec.approval.*`), and those of plugins, which its TUI shows.

use platform_core::{host_tools::ToolCallState, id::RunId};
use runner_store::{DecideError, StoredToolCall, ToolDecision, ToolVerdict};
use serde_json::{Value, json};

use super::{
    MethodCall,
    command_request::{ALLOW_ALWAYS, ALLOW_ONCE, CommandRequest, DENY},
};
use crate::{
    error::Error,
    gateways::socket::{
        channel::ClientEvent, clock::now, refusal::SocketRefusal, session_key::ClientSession,
        tenant::SocketTenant,
    },
    runs::may_order,
};

/// Most requests of a list.
const MAX_CALLS: u32 = 200;
/// Separator of a run and its call in the id of a request.
const SEPARATOR: char = '/';

/// Form in which a client is shown a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::gateways::socket) enum ApprovalForm {
    Exec,
    Plugin,
}

/// Request of an agent, with the session that it comes from.
struct WaitingCommand {
    call: StoredToolCall,
    session: ClientSession,
}

impl ApprovalForm {
    /// Returns the form that a client shows.
    pub(in crate::gateways::socket) fn of(tenant: &SocketTenant) -> Self {
        if tenant.takes("plugin-approvals") && !tenant.takes("exec-approvals") {
            Self::Plugin
        } else {
            Self::Exec
        }
    }

    const fn requested(self) -> &'static str {
        match self {
            Self::Exec => "exec.approval.requested",
            Self::Plugin => "plugin.approval.requested",
        }
    }

    const fn resolved(self) -> &'static str {
        match self {
            Self::Exec => "exec.approval.resolved",
            Self::Plugin => "plugin.approval.resolved",
        }
    }
}

impl WaitingCommand {
    fn id(&self) -> String {
        id_of(&self.call.run_id, &self.call.call)
    }

    fn request(&self) -> CommandRequest {
        CommandRequest::of(&self.call)
    }

    fn to_json(&self, form: ApprovalForm) -> Value {
        let StoredToolCall { run_id, tool, .. } = &self.call;
        let mut request = match form {
            ApprovalForm::Exec => {
                let mut request = self.request().exec();
                request["runId"] = run_id.as_str().into();
                request
            }
            ApprovalForm::Plugin => {
                let mut request = self.request().plugin();
                request["toolName"] = tool.as_str().into();
                request
            }
        };
        request["agentId"] = self.session.agent.as_str().into();
        request["sessionKey"] = self.session.to_string().into();
        let expires = self.call.decide_by.unwrap_or(self.call.began).0;
        json!({ "id": self.id(), "request": request, "createdAtMs": self.call.began.0, "expiresAtMs": expires })
    }
}

fn id_of(run_id: &RunId, call: &str) -> String {
    format!("{run_id}{SEPARATOR}{call}")
}

/// Returns the event of a request that waits; `None` if it does not wait any more, or belongs to another gateway.
pub(in crate::gateways::socket) async fn approval_event(
    tenant: &SocketTenant,
    run_id: &RunId,
    call: &str,
) -> Result<Option<ClientEvent>, SocketRefusal> {
    let form = ApprovalForm::of(tenant);
    let waiting = tenant.waiting_commands().await?;
    let found =
        waiting.into_iter().find(|waiting| waiting.call.run_id == *run_id && waiting.call.call == call);
    Ok(found.map(|waiting| ClientEvent::new(form.requested(), waiting.to_json(form))))
}

/// Returns the event of a request that was decided.
pub(in crate::gateways::socket) fn resolved_event(
    tenant: &SocketTenant,
    run_id: &RunId,
    call: &str,
    state: ToolCallState,
) -> ClientEvent {
    let is_approved =
        matches!(state, ToolCallState::Approved | ToolCallState::Executing | ToolCallState::Done);
    let decision = if is_approved { ALLOW_ONCE } else { DENY };
    let payload = json!({ "id": id_of(run_id, call), "decision": decision, "ts": now() });
    ClientEvent::new(ApprovalForm::of(tenant).resolved(), payload)
}

impl SocketTenant {
    /// Returns the commands of the gateway's agents that wait for a person of the account.
    async fn waiting_commands(&self) -> Result<Vec<WaitingCommand>, SocketRefusal> {
        let calls = self.store().waiting_tool_calls(&self.scope(), MAX_CALLS).await?;
        let mut waiting = Vec::new();
        for call in calls {
            if call.gateway.as_ref().is_none_or(|key| key.gateway != self.gateway) {
                continue;
            }
            let run = self.store().run_within(&call.run_id, &self.scope()).await?;
            if let Some(found) = self.gateway_run(&run).await? {
                waiting.push(WaitingCommand { call, session: found.session });
            }
        }
        Ok(waiting)
    }

    async fn waiting_command(&self, id: &str) -> Result<WaitingCommand, SocketRefusal> {
        let waiting = self.waiting_commands().await?;
        waiting.into_iter().find(|waiting| waiting.id() == id).ok_or_else(unknown)
    }

    async fn decide(&self, waiting: &WaitingCommand, verdict: ToolVerdict) -> Result<(), SocketRefusal> {
        let store = self.store();
        let run = store.run_within(&waiting.call.run_id, &self.scope()).await?;
        // The command acts for the run: a decision about it takes the right to order the run.
        may_order(store, &self.caller, &run).await?;
        let decision = ToolDecision { verdict, by: self.caller.name() };
        match store.decide_tool_call(&run, &waiting.call.call, &decision).await {
            Ok(_) => Ok(()),
            Err(DecideError::Store(error)) => Err(error.into()),
            Err(DecideError::Unknown { .. } | DecideError::NotWaiting(_) | DecideError::RunEnded { .. }) => {
                Err(unknown())
            }
            Err(error) => Err(Error::NotDecided(error).into()),
        }
    }
}

fn unknown() -> SocketRefusal {
    SocketRefusal::invalid(
        "APPROVAL_NOT_FOUND",
        "unknown or expired approval id: `exec.approval.list` has those that wait",
    )
}

impl MethodCall {
    pub(super) async fn list_approvals(&self, form: ApprovalForm) -> Result<Value, SocketRefusal> {
        let waiting = self.tenant.waiting_commands().await?;
        Ok(waiting.iter().map(|waiting| waiting.to_json(form)).collect())
    }

    pub(super) async fn get_approval(&self) -> Result<Value, SocketRefusal> {
        let waiting = self.tenant.waiting_command(&self.params.text("id")?).await?;
        let mut details = waiting.request().details();
        details["id"] = waiting.id().into();
        details["agentId"] = waiting.session.agent.as_str().into();
        details["expiresAtMs"] = waiting.call.decide_by.map(|at| at.0).into();
        Ok(details)
    }

    pub(super) async fn resolve_approval(&self) -> Result<Value, SocketRefusal> {
        let id = self.params.text("id")?;
        let decision = self.params.text("decision")?;
        let verdict = match decision.as_str() {
            ALLOW_ONCE => ToolVerdict::Approve,
            ALLOW_ALWAYS => {
                self.tenant.caller.refuse_limited()?;
                ToolVerdict::ApproveAlways
            }
            DENY => ToolVerdict::Deny { reason: None },
            _ => {
                let choices = format!("at /decision: must be {ALLOW_ONCE}, {ALLOW_ALWAYS} or {DENY}");
                return Err(self.refuse(&choices));
            }
        };
        let waiting = self.tenant.waiting_command(&id).await?;
        if !waiting.request().offers(&decision) {
            return Err(self.refuse("at /decision: must be deny: the command cannot be read"));
        }
        self.tenant.decide(&waiting, verdict).await?;
        Ok(json!({ "ok": true }))
    }
}
