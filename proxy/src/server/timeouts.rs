//! Tracks what a connection waits for, since when, and which timeout passes next.
//!
//! Pure: it receives events with their times, and returns the timeout that passes first. `timed_connection` and the
//! call itself act on that.

use std::time::{Duration, Instant};

use platform_core::{grant::CallTimes, record::Timeout};

/// Timeouts of a connection on which no client waits for an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdleTimeouts {
    /// Longest time from the first byte of a request's head to its last.
    pub(crate) head: Duration,
    /// Longest time between two requests.
    pub(crate) keep_alive: Duration,
    /// Longest time that a call goes on after its client has left.
    pub(crate) client_gone: Duration,
}

/// Timeout that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expired {
    /// No request came.
    Idle,
    /// A head began to come and did not end.
    Head,
    /// The client has left, and its call has gone on for long enough.
    ClientGone,
    /// A timeout of the call.
    Call(Timeout),
}

/// Timeouts of one connection.
#[derive(Debug)]
pub(crate) struct ConnectionTimeouts {
    waiting_for: WaitingFor,
    /// Time at which the call began, while there is one.
    call_began: Option<Instant>,
    /// Time since which the client has read none of the bytes that are ready for it.
    write_blocked_since: Option<Instant>,
    /// Time at which the client has left the call, which goes on.
    client_left: Option<Instant>,
    /// Timeout that was reported to the call, until the call has acted on it.
    reported: Option<Timeout>,
}

/// Event that a connection waits for, and the start of the wait.
#[derive(Debug, Clone, Copy)]
enum WaitingFor {
    /// The first request.
    FirstRequest(Instant),
    /// The next request.
    NextRequest(Instant),
    /// The rest of a request's head.
    Head(Instant),
    /// The proxy itself: neither client nor upstream has to act.
    Proxy,
    /// The rest of a body, with the number of bytes that came since.
    Body(Instant, u64),
    /// The upstream, within one of the call's timeouts.
    Upstream(Timeout, Instant),
}

impl ConnectionTimeouts {
    /// Starts the timeouts of a connection that was accepted `now`.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            waiting_for: WaitingFor::FirstRequest(now),
            call_began: None,
            write_blocked_since: None,
            client_left: None,
            reported: None,
        }
    }

    /// Notes that bytes have come from the client.
    pub(crate) fn received(&mut self, now: impl FnOnce() -> Instant) {
        if let WaitingFor::FirstRequest(_) | WaitingFor::NextRequest(_) = self.waiting_for {
            self.waiting_for = WaitingFor::Head(now());
        }
    }

    /// Notes that the client reads nothing for now.
    pub(crate) const fn write_blocked(&mut self, now: Instant) {
        self.write_blocked_since = Some(now);
    }

    /// Notes that the client reads again.
    pub(crate) fn write_resumed(&mut self) {
        self.write_blocked_since = None;
        self.reported = self.reported.filter(|timeout| *timeout != Timeout::Client);
    }

    /// Notes that the client has left the call, which goes on.
    pub(crate) fn client_left(&mut self, now: impl FnOnce() -> Instant) {
        self.client_left.get_or_insert_with(now);
    }

    /// Begins a call.
    pub(crate) const fn begin_call(&mut self, now: Instant) {
        self.call_began = Some(now);
        self.waiting_for = WaitingFor::Proxy;
    }

    /// Ends a call: the request was answered, and none is in flight.
    pub(crate) const fn end_call(&mut self, now: Instant) {
        self.call_began = None;
        self.client_left = None;
        self.waiting_for = WaitingFor::NextRequest(now);
        self.reported = None;
    }

    /// Begins the wait for the request's body.
    pub(crate) const fn await_body(&mut self, now: Instant) {
        self.waiting_for = WaitingFor::Body(now, 0);
    }

    /// Counts `bytes` bytes of the body. Each time `enough` of them have come, its timeout starts again.
    pub(crate) fn received_body(&mut self, bytes: u64, enough: u64, now: impl FnOnce() -> Instant) {
        if let WaitingFor::Body(_, so_far) = &mut self.waiting_for {
            *so_far = so_far.saturating_add(bytes);
            if *so_far >= enough {
                self.waiting_for = WaitingFor::Body(now(), 0);
            }
        }
    }

    /// Begins the wait for the upstream, within `timeout`. Keeps an earlier wait for the same.
    pub(crate) fn await_upstream(&mut self, timeout: Timeout, now: impl FnOnce() -> Instant) {
        match self.waiting_for {
            WaitingFor::Upstream(same, _) if same == timeout => {}
            _ => self.waiting_for = WaitingFor::Upstream(timeout, now()),
        }
    }

    /// Ends the wait. A timeout that passed at that very moment does not count.
    pub(crate) const fn arrived(&mut self) {
        self.waiting_for = WaitingFor::Proxy;
        self.reported = None;
    }

    /// Returns whether a call is in flight.
    pub(crate) const fn has_call(&self) -> bool {
        self.call_began.is_some()
    }

    /// Returns the timeout that was reported to the call and that the call has not acted on yet.
    pub(crate) const fn reported(&self) -> Option<Timeout> {
        self.reported
    }

    /// Returns whether the client leaves bytes unread.
    pub(crate) const fn is_write_blocked(&self) -> bool {
        self.write_blocked_since.is_some()
    }

    /// Returns the timeout that passes next, and when. A time beyond the clock's range never comes.
    pub(crate) fn next(&self, idle: IdleTimeouts, times: &CallTimes) -> Option<(Instant, Expired)> {
        let waiting = match self.waiting_for {
            // A client that takes nothing is waited for first: it is not idle.
            WaitingFor::FirstRequest(_) | WaitingFor::NextRequest(_) if self.is_write_blocked() => None,
            WaitingFor::FirstRequest(since) => since.checked_add(idle.head).map(|at| (at, Expired::Idle)),
            WaitingFor::NextRequest(since) => {
                since.checked_add(idle.keep_alive).map(|at| (at, Expired::Idle))
            }
            WaitingFor::Head(since) => since.checked_add(idle.head).map(|at| (at, Expired::Head)),
            WaitingFor::Proxy => None,
            WaitingFor::Body(since, _) => deadline(since, times, Timeout::Body),
            WaitingFor::Upstream(timeout, since) => deadline(since, times, timeout),
        };
        let write = self.write_blocked_since.and_then(|since| deadline(since, times, Timeout::Client));
        let call = self.call_began.and_then(|since| deadline(since, times, Timeout::Call));
        let gone = self.client_left.and_then(|since| since.checked_add(idle.client_gone));
        let gone = gone.map(|at| (at, Expired::ClientGone));
        [waiting, write, call, gone].into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Returns the timeout that has passed by `now`, if one has. One of the call's own is also reported to
    /// the call.
    pub(crate) fn expire(&mut self, idle: IdleTimeouts, times: &CallTimes, now: Instant) -> Option<Expired> {
        let (_, expired) = self.next(idle, times).filter(|(at, _)| *at <= now)?;
        if let (Expired::Call(timeout), Some(_)) = (expired, self.call_began) {
            self.reported = Some(timeout);
        }
        Some(expired)
    }
}

