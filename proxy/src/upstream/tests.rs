//! Tests connections that succeed, those that fail, and the reaction of the circuit.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use http::HeaderValue;
use platform_core::{control::UpstreamState, record::Timeout};
use tokio::{
    net::{TcpListener, TcpSocket, TcpStream},
    time::timeout,
};

use super::{
    Config, Scheme, Target, Upstream,
    connect::{ConnectError, Connector},
    resolve::tests::scripted,
};

const TIMEOUT: Duration = Duration::from_millis(600);

fn connector(addresses: Vec<SocketAddr>) -> Connector {
    Connector {
        resolver: scripted(vec![Ok(addresses)]).0,
        tls: None,
        connect_timeout: TIMEOUT,
        tls_timeout: TIMEOUT,
    }
}

fn target(port: u16) -> Arc<Target> {
    let config = Config {
        host: "127.0.0.1".to_owned(),
        port,
        authority: HeaderValue::from_static("upstream"),
        path: String::new(),
        scheme: Scheme::Http,
        connect_timeout: TIMEOUT,
        tls_timeout: TIMEOUT,
        idle_timeout: TIMEOUT,
        max_idle: 2,
        probe_path: None,
    };
    Arc::new(Target::new(config).unwrap())
}

async fn listening() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Returns an address without a listener.
async fn refusing() -> SocketAddr {
    listening().await.1
}

/// Returns an address that neither accepts nor refuses, as long as what is returned with it lives: its queue is full.
async fn silent() -> (SocketAddr, TcpListener, Vec<TcpStream>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut queue = Vec::new();
    while let Ok(stream) = timeout(Duration::from_millis(300), TcpStream::connect(address)).await {
        queue.push(stream.unwrap());
    }
    (address, listener, queue)
}

#[tokio::test]
async fn connections_have_nodelay_and_keepalive() {
    let (_listener, address) = listening().await;
    let stream = connector(vec![address]).connect().await.unwrap();
    assert!(stream.tcp().nodelay().unwrap());
    assert!(rustix::net::sockopt::socket_keepalive(stream.tcp()).unwrap());
}

#[tokio::test]
async fn a_failed_address_leaves_time_for_the_next() {
    let (silent, _listener, _queue) = silent().await;
    let (_other, good) = listening().await;
    let connector = connector(vec![silent, refusing().await, good]);
    let began = Instant::now();
    let stream = connector.connect().await.unwrap();
    assert_eq!(stream.tcp().peer_addr().unwrap(), good);
    assert!(began.elapsed() >= TIMEOUT / 4, "the first one had its share");
    let again = connector.resolver.addresses(TIMEOUT).await.unwrap();
    assert_eq!(again[0], good, "and is tried last from then on");
}

#[tokio::test]
async fn a_failure_says_what_failed() {
    let (silent, _listener, _queue) = silent().await;
    let failure = connector(vec![silent]).connect().await.unwrap_err();
    assert_eq!(failure.timeout().map(|(timeout, _)| timeout), Some(Timeout::Connect), "{failure:?}");
    let failure = connector(vec![refusing().await]).connect().await.unwrap_err();
    assert!(matches!(&failure, ConnectError::Connect { .. }) && failure.timeout().is_none(), "{failure:?}");
    let (resolver, _) = scripted(vec![Err(io::ErrorKind::NotFound.into())]);
    let failure = Connector { resolver, ..connector(Vec::new()) }.connect().await.unwrap_err();
    assert!(matches!(failure, ConnectError::Name { .. }), "{failure:?}");
}

#[test]
fn own_lack_of_resources_is_no_upstream_failure() {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    let failed = |errno: rustix::io::Errno| ConnectError::Connect { address, source: errno.into() };
    assert!(failed(rustix::io::Errno::MFILE).is_local());
    assert!(!failed(rustix::io::Errno::CONNREFUSED).is_local());
}

#[tokio::test]
async fn a_probe_brings_a_refusing_upstream_back() {
    let (listener, address) = listening().await;
    drop(listener);
    let target = target(address.port());
    let pool = Upstream::new(Arc::clone(&target));
    for _ in 0..5 {
        assert!(pool.check().is_ok());
        assert!(target.connect().await.is_err());
    }
    assert!(pool.check().is_err(), "and nothing more is tried");
    let UpstreamState::Down { reason, .. } = target.circuit().state() else {
        panic!("{:?}", target.circuit().state())
    };
    assert!(reason.contains(&address.to_string()), "{reason}");
    let _listener = TcpListener::bind(address).await.unwrap();
    let up = async {
        while pool.check().is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = pool.maintain() => {}
        () = up => {}
        () = tokio::time::sleep(Duration::from_secs(60)) => panic!("{:?}", target.circuit().state()),
    }
    assert_eq!(target.circuit().state(), UpstreamState::Up);
}

/// Callers that are less patient than the proxy would otherwise never find out.
#[tokio::test]
async fn abandoned_attempts_count_as_failures() {
    let (silent, _listener, _queue) = silent().await;
    let mut config = Arc::into_inner(target(silent.port())).unwrap();
    config.set_connect_timeout(Duration::from_secs(60));
    let leave = |_| timeout(Duration::from_millis(1100), config.connect());
    let left = futures_util::future::join_all((0..5).map(leave)).await;
    assert!(left.iter().all(Result::is_err));
    assert!(config.circuit().retry_after().is_some());
    assert!(timeout(Duration::from_millis(10), config.connect()).await.is_err(), "a short wait says nothing");
}

#[tokio::test]
async fn the_pool_keeps_no_more_than_it_may() {
    let (listener, address) = listening().await;
    let target = target(address.port());
    let pool = Upstream::new(Arc::clone(&target));
    let mut accepted = Vec::new();
    for _ in 0..3 {
        let stream = target.connect().await.unwrap();
        pool.give_back(super::Connection::over(stream).await.unwrap());
        accepted.push(listener.accept().await.unwrap());
    }
    assert_eq!(pool.idle(), 2);
}
