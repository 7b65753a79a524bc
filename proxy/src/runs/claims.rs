//! Claims on socket directories: each belongs to one run or one gateway at a time.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, MutexGuard},
};

use platform_core::id::{GatewayId, RunId, SocketDirName};
use platform_runtime::sync::Mutex;

/// An owner of a socket directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DirOwner {
    /// A run that was registered.
    Run(RunId),
    /// A gateway.
    Gateway(GatewayId),
}

impl fmt::Display for DirOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(run_id) => write!(f, "run {run_id}"),
            Self::Gateway(gateway) => write!(f, "gateway {gateway}"),
        }
    }
}

/// Directories that have owners.
#[derive(Debug, Clone, Default)]
pub(super) struct Claims(Arc<Mutex<BTreeMap<SocketDirName, Claimed>>>);

#[derive(Debug)]
struct Claimed {
    owner: DirOwner,
    /// Claims of this owner that were not dropped yet.
    count: usize,
}

impl Claims {
    /// Claims a directory for `owner` until the claim is dropped. An owner may claim its directory once more.
    ///
    /// # Errors
    /// The present owner, if that is another one.
    pub(super) fn claim(&self, name: &SocketDirName, owner: DirOwner) -> Result<Claim, DirOwner> {
        let mut claimed = self.claimed();
        let entry = claimed.entry(name.clone()).or_insert_with(|| Claimed { owner: owner.clone(), count: 0 });
        if entry.owner != owner {
            return Err(entry.owner.clone());
        }
        entry.count += 1;
        Ok(Claim { name: name.clone(), claims: self.clone() })
    }

    /// Returns the owner of a directory.
    pub(super) fn owner(&self, name: &SocketDirName) -> Option<DirOwner> {
        self.claimed().get(name).map(|claimed| claimed.owner.clone())
    }

    fn claimed(&self) -> MutexGuard<'_, BTreeMap<SocketDirName, Claimed>> {
        self.0.lock()
    }
}

/// A claim on a directory. Given up on drop.
#[derive(Debug)]
pub(super) struct Claim {
    name: SocketDirName,
    claims: Claims,
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = self.claims.claimed();
        let Some(entry) = claimed.get_mut(&self.name) else { return };
        entry.count -= 1;
        if entry.count == 0 {
            claimed.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_owner_until_released() {
        let (claims, name) = (Claims::default(), SocketDirName::from_random(7));
        let run = |id: &str| DirOwner::Run(RunId::parse(id).unwrap());
        let first = claims.claim(&name, run("r1")).unwrap();
        let again = claims.claim(&name, run("r1")).unwrap();
        assert_eq!(claims.claim(&name, run("r2")).unwrap_err(), run("r1"));
        drop(first);
        let gateway = DirOwner::Gateway(GatewayId::parse("r1").unwrap());
        assert_eq!(claims.claim(&name, gateway.clone()).unwrap_err(), run("r1"));
        drop(again);
        assert_eq!(claims.owner(&name), None);
        let _theirs = claims.claim(&name, gateway.clone()).unwrap();
        assert_eq!(claims.owner(&name), Some(gateway));
    }
}
