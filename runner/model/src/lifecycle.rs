//! Defines the life of a run: its states, and every transition between them. Pure: the store keeps the state, and the
//! engine makes the transitions.
//!
//! ```text
//! queued ─▶ preparing ─▶ starting ─▶ running ─▶ collecting ─▶ settling ─▶ succeeded | failed | cancelled | timed_out
//!    │          │            │           └─────────────────────────▲            ▲
//!    │          └────────────┴─────────────────────────────────────┘            │
//!    └── withdrawn: nothing was created ────────────────────────────────────────┘
//! ```
//!
//! Only a run with a repository collects: its agent's commits are taken out of the workspace. A run's outcome is decided
//! when it begins to collect or to settle, and does not change afterwards. Any process that settles the
//! run, even another one after a crash, records the same outcome. Two numbers belong to a run. Its *attempt* starts at
//! 0 and rises only when an ended run is deliberately started again; tokens and receipts carry it. Its *epoch* rises
//! each time a worker gets a lease on it. The store refuses every change in the name of an older epoch.

use std::fmt;

use platform_core::{control::Usage, event::RunErrorCode};
use serde::Serialize;

/// Reason why the answer is missing. Its serialized form is for the client that ordered the run, and never contains the
/// detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// Code of the failure.
    pub code: RunErrorCode,
    /// Message for the client that ordered the run.
    pub message: String,
    /// Further text for operators, if there is any.
    #[serde(skip)]
    pub detail: Option<Detail>,
}

/// Text for operators only: it may contain paths, names and messages of other programs. It has no serialized form
/// itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detail(String);

impl Detail {
    /// Creates a detail with this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, for operators only.
    #[must_use]
    pub fn for_operators(&self) -> &str {
        &self.0
    }
}

/// Failure with its detail, serialized for operators.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct ForOperators<'f> {
    #[serde(flatten)]
    failure: &'f Failure,
    detail: Option<&'f str>,
}

impl Failure {
    /// Creates a failure without a detail.
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

/// Result of the agent, recorded before any resource is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Exit code of the agent's process; absent if it never ran.
    pub exit_code: Option<i64>,
    /// True if the kernel killed a process of the agent for lack of memory; absent if that is unknown.
    pub oom_seen: Option<bool>,
    /// The answer, or why it is missing.
    pub answer: Result<String, Failure>,
}

impl Completion {
    /// Creates the completion of a run that failed before its agent ran.
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
    /// The run has an answer.
    Succeeded,
    /// The run has no answer, for any reason but the two below.
    Failed,
    /// A client cancelled the run.
    Cancelled,
    /// The run's timeout passed.
    TimedOut,
}

impl Outcome {
    /// All outcomes, in the order of their declaration.
    pub const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::Cancelled, Self::TimedOut];

    /// Returns the outcome of a run that failed with `code`, or succeeded if `code` is `None`.
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
    /// The run waits for a worker to claim it. None of its resources exists.
    Queued,
    /// The workspace, the grant and the listener are being created.
    Preparing,
    /// The container is being created.
    Starting,
    /// The agent is running.
    Running,
    /// The outcome is decided, and the agent's commits are being taken out of its workspace.
    Collecting(Outcome),
    /// The outcome is decided, and the resources are being removed.
    Settling(Outcome),
    /// The run has ended.
    Ended(Outcome),
}

/// Step from one state of a run to the next, with the data that it records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// The run begins to create its resources.
    Prepare,
    /// The run begins to create its container.
    Start,
    /// The agent may be started.
    Run,
    /// The agent has ended, and its commits are collected before the run settles.
    Collect(Completion),
    /// The run settles: from now on its resources are only removed.
    Settle(Completion),
    /// The run ends, with the usage of its calls; absent if that is unknown.
    Finish(Option<Usage>),
    /// The run ends before any resource was created.
    Withdraw(Failure),
}

/// Transition that a state does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a run that is {from} cannot {to}")]
pub struct Illegal {
    /// State of the run.
    pub from: State,
    /// Name of the refused transition.
    pub to: &'static str,
}

impl State {
    /// Names that a state can have, each once.
    pub const NAMES: [&'static str; 10] = [
        "queued",
        "preparing",
        "starting",
        "running",
        "collecting",
        "settling",
        "succeeded",
        "failed",
        "cancelled",
        "timed_out",
    ];

    /// Returns the state after `transition`.
    ///
    /// # Errors
    /// If this state does not allow the transition.
    pub fn after(self, transition: &Transition) -> Result<Self, Illegal> {
        match (self, transition) {
            (Self::Queued, Transition::Prepare) => Ok(Self::Preparing),
            (Self::Preparing, Transition::Start) => Ok(Self::Starting),
            (Self::Starting, Transition::Run) => Ok(Self::Running),
            (Self::Running, Transition::Collect(completion)) => Ok(Self::Collecting(completion.outcome())),
            (Self::Preparing | Self::Starting | Self::Running, Transition::Settle(completion)) => {
                Ok(Self::Settling(completion.outcome()))
            }
            (Self::Collecting(outcome), Transition::Settle(completion))
                if completion.outcome() == outcome =>
            {
                Ok(Self::Settling(outcome))
            }
            (Self::Settling(outcome), Transition::Finish(_)) => Ok(Self::Ended(outcome)),
            (Self::Queued, Transition::Withdraw(failure)) => Ok(Self::Ended(Outcome::of(Some(failure.code)))),
            (from, transition) => Err(Illegal { from, to: transition.name() }),
        }
    }

