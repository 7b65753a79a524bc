//! Records the events of a run: at once for a reader in this process, and in batches in the store for all others.
//!
//! Nothing here waits for a reader: one that is too slow misses live pieces. What waits for the store is bounded by
//! what is kept of a run at all. It can therefore stay in memory for as long as the store is unavailable.

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    rc::Rc,
    time::Duration,
};

use platform_core::{
    control::TapLine,
    event::{AgentEvent, OutputStream, Phase},
    limit::{ByteSize, events as limit},
};
use platform_runtime::{report, settings::Stream};
use runner_docker::{Captured, Ended, Piece};
use runner_model::{escaped, live};
use runner_store::{Batch, Told};
use tokio::{
    sync::{Notify, mpsc},
    time::sleep,
};

use super::Booked;

/// Shortest time for which events are gathered into a batch. It grows for an agent that goes on.
const GATHER: Duration = Duration::from_millis(250);
/// Longest time for which events are gathered into a batch.
const GATHER_LONG: Duration = Duration::from_secs(1);
/// Delay after the store did not take a batch.
const PAUSE: Duration = Duration::from_secs(2);

/// Recorder of a run's events.
#[derive(Debug)]
pub(super) struct Telling<'r> {
    watcher: &'r mpsc::Sender<AgentEvent>,
    stream: Stream,
    /// Most bytes that are kept of an output's beginning, and of its end.
    most: ByteSize,
    pending: RefCell<Pending>,
    more: Notify,
    /// Number of tool calls that are not stored, because there were too many.
    untold_tools: Cell<u64>,
    /// Number of events that the watcher missed because it was too slow, and that no event has reported yet.
    unwatched: Cell<u64>,
    /// True once the agent has started sub-agents, which may go on when it is done.
    delegated: Cell<bool>,
}

/// Name of the tool by which an OpenClaw agent starts a sub-agent.
const DELEGATES: &str = "sessions_spawn";

/// Events that wait for the store.
#[derive(Debug)]
struct Pending {
    /// Position of the run's events once all of this is stored.
    told: Told,
    events: Vec<AgentEvent>,
    /// Batch that was handed out and is not known to be stored.
    handed: Option<Rc<Batch>>,
    /// Number of the last batch.
    last: u64,
    /// Length of the last event's text as it is kept, if that event is of an output.
    length: usize,
}

impl<'r> Telling<'r> {
    /// Continues after the position `told` that the previous worker recorded. Of outputs no more is stored than what
    /// `kept` has of them.
    pub(super) fn after(
        told: Told,
        watcher: &'r mpsc::Sender<AgentEvent>,
        (stream, kept): (Stream, ByteSize),
    ) -> Self {
        Self {
            watcher,
            stream,
            most: ByteSize(limit::LOG_END.0.min(kept.0 / 2)),
            pending: RefCell::new(Pending { told, events: Vec::new(), handed: None, last: 0, length: 0 }),
            more: Notify::new(),
            untold_tools: Cell::new(0),
            unwatched: Cell::new(0),
            // An event recorded before may have been that.
            delegated: Cell::new(told.tap > 0),
        }
    }

    /// Sends the phase that the run enters. The transition itself records it in the store.
    pub(super) fn enters(&self, phase: Phase) {
        self.watch(AgentEvent::Status { phase });
    }

    /// Records a piece of the agent's output.
    pub(super) fn printed(&self, piece: Piece) {
        let Piece { stream, text, to } = piece;
        let mut pending = self.pending.borrow_mut();
        let told = *pending.told.of(stream);
        // After a gap, what follows is no longer the beginning.
        if told.bytes.max(told.kept) < self.most.0 && told.events < limit::LOG_EVENTS {
            pending.log(stream, &text);
            pending.told.of(stream).bytes = to;
            self.more.notify_one();
        }
        drop(pending);
        self.watch(AgentEvent::Log { stream, text });
    }

    /// Records an event of the data plane's tap.
    pub(super) fn tapped(&self, line: TapLine) {
        let mut pending = self.pending.borrow_mut();
        if line.n > 0 {
            pending.told.tap = line.n;
        }
        let Some(event) = live::event(line.event, self.stream) else { return };
        if let AgentEvent::Tool { name } = &event {
            self.uses(name.as_str());
        }
        match &event {
            AgentEvent::Tool { .. } if pending.told.tools < limit::TOOLS => {
                pending.told.tools += 1;
                pending.events.push(event.clone());
                self.more.notify_one();
            }
            AgentEvent::Tool { .. } => self.untold_tools.set(self.untold_tools.get() + 1),
            AgentEvent::Missed { count } => {
                pending.missed(*count);
                self.more.notify_one();
            }
            _ => {}
        }
        drop(pending);
        self.watch(event);
    }

    /// Sends more of the agent's answer to the watcher in this process. All other readers see what models write.
    pub(super) fn said(&self, delta: String) {
        self.watch(AgentEvent::TextDelta { delta });
    }

    /// Notes that the agent uses a tool. A model that searches for tools calls them all by one name: its gateway knows
    /// the tool's own.
    pub(super) fn uses(&self, tool: &str) {
        if tool == DELEGATES {
            self.delegated.set(true);
        }
    }

