//! Reads the upstream's ledger through the proxy.

use http::Method;
use platform_core::spend::{MAX_SPEND_PAGE, SpendPage};

use crate::{DataPlane, Error};

impl DataPlane {
    /// Returns a page of the upstream's ledger: rows of calls that began from the second `from` to the second `until`
    /// since the epoch. Pages count from 1.
    pub async fn spend(&self, from: u64, until: u64, page: u64) -> Result<SpendPage, Error> {
        let path =
            format!("/v1/upstream/spend?from={from}&until={until}&page={page}&page_size={MAX_SPEND_PAGE}");
        self.request(Method::GET, &path, None::<&()>).await
    }
}

impl Error {
    /// Returns whether a page of the upstream's ledger is larger than the proxy takes.
    pub fn is_page_too_large(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "ledger_page_too_large")
    }
}