fn deadline(since: Instant, times: &CallTimes, timeout: Timeout) -> Option<(Instant, Expired)> {
    let limit = times.of(timeout)?.duration();
    since.checked_add(limit).map(|at| (at, Expired::Call(timeout)))
}

#[cfg(test)]
mod tests {
    use platform_core::limit::{ByteSize, Millis};

    use super::*;

    const IDLE: IdleTimeouts = IdleTimeouts {
        head: Duration::from_secs(30),
        keep_alive: Duration::from_secs(300),
        client_gone: Duration::from_secs(15),
    };

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

    /// A connection's timeouts, and a clock in seconds.
    struct Fixture {
        timeouts: ConnectionTimeouts,
        began: Instant,
    }

    impl Fixture {
        fn new() -> Self {
            let began = Instant::now();
            Self { timeouts: ConnectionTimeouts::new(began), began }
        }

        fn at(&self, second: u64) -> Instant {
            self.began + Duration::from_secs(second)
        }

        /// Returns the timeout that passes next, and in which second.
        fn next(&self) -> Option<(u64, Expired)> {
            let (at, expired) = self.timeouts.next(IDLE, &times())?;
            Some(((at - self.began).as_secs(), expired))
        }

        fn expire(&mut self, second: u64) -> Option<Expired> {
            let now = self.at(second);
            self.timeouts.expire(IDLE, &times(), now)
        }
    }

    #[test]
    fn a_connection_is_silent_then_slow_then_idle() {
        let mut fixture = Fixture::new();
        assert_eq!(fixture.next(), Some((30, Expired::Idle)));
        let seven = fixture.at(7);
        let eight = fixture.at(8);
        fixture.timeouts.received(|| seven);
        fixture.timeouts.received(|| eight);
        assert_eq!(fixture.next(), Some((37, Expired::Head)), "from its first byte, however many follow");
        fixture.timeouts.begin_call(fixture.at(9));
        assert_eq!(fixture.next(), Some((69, Expired::Call(Timeout::Call))));
        fixture.timeouts.end_call(fixture.at(10));
        assert_eq!(fixture.next(), Some((310, Expired::Idle)));
        assert_eq!(fixture.expire(309), None);
        assert_eq!(fixture.expire(310), Some(Expired::Idle));
        assert_eq!(fixture.timeouts.reported(), None, "there is no call");
    }

