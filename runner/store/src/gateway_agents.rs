//! Keeps agents in gateways that people made: their settings, and how far their gateways have them.
//!
//! Each change raises the revision, and the worker of a gateway applies the newest one. A change names the revision that it
//! was made from: of two changes at once, the second is told of the first.

use std::fmt;

use platform_core::id::{AccountId, GatewayAgentId, GatewayId, ModelName};
use runner_model::gateway_agent::{
    AgentName, AllowedCommand, AvatarSeed, Capabilities, MAX_ALLOWED_COMMANDS,
};
use serde::{Deserialize, Serialize};
use sqlx::{Row, any::AnyRow};

use super::{
    Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{count, number, optional, parsed, storable, stored_json, text, time},
};

/// Most agents that people make in one gateway.
pub const MAX_GATEWAY_AGENTS: u32 = 100;
const ACTION: &str = "store an agent of a gateway";
const READ: &str = "read agents of gateways";

const ADD: &str = "INSERT INTO gateway_agents (installation, gateway, agent, account, workspace, settings, revision, applied, \
     step, problem, removed, created, changed) VALUES ($1, $2, $3, $4, $5, $6, 1, 0, NULL, NULL, NULL, $7, $7) \
     ON CONFLICT (installation, gateway, agent) DO NOTHING";
const FIND: &str = "SELECT * FROM gateway_agents WHERE installation = $1 AND gateway = $2 AND agent = $3";
const OF_GATEWAY: &str =
    "SELECT * FROM gateway_agents WHERE installation = $1 AND gateway = $2 ORDER BY agent";
const PENDING: &str = "SELECT DISTINCT gateway FROM gateway_agents WHERE installation = $1 AND applied < revision ORDER BY gateway";
const COUNT: &str = "SELECT COUNT(*) FROM gateway_agents WHERE installation = $1 AND gateway = $2";
const CHANGE: &str = "UPDATE gateway_agents SET settings = $1, revision = $2, applied = $3, problem = $4, changed = $5 \
     WHERE installation = $6 AND gateway = $7 AND agent = $8";
const REMOVE: &str = "UPDATE gateway_agents SET removed = $1, revision = revision + 1, problem = NULL, changed = $1 \
     WHERE installation = $2 AND gateway = $3 AND agent = $4 AND removed IS NULL";
const TOUCH: &str = "UPDATE gateway_agents SET revision = revision + 1, problem = NULL, changed = $1 \
     WHERE installation = $2 AND gateway = $3 AND agent = $4 AND removed IS NULL";
const WORKSPACE: &str = "UPDATE gateway_agents SET workspace = $1 \
     WHERE installation = $2 AND gateway = $3 AND agent = $4";
const STEP: &str = "UPDATE gateway_agents SET step = $1, problem = $2 \
     WHERE installation = $3 AND gateway = $4 AND agent = $5 AND revision = $6 AND applied < revision";
const APPLIED: &str = "UPDATE gateway_agents SET applied = $1, step = NULL, problem = NULL \
     WHERE installation = $2 AND gateway = $3 AND agent = $4 AND applied < $1";
const DELETE: &str = "DELETE FROM gateway_agents WHERE installation = $1 AND gateway = $2 AND agent = $3 \
     AND removed IS NOT NULL AND applied = revision";
const DELETE_FILES: &str = "DELETE FROM gateway_agent_files WHERE installation = $1 AND gateway = $2 AND agent = $3 \
     AND NOT EXISTS (SELECT 1 FROM gateway_agents WHERE installation = $1 AND gateway = $2 AND agent = $3)";

/// Name of an agent: its gateway, and its id there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct GatewayAgentKey {
    /// The gateway.
    pub gateway: GatewayId,
    /// Id of the agent there.
    pub agent: GatewayAgentId,
}

