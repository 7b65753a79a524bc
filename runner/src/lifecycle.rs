//! The life of a run: its states, and every move between them. Pure; `store` keeps it, `run` lives it.
//!
//! ```text
//! queued ─▶ preparing ─▶ starting ─▶ running ─▶ settling ─▶ succeeded | failed | cancelled | timed_out
//!    │          └────────────┴───────────────────▲                ▲
//!    └── withdrawn: nothing was made ─────────────────────────────┘
//! ```
//!
//! How a run ends is decided when it begins to settle and does not change any more: whoever settles it, also another
//! process after a crash, comes to the same end. Two numbers go with a run. Its *attempt* starts at 0 and rises only
//! when a run that has ended is deliberately started anew; tokens and receipts carry it. Its *epoch* rises each time
//! somebody gets a lease on it; whatever is done in the name of an older one is refused, which is the store's part.

use std::fmt;

use platform_core::{control::Usage, event::RunErrorCode};
use serde::Serialize;

/// Why there is no answer. Written out, it is what whoever ordered the run may read: the detail is not among it, and cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// As a code.
    pub code: RunErrorCode,
    /// In words, for whoever ordered the run.
    pub message: String,
    /// In words for who operates Sluicegate, if there is more to say.
    #[serde(skip)]
    pub detail: Option<Detail>,
}

/// What only operators are told: with paths, names and what other programs said. Nothing writes it out by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail(String);

impl Detail {
    /// One of these words.
    #[must_use]
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// Its words, for operators only.
    #[must_use]
    pub fn for_operators(&self) -> &str {
        &self.0
    }
}

/// A failure as operators see it.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ForOperators<'f> {
    #[serde(flatten)]
    failure: &'f Failure,
    detail: Option<&'f str>,
}

impl Failure {
    /// One of which no more is to be said.
    #[must_use]
    pub fn new(code: RunErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None }
    }

    /// The same with its detail, to be written out for operators.
    #[must_use]
    pub fn for_operators(&self) -> ForOperators<'_> {
        ForOperators { failure: self, detail: self.detail.as_ref().map(Detail::for_operators) }
    }
}

/// How the agent ended, before anything is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ending {
    /// Exit code of the agent's process; absent if it never ran.
    pub exit_code: Option<i64>,
    /// Whether a process of it was killed for want of memory; absent if nobody could tell.
    pub oom_seen: Option<bool>,
    /// The answer, or why there is none.
    pub answer: Result<String, Failure>,
}

impl Ending {
    /// The end of a run that failed before its agent ran.
    #[must_use]
    pub const fn without_agent(failure: Failure) -> Self {
        Self { exit_code: None, oom_seen: None, answer: Err(failure) }
    }

    /// What the run will have come to.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        Outcome::of(self.answer.as_ref().err().map(|failure| failure.code))
    }
}

/// What a run came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There is an answer.
    Succeeded,
    /// There is none, for any reason but the two below.
    Failed,
    /// Somebody asked for it to stop.
    Cancelled,
    /// Its time was up.
    TimedOut,
}

impl Outcome {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::Cancelled, Self::TimedOut];

    /// The outcome of a run that failed with `code`, or did not fail.
    #[must_use]
    pub const fn of(code: Option<RunErrorCode>) -> Self {
        match code {
            None => Self::Succeeded,
            Some(RunErrorCode::Cancelled) => Self::Cancelled,
            Some(RunErrorCode::Timeout) => Self::TimedOut,
            Some(_) => Self::Failed,
        }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It waits for somebody to take it up. Nothing of it exists.
    Queued,
    /// Workspace, grant and listener are made.
    Preparing,
    /// The container is made.
    Starting,
    /// The agent runs.
    Running,
    /// It is known how it ends; what was made is removed.
    Settling(Outcome),
    /// It is over, for good.
    Ended(Outcome),
}

