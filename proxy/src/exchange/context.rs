//! Defines what calls share: the part of the configuration that they use, and the state of their thread.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use http::HeaderValue;
use platform_core::token::Secrets;

use crate::{
    balance_gate::BalanceGate, body_memory::BodyMemoryPool, budget::Prices, clock::CallIds, freezes::Freezes,
    journal::Committer, mask::Mask, metrics::ForThread, output_rates::OutputRates, policy::DefaultModels,
    registry::RunRegistry, run::Run, run_keys::RunKeys, tool_socket::ToolSocket, upstream::Upstream,
};

/// Part of the configuration that calls use. Immutable; a reload replaces it whole.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// Longest time that a client may take to send a request's head.
    pub(crate) header_read_timeout: Duration,
    /// Longest time that a client's connection may be idle between two calls.
    pub(crate) keep_alive_timeout: Duration,
    /// Longest time that a call goes on after its client has left.
    pub(crate) client_gone_timeout: Duration,
    /// The upstream's credential.
    pub(crate) authorization: Option<HeaderValue>,
    /// Credential that mints keys, if each run has its own.
    pub(crate) admin: Option<HeaderValue>,
    /// Texts that no agent receives: the upstream's key and address, and their earlier values.
    pub(crate) redacted_terms: Arc<[String]>,
    /// Mask of the key and of the token secrets, with their earlier values, in everything that agents are sent.
    pub(crate) mask: Arc<Mask>,
    /// Secrets that sign run tokens.
    pub(crate) secrets: Arc<Secrets>,
    /// Prices of tokens.
    pub(crate) prices: Prices,
    /// Tokens a second that a model may generate unseen, where an operator has set it.
    pub(crate) output_rates: BTreeMap<String, u64>,
    /// Models of runs that name none.
    pub(crate) default_models: DefaultModels,
    /// Users that may listen on the tool socket.
    pub(crate) trusted_uids: Arc<[u32]>,
    /// Time for which a token stays valid beyond its expiry.
    pub(crate) token_leeway: Duration,
}

/// Everything a data-plane thread needs to answer calls.
#[derive(Debug)]
pub(crate) struct ServeContext {
    pub(crate) upstream: Arc<Upstream>,
    /// Socket of the control plane that executes host tools.
    pub(crate) tool_socket: Arc<ToolSocket>,
    pub(crate) journal: Committer,
    /// Live runs and their correlations, for calls that have to prove their run.
    pub(crate) registry: Arc<RunRegistry>,
    /// Freezes that an operator has set.
    pub(crate) freezes: Arc<Freezes>,
    /// Keys of runs at the upstream.
    pub(crate) run_keys: Arc<RunKeys>,
    /// Accounts with a balance below their floor.
    pub(crate) balances: Arc<BalanceGate>,
    /// Rates at which models generate.
    pub(crate) output_rates: Arc<OutputRates>,
    /// Run under which unattributed calls are recorded.
    pub(crate) unattributed_run: Arc<Run>,
    /// This thread's part of the memory for request bodies.
    pub(crate) body_memory: Arc<BodyMemoryPool>,
    pub(crate) snapshot: Arc<ArcSwap<Snapshot>>,
    /// Counters of this thread.
    pub(crate) metrics: Arc<ForThread>,
    pub(crate) call_ids: CallIds,
}
