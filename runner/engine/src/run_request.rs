//! Describes a request to run an agent for an account, and its stored form.

use gateway_bridge::{InvalidSession, SessionKey};
use platform_core::{
    code::{Code, Coded},
    grant::Correlation,
    id::{AccountId, AgentId, ExternalId, GatewayAgentId, RunId, ToolName},
    json::{self, Bounds},
    priority::Priority,
    traceparent::Traceparent,
};
use platform_runtime::settings::{Agent, Execution, ModelLimits, WorkspaceSetup};
use runner_files::StagedFiles;
use runner_model::{behaviour::BehaviourFiles, conversation::Message};
use runner_store::{NewRun, NewTurn, RunRecord, ThreadWorkspaceKey};
use serde::{Deserialize, Serialize};

use crate::relay::RepoOrder;

/// Most characters of a question that lists show.
const MAX_LISTED_QUESTION: usize = 200;

/// A request to run an agent. Equal requests have the same meaning, even if their stored JSON differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRequest {
    /// Id of the run that is requested.
    pub run_id: RunId,
    /// Account that pays for the run.
    pub account: AccountId,
    /// Ids of the application around Sluicegate: its user, session and trace.
    pub correlation: Correlation,
    /// Id of the agent to run.
    pub agent_id: AgentId,
    /// Urgency of the run in the queue.
    pub priority: Priority,
    /// Turn of a thread that the run is to become. The store keeps it; a stored request has none.
    pub turn: Option<NewTurn>,
    /// Agent, model, messages and options of the run.
    pub spec: RunSpec,
}

/// All parts of a request that affect the execution. The same id therefore never names two different runs, and a worker
/// that takes the run over needs nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// Settings of the agent, with the request's changes to limits and image applied.
    pub agent: Agent,
    /// Model that the agent is configured to request.
    pub model: String,
    /// Conversation for the agent; the last message is the question.
    pub messages: Vec<Message>,
    /// Files that the run begins with, staged on its host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<StagedFiles>,
    /// Repository that the run works on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<RepoOrder>,
    /// Host tools that the run may call at most; all that its agent and account have if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_tools: Option<Vec<ToolName>>,
    /// Behaviour files for the workspace.
    #[serde(default, skip_serializing_if = "BehaviourFiles::is_empty")]
    pub behaviour: BehaviourFiles,
    /// Tokens that the model takes and gives.
    #[serde(default, skip_serializing_if = "ModelLimits::is_unknown")]
    pub model_limits: ModelLimits,
    /// Thread that the run continues. At a gateway, it is the run's session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_key: Option<ExternalId>,
    /// Resources that stay when the run has ended.
    #[serde(default)]
    pub keep: Keep,
    /// Hash of the order as an application sent it. An order with the same hash is the same, even if the configuration
    /// has changed in between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order_hash: Option<String>,
    /// Span of the caller; it does not affect the execution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<Traceparent>,
}

/// Resources that stay when the run has ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// Nothing.
    #[default]
    Nothing,
    /// The workspace.
    Workspace,
}

/// Run, agent and account of a request, for display.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'o> {
    /// Id of the requested run.
    pub run_id: &'o RunId,
    /// Id of the agent to run.
    pub agent_id: &'o AgentId,
    /// Account that pays for the run.
    pub account: &'o AccountId,
}

/// A stored request that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("the request of run {run_id} was stored by a program that is not compatible with this one")]
pub struct Unreadable {
    run_id: RunId,
    #[source]
    source: json::Error,
}

impl Coded for Unreadable {
    fn code(&self) -> Code {
        Code::Internal
    }
}

impl RunSpec {
    /// Returns the question: the last message, unless the texts of the run were removed.
    #[must_use]
    pub fn question(&self) -> Option<&str> {
        self.messages.last().map(|message| message.content.as_str())
    }

    /// Returns whether the agent begins in a directory of files that were given to it.
    pub(crate) const fn has_tree(&self) -> bool {
        self.files.is_some() || self.repo.is_some()
    }
}

