//! Reads an order of a run.

use std::time::{SystemTime, UNIX_EPOCH};

use axum::http::HeaderMap;
use platform_core::{
    id::{AccountId, AgentId, ExternalId, GatewayAgentId, ModelName, RunId, ToolName},
    json,
    money::NanoDollars,
    priority::Priority,
};
use platform_runtime::settings::DEFAULT_AGENT;
use runner_engine::{
    run_order::{self, OrderLimits, RunOrder},
    run_request::Keep,
    thread::{ThreadOrder, read_thread_key},
};
use runner_model::conversation::Message;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use utoipa::{ToSchema, openapi::Object};

use super::repository::RepositoryBody;
use crate::{
    body::{invalid_body, parse},
    caller::Caller,
    error::Error,
    operation::schemas,
};

/// Header with the key under which a client repeats an order safely.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// Longest idempotency key, in bytes.
pub(crate) const MAX_KEY: usize = 255;
/// First characters of ids that are derived from a key, and bytes of the hash after them.
const DERIVED_PREFIX: &str = "run-key-";
const DERIVED_SIZE: usize = 16;

/// Order of a run, as a client sends it.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Order)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct OrderBody {
    /// Question to the agent.
    #[schema(pattern = r"\S")]
    input: String,
    /// Agent to run; the default one if absent.
    #[schema(value_type = Option<schemas::AgentId>)]
    agent_id: Option<AgentId>,
    /// Agent of the agent's gateway, or of its `openclaw_agents`, by its id; the one of the configuration if absent.
    #[schema(value_type = Option<String>)]
    gateway_agent: Option<GatewayAgentId>,
    /// Model to ask; the agent's if absent.
    #[schema(value_type = Option<schemas::ModelName>)]
    model: Option<ModelName>,
    /// Messages before the question.
    #[serde(default)]
    #[schema(value_type = Vec<schemas::ConversationMessage>)]
    messages: Vec<Message>,
    /// Account that pays, which only operators choose.
    #[schema(value_type = Option<schemas::AccountId>)]
    account: Option<AccountId>,
    /// Urgency, at most that of the account.
    #[serde(default)]
    #[schema(value_type = schemas::Priority)]
    priority: Priority,
    /// Thread to continue.
    #[schema(value_type = Option<schemas::ThreadKey>)]
    state_key: Option<ExternalId>,
    /// Limits of the run. The tightest of the order's, the principal's and the agent's applies.
    #[serde(default)]
    limits: LimitsBody,
    /// Repository to work on; that of the agent if absent.
    #[serde(default)]
    repository: RepositoryBody,
    /// Host tools that the run may call at most; all that its agent and account have if absent, none if empty.
    #[schema(value_type = Option<Vec<schemas::ToolName>>)]
    host_tools: Option<Vec<ToolName>>,
    /// Keeps the workspace when the run has ended.
    #[serde(default)]
    keep_workspace: bool,
}

/// Limits of an order, as a client sends them.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[schema(as = OrderLimits)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LimitsBody {
    /// Most tokens of all calls.
    #[schema(schema_with = token_limit)]
    total_tokens: Option<u64>,
    /// Dollars, as text, so that no float rounds them: "0.50".
    #[schema(value_type = Option<schemas::Dollars>)]
    cost: Option<String>,
}

fn token_limit() -> Object {
    schemas::large_number(1).description(Some("Most tokens of all calls.")).build()
}

impl LimitsBody {
    fn read(&self) -> Result<OrderLimits, Error> {
        let cost = self.cost.as_deref().map(str::parse::<NanoDollars>).transpose();
        let cost = cost.map_err(|error| Error::Invalid(format!("`limits.cost`: {error}")))?;
        if self.total_tokens == Some(0) || cost == Some(NanoDollars(0)) {
            return Err(Error::Invalid("a limit of 0 allows no call: leave it out".to_owned()));
        }
        Ok(OrderLimits { total_tokens: self.total_tokens, cost })
    }
}

