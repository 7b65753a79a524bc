//! A detour between the proxy and its upstream, where connections can be counted and cut.

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
pub struct Detour {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    open: watch::Sender<usize>,
    cuts: watch::Sender<usize>,
    turns_away: Arc<AtomicBool>,
}

impl Detour {
    /// A detour to `target`.
    ///
    /// # Panics
    /// If no port can be had.
    pub async fn to(target: SocketAddr) -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)), target).await
    }

    /// A detour to `target` that is reached at `address`.
    ///
    /// # Panics
    /// If that cannot be had.
    pub async fn at(address: SocketAddr, target: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let detour = Self {
            address: listener.local_addr().unwrap(),
            connections: Arc::default(),
            open: watch::Sender::new(0),
            cuts: watch::Sender::new(0),
            turns_away: Arc::default(),
        };
        let (connections, open) = (Arc::clone(&detour.connections), detour.open.clone());
        let (cuts, turns_away) = (detour.cuts.clone(), Arc::clone(&detour.turns_away));
        platform_runtime::task::spawn("detour", async move {
            while let Ok((stream, _)) = listener.accept().await {
                if turns_away.load(Ordering::SeqCst) {
                    continue;
                }
                connections.fetch_add(1, Ordering::SeqCst);
                open.send_modify(|open| *open += 1);
                let (open, forwarded) = (open.clone(), forward(stream, target, cuts.subscribe()));
                platform_runtime::task::spawn("detour connection", async move {
                    forwarded.await;
                    open.send_modify(|open| *open -= 1);
                });
            }
        });
        detour
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

    /// New connections are closed at once.
    pub fn turn_away(&self) {
        self.turns_away.store(true, Ordering::SeqCst);
    }

    /// New connections are let through.
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
    // Who is not there is as little there at the end of a detour.
    let Ok(mut to) = TcpStream::connect(target).await else { return };
    for stream in [&from, &to] {
        stream.set_nodelay(true).unwrap();
    }
    tokio::select! {
        _ = copy_bidirectional(&mut from, &mut to) => {}
        _ = cuts.changed() => {}
    }
}
