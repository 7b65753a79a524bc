//! Defines named points between two steps of a run, at which a test kills or stops this process.
//!
//! The environment arms one of them (`SLUICE_FAILPOINT=container-made:kill`), in builds with debug assertions only. In
//! a release build the points do nothing.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use platform_core::code::{Code, Coded};
use platform_runtime::report;
use rustix::process::{Signal, getpid, kill_process};

/// Point between two steps of a run, of a warm container, of a proposal, or of the journal's consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The run is stored and this process has its lease. None of its resources exists.
    Booked,
    /// The list of resources to create is stored.
    Prepared,
    /// The workspace is created.
    WorkspaceMade,
    /// The run is registered at the data plane.
    Registered,
    /// The decision to create a container is stored.
    Starting,
    /// The container is created.
    ContainerMade,
    /// The decision to start the agent is stored.
    RunStored,
    /// The agent is running.
    Started,
    /// The gateway's acceptance of the turn is stored.
    TurnTaken,
    /// The agent has ended.
    Ended,
    /// The outcome of the run is stored, and that its agent's commits are to be collected.
    CollectStored,
    /// The agent's commits are kept on this host.
    CommitsKept,
    /// The agent's commits were judged.
    CommitsJudged,
    /// The branch has the agent's commits, and this is not stored yet.
    CommitsPushed,
    /// The pull request exists, and this is not stored yet.
    PullRequestMade,
    /// A process continues a proposal that is stored, and has done nothing for it.
    ProposalTaken,
    /// The commit of a proposal is made and judged, and this is not stored yet.
    ProposalCommitted,
    /// The branch has the commit of a proposal, and this is not stored yet.
    ProposalPushed,
    /// The pull request of a proposal exists, and this is not stored yet.
    ProposalMade,
    /// The outcome of the run is stored.
    SettleStored,
    /// The container is removed.
    ContainerRemoved,
    /// The data plane has closed the run.
    GrantClosed,
    /// The workspace is removed.
    WorkspaceRemoved,
    /// The end of the run is stored.
    Finished,
    /// The decision to create a warm container is stored. No part of it exists.
    WarmWanted,
    /// The warm container's workspace is created.
    WarmWorkspaceMade,
    /// The warm container is running, but no run can claim it yet.
    WarmStarted,
    /// Lines of the journal are read. Nothing of them is stored.
    CallsRead,
    /// Calls, their receipts and the cursor are stored. The proxy does not know it yet.
    CallsStored,
    /// The proxy knows that the calls are stored.
    CallsAcknowledged,
    /// A page of the upstream's ledger is read. Nothing of it is stored.
    LedgerRead,
    /// The rows of the page are stored. No receipt is corrected yet.
    LedgerStored,
    /// The receipts of the page are corrected. The position after it is not stored.
    LedgerCorrected,
    /// The position after a span of the ledger is stored.
    LedgerPassed,
}

/// Action that a test requests at a point.
#[derive(Debug, Clone, Copy)]
enum Action {
    /// The process is killed.
    Kill,
    /// The process is stopped, as if it hung, until another process continues it.
    Stop,
}

/// Armed point, with its action.
static ARMED: OnceLock<(Point, Action)> = OnceLock::new();
/// Set once the armed point is reached: a process that continues after a stop does not stop again.
static REACHED: AtomicBool = AtomicBool::new(false);

impl Point {
    /// Points of a warm container, in the order in which it reaches them.
    pub const POOL: [Self; 3] = [Self::WarmWanted, Self::WarmWorkspaceMade, Self::WarmStarted];

    /// Points of the journal's consumer, in the order in which it reaches them.
    pub const RECEIPTS: [Self; 3] = [Self::CallsRead, Self::CallsStored, Self::CallsAcknowledged];

    /// Points of a reconciliation, in the order in which it reaches them.
    pub const RECONCILIATION: [Self; 4] =
        [Self::LedgerRead, Self::LedgerStored, Self::LedgerCorrected, Self::LedgerPassed];

    /// Points of the relay of a run, in the order in which it reaches them.
    pub const RELAY: [Self; 5] = [
        Self::CollectStored,
        Self::CommitsKept,
        Self::CommitsJudged,
        Self::CommitsPushed,
        Self::PullRequestMade,
    ];

    /// Points of a proposal, in the order in which it reaches them.
    pub const PROPOSAL: [Self; 4] =
        [Self::ProposalTaken, Self::ProposalCommitted, Self::ProposalPushed, Self::ProposalMade];

