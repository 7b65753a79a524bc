//! Tests each decision, and proves that no resource of a live run is ever removed.

mod gateways;
mod kept;
mod tool_servers;
mod warm;

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    time::SystemTime,
};

use platform_core::{
    control::{RunState, Usage},
    event::RunErrorCode,
    grant::Correlation,
    id::{AccountId, AgentId, InstallationId, RunId, SocketDirName, WorkspaceId},
    limit::Millis,
    name::{label, path},
    priority::Priority,
};
use platform_runtime::{config::Sources, settings::Settings};
use proptest::{
    prelude::{Just, Strategy, any, prop_oneof, proptest},
    sample::select,
};
use runner_docker::Listed;
use runner_files::ListedStage;
use runner_model::lifecycle::{Completion, Failure, Outcome, State, Transition};
use runner_store::{
    Address, Claimant, Created, FencingToken, HostIdentity, NewRun, Resource, ResourceChange, ResourceKind,
    ResourceState, Step, Store, UnixMillis, Worker,
};

use super::{
    GcOutcome, Reaper,
    decision::{
        Decision, GcMode, KeepReason, Leftovers, Mode, RemovalReason, Terms, UNKNOWN_GRACE, UnknownReason,
        judge,
    },
    evidence::{FoundResource, StoredRun},
    inventory::Grant,
    kept::KeepTimes,
    workspace_dir::WorkspaceDir,
};

const ENDED: State = State::Ended(Outcome::Failed);
const HERE: &str = "here";
/// Bits of the name of our run's socket directory.
const OURS: u128 = 7;
const THEIRS: u128 = 8;
const W1: &str = "00000000000000000000000000000001";
/// Id of a workspace that no run has.
const W9: &str = "00000000000000000000000000000009";

fn dir_name(bits: u128) -> String {
    SocketDirName::from_random(bits).as_str().to_owned()
}

fn long_ago() -> SystemTime {
    SystemTime::now() - 2 * UNKNOWN_GRACE
}

/// Returns a container with our label and the label of run `r1`.
fn container(name: &str, epoch: u64, socket: u128) -> FoundResource {
    let labels = [
        (label::INSTALLATION, "here".to_owned()),
        (label::RUN_ID, "r1".to_owned()),
        (label::EPOCH, epoch.to_string()),
    ];
    FoundResource::Container(Listed {
        id: "id".to_owned(),
        name: name.to_owned(),
        labels: labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        created: long_ago(),
        mounts: vec![(PathBuf::from("/run/runs").join(dir_name(socket)), path::SOCKET_DIR.to_owned())],
    })
}

/// Returns the name of a container of run `r1`.
fn named(epoch: u64) -> String {
    format!("sluice-here-r1.{epoch}")
}

fn grant(state: RunState, socket: Option<u128>) -> FoundResource {
    let run_id = RunId::parse("r1").unwrap();
    let socket_dir = socket.map(SocketDirName::from_random);
    FoundResource::Grant(Grant { run_id, attempt: 0, state, epoch: 1, socket_dir })
}

fn workspace(id: &str, users: &[&str]) -> FoundResource {
    let id = WorkspaceId::parse(id).unwrap();
    let users = users.iter().map(|user| (*user).to_owned()).collect();
    FoundResource::Workspace(WorkspaceDir { id, changed: long_ago(), users })
}

fn row(kind: ResourceKind, name: &str, stage: ResourceState) -> Resource {
    Resource {
        run_id: "r1".to_owned(),
        kind,
        name: name.to_owned(),
        epoch: 1,
        owner: format!("{HERE}/1/2"),
        stage,
        changed: moment(SystemTime::now()),
    }
}

fn moment(time: SystemTime) -> UnixMillis {
    UnixMillis(time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis().try_into().unwrap())
}

/// Returns a run with all its resources, in its first epoch.
fn run(state: State, epoch: u64, stage: ResourceState) -> Option<StoredRun> {
    let rows = vec![
        row(ResourceKind::Container, &named(1), stage),
        row(ResourceKind::Grant, "r1", stage),
        row(ResourceKind::Listener, &dir_name(OURS), stage),
        row(ResourceKind::Workspace, W1, stage),
    ];
    Some(stored(state, epoch, rows))
}

