//! Chooses the agent of a gateway that a run uses, among those that people made. It is the one of the order, else the one of
//! the thread that the run continues.

use platform_core::{
    code::{Code, Coded},
    id::{AccountId, AgentId, ExternalId, GatewayAgentId, GatewayId},
};
use platform_runtime::settings::{Agent, Execution, Settings};
use runner_store::{Error as StoreError, GatewayAgent, GatewayAgentKey, Store};

use crate::run_request::RunRequest;

/// Part of an order that decides about the agent of a gateway.
pub(crate) struct GatewayAgentChoice<'o> {
    pub(crate) settings: &'o Settings,
    pub(crate) store: &'o Store,
    pub(crate) agent_id: &'o AgentId,
    pub(crate) account: &'o AccountId,
    /// Thread that the run continues.
    pub(crate) thread: Option<&'o ExternalId>,
}

/// Reason why a run cannot use an agent of a gateway.
#[derive(Debug, thiserror::Error)]
pub enum GatewayAgentError {
    /// The ordered agent does not run at a gateway.
    #[error(
        "{agent} runs at no gateway, so it has no agents to choose from: order one with `mode = \"gateway\"`"
    )]
    NoGateway {
        /// Agent that was ordered.
        agent: AgentId,
    },
    /// No gateway of the ordered agent that serves the account has such an agent.
    #[error(
        "no gateway of {agent} has an agent `{id}` for this account: `sluice gateway agents ls` lists them"
    )]
    Unknown {
        /// Agent of a gateway that was ordered.
        id: GatewayAgentId,
        /// Agent that was ordered.
        agent: AgentId,
    },
    /// The gateway does not have the agent yet.
    #[error("gateway {} does not have the agent `{}` yet{}", key.gateway, key.agent, problem.as_ref().map_or_else(String::new, |problem| format!(": {problem}")))]
    NotReady {
        /// The agent.
        key: GatewayAgentKey,
        /// Reason why the gateway has not got it.
        problem: Option<String>,
    },
    /// The agent cannot be looked up.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Coded for GatewayAgentError {
    fn code(&self) -> Code {
        match self {
            Self::NoGateway { .. } | Self::Unknown { .. } => Code::GatewayAgentUnknown,
            Self::NotReady { .. } => Code::GatewayAgentNotReady,
            Self::Store(error) => error.code(),
        }
    }
}

impl GatewayAgentChoice<'_> {
    /// Returns the agent that people made, if the run uses one: `ordered`, else the one of the thread.
    pub(crate) async fn find(
        &self,
        ordered: Option<GatewayAgentId>,
    ) -> Result<Option<GatewayAgent>, GatewayAgentError> {
        let chosen = match ordered {
            Some(ordered) => Some(ordered),
            None => self.of_thread().await?,
        };
        match chosen {
            Some(chosen) => self.find_made(chosen).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns the agent that the last run of the thread used, unless it is that of the settings. An agent of a gateway
    /// remembers a conversation, and another one knows nothing of it.
    async fn of_thread(&self) -> Result<Option<GatewayAgentId>, GatewayAgentError> {
        let Some((configured, thread)) = self.configured().zip(self.thread) else { return Ok(None) };
        let last = self.store.last_turn(self.account, thread).await?;
        let Some(last) = last.filter(|last| last.run.agent == *self.agent_id) else { return Ok(None) };
        let record = self.store.record(&last.run.run_id).await?;
        let used = RunRequest::stored(&record).ok().map(|request| request.spec.agent.gateway_agent);
        let used = used.filter(|used| *used != configured.gateway_agent);
        Ok(used.and_then(|used| GatewayAgentId::parse(&used).ok()))
    }

    /// Returns the agent `id` that people made in a gateway of the ordered agent.
    async fn find_made(&self, id: GatewayAgentId) -> Result<GatewayAgent, GatewayAgentError> {
        let Some(Agent { gateways, .. }) = self.configured() else {
            return Err(GatewayAgentError::NoGateway { agent: self.agent_id.clone() });
        };
        let serves = |id: &&GatewayId| {
            self.settings.gateways.get(*id).is_some_and(|gateway| gateway.serves(self.account))
        };
        for gateway in gateways.iter().filter(serves) {
            let key = GatewayAgentKey { gateway: gateway.clone(), agent: id.clone() };
            match self.store.gateway_agent(&key).await? {
                Some(found) if found.removed.is_none() && found.applied > 0 => return Ok(found),
                Some(found) if found.removed.is_none() => {
                    return Err(GatewayAgentError::NotReady { key, problem: found.problem });
                }
                _ => {}
            }
        }
        Err(GatewayAgentError::Unknown { id, agent: self.agent_id.clone() })
    }

    /// Returns the ordered agent of the catalog, if it runs at gateways.
    fn configured(&self) -> Option<&Agent> {
        self.settings.agents.get(self.agent_id).filter(|agent| agent.mode == Execution::Gateway)
    }
}
