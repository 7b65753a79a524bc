//! Tests two `sluice up` on one store, one Docker, one proxy. One of them stands still and goes on at any point; never
//! do both act on a run.

use std::{path::PathBuf, time::Duration};

use harness::{
    DockerGate, Up, World,
    docker::{Starts, containers_of, docker},
    eventually::eventually_within,
    process::is_suspended,
};
use platform_core::{control::RunState, id::RunId};
use runner_model::failpoint::Point;
use runner_store::{RunHistory, RunRecord, Store};
use rustix::process::{Pid, Signal, kill_process};
use test_postgres::Database;

use crate::sandbox::shell_agent;

/// Lease that is short, so that a run is soon taken over when its worker stands still.
const LEASE: &str = "[worker]\nlease_duration = '2s'\n";
const PATIENCE: Duration = Duration::from_secs(60);
/// Agent that answers from the model, by the one call that a run makes.
const ASKS: &str = "sandbox:agent";

/// Everything that two workers share.
struct Scene {
    /// Dropped before the world, because its file is in the world's directory.
    starts: Starts,
    store: Store,
    world: World,
    _postgres: Database,
}

impl Scene {
    async fn with(agent: &str) -> Self {
        let postgres = Database::create().await;
        let mut world = World::with(&format!("{agent}{LEASE}")).await;
        assert!(world.stop_proxy().await);
        let store = world.keep_store_at(&postgres.url()).await;
        let starts = Starts::follow(&world.installation(), &world.path().join("starts")).await;
        Self { starts, store, world, _postgres: postgres }
    }

    fn log(&self, worker: &str) -> PathBuf {
        self.world.path().join(format!("{worker}.log"))
    }

    /// Starts the worker that will stand still at `point`, if one is named.
    async fn first(&self, point: Option<Point>) -> Up {
        let sluice = self.world.sluice().log_to(&self.log("first"));
        match point {
            Some(point) => Up::start(sluice.env("SLUICE_FAILPOINT", &format!("{}:stop", point.name()))).await,
            None => Up::start(sluice).await,
        }
    }

    /// Starts the worker that takes over what others leave, and nothing else.
    async fn second(&self) -> Up {
        let sluice = self.world.sluice().log_to(&self.log("second"));
        Up::start(sluice.env("SLUICE_WORKER_MAX_CONCURRENT_RUNS", "0")).await
    }

    async fn order(&self, run: &str, agent: &str) {
        let arguments = ["run", "--detach", "--run-id", run, "--agent", agent, "q"];
        let outcome = self.world.sluice().run(&arguments).await;
        assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), run), "{outcome:?}");
    }

    async fn record(&self, run: &str) -> RunRecord {
        self.store.record(&RunId::parse(run).unwrap()).await.unwrap()
    }

    async fn history(&self, run: &str) -> RunHistory {
        self.store.history(&RunId::parse(run).unwrap()).await.unwrap()
    }

    async fn is(&self, run: &str, state: &str) {
        let look = || async { self.record(run).await.run.state.name() };
        eventually_within(PATIENCE, &format!("{run} is {state}"), look, |is| *is == state).await;
    }

    /// Waits until an agent works. Its run is `running` before that: a worker that stops in between leaves a container that
    /// never started, and the next worker replaces it.
    async fn works(&self, run: &str) {
        self.is(run, "running").await;
        let starts = || async { self.starts.of(run) };
        eventually_within(PATIENCE, &format!("the agent of {run} works"), starts, |starts| *starts == 1)
            .await;
    }

    async fn ended(&self, run: &str) -> RunRecord {
        let over = |record: &RunRecord| record.run.ended.is_some();
        eventually_within(PATIENCE, &format!("{run} ends"), || self.record(run), over).await
    }

    async fn nothing_is_left(&self) {
        eventually_within(PATIENCE, "nothing is left", || self.world.left(), Vec::is_empty).await;
    }

    /// Counts the calls of a run that the upstream has seen.
    fn calls(&self, run: &str) -> usize {
        let calls = self.world.upstream.ledger().all();
        calls.iter().filter(|call| call.header("x-cogni-run-id") == [run]).count()
    }

    /// Waits until a worker has reported of so many runs that it no longer executes them.
    async fn is_done_with(&self, worker: &str, runs: usize) {
        let look = || async { std::fs::read_to_string(self.log(worker)).unwrap() };
        let done = |log: &String| {
            ["sandbox.execution.complete", "no longer ours"].map(|said| log.matches(said).count())
        };
        let what = format!("{worker} is done with {runs}");
        eventually_within(PATIENCE, &what, look, |log| done(log).into_iter().sum::<usize>() >= runs).await;
    }

    async fn end(self, first: Up, second: Up) {
        first.stop(Signal::TERM).await;
        // The worker that started the proxy goes last.
        second.stop(Signal::TERM).await;
        self.world.assert_nothing_left().await;
    }
}

