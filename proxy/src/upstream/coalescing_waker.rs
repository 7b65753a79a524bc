//! Provides a waker for parts that one task polls together and that wake each other while it does.
//!
//! hyper's connection, request and body talk through channels. So handing over a piece wakes the very task that is
//! about to take it. That task would then be polled once more for nothing.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use futures_util::task::AtomicWaker;

const ASLEEP: u8 = 0;
const POLLING: u8 = 1;
/// State after a wake while polling.
const AGAIN: u8 = 2;

/// Wakes the task that polled last, unless it is polling.
#[derive(Debug)]
pub(super) struct CoalescingWaker {
    shared: Arc<Shared>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Shared {
    task: AtomicWaker,
    state: AtomicU8,
}

impl Default for CoalescingWaker {
    fn default() -> Self {
        let shared = Arc::new(Shared::default());
        Self { waker: Waker::from(Arc::clone(&shared)), shared }
    }
}

impl CoalescingWaker {
    /// Polls until `poll` is ready or had no wake meanwhile. From then on a wake goes to the task of `cx`.
    pub(super) fn poll<T>(
        &self,
        cx: &Context<'_>,
        mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.shared.task.register(cx.waker());
        let mut own = Context::from_waker(&self.waker);
        loop {
            self.shared.state.store(POLLING, Ordering::SeqCst);
            let polled = poll(&mut own);
            let before = self.shared.state.swap(ASLEEP, Ordering::SeqCst);
            // A part that was woken before the result was ready is polled at the next call.
            if polled.is_ready() || before == POLLING {
                return polled;
            }
        }
    }
}

impl Wake for Shared {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let polling = self.state.compare_exchange(POLLING, AGAIN, Ordering::SeqCst, Ordering::SeqCst);
        if polling == Err(ASLEEP) {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    #[derive(Default)]
    struct Counted(AtomicUsize);

    impl Wake for Counted {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_wake_while_polling_polls_again() {
        let coalescing = CoalescingWaker::default();
        let task = Arc::new(Counted::default());
        let waker = Waker::from(Arc::clone(&task));
        let mut polls = 0;
        let polled = coalescing.poll(&Context::from_waker(&waker), |cx| {
            polls += 1;
            if polls < 3 {
                cx.waker().wake_by_ref();
            }
            Poll::<()>::Pending
        });
        assert!(polled.is_pending());
        assert_eq!((polls, task.0.load(Ordering::SeqCst)), (3, 0));
    }

    #[test]
    fn a_later_wake_wakes_the_task_that_polled_last() {
        let coalescing = CoalescingWaker::default();
        let tasks = [Arc::new(Counted::default()), Arc::new(Counted::default())];
        let mut kept = None;
        for task in &tasks {
            let waker = Waker::from(Arc::clone(task));
            let polled = coalescing.poll(&Context::from_waker(&waker), |cx| {
                kept = Some(cx.waker().clone());
                Poll::<()>::Pending
            });
            assert!(polled.is_pending());
        }
        kept.unwrap().wake();
        assert_eq!(tasks.each_ref().map(|task| task.0.load(Ordering::SeqCst)), [0, 1]);
    }
}