impl GatewayAgentKey {
    /// Reads `GATEWAY/AGENT`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (gateway, agent) = text.split_once('/')?;
        Some(Self { gateway: GatewayId::parse(gateway).ok()?, agent: GatewayAgentId::parse(agent).ok()? })
    }

    /// Reads the agent of a session, `GATEWAY/agent:AGENT:…`.
    pub(super) fn of_session(name: &str) -> Option<Self> {
        let (gateway, session) = name.split_once('/')?;
        let (agent, _rest) = session.strip_prefix("agent:")?.split_once(':')?;
        Some(Self { gateway: GatewayId::parse(gateway).ok()?, agent: GatewayAgentId::parse(agent).ok()? })
    }
}

impl fmt::Display for GatewayAgentKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.gateway, self.agent)
    }
}

/// Settings of an agent that people choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayAgentSettings {
    /// Name for people.
    pub name: AgentName,
    /// Seed of its picture; the name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub avatar: Option<AvatarSeed>,
    /// Model of its runs, unless an order names another; that of the entry in `[agents]` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelName>,
    /// Its capabilities.
    pub capabilities: Capabilities,
}

/// Agent to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewGatewayAgent {
    /// Its gateway and its id.
    pub key: GatewayAgentKey,
    /// Account that the gateway serves; absent if accounts share it.
    pub account: Option<AccountId>,
    /// Directory of its files, at its gateway.
    pub workspace: String,
    /// Its settings.
    pub settings: GatewayAgentSettings,
}

/// Agent, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayAgent {
    /// The agent.
    pub agent: NewGatewayAgent,
    /// Number of its changes.
    pub revision: u64,
    /// Revision that its gateway has; 0 before it has the agent.
    pub applied: u64,
    /// Step of applying the newest revision: the one that is being taken, or that failed.
    pub step: Option<String>,
    /// Reason why that step failed.
    pub problem: Option<String>,
    /// Time at which its removal was ordered.
    pub removed: Option<UnixMillis>,
    /// Time at which it was made.
    pub created: UnixMillis,
    /// Time of its last change.
    pub changed: UnixMillis,
}

/// Outcome of adding an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayAgentAdded {
    /// The agent is stored.
    New(Box<GatewayAgent>),
    /// Another one has its id.
    Exists(Box<GatewayAgent>),
    /// The gateway has as many agents as it may have.
    TooMany,
}

/// Outcome of changing an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GatewayAgentChanged {
    /// The agent is changed.
    Changed(Box<GatewayAgent>),
    /// The agent was changed since the revision that the change was made from. It is this now.
    Conflict(Box<GatewayAgent>),
    /// The agent does not exist, or is being removed.
    Unknown,
}

impl GatewayAgent {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        let key = GatewayAgentKey {
            gateway: parsed(row, "gateway", |text| GatewayId::parse(text).ok())?,
            agent: parsed(row, "agent", |text| GatewayAgentId::parse(text).ok())?,
        };
        let agent = NewGatewayAgent {
            key,
            account: optional(row, "account", |text| AccountId::parse(text).ok())?,
            workspace: text(row, "workspace")?,
            settings: parsed(row, "settings", stored_json)?,
        };
        Ok(Self {
            agent,
            revision: count(row, "revision")?,
            applied: count(row, "applied")?,
            step: row.try_get("step").map_err(failed(READ))?,
            problem: row.try_get("problem").map_err(failed(READ))?,
            removed: time(row, "removed")?,
            created: UnixMillis(number(row, "created")?),
            changed: UnixMillis(number(row, "changed")?),
        })
    }

    /// Returns whether its gateway has its newest revision.
    #[must_use]
    pub const fn is_applied(&self) -> bool {
        self.applied == self.revision
    }

    /// Returns how far its gateway has it, in a word.
    #[must_use]
    pub const fn state_word(&self) -> &'static str {
        match (&self.removed, self.is_applied(), &self.problem) {
            (Some(_), _, _) => "removing",
            (None, true, _) => "applied",
            (None, false, Some(_)) => "failed",
            (None, false, None) => "applying",
        }
    }
}

