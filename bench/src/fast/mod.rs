//! Serves prepared bytes: the scripted upstream's fast mode, which is never the bottleneck.
//!
//! It parses only the end of each request and the answer that the path selects:
//!
//! | path ends with | answer |
//! |---|---|
//! | `/chat/completions` | one JSON document of about 600 bytes; a stream if the body asks for one |
//!
//! An agent (`fast-agent`) gets the headers that a real gateway answers with, thirty of them. A document may be held back (`hold200ms`). A stream has as many events as the model's name says (`events64`). They
//! go out without a pause, or with a pause between them (`gap20ms`). Each event carries the time of its writing, so
//! that a client in the same process can measure its delay. The fast mode keeps no ledger and checks nothing;
//! [`crate::upstream`] does both.

mod answer;
mod request;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use self::request::{Requests, Wanted};
use crate::{spawn, tls::Identity};

/// The fast upstream, serving until it is dropped.
#[derive(Debug)]
pub struct FastUpstream {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

impl FastUpstream {
    /// Starts to serve on a free port of the loopback interface, in the current tokio runtime.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        Ok(Self::on(listener, address))
    }

    /// Starts to serve on `listener`, bound to `address`, in the current tokio runtime.
    #[must_use]
    pub fn on(listener: TcpListener, address: SocketAddr) -> Self {
        Self { address, serving: spawn(accept(listener, None)) }
    }

    /// Starts to serve with TLS on a free port of the loopback interface, in the current tokio runtime.
    ///
    /// # Errors
    /// If no port can be bound.
    pub async fn start_with_tls(identity: &Identity) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let tls = TlsAcceptor::from(Arc::clone(&identity.server));
        Ok(Self { address, serving: spawn(accept(listener, Some(tls))) })
    }

    /// Returns the address it listens on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for FastUpstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>) {
    loop {
        // The process has most likely run out of descriptors; the clients report that.
        let Ok((stream, _)) = listener.accept().await else { continue };
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        drop(match tls.clone() {
            None => spawn(async move { drop(serve(stream).await) }),
            Some(tls) => spawn(async move {
                if let Ok(stream) = tls.accept(stream).await {
                    drop(serve(stream).await);
                }
            }),
        });
    }
}

async fn serve(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    let mut requests = Requests::default();
    while let Some(wanted) = requests.next(&mut stream).await? {
        match wanted {
            Wanted::Document { hold } => {
                if let Some(hold) = hold {
                    tokio::time::sleep(hold).await;
                }
                send(&mut stream, answer::DOCUMENT).await?;
            }
            Wanted::AgentDocument => send(&mut stream, answer::AGENT_DOCUMENT).await?,
            Wanted::Stream { events, gap } => stream_events(&mut stream, events, gap).await?,
        }
    }
    Ok(())
}

async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

async fn stream_events(
    stream: &mut (impl AsyncWrite + Unpin),
    events: u32,
    gap: Option<Duration>,
) -> io::Result<()> {
    send(stream, answer::STREAM_HEAD).await?;
    let mut next = tokio::time::Instant::now();
    for _ in 0..events {
        if let Some(gap) = gap {
            next += gap;
            tokio::time::sleep_until(next).await;
        }
        send(stream, &answer::event()).await?;
    }
    send(stream, answer::STREAM_END).await
}