fn signal(pid: u32, signal: Signal) {
    // It may be gone already, which is as good.
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).ok();
}

async fn stands_still(up: &Up) {
    let suspended = || async { is_suspended(up.child.id().unwrap()) };
    eventually_within(PATIENCE, "it stands still", suspended, |suspended| *suspended).await;
}

fn go_on(up: &Up) {
    signal(up.child.id().unwrap(), Signal::CONT);
}

/// Stops one worker at each of `points` until another has finished its run, and then lets it go on.
async fn one_stands_still_at(points: &[Point]) {
    let scene = Scene::with("").await;
    // Serves both; neither is its parent.
    let host = scene.second().await;
    for point in points {
        let (run, next) = (format!("r-{}", point.name()), format!("n-{}", point.name()));
        let first = scene.first(Some(*point)).await;
        assert!(first.said.contains("adopted"), "{}", first.said);
        scene.order(&run, ASKS).await;
        stands_still(&first).await;
        let record = scene.ended(&run).await;
        let taken = u64::from(*point != Point::Finished);
        assert_eq!(
            (record.run.state.name(), record.run.epoch, scene.starts.of(&run), scene.calls(&run)),
            ("succeeded", 1 + taken, 1, 1),
            "{}: {record:#?}",
            point.name()
        );
        scene.nothing_is_left().await;
        let history = scene.history(&run).await;
        // It tries its next step, and learns what became of the run.
        go_on(&first);
        scene.is_done_with("first", 1).await;
        scene.order(&next, ASKS).await;
        let other = scene.ended(&next).await;
        assert_eq!((other.run.state.name(), scene.starts.of(&next)), ("succeeded", 1), "{other:#?}");
        let later = scene.history(&run).await;
        let RunHistory { record, events } = history;
        assert_eq!(
            (later.record.run, later.events, later.record.resources),
            (record.run, events, record.resources)
        );
        assert_eq!((scene.starts.of(&run), scene.calls(&run)), (1, 1), "{}", point.name());
        scene.nothing_is_left().await;
        let (code, _) = first.stop(Signal::TERM).await;
        assert_eq!(code, Some(0), "it has outlived what it was told");
        std::fs::remove_file(scene.log("first")).unwrap();
    }
    host.stop(Signal::TERM).await;
}

/// The worker stands still before its workspace is made, and does nothing when it goes on.
#[tokio::test]
async fn a_worker_frozen_before_provisioning_is_fenced() {
    one_stands_still_at(&Point::ALL[..3]).await;
}

/// The worker stands still before its agent runs.
#[tokio::test]
async fn a_worker_frozen_before_its_agent_is_fenced() {
    one_stands_still_at(&Point::ALL[3..7]).await;
}

#[tokio::test]
async fn a_worker_frozen_after_its_start_is_fenced() {
    one_stands_still_at(&Point::ALL[7..11]).await;
}

/// The worker stands still once its container is gone.
#[tokio::test]
async fn a_worker_frozen_after_its_container_is_fenced() {
    one_stands_still_at(&Point::ALL[11..]).await;
}

/// Returns an agent that says something, waits until it may go on, and says something else. It outlives the program
/// that lets it go on; otherwise that program's exit code would be that of a kill.
fn patient() -> String {
    shell_agent(
        "echo before; until [ -e go ]; do sleep 0.1; done; sleep 1; echo after",
        "run_timeout = '60s'",
    )
}

/// Lets a patient agent go on.
async fn let_go(scene: &Scene, run: &str) {
    let containers = containers_of(&scene.world.installation()).await;
    let of_run = |name: &&String| name.contains(&format!("-{run}."));
    let name = containers.iter().find(of_run).expect("its container is there");
    docker(&["exec", name, "touch", "/workspace/go"]).await;
}

