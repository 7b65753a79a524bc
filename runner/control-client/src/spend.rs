//! Reads prices and the upstream's ledger through the proxy, and lets limits count with what the ledger says.

use http::Method;
use platform_core::{
    control::ModelPrice,
    record::{CorrectionEffect, LedgerFigures},
    spend::{MAX_SPEND_PAGE, SpendPage},
};

use crate::{DataPlane, Error};

impl DataPlane {
    /// Returns the prices that limits count with.
    pub async fn prices(&self) -> Result<Vec<ModelPrice>, Error> {
        self.request(Method::GET, "/v1/prices", None::<&()>).await
    }

    /// Returns a page of the upstream's ledger: rows of calls that began from the second `from` to the second `until`
    /// since the epoch. Pages count from 1.
    pub async fn spend(&self, from: u64, until: u64, page: u64) -> Result<SpendPage, Error> {
        let path =
            format!("/v1/upstream/spend?from={from}&until={until}&page={page}&page_size={MAX_SPEND_PAGE}");
        self.request(Method::GET, &path, None::<&()>).await
    }

    /// Corrects calls by the ledger's figures, and returns the effect on each. Repeating it is harmless.
    pub async fn correct(&self, ledger: &[LedgerFigures]) -> Result<Vec<CorrectionEffect>, Error> {
        self.request(Method::POST, "/v1/corrections", Some(&ledger)).await
    }
}

impl Error {
    /// Returns whether a page of the upstream's ledger is larger than the proxy takes.
    pub fn is_page_too_large(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "ledger_page_too_large")
    }
}
