//! Follows the commands that a failed run and `sluice doctor` print. A chain begins with a state that is made for real. It runs
//! each command as it is printed. At its end the same run succeeds, or its cause is shown.
//!
//! Advice that only says to look is not covered, such as at the proxy's log. Neither is what changes the whole machine, such as
//! to start Docker. The processes' tests follow the advice about calls of each kind of refusal.

use std::{fs, os::unix::fs::PermissionsExt};

use harness::{
    Outcome, Up, World,
    advice::{follow, listed, next, quoted},
    eventually,
};
use rustix::process::Signal;
use tokio::process::Command;

use crate::sandbox::shell_agent;

/// Values of the placeholders.
const VALUES: [(&str, &str); 3] = [("N", "100000"), ("CREDITS", "1000000"), ("QUESTION", "again")];
const CONFIG: &str = "[accounts.spent]\nrequests = 1\n";

/// Runs the only command that `outcome` names as the next one.
async fn next_of(world: &World, outcome: &Outcome) -> Outcome {
    let commands = next(&outcome.stderr);
    assert_eq!(commands.len(), 1, "{outcome:?}");
    follow(world.sluice(), &commands[0], &VALUES).await
}

/// Runs `order`, which fails, and all commands to which its advice leads.
async fn follow_all(world: &World, order: &[&str]) -> Vec<(String, Outcome)> {
    let failed = world.sluice().run(order).await;
    assert_eq!(failed.code, Some(1), "control: {failed:?}");
    let call = next_of(world, &failed).await;
    assert_eq!(call.code, Some(0), "{call:?}");
    let mut followed = Vec::new();
    for command in listed(&call.stdout) {
        let outcome = follow(world.sluice(), &command, &VALUES).await;
        assert_eq!(outcome.code, Some(0), "{command}: {outcome:?}");
        followed.push((command, outcome));
    }
    assert!(!followed.is_empty(), "{call:?}");
    followed
}

#[tokio::test]
async fn advice_leads_a_refused_run_to_its_answer() {
    let world = World::with(CONFIG).await;
    for (stop, account) in [(None, "spent"), (Some(["freeze", "--account", "cold"]), "cold")] {
        let order = ["run", "--account", account, "q"];
        match stop {
            Some(stop) => assert_eq!(world.sluice().run(&stop).await.code, Some(0)),
            None => assert_eq!(world.sluice().run(&order).await.code, Some(0), "it uses the limit up"),
        }
        follow_all(&world, &order).await;
        let answered = world.sluice().run(&order).await;
        assert_eq!(answered.code, Some(0), "{account}: {answered:?}");
    }
}

#[tokio::test]
async fn advised_credits_let_calls_pass() {
    let world = World::with("[billing]\nfloor = 0\n").await;
    let up = Up::start(world.sluice()).await;
    let taken = follow(world.sluice(), "sluice billing credit --account 'auth0|acct' -5", &[]).await;
    assert_eq!(taken.code, Some(0), "{taken:?}");
    let run = world.run("r1", "auth0|acct").await;
    let status = || async { run.agent.chat("fake").await.status.as_u16() };
    eventually("calls are refused", status, |status| *status == 400).await;
    let shown = world.sluice().run(&["audit", "show", "--last"]).await;
    let commands = listed(&shown.stdout);
    assert!(commands.iter().any(|command| command.ends_with(" CREDITS")), "{shown:?}");
    for command in commands {
        let outcome = follow(world.sluice(), &command, &VALUES).await;
        assert_eq!(outcome.code, Some(0), "{command}: {outcome:?}");
    }
    eventually("calls pass", status, |status| *status == 200).await;
    up.stop(Signal::TERM).await;
}

/// Nothing raises the limit of a run that has ended: the advice is another run.
#[tokio::test]
async fn advice_of_an_ended_run_is_another_run() {
    let world = World::start().await;
    let followed = follow_all(&world, &["run", "--total-tokens", "5", "q"]).await;
    let answered = followed.iter().find(|(command, _)| command.starts_with("sluice run "));
    assert!(answered.is_some_and(|(_, outcome)| !outcome.stdout.is_empty()), "{followed:?}");
}

/// The upstream's own words are where the advice says.
#[tokio::test]
async fn advice_leads_to_what_the_upstream_said() {
    let world = World::start().await;
    let followed = follow_all(&world, &["run", "--model", "fake-status400", "q"]).await;
    let said: String = followed.iter().map(|(_, outcome)| outcome.stdout.as_str()).collect();
    assert!(said.contains("The script wants this status."), "{followed:?}");
}

#[tokio::test]
async fn advice_leads_to_what_the_agent_printed() {
    let world = World::with(&shell_agent("echo trouble >&2; exit 3", "")).await;
    let failed = world.sluice().run(&["run", "--agent", "test:sh", "q"]).await;
    let logs = next_of(&world, &failed).await;
    assert!(logs.code == Some(0) && logs.stderr.contains("trouble"), "{logs:?}");
}

/// A person copies the commands between backquotes into a shell.
#[tokio::test]
async fn doctors_commands_close_what_is_open() {
    let world = World::start().await;
    let config = world.config();
    fs::set_permissions(&config, fs::Permissions::from_mode(0o666)).unwrap();
    let doctor = async || world.sluice().run(&["doctor"]).await.stdout;
    let found = doctor().await;
    assert!(found.contains("broken   private files: "), "control: {found}");
    let commands = quoted(&found, "chmod");
    assert!(!commands.is_empty(), "{found}");
    for command in commands {
        let ended = Command::new("sh").args(["-c", &command]).status().await.unwrap();
        assert!(ended.success(), "{command}");
    }
    let after = doctor().await;
    assert!(!after.contains("private files"), "{after}");
}

/// The fix of a proxy that does not answer starts one.
#[tokio::test]
async fn doctors_command_starts_what_is_down() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let found = world.sluice().run(&["doctor"]).await.stdout;
    let fixes: String = found.lines().filter(|line| line.trim_start().starts_with("fix: ")).collect();
    let commands = quoted(&fixes, "sluice");
    assert_eq!(commands.len(), 1, "{found}");
    let arguments: Vec<_> = commands[0].split(' ').skip(1).collect();
    let up = world.sluice().spawn(&arguments);
    let report = || async { world.sluice().run(&["doctor"]).await };
    let after = eventually("everything is in place", report, |report| report.code == Some(0)).await;
    assert!(after.stdout.contains("ok       worker: executes runs"), "{after:?}");
    harness::sluice::terminate(&up);
    let ended = up.wait_with_output().await.unwrap();
    assert!(ended.status.success(), "{ended:?}");
}