/// The worker goes on too late, after another one has taken over.
#[tokio::test]
async fn six_agents_survive_a_frozen_worker() {
    let scene = Scene::with(&patient()).await;
    let second = scene.second().await;
    let first = scene.first(None).await;
    let runs: Vec<_> = (0..6).map(|n| format!("r{n}")).collect();
    for run in &runs {
        scene.order(run, "test:sh").await;
    }
    for run in &runs {
        scene.works(run).await;
    }
    signal(first.child.id().unwrap(), Signal::STOP);
    for run in &runs {
        let epoch = || async { scene.record(run).await.run.epoch };
        eventually_within(PATIENCE, "it is taken over", epoch, |epoch| *epoch == 2).await;
    }
    // Two agents end before the first goes on, the others after that.
    let_go(&scene, "r0").await;
    let_go(&scene, "r1").await;
    assert_eq!(scene.ended("r1").await.run.state.name(), "succeeded");
    go_on(&first);
    scene.is_done_with("first", runs.len()).await;
    for run in &runs[2..] {
        assert_eq!(scene.record(run).await.run.state.name(), "running");
        let_go(&scene, run).await;
    }
    for run in &runs {
        let record = scene.ended(run).await;
        assert_eq!(
            (record.run.state.name(), record.run.epoch, record.answer.as_deref(), scene.starts.of(run)),
            ("succeeded", 2, Some("before\nafter"), 1),
            "{record:#?}"
        );
    }
    scene.end(first, second).await;
}

/// A worker stands still after it has sent a start to Docker; the start arrives all the same.
#[tokio::test]
async fn a_late_start_starts_no_second_agent() {
    let scene = Scene::with(&patient()).await;
    let start = DockerGate::on(&scene.world.path().join("start.sock"), "POST ", "/start");
    let removal = DockerGate::on(&scene.world.path().join("removal.sock"), "DELETE ", "/containers/");
    let socket = "SLUICE_SANDBOX_DOCKER_SOCKET";
    let first = scene.world.sluice().log_to(&scene.log("first")).env(socket, &start.socket());
    let first = Up::start(first).await;
    scene.order("r1", "test:sh").await;
    let is_held = async |gate: &DockerGate| {
        eventually_within(PATIENCE, "it is held up", || async { gate.is_held() }, |held| *held).await
    };
    is_held(&start).await;
    signal(first.child.id().unwrap(), Signal::STOP);
    let second = scene.world.sluice().log_to(&scene.log("second")).env(socket, &removal.socket());
    let second = Up::start(second).await;
    // It has seen that the agent never ran, and is about to remove its container.
    is_held(&removal).await;
    start.open();
    let started = || async { scene.starts.of("r1") };
    eventually_within(PATIENCE, "the agent runs", started, |starts| *starts == 1).await;
    removal.open();
    let epoch = || async { scene.world.control.run(&RunId::parse("r1").unwrap()).await.unwrap().epoch };
    eventually_within(PATIENCE, "it is adopted", epoch, |epoch| *epoch == 2).await;
    let_go(&scene, "r1").await;
    let record = scene.ended("r1").await;
    assert_eq!((record.run.state.name(), scene.starts.of("r1")), ("succeeded", 1), "{record:#?}");
    go_on(&first);
    scene.is_done_with("first", 1).await;
    second.stop(Signal::TERM).await;
    first.stop(Signal::TERM).await;
    scene.world.assert_nothing_left().await;
}

/// A control: the holder's own request, and Docker, which knows no epochs, do the harm that fences keep a stale worker
/// from.
#[tokio::test]
async fn without_fences_a_stale_worker_does_harm() {
    let scene = Scene::with(&patient()).await;
    let second = scene.second().await;
    let first = scene.first(None).await;
    for run in ["closed", "removed"] {
        scene.order(run, "test:sh").await;
        scene.works(run).await;
    }
    signal(first.child.id().unwrap(), Signal::STOP);
    for run in ["closed", "removed"] {
        let id = RunId::parse(run).unwrap();
        let epoch = || async { scene.world.control.run(&id).await.unwrap().epoch };
        eventually_within(PATIENCE, "the data plane knows who holds it", epoch, |epoch| *epoch == 2).await;
    }
    let closed = RunId::parse("closed").unwrap();
    let stale = scene.world.control.close_in(1, &closed, 0).await.unwrap_err();
    assert_eq!(stale.error.code, "fenced");
    assert_eq!(scene.world.control.run(&closed).await.unwrap().state, RunState::Open);
    let harm = scene.world.control.close_in(2, &closed, 0).await.unwrap();
    assert_eq!(harm.state, RunState::Closed, "the same of its holder");
    // Docker knows no epochs: only its own clock keeps a stale worker from this.
    let containers = containers_of(&scene.world.installation()).await;
    let name = containers.iter().find(|name| name.contains("-removed.")).unwrap();
    docker(&["rm", "--force", name]).await;
    let record = scene.ended("removed").await;
    assert_eq!((record.run.state.name(), record.run.epoch), ("failed", 2), "{record:#?}");
    go_on(&first);
    let_go(&scene, "closed").await;
    assert_eq!(scene.ended("closed").await.answer.as_deref(), Some("before\nafter"));
    scene.end(first, second).await;
}
