//! Tests two hosts on one store: the second is refused, and cannot end what runs on the first. Each has its own Docker,
//! proxy and directories.

use std::fs;

use harness::{
    Outcome, Up, World,
    docker::{containers_of, docker},
    dockerd::{Containers, Dockerd},
    eventually::eventually_within,
    sluice::Sluice,
};
use rustix::process::{Pid, Signal, kill_process};
use test_postgres::Database;

use crate::{
    recovery::survival::{LEASE, PATIENCE, ended, order, record, state},
    sandbox::shell_agent,
};

/// Two hosts, of which the first is the world.
struct Hosts {
    world: World,
    dockerd: Dockerd,
    _postgres: Option<Database>,
}

impl Hosts {
    async fn on(postgres: Option<Database>) -> Self {
        let patient = "echo before; until [ -e go ]; do sleep 0.1; done; echo after";
        let mut world = World::with(&format!("{}{LEASE}", shell_agent(patient, "run_timeout = '60s'"))).await;
        assert!(world.stop_proxy().await);
        if let Some(postgres) = &postgres {
            world.keep_store_at(&postgres.url()).await.close().await;
        }
        fs::create_dir(world.path().join("b")).unwrap();
        Self { dockerd: Dockerd::start(Containers::GoOn).await, world, _postgres: postgres }
    }

    /// Returns a command on the second host.
    fn second(&self) -> Sluice {
        let dir = |name: &str| self.world.path().join("b").join(name).display().to_string();
        self.world
            .sluice()
            .env("SLUICE_SANDBOX_STATE_DIR", &dir("runner"))
            .env("SLUICE_SANDBOX_WORKSPACE_DIR", &dir("workspaces"))
            .env("SLUICE_SANDBOX_GATEWAY_DIR", &dir("gateways"))
            .env("SLUICE_SANDBOX_DOCKER_SOCKET", &self.dockerd.socket().display().to_string())
            .env("SLUICE_PROXY_RUN_DIR", &dir("run"))
            .env("SLUICE_PROXY_STATE_DIR", &dir("state"))
    }

    /// Starts patient agents on the first host.
    async fn running(&self, runs: &[&str]) -> Up {
        let up = Up::start(self.world.sluice()).await;
        for run in runs {
            order(&self.world, run, "test:sh").await;
        }
        for run in runs {
            let look = || state(&self.world, run);
            eventually_within(PATIENCE, &format!("{run} runs"), look, |state| state == "running").await;
            // Its container may have to begin yet, and could not without the proxy.
            let logs = || async { self.world.sluice().run(&["runs", "logs", run]).await.stdout };
            eventually_within(PATIENCE, &format!("{run}'s agent runs"), logs, |logs| logs.contains("before"))
                .await;
        }
        up
    }

    /// Lets a patient agent end.
    async fn let_go(&self, run: &str) {
        let containers = containers_of(&self.world.installation()).await;
        let name = containers.iter().find(|name| name.contains(&format!("-{run}.")));
        docker(&["exec", name.expect("its container is there"), "touch", "/workspace/go"]).await;
    }

    async fn epoch(&self, run: &str) -> u64 {
        record(&self.world, run).await["epoch"].as_u64().unwrap()
    }

    /// Moves the store to the second host, as soon as that is allowed.
    async fn adopted(&self) -> Outcome {
        let adopt = || async { self.second().run(&["store", "adopt"]).await };
        eventually_within(PATIENCE, "the store is moved", adopt, |outcome| outcome.code == Some(0)).await
    }

    /// Asserts that the second host refuses every order, work and removal, and allows commands that only read.
    async fn second_only_reads(&self) {
        let file = self.world.path().join("backup.ndjson").display().to_string();
        self.reads(&["backup", &file]).await;
        for refused in [
            &["up"][..],
            &["run", "--agent", "test:sh", "q"],
            &["run", "--detach", "--agent", "test:sh", "q"],
            &["runs", "gc"],
            &["restore", &file, "--force"],
        ] {
            let outcome = self.second().run(refused).await;
            assert_eq!(outcome.code, Some(2), "{refused:?}: {outcome:?}");
            assert!(outcome.stderr.contains("serves another host"), "{refused:?}: {outcome:?}");
            assert!(outcome.stderr.contains("sluice store adopt"), "{refused:?}: {outcome:?}");
            // It is refused before anything is started.
            assert_eq!(outcome.stdout, "", "{refused:?}");
        }
        assert!(!self.world.path().join("b/run").exists(), "no proxy, and no socket of a run");
        self.is_not_replaced(&file).await;
        let doctor = self.second().run(&["doctor"]).await;
        assert!(doctor.stdout.contains("serves another host"), "{doctor:?}");
        for read in
            [&["runs", "ls"][..], &["runs", "show", "r1"], &["runs", "logs", "r1"], &["runs", "events", "r1"]]
        {
            self.reads(read).await;
        }
        let shown = self.second().run(&["store", "show", "--json"]).await.result();
        assert_eq!(
            (&shown["serves_this_host"], shown["this_host"] == shown["serves"]["host"]),
            (&false.into(), false)
        );
    }

