//! Keeps the balance of each account: its top-ups less the credits of its receipts.
//!
//! A balance moves in the transaction that stores the receipt or the top-up, so it always equals their sums.

use std::collections::BTreeMap;

use platform_core::{
    credits::Credits,
    id::{AccountId, InstallationId},
};
use runner_model::receipt::Receipt;
use serde::Serialize;
use sqlx::any::AnyRow;

use super::{
    Store, Tx, UnixMillis,
    error::{Error, failed},
    row::{number, parsed},
    usage_sums::SumChanges,
};

const MOVE: &str = "INSERT INTO balances (installation, account, credits, changed) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (installation, account) DO UPDATE SET credits = balances.credits + $3, changed = $4";
const LIST: &str = "SELECT account, credits, changed FROM balances WHERE installation = $1 \
     AND ($2 IS NULL OR account = $2) ORDER BY account";

const LIST_BELOW: &str = "SELECT account, credits, changed FROM balances WHERE installation = $1 AND credits < $2 \
     ORDER BY account";

/// Balance of an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Balance {
    /// The account.
    pub account: AccountId,
    /// Credits that are left; negative if more was used than was paid for.
    pub credits: Credits,
    /// Time at which the balance last changed.
    #[serde(rename = "changed_ms")]
    pub changed: UnixMillis,
}

/// Effects of new receipts and calls, on the credits of accounts and on sums.
#[derive(Debug, Default)]
pub(super) struct Charges {
    credits: BTreeMap<AccountId, Credits>,
    pub(super) sums: SumChanges,
}

impl Charges {
    /// Adds a new receipt.
    pub(super) fn add(&mut self, receipt: &Receipt) {
        self.sums.add(receipt);
        let charged = self.credits.entry(receipt.account.clone()).or_default();
        *charged = *charged + receipt.credits;
    }
}

impl Balance {
    fn read(row: &AnyRow) -> Result<Self, Error> {
        Ok(Self {
            account: parsed(row, "account", |text| AccountId::parse(text).ok())?,
            credits: Credits(number(row, "credits")?),
            changed: UnixMillis(number(row, "changed")?),
        })
    }
}

impl Store {
    /// Returns the balances of all accounts that ever had a receipt or a top-up, or that of `account`, by account.
    pub async fn balances(&self, account: Option<&AccountId>) -> Result<Vec<Balance>, Error> {
        self.retry(async || {
            let rows = sqlx::query(LIST)
                .bind(self.installation.as_str())
                .bind(account.map(AccountId::as_str))
                .fetch_all(&self.pool)
                .await;
            rows.map_err(failed("read balances"))?.iter().map(Balance::read).collect()
        })
        .await
    }

    /// Returns the balances below `credits`, by account.
    pub async fn balances_below(&self, credits: Credits) -> Result<Vec<Balance>, Error> {
        self.retry(async || {
            let rows = sqlx::query(LIST_BELOW)
                .bind(self.installation.as_str())
                .bind(credits.0)
                .fetch_all(&self.pool)
                .await;
            rows.map_err(failed("read balances"))?.iter().map(Balance::read).collect()
        })
        .await
    }
}

impl Tx {
    /// Takes `charges` from the balances of their accounts, and adds them to the sums. Locks the rows in the order of accounts, so that two
    /// transactions do not wait for each other.
    pub(super) async fn charge(
        &mut self,
        installation: &InstallationId,
        charges: &Charges,
    ) -> Result<(), Error> {
        for (account, credits) in &charges.credits {
            self.move_balance(installation, account, -*credits).await?;
        }
        self.add_to_sums(installation, &charges.sums).await
    }

    /// Adds `credits` to the balance of `account`.
    pub(super) async fn move_balance(
        &mut self,
        installation: &InstallationId,
        account: &AccountId,
        credits: Credits,
    ) -> Result<(), Error> {
        sqlx::query(MOVE)
            .bind(installation.as_str())
            .bind(account.as_str())
            .bind(credits.0)
            .bind(self.now)
            .execute(self.connection())
            .await
            .map_err(failed("move a balance"))?;
        Ok(())
    }
}