impl Store {
    /// Stores a new agent of a gateway, which has at most [`MAX_GATEWAY_AGENTS`].
    pub async fn add_gateway_agent(&self, new: &NewGatewayAgent) -> Result<GatewayAgentAdded, Error> {
        self.write(async |mut tx| {
            if let Some(existing) = self.find_gateway_agent(&mut tx, &new.key).await? {
                return tx.finish(ACTION, GatewayAgentAdded::Exists(Box::new(existing))).await;
            }
            let query = sqlx::query_scalar(COUNT).bind(self.installation.as_str());
            let query = query.bind(new.key.gateway.as_str());
            let known: i64 = query.fetch_one(tx.connection()).await.map_err(failed(READ))?;
            if known >= i64::from(MAX_GATEWAY_AGENTS) {
                return tx.finish(ACTION, GatewayAgentAdded::TooMany).await;
            }
            let adding = sqlx::query(ADD)
                .bind(self.installation.as_str())
                .bind(new.key.gateway.as_str())
                .bind(new.key.agent.as_str())
                .bind(new.account.as_ref().map(AccountId::as_str))
                .bind(storable(&new.workspace))
                .bind(settings_json(&new.settings)?)
                .bind(tx.now);
            let added = adding.execute(tx.connection()).await.map_err(failed(ACTION))?;
            let stored =
                self.find_gateway_agent(&mut tx, &new.key).await?.ok_or_else(|| missing(&new.key))?;
            let outcome = match added.rows_affected() {
                0 => GatewayAgentAdded::Exists(Box::new(stored)),
                _ => GatewayAgentAdded::New(Box::new(stored)),
            };
            tx.finish(ACTION, outcome).await
        })
        .await
    }

    /// Stores settings that were made from revision `base` of an agent.
    pub async fn change_gateway_agent(
        &self,
        key: &GatewayAgentKey,
        base: u64,
        settings: &GatewayAgentSettings,
    ) -> Result<GatewayAgentChanged, Error> {
        self.write(async |mut tx| {
            let Some(stored) = self.gateway_agent_to_change(&mut tx, key).await? else {
                return tx.finish(ACTION, GatewayAgentChanged::Unknown).await;
            };
            if stored.agent.settings == *settings {
                return tx.finish(ACTION, GatewayAgentChanged::Changed(Box::new(stored))).await;
            }
            if stored.revision != base {
                return tx.finish(ACTION, GatewayAgentChanged::Conflict(Box::new(stored))).await;
            }
            let changed = self.update_gateway_agent(&mut tx, &stored, settings).await?;
            tx.finish(ACTION, GatewayAgentChanged::Changed(Box::new(changed))).await
        })
        .await
    }

    /// Orders the removal of an agent, and returns it; `None` if it is unknown, or being removed.
    pub async fn remove_gateway_agent(&self, key: &GatewayAgentKey) -> Result<Option<GatewayAgent>, Error> {
        self.write(async |mut tx| {
            let removing = sqlx::query(REMOVE)
                .bind(tx.now)
                .bind(self.installation.as_str())
                .bind(key.gateway.as_str())
                .bind(key.agent.as_str());
            let removed = removing.execute(tx.connection()).await.map_err(failed(ACTION))?;
            let stored = self.find_gateway_agent(&mut tx, key).await?;
            tx.finish(ACTION, stored.filter(|_| removed.rows_affected() > 0)).await
        })
        .await
    }

    /// Returns an agent.
    pub async fn gateway_agent(&self, key: &GatewayAgentKey) -> Result<Option<GatewayAgent>, Error> {
        self.read(async |mut tx| {
            let stored = self.find_gateway_agent(&mut tx, key).await?;
            tx.finish(READ, stored).await
        })
        .await
    }