    #[test]
    fn a_body_that_comes_fast_may_take_long() {
        let mut fixture = Fixture::new();
        fixture.timeouts.begin_call(fixture.at(0));
        fixture.timeouts.await_body(fixture.at(0));
        let enough = times().body_bytes();
        assert_eq!(enough, 1000);
        let nine = fixture.at(9);
        let eighteen = fixture.at(18);
        fixture.timeouts.received_body(999, enough, || nine);
        let body = |second| Some((second, Expired::Call(Timeout::Body)));
        assert_eq!(fixture.next(), body(10), "not yet worth another ten seconds");
        fixture.timeouts.received_body(1, enough, || nine);
        assert_eq!(fixture.next(), body(19));
        fixture.timeouts.received_body(5000, enough, || eighteen);
        assert_eq!(fixture.next(), body(28), "what came fast is not saved up");
        assert_eq!(fixture.expire(28), Some(Expired::Call(Timeout::Body)));
        assert_eq!(fixture.timeouts.reported(), Some(Timeout::Body));
    }

    #[test]
    fn each_wait_for_the_upstream_has_its_timeout() {
        let mut fixture = Fixture::new();
        fixture.timeouts.begin_call(fixture.at(0));
        let [two, ten, twelve, fifty] = [2, 10, 12, 50].map(|second| fixture.at(second));
        let next = |fixture: &Fixture| fixture.next().unwrap();
        fixture.timeouts.await_upstream(Timeout::FirstByte, || two);
        assert_eq!(next(&fixture), (22, Expired::Call(Timeout::FirstByte)));
        fixture.timeouts.arrived();
        assert_eq!(next(&fixture), (60, Expired::Call(Timeout::Call)), "a blocked write is another wait");
        fixture.timeouts.await_upstream(Timeout::BetweenBytes, || ten);
        fixture.timeouts.await_upstream(Timeout::BetweenBytes, || twelve);
        assert_eq!(
            next(&fixture),
            (50, Expired::Call(Timeout::BetweenBytes)),
            "asking again is not an event"
        );
        fixture.timeouts.arrived();
        fixture.timeouts.await_upstream(Timeout::BetweenBytes, || fifty);
        assert_eq!(next(&fixture), (60, Expired::Call(Timeout::Call)), "the call has one over all");
    }

    #[test]
    fn an_arrival_at_the_last_moment_counts() {
        let mut fixture = Fixture::new();
        fixture.timeouts.begin_call(fixture.at(0));
        let zero = fixture.at(0);
        fixture.timeouts.await_upstream(Timeout::FirstByte, || zero);
        assert_eq!(fixture.expire(20), Some(Expired::Call(Timeout::FirstByte)));
        fixture.timeouts.arrived();
        assert_eq!(fixture.timeouts.reported(), None);
    }

    #[test]
    fn a_blocked_write_times_out_after_the_call_too() {
        let mut fixture = Fixture::new();
        fixture.timeouts.begin_call(fixture.at(0));
        fixture.timeouts.write_blocked(fixture.at(5));
        assert_eq!(fixture.next(), Some((55, Expired::Call(Timeout::Client))));
        fixture.timeouts.write_resumed();
        fixture.timeouts.write_blocked(fixture.at(20));
        assert_eq!(fixture.next(), Some((60, Expired::Call(Timeout::Call))));
        fixture.timeouts.end_call(fixture.at(25));
        assert_eq!(fixture.next(), Some((70, Expired::Call(Timeout::Client))));
        assert_eq!(fixture.expire(70), Some(Expired::Call(Timeout::Client)));
        assert_eq!(fixture.timeouts.reported(), None, "there is no call");
        fixture.timeouts.write_resumed();
        assert_eq!(fixture.next(), Some((325, Expired::Idle)));
    }

    #[test]
    fn a_call_goes_on_so_long_without_its_client() {
        let mut fixture = Fixture::new();
        fixture.timeouts.begin_call(fixture.at(0));
        let [two, five, six] = [2, 5, 6].map(|second| fixture.at(second));
        fixture.timeouts.await_upstream(Timeout::FirstByte, || two);
        assert_eq!(fixture.next(), Some((22, Expired::Call(Timeout::FirstByte))), "the control");
        fixture.timeouts.client_left(|| five);
        fixture.timeouts.client_left(|| six);
        assert_eq!(fixture.next(), Some((20, Expired::ClientGone)), "from the moment at which it left");
        assert_eq!(fixture.expire(20), Some(Expired::ClientGone));
        assert_eq!(fixture.timeouts.reported(), None, "no timeout of the call has passed");
        fixture.timeouts.end_call(fixture.at(20));
        assert_eq!(fixture.next(), Some((320, Expired::Idle)));
    }

    #[test]
    fn a_limit_beyond_the_clock_is_none() {
        let mut fixture = Fixture::new();
        fixture.timeouts.begin_call(fixture.at(0));
        let forever = CallTimes { call_ms: Millis(u64::MAX), ..times() };
        let next = fixture.timeouts.next(IDLE, &forever);
        assert!(next.is_none_or(|(at, _)| at > fixture.at(1 << 32)));
    }
}
