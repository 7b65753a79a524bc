//! Corrects receipts: adds the difference between what a call cost and what was charged for it.
//!
//! A receipt is never changed. An adjusting receipt has the rate of the first one. So the credits of a call are those of
//! its corrected cost, as if that had been known at once.

use std::num::NonZeroU32;

use platform_core::{
    credits::Credits,
    id::InstallationId,
    money::SignedNanoDollars,
    record::{Tokens, TokensSource},
};
use runner_model::receipt::{
    ChargeReason, Correction, Receipt, ReceiptKind, ReceiptReference, ReceiptSource,
};

use super::{
    Store, StoredReceipt, Tx,
    balances::Charges,
    error::{Error, failed},
};

const ACTION: &str = "correct a receipt";
const FIRST: &str =
    "SELECT * FROM receipts WHERE source_system = $1 AND source_reference = $2 AND installation = $3";
/// Selects the corrections of a receipt; its reference belongs to one installation.
pub(super) const CORRECTIONS: &str = "SELECT * FROM receipts WHERE corrects = $1";

/// Effect of a correction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Adjusted {
    /// The call has no receipt yet: nothing was stored.
    NoReceipt,
    /// The receipts of the call add up to the correction's amount: nothing was stored.
    Agrees,
    /// This receipt was added, and the balance has moved.
    Corrected(Box<Receipt>),
}

/// Receipts of one call.
struct ChargedCall {
    first: Receipt,
    corrections: Vec<Receipt>,
}

impl ChargedCall {
    fn all(&self) -> impl Iterator<Item = &Receipt> {
        self.corrections.iter().chain([&self.first])
    }

    /// Returns the receipt that makes all receipts of the call add up to `correction`; `None` if they do.
    fn adjustment(&self, correction: &Correction) -> Option<Receipt> {
        let charged: SignedNanoDollars = self.all().map(|receipt| receipt.amount).sum();
        let amount = SignedNanoDollars::from(correction.amount) - charged;
        if amount == SignedNanoDollars(0) {
            return None;
        }
        let paid: Credits = self.all().map(|receipt| receipt.credits).sum();
        let earlier = self.corrections.iter().filter(|receipt| receipt.source == correction.source);
        let last = earlier.map(|receipt| receipt.reference.sequence).max();
        Some(Receipt {
            source: correction.source,
            reference: ReceiptReference {
                call: correction.call.clone(),
                sequence: last.map_or(NonZeroU32::MIN, |last| last.saturating_add(1)),
            },
            kind: ReceiptKind::Adjustment,
            tokens: Tokens::default(),
            tokens_source: TokensSource::None,
            amount,
            credits: self.first.rate.credits(correction.amount) - paid,
            reason: ChargeReason::Reconciled,
            ..self.first.clone()
        })
    }
}

impl Store {
    /// Adds the receipts that make those of each call add up to its correction, and moves the balances of their accounts,
    /// all in one transaction. Changes nothing where they add up already, so corrections may be repeated. Returns the
    /// effect of each, in the order of the calls' references.
    ///
    /// # Errors
    /// If the store fails. Then nothing is stored.
    pub async fn adjust(&self, corrections: &[Correction]) -> Result<Vec<Adjusted>, Error> {
        let mut corrections: Vec<_> = corrections.iter().collect();
        // Two transactions lock calls in the same order, so that they do not wait for each other. Corrections of one call
        // keep theirs: the last one counts.
        corrections.sort_by_cached_key(|correction| correction.call.to_string());
        self.write(async |mut tx| {
            let mut charges = Charges::default();
            let mut effects = Vec::with_capacity(corrections.len());
            for correction in &corrections {
                effects.push(tx.adjust(&self.installation, correction, &mut charges).await?);
            }
            tx.charge(&self.installation, &charges).await?;
            tx.finish(ACTION, effects).await
        })
        .await
    }
}

impl Tx {
    /// Adds the receipt that makes those of a call add up to `correction`, and its credits to `charges`.
    async fn adjust(
        &mut self,
        installation: &InstallationId,
        correction: &Correction,
        charges: &mut Charges,
    ) -> Result<Adjusted, Error> {
        let Some(charged) = self.charged_call(installation, correction).await? else {
            return Ok(Adjusted::NoReceipt);
        };
        let Some(receipt) = charged.adjustment(correction) else { return Ok(Adjusted::Agrees) };
        self.add_receipt(installation, &receipt).await?;
        charges.add(&receipt);
        if charged.first.reason == ChargeReason::Unpriced && charged.corrections.is_empty() {
            charges.sums.add_price(&receipt);
        }
        Ok(Adjusted::Corrected(Box::new(receipt)))
    }

    /// Returns what was charged for a call. No other transaction corrects it until this one ends.
    async fn charged_call(
        &mut self,
        installation: &InstallationId,
        correction: &Correction,
    ) -> Result<Option<ChargedCall>, Error> {
        let call = correction.call.to_string();
        if let Some(lock) = self.backend.lock_call() {
            sqlx::query(lock).bind(&call).execute(self.connection()).await.map_err(failed(ACTION))?;
        }
        let first = sqlx::query(FIRST)
            .bind(ReceiptSource::Journal.word())
            .bind(&call)
            .bind(installation.as_str())
            .fetch_optional(self.connection())
            .await
            .map_err(failed(ACTION))?;
        let Some(first) = first else { return Ok(None) };
        let corrections = sqlx::query(CORRECTIONS)
            .bind(&call)
            .fetch_all(self.connection())
            .await
            .map_err(failed(ACTION))?;
        let receipt = |row| StoredReceipt::read(row).map(|stored| stored.receipt);
        let corrections = corrections.iter().map(receipt).collect::<Result<_, _>>()?;
        Ok(Some(ChargedCall { first: receipt(&first)?, corrections }))
    }
}
