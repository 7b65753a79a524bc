//! Tracks answers that are not written out. A call is recorded before the last bytes of its answer leave, and
//! a proxy that stops waits for those bytes as well.
//!
//! hyper keeps the bytes that a slow client does not read. It drops an answer's body once all of it is in its buffer.
//! It flushes the stream below only when that buffer is empty. So an answer is out at the first flush after its body
//! was dropped.

use std::{
    cell::Cell,
    pin::Pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::Response;
use http_body::{Frame, SizeHint};
use tokio::sync::Notify;

/// Count of a data-plane thread's connections that have an answer not written out.
#[derive(Debug, Default)]
pub(crate) struct WriteTracker {
    connections: AtomicU64,
    none: Notify,
}

impl WriteTracker {
    /// Waits until all answers are written out.
    pub(crate) async fn wait_until_written(&self) {
        loop {
            let none = self.none.notified();
            tokio::pin!(none);
            none.as_mut().enable();
            if self.connections.load(Ordering::SeqCst) == 0 {
                return;
            }
            none.await;
        }
    }
}

/// The answer of one connection. Clones refer to the same connection.
#[derive(Debug, Clone)]
pub(super) struct PendingWrite(Rc<ConnectionWrites>);

#[derive(Debug)]
struct ConnectionWrites {
    all: Arc<WriteTracker>,
    stage: Cell<WriteStage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WriteStage {
    /// The connection has no answer.
    None,
    /// There is an answer, or a request that will get one.
    Pending,
    /// There is an answer that is whole in hyper's buffer.
    Buffered,
}

impl PendingWrite {
    pub(super) fn new(all: Arc<WriteTracker>) -> Self {
        Self(Rc::new(ConnectionWrites { all, stage: Cell::new(WriteStage::None) }))
    }

    /// Notes that a request has come.
    pub(super) fn begin(&self) {
        if self.0.stage.replace(WriteStage::Pending) == WriteStage::None {
            self.0.all.connections.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Returns `answer` with a body that reports when all of it is buffered.
    pub(super) fn track<B>(&self, answer: Response<B>) -> Response<TrackedBody<B>> {
        answer.map(|body| TrackedBody { body, pending_write: self.clone() })
    }

    /// Returns whether the connection has no answer of ours, and will have none.
    pub(super) fn is_none(&self) -> bool {
        self.0.stage.get() == WriteStage::None
    }

    /// Notes that the stream has nothing left to write.
    pub(super) fn flushed(&self) {
        if self.0.stage.get() == WriteStage::Buffered {
            self.0.stage.set(WriteStage::None);
            self.0.all.release_one();
        }
    }
}

impl WriteTracker {
    fn release_one(&self) {
        if self.connections.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.none.notify_waiters();
        }
    }
}

impl Drop for ConnectionWrites {
    fn drop(&mut self) {
        if self.stage.get() != WriteStage::None {
            self.all.release_one();
        }
    }
}

/// The body of an answer.
#[derive(Debug)]
pub(super) struct TrackedBody<B> {
    body: B,
    pending_write: PendingWrite,
}

impl<B> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        self.pending_write.0.stage.set(WriteStage::Buffered);
    }
}

impl<B> http_body::Body for TrackedBody<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
