//! Handles the signals meant for the agent. The kernel drops signals to the first process that have no handler, so each
//! one to pass on is named here.

use std::{future::poll_fn, io, task::Poll};

use rustix::process::Signal;
use tokio::signal::unix::{self, SignalKind, signal};

/// Signals passed on to the agent.
const FORWARDED: [Signal; 7] =
    [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT, Signal::USR1, Signal::USR2, Signal::WINCH];

/// Handlers, active from creation to the end of the process.
#[derive(Debug)]
pub(crate) struct Signals(Vec<(Signal, unix::Signal)>);

impl Signals {
    /// Installs the handlers.
    pub(crate) fn listen() -> io::Result<Self> {
        let listen = |kind: Signal| Ok((kind, signal(SignalKind::from_raw(kind.as_raw()))?));
        FORWARDED.into_iter().map(listen).collect::<io::Result<_>>().map(Self)
    }

    /// Waits for the next signal. Cancel safe: dropping the future loses none.
    pub(crate) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            let mut streams = self.0.iter_mut();
            let received =
                streams.find_map(|(kind, stream)| stream.poll_recv(context).is_ready().then_some(*kind));
            received.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    /// Waits for the next signal that would end a process without a handler for it.
    pub(crate) async fn next_stop(&mut self) -> Signal {
        loop {
            match self.next().await {
                Signal::USR1 | Signal::USR2 | Signal::WINCH => {}
                stop => return stop,
            }
        }
    }
}