    /// Asserts that the second host cannot replace the store's content of another installation.
    async fn is_not_replaced(&self, file: &str) {
        let neighbour = self.second().env("SLUICE_SANDBOX_INSTALLATION", "neighbour");
        let refused = neighbour.run(&["restore", file, "--force"]).await;
        assert_eq!(refused.code, Some(75), "{refused:?}");
        for part in [self.world.installation().as_str(), "is at work in it", "last seen"] {
            assert!(refused.stderr.contains(part), "no {part} in {refused:?}");
        }
    }

    async fn reads(&self, command: &[&str]) {
        let outcome = self.second().run(command).await;
        assert_eq!(outcome.code, Some(0), "{command:?}: {outcome:?}");
    }
}

/// Restarts the first host with two agents at work: its leases end at once, and only the second host is there.
async fn a_restart_of_the_first_is_survived(hosts: Hosts) {
    let up = hosts.running(&["r1", "r2"]).await;
    hosts.second_only_reads().await;
    up.stop(Signal::TERM).await;
    let refused = hosts.second().run(&["up"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!(containers_of(&hosts.world.installation()).await.len(), 2, "both go on");
    assert_eq!((hosts.epoch("r1").await, hosts.epoch("r2").await), (1, 1), "nothing was taken over");
    let up = Up::start(hosts.world.sluice()).await;
    hosts.let_go("r1").await;
    let r1 = ended(&hosts.world, "r1").await;
    assert_eq!(
        (r1["state"].as_str(), r1["answer"].as_str()),
        (Some("succeeded"), Some("before\nafter")),
        "{r1:#}"
    );
    up.stop(Signal::TERM).await;
    // The control: with the same id the store takes it for the same host, and it ends the runs it cannot find.
    let (ours, copy) =
        (hosts.world.path().join("runner/host-id"), hosts.world.path().join("b/runner/host-id"));
    fs::copy(ours, copy).unwrap();
    let second = Up::start(hosts.second()).await;
    let r2 = ended(&hosts.world, "r2").await;
    assert_eq!(r2["error"]["code"], "container_lost", "{r2:#}");
    second.stop(Signal::TERM).await;
    let up = Up::start(hosts.world.sluice()).await;
    eventually_within(PATIENCE, "nothing is left", || hosts.world.left(), Vec::is_empty).await;
    up.stop(Signal::TERM).await;
}

#[tokio::test]
async fn a_second_host_on_postgres_is_refused() {
    a_restart_of_the_first_is_survived(Hosts::on(Some(Database::create().await)).await).await;
}

#[tokio::test]
async fn a_second_host_on_one_file_is_refused() {
    a_restart_of_the_first_is_survived(Hosts::on(None).await).await;
}

/// An operator moves a store to a second host. That is refused until the first host is quiet. Then agents that ran
/// there are lost, and the first host is refused.
#[tokio::test]
async fn a_store_is_moved_once_its_host_is_quiet() {
    let hosts = Hosts::on(None).await;
    let up = hosts.running(&["r1"]).await;
    let early = hosts.second().run(&["store", "adopt"]).await;
    assert_eq!(early.code, Some(75), "{early:?}");
    assert!(early.stderr.contains("has a lease"), "{early:?}");
    up.stop(Signal::TERM).await;
    let moved = hosts.adopted().await;
    assert!(moved.stdout.contains("1 run unfinished"), "{moved:?}");
    assert_eq!(state(&hosts.world, "r1").await, "running", "to move it ends nothing");
    let up = Up::start(hosts.second()).await;
    let r1 = ended(&hosts.world, "r1").await;
    assert_eq!(r1["error"]["code"], "container_lost", "{r1:#}");
    let answer = hosts.second().run(&["run", "--run-id", "r2", "Hello"]).await;
    assert_eq!(answer.code, Some(0), "the second host works: {answer:?}");
    let refused = hosts.world.sluice().run(&["up"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    up.stop(Signal::TERM).await;
    let said = moved.stdout.split_once("docker rm --force").expect("it says how to tidy up").1;
    assert!(said.contains(&hosts.world.installation()), "{said}");
    for container in containers_of(&hosts.world.installation()).await {
        docker(&["rm", "--force", &container]).await;
    }
}

/// A worker that stands still while the store is moved finds out when it goes on, and ends.
#[tokio::test]
async fn a_worker_whose_store_was_moved_ends() {
    let hosts = Hosts::on(None).await;
    let mut up = Up::start(hosts.world.sluice().log_to(&hosts.world.path().join("up.log"))).await;
    let pid = Pid::from_raw(up.child.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::STOP).unwrap();
    hosts.adopted().await;
    kill_process(pid, Signal::CONT).unwrap();
    assert_eq!(up.child.wait().await.unwrap().code(), Some(2));
    let shown = hosts.world.sluice().run(&["store", "show"]).await;
    assert!(shown.stdout.contains("another host"), "{shown:?}");
}