    /// Returns the state in which the next attempt of an ended run begins.
    ///
    /// # Errors
    /// If the run has not ended.
    pub const fn restart(self) -> Result<Self, Illegal> {
        match self {
            Self::Ended(_) => Ok(Self::Queued),
            from => Err(Illegal { from, to: "restart" }),
        }
    }

    /// Returns whether the run has ended.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Ended(_))
    }

    /// Returns whether resources may be created for the run. In every other state, no worker would remove them later.
    #[must_use]
    pub const fn can_allocate(self) -> bool {
        matches!(self, Self::Preparing | Self::Starting | Self::Running | Self::Collecting(_))
    }

    /// Returns the state's name, as it is stored and shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Preparing => "preparing",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Collecting(_) => "collecting",
            Self::Settling(_) => "settling",
            Self::Ended(Outcome::Succeeded) => "succeeded",
            Self::Ended(Outcome::Failed) => "failed",
            Self::Ended(Outcome::Cancelled) => "cancelled",
            Self::Ended(Outcome::TimedOut) => "timed_out",
        }
    }

    /// Returns the state called `name` of a run that failed with `code`, or has not failed if `code` is `None`.
    #[must_use]
    pub fn named(name: &str, code: Option<RunErrorCode>) -> Option<Self> {
        let outcome = Outcome::of(code);
        let states =
            [Self::Queued, Self::Preparing, Self::Starting, Self::Running, Self::Collecting(outcome)];
        let mut states = states.into_iter().chain([Self::Settling(outcome), Self::Ended(outcome)]);
        states.find(|state| state.name() == name)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Transition {
    /// Returns the transition's name, as errors show it.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Start => "start",
            Self::Run => "run",
            Self::Collect(_) => "collect",
            Self::Settle(_) => "settle",
            Self::Finish(_) => "finish",
            Self::Withdraw(_) => "withdraw",
        }
    }

    /// Returns whether the transition leads towards the start of the agent.
    #[must_use]
    pub const fn is_on_the_way(&self) -> bool {
        matches!(self, Self::Prepare | Self::Start | Self::Run)
    }

    /// Returns whether a run at `state` may have made this transition. The caller has requested it before and got no
    /// answer.
    #[must_use]
    pub fn leads_to(&self, state: State) -> bool {
        match (self, state) {
            (Self::Prepare, State::Preparing)
            | (Self::Start, State::Starting)
            | (Self::Run, State::Running)
            | (Self::Finish(_), State::Ended(_)) => true,
            (Self::Collect(completion), State::Collecting(outcome)) => completion.outcome() == outcome,
            (Self::Settle(completion), State::Settling(outcome)) => completion.outcome() == outcome,
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

    fn completions() -> impl Strategy<Value = Completion> {
        (any::<Option<i64>>(), proptest::option::of(failures())).prop_map(|(exit_code, failure)| Completion {
            exit_code,
            oom_seen: None,
            answer: failure.map_or_else(|| Ok("answer".to_owned()), Err),
        })
    }

    fn transitions() -> impl Strategy<Value = Transition> {
        prop_oneof![
            Just(Transition::Prepare),
            Just(Transition::Start),
            Just(Transition::Run),
            completions().prop_map(Transition::Collect),
            completions().prop_map(Transition::Settle),
            Just(Transition::Finish(Some(Usage::default()))),
            failures().prop_map(Transition::Withdraw),
        ]
    }

    proptest! {
        #[test]
        fn what_was_made_is_settled_in_any_order(
            transitions in proptest::collection::vec(transitions(), 0..40),
        ) {
            let (mut state, mut allocated, mut settled, mut decided) = (State::Queued, false, None, None);
            for transition in &transitions {
                let before = state;
                match state.after(transition) {
                    Ok(after) => {
                        assert!(!before.is_final(), "{before} is final, and went on to {after}");
                        assert!(transition.leads_to(after), "{transition:?} to {after}");
                        state = after;
                    }
                    Err(illegal) => {
                        assert_eq!((illegal.from, illegal.to), (before, transition.name()));
                        let message = illegal.to_string();
                        assert!(message.contains(before.name()) && message.contains(transition.name()), "{message}");
                    }
                }
                allocated |= state.can_allocate();
                if let State::Collecting(outcome) | State::Settling(outcome) = state {
                    decided.get_or_insert(outcome);
                }
                if let State::Settling(outcome) = state {
                    settled.get_or_insert(outcome);
                }
                if let State::Ended(outcome) = state {
                    assert!(!allocated || (settled == Some(outcome) && decided == settled), "made, and ended without being settled as {outcome:?}");
                }
                assert!(!(settled.is_some() && state.can_allocate()), "something is made after the end");
            }
        }

        #[test]
        fn a_state_is_read_back_as_it_was_written(completion in completions()) {
            let code = completion.answer.as_ref().err().map(|failure| failure.code);
            let outcome = completion.outcome();
            let decided = [State::Collecting(outcome), State::Settling(outcome), State::Ended(outcome)];
            for state in [State::Running].into_iter().chain(decided) {
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

    /// The random sequences above are mostly refused: these reach an end.
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
            let completion = Completion { exit_code: None, oom_seen: None, answer };
            let transitions = [
                Transition::Prepare,
                Transition::Start,
                Transition::Run,
                Transition::Collect(completion.clone()),
                Transition::Settle(completion),
                Transition::Finish(Some(Usage::default())),
            ];
            let end = transitions.iter().fold(State::Queued, |state, transition| {
                let after = state.after(transition).unwrap();
                reached.push(after.name());
                after
            });
            assert_eq!(end.restart(), Ok(State::Queued), "an ended run may restart");
        }
        assert!(State::NAMES.iter().all(|name| reached.contains(name)), "{reached:?}");
        assert!(State::Running.restart().is_err());
    }
}