    /// Points of a run that is a turn of a gateway's session, in the order in which it reaches them.
    pub const SESSION: [Self; 10] = [
        Self::Booked,
        Self::Prepared,
        Self::Registered,
        Self::RunStored,
        Self::Started,
        Self::TurnTaken,
        Self::Ended,
        Self::SettleStored,
        Self::GrantClosed,
        Self::Finished,
    ];

    /// Points of a run in a container, in the order in which it reaches them.
    pub const ALL: [Self; 14] = [
        Self::Booked,
        Self::Prepared,
        Self::WorkspaceMade,
        Self::Registered,
        Self::Starting,
        Self::ContainerMade,
        Self::RunStored,
        Self::Started,
        Self::Ended,
        Self::SettleStored,
        Self::ContainerRemoved,
        Self::GrantClosed,
        Self::WorkspaceRemoved,
        Self::Finished,
    ];

    /// Returns the point's name, as the environment spells it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Booked => "booked",
            Self::Prepared => "prepared",
            Self::WorkspaceMade => "workspace-made",
            Self::Registered => "registered",
            Self::Starting => "starting",
            Self::ContainerMade => "container-made",
            Self::RunStored => "run-stored",
            Self::Started => "started",
            Self::TurnTaken => "turn-taken",
            Self::Ended => "ended",
            Self::CollectStored => "collect-stored",
            Self::CommitsKept => "commits-kept",
            Self::CommitsJudged => "commits-judged",
            Self::CommitsPushed => "commits-pushed",
            Self::PullRequestMade => "pull-request-made",
            Self::ProposalTaken => "proposal-taken",
            Self::ProposalCommitted => "proposal-committed",
            Self::ProposalPushed => "proposal-pushed",
            Self::ProposalMade => "proposal-made",
            Self::SettleStored => "settle-stored",
            Self::ContainerRemoved => "container-removed",
            Self::GrantClosed => "grant-closed",
            Self::WorkspaceRemoved => "workspace-removed",
            Self::Finished => "finished",
            Self::WarmWanted => "warm-wanted",
            Self::WarmWorkspaceMade => "warm-workspace-made",
            Self::WarmStarted => "warm-started",
            Self::CallsRead => "calls-read",
            Self::CallsStored => "calls-stored",
            Self::CallsAcknowledged => "calls-acknowledged",
            Self::LedgerRead => "ledger-read",
            Self::LedgerStored => "ledger-stored",
            Self::LedgerCorrected => "ledger-corrected",
            Self::LedgerPassed => "ledger-passed",
        }
    }

    /// Kills or stops this process if the point is armed; the first time only.
    pub fn reach(self) {
        let Some((_, action)) = ARMED.get().filter(|(point, _)| *point == self) else { return };
        if REACHED.swap(true, Ordering::Relaxed) {
            return;
        }
        let signal = match action {
            Action::Kill => Signal::KILL,
            Action::Stop => Signal::STOP,
        };
        tracing::warn!(point = self.name(), ?action, "failpoint reached");
        if let Err(error) = kill_process(getpid(), signal) {
            tracing::error!(error = report::chain(&error), "failpoint without effect");
        }
    }
}

/// Reason why a point is not armed.
#[derive(Debug, thiserror::Error)]
pub enum NotArmed {
    /// Only builds with debug assertions have failpoints.
    #[error("this build has no failpoints: builds with debug assertions have")]
    Absent,
    /// The text names no point, or no action.
    #[error("{0:?} is not a failpoint: write POINT:kill or POINT:stop")]
    Invalid(String),
    /// A point is armed already.
    #[error("{0:?} comes too late: one is armed already")]
    Late(String),
}

impl Coded for NotArmed {
    fn code(&self) -> Code {
        Code::Internal
    }
}

/// Arms the point that `text` names, as `point:kill` or `point:stop`.
///
/// # Errors
/// If the point or action does not exist, if a point is armed already, or if this build has no failpoints.
pub fn arm(text: &str) -> Result<(), NotArmed> {
    if !cfg!(debug_assertions) {
        return Err(NotArmed::Absent);
    }
    let invalid = || NotArmed::Invalid(text.to_owned());
    let (point, action) = text.split_once(':').ok_or_else(invalid)?;
    let others = Point::SESSION.into_iter().chain(Point::POOL).chain(Point::RECEIPTS);
    let others = others.chain(Point::RECONCILIATION).chain(Point::RELAY).chain(Point::PROPOSAL);
    let mut points = Point::ALL.into_iter().chain(others);
    let point = points.find(|known| known.name() == point).ok_or_else(invalid)?;
    let action = match action {
        "kill" => Action::Kill,
        "stop" => Action::Stop,
        _ => return Err(invalid()),
    };
    ARMED.set((point, action)).map_err(|_armed| NotArmed::Late(text.to_owned()))
}
