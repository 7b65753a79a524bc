//! Tests what a proxy leaves that dies between any two writes of a turn's commit.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use harness::{
    Raw, Run, World,
    agent::{Answering, Wire, chat_body},
    write_fault::{FatalMoment, WriteFault},
};
use platform_core::record::Outcome;
use serde_json::Value;
use tokio::io::AsyncReadExt;

use super::crash::{CHAT, assert_told_once, id, seen};

/// Numbers of calls that arrive in one turn of the event loop.
const BATCHES: [usize; 3] = [1, 4, 12];
/// Writes of a batch at which the proxy dies: its marks, its lines, and those of later turns.
const WRITES: usize = 3;

/// Lets `calls` calls arrive at a proxy that stands still, so that one turn has them all, and waits for their ends.
/// Returns the ids of whole answers.
async fn call_at_once(world: &World, run: &Run, calls: usize) -> Vec<String> {
    world.hold_proxy().await;
    let call = Raw::post(CHAT, &chat_body("fake", Answering::Whole)).header("connection", "close");
    let wires = join_all((0..calls).map(|_| call.begin(&run.agent))).await;
    // All calls wait in the socket.
    world.signal_proxy(rustix::process::Signal::CONT);
    join_all(wires.into_iter().map(whole_answer)).await.into_iter().flatten().collect()
}

/// Reads a connection to its end, and returns the id of its call if the answer is whole.
async fn whole_answer(mut wire: Box<dyn Wire>) -> Option<String> {
    let mut answer = String::new();
    wire.read_to_string(&mut answer).await.ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    serde_json::from_str::<Value>(body).ok()?;
    let id = head.lines().find_map(|line| line.strip_prefix("x-litellm-call-id: "));
    Some(id.unwrap_or_else(|| panic!("{answer}")).to_owned())
}

#[tokio::test]
async fn a_death_between_two_writes_loses_no_call() {
    let mut world = World::start().await;
    let fault = WriteFault::new(world.path());
    let mut killed = 0;
    let mut answered = Vec::new();
    for calls in BATCHES {
        for number in 1..=WRITES {
            for moment in [FatalMoment::Before, FatalMoment::Middle, FatalMoment::After] {
                world.kill_proxy().await;
                world.start_proxy_with(&fault.variables()).await;
                let run = world.run(&format!("r{calls}-{number}-{}", moment as usize), "acct-1").await;
                fault.arm(number, moment);
                answered.extend(call_at_once(&world, &run, calls).await);
                killed += usize::from(world.control.health().await.is_err());
                fault.disarm();
            }
        }
    }
    world.kill_proxy().await;
    world.start_proxy().await;
    let lines = world.journal().await;
    assert_told_once(&world, &lines);
    let outcomes: BTreeMap<_, _> = lines.iter().map(|line| (id(line), line.record.outcome)).collect();
    for id in &answered {
        assert_eq!(outcomes.get(id), Some(&Outcome::Complete), "{id} was answered");
    }
    // Marks and lines are the first two writes; single calls have no third.
    assert!(killed >= BATCHES.len() * 2 * 3, "{killed}");
    assert!(!answered.is_empty() && !seen(&world).is_empty());
}

/// The control: calls that go upstream before their marks are written are lost.
#[tokio::test]
async fn a_call_that_is_sent_unmarked_is_lost() {
    let mut world = World::start().await;
    let fault = WriteFault::new(world.path());
    world.kill_proxy().await;
    world.start_proxy_with(&fault.variables()).await;
    let run = world.run("r1", "acct-1").await;
    fault.arm(1, FatalMoment::Unmarked);
    call_at_once(&world, &run, 4).await;
    fault.disarm();
    world.kill_proxy().await;
    world.start_proxy().await;
    assert!(!seen(&world).is_empty());
    assert_eq!(world.journal().await.len(), 0);
}