/// A step in the life of a run, with what has to be known for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// Begin to make what it needs.
    Prepare,
    /// Make its container.
    Start,
    /// Let the agent run.
    Run,
    /// End it: from here on things are only removed.
    Settle(Ending),
    /// Close it, with what its calls used; absent if nobody could tell.
    Finish(Option<Usage>),
    /// End it before anything was made.
    Withdraw(Failure),
}

/// A move that a state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {from} cannot {to}")]
pub struct Illegal {
    /// Where the run stands.
    pub from: State,
    /// What was tried.
    pub to: &'static str,
}

impl State {
    /// One of each name a state can have.
    pub const NAMES: [&'static str; 9] = [
        "queued",
        "preparing",
        "starting",
        "running",
        "settling",
        "succeeded",
        "failed",
        "cancelled",
        "timed_out",
    ];

    /// The state after `step`.
    ///
    /// # Errors
    /// If this state does not allow it.
    pub fn after(self, step: &Move) -> Result<Self, Illegal> {
        match (self, step) {
            (Self::Queued, Move::Prepare) => Ok(Self::Preparing),
            (Self::Preparing, Move::Start) => Ok(Self::Starting),
            (Self::Starting, Move::Run) => Ok(Self::Running),
            (Self::Preparing | Self::Starting | Self::Running, Move::Settle(ending)) => {
                Ok(Self::Settling(ending.outcome()))
            }
            (Self::Settling(outcome), Move::Finish(_)) => Ok(Self::Ended(outcome)),
            (Self::Queued, Move::Withdraw(failure)) => Ok(Self::Ended(Outcome::of(Some(failure.code)))),
            (from, step) => Err(Illegal { from, to: step.name() }),
        }
    }

    /// The state in which the next attempt of a run begins that has ended.
    ///
    /// # Errors
    /// If it has not ended.
    pub const fn anew(self) -> Result<Self, Illegal> {
        match self {
            Self::Ended(_) => Ok(Self::Queued),
            from => Err(Illegal { from, to: "start anew" }),
        }
    }

    /// Whether it is over.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// Whether things may be made for it. Before, nobody would know to remove them; afterwards, nobody would.
    #[must_use]
    pub const fn makes(self) -> bool {
        matches!(self, Self::Preparing | Self::Starting | Self::Running)
    }

