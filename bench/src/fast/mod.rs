//! Serves prepared bytes: the scripted upstream's fast mode, which is never the bottleneck.
//!
//! It parses only the end of each request and the answer that the path selects:
//!
//! | path ends with | answer |
//! |---|---|
//! | `/chat/completions` | one JSON document of about 600 bytes; a stream if the body asks for one |
//!
//! A document may be held back (`hold200ms`). A stream has as many events as the model's name says (`events64`). They
//! go out without a pause, or with a pause between them (`gap20ms`). Each event carries the time of its writing, so
//! that a client in the same process can measure its delay. The fast mode keeps no ledger and checks nothing;
//! [`crate::upstream`] does both.

mod answer;
mod request;

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::AsyncWriteExt,
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

use self::request::{Requests, Wanted};
use crate::spawn;

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
        Ok(Self { address, serving: spawn(accept(listener)) })
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

async fn accept(listener: TcpListener) {
    loop {
        // The process has most likely run out of descriptors; the clients report that.
        let Ok((stream, _)) = listener.accept().await else { continue };
        if stream.set_nodelay(true).is_ok() {
            drop(spawn(async move { drop(serve(stream).await) }));
        }
    }
}

async fn serve(mut stream: TcpStream) -> io::Result<()> {
    let mut requests = Requests::default();
    while let Some(wanted) = requests.next(&mut stream).await? {
        match wanted {
            Wanted::Document { hold } => {
                if let Some(hold) = hold {
                    tokio::time::sleep(hold).await;
                }
                stream.write_all(answer::DOCUMENT).await?;
            }
            Wanted::Stream { events, gap } => stream_events(&mut stream, events, gap).await?,
        }
    }
    Ok(())
}

async fn stream_events(stream: &mut TcpStream, events: u32, gap: Option<Duration>) -> io::Result<()> {
    stream.write_all(answer::STREAM_HEAD).await?;
    let mut next = tokio::time::Instant::now();
    for _ in 0..events {
        if let Some(gap) = gap {
            next += gap;
            tokio::time::sleep_until(next).await;
        }
        stream.write_all(&answer::event()).await?;
    }
    stream.write_all(answer::STREAM_END).await
}
