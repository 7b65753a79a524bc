//! Resolves the upstream's name, again for new connections, so that its address may change.
//!
//! The look-up uses the system's own resolver, which also works in an empty image and reads `/etc/hosts`.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use platform_runtime::sync::Mutex;
use tokio::{sync, time::timeout};

/// Time for which an answer is used again: a burst of connections needs one look-up.
const LOOKUP_RETENTION: Duration = Duration::from_secs(1);
/// Time for which an address that did not answer is tried after the others.
const AVOIDED_RETENTION: Duration = Duration::from_secs(10);

type Lookup = Box<dyn Fn(String, u16) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> + Send + Sync>;

/// Resolver of one name.
pub(super) struct Resolver {
    host: String,
    port: u16,
    lookup: Lookup,
    /// Addresses that were found last. Locked during a look-up, so that concurrent calls wait for its answer.
    found: sync::Mutex<Option<(Vec<SocketAddr>, Instant)>>,
    /// Addresses that did not answer.
    avoided: Mutex<Vec<(SocketAddr, Instant)>>,
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Resolver {
    /// Creates a resolver of `host`, an address or a name, with the system's resolver.
    pub(super) fn new(host: String, port: u16) -> Self {
        let lookup = |host: String, port| -> BoxFuture<'static, _> {
            Box::pin(async move { Ok(tokio::net::lookup_host((host, port)).await?.collect()) })
        };
        Self::with_lookup(Box::new(lookup), host, port)
    }

    fn with_lookup(lookup: Lookup, host: String, port: u16) -> Self {
        Self { host, port, lookup, found: sync::Mutex::new(None), avoided: Mutex::default() }
    }

    pub(super) fn host(&self) -> &str {
        &self.host
    }

    /// Returns the upstream's addresses, in the order in which they should be tried; never none. Where the name cannot
    /// be looked up within `limit`, the addresses that were found last are used.
    ///
    /// # Errors
    /// If the name is not known, and never was.
    pub(super) async fn addresses(&self, limit: Duration) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = self.host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, self.port)]);
        }
        let mut found = self.found.lock().await;
        let fresh = found.as_ref().filter(|(_, since)| since.elapsed() < LOOKUP_RETENTION);
        let mut addresses = match fresh {
            Some((addresses, _)) => addresses.clone(),
            None => match self.look_up(limit).await {
                Ok(addresses) => {
                    *found = Some((addresses.clone(), Instant::now()));
                    addresses
                }
                Err(error) => match found.as_ref() {
                    Some((addresses, _)) => addresses.clone(),
                    None => return Err(error),
                },
            },
        };
        drop(found);
        let avoided = self.avoided();
        addresses.sort_by_key(|address| avoided.contains(address));
        Ok(addresses)
    }

    async fn look_up(&self, limit: Duration) -> io::Result<Vec<SocketAddr>> {
        let lookup = (self.lookup)(self.host.clone(), self.port);
        let addresses =
            timeout(limit, lookup).await.unwrap_or_else(|_elapsed| Err(io::ErrorKind::TimedOut.into()))?;
        if addresses.is_empty() { Err(io::ErrorKind::NotFound.into()) } else { Ok(addresses) }
    }

    /// Records that `address` did not answer: it is tried last for a while.
    pub(super) fn avoid(&self, address: SocketAddr) {
        let mut avoided = self.avoided.lock();
        avoided.retain(|(other, since)| *other != address && since.elapsed() < AVOIDED_RETENTION);
        avoided.push((address, Instant::now()));
    }

    fn avoided(&self) -> Vec<SocketAddr> {
        let mut avoided = self.avoided.lock();
        avoided.retain(|(_, since)| since.elapsed() < AVOIDED_RETENTION);
        avoided.iter().map(|(address, _)| *address).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    };

    use super::*;

    /// Creates a resolver that gives `answers` one after the other, then the last for ever, and counts its look-ups.
    pub(in crate::upstream) fn scripted(
        answers: Vec<io::Result<Vec<SocketAddr>>>,
    ) -> (Resolver, Arc<AtomicUsize>) {
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let lookup = move |_host, _port| -> BoxFuture<'static, _> {
            let at = count.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            let answer = answers[at].as_ref().map(Clone::clone).map_err(|error| error.kind().into());
            Box::pin(async move { answer })
        };
        (Resolver::with_lookup(Box::new(lookup), "upstream".to_owned(), 80), asked)
    }

    fn address(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 80))
    }

    async fn forget(resolver: &Resolver) {
        let long_ago = Instant::now().checked_sub(LOOKUP_RETENTION * 2).unwrap();
        resolver.found.lock().await.as_mut().unwrap().1 = long_ago;
    }

    const TIMEOUT: Duration = Duration::from_secs(5);

    #[tokio::test]
    async fn a_name_is_followed_and_a_burst_asks_once() {
        let (resolver, asked) = scripted(vec![Ok(vec![address(1)]), Ok(vec![address(2)])]);
        let burst = futures_util::future::join_all((0..20).map(|_| resolver.addresses(TIMEOUT))).await;
        assert!(burst.into_iter().all(|found| found.unwrap() == [address(1)]));
        assert_eq!(asked.load(Ordering::SeqCst), 1);
        forget(&resolver).await;
        assert_eq!(resolver.addresses(TIMEOUT).await.unwrap(), [address(2)]);
    }

    #[tokio::test]
    async fn a_failed_lookup_keeps_the_last_addresses() {
        let (resolver, _) =
            scripted(vec![Ok(vec![address(1)]), Err(io::ErrorKind::TimedOut.into()), Ok(Vec::new())]);
        for _ in 0..3 {
            assert_eq!(resolver.addresses(TIMEOUT).await.unwrap(), [address(1)]);
            forget(&resolver).await;
        }
        let (resolver, _) = scripted(vec![Err(io::ErrorKind::NotFound.into())]);
        assert_eq!(resolver.addresses(TIMEOUT).await.unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[tokio::test]
    async fn an_address_that_did_not_answer_is_tried_last() {
        let (resolver, _) = scripted(vec![Ok(vec![address(1), address(2), address(3)])]);
        resolver.avoid(address(1));
        assert_eq!(resolver.addresses(TIMEOUT).await.unwrap(), [address(2), address(3), address(1)]);
    }
}
