//! Bounds work of all accounts together, and of each account, so that none can take all of it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use platform_core::id::AccountId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::Error;

/// Permits for work that runs at the same time. Clones share them.
#[derive(Debug, Clone)]
pub(crate) struct FairPermits(Arc<PermitTable>);

#[derive(Debug)]
struct PermitTable {
    all: Arc<Semaphore>,
    /// Most permits of an account.
    share: usize,
    /// Permits of accounts that hold one or wait for one.
    accounts: Mutex<HashMap<AccountId, Weak<Semaphore>>>,
}

/// Permit, which is given back on drop.
#[derive(Debug)]
pub(crate) struct FairPermit {
    _of_account: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl FairPermits {
    /// Returns `most` permits, of which an account holds up to `share`.
    pub(crate) fn new(most: usize, share: usize) -> Self {
        Self(Arc::new(PermitTable { all: Arc::new(Semaphore::new(most)), share, accounts: Mutex::default() }))
    }

    /// Waits for a permit of `account`. Those of an account come in the order in which they are asked for. Cancel safe.
    ///
    /// # Errors
    /// [`Error::Internal`], never in practice: no semaphore is closed.
    pub(crate) async fn acquire(&self, account: &AccountId) -> Result<FairPermit, Error> {
        // First the account's: while it waits for that, it takes none from others.
        let of_account = self.of_account(account).acquire_owned().await.map_err(|_closed| Error::Internal)?;
        let of_all = Arc::clone(&self.0.all).acquire_owned().await.map_err(|_closed| Error::Internal)?;
        Ok(FairPermit { _of_account: of_account, _of_all: of_all })
    }

    fn of_account(&self, account: &AccountId) -> Arc<Semaphore> {
        let mut accounts = self.0.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.retain(|_, semaphore| semaphore.strong_count() > 0);
        if let Some(semaphore) = accounts.get(account).and_then(Weak::upgrade) {
            return semaphore;
        }
        let semaphore = Arc::new(Semaphore::new(self.0.share));
        accounts.insert(account.clone(), Arc::downgrade(&semaphore));
        semaphore
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn account(text: &str) -> AccountId {
        AccountId::parse(text).unwrap()
    }

    #[tokio::test]
    async fn an_account_leaves_permits_to_others() {
        let permits = FairPermits::new(4, 3);
        let acquire = async |of: &str| permits.acquire(&account(of)).await.unwrap();
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(acquire("ann").await);
        }
        let mut waiting = Box::pin(acquire("ann"));
        assert!(waiting.as_mut().now_or_never().is_none(), "it has its share");
        let of_bob = acquire("bob").now_or_never().expect("another account has one at once");
        assert!(acquire("eve").now_or_never().is_none(), "there are no more in all");
        drop(of_bob);
        assert!(waiting.as_mut().now_or_never().is_none(), "what others give back is not for it");
        held.pop();
        waiting.await;
    }

    #[tokio::test]
    async fn accounts_without_permits_are_forgotten() {
        let permits = FairPermits::new(2, 1);
        for name in ["ann", "bob", "eve"] {
            drop(permits.acquire(&account(name)).await.unwrap());
        }
        let _held = permits.acquire(&account("ann")).await.unwrap();
        let accounts = permits.0.accounts.lock().unwrap();
        assert_eq!(accounts.keys().collect::<Vec<_>>(), [&account("ann")]);
    }
}