impl RunRequest {
    /// Returns the run, agent and account of the request.
    pub const fn subject(&self) -> Subject<'_> {
        Subject { run_id: &self.run_id, agent_id: &self.agent_id, account: &self.account }
    }

    /// Returns the request as part of `caller`'s trace.
    pub fn part_of(mut self, caller: Option<Traceparent>) -> Self {
        let trace = caller.and_then(|caller| ExternalId::parse(&caller.trace.to_string()).ok());
        self.correlation.existing_trace = trace;
        self.spec.caller = caller;
        self
    }

    /// Returns the request without a trace.
    fn without_trace(&self) -> Self {
        self.clone().part_of(None)
    }

    /// Returns whether both request the same run, whatever their traces.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let own = self.without_trace();
        let other = other.without_trace();
        let subjects =
            [&own, &other].map(|request| (&request.account, &request.agent_id, &request.correlation));
        subjects[0] == subjects[1] && own.spec == other.spec
    }

    /// Returns the session of a gateway in which the run is a turn.
    pub(crate) fn session_key(&self) -> Result<SessionKey, InvalidSession> {
        // The prefixes keep keys of conversations apart from keys of single runs.
        let key = match &self.spec.state_key {
            Some(key) => thread_part(key),
            None => format!("r{}", self.run_id),
        };
        SessionKey::new(&self.spec.agent.gateway_agent, &self.account, &key)
    }

    /// Returns the key of the workspace that the run shares with other runs of its thread, if it shares one.
    pub fn thread_workspace(&self) -> Option<ThreadWorkspaceKey> {
        let RunSpec { agent, state_key, .. } = &self.spec;
        let is_shared = agent.mode == Execution::Ephemeral && agent.workspace == WorkspaceSetup::Thread;
        let thread = state_key.clone().filter(|_| is_shared)?;
        Some(ThreadWorkspaceKey { account: self.account.clone(), thread, agent: self.agent_id.clone() })
    }

    /// Returns the session if it is shared with other runs, which then wait for each other. Runs that share a workspace
    /// are such a session, too.
    fn shared_session(&self) -> Option<String> {
        if let Some(ThreadWorkspaceKey { account, thread, agent }) = self.thread_workspace() {
            // Of these names, only that of a thread may have spaces.
            return Some(format!("workspace {account} {agent} {thread}"));
        }
        let is_shared = self.spec.agent.mode == Execution::Gateway && self.spec.state_key.is_some();
        is_shared.then(|| self.session_key().ok()).flatten().map(|key| key.to_string())
    }

    /// Returns the row that stores the request.
    pub(crate) fn row(&self) -> Result<NewRun, serde_json::Error> {
        Ok(NewRun {
            run_id: self.run_id.clone(),
            account: self.account.clone(),
            agent: self.agent_id.clone(),
            correlation: self.correlation.clone(),
            priority: self.priority,
            session: self.shared_session(),
            turn: self.turn.clone(),
            model: Some(self.spec.model.clone()),
            question: self.spec.question().map(|text| text.chars().take(MAX_LISTED_QUESTION).collect()),
            wanted: serde_json::to_string(&self.spec)?,
        })
    }

    /// Reads a stored request.
    ///
    /// # Errors
    /// If an incompatible program stored it.
    pub fn stored(record: &RunRecord) -> Result<Self, Unreadable> {
        let run = &record.run;
        let unreadable = |source| Unreadable { run_id: run.run_id.clone(), source };
        Ok(Self {
            run_id: run.run_id.clone(),
            account: run.account.clone(),
            correlation: run.correlation.clone(),
            agent_id: run.agent.clone(),
            priority: run.priority,
            turn: None,
            spec: json::from_str(&record.wanted, Bounds::STORED).map_err(unreadable)?,
        })
    }
}

/// Returns the name of the session in which runs of the thread `thread` of `account` are turns of the gateway's agent
/// `agent`. `None` never in practice: the id of an agent can be part of a name.
#[must_use]
pub fn thread_session(agent: &GatewayAgentId, account: &AccountId, thread: &ExternalId) -> Option<String> {
    SessionKey::new(agent.as_str(), account, &thread_part(thread)).ok().map(|key| key.to_string())
}

fn thread_part(thread: &ExternalId) -> String {
    format!("s{thread}")
}

#[cfg(test)]
mod tests {
    use platform_runtime::settings::{Stream, Template};

    use super::*;

    /// A row of version 0.1.0, in which agents have no `stream` setting.
    const OLD: &str = r#"{"agent":{"name":"Sandbox Agent","description":"LLM agent in an isolated container","image":"reviewer:1","argv":["bash","-c","f() { echo \"${1}{run_id}\"; }; f x"],"protocol":"text","model":"gpt-4o","models":["gpt-4o"],"capabilities":["web_search"],"budget":{"requests":2000,"requests_per_minute":600,"calls_in_flight":32,"total_tokens":50000000,"cost_nanodollars":2500000000},"output_tokens_per_call":8192,"times":{"body_ms":10000,"body_rate":1024,"first_byte_ms":3600000,"between_bytes_ms":900000,"client_ms":300000,"call_ms":3600000},"runtime":120000,"memory":536870912,"pids":256,"milli_cpu":2000,"output":2097152},"model":"gpt-4o","messages":[{"role":"user","content":"Hello"}],"keep":"nothing"}"#;

    /// Such runs wait for each other, also when one of them is started again.
    #[test]
    fn runs_with_one_workspace_are_a_session() {
        let mut request = RunRequest {
            run_id: RunId::parse("r1").unwrap(),
            account: AccountId::parse("acct-1").unwrap(),
            correlation: Correlation::default(),
            agent_id: AgentId::parse("test:sh").unwrap(),
            priority: Priority::default(),
            turn: None,
            spec: json::from_str(OLD, Bounds::STORED).unwrap(),
        };
        request.spec.state_key = Some(ExternalId::parse("my chat").unwrap());
        assert_eq!(request.row().unwrap().session, None, "a workspace for each run");
        request.spec.agent.workspace = WorkspaceSetup::Thread;
        let session = request.row().unwrap().session;
        assert_eq!(session.as_deref(), Some("workspace acct-1 test:sh my chat"));
        let other = RunRequest { account: AccountId::parse("acct-2").unwrap(), ..request.clone() };
        assert_ne!(other.row().unwrap().session, session);
        request.spec.state_key = None;
        assert_eq!(request.row().unwrap().session, None, "no thread");
    }

    #[test]
    fn a_row_of_an_old_version_keeps_its_meaning() {
        let spec: RunSpec = json::from_str(OLD, Bounds::STORED).unwrap();
        assert_eq!(spec.agent.stream, Stream::Progress);
        assert_eq!(spec.agent.argv[2], Template::literal(r#"f() { echo "${1}{run_id}"; }; f x"#));
        let text = serde_json::to_string(&spec).unwrap();
        let again: RunSpec = json::from_str(&text, Bounds::STORED).unwrap();
        assert_eq!(again, spec);
    }
}
