//! Lists the methods that pass, each with the role that it needs and a closed list of parameters. No other method does
//! anything.

mod agents;
mod approvals;
mod command_request;
mod files;
mod history;
mod message_bounds;
mod orders;
mod service;
mod sessions;
mod waiting;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use gateway_bridge::client_frame::{ClosedList, MethodParams};
use platform_core::json::RawBuf;
use runner_model::principal::PrincipalRole;
use serde_json::Value;

pub(super) use self::approvals::{ApprovalForm, approval_event, resolved_event};
use super::{refusal::SocketRefusal, tenant::SocketTenant};

/// Events that clients are told of.
pub(super) const EVENTS: [&str; 9] = [
    "connect.challenge",
    "agent",
    "chat",
    "tick",
    "sessions.changed",
    "exec.approval.requested",
    "exec.approval.resolved",
    "plugin.approval.requested",
    "plugin.approval.resolved",
];

/// Answer to a request.
pub(super) struct MethodAnswer {
    pub(super) payload: Value,
    /// Second answer to the same request, which comes later.
    pub(super) later: Option<LaterAnswer>,
}

/// Answer that comes later.
pub(super) type LaterAnswer = BoxFuture<'static, Result<Value, SocketRefusal>>;

impl From<Value> for MethodAnswer {
    fn from(payload: Value) -> Self {
        Self { payload, later: None }
    }
}

/// Request of a method, with its parameters.
pub(super) struct MethodCall {
    tenant: Arc<SocketTenant>,
    params: MethodParams,
}

/// Method that passes.
#[derive(Debug)]
struct ListedMethod {
    name: &'static str,
    role: PrincipalRole,
    params: ClosedList,
    action: MethodAction,
}

/// Effect of a method.
#[derive(Debug, Clone, Copy)]
enum MethodAction {
    Agent,
    AgentWait,
    AgentIdentity,
    AgentsCreate,
    AgentsDelete,
    AgentsFilesGet,
    AgentsFilesList,
    AgentsFilesSet,
    AgentsList,
    AgentsUpdate,
    ApprovalGet,
    ApprovalList(ApprovalForm),
    ApprovalResolve,
    ChatAbort,
    ChatHistory,
    ChatSend,
    CommandsList,
    ConfigGet,
    Health,
    ModelsList,
    QuestionList,
    SessionsDescribe,
    SessionsList,
    SessionsPatch,
    SessionsPreview,
    SessionsReset,
    SessionsResolve,
    SessionsSubscribe,
    Status,
}

/// Parameters that name the session of an order, and those that stock clients send beside them.
const ORDER_IGNORED: &[&str] = &["thinking", "deliver", "timeoutMs", "timeout", "sessionId", "lane", "label"];

