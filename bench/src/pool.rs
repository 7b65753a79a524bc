//! Generates load from several threads, for peers with several threads. Each thread has a runtime, a share of the
//! clients and a share of the upstream.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    thread,
    time::Duration,
};

use tokio::sync::{mpsc, oneshot};

use crate::{
    fast::FastUpstream,
    hop::bind_shared,
    load::{Client, Round, closed},
    measure::cores::{self, Division},
};

/// Threads that generate load and answer as the upstream, until it is dropped.
#[derive(Debug)]
pub struct LoadPool {
    upstream: SocketAddr,
    threads: Vec<mpsc::Sender<Order>>,
}

/// Clients to run for a time, and the channel for the result.
#[derive(Debug)]
struct Order {
    clients: Vec<Client>,
    span: Duration,
    done: oneshot::Sender<io::Result<Round>>,
}

impl LoadPool {
    /// Starts the threads beside a peer with `peer_threads`.
    ///
    /// # Errors
    /// If no port can be bound.
    pub fn start(peer_threads: usize) -> io::Result<Self> {
        // Bound once by all threads; the port was free a moment ago.
        let upstream = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let processors = Division::of(cores::available(), peer_threads).load;
        let mut threads = Vec::new();
        for _ in &processors {
            let (sender, orders) = mpsc::channel(1);
            let (started, is_started) = std::sync::mpsc::channel();
            let processors = processors.clone();
            thread::spawn(move || serve(upstream, &processors, orders, &started));
            is_started.recv().map_err(io::Error::other)??;
            threads.push(sender);
        }
        Ok(Self { upstream, threads })
    }

    /// Returns the address of the upstream.
    #[must_use]
    pub const fn upstream(&self) -> SocketAddr {
        self.upstream
    }

    /// Does what [`closed`] does, with the clients divided among the threads.
    ///
    /// # Errors
    /// The first failure of any connection.
    pub async fn closed(&self, clients: Vec<Client>, span: Duration) -> io::Result<Round> {
        let mut shares = vec![Vec::new(); self.threads.len()];
        for (client, share) in clients.into_iter().zip((0..self.threads.len()).cycle()) {
            shares[share].push(client);
        }
        let mut results = Vec::new();
        for (thread, clients) in self.threads.iter().zip(shares) {
            let (done, result) = oneshot::channel();
            thread.send(Order { clients, span, done }).await.map_err(io::Error::other)?;
            results.push(result);
        }
        let mut all = Round::default();
        for result in results {
            all.absorb(result.await.map_err(io::Error::other)??);
        }
        Ok(all)
    }
}

fn serve(
    upstream: SocketAddr,
    processors: &[usize],
    mut orders: mpsc::Receiver<Order>,
    started: &std::sync::mpsc::Sender<io::Result<()>>,
) {
    let runtime = cores::pin(processors)
        .and_then(|()| tokio::runtime::Builder::new_current_thread().enable_all().build());
    let Ok(runtime) = runtime.map_err(|error| started.send(Err(error))) else { return };
    runtime.block_on(async {
        let listening = bind_shared(upstream);
        let Ok(listener) = listening.map_err(|error| started.send(Err(error))) else { return };
        let _upstream = FastUpstream::on(listener, upstream);
        if started.send(Ok(())).is_err() {
            return;
        }
        while let Some(Order { clients, span, done }) = orders.recv().await {
            drop(done.send(closed(clients, span).await));
        }
    });
}
