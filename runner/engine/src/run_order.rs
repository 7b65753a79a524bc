//! Builds the request for a run from what a client orders and the configuration.

use std::time::Duration;

use platform_core::{
    budget::Budget,
    closest::suggest_closest,
    code::{Code, Coded},
    grant::Correlation,
    id::{AccountId, AgentId, InvalidId, ModelName, RunId, ToolName},
    money::NanoDollars,
    priority::Priority,
};
use platform_runtime::{
    random,
    settings::{Agent, Execution, Image, Settings},
};
use runner_model::conversation::{Message, Role};
use runner_store::{NewTurn, Store};

use crate::{
    agent_data::{AgentData, BehaviourError},
    gateway_agent_choice::{GatewayAgentChoice, GatewayAgentError, GatewayAgentOrder},
    pricing::{Unpriced, check_price},
    relay::{BranchNames, InvalidRepo, RepoChoice, RepoOrder},
    run_request::{Keep, RunRequest, RunSpec},
    thread::{Continued, History, ThreadOrder},
    tool_lists::{ToolList, ToolLists},
};

/// Order of a run. The configuration adds the rest of a request.
#[derive(Debug, Clone)]
pub struct RunOrder {
    /// Id of the run.
    pub run_id: RunId,
    /// Account that pays.
    pub account: AccountId,
    /// Ids by which the application knows the run.
    pub correlation: Correlation,
    /// Agent to run.
    pub agent_id: AgentId,
    /// Agent of the agent's gateway, or of its OpenClaw.
    pub gateway_agent: GatewayAgentOrder,
    /// Model to ask; the agent's, else the default one, if absent.
    pub model: Option<ModelName>,
    /// Image in place of the agent's.
    pub image: Option<Image>,
    /// Limits that apply beside those of the agent.
    pub limits: OrderLimits,
    /// Priority in the queue.
    pub priority: Priority,
    /// Messages before the question.
    pub history: Vec<Message>,
    /// Question to ask.
    pub question: String,
    /// Thread to continue.
    pub thread: Option<ThreadOrder>,
    /// Repository to work on.
    pub repo: RepoChoice,
    /// Host tools that the run may call at most; all that its agent and account have if absent.
    pub host_tools: Option<Vec<ToolName>>,
    /// Resources that stay when the run has ended.
    pub keep: Keep,
    /// Hash of the order as an application sent it.
    pub hash: Option<String>,
}

/// Returns a new run id. Ids sort by the time of their creation, which is `since_epoch`.
///
/// # Errors
/// Never with times of the next millennia.
pub fn new_run_id(since_epoch: Duration) -> Result<RunId, InvalidId> {
    RunId::parse(&format!("run-{:x}-{:08x}", since_epoch.as_millis(), random::bits() & 0xffff_ffff))
}

/// Agent of an order, and the model that it will ask.
#[derive(Debug, Clone)]
pub struct OrderedAgent {
    /// Settings of the agent.
    pub agent: Agent,
    /// Model to ask.
    pub model: ModelName,
}

/// Limits of an order. The tighter one of each limit and the agent's applies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OrderLimits {
    /// Tokens of prompts and answers.
    pub total_tokens: Option<u64>,
    /// Cost of all calls.
    pub cost: Option<NanoDollars>,
}

