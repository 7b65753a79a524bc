//! Holds for whom a connection acts: who it is, and the account and the gateway that exist for it.
//!
//! Everything that a client names is looked up here within the account. A connection to a gateway of an account acts for that
//! account, also if an operator opened it. On a shared gateway it acts for the caller's own.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use platform_core::id::{AccountId, GatewayAgentId, GatewayId, RunId};
use platform_runtime::{
    report,
    settings::{Execution, Settings},
};
use runner_engine::run_request::RunRequest;
use runner_model::principal::PrincipalRole;
use runner_store::{AccountScope, Error as StoreError, GatewayAgentKey, ResourceKind, Run, RunRecord, Store};
use tokio::time::sleep;

use super::{
    refusal::{Farewell, SocketRefusal},
    session_key::{ClientSession, MAIN},
};
use crate::{
    caller::Caller,
    context::{ApiContext, OpenedStore},
    error::Error,
    gateways::agents::FoundGateway,
    runs::derived_run_id,
    stream_permits::StreamPermit,
};

/// Interval between two checks that a connection may go on.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Party for which a connection acts.
pub(super) struct SocketTenant {
    pub(super) context: ApiContext,
    pub(super) opened: Arc<OpenedStore>,
    pub(super) caller: Caller,
    pub(super) gateway: GatewayId,
    /// Account of the sessions, the agents and the approvals.
    pub(super) account: AccountId,
    /// Extensions of the protocol that the client takes.
    pub(super) caps: Vec<String>,
    pub(super) _permit: StreamPermit,
}

/// Agent of the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KnownAgent {
    pub(super) id: GatewayAgentId,
    pub(super) name: String,
    pub(super) model: Option<String>,
}

/// Run that is a turn of a session at the gateway.
pub(super) struct GatewayRun {
    pub(super) record: RunRecord,
    pub(super) session: ClientSession,
}

impl SocketTenant {
    pub(super) fn store(&self) -> &Store {
        &self.opened.store
    }

    pub(super) fn scope(&self) -> AccountScope {
        AccountScope::Only(self.account.clone())
    }

    pub(super) fn settings(&self) -> Arc<Settings> {
        self.context.settings().get()
    }

