//! Keeps a run's own key at the upstream.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use http::HeaderValue;
use platform_core::secret::Secret;
use platform_runtime::random;
use tokio::sync::{Mutex, MutexGuard};

use crate::mask::Mask;

/// Key of a run, as it is used by its calls.
#[derive(Debug)]
pub(crate) struct RunKey {
    /// `Bearer …`; marked sensitive, so that it is not printed.
    pub(crate) authorization: HeaderValue,
    /// Mask of the key alone.
    pub(crate) mask: Mask,
}

/// Holder of keys: an open run. A run that replaces another of the same id and attempt is another holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyHolder(u128);

/// Place of a run's key. Calls that come before there is a key wait for one mint.
#[derive(Debug, Default)]
pub(crate) struct RunKeySlot {
    holder: KeyHolder,
    key: ArcSwapOption<RunKey>,
    minting: Mutex<()>,
}

impl Default for KeyHolder {
    /// Returns a holder that differs from every other.
    fn default() -> Self {
        Self(random::bits())
    }
}

impl RunKey {
    /// Returns the key as calls use it; `None` if a header cannot carry it.
    pub(crate) fn of(key: &Secret) -> Option<Self> {
        let mut authorization = HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()?;
        authorization.set_sensitive(true);
        Some(Self { authorization, mask: Mask::of([key.expose()].into_iter()) })
    }
}

impl RunKeySlot {
    /// Returns the holder of the run's keys.
    pub(crate) const fn holder(&self) -> KeyHolder {
        self.holder
    }

    /// Returns the key, if it was minted.
    pub(crate) fn get(&self) -> Option<Arc<RunKey>> {
        self.key.load_full()
    }

    /// Sets the key that was minted.
    pub(crate) fn set(&self, key: &Arc<RunKey>) {
        self.key.store(Some(Arc::clone(key)));
    }

    /// Lets the next call mint another key, with the limits that hold then. Calls in flight go on with the present one.
    pub(crate) fn reset(&self) {
        self.key.store(None);
    }

    /// Waits for a mint that is under way. No other begins while the guard is held.
    pub(crate) async fn lock_mint(&self) -> MutexGuard<'_, ()> {
        self.minting.lock().await
    }
}
