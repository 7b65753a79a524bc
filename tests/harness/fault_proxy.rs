//! Relays connections, for example between the proxy and its upstream. A test can count, cut and refuse them.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::watch,
};

/// A relay to another address.
#[derive(Debug)]
pub struct FaultProxy {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    open: watch::Sender<usize>,
    cuts: watch::Sender<usize>,
    turns_away: Arc<AtomicBool>,
}

impl FaultProxy {
    /// Starts a relay to `target`.
    ///
    /// # Panics
    /// If no port is free.
    pub async fn to(target: SocketAddr) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), target).await
    }

    /// Starts a relay to `target` that is reached at `address`.
    ///
    /// # Panics
    /// If `address` cannot be bound.
    pub async fn at(address: SocketAddr, target: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let fault_proxy = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            open: watch::Sender::new(0),
            cuts: watch::Sender::new(0),
            turns_away: Arc::default(),
        };
        let (connections, open) = (Arc::clone(&fault_proxy.connections), fault_proxy.open.clone());
        let (cuts, turns_away) = (fault_proxy.cuts.clone(), Arc::clone(&fault_proxy.turns_away));
        platform_runtime::task::spawn("fault proxy", async move {
            while let Ok((stream, _)) = listener.accept().await {
                if turns_away.load(Ordering::SeqCst) {
                    continue;
                }
                connections.fetch_add(1, Ordering::SeqCst);
                open.send_modify(|open| *open += 1);
                let (open, forwarded) = (open.clone(), forward(stream, target, cuts.subscribe()));
                platform_runtime::task::spawn("fault proxy connection", async move {
                    forwarded.await;
                    open.send_modify(|open| *open -= 1);
                });
            }
        });
        fault_proxy
    }

    /// Returns `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the number of connections made so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Closes new connections at once from now on.
    pub fn turn_away(&self) {
        self.turns_away.store(true, Ordering::SeqCst);
    }

    /// Lets new connections through from now on.
    pub fn let_through(&self) {
        self.turns_away.store(false, Ordering::SeqCst);
    }

    /// Closes every present connection.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Closes every present connection, as an upstream does with idle ones, and returns when they are closed.
    ///
    /// # Panics
    /// Never: the awaited sender lives as long as the relay.
    pub async fn close_connections(&self) {
        self.cut();
        self.open.subscribe().wait_for(|open| *open == 0).await.unwrap();
    }
}

async fn forward(mut from: TcpStream, target: SocketAddr, mut cuts: watch::Receiver<usize>) {
    // If the target is unavailable, the client's connection is closed.
    let Ok(mut to) = TcpStream::connect(target).await else { return };
    for stream in [&from, &to] {
        stream.set_nodelay(true).unwrap();
    }
    tokio::select! {
        _ = copy_bidirectional(&mut from, &mut to) => {}
        _ = cuts.changed() => {}
    }
}