impl OrderBody {
    /// Returns the order of the run `run_id` by `caller`, from the body with `hash`.
    pub(super) fn order(self, run_id: RunId, hash: String, caller: &Caller) -> Result<RunOrder, Error> {
        if self.input.trim().is_empty() {
            return Err(Error::Invalid("`input` is empty".to_owned()));
        }
        let agent_id = match self.agent_id {
            Some(agent_id) => agent_id,
            None => AgentId::parse(DEFAULT_AGENT).map_err(|_never| Error::Internal)?,
        };
        caller.may_run(&agent_id)?;
        let thread = self.state_key.as_ref().map(|key| read_thread_key(key.as_str())).transpose();
        let thread = thread.map_err(|error| Error::Invalid(format!("`stateKey`: {error}")))?;
        Ok(RunOrder {
            run_id,
            account: caller.account_of_order(self.account)?,
            correlation: caller.correlation(thread.clone()),
            agent_id,
            gateway_agent: caller.gateway_agent_order(self.gateway_agent)?,
            model: self.model,
            image: None,
            limits: self.limits.read()?.tightest(caller.limits()),
            priority: self.priority,
            history: self.messages,
            question: self.input,
            thread: thread.map(ThreadOrder::behind),
            repo: self.repository.choice(caller),
            host_tools: self.host_tools,
            keep: if self.keep_workspace { Keep::Workspace } else { Keep::Nothing },
            hash: Some(hash),
        })
    }
}

/// Returns the hash of an order's body, which does not depend on the order of its fields.
pub(crate) fn hash(body: &[u8], most: usize) -> Result<String, Error> {
    let body = parse(body, most)?;
    let mut hash = Sha256::new();
    json::write_sorted(body, &mut |piece| hash.update(piece)).map_err(|error| invalid_body(&error))?;
    Ok(hex(&hash.finalize()))
}

/// Returns the hash of a value as [`hash`] does.
pub(crate) fn hash_of_value(value: &Value) -> String {
    hex(&Sha256::digest(value.to_string().as_bytes()))
}

/// Returns whether `run_id` has the form of an id that [`derived_run_id`] makes.
pub(super) fn is_derived(run_id: &RunId) -> bool {
    let digits = run_id.as_str().strip_prefix(DERIVED_PREFIX);
    digits.is_some_and(|digits| {
        digits.len() == 2 * DERIVED_SIZE && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Returns the id of a new run: always the same for an idempotency key of `caller`, else another one each time.
pub(crate) fn new_run_id(headers: &HeaderMap, caller: &Caller) -> Result<RunId, Error> {
    match idempotency_key(headers)? {
        None => {
            let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
            let run_id = run_order::new_run_id(since_epoch.map_err(|_before_1970| Error::Internal)?);
            run_id.map_err(|_never| Error::Internal)
        }
        Some(key) => derived_run_id(caller, &[key]),
    }
}

/// Returns the idempotency key of an order, if it has one.
pub(crate) fn idempotency_key(headers: &HeaderMap) -> Result<Option<&[u8]>, Error> {
    let mut keys = headers.get_all(IDEMPOTENCY_KEY).iter();
    match (keys.next(), keys.next()) {
        (None, _) => Ok(None),
        (Some(key), None) if (1..=MAX_KEY).contains(&key.len()) => Ok(Some(key.as_bytes())),
        _ => {
            let problem = format!("send one `Idempotency-Key` of 1 to {MAX_KEY} bytes, or none");
            Err(Error::Invalid(problem))
        }
    }
}

/// Returns the id of the run that `caller` orders under the key of these `parts`. Other callers and keys have other ids.
pub(crate) fn derived_run_id(caller: &Caller, parts: &[&[u8]]) -> Result<RunId, Error> {
    let digits = hex(&hash_of_key(caller, parts)[..DERIVED_SIZE]);
    RunId::parse(&format!("{DERIVED_PREFIX}{digits}")).map_err(|_never| Error::Internal)
}

/// Returns a hash of the key of these `parts` that belongs to `caller` alone.
pub(crate) fn hash_of_key(caller: &Caller, parts: &[&[u8]]) -> [u8; 32] {
    let name = caller.name();
    // Lengths come first, so that no name and parts together read as others.
    let mut hash = Sha256::new().chain_update(format!("{}:{name}", name.len()).as_bytes());
    if let [parts @ .., last] = parts {
        for part in parts {
            hash.update(format!("{}:", part.len()).as_bytes());
            hash.update(part);
        }
        hash.update(last);
    }
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
