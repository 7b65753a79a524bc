//! Defines receipts: what an account pays for one call, and why.

use std::fmt;

use platform_core::{
    id::{AccountId, AgentId, CallId, ExternalId, RunId},
    money::NanoDollars,
    record::{Identity, Tokens, TokensSource},
    untrusted::JournalText,
};

/// System that wrote a receipt's figures. Receipts of one call differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptSource {
    /// The journal of the proxy.
    Journal,
}

/// Kind of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptKind {
    /// A call of the model API.
    ModelCall,
}

/// Reason for the amount of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargeReason {
    /// The upstream told the cost.
    UpstreamCost,
    /// The price table gave the cost: an estimate.
    PriceTable,
    /// The model is listed as free.
    FreeModel,
    /// The call used no tokens: the upstream refused it, or the route costs none.
    NoUsage,
    /// The call used tokens, and their price is unknown. The amount is zero until it is corrected.
    Unpriced,
}

/// Kind of place in which an agent ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorType {
    /// A container of the run's own.
    Sandbox,
    /// A gateway that serves many runs.
    Gateway,
}

/// Place of a receipt among all: `RUN/ATTEMPT/CALL`. A source has one receipt for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptReference {
    /// Run that made the call.
    pub run_id: RunId,
    /// Attempt of that run.
    pub attempt: u32,
    /// Call that was made.
    pub call_id: CallId,
}

/// Receipt of one call. Never rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// System that wrote the figures.
    pub source: ReceiptSource,
    /// The call.
    pub reference: ReceiptReference,
    /// Kind of the receipt.
    pub kind: ReceiptKind,
    /// Account that pays.
    pub account: AccountId,
    /// User on whose behalf the run was started.
    pub user: Option<ExternalId>,
    /// Agent that ran.
    pub agent: AgentId,
    /// Kind of place in which the agent ran.
    pub executor: ExecutorType,
    /// Model that the agent asked for, or else the one that answered.
    pub model: Option<JournalText>,
    /// Tokens of the call.
    pub tokens: Tokens,
    /// Accuracy of the token counts.
    pub tokens_source: TokensSource,
    /// Amount to pay.
    pub amount: NanoDollars,
    /// Reason for the amount.
    pub reason: ChargeReason,
    /// Time at which the call began, in milliseconds since the epoch.
    pub called_ms: i64,
}

impl fmt::Display for ReceiptReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run_id, attempt, call_id } = self;
        write!(f, "{run_id}/{attempt}/{call_id}")
    }
}

impl ReceiptSource {
    /// All sources, in the order in which they are declared.
    pub const ALL: [Self; 1] = [Self::Journal];

    /// Returns the word that the store keeps.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Journal => "sluicegate",
        }
    }
}

impl ReceiptKind {
    /// All kinds, in the order in which they are declared.
    pub const ALL: [Self; 1] = [Self::ModelCall];

    /// Returns the word that the store keeps.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ModelCall => "model_call",
        }
    }
}

impl ChargeReason {
    /// All reasons, for tables and metrics, in the order in which they are declared.
    pub const ALL: [Self; 5] =
        [Self::UpstreamCost, Self::PriceTable, Self::FreeModel, Self::NoUsage, Self::Unpriced];

    /// Returns the word that the store keeps.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::UpstreamCost => "upstream_cost",
            Self::PriceTable => "price_table",
            Self::FreeModel => "free_model",
            Self::NoUsage => "no_usage",
            Self::Unpriced => "unpriced",
        }
    }
}

impl ExecutorType {
    /// All types, in the order in which they are declared.
    pub const ALL: [Self; 2] = [Self::Sandbox, Self::Gateway];

    /// Returns the word that the store keeps.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox",
            Self::Gateway => "gateway",
        }
    }

    /// Returns the kind of place from which a call came that was identified by `identity`. Only a gateway's calls are
    /// told apart by traces and slots.
    #[must_use]
    pub const fn of(identity: Identity) -> Self {
        match identity {
            Identity::Trace | Identity::Slot => Self::Gateway,
            Identity::Socket | Identity::Token | Identity::None => Self::Sandbox,
        }
    }
}
