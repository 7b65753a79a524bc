//! Tests which kept workspaces go: on demand, by age and by space.

use std::time::Duration;

use platform_core::limit;

use super::*;

#[test]
fn a_kept_workspace_goes_on_demand() {
    use ResourceState::{Kept as Stays, Made};
    let on_demand = Mode { kept: Leftovers::Remove, ..Mode::default() };
    let kept = || Decision::Keep(KeepReason::Deliberately);
    let gone = FoundResource::Row(row(ResourceKind::Workspace, W1, Stays));
    for (what, resource, stored_run, before, demanded) in [
        ("kept", workspace(W1, &[]), run(ENDED, 1, Stays), kept(), DEAD),
        (
            "kept, and used",
            workspace(W1, &["c1"]),
            run(ENDED, 1, Stays),
            kept(),
            Decision::Keep(KeepReason::InUse("c1".to_owned())),
        ),
        ("kept, and gone", gone, run(ENDED, 1, Stays), kept(), Decision::Remove(RemovalReason::Gone(ENDED))),
        ("of a run that goes on", workspace(W1, &[]), run(State::Running, 1, Stays), LIVES, LIVES),
        (
            "without a row",
            workspace(W9, &[]),
            None,
            Decision::Unknown(UnknownReason::NoRow),
            Decision::Unknown(UnknownReason::NoRow),
        ),
        ("not a workspace", container(&named(1), 1, OURS), run(ENDED, 1, Stays), kept(), kept()),
        ("not kept", workspace(W1, &[]), run(ENDED, 1, Made), DEAD, DEAD),
    ] {
        let decided = [Mode::default(), on_demand].map(|mode| decide(&resource, stored_run.as_ref(), mode));
        assert_eq!(decided, [before, demanded], "{what}");
    }
}

#[test]
fn kept_workspaces_go_by_age_and_space() {
    let kept_for = |age| {
        let mut kept = row(ResourceKind::Workspace, W1, ResourceState::Kept);
        kept.changed = moment(SystemTime::now() - age);
        Some(stored(ENDED, 1, vec![kept]))
    };
    let day = limit::sandbox::KEEP;
    let young = day.duration() - Duration::from_mins(1);
    let surplus = || BTreeSet::from([WorkspaceId::parse(W1).unwrap()]);
    let mut gone = row(ResourceKind::Workspace, W1, ResourceState::Kept);
    gone.changed = moment(SystemTime::now() - day.duration());
    let gone = FoundResource::Row(gone);
    let files =
        || FoundResource::Files(ListedStage { run_id: RunId::parse("r1").unwrap(), written: long_ago() });
    let stays = || Decision::Keep(KeepReason::Deliberately);
    let old = || Decision::Remove(RemovalReason::KeptLongEnough(day));
    for (what, resource, stored_run, surplus, expected) in [
        ("young", workspace(W1, &[]), kept_for(young), BTreeSet::new(), stays()),
        ("old", workspace(W1, &[]), kept_for(day.duration()), BTreeSet::new(), old()),
        (
            "too much",
            workspace(W1, &[]),
            kept_for(young),
            surplus(),
            Decision::Remove(RemovalReason::KeptTooMuch),
        ),
        (
            "old, and used",
            workspace(W1, &["c1"]),
            kept_for(day.duration()),
            BTreeSet::new(),
            Decision::Keep(KeepReason::InUse("c1".to_owned())),
        ),
        (
            "gone, and old",
            gone,
            kept_for(day.duration()),
            BTreeSet::new(),
            Decision::Remove(RemovalReason::Gone(ENDED)),
        ),
        ("files of a kept workspace", files(), kept_for(young), BTreeSet::new(), stays()),
        ("files alone", files(), run(ENDED, 1, ResourceState::Removed), BTreeSet::new(), DEAD),
        ("files of a live run", files(), run(State::Running, 1, ResourceState::Made), BTreeSet::new(), LIVES),
        ("files of no known run", files(), None, BTreeSet::new(), Decision::Unknown(UnknownReason::NoRun)),
    ] {
        let decision = decide_with(&resource, stored_run.as_ref(), Mode::default(), surplus);
        assert_eq!(decision, expected, "{what}");
    }
}