/// Reason why an order cannot become a request.
#[derive(Debug, thiserror::Error)]
pub enum OrderError {
    /// The configuration has no such agent.
    #[error("{}", unknown_agent(agent, known))]
    UnknownAgent {
        /// Agent that was ordered.
        agent: AgentId,
        /// Agents of the configuration.
        known: Vec<AgentId>,
    },
    /// The agent may not use the model.
    #[error(
        "{agent} may not use model {model}; it may use: {}",
        models.iter().map(ModelName::as_str).collect::<Vec<_>>().join(", ")
    )]
    NotGranted {
        /// Agent that was ordered.
        agent: AgentId,
        /// Model that was ordered.
        model: ModelName,
        /// Models that the agent may use.
        models: Vec<ModelName>,
        /// Model that an order without one asks, if there is one.
        default: Option<String>,
    },
    /// Neither the order nor the configuration names a model.
    #[error("{agent} has no model: name one, or set its `model` or upstream.default_model")]
    NoModel {
        /// Agent that was ordered.
        agent: AgentId,
    },
    /// The configuration names a model that no call can ask for.
    #[error(
        "the model of {agent} cannot be asked: {fault}; correct `model` in its entry, or upstream.default_model"
    )]
    InvalidModel {
        /// Agent that was ordered.
        agent: AgentId,
        /// Fault of the name.
        fault: InvalidId,
    },
    /// The agent or the account does not have a host tool of the order.
    #[error("{}", tool_not_granted(tool, agent, *lacking, tools))]
    ToolNotGranted {
        /// Agent that was ordered.
        agent: AgentId,
        /// Tool that was ordered.
        tool: ToolName,
        /// List that lacks the tool.
        lacking: ToolList,
        /// Tools that a run of this agent and account may call.
        tools: Vec<ToolName>,
    },
    /// The behaviour files of the agent cannot be used.
    #[error(transparent)]
    Behaviour(#[from] BehaviourError),
    /// The run cannot work on the repository.
    #[error(transparent)]
    Repo(#[from] InvalidRepo),
    /// The agent of the gateway cannot be used.
    #[error(transparent)]
    GatewayAgent(#[from] GatewayAgentError),
    /// A limit of cost applies, and the model has no price.
    #[error(transparent)]
    Unpriced(#[from] Unpriced),
    /// The run's thread cannot be read.
    #[error(transparent)]
    Store(#[from] runner_store::Error),
}

impl Coded for OrderError {
    fn code(&self) -> Code {
        match self {
            Self::UnknownAgent { .. } => Code::UnknownAgent,
            Self::NotGranted { .. } => Code::ModelNotGranted,
            Self::ToolNotGranted { .. } => Code::ToolNotGranted,
            Self::NoModel { .. } => Code::NoModel,
            Self::InvalidModel { .. } => Code::ModelInvalid,
            Self::Behaviour(_) => Code::ConfigurationInvalid,
            Self::GatewayAgent(error) => error.code(),
            Self::Unpriced(_) => Code::ModelUnpriced,
            Self::Repo(InvalidRepo::NotListed { .. }) => Code::RepositoryForbidden,
            Self::Repo(InvalidRepo::NotAllowed { .. }) => Code::RepositoryNotAllowed,
            Self::Repo(InvalidRepo::NoCredential { .. }) => Code::NoRepositoryCredential,
            Self::Repo(_) => Code::InvalidRepository,
            Self::Store(error) => error.code(),
        }
    }
}

fn unknown_agent(agent: &AgentId, known: &[AgentId]) -> String {
    let names: Vec<_> = known.iter().map(AgentId::as_str).collect();
    let meant = suggest_closest(agent.as_str(), names.iter().copied());
    let names = names.join(", ");
    format!("no agent {agent}{meant}; there are: {names}; `sluice agents ls` says which can run")
}

fn tool_not_granted(tool: &ToolName, agent: &AgentId, lacking: ToolList, tools: &[ToolName]) -> String {
    let list = match lacking {
        ToolList::Account => "`host_tools` of the account".to_owned(),
        ToolList::Agent | ToolList::Order => format!("`host_tools` of {agent}"),
    };
    let tools: Vec<_> = tools.iter().map(ToolName::as_str).collect();
    let tools = if tools.is_empty() { "none".to_owned() } else { tools.join(", ") };
    format!("the run may not call {tool}: it is not in {list}; such a run may call: {tools}")
}

impl OrderLimits {
    /// Returns the tighter one of each limit of both.
    #[must_use]
    pub fn tightest(self, other: Self) -> Self {
        Self {
            total_tokens: tighter(self.total_tokens, other.total_tokens),
            cost: tighter(self.cost, other.cost),
        }
    }

    /// Returns whether a run with `budget` stays within these limits.
    #[must_use]
    pub fn allow(self, budget: &Budget) -> bool {
        let mut limited = *budget;
        self.apply_to(&mut limited);
        limited == *budget
    }

    fn apply_to(self, budget: &mut Budget) {
        budget.total_tokens = tighter(budget.total_tokens, self.total_tokens);
        budget.cost_nanodollars = tighter(budget.cost_nanodollars, self.cost);
    }
}

/// Returns the tighter of two limits.
fn tighter<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

/// Checks that the run may call every host tool that its order names.
fn check_tools(settings: &Settings, request: &RunRequest) -> Result<(), OrderError> {
    let lists = ToolLists::of(request, settings);
    let Some((tool, lacking)) = lists.refused() else { return Ok(()) };
    Err(OrderError::ToolNotGranted {
        agent: request.agent_id.clone(),
        tool: tool.clone(),
        lacking,
        tools: ToolLists { order: None, ..lists }.granted(),
    })
}

impl OrderedAgent {
    /// Finds the agent `id`, and its model unless `model` is ordered.
    ///
    /// # Errors
    /// If the settings have no such agent, or it has no model or not that one.
    pub fn find(settings: &Settings, id: &AgentId, model: Option<ModelName>) -> Result<Self, OrderError> {
        let Some(agent) = settings.agents.get(id).cloned() else {
            let known = settings.agents.keys().cloned().collect();
            return Err(OrderError::UnknownAgent { agent: id.clone(), known });
        };
        let configured = agent.model.as_ref().or(settings.upstream.default_model.as_ref());
        let model = match (model, configured) {
            (Some(model), _) if agent.models.is_empty() || agent.models.contains(&model) => model,
            (Some(model), _) => {
                let default = configured.cloned();
                return Err(OrderError::NotGranted {
                    agent: id.clone(),
                    model,
                    models: agent.models,
                    default,
                });
            }
            (None, Some(model)) => ModelName::parse(model)
                .map_err(|fault| OrderError::InvalidModel { agent: id.clone(), fault })?,
            (None, None) => return Err(OrderError::NoModel { agent: id.clone() }),
        };
        Ok(Self { agent, model })
    }
}

impl RunOrder {
    /// Returns the request for this run under `settings`, as the next turn of its thread in `store`.
    ///
    /// # Errors
    /// If the settings do not allow such a run, or its thread cannot be read.
    pub async fn request(mut self, settings: &Settings, store: &Store) -> Result<RunRequest, OrderError> {
        let choice = GatewayAgentChoice {
            settings,
            store,
            agent_id: &self.agent_id,
            account: &self.account,
            thread: self.thread.as_ref().map(|thread| &thread.key),
        };
        let chosen = choice.find(self.gateway_agent.clone()).await?;
        let model = self.model.take().or_else(|| chosen.model());
        let OrderedAgent { mut agent, model } = OrderedAgent::find(settings, &self.agent_id, model)?;
        chosen.apply_to(&mut agent);
        self.limits.apply_to(&mut agent.budget);
        if let Some(image) = self.image.take() {
            agent.image = image;
        }
        let AgentData { instructions, behaviour, model_limits } =
            AgentData::of(&agent, model.as_str(), settings)?;
        let thread = self.thread.as_ref().map(|thread| &thread.key);
        let names = BranchNames { run_id: &self.run_id, account: &self.account, thread };
        let repo = RepoOrder::read(&self.repo, &agent, names, settings)?;
        let state_key = self.thread.as_ref().map(|thread| thread.key.clone());
        let (turn, earlier) = self.continue_thread(&agent, store).await?;
        let mut messages: Vec<_> = instructions.into_iter().chain(earlier).chain(self.history).collect();
        messages.push(Message { role: Role::User, content: self.question });
        let request = RunRequest {
            run_id: self.run_id,
            account: self.account,
            correlation: self.correlation,
            agent_id: self.agent_id,
            priority: self.priority,
            turn,
            spec: RunSpec {
                agent,
                model: model.to_string(),
                messages,
                behaviour,
                model_limits,
                files: None,
                repo,
                host_tools: self.host_tools,
                state_key,
                keep: self.keep,
                order_hash: self.hash,
                caller: None,
            },
        };
        check_price(settings, &request)?;
        check_tools(settings, &request)?;
        Ok(request)
    }

    /// Returns the turn that the run is of its thread, and the messages before it.
    async fn continue_thread(
        &mut self,
        agent: &Agent,
        store: &Store,
    ) -> Result<(Option<NewTurn>, Vec<Message>), OrderError> {
        let Some(thread) = self.thread.take() else { return Ok((None, Vec::new())) };
        let kept = match agent.mode {
            Execution::Ephemeral => History::Given,
            Execution::Gateway => History::AtGateway,
        };
        let Continued { turn, history } = thread.continued(store, &self.account, &self.run_id, kept).await?;
        Ok((Some(NewTurn { question: self.question.clone(), ..turn }), history))
    }
}
