//! Sums up the receipts of runs, corrections included. Like a run's usage, the sums are those of its last attempt.

use std::collections::BTreeMap;

use platform_core::{credits::Credits, id::RunId, money::SignedNanoDollars};
use serde::Serialize;
use sqlx::AssertSqlSafe;

use super::{
    Run, Store,
    error::{Error, failed},
    row::{count, number, parsed},
};

/// Sums of the receipts of a run's last attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct ReceiptSums {
    /// Number of receipts.
    #[serde(rename = "count")]
    pub receipts: u64,
    /// Number of unpriced ones that are not corrected.
    pub unpriced: u64,
    /// Cost of the calls.
    #[serde(rename = "nanodollars")]
    pub cost: SignedNanoDollars,
    /// Credits that the account paid for them.
    pub credits: Credits,
}

impl Store {
    /// Returns the sums of the receipts of the last attempts of `runs`. A run without a receipt has none.
    pub async fn receipt_sums<'r>(
        &self,
        runs: impl IntoIterator<Item = &'r Run>,
    ) -> Result<BTreeMap<RunId, ReceiptSums>, Error> {
        let runs: Vec<_> = runs.into_iter().map(|run| run.run_id.as_str()).collect();
        if runs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let places: Vec<_> = (2..=runs.len() + 1).map(|number| format!("${number}")).collect();
        let statement = format!(
            "SELECT receipts.run, COUNT(*) AS receipts, CAST(SUM(nanodollars) AS BIGINT) AS nanodollars, \
             CAST(SUM(credits) AS BIGINT) AS credits, SUM(CASE WHEN charge_reason = 'unpriced' AND NOT EXISTS \
             (SELECT 1 FROM receipts AS later WHERE later.corrects = receipts.source_reference) THEN 1 ELSE 0 END) \
             AS unpriced FROM receipts JOIN runs ON runs.run = receipts.run AND runs.attempt = receipts.attempt \
             WHERE receipts.installation = $1 AND receipts.run IN ({}) GROUP BY receipts.run",
            places.join(", ")
        );
        self.retry(async || {
            let mut query = sqlx::query(AssertSqlSafe(statement.clone())).bind(self.installation.as_str());
            for run in &runs {
                query = query.bind(*run);
            }
            let rows = query.fetch_all(&self.pool).await.map_err(failed("sum up receipts"))?;
            let sums = rows.iter().map(|row| {
                let run_id = parsed(row, "run", |text| RunId::parse(text).ok())?;
                let sums = ReceiptSums {
                    receipts: count(row, "receipts")?,
                    unpriced: count(row, "unpriced")?,
                    cost: SignedNanoDollars(number(row, "nanodollars")?),
                    credits: Credits(number(row, "credits")?),
                };
                Ok((run_id, sums))
            });
            sums.collect()
        })
        .await
    }
}