    /// Returns the gateway, if it still exists for the caller.
    pub(super) fn found<'s>(&self, settings: &'s Settings) -> Result<FoundGateway<'s>, Error> {
        FoundGateway::find(settings, &self.caller, self.gateway.as_str())
    }

    /// Returns whether the client takes an extension of the protocol.
    pub(super) fn takes(&self, cap: &str) -> bool {
        self.caps.iter().any(|own| own == cap)
    }

    /// Checks that the caller has the rights of `role`.
    pub(super) fn require(&self, role: PrincipalRole) -> Result<(), SocketRefusal> {
        let own = self.caller.role();
        if own >= role {
            return Ok(());
        }
        Err(SocketRefusal::forbidden(format!(
            "missing scope: operator.write: this needs the role {role}, and the principal is {own}; ask an operator for a token of that role"
        )))
    }

    pub(super) fn key(&self, agent: &GatewayAgentId) -> GatewayAgentKey {
        GatewayAgentKey { gateway: self.gateway.clone(), agent: agent.clone() }
    }

    /// Returns the agents of the gateway that exist for the account: those of the configuration, and those that people made.
    pub(super) async fn agents(&self) -> Result<Vec<KnownAgent>, Error> {
        let settings = self.settings();
        let found = self.found(&settings)?;
        let mut agents = BTreeMap::new();
        let entries = settings.agents.values().filter(|entry| {
            entry.mode == Execution::Gateway
                && entry.gateways.contains(&self.gateway)
                && found.gateway.serves(&self.account)
        });
        let of_entries = entries.map(|entry| (entry.gateway_agent.as_str(), entry.model.clone()));
        let fixed = found.gateway.fixed_agents().iter().map(|agent| (agent.as_str(), None));
        for (id, model) in fixed.chain(of_entries) {
            let Ok(id) = GatewayAgentId::parse(id) else { continue };
            let known = KnownAgent { name: id.to_string(), id: id.clone(), model: None };
            let known = agents.entry(id).or_insert(known);
            known.model = known.model.take().or(model);
        }
        let made = self.store().gateway_agents(found.id).await?;
        for made in made.into_iter().filter(|made| made.removed.is_none()) {
            if made.agent.account != found.gateway.account {
                continue;
            }
            let id = made.agent.key.agent;
            let settings = made.agent.settings;
            let model = settings.model.map(|model| model.to_string());
            agents.insert(id.clone(), KnownAgent { id, name: settings.name.to_string(), model });
        }
        Ok(agents.into_values().collect())
    }

    /// Returns the agent that is meant if a client names none: `main`, else the first one.
    pub(super) fn default_agent(agents: &[KnownAgent]) -> Option<&KnownAgent> {
        agents.iter().find(|agent| agent.id.as_str() == MAIN).or_else(|| agents.first())
    }

    /// Returns the agent that a client names, or the one that is meant if it names none.
    pub(super) async fn agent(&self, named: Option<&str>) -> Result<KnownAgent, SocketRefusal> {
        let agents = self.agents().await?;
        let found = match named {
            None => Self::default_agent(&agents),
            Some(id) => agents.iter().find(|agent| agent.id.as_str() == id),
        };
        found.cloned().ok_or_else(|| {
            let known: Vec<_> = agents.iter().map(|agent| agent.id.as_str()).collect();
            let shown: String = named.unwrap_or(MAIN).chars().take(64).collect();
            SocketRefusal::invalid(
                "AGENT_UNKNOWN",
                format!(
                    "unknown agent id \"{}\"; this gateway has: {}",
                    shown.escape_default(),
                    known.join(", ")
                ),
            )
        })
    }

    /// Returns the session that a client names, of an agent that exists.
    pub(super) async fn session(
        &self,
        key: &str,
        agent: Option<&str>,
    ) -> Result<ClientSession, SocketRefusal> {
        let named = self.agent(agent.filter(|_| !key.starts_with("agent:"))).await;
        let fallback = match &named {
            Ok(named) => named.id.clone(),
            Err(refusal) if !key.starts_with("agent:") => return Err(refusal.clone()),
            Err(_) => GatewayAgentId::parse(MAIN).map_err(|_never| Error::Internal)?,
        };
        let session = ClientSession::parse(key, &fallback)?;
        if agent.is_some_and(|agent| agent != session.agent.as_str()) {
            return Err(SocketRefusal::invalid(
                "AGENT_MISMATCH",
                "`agentId` is another agent than that of the session: leave it out",
            ));
        }
        self.agent(Some(session.agent.as_str())).await?;
        Ok(session)
    }

    /// Returns a run of the account that is a turn at this gateway; `None` if it is not, or not known to be one yet.
    pub(super) async fn gateway_run(&self, run: &Run) -> Result<Option<GatewayRun>, StoreError> {
        if run.account != self.account {
            return Ok(None);
        }
        let record = self.store().record(&run.run_id).await?;
        Ok(self.turn_at_gateway(record))
    }

    fn turn_at_gateway(&self, record: RunRecord) -> Option<GatewayRun> {
        let request = RunRequest::stored(&record).ok()?;
        let spec = request.spec;
        if spec.agent.mode != Execution::Gateway {
            return None;
        }
        let session = record.resources.iter().rfind(|resource| resource.kind == ResourceKind::Session);
        let gateway = match session {
            Some(session) => session.name.split_once('/').map(|(gateway, _name)| gateway),
            // It may become a turn of any of them.
            None => match &*spec.agent.gateways {
                [only] => Some(only.as_str()),
                _ => None,
            },
        };
        if gateway != Some(self.gateway.as_str()) {
            return None;
        }
        let agent = GatewayAgentId::parse(&spec.agent.gateway_agent).ok()?;
        let session = ClientSession::of(agent, spec.state_key, &record.run.run_id);
        Some(GatewayRun { record, session })
    }

    /// Returns the run that a client names: by its id, or by the key under which this caller ordered it.
    pub(super) async fn run(&self, named: &str) -> Result<GatewayRun, SocketRefusal> {
        let by_key = self.run_id_of_key(named)?;
        for run_id in RunId::parse(named).ok().into_iter().chain([by_key]) {
            let run = match self.store().run_within(&run_id, &self.scope()).await {
                Err(StoreError::Unknown { .. }) => continue,
                found => found?,
            };
            if let Some(found) = self.gateway_run(&run).await? {
                return Ok(found);
            }
        }
        let shown: String = named.chars().take(128).collect();
        Err(SocketRefusal::invalid("RUN_UNKNOWN", format!("unknown run `{}`", shown.escape_default())))
    }

    /// Returns the id of the run that this caller orders under an idempotency key.
    pub(super) fn run_id_of_key(&self, key: &str) -> Result<RunId, Error> {
        ordered_run_id(&self.caller, &self.gateway, &self.account, key)
    }

    /// Waits until the connection may not go on, and returns why.
    pub(super) async fn watch(self: Arc<Self>) -> Farewell {
        loop {
            sleep(CHECK_INTERVAL).await;
            match self.caller.is_still_valid(self.store()).await {
                Ok(true) => {}
                Ok(false) => {
                    return Farewell::policy("the token or the session is not valid any more: sign in again");
                }
                Err(error) => {
                    tracing::warn!(error = report::chain(&error), "a connection of a gateway's client ends");
                    return Farewell::internal("the store of runs does not answer: connect again");
                }
            }
            let settings = self.settings();
            let account = self.found(&settings).ok().map(|found| account_of(&found, &self.caller));
            if account.as_ref() != Some(&self.account) {
                return Farewell::policy("the gateway does not exist for this account any more");
            }
        }
    }
}

/// Returns the account for which a connection of `caller` acts.
pub(super) fn account_of(found: &FoundGateway<'_>, caller: &Caller) -> AccountId {
    found.gateway.account.as_ref().unwrap_or_else(|| caller.account()).clone()
}

/// Returns the id of the run that `caller` orders under `key` for `account`. A gateway may come to another account, and then
/// the same key names another run.
fn ordered_run_id(
    caller: &Caller,
    gateway: &GatewayId,
    account: &AccountId,
    key: &str,
) -> Result<RunId, Error> {
    let parts = ["gateway", gateway.as_str(), account.as_str(), key];
    derived_run_id(caller, &parts.map(str::as_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_one_run_of_one_account() {
        let account = |id: &str| AccountId::parse(id).unwrap();
        let caller = Caller::Anonymous(account("acct-0"));
        let gateway = GatewayId::parse("own").unwrap();
        let run = |of: &str, key: &str| ordered_run_id(&caller, &gateway, &account(of), key).unwrap();
        assert_eq!(run("acct-1", "k"), run("acct-1", "k"));
        assert_ne!(run("acct-1", "k"), run("acct-2", "k"), "the gateway has come to another account");
        assert_ne!(run("acct-1", "k"), run("acct-1", "l"));
    }
}