const fn viewer(name: &'static str, read: &'static [&'static str], action: MethodAction) -> ListedMethod {
    ListedMethod { name, role: PrincipalRole::Viewer, params: ClosedList { read, ignored: &[] }, action }
}

const fn member(name: &'static str, read: &'static [&'static str], action: MethodAction) -> ListedMethod {
    ListedMethod { name, role: PrincipalRole::Member, params: ClosedList { read, ignored: &[] }, action }
}

impl ListedMethod {
    /// Returns the same method, which ignores these parameters as well.
    const fn ignoring(mut self, ignored: &'static [&'static str]) -> Self {
        self.params.ignored = ignored;
        self
    }
}

/// All methods that pass.
const METHODS: [ListedMethod; 31] = [
    viewer("health", &[], MethodAction::Health).ignoring(&["probe"]),
    viewer("status", &[], MethodAction::Status).ignoring(&["includeChannelSummary"]),
    viewer("agents.list", &[], MethodAction::AgentsList),
    member("agents.create", &["name", "avatar", "workspace"], MethodAction::AgentsCreate),
    member("agents.update", &["agentId", "name", "avatar", "model"], MethodAction::AgentsUpdate),
    member("agents.delete", &["agentId", "deleteFiles"], MethodAction::AgentsDelete),
    viewer("agents.files.list", &["agentId"], MethodAction::AgentsFilesList),
    viewer("agents.files.get", &["agentId", "name"], MethodAction::AgentsFilesGet),
    member("agents.files.set", &["agentId", "name", "content"], MethodAction::AgentsFilesSet),
    viewer("agent.identity.get", &["agentId", "sessionKey"], MethodAction::AgentIdentity),
    viewer("sessions.list", &["agentId", "limit"], MethodAction::SessionsList).ignoring(&[
        "offset",
        "activeMinutes",
        "activeOnly",
        "requireLastInteraction",
        "sortBy",
        "includeGlobal",
        "includeUnknown",
        "excludeSubagents",
        "excludeCron",
        "excludeSystem",
        "configuredAgentsOnly",
        "includeDerivedTitles",
        "includeLastMessage",
        "includeActivitySummary",
        "search",
        "spawnedBy",
        "archived",
    ]),
    viewer("sessions.describe", &["key", "agentId"], MethodAction::SessionsDescribe)
        .ignoring(&["includeDerivedTitles", "includeLastMessage"]),
    viewer("sessions.preview", &["keys", "limit", "maxChars"], MethodAction::SessionsPreview),
    viewer("sessions.resolve", &["key", "agentId"], MethodAction::SessionsResolve).ignoring(&[
        "includeGlobal",
        "includeUnknown",
        "allowMissing",
    ]),
    member("sessions.patch", &["key", "agentId", "model"], MethodAction::SessionsPatch)
        .ignoring(&["thinkingLevel"]),
    member("sessions.reset", &["key", "agentId"], MethodAction::SessionsReset).ignoring(&["reason"]),
    viewer("sessions.subscribe", &[], MethodAction::SessionsSubscribe),
    viewer("sessions.unsubscribe", &[], MethodAction::SessionsSubscribe),
    viewer("chat.history", &["sessionKey", "agentId", "limit"], MethodAction::ChatHistory).ignoring(&[
        "maxBytes",
        "maxChars",
        "sessionId",
    ]),
    member("chat.send", &["sessionKey", "agentId", "message", "idempotencyKey"], MethodAction::ChatSend)
        .ignoring(ORDER_IGNORED),
    member("chat.abort", &["sessionKey", "agentId", "runId"], MethodAction::ChatAbort)
        .ignoring(&["preserveSideRuns"]),
    member("agent", &["sessionKey", "agentId", "message", "model", "idempotencyKey"], MethodAction::Agent)
        .ignoring(ORDER_IGNORED),
    viewer("agent.wait", &["runId", "timeoutMs"], MethodAction::AgentWait),
    viewer("exec.approval.list", &[], MethodAction::ApprovalList(ApprovalForm::Exec)),
    viewer("exec.approval.get", &["id"], MethodAction::ApprovalGet),
    member("exec.approval.resolve", &["id", "decision"], MethodAction::ApprovalResolve),
    viewer("plugin.approval.list", &[], MethodAction::ApprovalList(ApprovalForm::Plugin)),
    member("plugin.approval.resolve", &["id", "decision"], MethodAction::ApprovalResolve),
    viewer("config.get", &[], MethodAction::ConfigGet),
    viewer("models.list", &["agentId"], MethodAction::ModelsList).ignoring(&[
        "view",
        "includeDetails",
        "sessionKey",
        "preparedOnly",
        "provider",
    ]),
    viewer("commands.list", &["agentId"], MethodAction::CommandsList).ignoring(&[
        "provider",
        "scope",
        "includeArgs",
        "sessionKey",
    ]),
];

/// Methods that stock clients call, and that have nothing to answer.
const EMPTY_METHODS: [ListedMethod; 1] = [viewer("question.list", &[], MethodAction::QuestionList)];

fn listed() -> impl Iterator<Item = &'static ListedMethod> {
    METHODS.iter().chain(&EMPTY_METHODS)
}

/// Returns the names of the methods that pass.
pub(super) fn names() -> Vec<&'static str> {
    listed().map(|method| method.name).collect()
}

