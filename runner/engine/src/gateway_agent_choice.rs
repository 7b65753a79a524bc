//! Chooses the agent that a run uses below that of the catalog. At a gateway it is among those that people made, in a
//! container of OpenClaw among those that the entry describes. It is the one of the order, else the one of the thread that
//! the run continues.

use platform_core::{
    closest::suggest_closest,
    code::{Code, Coded},
    id::{AccountId, AgentId, ExternalId, GatewayAgentId, GatewayId, ModelName},
};
use platform_runtime::settings::{Agent, Execution, Settings};
use runner_store::{Error as StoreError, GatewayAgent, GatewayAgentKey, NewGatewayAgent, Store};

use crate::run_request::RunRequest;

/// Agent of a gateway, or of an entry's OpenClaw, that an order asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum GatewayAgentOrder {
    /// The one of the thread that the run continues, else the one of the settings.
    #[default]
    Unnamed,
    /// The one of the settings, whatever the thread had: the caller may use no other.
    Configured,
    /// The one with this id.
    Named(GatewayAgentId),
    /// The one with this id in this gateway, and in no other of the ordered agent's gateways.
    At(GatewayAgentKey),
}

impl From<Option<GatewayAgentId>> for GatewayAgentOrder {
    fn from(named: Option<GatewayAgentId>) -> Self {
        named.map_or(Self::Unnamed, Self::Named)
    }
}

/// Agent that a run uses.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ChosenAgent {
    /// The one of the settings.
    Configured,
    /// The one of the settings, in this gateway.
    ConfiguredAt(GatewayId),
    /// Agent that people made in a gateway.
    Made(Box<GatewayAgent>),
    /// Agent of OpenClaw that the entry describes.
    Described(GatewayAgentId),
}

impl ChosenAgent {
    /// Returns the model that people chose for it, if they did.
    pub(crate) fn model(&self) -> Option<ModelName> {
        match self {
            Self::Made(made) => made.agent.settings.model.clone(),
            Self::Configured | Self::ConfiguredAt(_) | Self::Described(_) => None,
        }
    }

    /// Makes the run of `agent` use it.
    pub(crate) fn apply_to(self, agent: &mut Agent) {
        match self {
            Self::Configured => {}
            Self::ConfiguredAt(gateway) => agent.gateways = vec![gateway],
            Self::Made(made) => {
                let GatewayAgent { agent: NewGatewayAgent { key, .. }, .. } = *made;
                agent.gateway_agent = key.agent.to_string();
                agent.gateways = vec![key.gateway];
            }
            Self::Described(id) => agent.gateway_agent = id.to_string(),
        }
    }
}

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
    /// The entry of the ordered agent describes no such agent of OpenClaw.
    #[error("{}", not_described(id, agent, known))]
    NotDescribed {
        /// Agent of OpenClaw that was ordered.
        id: GatewayAgentId,
        /// Agent that was ordered.
        agent: AgentId,
        /// Agents of OpenClaw that may be ordered.
        known: Vec<String>,
    },
    /// The entry describes the thread's agent of OpenClaw no more.
    #[error(
        "the thread's agent `{id}` was removed from `openclaw_agents` of {agent}: name one of {}, or start another thread",
        known.join(", ")
    )]
    RemovedFromEntry {
        /// Agent of OpenClaw that the thread used.
        id: GatewayAgentId,
        /// Agent that was ordered.
        agent: AgentId,
        /// Agents of OpenClaw that may be ordered.
        known: Vec<String>,
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
    /// The agent of the thread was removed.
    #[error("the thread's agent `{}` was removed from gateway {}: start another thread", .0.agent, .0.gateway)]
    Removed(GatewayAgentKey),
    /// The gateway does not have the newest state of the agent.
    #[error("gateway {} does not have the newest state of its agent `{}` yet{}", key.gateway, key.agent, problem.as_ref().map_or_else(String::new, |problem| format!(": {problem}")))]
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
            Self::NoGateway { .. }
            | Self::NotDescribed { .. }
            | Self::RemovedFromEntry { .. }
            | Self::Unknown { .. }
            | Self::Removed(_) => Code::GatewayAgentUnknown,
            Self::NotReady { .. } => Code::GatewayAgentNotReady,
            Self::Store(error) => error.code(),
        }
    }
}

