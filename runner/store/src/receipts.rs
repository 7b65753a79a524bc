//! Keeps receipts: what each call costs the account that pays for it. They are added and never changed.

use std::num::NonZeroU32;

use platform_core::{
    credits::{CreditRate, Credits},
    id::{AccountId, AgentId, ExternalId, InstallationId, RunId},
    money::SignedNanoDollars,
    record::TokensSource,
    untrusted::JournalText,
};
use runner_model::receipt::{
    CallReference, ChargeReason, ExecutorType, Receipt, ReceiptKind, ReceiptReference, ReceiptSource,
};
use sqlx::{Row, any::AnyRow};

use super::{
    Month, Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{count, number, parsed, stored_json},
};

const ADD: &str = "INSERT INTO receipts (source_system, source_reference, installation, receipt_kind, account, user_id, \
     run, attempt, call_id, agent, executor_type, model, tokens, tokens_source, nanodollars, charge_reason, called, \
     created, corrects, credits, markup, credits_per_dollar) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, \
     $13, $14, $15, $16, $17, $18, $19, $20, $21, $22) \
     ON CONFLICT (source_system, source_reference) DO NOTHING";
const LIST: &str = "SELECT * FROM receipts WHERE installation = $1 AND ($2 IS NULL OR account = $2) \
     AND ($3 IS NULL OR run = $3) AND ($4 IS NULL OR called >= $4) AND ($5 IS NULL OR called < $5) \
     AND ($6 IS NULL OR called < $6 OR (called = $6 AND (source_reference < $7 \
     OR (source_reference = $7 AND source_system < $8)))) \
     AND ($9 IS NULL OR created >= $9) AND ($10 IS NULL OR created < $10) \
     ORDER BY called DESC, source_reference DESC, source_system DESC LIMIT $11";

/// Receipt, as it was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReceipt {
    /// The receipt.
    pub receipt: Receipt,
    /// Time at which it was stored.
    pub created: UnixMillis,
}

/// Filter of a list of receipts.
#[derive(Debug, Clone, Default)]
pub struct ReceiptFilter {
    /// Account that pays.
    pub account: Option<AccountId>,
    /// Run that made the calls.
    pub run_id: Option<RunId>,
    /// Time of the first call.
    pub from: Option<UnixMillis>,
    /// Time before which the last call began.
    pub until: Option<UnixMillis>,
    /// Month in which they were stored.
    pub month: Option<Month>,
    /// Place before which the listed ones are; for the next page.
    pub before: Option<ReceiptPlace>,
}

/// Place of a receipt in the order of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiptPlace {
    /// Time at which the call began.
    pub called: UnixMillis,
    /// Reference of the receipt.
    pub reference: String,
    /// Source of the receipt.
    pub source: ReceiptSource,
}

impl StoredReceipt {
    pub(super) fn read(row: &AnyRow) -> Result<Self, Error> {
        let optional = |column| row.try_get::<Option<String>, _>(column).map_err(failed("read a receipt"));
        let corrupt = |what| move |value| Error::Corrupt { what, value };
        let user = optional("user_id")?;
        let user = user.map(|text| ExternalId::parse(&text).map_err(|_invalid| corrupt("user_id")(text)));
        let call = read_call(row)?;
        let receipt = Receipt {
            source: parsed(row, "source_system", |text| word(ReceiptSource::ALL, ReceiptSource::word, text))?,
            reference: parsed(row, "source_reference", |text| ReceiptReference::parse(text, call))?,
            kind: parsed(row, "receipt_kind", |text| word(ReceiptKind::ALL, ReceiptKind::word, text))?,
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            user: user.transpose()?,
            agent: parsed(row, "agent", |text| AgentId::parse(text).ok())?,
            executor: parsed(row, "executor_type", |text| word(ExecutorType::ALL, ExecutorType::word, text))?,
            model: optional("model")?.as_deref().map(JournalText::of),
            tokens: parsed(row, "tokens", stored_json)?,
            tokens_source: parsed(row, "tokens_source", |text| {
                word(TokensSource::ALL, TokensSource::word, text)
            })?,
            amount: SignedNanoDollars(number(row, "nanodollars")?),
            credits: Credits(number(row, "credits")?),
            rate: read_rate(row)?,
            reason: parsed(row, "charge_reason", |text| word(ChargeReason::ALL, ChargeReason::word, text))?,
            called_ms: number(row, "called")?,
        };
        Ok(Self { receipt, created: UnixMillis(number(row, "created")?) })
    }