    /// Returns whether the agent has started sub-agents, which may go on when it is done.
    pub(super) const fn has_delegated(&self) -> bool {
        self.delegated.get()
    }

    /// Returns the number of the last event of the tap that is accounted for.
    pub(super) fn tap(&self) -> u64 {
        self.pending.borrow().told.tap
    }

    /// Records the end of what the agent printed, and how many bytes before it are left out.
    pub(super) fn ended(&self, ended: &Ended) {
        let untold = self.untold_tools.take();
        let mut pending = self.pending.borrow_mut();
        if untold > 0 {
            pending.events.push(AgentEvent::Missed { count: untold });
        }
        for (stream, captured) in
            [(OutputStream::Stdout, &ended.stdout), (OutputStream::Stderr, &ended.stderr)]
        {
            pending.end(stream, captured, self.most);
        }
    }

    /// Returns the batches that the store is not known to have, in the order in which it has to get them.
    pub(super) fn untold(&self) -> Vec<Batch> {
        let mut pending = self.pending.borrow_mut();
        let handed = pending.handed.take();
        let rest = pending.batch();
        pending.handed.take();
        handed.into_iter().chain(rest).map(|batch| Batch::clone(&batch)).collect()
    }

    /// Stores pending batches, for as long as this is polled.
    pub(super) async fn keep(&self, booked: &Booked) -> Infallible {
        let mut gather = GATHER;
        loop {
            self.more.notified().await;
            sleep(gather).await;
            gather = (gather * 2).min(GATHER_LONG);
            let Some(batch) = self.pending.borrow_mut().batch() else { continue };
            while let Err(error) = booked.tell(&batch).await {
                let run = &booked.order.run_id;
                if !error.is_transient() {
                    // Another worker has taken the run over, which `Booked::keep` finds out.
                    tracing::debug!(%run, %error, "what it tells is not stored");
                    return std::future::pending().await;
                }
                tracing::warn!(%run, error = %report::chain(&error), "what it tells is stored later");
                sleep(PAUSE).await;
            }
            self.pending.borrow_mut().handed = None;
        }
    }

    /// Sends an event to the watcher. If the watcher is too far behind, missed events are counted and reported as soon
    /// as the channel has capacity.
    fn watch(&self, event: AgentEvent) {
        let mut unwatched = self.unwatched.get();
        if unwatched > 0 && self.watcher.try_send(AgentEvent::Missed { count: unwatched }).is_ok() {
            unwatched = 0;
        }
        let is_missed = unwatched > 0 || self.watcher.try_send(event).is_err();
        self.unwatched.set(unwatched + u64::from(is_missed));
    }
}

impl Pending {
    /// Returns the batch to store next: the one that was handed out before, if any.
    fn batch(&mut self) -> Option<Rc<Batch>> {
        if self.handed.is_none() && !self.events.is_empty() {
            self.last += 1;
            let events = std::mem::take(&mut self.events);
            self.handed = Some(Rc::new(Batch { number: self.last, events, told: self.told }));
        }
        self.handed.clone()
    }

    /// Counts missed events, in the event before if that counts them too.
    fn missed(&mut self, more: u64) {
        match self.events.last_mut() {
            Some(AgentEvent::Missed { count }) => *count += more,
            _ => self.events.push(AgentEvent::Missed { count: more }),
        }
    }

    /// Adds a piece of output, to the event before if that is of the same output and has capacity left.
    fn log(&mut self, stream: OutputStream, piece: &str) {
        let most = limit::LOG_EVENT.as_usize();
        let length = escaped::length(piece);
        self.told.of(stream).kept += length as u64;
        match self.events.last_mut() {
            Some(AgentEvent::Log { stream: before, text })
                if *before == stream && self.length + length <= most =>
            {
                text.push_str(piece);
                self.length += length;
            }
            _ => {
                self.told.of(stream).events += 1;
                self.events.push(AgentEvent::Log { stream, text: piece.to_owned() });
                self.length = length;
            }
        }
    }

    /// Adds the end of an output.
    fn end(&mut self, stream: OutputStream, captured: &Captured, most: ByteSize) {
        let rest = captured.after(self.told.of(stream).bytes, most.as_usize());
        if rest.cut > 0 {
            self.events.push(AgentEvent::LogCut { stream, bytes: rest.cut });
        }
        let mut text = rest.text.as_str();
        while !text.is_empty() {
            let (piece, after) = text.split_at(escaped::beginning(text, limit::LOG_EVENT.as_usize()).len());
            self.log(stream, piece);
            text = after;
        }
    }
}

#[cfg(test)]
mod tests {
    use platform_core::control::TapEvent;
    use runner_docker::Capture;

    use super::*;

    const STDOUT: OutputStream = OutputStream::Stdout;

    fn log(text: &str) -> AgentEvent {
        AgentEvent::Log { stream: STDOUT, text: text.to_owned() }
    }

