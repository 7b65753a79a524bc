//! Defines the life of a run: its states, and every move between them. Pure: `store` keeps the state, `run` makes the
//! moves.
//!
//! ```text
//! queued ─▶ preparing ─▶ starting ─▶ running ─▶ settling ─▶ succeeded | failed | cancelled | timed_out
//!    │          └────────────┴───────────────────▲                ▲
//!    └── withdrawn: nothing was made ─────────────────────────────┘
//! ```
//!
//! The end of a run is decided when it begins to settle and does not change any more. Any process that settles it, also
//! another one after a crash, comes to the same end. Two numbers go with a run. Its *attempt* starts at 0 and rises
//! only when a run that has ended is deliberately started anew; tokens and receipts carry it. Its *epoch* rises each
//! time a worker gets a lease on it. The store refuses what is done in the name of an older epoch.

use std::fmt;

use platform_core::{control::Usage, event::RunErrorCode};
use serde::Serialize;

/// Reason why there is no answer. Serialized, it is what the client that ordered the run may read: the detail is not
/// part of it, and cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Code of the failure.
    pub code: RunErrorCode,
    /// Message for the client that ordered the run.
    pub message: String,
    /// Message for operators, if there is more to say.
    #[serde(skip)]
    pub detail: Option<Detail>,
}

/// Text for operators only: with paths, names and what other programs said. Nothing serializes it by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail(String);

impl Detail {
    /// Makes a detail of these words.
    #[must_use]
    pub fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }

    /// Returns its words, for operators only.
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
    /// Makes a failure without a detail.
    #[must_use]
    pub fn new(code: RunErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), detail: None }
    }

    /// Returns the failure with its detail, to be serialized for operators.
    #[must_use]
    pub fn for_operators(&self) -> ForOperators<'_> {
        ForOperators { failure: self, detail: self.detail.as_ref().map(Detail::for_operators) }
    }
}

/// End of the agent, before anything is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Exit code of the agent's process; absent if it never ran.
    pub exit_code: Option<i64>,
    /// True if a process of it was killed for want of memory; absent if that is unknown.
    pub oom_seen: Option<bool>,
    /// The answer, or why there is none.
    pub answer: Result<String, Failure>,
}

impl Completion {
    /// Makes the end of a run that failed before its agent ran.
    #[must_use]
    pub const fn without_agent(failure: Failure) -> Self {
        Self { exit_code: None, oom_seen: None, answer: Err(failure) }
    }

    /// Returns the outcome of the run.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        Outcome::of(self.answer.as_ref().err().map(|failure| failure.code))
    }
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// There is an answer.
    Succeeded,
    /// There is no answer, for any reason but the two below.
    Failed,
    /// A client asked for the run to stop.
    Cancelled,
    /// The run's time was up.
    TimedOut,
}

impl Outcome {
    /// All of them, in the order in which they are declared.
    pub const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::Cancelled, Self::TimedOut];

    /// Returns the outcome of a run that failed with `code`, or did not fail.
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

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// The run waits for a worker to take it up. Nothing of it exists.
    Queued,
    /// Workspace, grant and listener are made.
    Preparing,
    /// The container is made.
    Starting,
    /// The agent runs.
    Running,
    /// The outcome is decided; what was made is removed.
    Settling(Outcome),
    /// The run is over, for good.
    Ended(Outcome),
}

/// A step in the life of a run, with what has to be known for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// The run begins to make what it needs.
    Prepare,
    /// The run begins to make its container.
    Start,
    /// The agent may run.
    Run,
    /// The run ends: from here on its resources are only removed.
    Settle(Completion),
    /// The run is closed, with what its calls used; absent if that is unknown.
    Finish(Option<Usage>),
    /// The run ends before anything was made.
    Withdraw(Failure),
}

/// A move that a state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {from} cannot {to}")]
pub struct Illegal {
    /// State of the run.
    pub from: State,
    /// Name of the move that was tried.
    pub to: &'static str,
}

impl State {
    /// Names that a state can have, each once.
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