/// Answers a request of the method `name`.
pub(super) async fn answer(
    tenant: Arc<SocketTenant>,
    name: &str,
    params: Option<RawBuf>,
) -> Result<MethodAnswer, SocketRefusal> {
    let method = listed().find(|method| method.name == name).ok_or_else(|| {
        let shown: String = name.chars().take(128).collect();
        SocketRefusal::invalid("METHOD_UNKNOWN", format!("unknown method: {}", shown.escape_default()))
    })?;
    tenant.require(method.role)?;
    let params = MethodParams::of_part(&format!("{name} params"), params.as_ref(), method.params)?;
    MethodCall { tenant, params }.act(method.action).await
}

impl MethodCall {
    /// Refuses the parameters for a reason.
    fn refuse(&self, why: &str) -> SocketRefusal {
        self.params.refuse(why).into()
    }

    async fn act(self, action: MethodAction) -> Result<MethodAnswer, SocketRefusal> {
        match action {
            MethodAction::Agent => return self.order_with_end().await,
            MethodAction::AgentIdentity => self.identify_agent().await,
            MethodAction::AgentWait => self.wait().await,
            MethodAction::AgentsCreate => self.create_agent().await,
            MethodAction::AgentsDelete => self.delete_agent().await,
            MethodAction::AgentsFilesGet => self.get_file().await,
            MethodAction::AgentsFilesList => self.list_files().await,
            MethodAction::AgentsFilesSet => self.set_file().await,
            MethodAction::AgentsList => self.list_agents().await,
            MethodAction::AgentsUpdate => self.update_agent().await,
            MethodAction::ApprovalGet => self.get_approval().await,
            MethodAction::ApprovalList(form) => self.list_approvals(form).await,
            MethodAction::ApprovalResolve => self.resolve_approval().await,
            MethodAction::ChatAbort => self.abort().await,
            MethodAction::ChatHistory => self.read_history().await,
            MethodAction::ChatSend => self.send_chat().await,
            MethodAction::CommandsList => Ok(service::commands()),
            MethodAction::ConfigGet => self.read_config().await,
            MethodAction::Health | MethodAction::Status => self.read_status().await,
            MethodAction::ModelsList => self.list_models().await,
            MethodAction::QuestionList => Ok(service::questions()),
            MethodAction::SessionsDescribe => self.describe_session().await,
            MethodAction::SessionsList => self.list_sessions().await,
            MethodAction::SessionsPatch => self.patch_session().await,
            MethodAction::SessionsPreview => self.preview_sessions().await,
            MethodAction::SessionsReset => self.refuse_reset().await,
            MethodAction::SessionsResolve => self.resolve_session().await,
            MethodAction::SessionsSubscribe => Ok(service::subscription()),
        }
        .map(MethodAnswer::from)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_method_is_listed_once() {
        let names = names();
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
    }

    /// Such parameters override the policy of a session, name a place on the host, or reach another conversation.
    #[test]
    fn no_method_takes_what_overrides_a_policy() {
        for method in listed() {
            let ClosedList { read, ignored } = method.params;
            for name in [
                "outboundHeaders",
                "extraSystemPrompt",
                "cwd",
                "workspace",
                "permissionMode",
                "execHost",
                "attachments",
                "spawnedBy",
                "toolBindings",
                "to",
                "channel",
            ] {
                // The one is a search, and of the other only what names no place passes.
                let is_harmless = [("sessions.list", "spawnedBy"), ("agents.create", "workspace")]
                    .contains(&(method.name, name));
                let is_taken = read.contains(&name) || ignored.contains(&name);
                assert!(is_harmless || !is_taken, "{} takes {name}", method.name);
            }
        }
    }

    #[test]
    fn viewers_change_nothing() {
        let changing = ["send", "abort", "create", "update", "delete", "set", "patch", "reset"];
        for method in listed().filter(|method| method.role == PrincipalRole::Viewer) {
            let last = method.name.rsplit('.').next().unwrap();
            assert!(!changing.contains(&last) && method.name != "agent", "{}", method.name);
        }
    }
}
