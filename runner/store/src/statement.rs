//! Makes statements: what an account was given and used within a month.
//!
//! A receipt belongs to the month in which it was stored, and so does a correction. The statement of a month that has
//! ended therefore never changes. The closing balance of a month is the opening one of the next.

use std::collections::BTreeMap;

use futures_util::TryStreamExt;
use platform_core::{
    credits::Credits, id::AccountId, money::SignedNanoDollars, record::Tokens, untrusted::JournalText,
};
use runner_model::receipt::{Receipt, ReceiptKind};

use super::{
    Month, Store, StoredReceipt, TopUp, Tx,
    error::{Error, failed},
};

const ACTION: &str = "make a statement";
const OPENING: &str = "SELECT CAST((SELECT COALESCE(SUM(credits), 0) FROM top_ups \
     WHERE installation = $1 AND account = $2 AND created < $3) - \
     (SELECT COALESCE(SUM(credits), 0) FROM receipts \
     WHERE installation = $1 AND account = $2 AND created < $3) AS BIGINT)";
const TOP_UPS: &str = "SELECT * FROM top_ups WHERE installation = $1 AND account = $2 AND created >= $3 AND created < $4 \
     ORDER BY created, idempotency_key";
const RECEIPTS: &str =
    "SELECT * FROM receipts WHERE installation = $1 AND account = $2 AND created >= $3 AND created < $4";

/// Statement of an account for a month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// The account.
    pub account: AccountId,
    /// The month.
    pub month: Month,
    /// Balance before the month.
    pub opening: Credits,
    /// Top-ups of the month, the oldest first.
    pub top_ups: Vec<TopUp>,
    /// Sums of the month's receipts, by kind and model.
    pub lines: Vec<StatementLine>,
}

/// Sums of the receipts of one kind for one model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatementLine {
    /// Kind of the receipts.
    pub kind: ReceiptKind,
    /// Model of their calls.
    pub model: Option<JournalText>,
    /// Number of receipts.
    pub receipts: u64,
    /// Tokens of their calls.
    pub tokens: Tokens,
    /// Their cost.
    pub cost: SignedNanoDollars,
    /// Credits that were paid for them.
    pub credits: Credits,
}

impl Statement {
    /// Returns the balance after the month.
    #[must_use]
    pub fn closing(&self) -> Credits {
        self.opening + self.paid_in() - self.charged()
    }

    /// Returns the credits of all top-ups.
    #[must_use]
    pub fn paid_in(&self) -> Credits {
        self.top_ups.iter().map(|top_up| top_up.top_up.credits).sum()
    }

    /// Returns the credits of all receipts.
    #[must_use]
    pub fn charged(&self) -> Credits {
        self.lines.iter().map(|line| line.credits).sum()
    }
}

impl StatementLine {
    fn add(&mut self, receipt: &Receipt) {
        self.receipts += 1;
        self.tokens += receipt.tokens;
        self.cost = self.cost + receipt.amount;
        self.credits = self.credits + receipt.credits;
    }
}

impl Store {
    /// Returns the statement of `account` for `month`.
    pub async fn statement(&self, account: &AccountId, month: Month) -> Result<Statement, Error> {
        self.read(async |mut tx| {
            let opening: i64 = sqlx::query_scalar(OPENING)
                .bind(self.installation.as_str())
                .bind(account.as_str())
                .bind(month.begin().0)
                .fetch_one(tx.connection())
                .await
                .map_err(failed(ACTION))?;
            let top_ups = sqlx::query(TOP_UPS)
                .bind(self.installation.as_str())
                .bind(account.as_str())
                .bind(month.begin().0)
                .bind(month.end().0)
                .fetch_all(tx.connection())
                .await
                .map_err(failed(ACTION))?;
            let top_ups = top_ups.iter().map(TopUp::read).collect::<Result<_, _>>()?;
            let lines = tx.statement_lines(self.installation.as_str(), account, month).await?;
            tx.finish(
                ACTION,
                Statement { account: account.clone(), month, opening: Credits(opening), top_ups, lines },
            )
            .await
        })
        .await
    }
}

impl Tx {
    /// Returns the sums of an account's receipts of a month. Holds one receipt at a time.
    async fn statement_lines(
        &mut self,
        installation: &str,
        account: &AccountId,
        month: Month,
    ) -> Result<Vec<StatementLine>, Error> {
        let mut sums = BTreeMap::new();
        let mut rows = sqlx::query(RECEIPTS)
            .bind(installation)
            .bind(account.as_str())
            .bind(month.begin().0)
            .bind(month.end().0)
            .fetch(self.connection());
        while let Some(row) = rows.try_next().await.map_err(failed(ACTION))? {
            let receipt = StoredReceipt::read(&row)?.receipt;
            let key = (receipt.kind.word(), receipt.model.as_ref().map(ToString::to_string));
            let line = sums.entry(key).or_insert_with(|| StatementLine {
                kind: receipt.kind,
                model: receipt.model.clone(),
                receipts: 0,
                tokens: Tokens::default(),
                cost: SignedNanoDollars(0),
                credits: Credits(0),
            });
            line.add(&receipt);
        }
        // Calls come before the adjustments, by their words in reverse.
        Ok(sums.into_values().rev().collect())
    }
}
