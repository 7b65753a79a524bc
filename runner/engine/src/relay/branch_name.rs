//! Derives the name of the branch that a run's commits go to.

use platform_core::id::{AccountId, ExternalId, RunId};
use runner_git::{BranchKey, InvalidBranch};
use sha2::{Digest as _, Sha256};

/// Most characters of a name that are part of a derived key.
const MAX_PART: usize = 60;
/// Bytes of the hash that tells derived keys apart.
const HASH_SIZE: usize = 6;

/// Names of a run from which its branch can be called.
#[derive(Debug, Clone, Copy)]
pub struct BranchNames<'n> {
    /// Id of the run.
    pub run_id: &'n RunId,
    /// Account that pays for the run.
    pub account: &'n AccountId,
    /// Thread that the run continues.
    pub thread: Option<&'n ExternalId>,
}

impl BranchNames<'_> {
    /// Returns the key of the branch: `explicit`, else the thread's, else the run's. Threads of two accounts have
    /// different keys, even if they have the same name.
    ///
    /// # Errors
    /// If `explicit` is not a key.
    pub fn key(&self, explicit: Option<&str>) -> Result<BranchKey, InvalidBranch> {
        match (explicit, self.thread) {
            (Some(key), _) => BranchKey::parse(key.strip_prefix("sandbox/").unwrap_or(key)),
            (None, Some(thread)) => derived(&[self.account.as_str(), thread.as_str()], thread.as_str()),
            (None, None) => match BranchKey::parse(self.run_id.as_str()) {
                Ok(key) => Ok(key),
                Err(_not_a_key) => derived(&[self.run_id.as_str()], self.run_id.as_str()),
            },
        }
    }
}

/// Returns a key that begins like `name` and is another one for other `parts`.
fn derived(parts: &[&str], name: &str) -> Result<BranchKey, InvalidBranch> {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(format!("{}:{part}", part.len()));
    }
    let hash: String = hash.finalize()[..HASH_SIZE].iter().map(|byte| format!("{byte:02x}")).collect();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let name: String = name.chars().map(plain).take(MAX_PART).collect();
    let name = name.trim_matches('-');
    let key = if name.is_empty() { hash } else { format!("{name}-{hash}") };
    // A name of people may not stand first either.
    BranchKey::parse(&key).or_else(|_reserved| BranchKey::parse(&format!("agent-{key}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names<'n>(
        run_id: &'n RunId,
        account: &'n AccountId,
        thread: Option<&'n ExternalId>,
    ) -> BranchNames<'n> {
        BranchNames { run_id, account, thread }
    }

    fn text(key: BranchKey) -> String {
        key.into()
    }

    #[test]
    fn a_branch_is_called_by_its_nearest_name() {
        let run_id = RunId::parse("run-1").unwrap();
        let [a, b] = ["acct-a", "acct-b"].map(|account| AccountId::parse(account).unwrap());
        let thread = ExternalId::parse("release notes/ö").unwrap();
        assert_eq!(text(names(&run_id, &a, None).key(None).unwrap()), "run-1");
        assert_eq!(text(names(&run_id, &a, Some(&thread)).key(Some("sandbox/fix")).unwrap()), "fix");
        let key = text(names(&run_id, &a, Some(&thread)).key(None).unwrap());
        assert!(key.starts_with("agent-release-notes-"), "{key}");
        assert_ne!(key, text(names(&run_id, &b, Some(&thread)).key(None).unwrap()));
        for key in ["main", "HEAD", "staging", "release-1", "a/b", ""] {
            assert!(names(&run_id, &a, None).key(Some(key)).is_err(), "{key}");
        }
    }
}