    /// Returns the agents of a gateway, by their ids; those that are being removed, too.
    pub async fn gateway_agents(&self, gateway: &GatewayId) -> Result<Vec<GatewayAgent>, Error> {
        self.retry(async || {
            let query = sqlx::query(OF_GATEWAY).bind(self.installation.as_str()).bind(gateway.as_str());
            let rows = query.fetch_all(&self.pool).await.map_err(failed(READ))?;
            rows.iter().map(GatewayAgent::read).collect()
        })
        .await
    }

    /// Returns the gateways that lack the newest revision of an agent.
    pub async fn gateways_with_changed_agents(&self) -> Result<Vec<GatewayId>, Error> {
        self.retry(async || {
            let query = sqlx::query(PENDING).bind(self.installation.as_str());
            let rows = query.fetch_all(&self.pool).await.map_err(failed(READ))?;
            rows.iter().map(|row| parsed(row, "gateway", |text| GatewayId::parse(text).ok())).collect()
        })
        .await
    }

    /// Stores the step that is being taken to apply `revision` of an agent, or that failed for the reason in `problem`. A
    /// later revision keeps its own.
    pub async fn store_gateway_agent_step(
        &self,
        key: &GatewayAgentKey,
        revision: u64,
        step: &str,
        problem: Option<&str>,
    ) -> Result<(), Error> {
        self.write(async |mut tx| {
            let storing = sqlx::query(STEP)
                .bind(step)
                .bind(problem.map(storable))
                .bind(self.installation.as_str())
                .bind(key.gateway.as_str())
                .bind(key.agent.as_str())
                .bind(i64::try_from(revision).unwrap_or(i64::MAX));
            storing.execute(tx.connection()).await.map_err(failed(ACTION))?;
            tx.commit(ACTION).await
        })
        .await
    }

    /// Stores that the gateway has `revision` of an agent; forgets an agent that this revision removes.
    pub async fn store_gateway_agent_applied(
        &self,
        key: &GatewayAgentKey,
        revision: u64,
    ) -> Result<(), Error> {
        let revision = i64::try_from(revision).unwrap_or(i64::MAX);
        self.write(async |mut tx| {
            let applied = sqlx::query(APPLIED).bind(revision).bind(self.installation.as_str());
            let applied = applied.bind(key.gateway.as_str()).bind(key.agent.as_str());
            applied.execute(tx.connection()).await.map_err(failed(ACTION))?;
            for statement in [DELETE, DELETE_FILES] {
                let deleting = sqlx::query(statement).bind(self.installation.as_str());
                let deleting = deleting.bind(key.gateway.as_str()).bind(key.agent.as_str());
                deleting.execute(tx.connection()).await.map_err(failed(ACTION))?;
            }
            tx.commit(ACTION).await
        })
        .await
    }

    /// Allows an agent to run a command without asking from now on. Returns whether the agent exists, and has room for the
    /// command.
    pub(super) async fn allow_gateway_command(
        &self,
        tx: &mut Tx,
        key: &GatewayAgentKey,
        command: &AllowedCommand,
    ) -> Result<bool, Error> {
        let Some(stored) = self.gateway_agent_to_change(tx, key).await? else { return Ok(false) };
        let mut settings = stored.agent.settings.clone();
        let allowed = &mut settings.capabilities.allowed_commands;
        if allowed.insert(command.clone()) {
            if allowed.len() > MAX_ALLOWED_COMMANDS {
                return Ok(false);
            }
            self.update_gateway_agent(tx, &stored, &settings).await?;
        }
        Ok(true)
    }

    /// Stores the directory of an agent's files, which its gateway has chosen.
    pub async fn store_gateway_agent_workspace(
        &self,
        key: &GatewayAgentKey,
        workspace: &str,
    ) -> Result<(), Error> {
        self.write(async |mut tx| {
            let storing = sqlx::query(WORKSPACE)
                .bind(storable(workspace))
                .bind(self.installation.as_str())
                .bind(key.gateway.as_str())
                .bind(key.agent.as_str());
            storing.execute(tx.connection()).await.map_err(failed(ACTION))?;
            tx.commit(ACTION).await
        })
        .await
    }