fn stored(state: State, epoch: u64, rows: Vec<Resource>) -> StoredRun {
    StoredRun { state, epoch, agent: AgentId::parse("a:b").unwrap(), rows }
}

fn decide(resource: &FoundResource, stored_run: Option<&StoredRun>, mode: Mode) -> Decision {
    decide_with(resource, stored_run, mode, BTreeSet::new())
}

fn decide_with(
    resource: &FoundResource,
    stored_run: Option<&StoredRun>,
    mode: Mode,
    surplus: BTreeSet<WorkspaceId>,
) -> Decision {
    let configured = BTreeSet::from([RunId::parse("configured").unwrap()]);
    let terms = Terms {
        tool_owners: Some(BTreeSet::from(["alive".to_owned()])),
        mode,
        installation: &InstallationId::parse("here").unwrap(),
        configured: &configured,
        keep: &KeepTimes::default(),
        surplus,
        now: SystemTime::now(),
    };
    judge(resource, stored_run, &terms)
}

/// Checks the decision about each resource, given its run in the store.
fn check(rows: impl IntoIterator<Item = (&'static str, FoundResource, Option<StoredRun>, Decision)>) {
    for (what, resource, stored_run, expected) in rows {
        let decision = decide(&resource, stored_run.as_ref(), Mode::default());
        assert_eq!(decision, expected, "{what}");
        assert!(!decision.to_string().is_empty());
    }
}

const LIVES: Decision = Decision::Keep(KeepReason::Lives(State::Running));
const DEAD: Decision = Decision::Remove(RemovalReason::Ended(ENDED));

#[test]
fn a_container_is_removed_only_with_its_own_run() {
    use ResourceState::{Made, Removed, Wanted};
    use State::{Queued, Running};
    let fenced = Decision::Remove(RemovalReason::Fenced { made: 1, present: 3 });
    let of = |epoch| container(&named(epoch), epoch, OURS);
    let unnamed = || container(&named(2), 2, OURS);
    check([
        ("the present epoch's", of(1), run(Running, 1, Made), LIVES),
        ("that is about to be made", of(1), run(Running, 1, Wanted), LIVES),
        ("said to be gone in the present epoch: its holder knows", of(1), run(Running, 1, Removed), LIVES),
        ("an earlier epoch's, to be adopted", of(1), run(Running, 3, Made), LIVES),
        ("an earlier epoch's, perhaps made", of(1), run(Running, 3, Wanted), LIVES),
        ("an earlier epoch's that was said to be gone", of(1), run(Running, 3, Removed), fenced),
        (
            "the same of a run nobody has claimed anew",
            of(1),
            run(Queued, 1, Removed),
            Decision::Keep(KeepReason::Lives(Queued)),
        ),
        (
            "an earlier epoch's that no row names",
            unnamed(),
            run(Running, 3, Made),
            Decision::Unknown(UnknownReason::NeverWanted),
        ),
        ("a later epoch's: this store is older than it", unnamed(), run(Running, 1, Made), LIVES),
        ("of a run that ended", of(1), run(ENDED, 1, Made), DEAD),
        ("perhaps made for it", of(1), run(ENDED, 1, Wanted), DEAD),
        ("made after it was said to be gone", of(1), run(ENDED, 1, Removed), DEAD),
        ("that no row names", unnamed(), run(ENDED, 3, Made), Decision::Unknown(UnknownReason::NeverWanted)),
        (
            "another store's of the same name",
            container(&named(1), 1, THEIRS),
            run(ENDED, 1, Made),
            Decision::Unknown(UnknownReason::OtherSocket),
        ),
        (
            "another store's of the same name, while ours goes on",
            container(&named(1), 1, THEIRS),
            run(Running, 3, Removed),
            Decision::Unknown(UnknownReason::OtherSocket),
        ),
        (
            "with our label and another name",
            container("web", 1, OURS),
            run(ENDED, 1, Made),
            Decision::Unknown(UnknownReason::NeverWanted),
        ),
        ("of a run that the store does not know", of(1), None, Decision::Unknown(UnknownReason::NoRun)),
        (
            "of no such run, with another name",
            container("web", 1, OURS),
            None,
            Decision::Unknown(UnknownReason::OtherName),
        ),
    ]);
}

#[test]
fn a_container_without_an_epoch_is_of_epoch_zero() {
    let FoundResource::Container(mut found) = container("sluice-here-r1", 0, OURS) else { unreachable!() };
    found.labels.remove(label::EPOCH);
    assert_eq!(found.epoch(), 0);
    let mut stored_run = run(State::Running, 1, ResourceState::Made).unwrap();
    stored_run.rows.push(row(ResourceKind::Container, "sluice-here-r1", ResourceState::Made));
    assert_eq!(decide(&FoundResource::Container(found), Some(&stored_run), Mode::default()), LIVES);
}

#[test]
fn a_grant_is_closed_when_its_run_has_ended() {
    use ResourceState::{Made, Removed};
    use RunState::{Closing, Open};
    let nothing = Some(stored(ENDED, 1, Vec::new()));
    let configured = FoundResource::Grant(Grant {
        run_id: RunId::parse("configured").unwrap(),
        attempt: 0,
        state: Open,
        epoch: 1,
        socket_dir: None,
    });
    check([
        ("of a run that goes on", grant(Open, Some(OURS)), run(State::Running, 1, Made), LIVES),
        (
            "said to be closed, while its run goes on",
            grant(Open, None),
            run(State::Running, 3, Removed),
            LIVES,
        ),
        ("of a run that ended", grant(Open, Some(OURS)), run(ENDED, 1, Made), DEAD),
        ("with a proxy that tells no directory", grant(Open, None), run(ENDED, 1, Made), DEAD),
        ("opened after it was said to be closed", grant(Open, Some(OURS)), run(ENDED, 1, Removed), DEAD),
        ("on its way", grant(Closing, None), run(ENDED, 1, Made), Decision::Keep(KeepReason::Closing)),
        (
            "another store's",
            grant(Open, Some(THEIRS)),
            run(ENDED, 1, Made),
            Decision::Unknown(UnknownReason::OtherSocket),
        ),
        (
            "that its run never wanted",
            grant(Open, None),
            nothing,
            Decision::Unknown(UnknownReason::NeverWanted),
        ),
        (
            "of a run that the store does not know",
            grant(Open, None),
            None,
            Decision::Unknown(UnknownReason::NoRun),
        ),
        ("that the configuration opens", configured.clone(), None, Decision::Keep(KeepReason::Configured)),
        (
            "that the configuration opens, named like one of ours",
            configured,
            run(ENDED, 1, Made),
            Decision::Keep(KeepReason::Configured),
        ),
    ]);
}

#[test]
fn an_unused_workspace_goes_when_its_run_ended() {
    use ResourceState::{Made, Removed};
    let used = || Decision::Keep(KeepReason::InUse("c1".to_owned()));
    check([
        ("of a run that goes on", workspace(W1, &[]), run(State::Running, 1, Made), LIVES),
        (
            "said to be gone, while its run goes on",
            workspace(W1, &[]),
            run(State::Running, 3, Removed),
            LIVES,
        ),
        ("of a run that ended", workspace(W1, &[]), run(ENDED, 1, Made), DEAD),
        ("made after it was said to be gone", workspace(W1, &[]), run(ENDED, 1, Removed), DEAD),
        ("that a container has mounted", workspace(W1, &["c1"]), run(ENDED, 1, Made), used()),
        ("that no row names", workspace(W9, &[]), None, Decision::Unknown(UnknownReason::NoRow)),
        ("that no row names and a container has mounted", workspace(W9, &["c1"]), None, used()),
    ]);
}

#[test]
fn a_row_without_its_resource_is_closed() {
    use ResourceState::{Made, Wanted};
    let resource = |stage| FoundResource::Row(row(ResourceKind::Container, &named(1), stage));
    // The host's name in the row proves nothing, because it may change.
    let mut renamed = row(ResourceKind::Workspace, W1, Made);
    renamed.owner = "renamed/1/2".to_owned();
    let gone = || Decision::Remove(RemovalReason::Gone(ENDED));
    check([
        ("of a run that ended", resource(Made), run(ENDED, 1, Made), gone()),
        ("of what perhaps never was", resource(Wanted), run(ENDED, 1, Wanted), gone()),
        ("of a run that began anew meanwhile", resource(Made), run(State::Running, 2, Made), LIVES),
        ("of this host by another name", FoundResource::Row(renamed), run(ENDED, 1, Made), gone()),
    ]);
}

#[test]
fn an_old_unknown_resource_goes_on_demand() {
    let on_demand = Mode { unknown: Leftovers::Remove, ..Mode::default() };
    let removed = |why| Decision::Remove(RemovalReason::OnDemand(why));
    let mut young = workspace(W9, &[]);
    if let FoundResource::Workspace(dir) = &mut young {
        dir.changed = SystemTime::now() - UNKNOWN_GRACE / 2;
    }
    for (what, resource, stored_run, expected) in [
        ("container", container(&named(1), 1, OURS), None, removed(UnknownReason::NoRun)),
        ("grant", grant(RunState::Open, None), None, removed(UnknownReason::NoRun)),
        ("workspace", workspace(W9, &[]), None, removed(UnknownReason::NoRow)),
        ("workspace of just now", young, None, Decision::Keep(KeepReason::Young)),
        ("used workspace", workspace(W9, &["c1"]), None, Decision::Keep(KeepReason::InUse("c1".to_owned()))),
        // A resource that contradicts itself belongs to another party, whatever the mode.
        ("other name", container("web", 1, OURS), None, Decision::Unknown(UnknownReason::OtherName)),
        (
            "other socket",
            container(&named(1), 1, THEIRS),
            run(ENDED, 1, ResourceState::Made),
            Decision::Unknown(UnknownReason::OtherSocket),
        ),
        (
            "never wanted",
            container(&named(2), 2, OURS),
            run(ENDED, 3, ResourceState::Made),
            Decision::Unknown(UnknownReason::NeverWanted),
        ),
    ] {
        assert_eq!(decide(&resource, stored_run.as_ref(), on_demand), expected, "{what}");
    }
}

/// Creates a store in which run `r1` has ended, with a row for a container.
async fn ended(dir: &Path) -> (Store, FencingToken) {
    let address = Address::parse(&format!("sqlite://{}/private/sluice.db", dir.display()), None).unwrap();
    let store = Store::open(&address, InstallationId::parse("here").unwrap()).await.unwrap();
    let store = store.serving(HostIdentity::of(dir).unwrap()).await.unwrap();
    let new = NewRun {
        run_id: RunId::parse("r1").unwrap(),
        account: AccountId::parse("acct-1").unwrap(),
        agent: AgentId::parse("a:b").unwrap(),
        correlation: Correlation::default(),
        priority: Priority::default(),
        session: None,
        turn: None,
        model: None,
        question: None,
        wanted: "{}".to_owned(),
    };
    let worker = Worker::this_process();
    let created = store.create(&new, Claimant::Worker(&worker, Millis::seconds(60))).await.unwrap();
    let Created::New(run) = created else { panic!("{created:?}") };
    let failure = Failure::new(RunErrorCode::Internal, "");
    let wanted = [
        ResourceChange::wanted(ResourceKind::Container, named(1)),
        ResourceChange::wanted(ResourceKind::Listener, dir_name(OURS)),
    ];
    for step in [
        Step::from(Transition::Prepare).with(wanted),
        Transition::Settle(Completion::without_agent(failure)).into(),
        Transition::Finish(Some(Usage::default())).into(),
    ] {
        store.step(&run.fencing_token(), &step).await.unwrap();
    }
    (store, run.fencing_token())
}

#[tokio::test]
async fn a_run_restarted_before_the_removal_keeps_all() {
    let dir = tempfile::tempdir().unwrap();
    let (store, token) = ended(dir.path()).await;
    let text = format!(
        "[sandbox]\ndocker_socket = '{0}/nowhere'\ninstallation = 'here'\n[proxy]\nrun_dir = '{0}'\n",
        dir.path().display()
    );
    let sources = Sources { file: Some(("s.toml".into(), text)), ..Sources::default() };
    let reaper = Reaper::of(&Settings::read(&sources).unwrap(), store.clone());
    let terms = Terms {
        tool_owners: Some(BTreeSet::from(["alive".to_owned()])),
        mode: Mode::default(),
        installation: &InstallationId::parse("here").unwrap(),
        configured: &BTreeSet::new(),
        now: SystemTime::now(),
        keep: &KeepTimes::default(),
        surplus: BTreeSet::new(),
    };
    let container = container(&named(1), 1, OURS);
    let stored_run = {
        let (run, rows) = store.run_with_resources(&token.run_id).await.unwrap();
        StoredRun::new(&run, rows)
    };
    let judged = judge(&container, Some(&stored_run), &terms);
    assert_eq!(judged, DEAD);
    // Control: without the restart, the reaper gets as far as Docker.
    let (_, outcome) = reaper.act(&container, Some(&token.run_id), &terms, judged.clone()).await;
    assert!(matches!(&outcome, GcOutcome::Failed { error } if error.contains("nowhere")), "{outcome:?}");
    store.restart(&token).await.unwrap();
    let second = reaper.act(&container, Some(&token.run_id), &terms, judged).await;
    assert_eq!(second, (Decision::Keep(KeepReason::Lives(State::Queued)), GcOutcome::Kept));
    assert!(store.mark_removed(&stored_run.rows[0]).await.is_err(), "nor does anybody say that it is gone");
}

fn stages() -> impl Strategy<Value = ResourceState> {
    select(vec![ResourceState::Wanted, ResourceState::Made, ResourceState::Kept, ResourceState::Removed])
}

fn resources() -> impl Strategy<Value = FoundResource> {
    let sockets = select(vec![OURS, THEIRS]);
    let names =
        prop_oneof![(0_u64..4).prop_map(named), Just("web".to_owned()), Just("sluice-here-r1".to_owned())];
    let states = select(vec![RunState::Open, RunState::Closing, RunState::Closed]);
    let rows = (
        select(vec![
            ResourceKind::Container,
            ResourceKind::Grant,
            ResourceKind::Listener,
            ResourceKind::Workspace,
        ]),
        stages(),
    );
    prop_oneof![
        (names, 0_u64..4, sockets).prop_map(|(name, epoch, socket)| container(&name, epoch, socket)),
        states.prop_map(|state| grant(state, None)),
        any::<bool>().prop_map(|used| workspace(W1, if used { &["c1"] } else { &[] })),
        rows.prop_map(|(kind, stage)| FoundResource::Row(row(kind, W1, stage))),
    ]
}

fn stored_runs() -> impl Strategy<Value = StoredRun> {
    let states = vec![
        State::Queued,
        State::Preparing,
        State::Starting,
        State::Running,
        State::Collecting(Outcome::Failed),
        State::Settling(Outcome::Failed),
        ENDED,
    ];
    let kinds = select(vec![
        (ResourceKind::Container, named(1)),
        (ResourceKind::Container, named(2)),
        (ResourceKind::Container, "web".to_owned()),
        (ResourceKind::Grant, "r1".to_owned()),
        (ResourceKind::Listener, dir_name(OURS)),
        (ResourceKind::Workspace, W1.to_owned()),
    ]);
    let rows = proptest::collection::vec((kinds, stages()), 0..8);
    (select(states), 0_u64..4, rows).prop_map(|(state, epoch, rows)| {
        let rows: HashMap<_, _> =
            rows.into_iter().map(|((kind, name), stage)| ((kind.name(), name), (kind, stage))).collect();
        let rows = rows.into_iter().map(|((_, name), (kind, stage))| row(kind, &name, stage)).collect();
        stored(state, epoch, rows)
    })
}

fn modes() -> impl Strategy<Value = Mode> {
    let leftovers = || select(vec![Leftovers::Leave, Leftovers::Remove]);
    (leftovers(), leftovers()).prop_map(|(unknown, kept)| Mode { act: GcMode::Apply, unknown, kept })
}

proptest! {
    #[test]
    fn no_resource_of_a_live_run_is_dead(resource in resources(), stored_run in stored_runs(), mode in modes()) {
        let Decision::Remove(why) = decide(&resource, Some(&stored_run), mode) else { return Ok(()) };
        let its_row = stored_run.row(resource.kind(), resource.name());
        if stored_run.state.is_final() {
            assert!(matches!(resource, FoundResource::Row(_)) || its_row.is_some(), "without a row: {resource:?}, {why:?}");
        } else {
            // The one exception is an earlier epoch's container that is removed according to its row.
            let FoundResource::Container(found) = &resource else { panic!("{resource:?} of a run that is {}", stored_run.state) };
            assert!(found.epoch() < stored_run.epoch, "{found:?} at {}", stored_run.epoch);
            assert_eq!(its_row.map(|row| row.stage), Some(ResourceState::Removed), "{found:?}");
        }
    }
}