    /// Returns the state after `step`.
    ///
    /// # Errors
    /// If this state does not allow it.
    pub fn after(self, step: &Transition) -> Result<Self, Illegal> {
        match (self, step) {
            (Self::Queued, Transition::Prepare) => Ok(Self::Preparing),
            (Self::Preparing, Transition::Start) => Ok(Self::Starting),
            (Self::Starting, Transition::Run) => Ok(Self::Running),
            (Self::Preparing | Self::Starting | Self::Running, Transition::Settle(ending)) => {
                Ok(Self::Settling(ending.outcome()))
            }
            (Self::Settling(outcome), Transition::Finish(_)) => Ok(Self::Ended(outcome)),
            (Self::Queued, Transition::Withdraw(failure)) => Ok(Self::Ended(Outcome::of(Some(failure.code)))),
            (from, step) => Err(Illegal { from, to: step.name() }),
        }
    }

    /// Returns the state in which the next attempt of an ended run begins.
    ///
    /// # Errors
    /// If it has not ended.
    pub const fn restart(self) -> Result<Self, Illegal> {
        match self {
            Self::Ended(_) => Ok(Self::Queued),
            from => Err(Illegal { from, to: "restart" }),
        }
    }

    /// Returns whether the run is over.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// Returns whether resources may be made for the run. Before, no worker would know to remove them; afterwards, none
    /// would.
    #[must_use]
    pub const fn can_allocate(self) -> bool {
        matches!(self, Self::Preparing | Self::Starting | Self::Running)
    }

    /// Returns its name, as it is stored and shown.
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

    /// Returns the state called `name` of a run that failed with `code`, or did not fail.
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

impl Transition {
    /// Returns its name, as errors show it.
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

    /// Returns whether it brings the run nearer to its agent's work.
    #[must_use]
    pub const fn is_on_the_way(&self) -> bool {
        matches!(self, Self::Prepare | Self::Start | Self::Run)
    }

    /// Returns whether a run at `state` may have made this very move: one that was requested and got no answer.
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

/// Origin of a run's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StartKind {
    /// A new container, created for the run.
    Cold,
    /// A warm container.
    Warm,
}

impl StartKind {
    /// Returns the name shown to operators.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
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

    fn endings() -> impl Strategy<Value = Completion> {
        (any::<Option<i64>>(), proptest::option::of(failures())).prop_map(|(exit_code, failure)| Completion {
            exit_code,
            oom_seen: None,
            answer: failure.map_or_else(|| Ok("answer".to_owned()), Err),
        })
    }

    fn moves() -> impl Strategy<Value = Transition> {
        prop_oneof![
            Just(Transition::Prepare),
            Just(Transition::Start),
            Just(Transition::Run),
            endings().prop_map(Transition::Settle),
            Just(Transition::Finish(Some(Usage::default()))),
            failures().prop_map(Transition::Withdraw),
        ]
    }

    proptest! {
        #[test]
        fn what_was_made_is_settled_in_any_order(
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
                made |= state.can_allocate();
                if let State::Settling(outcome) = state {
                    settled.get_or_insert(outcome);
                }
                if let State::Ended(outcome) = state {
                    assert!(!made || settled == Some(outcome), "made, and ended without being settled as {outcome:?}");
                }
                assert!(!(settled.is_some() && state.can_allocate()), "something is made after the end");
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
            let ending = Completion { exit_code: None, oom_seen: None, answer };
            let steps = [
                Transition::Prepare,
                Transition::Start,
                Transition::Run,
                Transition::Settle(ending),
                Transition::Finish(Some(Usage::default())),
            ];
            let end = steps.iter().fold(State::Queued, |state, step| {
                let after = state.after(step).unwrap();
                reached.push(after.name());
                after
            });
            assert_eq!(end.restart(), Ok(State::Queued), "an ended run may restart");
        }
        assert!(State::NAMES.iter().all(|name| reached.contains(name)), "{reached:?}");
        assert!(State::Running.restart().is_err());
    }
}
