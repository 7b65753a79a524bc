//! A relay between the proxy and its upstream, whose connections can be counted, cut and refused.

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

/// Forwards connections to another address.
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
    /// If no port can be had.
    pub async fn to(target: SocketAddr) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), target).await
    }

    /// Starts a relay to `target` that is reached at `address`.
    ///
    /// # Panics
    /// If that cannot be had.
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

    /// `http://127.0.0.1:PORT`
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

    /// Closes every connection there is now.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }

    /// Closes every connection there is, as an upstream does with idle ones, and returns when that is done.
    ///
    /// # Panics
    /// Never: what is waited for lives as long as this.
    pub async fn close_connections(&self) {
        self.cut();
        self.open.subscribe().wait_for(|open| *open == 0).await.unwrap();
    }
}

async fn forward(mut from: TcpStream, target: SocketAddr, mut cuts: watch::Receiver<usize>) {
    // A target that is not there is not there behind a relay, either.
    let Ok(mut to) = TcpStream::connect(target).await else { return };
    for stream in [&from, &to] {
        stream.set_nodelay(true).unwrap();
    }
    tokio::select! {
        _ = copy_bidirectional(&mut from, &mut to) => {}
        _ = cuts.changed() => {}
    }
}
