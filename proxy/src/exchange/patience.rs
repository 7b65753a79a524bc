//! Tracks whom a connection waits for, since when, and which timeout passes next.
//!
//! Pure: it receives what happens and when, and says which timeout passes first. `timed` and the call itself
//! act on that.

use std::time::{Duration, Instant};

use platform_core::{grant::CallTimes, record::Timeout};

/// The limits of a connection that carries no call.
#[derive(Debug, Clone, Copy)]
pub(super) struct Quiet {
    /// Longest time from the first byte of a request's head to its last.
    pub(super) head: Duration,
    /// Longest time between two requests.
    pub(super) keep_alive: Duration,
}

/// Timeout that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Passed {
    /// Nothing was asked.
    Idle,
    /// A head began to come and did not end.
    Head,
    /// A timeout of the call.
    Call(Timeout),
}

/// Timeouts of one connection.
#[derive(Debug)]
pub(super) struct Patience {
    waits: For,
    /// Time at which the call began, while there is one.
    call: Option<Instant>,
    /// Since when the client takes nothing of what is ready for it.
    unread: Option<Instant>,
    /// Timeout that was reported to the call, until the call has acted on it.
    told: Option<Timeout>,
}

#[derive(Debug, Clone, Copy)]
enum For {
    /// The first request, since so long.
    First(Instant),
    /// The next request.
    Next(Instant),
    /// The rest of a request's head.
    Head(Instant),
    /// Neither client nor upstream: the proxy has to act.
    Nobody,
    /// The rest of a body; so many bytes of it came since.
    Body(Instant, u64),
    /// The upstream, within one of the call's limits.
    Upstream(Timeout, Instant),
}

impl Patience {
    /// Starts the timeouts of a connection that was accepted `now`.
    pub(super) const fn new(now: Instant) -> Self {
        Self { waits: For::First(now), call: None, unread: None, told: None }
    }

    /// Notes that bytes have come from the client.
    pub(super) fn came(&mut self, now: impl FnOnce() -> Instant) {
        if let For::First(_) | For::Next(_) = self.waits {
            self.waits = For::Head(now());
        }
    }

    /// Notes that the client takes nothing for now.
    pub(super) const fn is_unread(&mut self, now: Instant) {
        self.unread = Some(now);
    }

    /// Notes that the client takes what is ready for it.
    pub(super) fn is_read(&mut self) {
        self.unread = None;
        self.told = self.told.filter(|timeout| *timeout != Timeout::Client);
    }

    /// Begins a call.
    pub(super) const fn begin(&mut self, now: Instant) {
        self.call = Some(now);
        self.waits = For::Nobody;
    }

    /// Ends a call: the request was answered, and none is in flight.
    pub(super) const fn end(&mut self, now: Instant) {
        self.call = None;
        self.waits = For::Next(now);
        self.told = None;
    }

    /// Begins the wait for the request's body.
    pub(super) const fn wants_body(&mut self, now: Instant) {
        self.waits = For::Body(now, 0);
    }

    /// Counts `bytes` bytes of the body. Each time `enough` of them have come, its timeout starts anew.
    pub(super) fn got_body(&mut self, bytes: u64, enough: u64, now: impl FnOnce() -> Instant) {
        if let For::Body(_, so_far) = &mut self.waits {
            *so_far = so_far.saturating_add(bytes);
            if *so_far >= enough {
                self.waits = For::Body(now(), 0);
            }
        }
    }

    /// Begins the wait for the upstream, within `timeout`. Keeps an earlier wait for the same.
    pub(super) fn wants(&mut self, timeout: Timeout, now: impl FnOnce() -> Instant) {
        match self.waits {
            For::Upstream(same, _) if same == timeout => {}
            _ => self.waits = For::Upstream(timeout, now()),
        }
    }

    /// Ends the wait. A timeout that passed at that very moment is forgotten.
    pub(super) const fn has_come(&mut self) {
        self.waits = For::Nobody;
        self.told = None;
    }

    /// Returns whether a call is in flight.
    pub(super) const fn has_call(&self) -> bool {
        self.call.is_some()
    }