    /// Raises the revision of an agent, because something beside its settings has changed. Returns whether it exists.
    pub(super) async fn touch_gateway_agent(
        &self,
        tx: &mut Tx,
        key: &GatewayAgentKey,
    ) -> Result<bool, Error> {
        let touching = sqlx::query(TOUCH)
            .bind(tx.now)
            .bind(self.installation.as_str())
            .bind(key.gateway.as_str())
            .bind(key.agent.as_str());
        let touched = touching.execute(tx.connection()).await.map_err(failed(ACTION))?;
        Ok(touched.rows_affected() > 0)
    }

    /// Returns an agent that is not being removed. No other change of it comes before the end of `tx`.
    async fn gateway_agent_to_change(
        &self,
        tx: &mut Tx,
        key: &GatewayAgentKey,
    ) -> Result<Option<GatewayAgent>, Error> {
        let hold = "UPDATE gateway_agents SET revision = revision WHERE installation = $1 AND gateway = $2 AND agent = $3";
        let holding = sqlx::query(hold).bind(self.installation.as_str());
        let holding = holding.bind(key.gateway.as_str()).bind(key.agent.as_str());
        holding.execute(tx.connection()).await.map_err(failed(ACTION))?;
        let stored = self.find_gateway_agent(tx, key).await?;
        Ok(stored.filter(|stored| stored.removed.is_none()))
    }

    /// Stores other settings of `stored`, and returns it with them. Commands that are allowed are no setting of the gateway:
    /// one that has all else keeps its newest revision.
    async fn update_gateway_agent(
        &self,
        tx: &mut Tx,
        stored: &GatewayAgent,
        settings: &GatewayAgentSettings,
    ) -> Result<GatewayAgent, Error> {
        let revision = stored.revision + 1;
        let is_known = stored.is_applied() && differs_in_commands_alone(&stored.agent.settings, settings);
        let applied = if is_known { revision } else { stored.applied };
        let problem = stored.problem.as_ref().filter(|_| is_known);
        let number = |revision: u64| i64::try_from(revision).unwrap_or(i64::MAX);
        let key = &stored.agent.key;
        let updating = sqlx::query(CHANGE)
            .bind(settings_json(settings)?)
            .bind(number(revision))
            .bind(number(applied))
            .bind(problem)
            .bind(tx.now)
            .bind(self.installation.as_str())
            .bind(key.gateway.as_str())
            .bind(key.agent.as_str());
        updating.execute(tx.connection()).await.map_err(failed(ACTION))?;
        self.find_gateway_agent(tx, key).await?.ok_or_else(|| missing(key))
    }

    pub(super) async fn find_gateway_agent(
        &self,
        tx: &mut Tx,
        key: &GatewayAgentKey,
    ) -> Result<Option<GatewayAgent>, Error> {
        let query = sqlx::query(FIND).bind(self.installation.as_str());
        let query = query.bind(key.gateway.as_str()).bind(key.agent.as_str());
        let row = query.fetch_optional(tx.connection()).await.map_err(failed(READ))?;
        row.as_ref().map(GatewayAgent::read).transpose()
    }
}

fn differs_in_commands_alone(old: &GatewayAgentSettings, new: &GatewayAgentSettings) -> bool {
    let mut alike = old.clone();
    alike.capabilities.allowed_commands.clone_from(&new.capabilities.allowed_commands);
    alike == *new
}

fn settings_json(settings: &GatewayAgentSettings) -> Result<String, Error> {
    let corrupt = |error: serde_json::Error| Error::Corrupt { what: "settings", value: error.to_string() };
    serde_json::to_string(settings).map_err(corrupt)
}

fn missing(key: &GatewayAgentKey) -> Error {
    Error::Corrupt { what: "agent", value: key.agent.to_string() }
}
