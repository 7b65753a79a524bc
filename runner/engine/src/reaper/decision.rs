//! Decides which resources are dead, and gives the reason. Pure: depends only on the evidence.
//!
//! A resource is removed if its run has ended and a row of that run names this very resource. A container may also be
//! removed while its run is live. For that, its row must say that it is removed, and its epoch must be an earlier one.
//! Then a holder that had lost its lease created it too late.
//!
//! A row is written before each resource is created. A resource without a row therefore belongs to another party: a run
//! of another store, or a person. Names may collide between stores. Socket directories have random names, so a
//! container must mount its own run's socket directory.
//!
//! An expired lease proves nothing. The worker that takes the run over decides about its resources.

use std::{collections::BTreeSet, fmt, time::SystemTime};

use platform_core::{
    control::RunState,
    id::{AgentId, InstallationId, RunId, WorkspaceId},
};
use runner_docker::{EXTRACTION_SUFFIX, Listed};
use runner_files::ListedStage;
use runner_gateways as gateway;
use runner_store::{PoolEntry, PoolStage, Resource, ResourceKind, ResourceState};

pub(super) use super::reason::{KeepReason, RemovalReason, UNKNOWN_GRACE, UnknownReason};
use super::{
    evidence::{FoundResource, StoredRun},
    inventory::Grant,
    kept::KeepTimes,
    workspace_dir::WorkspaceDir,
};

/// Options of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Mode {
    /// Effect of the decisions.
    pub act: GcMode,
    /// Treatment of resources that no evidence assigns to a run.
    pub unknown: Leftovers,
    /// Treatment of workspaces that were kept on purpose when their runs ended.
    pub kept: Leftovers,
}

/// Effect of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GcMode {
    /// Carries out the decisions.
    #[default]
    Apply,
    /// Only reports the decisions.
    DryRun,
}

/// Treatment of resources that the reaper removes only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Leftovers {
    /// The resources stay.
    #[default]
    Leave,
    /// The resources are removed.
    Remove,
}

/// Conditions of a decision, besides the evidence.
#[derive(Debug)]
pub(super) struct Terms<'t> {
    pub(super) mode: Mode,
    pub(super) installation: &'t InstallationId,
    /// Runs that the configuration opens, without a request.
    pub(super) configured: &'t BTreeSet<RunId>,
    /// Time that workspaces of each agent's runs are kept.
    pub(super) keep: &'t KeepTimes,
    /// Kept workspaces that are too much together.
    pub(super) surplus: BTreeSet<WorkspaceId>,
    /// Processes that run servers of tools; unknown if they cannot be read.
    pub(super) tool_owners: Option<BTreeSet<String>>,
    pub(super) now: SystemTime,
}

/// Decision about a resource, and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// The resource stays.
    Keep(KeepReason),
    /// The resource is removed.
    Remove(RemovalReason),
    /// No evidence shows which run owns the resource: a person decides.
    Unknown(UnknownReason),
}

/// Decides about `resource`, given the store's knowledge of its run, if any.
pub(super) fn judge(resource: &FoundResource, stored_run: Option<&StoredRun>, terms: &Terms<'_>) -> Decision {
    match resource {
        FoundResource::Container(found) => judge_container(found, stored_run, terms),
        FoundResource::Grant(grant) => judge_grant(grant, stored_run, terms),
        FoundResource::Workspace(dir) => judge_workspace(dir, stored_run, terms),
        FoundResource::Files(dir) => judge_files(dir, stored_run, terms),
        FoundResource::WarmContainer(entry) => judge_warm(entry),
        FoundResource::Row(row) => judge_row(row, stored_run, terms),
    }
}