    /// Returns the timeout that was reported to the call and that the call has not acted on yet.
    pub(super) const fn told(&self) -> Option<Timeout> {
        self.told
    }

    /// Returns whether the client leaves bytes unread.
    pub(super) const fn is_left(&self) -> bool {
        self.unread.is_some()
    }

    /// Returns the timeout that passes next, and when. A time beyond the clock's range never comes.
    pub(super) fn next(&self, quiet: Quiet, times: &CallTimes) -> Option<(Instant, Passed)> {
        let waits = match self.waits {
            // What it does not take comes first: it is not the next request that is waited for.
            For::First(_) | For::Next(_) if self.unread.is_some() => None,
            For::First(since) => since.checked_add(quiet.head).map(|at| (at, Passed::Idle)),
            For::Next(since) => since.checked_add(quiet.keep_alive).map(|at| (at, Passed::Idle)),
            For::Head(since) => since.checked_add(quiet.head).map(|at| (at, Passed::Head)),
            For::Nobody => None,
            For::Body(since, _) => at(since, times, Timeout::Body),
            For::Upstream(timeout, since) => at(since, times, timeout),
        };
        let unread = self.unread.and_then(|since| at(since, times, Timeout::Client));
        let call = self.call.and_then(|since| at(since, times, Timeout::Call));
        [waits, unread, call].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Returns the timeout that has passed by `now`, if one has. One of the call's own is also reported to
    /// the call.
    pub(super) fn pass(&mut self, quiet: Quiet, times: &CallTimes, now: Instant) -> Option<Passed> {
        let (_, passed) = self.next(quiet, times).filter(|(at, _)| *at <= now)?;
        if let (Passed::Call(timeout), Some(_)) = (passed, self.call) {
            self.told = Some(timeout);
        }
        Some(passed)
    }
}

fn at(since: Instant, times: &CallTimes, timeout: Timeout) -> Option<(Instant, Passed)> {
    let limit = times.of(timeout)?.duration();
    since.checked_add(limit).map(|at| (at, Passed::Call(timeout)))
}

#[cfg(test)]
mod tests {
    use platform_core::limit::{ByteSize, Millis};

    use super::*;

    const QUIET: Quiet = Quiet { head: Duration::from_secs(30), keep_alive: Duration::from_secs(300) };

    /// Returns timeouts that all differ, so that each can be recognised.
    fn times() -> CallTimes {
        CallTimes {
            body_ms: Millis::seconds(10),
            body_rate: ByteSize(100),
            first_byte_ms: Millis::seconds(20),
            between_bytes_ms: Millis::seconds(40),
            client_ms: Millis::seconds(50),
            call_ms: Millis::seconds(60),
        }
    }

    /// A connection, and a clock in seconds.
    struct Scene(Patience, Instant);

    impl Scene {
        fn new() -> Self {
            let now = Instant::now();
            Self(Patience::new(now), now)
        }

        fn at(&self, second: u64) -> Instant {
            self.1 + Duration::from_secs(second)
        }

        /// Returns the timeout that passes next, and in which second.
        fn next(&self) -> Option<(u64, Passed)> {
            let (at, passed) = self.0.next(QUIET, &times())?;
            Some(((at - self.1).as_secs(), passed))
        }
    }

    #[test]
    fn a_connection_is_first_silent_then_slow_then_idle() {
        let mut scene = Scene::new();
        assert_eq!(scene.next(), Some((30, Passed::Idle)));
        let (seven, eight) = (scene.at(7), scene.at(8));
        scene.0.came(|| seven);
        scene.0.came(|| eight);
        assert_eq!(scene.next(), Some((37, Passed::Head)), "from its first byte, however many follow");
        scene.0.begin(scene.at(9));
        assert_eq!(scene.next(), Some((69, Passed::Call(Timeout::Call))));
        scene.0.end(scene.at(10));
        assert_eq!(scene.next(), Some((310, Passed::Idle)));
        assert_eq!(scene.0.pass(QUIET, &times(), scene.at(309)), None);
        assert_eq!(scene.0.pass(QUIET, &times(), scene.at(310)), Some(Passed::Idle));
        assert_eq!(scene.0.told(), None, "there is no call to tell");
    }

