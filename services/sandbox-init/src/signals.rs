//! Signals meant for the agent: of the first process the kernel drops whatever it has no handler for, so each that is to
//! arrive is named here.

use std::{future::poll_fn, io, task::Poll};

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// What the agent gets if we get it.
const FORWARDED: [Signal; 7] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::WINCH];

/// Handlers, from when it is made to the end of the process.
#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    pub(crate) fn listen() -> io::Result<Self> {
        let listen = |kind: Signal| Ok((kind, signal(SignalKind::from_raw(kind.as_raw()))?));
        FORWARDED.into_iter().map(listen).collect::<io::Result<_>>().map(Self)
    }

    /// The next one. Dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            let mut streams = self.0.iter_mut();
            let came =
                streams.find_map(|(kind, stream)| stream.poll_recv(context).is_ready().then_some(*kind));
            came.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// The next one that ends who does not handle it.
    pub(crate) async fn next_stop(&mut self) -> Signal {
        loop {
            match self.next().await {
                Signal::USR1 | Signal::USR2 | Signal::WINCH => {}
                stop => return stop,
            }
        }
    }
}