fn judge_container(found: &Listed, stored_run: Option<&StoredRun>, terms: &Terms<'_>) -> Decision {
    if let Some(gateway) = found.gateway() {
        let is_named_so = found.name == gateway::managed::container(terms.installation, gateway);
        return if is_named_so && found.run().is_none() {
            Decision::Keep(KeepReason::Gateway(gateway.to_owned()))
        } else {
            Decision::Unknown(UnknownReason::OtherName)
        };
    }
    if let Some(repository) = found.repository() {
        let is_named_so = found.name == runner_repos::container(terms.installation, repository);
        return if is_named_so && found.run().is_none() {
            Decision::Keep(KeepReason::Repository(repository.to_owned()))
        } else {
            Decision::Unknown(UnknownReason::OtherName)
        };
    }
    if let Some(server) = found.tool_server() {
        return judge_tool_server(found, server, terms);
    }
    let Some(stored_run) = stored_run else {
        return if has_our_name(found, terms.installation) {
            judge_unknown_run(UnknownReason::NoRun, Some(found.created), terms)
        } else {
            Decision::Unknown(UnknownReason::OtherName)
        };
    };
    let has_ended = stored_run.state.is_final();
    let row = stored_run.row(ResourceKind::Container, &found.name);
    // A warm container was created in no epoch. It belongs to the epoch that claimed it.
    let epoch = if found.run().is_some() { found.epoch() } else { row.map_or(0, |row| row.epoch) };
    if !has_ended && epoch >= stored_run.epoch {
        return Decision::Keep(KeepReason::Lives(stored_run.state));
    }
    let Some(row) = row else { return Decision::Unknown(UnknownReason::NeverWanted) };
    let has_own_socket = match found.socket_dir() {
        Some(dir) => stored_run.row(ResourceKind::Listener, dir).is_some(),
        None => found.is_extraction(),
    };
    if !has_own_socket {
        return Decision::Unknown(UnknownReason::OtherSocket);
    }
    match (has_ended, row.stage) {
        (true, stage) if is_removable(stage) => Decision::Remove(RemovalReason::Ended(stored_run.state)),
        (true, _) => Decision::Keep(KeepReason::Deliberately),
        (false, ResourceState::Removed) => {
            Decision::Remove(RemovalReason::Fenced { made: epoch, present: stored_run.epoch })
        }
        (false, _) => Decision::Keep(KeepReason::Lives(stored_run.state)),
    }
}

/// Decides about the container of a third-party server, which belongs to the process that started it.
fn judge_tool_server(found: &Listed, server: &str, terms: &Terms<'_>) -> Decision {
    let is_named_so = found.name.starts_with(&runner_mcp::container_name(terms.installation, server, ""));
    let Some(owner) = found.owner().filter(|_| is_named_so && found.run().is_none()) else {
        return Decision::Unknown(UnknownReason::OtherName);
    };
    match &terms.tool_owners {
        Some(live) if !live.contains(owner) => Decision::Remove(RemovalReason::OwnerGone),
        _ => Decision::Keep(KeepReason::ToolServer(server.to_owned())),
    }
}

fn judge_grant(grant: &Grant, stored_run: Option<&StoredRun>, terms: &Terms<'_>) -> Decision {
    if terms.configured.contains(&grant.run_id) {
        return Decision::Keep(KeepReason::Configured);
    }
    let Some(stored_run) = stored_run else { return judge_unknown_run(UnknownReason::NoRun, None, terms) };
    if !stored_run.state.is_final() {
        return Decision::Keep(KeepReason::Lives(stored_run.state));
    }
    let Some(row) = stored_run.row(ResourceKind::Grant, grant.run_id.as_str()) else {
        return Decision::Unknown(UnknownReason::NeverWanted);
    };
    let is_own_socket = |dir: &str| stored_run.row(ResourceKind::Listener, dir).is_some();
    if grant.socket_dir.as_ref().is_some_and(|dir| !is_own_socket(dir.as_str())) {
        return Decision::Unknown(UnknownReason::OtherSocket);
    }
    match grant.state {
        _ if !is_removable(row.stage) => Decision::Keep(KeepReason::Deliberately),
        RunState::Open => Decision::Remove(RemovalReason::Ended(stored_run.state)),
        RunState::Closing | RunState::Closed => Decision::Keep(KeepReason::Closing),
    }
}

fn judge_workspace(dir: &WorkspaceDir, stored_run: Option<&StoredRun>, terms: &Terms<'_>) -> Decision {
    let in_use = dir.users.first().map(|user| Decision::Keep(KeepReason::InUse(user.clone())));
    let Some(stored_run) = stored_run else {
        return in_use.unwrap_or_else(|| judge_unknown_run(UnknownReason::NoRow, Some(dir.changed), terms));
    };
    if !stored_run.state.is_final() {
        return Decision::Keep(KeepReason::Lives(stored_run.state));
    }
    let Some(row) = stored_run.row(ResourceKind::Workspace, dir.id.as_str()) else {
        return Decision::Unknown(UnknownReason::NeverWanted);
    };
    let decision = if is_removable(row.stage) || terms.mode.kept == Leftovers::Remove {
        Decision::Remove(RemovalReason::Ended(stored_run.state))
    } else {
        judge_kept(&dir.id, stored_run.kept_since(row), &stored_run.agent, terms)
    };
    if matches!(decision, Decision::Remove(_)) { in_use.unwrap_or(decision) } else { decision }
}

