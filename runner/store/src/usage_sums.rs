//! Keeps sums of receipts and of refused calls by span of time, so that an overview of months reads few rows.
//!
//! A sum changes in the transaction that stores the receipt or the call, so it always equals what it sums up. A receipt
//! counts at the time of its call, and so does a correction.

use std::collections::BTreeMap;

use platform_core::{
    id::{AccountId, InstallationId},
    record::ExchangeRecord,
    untrusted::JournalText,
};
use runner_model::receipt::{ChargeReason, Receipt, ReceiptKind};
use sqlx::AssertSqlSafe;

use super::{
    Store, SumSpan, Tx, UnixMillis,
    error::{Error, failed},
};

/// Version of the schema that brings the sums.
pub(super) const SINCE: usize = 24;

const ACTION: &str = "sum up receipts";
const ADD_USAGE: &str = "INSERT INTO usage_sums (installation, span, began, account, model, calls, input_tokens, \
     output_tokens, nanodollars, credits, unpriced) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
     ON CONFLICT (installation, span, began, account, model) DO UPDATE SET calls = usage_sums.calls + $6, \
     input_tokens = usage_sums.input_tokens + $7, output_tokens = usage_sums.output_tokens + $8, \
     nanodollars = usage_sums.nanodollars + $9, credits = usage_sums.credits + $10, \
     unpriced = usage_sums.unpriced + $11";
const ADD_REFUSALS: &str = "INSERT INTO refusal_sums (installation, span, began, account, refusal, calls) \
     VALUES ($1, $2, $3, $4, $5, $6) \
     ON CONFLICT (installation, span, began, account, refusal) DO UPDATE SET calls = refusal_sums.calls + $6";
const REMOVE_USAGE: &str = "DELETE FROM usage_sums WHERE installation = $1 AND span = $2 AND began < $3";
const REMOVE_REFUSALS: &str = "DELETE FROM refusal_sums WHERE installation = $1 AND span = $2 AND began < $3";
const REMOVE_RUNS: &str = "DELETE FROM run_sums WHERE installation = $1 AND span = $2 AND began < $3";

/// Place of a sum: its span, the beginning, the account, and the model or the reason.
type SumPlace = (SumSpan, UnixMillis, AccountId, String);

/// Changes of sums, in the order of their places.
#[derive(Debug, Default)]
pub(super) struct SumChanges {
    usage: BTreeMap<SumPlace, UsageChange>,
    refusals: BTreeMap<SumPlace, i64>,
}

#[derive(Debug, Default)]
struct UsageChange {
    calls: i64,
    input: i64,
    output: i64,
    nanodollars: i64,
    credits: i64,
    unpriced: i64,
}

impl SumChanges {
    /// Adds a new receipt.
    pub(super) fn add(&mut self, receipt: &Receipt) {
        let is_unpriced = receipt.kind == ReceiptKind::ModelCall && receipt.reason == ChargeReason::Unpriced;
        for place in receipt_places(receipt) {
            let change = self.usage.entry(place).or_default();
            change.calls += i64::from(receipt.kind == ReceiptKind::ModelCall);
            change.unpriced += i64::from(is_unpriced);
            change.input = change.input.saturating_add(signed(receipt.tokens.input));
            change.output = change.output.saturating_add(signed(receipt.tokens.output));
            change.nanodollars = change.nanodollars.saturating_add(receipt.amount.0);
            change.credits = change.credits.saturating_add(receipt.credits.0);
        }
    }

    /// Notes that `correction` tells the price of a call that had none.
    pub(super) fn add_price(&mut self, correction: &Receipt) {
        for place in receipt_places(correction) {
            self.usage.entry(place).or_default().unpriced -= 1;
        }
    }

    /// Adds the refusal of a new line of a journal, if it describes one.
    pub(super) fn add_refusal(&mut self, began: UnixMillis, record: &ExchangeRecord) {
        let Some(refusal) = record.refusal.filter(|_| record.calls > 0) else { return };
        for place in places(began, &record.account, refusal.code()) {
            let calls = self.refusals.entry(place).or_default();
            *calls = calls.saturating_add(signed(record.calls));
        }
    }
}

fn receipt_places(receipt: &Receipt) -> [SumPlace; 3] {
    let model = receipt.model.as_ref().map(JournalText::as_str).unwrap_or_default();
    places(UnixMillis(receipt.called_ms), &receipt.account, model)
}

