//! places bounds which relays are continued at the same time: few of all, fewer of one host, and none twice.

use std::collections::BTreeMap;

use platform_core::id::RunId;
use runner_store::StoredRelay;

/// Number of relays that are continued at the same time.
const ALL: usize = 8;
/// Number of those with repositories on the same host. One that does not answer leaves places to others.
const OF_ONE_HOST: usize = 4;

/// Attempt of a run with a relay to continue.
pub(super) type RelayId = (RunId, u32);

/// Places of the relays that are being continued, each with the host of its repository.
#[derive(Debug, Default)]
pub(super) struct Places {
    taken: BTreeMap<RelayId, String>,
}

impl Places {
    /// Takes a place for `relay`. Returns whether there was one, and the relay had none.
    pub(super) fn take(&mut self, relay: &StoredRelay) -> bool {
        self.take_for(id(relay), host(&relay.url))
    }

    fn take_for(&mut self, id: RelayId, host: &str) -> bool {
        let of_host = self.taken.values().filter(|taken| *taken == host).count();
        let is_free = self.taken.len() < ALL && of_host < OF_ONE_HOST && !self.taken.contains_key(&id);
        if is_free {
            self.taken.insert(id, host.to_owned());
        }
        is_free
    }

    /// Returns whether `relay` has a place.
    pub(super) fn has(&self, relay: &StoredRelay) -> bool {
        self.taken.contains_key(&id(relay))
    }

    /// Gives up the place of a relay.
    pub(super) fn leave(&mut self, id: &RelayId) {
        self.taken.remove(id);
    }
}

/// Returns the id of `relay`.
pub(super) fn id(relay: &StoredRelay) -> RelayId {
    (relay.run_id.clone(), relay.attempt)
}

/// Returns scheme, host and port of an address.
fn host(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + "://".len());
    &url[..url[start..].find('/').map_or(url.len(), |at| start + at)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: usize) -> RelayId {
        (RunId::parse(&format!("r{number}")).unwrap(), 1)
    }

    #[test]
    fn one_host_leaves_places_to_others() {
        let mut places = Places::default();
        let taken = (0..10).filter(|number| places.take_for(run(*number), "https://slow.example"));
        assert_eq!(taken.count(), OF_ONE_HOST);
        let others = (10..20).filter(|number| places.take_for(run(*number), &format!("https://{number}")));
        assert_eq!(others.count(), ALL - OF_ONE_HOST);
        places.leave(&run(10));
        assert!(places.take_for(run(30), "https://other.example"), "a place has become free");
    }

    #[test]
    fn a_relay_has_one_place() {
        let mut places = Places::default();
        assert!(places.take_for(run(1), "https://a.example"));
        assert!(!places.take_for(run(1), "https://a.example"));
        places.leave(&run(1));
        assert!(places.take_for(run(1), "https://a.example"));
    }

    #[test]
    fn an_address_has_a_host() {
        assert_eq!(host("https://git.example:8443/acme/app"), "https://git.example:8443");
        assert_eq!(host("file:///srv/git/app"), "file://");
        assert_eq!(host("odd"), "odd");
    }
}
