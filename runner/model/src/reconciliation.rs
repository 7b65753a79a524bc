//! Compares rows of the upstream's ledger with receipts. Pure.

use platform_core::{money::NanoDollars, spend::SpendRow};

use crate::receipt::ChargeReason;

/// Result of comparing a receipt with the upstream's ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// The ledger has the receipt's amount.
    Agreed,
    /// The ledger has another amount, and an adjusting receipt makes up for the difference.
    Corrected,
    /// The ledger has the call without its price, so the receipt stays.
    Unpriced,
    /// The upstream reported another cost than the price table gave, so the row decides.
    Unconfirmed,
    /// The call was counted as missing before its row came.
    Late,
    /// The call has a receipt and no row.
    Missing,
    /// Several calls were written to one row, so that the ledger knows the cost of one of them.
    Collapsed,
    /// The row is of no call of this installation, or names another account than the call's: LiteLLM has another user.
    Foreign,
    /// The row is not as LiteLLM writes it, or a second of the ledger has no end. Its call stays as it is.
    Unreadable,
}

/// Charge for a call, as far as it is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Amount of the call's first receipt.
    pub amount: NanoDollars,
    /// Reason for that amount.
    pub reason: ChargeReason,
}

/// Figures of the ledger about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedgerFigure {
    /// Cost of the call in all its rows; absent if the ledger knows no price.
    pub cost: Option<NanoDollars>,
    /// Number of other calls that have a row with the same id.
    pub sharers: u64,
}

impl Finding {
    /// All findings, in the order in which reports list them.
    pub const ALL: [Self; 9] = [
        Self::Agreed,
        Self::Corrected,
        Self::Unpriced,
        Self::Unconfirmed,
        Self::Late,
        Self::Missing,
        Self::Collapsed,
        Self::Foreign,
        Self::Unreadable,
    ];

    /// Returns the word that reports and the store use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Agreed => "agreed",
            Self::Corrected => "corrected",
            Self::Unpriced => "unpriced",
            Self::Unconfirmed => "unconfirmed",
            Self::Late => "late",
            Self::Missing => "missing",
            Self::Collapsed => "collapsed",
            Self::Foreign => "foreign",
            Self::Unreadable => "unreadable",
        }
    }

    /// Returns the finding that is written as `word`.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|finding| finding.word() == word)
    }

    /// Returns whether an operator has to look at it.
    #[must_use]
    pub const fn is_difference(self) -> bool {
        match self {
            Self::Agreed | Self::Corrected | Self::Unpriced | Self::Unconfirmed => false,
            Self::Late | Self::Missing | Self::Collapsed | Self::Foreign | Self::Unreadable => true,
        }
    }

    /// Compares the charge for a call with the ledger's figure.
    #[must_use]
    pub fn of(charge: Charge, figure: LedgerFigure) -> Self {
        match figure.cost {
            _ if figure.sharers > 0 => Self::Collapsed,
            Some(cost) if cost == charge.amount => Self::Agreed,
            Some(_) => Self::Corrected,
            None if matches!(charge.reason, ChargeReason::FreeModel | ChargeReason::NoUsage) => Self::Agreed,
            None => Self::Unpriced,
        }
    }
}

impl LedgerFigure {
    /// Returns the figure of a row. Its call has `others` as its cost in other rows: tries that failed have rows, too.
    #[must_use]
    pub fn of(row: &SpendRow, others: NanoDollars, sharers: u64) -> Self {
        Self { cost: row.known_cost().map(|cost| cost + others), sharers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_is_compared_with_the_ledger() {
        use ChargeReason::{FreeModel, NoUsage, PriceTable, Unpriced, UpstreamCost};
        let table = [
            (7, UpstreamCost, Some(7), Finding::Agreed),
            (7, PriceTable, Some(7), Finding::Agreed),
            (7, UpstreamCost, Some(8), Finding::Corrected),
            (7, PriceTable, Some(0), Finding::Corrected),
            (0, Unpriced, Some(8), Finding::Corrected),
            // No model answered: nothing was to pay.
            (0, Unpriced, Some(0), Finding::Agreed),
            (0, NoUsage, Some(8), Finding::Corrected),
            (0, FreeModel, Some(8), Finding::Corrected),
            (7, PriceTable, None, Finding::Unpriced),
            (0, Unpriced, None, Finding::Unpriced),
            (0, FreeModel, None, Finding::Agreed),
            (0, NoUsage, None, Finding::Agreed),
        ];
        for (amount, reason, cost, finding) in table {
            let charge = Charge { amount: NanoDollars(amount), reason };
            let figure = LedgerFigure { cost: cost.map(NanoDollars), sharers: 0 };
            assert_eq!(Finding::of(charge, figure), finding, "{charge:?} {figure:?}");
            let shared = LedgerFigure { sharers: 1, ..figure };
            assert_eq!(Finding::of(charge, shared), Finding::Collapsed);
        }
    }

    #[test]
    fn findings_are_read_as_they_are_written() {
        for finding in Finding::ALL {
            assert_eq!(Finding::named(finding.word()), Some(finding));
        }
    }
}