fn not_described(id: &GatewayAgentId, agent: &AgentId, known: &[String]) -> String {
    let meant = suggest_closest(id.as_str(), known.iter().map(String::as_str));
    let known = known.join(", ");
    format!(
        "`openclaw_agents` of {agent} describes no `{id}`{meant}: name one of {known}, or describe it there"
    )
}

impl GatewayAgentChoice<'_> {
    /// Returns the agent that the run uses.
    pub(crate) async fn find(&self, ordered: GatewayAgentOrder) -> Result<ChosenAgent, GatewayAgentError> {
        if let GatewayAgentOrder::At(key) = ordered {
            return self.find_at(key).await;
        }
        let entry = self.settings.agents.get(self.agent_id);
        match entry.filter(|entry| !entry.openclaw_agents.is_empty()) {
            Some(entry) => self.find_described(entry, ordered).await,
            None => {
                let made = self.find_at_gateway(ordered).await?;
                Ok(made.map_or(ChosenAgent::Configured, |made| ChosenAgent::Made(Box::new(made))))
            }
        }
    }

    /// Returns the agent among those of OpenClaw that `entry` describes. The one of a thread is refused once it has been
    /// removed: `main`, which has more tools, would be a surprise.
    async fn find_described(
        &self,
        entry: &Agent,
        ordered: GatewayAgentOrder,
    ) -> Result<ChosenAgent, GatewayAgentError> {
        let agent = self.agent_id.clone();
        let known = entry.openclaw_agent_ids();
        let is_known = |id: &GatewayAgentId| known.iter().any(|known| known == id.as_str());
        match ordered {
            GatewayAgentOrder::Named(id) if is_known(&id) => Ok(ChosenAgent::Described(id)),
            GatewayAgentOrder::Named(id) | GatewayAgentOrder::At(GatewayAgentKey { agent: id, .. }) => {
                Err(GatewayAgentError::NotDescribed { id, agent, known })
            }
            // A caller that may name none continues what it was given, with the tools of then.
            GatewayAgentOrder::Configured | GatewayAgentOrder::Unnamed => {
                let last = self.last_agent().await?.filter(|last| last.mode == Execution::Ephemeral);
                match last.and_then(|last| GatewayAgentId::parse(&last.gateway_agent).ok()) {
                    None => Ok(ChosenAgent::Configured),
                    Some(id) if is_known(&id) => Ok(ChosenAgent::Described(id)),
                    Some(id) => Err(GatewayAgentError::RemovedFromEntry { id, agent, known }),
                }
            }
        }
    }

    /// Returns the agent that people made in a gateway, if the run uses one.
    async fn find_at_gateway(
        &self,
        ordered: GatewayAgentOrder,
    ) -> Result<Option<GatewayAgent>, GatewayAgentError> {
        match ordered {
            GatewayAgentOrder::Configured => Ok(None),
            GatewayAgentOrder::Named(id) => self.find_named(id).await,
            GatewayAgentOrder::At(key) => self.find_made(&key).await,
            GatewayAgentOrder::Unnamed => match self.of_thread().await? {
                Some(key) => match self.find_made(&key).await? {
                    // The settings may have named another agent at the time.
                    None if self.is_configured(&key) => Ok(None),
                    None => Err(GatewayAgentError::Removed(key)),
                    found => Ok(found),
                },
                None => Ok(None),
            },
        }
    }

    /// Returns the agent `key`, of that gateway alone.
    async fn find_at(&self, key: GatewayAgentKey) -> Result<ChosenAgent, GatewayAgentError> {
        let Some(entry) = self.configured() else {
            return Err(GatewayAgentError::NoGateway { agent: self.agent_id.clone() });
        };
        let unknown = |id| GatewayAgentError::Unknown { id, agent: self.agent_id.clone() };
        if !entry.gateways.contains(&key.gateway) || !self.serves(&key.gateway) {
            return Err(unknown(key.agent));
        }
        if entry.gateway_agent == key.agent.as_str() {
            return Ok(ChosenAgent::ConfiguredAt(key.gateway));
        }
        let made = self.find_made(&key).await?.ok_or_else(|| unknown(key.agent))?;
        Ok(ChosenAgent::Made(Box::new(made)))
    }

    /// Returns the agent that the last run of the thread used, unless it is that of the settings. An agent of a gateway
    /// remembers a conversation, and another one knows nothing of it.
    async fn of_thread(&self) -> Result<Option<GatewayAgentKey>, GatewayAgentError> {
        let Some(configured) = self.configured() else { return Ok(None) };
        let used = self.last_agent().await?;
        let Some(used) = used.filter(|used| used.gateway_agent != configured.gateway_agent) else {
            return Ok(None);
        };
        let agent = GatewayAgentId::parse(&used.gateway_agent).ok();
        let gateway = used.gateways.into_iter().next();
        Ok(gateway.zip(agent).map(|(gateway, agent)| GatewayAgentKey { gateway, agent }))
    }

    /// Returns the settings with which the last run of the thread used the ordered agent, if it did.
    async fn last_agent(&self) -> Result<Option<Agent>, GatewayAgentError> {
        let Some(thread) = self.thread else { return Ok(None) };
        let last = self.store.last_turn(self.account, thread).await?;
        let Some(last) = last.filter(|last| last.run.agent == *self.agent_id) else { return Ok(None) };
        let record = self.store.record(&last.run.run_id).await?;
        Ok(RunRequest::stored(&record).ok().map(|request| request.spec.agent))
    }

    /// Returns the agent `id` of a gateway of the ordered agent; `None` if that is the one of the settings.
    async fn find_named(&self, id: GatewayAgentId) -> Result<Option<GatewayAgent>, GatewayAgentError> {
        let Some(agent) = self.configured() else {
            return Err(GatewayAgentError::NoGateway { agent: self.agent_id.clone() });
        };
        if agent.gateway_agent == id.as_str() {
            return Ok(None);
        }
        let mut not_ready = None;
        for gateway in agent.gateways.iter().filter(|gateway| self.serves(gateway)) {
            let key = GatewayAgentKey { gateway: gateway.clone(), agent: id.clone() };
            match self.find_made(&key).await {
                Ok(Some(found)) => return Ok(Some(found)),
                Ok(None) => {}
                Err(error @ GatewayAgentError::NotReady { .. }) => not_ready = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(not_ready.unwrap_or(GatewayAgentError::Unknown { id, agent: self.agent_id.clone() }))
    }

    /// Returns an agent that its gateway has as its account wants it now; `None` if it is unknown, or being removed.
    async fn find_made(&self, key: &GatewayAgentKey) -> Result<Option<GatewayAgent>, GatewayAgentError> {
        let found = self.store.gateway_agent(key).await?;
        let found = found.filter(|found| found.removed.is_none() && self.is_of_account(found));
        match found {
            // A run under what was allowed before would be a surprise to who has just forbidden it.
            Some(found) if !found.is_applied() => {
                Err(GatewayAgentError::NotReady { key: key.clone(), problem: found.problem })
            }
            found => Ok(found),
        }
    }

    /// Returns whether the gateway may have the agent without its having been made here.
    fn is_configured(&self, key: &GatewayAgentKey) -> bool {
        let gateway = self.settings.gateways.get(&key.gateway);
        gateway.is_none_or(|gateway| !gateway.is_managed() || gateway.has_fixed_agent(key.agent.as_str()))
    }

    /// Returns whether `found` was made for the account that its gateway serves now.
    fn is_of_account(&self, found: &GatewayAgent) -> bool {
        let gateway = self.settings.gateways.get(&found.agent.key.gateway);
        gateway.is_some_and(|gateway| gateway.account == found.agent.account && gateway.serves(self.account))
    }

    fn serves(&self, gateway: &GatewayId) -> bool {
        self.settings.gateways.get(gateway).is_some_and(|gateway| gateway.serves(self.account))
    }

    /// Returns the ordered agent of the catalog, if it runs at gateways.
    fn configured(&self) -> Option<&Agent> {
        self.settings.agents.get(self.agent_id).filter(|agent| agent.mode == Execution::Gateway)
    }
}
