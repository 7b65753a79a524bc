//! Names the directory of each session of a managed gateway.

use platform_core::name::path;
use sha2::{Digest, Sha256};

/// Bytes of the hash in a name: enough that no two sessions share one.
const HASH_BYTES: usize = 12;

/// Returns the directory of the session `name`, as the gateway's container sees it: `/workspace/sessions/<hash>`. Names are too
/// long for a directory, and a state key may hold what is private.
#[must_use]
pub fn session_directory(name: &str) -> String {
    let hash = Sha256::digest(name.as_bytes());
    let hash: String = hash[..HASH_BYTES].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}/sessions/{hash}", path::WORKSPACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_session_has_another_directory() {
        let one = session_directory("agent:main:accta:kschat-1");
        assert_eq!(one, session_directory("agent:main:accta:kschat-1"));
        assert_ne!(one, session_directory("agent:main:accta:kschat-2"));
        assert_eq!(one.len(), "/workspace/sessions/".len() + 2 * HASH_BYTES);
    }
}
