//! Defines receipts: what an account pays for one call, and why.

use std::{fmt, num::NonZeroU32};

use platform_core::{
    credits::{CreditRate, Credits},
    id::{AccountId, AgentId, CallId, ExternalId, RunId},
    money::{NanoDollars, SignedNanoDollars},
    record::{Identity, Tokens, TokensSource},
    untrusted::JournalText,
};

/// System that wrote a receipt's figures. Receipts of one call differ in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptSource {
    /// The journal of the proxy. Writes the first receipt of each call.
    Journal,
    /// The ledger of LiteLLM.
    LiteLlm,
}

/// Kind of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiptKind {
    /// A call of the model API.
    ModelCall,
    /// A correction of an earlier receipt: the difference between what the call cost and what was charged for it.
    Adjustment,
}

/// Reason for the amount of a receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChargeReason {
    /// The upstream told the cost.
    UpstreamCost,
    /// The price table gave the cost: an estimate.
    PriceTable,
    /// The upstream told another cost than the price table gave: the higher one, until the upstream's ledger decides.
    Unconfirmed,
    /// The model is listed as free.
    FreeModel,
    /// The call used no tokens: the upstream refused it, or the route costs none.
    NoUsage,
    /// The call used tokens, and their price is unknown. The amount is zero until it is corrected.
    Unpriced,
    /// The upstream's ledger has another cost than was charged.
    Reconciled,
}

/// Kind of place in which an agent ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecutorType {
    /// A container of the run's own.
    Sandbox,
    /// A gateway that serves many runs.
    Gateway,
}

/// Call of a run: `RUN/ATTEMPT/CALL`. Also the reference of its first receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallReference {
    /// Run that made the call.
    pub run_id: RunId,
    /// Attempt of that run.
    pub attempt: u32,
    /// Call that was made.
    pub call_id: CallId,
}

/// Place of a receipt among all of its source: `RUN/ATTEMPT/CALL`, and `RUN/ATTEMPT/CALL#2` for the second one that the
/// source has of this call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptReference {
    /// The call.
    pub call: CallReference,
    /// Number of the receipt among those of its source for the call.
    pub sequence: NonZeroU32,
}

/// Cost of a call according to a source, in correction of what was charged for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// System that has the figure.
    pub source: ReceiptSource,
    /// The call.
    pub call: CallReference,
    /// Cost of the call in all.
    pub amount: NanoDollars,
}

/// Receipt of one call. Never rewritten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// System that wrote the figures.
    pub source: ReceiptSource,
    /// Place among the receipts of that source.
    pub reference: ReceiptReference,
    /// Kind of the receipt.
    pub kind: ReceiptKind,
    /// Account that pays.
    pub account: AccountId,
    /// User for whom the run was started.
    pub user: Option<ExternalId>,
    /// Agent that ran.
    pub agent: AgentId,
    /// Kind of place in which the agent ran.
    pub executor: ExecutorType,
    /// Model that the agent asked for, or else the one that answered.
    pub model: Option<JournalText>,
    /// Tokens of the call; zero in an adjustment, so that sums count them once.
    pub tokens: Tokens,
    /// Accuracy of the token counts.
    pub tokens_source: TokensSource,
    /// Cost; negative if it lowers an earlier one.
    pub amount: SignedNanoDollars,
    /// Credits to pay for it.
    pub credits: Credits,
    /// Rate by which the credits were computed.
    pub rate: CreditRate,
    /// Reason for the amount.
    pub reason: ChargeReason,
    /// Time at which the call began, in milliseconds since the epoch.
    pub called_ms: i64,
}

impl fmt::Display for CallReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run_id, attempt, call_id } = self;
        write!(f, "{run_id}/{attempt}/{call_id}")
    }
}

impl ReceiptReference {
    /// Returns the reference of a source's first receipt of `call`.
    #[must_use]
    pub const fn first(call: CallReference) -> Self {
        Self { call, sequence: NonZeroU32::MIN }
    }

    /// Returns the reference to a receipt of `call` that is written as `text`.
    #[must_use]
    pub fn parse(text: &str, call: CallReference) -> Option<Self> {
        let first = call.to_string();
        let sequence = match text.strip_prefix(&first)? {
            "" => NonZeroU32::MIN,
            suffix => suffix.strip_prefix('#')?.parse().ok()?,
        };
        Some(Self { call, sequence }).filter(|reference| reference.to_string() == text)
    }
}

impl fmt::Display for ReceiptReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { call, sequence } = self;
        match sequence.get() {
            1 => call.fmt(f),
            later => write!(f, "{call}#{later}"),
        }
    }
}

impl Receipt {
    /// Returns the call of the first receipt, which this one corrects; `None` if it is itself the first.
    #[must_use]
    pub fn corrects(&self) -> Option<&CallReference> {
        match self.kind {
            ReceiptKind::ModelCall => None,
            ReceiptKind::Adjustment => Some(&self.reference.call),
        }
    }
}

impl ReceiptSource {
    /// All sources, in the order in which they are declared.
    pub const ALL: [Self; 2] = [Self::Journal, Self::LiteLlm];

    /// Returns the word that the store keeps.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Journal => "sluicegate",
            Self::LiteLlm => "litellm",
        }
    }
}

impl ReceiptKind {
    /// All kinds, in the order in which they are declared.
    pub const ALL: [Self; 2] = [Self::ModelCall, Self::Adjustment];

    /// Returns the word that the store keeps.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::ModelCall => "model_call",
            Self::Adjustment => "adjustment",
        }
    }
}

impl ChargeReason {
    /// All reasons, for tables and metrics, in the order in which they are declared.
    pub const ALL: [Self; 7] = [
        Self::UpstreamCost,
        Self::PriceTable,
        Self::Unconfirmed,
        Self::FreeModel,
        Self::NoUsage,
        Self::Unpriced,
        Self::Reconciled,
    ];

    /// Returns the word that the store keeps.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::UpstreamCost => "upstream_cost",
            Self::PriceTable => "price_table",
            Self::Unconfirmed => "unconfirmed",
            Self::FreeModel => "free_model",
            Self::NoUsage => "no_usage",
            Self::Unpriced => "unpriced",
            Self::Reconciled => "reconciled",
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_is_read_as_it_is_written() {
        let call =
            CallReference { run_id: RunId::parse("r1").unwrap(), attempt: 2, call_id: CallId::new(1, 1) };
        for sequence in [1, 2, 30] {
            let sequence = NonZeroU32::new(sequence).unwrap();
            let reference = ReceiptReference { call: call.clone(), sequence };
            let read = ReceiptReference::parse(&reference.to_string(), call.clone());
            assert_eq!(read, Some(reference));
        }
        for suffix in ["#", "#0", "#1", "#02", "x", "#-1"] {
            assert_eq!(ReceiptReference::parse(&format!("{call}{suffix}"), call.clone()), None, "{suffix}");
        }
    }
}