    /// Its name, as it is stored and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Settling(_) => "settling",
            Self::Ended(Outcome::Succeeded) => "succeeded",
            Self::Ended(Outcome::Failed) => "failed",
            Self::Ended(Outcome::Cancelled) => "cancelled",
            Self::Ended(Outcome::TimedOut) => "timed_out",
        }
    }

    /// The state called `name` of a run that failed with `code`, or did not fail.
    #[must_use]
    pub fn named(name: &str, code: Option<RunErrorCode>) -> Option<Self> {
        let outcome = Outcome::of(code);
        let all = [Self::Queued, Self::Preparing, Self::Starting, Self::Running, Self::Settling(outcome)];
        all.into_iter().chain([Self::Ended(outcome)]).find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Move {
    /// Its name, as events tell it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Start => "start",
            Self::Run => "run",
            Self::Settle(_) => "settle",
            Self::Finish(_) => "finish",
            Self::Withdraw(_) => "withdraw",
        }
    }

    /// Whether it brings the run nearer to its agent's work.
    #[must_use]
    pub const fn is_on_the_way(&self) -> bool {
        matches!(self, Self::Prepare | Self::Start | Self::Run)
    }

    /// Whether a run that stands at `state` may have made this very move: what was asked for and got no answer.
    #[must_use]
    pub fn leads_to(&self, state: State) -> bool {
        match (self, state) {
            (Self::Prepare, State::Preparing)
            | (Self::Start, State::Starting)
            | (Self::Run, State::Running)
            | (Self::Finish(_), State::Ended(_)) => true,
            (Self::Settle(ending), State::Settling(outcome)) => ending.outcome() == outcome,
            (Self::Withdraw(failure), State::Ended(outcome)) => Outcome::of(Some(failure.code)) == outcome,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

    use super::*;

    fn codes() -> impl Strategy<Value = RunErrorCode> {
        proptest::sample::select(RunErrorCode::ALL.to_vec())
    }

    fn failures() -> impl Strategy<Value = Failure> {
        codes().prop_map(|code| Failure::new(code, "why"))
    }

    fn endings() -> impl Strategy<Value = Ending> {
        (any::<Option<i64>>(), proptest::option::of(failures())).prop_map(|(exit_code, failure)| Ending {
            exit_code,
            oom_seen: None,
            answer: failure.map_or_else(|| Ok("answer".to_owned()), Err),
        })
    }

    fn moves() -> impl Strategy<Value = Move> {
        prop_oneof![
            Just(Move::Prepare),
            Just(Move::Start),
            Just(Move::Run),
            endings().prop_map(Move::Settle),
            Just(Move::Finish(Some(Usage::default()))),
            failures().prop_map(Move::Withdraw),
        ]
    }

    proptest! {
        #[test]
        fn whatever_happens_in_whatever_order_what_was_made_is_settled(
            steps in proptest::collection::vec(moves(), 0..40),
        ) {
            let (mut state, mut made, mut settled) = (State::Queued, false, None);
            for step in &steps {
                let before = state;
                match state.after(step) {
                    Ok(after) => {
                        assert!(!before.is_final(), "{before} is final, and went on to {after}");
                        assert!(step.leads_to(after), "{step:?} to {after}");
                        state = after;
                    }
                    Err(illegal) => {
                        assert_eq!((illegal.from, illegal.to), (before, step.name()));
                        let both = illegal.to_string();
                        assert!(both.contains(before.name()) && both.contains(step.name()), "{both}");
                    }
                }
                made |= state.makes();
                if let State::Settling(outcome) = state {
                    settled.get_or_insert(outcome);
                }
                if let State::Ended(outcome) = state {
                    assert!(!made || settled == Some(outcome), "made, and ended without being settled as {outcome:?}");
                }
                assert!(!(settled.is_some() && state.makes()), "something is made after the end");
            }
        }

        #[test]
        fn a_state_is_read_back_as_it_was_written(ending in endings()) {
            let code = ending.answer.as_ref().err().map(|failure| failure.code);
            let outcome = ending.outcome();
            for state in [State::Running, State::Settling(outcome), State::Ended(outcome)] {
                assert_eq!(State::named(state.name(), code), Some(state));
            }
        }
    }

    #[test]
    fn a_detail_is_written_out_for_operators_only() {
        let detail = Some(Detail::new("canary"));
        let failure = Failure { detail, ..Failure::new(RunErrorCode::DockerFailed, "why") };
        assert_eq!(
            serde_json::to_value(&failure).unwrap(),
            serde_json::json!({ "code": "docker_failed", "message": "why" })
        );
        // Control.
        assert_eq!(
            serde_json::to_value(failure.for_operators()).unwrap(),
            serde_json::json!({ "code": "docker_failed", "message": "why", "detail": "canary" })
        );
    }

    /// The walks above meet mostly refusals: these are the ones that arrive.
    #[test]
    fn every_state_is_reached_and_every_end() {
        let mut reached = vec![State::Queued.name()];
        let failed = |code| Err(Failure::new(code, ""));
        let answers = [
            Ok(String::new()),
            failed(RunErrorCode::Internal),
            failed(RunErrorCode::Cancelled),
            failed(RunErrorCode::Timeout),
        ];
        for answer in answers {
            let ending = Ending { exit_code: None, oom_seen: None, answer };
            let steps = [
                Move::Prepare,
                Move::Start,
                Move::Run,
                Move::Settle(ending),
                Move::Finish(Some(Usage::default())),
            ];
            let end = steps.iter().fold(State::Queued, |state, step| {
                let after = state.after(step).unwrap();
                reached.push(after.name());
                after
            });
            assert_eq!(end.anew(), Ok(State::Queued), "an ended run may be started anew");
        }
        assert!(State::NAMES.iter().all(|name| reached.contains(name)), "{reached:?}");
        assert!(State::Running.anew().is_err());
    }
}
