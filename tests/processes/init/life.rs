//! Tests starting, signalling and ending an agent.

use std::{fs, path::Path};

use harness::init::{line, outcome, run_init, sandbox_init, signal};
use rustix::process::{Pid, Signal, kill_process};

#[tokio::test]
async fn the_agents_exit_code_is_its_own() {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
        ("kill -SEGV $$", 139),
        // An orphan's end is not the agent's.
        ("(exit 5) & (sleep 0.05; exit 6) & sleep 0.2; exit 4", 4),
    ] {
        let ended = run_init(&["bash", "-c", script]).await;
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(code), ""), "{script}");
    }
}

#[tokio::test]
async fn arguments_are_a_list_that_nothing_interprets() {
    let words = ["printf", "<%s>", "a b", "", "$(id)", "*", "'\"\\\n"];
    assert_eq!(run_init(&words).await.stdout, "<a b><><$(id)><*><'\"\\\n>");
}

#[tokio::test]
async fn exec_failures_are_reported_as_by_shells() {
    let dir = tempfile::tempdir().unwrap();
    let plain = dir.path().join("plain");
    fs::write(&plain, "not a program").unwrap();
    for (program, code, reason) in [
        ("no-such-program", 127, "No such file or directory"),
        ("/no/such/program", 127, "No such file or directory"),
        (plain.to_str().unwrap(), 126, "Permission denied"),
        ("/", 126, "Permission denied"),
    ] {
        let ended = run_init(&[program]).await;
        let told = format!("sandbox-init: cannot execute {program}: {reason}");
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(ended.stderr.starts_with(&told) && ended.stderr.lines().count() == 1, "{ended:?}");
    }
    let ended = run_init(&[]).await;
    assert_eq!(ended.code, Some(64));
    assert_eq!(ended.stderr, "sandbox-init: no command: pass the program to run and its arguments\n");
}

/// Script that prints each signal that it receives, and ends with the first SIGTERM.
const LISTENER: &str = "for name in INT HUP QUIT USR1 USR2 WINCH; do trap \"echo $name\" $name; done
    trap 'echo TERM; exit 7' TERM; echo up; while :; do sleep 0.01; done";

#[tokio::test]
async fn signals_are_passed_on_to_the_agent() {
    let mut init = sandbox_init(&["bash", "-c", LISTENER]).spawn().unwrap();
    assert_eq!(line(&mut init).await, "up\n");
    for (kind, name) in [
        (Signal::INT, "INT\n"),
        (Signal::HUP, "HUP\n"),
        (Signal::QUIT, "QUIT\n"),
        (Signal::USR1, "USR1\n"),
        (Signal::USR2, "USR2\n"),
        (Signal::WINCH, "WINCH\n"),
        (Signal::TERM, "TERM\n"),
    ] {
        signal(&init, kind);
        assert_eq!(line(&mut init).await, name);
    }
    assert_eq!(outcome(init).await.code, Some(7));
    // Control: an agent that does not listen dies of it.
    let mut init = sandbox_init(&["bash", "-c", "echo up; exec sleep 60"]).spawn().unwrap();
    line(&mut init).await;
    signal(&init, Signal::TERM);
    assert_eq!(outcome(init).await.code, Some(143));
}

#[tokio::test]
async fn a_signal_reaches_all_processes_of_the_agent() {
    let script = "trap 'echo agent' USR1; bash -c 'trap \"echo child\" USR1; echo up; while :; do sleep 0.01; done' & \
                  while :; do sleep 0.01; done";
    let mut init = sandbox_init(&["bash", "-c", script]).spawn().unwrap();
    assert_eq!(line(&mut init).await, "up\n");
    signal(&init, Signal::USR1);
    let mut heard = [line(&mut init).await, line(&mut init).await];
    heard.sort();
    assert_eq!(heard, ["agent\n", "child\n"]);
    signal(&init, Signal::TERM);
    assert_eq!(outcome(init).await.code, Some(143));
}

#[tokio::test]
async fn leftover_processes_are_terminated_then_killed() {
    let dir = tempfile::tempdir().unwrap();
    let leaves = "(trap 'touch asked; exit' TERM; touch up1; while :; do sleep 0.01; done) &
        (trap '' TERM; touch up2; while :; do sleep 0.01; done) &
        setsid bash -c 'trap \"\" TERM; (touch up3; sleep 60)' & disown -a
        until [ -e up1 ] && [ -e up2 ] && [ -e up3 ]; do sleep 0.01; done; exit 9";
    let mut init = sandbox_init(&["bash", "-c", leaves]);
    let ended = outcome(init.current_dir(dir.path()).spawn().unwrap()).await;
    assert_eq!(ended.code, Some(9), "{ended:?}");
    assert!(dir.path().join("asked").exists(), "who listens to SIGTERM can tidy up");
    assert_eq!(working_in(dir.path()), Vec::<i32>::new(), "nobody is left");

    // Control: a shell in its place leaves them.
    fs::remove_file(dir.path().join("up3")).unwrap();
    let script = "setsid bash -c 'trap \"\" TERM; touch up3; sleep 60' >&- 2>&- & until [ -e up3 ]; do sleep 0.01; done";
    let mut shell = tokio::process::Command::new("bash");
    shell.args(["-c", script]).current_dir(dir.path()).stdout(std::process::Stdio::null());
    assert!(shell.status().await.unwrap().success());
    let left = working_in(dir.path());
    assert!(!left.is_empty());
    for pid in left.into_iter().filter_map(Pid::from_raw) {
        kill_process(pid, Signal::KILL).ok();
    }
}

/// Returns the processes that work in `dir`.
fn working_in(dir: &Path) -> Vec<i32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let inside = pids.filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == dir));
    inside.filter_map(|entry| entry.file_name().to_string_lossy().parse().ok()).collect()
}
