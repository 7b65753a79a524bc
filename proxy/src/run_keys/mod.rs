//! Gives each run its own key at the upstream, with the run's budget as a second limit.
//!
//! A key is minted by the first call of a run, and deleted after the run's end, by its alias. The alias is on the disk
//! before the key exists, so a crash loses no key: the next proxy deletes it. The key itself is in memory only. A run
//! that goes on after a restart gets another one.
//!
//! Invariants: a key's alias is stored before the key is minted (`test:an_alias_is_stored_before_its_key`). Each key is
//! deleted, whatever is killed (`test:a_killed_proxy_leaves_no_key`).

mod admin;
mod alias;

use std::{
    io,
    path::Path,
    sync::{Arc, MutexGuard},
    time::Duration,
};

use http::HeaderValue;
use platform_runtime::{report, sync::Mutex, task};
use tokio::{sync::Notify, time::timeout};

pub(crate) use self::admin::Error;
use self::{
    admin::{AdminApi, mint_request},
    alias::{KeyAlias, KeyAliases, ReservedAlias},
};
use crate::{
    run::{Run, RunKey},
    upstream::Upstream,
};

/// Time in which the upstream may still mint a key after its mint broke off.
const DOUBT_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between two attempts to delete a key.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// Keys of all runs.
#[derive(Debug)]
pub(crate) struct RunKeys {
    aliases: Mutex<KeyAliases>,
    retired: Notify,
}

impl RunKeys {
    /// Reads the aliases of keys that earlier proxies have left from `file`.
    ///
    /// # Errors
    /// If the file cannot be read or written, or holds anything else.
    pub(crate) fn open(file: &Path) -> io::Result<Self> {
        Ok(Self { aliases: Mutex::new(KeyAliases::open(file)?), retired: Notify::new() })
    }

    /// Returns the key of `run`, minted with the credential `admin` if the run has none. Cancel safe: a mint goes on
    /// without its caller.
    ///
    /// # Errors
    /// If the alias is not stored, or the upstream mints no key.
    pub(crate) async fn key(
        self: &Arc<Self>,
        run: &Arc<Run>,
        upstream: &Arc<Upstream>,
        admin: &HeaderValue,
    ) -> Result<Arc<RunKey>, Error> {
        if let Some(key) = run.key.get() {
            return Ok(key);
        }
        let _one_at_a_time = run.key.lock_mint().await;
        if let Some(key) = run.key.get() {
            return Ok(key);
        }
        let keys = Arc::clone(self);
        let run = Arc::clone(run);
        let upstream = Arc::clone(upstream);
        let admin = admin.clone();
        let minted = task::spawn("mint", async move { keys.mint(&run, &upstream, admin).await });
        minted.await.unwrap_or(Err(Error::NoKey))
    }

    async fn mint(
        self: Arc<Self>,
        run: &Run,
        upstream: &Upstream,
        authorization: HeaderValue,
    ) -> Result<Arc<RunKey>, Error> {
        let keys = Arc::clone(&self);
        let holder = run.key.holder();
        let alias = KeyAlias::of(&run.grant);
        // Waits for the disk, which must not hold up the calls of this thread.
        let reserved = tokio::task::spawn_blocking(move || keys.aliases().reserve(holder, alias)).await;
        let reserved = reserved.map_err(io::Error::other).and_then(|reserved| reserved);
        let admin = AdminApi { upstream, authorization };
        let alias = match reserved.map_err(Error::NotStored)? {
            ReservedAlias::New(alias) => alias,
            ReservedAlias::Again(alias) => {
                admin.delete(&alias).await?;
                alias
            }
        };
        let minted = admin.mint(&mint_request(run, &alias)).await?;
        if !self.aliases().minted(&alias) {
            self.retired.notify_one();
        }
        let key = Arc::new(RunKey::of(&minted).ok_or(Error::NoKey)?);
        run.key.set(&key);
        Ok(key)
    }

    /// Marks the keys of `run` for deletion: all its calls have ended.
    pub(crate) fn retire(&self, run: &Run) {
        self.aliases().retire(run.key.holder());
        self.retired.notify_one();
    }

    /// Returns the number of keys that exist, or may exist.
    pub(crate) fn count(&self) -> usize {
        self.aliases().count()
    }

    /// Returns once keys may have to be deleted.
    pub(crate) async fn wait_for_retired(&self) {
        // A key that could not be deleted is tried again after a while.
        drop(timeout(RETRY_INTERVAL, self.retired.notified()).await);
    }

    /// Deletes the keys of runs that have ended, as far as the upstream does it now. A key that it refuses to delete
    /// delays no other; an upstream that gives no answer is asked again later.
    pub(crate) async fn delete_retired(&self, upstream: &Upstream, admin: Option<HeaderValue>) {
        let retired = self.aliases().retired();
        let Some(authorization) = admin else { return };
        let admin = AdminApi { upstream, authorization };
        for alias in retired {
            match admin.delete(&alias).await {
                Ok(deletion) => {
                    if let Err(error) = self.aliases().deleted(&alias, deletion) {
                        let error = report::chain(&error);
                        tracing::warn!(%alias, error, "the deletion of a run's key is not stored");
                    }
                }
                Err(error) => {
                    let text = report::chain(&error);
                    tracing::warn!(%alias, error = text, "a run's key is not deleted yet; trying again");
                    if matches!(error, Error::NoAnswer { .. }) {
                        return;
                    }
                }
            }
        }
    }

    fn aliases(&self) -> MutexGuard<'_, KeyAliases> {
        self.aliases.lock()
    }
}