    /// Returns the place of the receipt, for [`ReceiptFilter::before`].
    #[must_use]
    pub fn place(&self) -> ReceiptPlace {
        let Receipt { called_ms, reference, source, .. } = &self.receipt;
        ReceiptPlace { called: UnixMillis(*called_ms), reference: reference.to_string(), source: *source }
    }
}

/// Returns the call of a receipt.
pub(super) fn read_call(row: &AnyRow) -> Result<CallReference, Error> {
    Ok(CallReference {
        run_id: parsed(row, "run", |text| RunId::parse(text).ok())?,
        attempt: count(row, "attempt")?,
        call_id: parsed(row, "call_id", |text| text.parse().ok())?,
    })
}

fn read_rate(row: &AnyRow) -> Result<CreditRate, Error> {
    let credits_per_dollar: u32 = count(row, "credits_per_dollar")?;
    let credits_per_dollar = NonZeroU32::new(credits_per_dollar)
        .ok_or_else(|| Error::Corrupt { what: "credits_per_dollar", value: "0".to_owned() })?;
    Ok(CreditRate { markup: parsed(row, "markup", |text| text.parse().ok())?, credits_per_dollar })
}

/// Returns the value of `all` that is written as `text`.
pub(super) fn word<T: Copy, const N: usize>(
    all: [T; N],
    word: fn(T) -> &'static str,
    text: &str,
) -> Option<T> {
    all.into_iter().find(|value| word(*value) == text)
}

impl Store {
    /// Returns at most `max_receipts` receipts that match `filter`, those of the newest calls first.
    pub async fn receipts(
        &self,
        filter: &ReceiptFilter,
        max_receipts: u32,
    ) -> Result<Vec<StoredReceipt>, Error> {
        self.retry(async || {
            let rows = sqlx::query(LIST)
                .bind(self.installation.as_str())
                .bind(filter.account.as_ref().map(AccountId::as_str))
                .bind(filter.run_id.as_ref().map(RunId::as_str))
                .bind(filter.from.map(|time| time.0))
                .bind(filter.until.map(|time| time.0))
                .bind(filter.before.as_ref().map(|place| place.called.0))
                .bind(filter.before.as_ref().map(|place| place.reference.as_str()))
                .bind(filter.before.as_ref().map(|place| place.source.word()))
                .bind(filter.month.map(|month| month.begin().0))
                .bind(filter.month.map(|month| month.end().0))
                .bind(i64::from(max_receipts))
                .fetch_all(&self.pool)
                .await;
            rows.map_err(failed("read receipts"))?.iter().map(StoredReceipt::read).collect()
        })
        .await
    }
}

impl Tx {
    /// Adds a receipt. One that has the same source and reference stays as it is. Returns whether the receipt is new.
    /// Does not move the balance.
    pub(super) async fn add_receipt(
        &mut self,
        installation: &InstallationId,
        receipt: &Receipt,
    ) -> Result<bool, Error> {
        let Receipt { reference, .. } = receipt;
        let CallReference { run_id, attempt, call_id } = &reference.call;
        let added = sqlx::query(ADD)
            .bind(receipt.source.word())
            .bind(reference.to_string())
            .bind(installation.as_str())
            .bind(receipt.kind.word())
            .bind(receipt.account.as_str())
            .bind(receipt.user.as_ref().map(ExternalId::as_str))
            .bind(run_id.as_str())
            .bind(i64::from(*attempt))
            .bind(call_id.to_string())
            .bind(receipt.agent.as_str())
            .bind(receipt.executor.word())
            .bind(receipt.model.as_ref().map(JournalText::as_str))
            .bind(serde_json::to_string(&receipt.tokens).unwrap_or_default())
            .bind(receipt.tokens_source.word())
            .bind(receipt.amount.0)
            .bind(receipt.reason.word())
            .bind(receipt.called_ms)
            .bind(self.now)
            .bind(receipt.corrects().map(ToString::to_string))
            .bind(receipt.credits.0)
            .bind(receipt.rate.markup.to_string())
            .bind(i64::from(receipt.rate.credits_per_dollar.get()))
            .execute(self.connection())
            .await
            .map_err(failed("store a receipt"))?;
        Ok(added.rows_affected() > 0)
    }
}