/// Decides about a workspace that was kept after its run.
fn judge_kept(id: &WorkspaceId, since: SystemTime, agent: &AgentId, terms: &Terms<'_>) -> Decision {
    let keep = terms.keep.of(agent);
    let age = terms.now.duration_since(since).unwrap_or_default();
    if age >= keep.duration() {
        Decision::Remove(RemovalReason::KeptLongEnough(keep))
    } else if terms.surplus.contains(id) {
        Decision::Remove(RemovalReason::KeptTooMuch)
    } else {
        Decision::Keep(KeepReason::Deliberately)
    }
}

/// Decides about the files that a run began with, which stay with its kept workspace.
fn judge_files(dir: &ListedStage, stored_run: Option<&StoredRun>, terms: &Terms<'_>) -> Decision {
    let Some(stored_run) = stored_run else {
        return judge_unknown_run(UnknownReason::NoRun, Some(dir.written), terms);
    };
    if !stored_run.state.is_final() {
        return Decision::Keep(KeepReason::Lives(stored_run.state));
    }
    let is_kept = |row: &Resource| row.kind == ResourceKind::Workspace && row.stage == ResourceState::Kept;
    if stored_run.rows.iter().any(is_kept) {
        return Decision::Keep(KeepReason::Deliberately);
    }
    Decision::Remove(RemovalReason::Ended(stored_run.state))
}

/// Decides about a warm container, which belongs to its owner until the owner's lease has expired.
fn judge_warm(entry: &PoolEntry) -> Decision {
    if entry.lease_expired || entry.stage == PoolStage::Gone {
        Decision::Remove(RemovalReason::Abandoned)
    } else {
        Decision::Keep(KeepReason::Waits(entry.stage))
    }
}

/// Decides about the row of a missing resource.
fn judge_row(row: &Resource, stored_run: Option<&StoredRun>, terms: &Terms<'_>) -> Decision {
    let Some(stored_run) = stored_run else { return Decision::Unknown(UnknownReason::NoRun) };
    if !stored_run.state.is_final() {
        return Decision::Keep(KeepReason::Lives(stored_run.state));
    }
    let is_on_demand = row.kind == ResourceKind::Workspace && terms.mode.kept == Leftovers::Remove;
    if is_removable(row.stage) || is_on_demand {
        return Decision::Remove(RemovalReason::Gone(stored_run.state));
    }
    let age = terms.now.duration_since(stored_run.kept_since(row)).unwrap_or_default();
    if age >= terms.keep.of(&stored_run.agent).duration() {
        Decision::Remove(RemovalReason::Gone(stored_run.state))
    } else {
        Decision::Keep(KeepReason::Deliberately)
    }
}

/// Returns whether a resource at `stage` is removed with its run. A new stage must be listed here first.
const fn is_removable(stage: ResourceState) -> bool {
    matches!(stage, ResourceState::Wanted | ResourceState::Made | ResourceState::Removed)
}

/// Returns whether the container has a name that this installation gives: `sluice-{installation}-{run}`, with or
/// without `.{epoch}` and the ending of an extraction, or that of a warm container.
fn has_our_name(found: &Listed, installation: &InstallationId) -> bool {
    if found.is_warm() {
        return found.name.starts_with(&format!("sluice-{installation}-warm-"));
    }
    let Some(run) = found.run().filter(|run| RunId::accepts(run)) else { return false };
    let plain = format!("sluice-{installation}-{run}");
    let name = found.name.strip_suffix(EXTRACTION_SUFFIX).unwrap_or(&found.name);
    name == plain || name == format!("{plain}.{}", found.epoch())
}

/// Decides about a resource without a known run. `created` is its time of creation, if that is known.
fn judge_unknown_run(why: UnknownReason, created: Option<SystemTime>, terms: &Terms<'_>) -> Decision {
    let age = created.map(|created| terms.now.duration_since(created).unwrap_or_default());
    match terms.mode.unknown {
        Leftovers::Leave => Decision::Unknown(why),
        Leftovers::Remove if age.is_some_and(|age| age < UNKNOWN_GRACE) => Decision::Keep(KeepReason::Young),
        Leftovers::Remove => Decision::Remove(RemovalReason::OnDemand(why)),
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep(why) => why.fmt(f),
            Self::Remove(why) => why.fmt(f),
            Self::Unknown(why) => why.fmt(f),
        }
    }
}