    fn ended(stdout: &[u8], kept: u64) -> Ended {
        let captured = |bytes| {
            let mut capture = Capture::new(ByteSize(kept));
            capture.push(bytes);
            capture.finish()
        };
        let (stdout, stderr) = (captured(stdout), captured(b""));
        Ended { exit_code: Some(0), killed_by: None, oom_seen: false, stdout, stderr }
    }

    fn print(telling: &Telling<'_>, text: &str, to: u64) {
        telling.printed(Piece { stream: STDOUT, text: text.to_owned(), to });
    }

    #[test]
    fn the_beginning_is_told_as_it_comes_the_end_at_the_end_and_what_lies_between_is_counted() {
        let (watcher, _watched) = mpsc::channel(1);
        let telling = Telling::after(Told::default(), &watcher, (Stream::Progress, ByteSize(16)));
        print(&telling, "01234", 5);
        print(&telling, "56789", 10);
        print(&telling, "left out", 18);
        let first = telling.pending.borrow_mut().batch().unwrap();
        assert_eq!((first.number, &first.events), (1, &vec![log("0123456789")]));
        assert_eq!((first.told.stdout.bytes, first.told.stdout.events), (10, 1));
        telling.ended(&ended(b"0123456789left out, and the end", 16));
        let untold = telling.untold();
        assert_eq!(untold[0], *first, "it is not known to be stored");
        let cut = AgentEvent::LogCut { stream: STDOUT, bytes: 13 };
        assert_eq!((untold[1].number, &untold[1].events), (2, &vec![cut, log(" the end")]));
        assert_eq!(telling.untold(), []);
    }

    #[test]
    fn whoever_takes_over_goes_on_where_the_other_was() {
        let (watcher, _watched) = mpsc::channel(1);
        let mut told = Told::default();
        told.stdout.bytes = 4;
        let telling = Telling::after(told, &watcher, (Stream::Progress, ByteSize(1 << 20)));
        print(&telling, "efgh", 8);
        telling.ended(&ended(b"abcdefghij", 1 << 20));
        assert_eq!(telling.untold()[0].events, [log("efghij")]);
    }

    #[test]
    fn what_is_bounded_is_what_is_kept_and_not_only_what_was_printed() {
        const MOST: usize = 256 << 10;
        const PIECES: u64 = 400;
        for letter in ["\u{1}", "\"", "x", "\u{fffd}"] {
            let (watcher, _watched) = mpsc::channel(1);
            let telling = Telling::after(Told::default(), &watcher, (Stream::Progress, ByteSize(4 << 20)));
            let piece = letter.repeat(4096);
            let printed = piece.repeat(usize::try_from(PIECES).unwrap());
            (1..=PIECES).for_each(|n| print(&telling, &piece, n * piece.len() as u64));
            telling.ended(&ended(printed.as_bytes(), 4 << 20));
            let events = telling.untold().into_iter().flat_map(|batch| batch.events);
            let (mut kept, mut bytes) = (0, 0);
            for event in events {
                let json = serde_json::to_string(&event).unwrap().len();
                assert!(json < 64 << 10, "{letter:?}: an event of {json} bytes");
                kept += json;
                bytes += match event {
                    AgentEvent::Log { text, .. } => text.len(),
                    AgentEvent::LogCut { bytes, .. } => usize::try_from(bytes).unwrap(),
                    other => panic!("{other:?}"),
                };
            }
            assert_eq!(bytes, printed.len(), "{letter:?}: what is not kept is counted");
            assert!(
                (2 * MOST - 8..2 * MOST + (40 << 10)).contains(&kept),
                "{letter:?}: {kept} bytes are kept"
            );
        }
    }

    #[test]
    fn a_watcher_who_is_too_slow_is_told_how_much_they_missed() {
        let (watcher, mut watched) = mpsc::channel(1);
        let telling = Telling::after(Told::default(), &watcher, (Stream::Progress, ByteSize(16)));
        for phase in [Phase::Preparing, Phase::Starting, Phase::Running] {
            telling.enters(phase);
        }
        assert_eq!(watched.try_recv().unwrap(), AgentEvent::Status { phase: Phase::Preparing });
        telling.enters(Phase::Settling);
        assert_eq!(watched.try_recv().unwrap(), AgentEvent::Missed { count: 2 });
        telling.enters(Phase::Queued);
        assert_eq!(watched.try_recv().unwrap(), AgentEvent::Missed { count: 1 });
    }

    #[test]
    fn tools_are_named_up_to_a_number_and_then_counted() {
        let (watcher, _watched) = mpsc::channel(1);
        let telling = Telling::after(Told::default(), &watcher, (Stream::Progress, ByteSize(16)));
        let call = "01900000-0000-7000-8000-000000000000".parse().unwrap();
        for n in 1..=limit::TOOLS + 3 {
            telling.tapped(TapLine { n, event: TapEvent::Tool { call, name: "ls".to_owned() } });
        }
        telling.ended(&ended(b"", 16));
        let batch = telling.untold().remove(0);
        assert_eq!(batch.events.len() as u64, limit::TOOLS + 1);
        assert_eq!(batch.events.last(), Some(&AgentEvent::Missed { count: 3 }));
        assert_eq!(batch.told.tap, limit::TOOLS + 3);
    }
}
