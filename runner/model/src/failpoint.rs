//! Defines named points between two steps of a run, at which a test makes this process die or stand still.
//!
//! Armed by the environment (`SLUICE_FAILPOINT=container-made:kill`), in builds with debug assertions only: in a
//! release the points are empty.

use std::sync::{
    OnceLock,
    atomic::{AtomicBool, Ordering},
};

use platform_runtime::report;
use rustix::process::{Signal, getpid, kill_process};

/// A place between two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// The run is stored, and ours; nothing of it exists.
    Booked,
    /// The list of resources that will be made is stored.
    Prepared,
    /// The workspace is made.
    WorkspaceMade,
    /// The data plane knows the run.
    Registered,
    /// The decision that a container will be made is stored.
    Starting,
    /// The container is made.
    ContainerMade,
    /// The decision that the agent may run is stored.
    RunStored,
    /// The agent runs.
    Started,
    /// The gateway's acceptance of the turn is stored.
    TurnTaken,
    /// The agent has ended.
    Ended,
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
    /// The decision that a container is to wait for a run is stored; nothing of it exists.
    WarmWanted,
    /// The warm container's workspace is made.
    WarmWorkspaceMade,
    /// The warm container runs; no run can take it yet.
    WarmStarted,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    /// The process dies, as if the machine had killed it.
    Kill,
    /// The process stops, as if it hung, until another process continues it.
    Stop,
}

static ARMED: OnceLock<(Point, Action)> = OnceLock::new();
/// Set once a point is reached: a process that goes on after it stopped does not stop again.
static REACHED: AtomicBool = AtomicBool::new(false);

impl Point {
    /// Points of a warm container, in the order in which it reaches them.
    pub const POOL: [Self; 3] = [Self::WarmWanted, Self::WarmWorkspaceMade, Self::WarmStarted];

    /// Points of a run that is a session of a gateway, likewise.
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

    /// Points of a run in a container, likewise.
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

    /// Returns its name, as the environment spells it.
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
            Self::SettleStored => "settle-stored",
            Self::ContainerRemoved => "container-removed",
            Self::GrantClosed => "grant-closed",
            Self::WorkspaceRemoved => "workspace-removed",
            Self::Finished => "finished",
            Self::WarmWanted => "warm-wanted",
            Self::WarmWorkspaceMade => "warm-workspace-made",
            Self::WarmStarted => "warm-started",
        }
    }

    /// Dies or stands still here, if the point is armed; the first time only.
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

/// Arms the point that `text` names, as `point:kill` or `point:stop`.
///
/// # Errors
/// If there is no such point or action.
pub fn arm(text: &str) -> Result<(), String> {
    if !cfg!(debug_assertions) {
        return Err("this build has no failpoints: builds with debug assertions have".to_owned());
    }
    let wrong = || format!("{text:?} is not a failpoint: write POINT:kill or POINT:stop");
    let (point, action) = text.split_once(':').ok_or_else(wrong)?;
    let mut points = Point::ALL.into_iter().chain(Point::SESSION).chain(Point::POOL);
    let point = points.find(|known| known.name() == point).ok_or_else(wrong)?;
    let action = match action {
        "kill" => Action::Kill,
        "stop" => Action::Stop,
        _ => return Err(wrong()),
    };
    ARMED.set((point, action)).map_err(|_armed| format!("{text:?} comes too late: one is armed already"))
}