fn places(time: UnixMillis, account: &AccountId, word: &str) -> [SumPlace; 3] {
    SumSpan::ALL.map(|span| (span, span.begin_of(time), account.clone(), word.to_owned()))
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Store {
    /// Removes sums of short spans that no overview shows any more. Returns their number. Sums of days stay.
    pub async fn remove_old_sums(&self) -> Result<u64, Error> {
        let action = "remove old sums";
        self.write(async |mut tx| {
            let mut removed = 0;
            for span in SumSpan::ALL {
                let Some(kept) = span.kept() else { continue };
                let oldest = UnixMillis(tx.now).before(kept);
                for statement in [REMOVE_USAGE, REMOVE_REFUSALS, REMOVE_RUNS] {
                    let query = sqlx::query(statement).bind(self.installation.as_str());
                    let query = query.bind(span.length()).bind(oldest.0);
                    removed += query.execute(tx.connection()).await.map_err(failed(action))?.rows_affected();
                }
            }
            tx.finish(action, removed).await
        })
        .await
    }
}

impl Tx {
    /// Adds `changes` to the sums. Locks the rows in one order, so that two transactions do not wait for each other.
    pub(super) async fn add_to_sums(
        &mut self,
        installation: &InstallationId,
        changes: &SumChanges,
    ) -> Result<(), Error> {
        for ((span, began, account, model), change) in &changes.usage {
            let query = sqlx::query(ADD_USAGE)
                .bind(installation.as_str())
                .bind(span.length())
                .bind(began.0)
                .bind(account.as_str())
                .bind(model)
                .bind(change.calls)
                .bind(change.input)
                .bind(change.output)
                .bind(change.nanodollars)
                .bind(change.credits)
                .bind(change.unpriced);
            query.execute(self.connection()).await.map_err(failed(ACTION))?;
        }
        for ((span, began, account, refusal), calls) in &changes.refusals {
            let query = sqlx::query(ADD_REFUSALS)
                .bind(installation.as_str())
                .bind(span.length())
                .bind(began.0)
                .bind(account.as_str())
                .bind(refusal)
                .bind(calls);
            query.execute(self.connection()).await.map_err(failed(ACTION))?;
        }
        Ok(())
    }

    /// Sums up the receipts and the refused calls that an older schema has stored.
    pub(super) async fn fill_sums(&mut self) -> Result<(), Error> {
        let tokens = self.backend.json("tokens");
        let record = self.backend.json("calls.record");
        for span in SumSpan::ALL {
            let length = span.length();
            let since = span.kept().map_or(i64::MIN, |kept| UnixMillis(self.now).before(kept).0);
            let usage = format!(
                "INSERT INTO usage_sums SELECT installation, CAST({length} AS BIGINT), called - called % {length}, account, \
                 COALESCE(model, ''), SUM(CASE WHEN receipt_kind = 'model_call' THEN 1 ELSE 0 END), \
                 CAST(SUM(CAST({tokens} ->> 'input' AS BIGINT)) AS BIGINT), \
                 CAST(SUM(CAST({tokens} ->> 'output' AS BIGINT)) AS BIGINT), CAST(SUM(nanodollars) AS BIGINT), \
                 CAST(SUM(credits) AS BIGINT) FROM receipts WHERE called >= $1 GROUP BY 1, 3, 4, 5"
            );
            let refusals = format!(
                "INSERT INTO refusal_sums SELECT runs.installation, CAST({length} AS BIGINT), at - at % {length}, \
                 runs.account, {record} ->> 'refusal', \
                 CAST(SUM(COALESCE(CAST({record} ->> 'calls' AS BIGINT), 1)) AS BIGINT) \
                 FROM calls JOIN runs ON runs.run = calls.run \
                 WHERE at >= $1 AND {record} ->> 'refusal' IS NOT NULL GROUP BY 1, 3, 4, 5"
            );
            for statement in [usage, refusals] {
                let query = sqlx::query(AssertSqlSafe(statement)).bind(since);
                query.execute(self.connection()).await.map_err(failed(ACTION))?;
            }
        }
        Ok(())
    }

    /// Counts the receipts without a price that an older schema has stored.
    pub(super) async fn fill_unpriced(&mut self) -> Result<(), Error> {
        for span in SumSpan::ALL {
            let length = span.length();
            let since = span.kept().map_or(i64::MIN, |kept| UnixMillis(self.now).before(kept).0);
            let statement = format!(
                "INSERT INTO usage_sums (installation, span, began, account, model, calls, input_tokens, output_tokens, \
                 nanodollars, credits, unpriced) SELECT installation, CAST({length} AS BIGINT), called - called % {length}, \
                 account, COALESCE(model, ''), 0, 0, 0, 0, 0, COUNT(*) FROM receipts WHERE called >= $1 \
                 AND receipt_kind = 'model_call' AND charge_reason = 'unpriced' AND NOT EXISTS \
                 (SELECT 1 FROM receipts AS later WHERE later.corrects = receipts.source_reference) GROUP BY 1, 3, 4, 5 \
                 ON CONFLICT (installation, span, began, account, model) DO UPDATE SET unpriced = excluded.unpriced"
            );
            let query = sqlx::query(AssertSqlSafe(statement)).bind(since);
            query.execute(self.connection()).await.map_err(failed(ACTION))?;
        }
        Ok(())
    }
}
