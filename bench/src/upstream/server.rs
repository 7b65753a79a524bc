//! Accepts connections, serves them with hyper, and resets one if a script requests it.

use std::{error::Error, time::Duration};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::{JoinError, JoinSet},
    time::sleep,
};

use super::{playback::NoAnswer, respond::Responder};

/// Delay after a failed accept. A shortage of descriptors passes, and a tight loop would prolong it.
const ACCEPT_AGAIN: Duration = Duration::from_millis(10);

/// Accepts until `stop` changes, then drops every connection abruptly and returns when all are closed.
pub(super) async fn accept(listener: TcpListener, responder: Responder, mut stop: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // An error means that the upstream was dropped, which is a stop too.
            _ = stop.changed() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve(stream, responder.clone()));
                }
                Err(_) => sleep(ACCEPT_AGAIN).await,
            },
            Some(ended) = connections.join_next() => pass_on_panic(ended),
        }
    }
    connections.shutdown().await;
}

/// Propagates a panic. It is a fault of this upstream: it must fail the test, not look like a lost connection.
pub(super) fn pass_on_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && let Ok(panic) = error.try_into_panic()
    {
        std::panic::resume_unwind(panic);
    }
}

/// Serves one connection until its client or a script ends it.
async fn serve(stream: TcpStream, responder: Responder) {
    // A test that cannot turn off Nagle's algorithm would measure it.
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let service = service_fn(|request| responder.clone().respond(request));
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // The ledger records all other ends of a connection that concern a request.
    if let Err(error) = (&mut connection).await
        && error.source().is_some_and(|source| matches!(source.downcast_ref(), Some(NoAnswer::Cut)))
    {
        let stream = connection.into_parts().io.into_inner();
        // The close that follows becomes a reset; a socket that is already closed needs none.
        drop(stream.set_zero_linger());
    }
}