    #[test]
    fn a_body_may_take_long_as_long_as_it_comes_fast_enough() {
        let mut scene = Scene::new();
        scene.0.begin(scene.at(0));
        scene.0.wants_body(scene.at(0));
        let enough = times().body_bytes();
        assert_eq!(enough, 1000);
        let (nine, eighteen) = (scene.at(9), scene.at(18));
        scene.0.got_body(999, enough, || nine);
        assert_eq!(
            scene.next(),
            Some((10, Passed::Call(Timeout::Body))),
            "not yet worth another ten seconds"
        );
        scene.0.got_body(1, enough, || nine);
        assert_eq!(scene.next(), Some((19, Passed::Call(Timeout::Body))));
        scene.0.got_body(5000, enough, || eighteen);
        assert_eq!(scene.next(), Some((28, Passed::Call(Timeout::Body))), "what came fast is not saved up");
        assert_eq!(scene.0.pass(QUIET, &times(), scene.at(28)), Some(Passed::Call(Timeout::Body)));
        assert_eq!(scene.0.told(), Some(Timeout::Body));
    }

    #[test]
    fn each_wait_for_the_upstream_has_its_own_limit_and_the_call_one_over_all() {
        let mut scene = Scene::new();
        scene.0.begin(scene.at(0));
        let (two, ten, twelve, fifty) = (scene.at(2), scene.at(10), scene.at(12), scene.at(50));
        scene.0.wants(Timeout::FirstByte, || two);
        assert_eq!(scene.next(), Some((22, Passed::Call(Timeout::FirstByte))));
        scene.0.has_come();
        assert_eq!(
            scene.next(),
            Some((60, Passed::Call(Timeout::Call))),
            "a client that takes nothing is not it"
        );
        scene.0.wants(Timeout::BetweenBytes, || ten);
        scene.0.wants(Timeout::BetweenBytes, || twelve);
        assert_eq!(scene.next(), Some((50, Passed::Call(Timeout::BetweenBytes))), "asking again is no event");
        scene.0.has_come();
        scene.0.wants(Timeout::BetweenBytes, || fifty);
        assert_eq!(scene.next(), Some((60, Passed::Call(Timeout::Call))));
    }

    #[test]
    fn what_comes_at_the_last_moment_has_come() {
        let mut scene = Scene::new();
        scene.0.begin(scene.at(0));
        let zero = scene.at(0);
        scene.0.wants(Timeout::FirstByte, || zero);
        assert_eq!(scene.0.pass(QUIET, &times(), scene.at(20)), Some(Passed::Call(Timeout::FirstByte)));
        scene.0.has_come();
        assert_eq!(scene.0.told(), None);
    }

    #[test]
    fn a_client_that_takes_nothing_is_waited_for_also_when_its_call_is_over() {
        let mut scene = Scene::new();
        scene.0.begin(scene.at(0));
        scene.0.is_unread(scene.at(5));
        assert_eq!(scene.next(), Some((55, Passed::Call(Timeout::Client))));
        scene.0.is_read();
        scene.0.is_unread(scene.at(20));
        assert_eq!(scene.next(), Some((60, Passed::Call(Timeout::Call))));
        scene.0.end(scene.at(25));
        assert_eq!(scene.next(), Some((70, Passed::Call(Timeout::Client))));
        assert_eq!(scene.0.pass(QUIET, &times(), scene.at(70)), Some(Passed::Call(Timeout::Client)));
        assert_eq!(scene.0.told(), None, "nobody is there to be told");
        scene.0.is_read();
        assert_eq!(scene.next(), Some((325, Passed::Idle)));
    }

    #[test]
    fn a_limit_beyond_the_clock_is_none() {
        let mut scene = Scene::new();
        scene.0.begin(scene.at(0));
        let forever = CallTimes { call_ms: Millis(u64::MAX), ..times() };
        assert!(scene.0.next(QUIET, &forever).is_none_or(|(at, _)| at > scene.at(1 << 32)));
    }
}
