//! Warm containers that wait for a run, and those that waited for one.

use runner_store::{PoolStage, Pooled, WarmContainer};

use super::*;

/// Returns a warm container in `stage`.
fn warm(stage: PoolStage) -> Pooled {
    let warm = WarmContainer {
        container: "sluice-here-warm-1".to_owned(),
        template: "template".to_owned(),
        agent: AgentId::parse("sandbox:agent").unwrap(),
        workspace: WorkspaceId::parse(W1).unwrap(),
        listener: SocketDirName::from_random(OURS),
    };
    Pooled { warm, owner: "here/1/2".to_owned(), stage, over: false, changed: UnixMillis(0) }
}

/// Returns a warm container whose process is gone.
fn left(stage: PoolStage) -> Pooled {
    Pooled { over: true, ..warm(stage) }
}

/// Returns a container that waited for a run, as Docker always describes it.
fn waited() -> Thing {
    let Thing::Container(mut found) = container(&named(1), 1, OURS) else { unreachable!() };
    found.labels.remove(label::RUN_ID);
    found.labels.remove(label::EPOCH);
    found.labels.insert(label::TEMPLATE.to_owned(), "template".to_owned());
    Thing::Container(found)
}

#[test]
fn what_waits_goes_when_its_owner_is_gone() {
    use PoolStage::{Gone, Leaving, Ready, Wanted};
    let decide = |pooled: Pooled| decide(&Thing::WarmContainer(pooled), None, Mode::default());
    for stage in [Wanted, Ready, Leaving] {
        assert_eq!(decide(warm(stage)), Decision::Keep(Kept::Waits(stage)));
        assert_eq!(decide(left(stage)), Decision::Remove(Dead::Abandoned));
    }
    assert_eq!(decide(warm(Gone)), Decision::Remove(Dead::Abandoned), "it came late");
}

#[test]
fn what_waited_is_of_the_epoch_in_which_a_run_took_it() {
    let of = |state, epoch, stage| decide(&waited(), run(state, epoch, stage).as_ref(), Mode::default());
    for stage in [Stage::Wanted, Stage::Made, Stage::Removed] {
        assert_eq!(
            of(State::Running, 1, stage),
            Decision::Keep(Kept::Lives(State::Running)),
            "its holder decides"
        );
        assert_eq!(of(ENDED, 1, stage), Decision::Remove(Dead::Ended(ENDED)));
        assert_eq!(of(ENDED, 2, stage), Decision::Remove(Dead::Ended(ENDED)));
    }
    for stage in [Stage::Wanted, Stage::Made] {
        assert_eq!(of(State::Running, 2, stage), Decision::Keep(Kept::Lives(State::Running)), "adopted");
    }
    let fenced = Decision::Remove(Dead::Fenced { made: 1, present: 2 });
    assert_eq!(of(State::Running, 2, Stage::Removed), fenced);
}
