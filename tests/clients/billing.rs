//! Tests that every session of a real gateway is billed to its account, with the real OpenClaw and the real LiteLLM.
//! Only the models are scripted.

use std::time::Duration;

use futures_util::future::join_all;
use harness::{
    eventually::eventually_within,
    openclaw::Setup,
    sessions::{Sessions, answer},
};
use serde_json::json;

use crate::replays;

const PATIENCE: Duration = Duration::from_secs(60);
/// Longest conversation in bytes; a longer one is shortened before the next turn.
const MAX_CONVERSATION: usize = 16 << 10;

/// Work of a session in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    /// The session uses tools.
    Tools,
    /// The session uses tools, in a conversation that has to be shortened first.
    InALongConversation,
    /// A sub-agent uses the tools.
    BySubAgent,
}

/// A run, its account, and the text that occurs only in its conversation.
struct Session {
    run: String,
    account: String,
    mark: String,
    work: Work,
}

impl Session {
    fn number(n: usize) -> Self {
        let work = match n {
            0 => Work::InALongConversation,
            1 => Work::BySubAgent,
            _ => Work::Tools,
        };
        // Each mark has another length, so that no two sessions have calls of the same size.
        let mark = format!("-of-s{n}{}.", "x".repeat(16 * n));
        Self { run: format!("r{n}"), account: format!("acct-{}", n % 4), mark, work }
    }

    fn message(&self) -> String {
        let mark = &self.mark;
        let twice = format!(
            "Do this:\ncall: exec {{\"command\":\"echo one{mark}; sleep 0.3\"}}\ncall: exec {{\"command\":\"echo two{mark}\"}}\n\
             say: done{mark}"
        );
        match self.work {
            Work::Tools | Work::InALongConversation => twice,
            Work::BySubAgent => {
                // The gateway offers its models three tools, which find and call the others.
                let spawn = json!({ "id": "sessions_spawn", "args": { "task": twice } });
                format!("Have this done:\ncall: tool_call {spawn}\nsay: done{mark}")
            }
        }
    }

    /// Returns the expected number of model calls: one for each tool and one for the answer; one for the summary; those
    /// of a sub-agent, and the one in which its result is reported.
    const fn calls(&self) -> usize {
        match self.work {
            Work::Tools => 3,
            Work::InALongConversation => 4,
            Work::BySubAgent => 6,
        }
    }
}

#[tokio::test]
async fn eight_sessions_are_billed_to_their_accounts() {
    let world = Sessions::of(&["fake-steps"], |setup| Setup {
        conversation: Some(MAX_CONVERSATION),
        tools: ["exec", "read", "sessions_spawn"].map(str::to_owned).to_vec(),
        ..setup
    })
    .await;
    let sessions: Vec<_> = (0..8).map(Session::number).collect();
    let long = &sessions[0];
    let before = format!("Do this:\ncall: exec {{\"command\":\"seq 1 5000; echo {}\"}}", long.mark);
    let talk = ["--state-key", "talk"];
    let first = world.run(("before", &long.account), &talk, &before).await;
    assert_eq!(first.code, Some(0), "{first:?}");
    let at_once = sessions.iter().map(async |session| {
        let more: &[&str] = if session.work == Work::InALongConversation { &talk } else { &[] };
        world.run((&session.run, &session.account), more, &session.message()).await
    });
    let outcomes = join_all(at_once).await;
    for (session, outcome) in sessions.iter().zip(&outcomes) {
        assert_eq!(outcome.code, Some(0), "{outcome:?}\n{}", world.gateway.log());
        let (said, mark) = (answer(outcome), &session.mark);
        assert!(said.contains(&format!("done{mark}")), "{}: {said}", session.run);
        for other in sessions.iter().filter(|other| other.mark != *mark) {
            assert!(!outcome.stdout.contains(&other.mark), "{}: {outcome:?}", session.run);
        }
    }
    are_billed(&world, &sessions).await;
    replays::get_nothing(&world).await;
    is_billed_what_is_journaled(&world).await;
    world.gateway.stop().await;
}

/// Checks that the models' calls of each conversation match the journal and LiteLLM's bills: call by call, account by
/// account.
async fn are_billed(world: &Sessions, sessions: &[Session]) {
    let journal = world.journaled().await;
    let marks: Vec<_> = sessions.iter().map(|session| session.mark.as_str()).collect();
    let received = world.calls_by_mark(&marks);
    let mut runs = 0;
    for session in sessions {
        let calls =
            |run: &str| journal.get(&(session.account.clone(), run.to_owned())).cloned().unwrap_or_default();
        let own = calls(&session.run);
        assert_eq!(own.len(), session.calls(), "{}: {journal:?}", session.run);
        let before = if session.work == Work::InALongConversation { calls("before") } else { vec![] };
        runs += 1 + usize::from(!before.is_empty());
        let mut both = [own, before].concat();
        both.sort_unstable();
        assert_eq!(received[session.mark.as_str()], both, "{}", session.run);
    }
    assert_eq!(journal.len(), runs, "{journal:?}");
    is_billed_what_is_journaled(world).await;
}

async fn is_billed_what_is_journaled(world: &Sessions) {
    let journal = world.journaled().await;
    let billed = || async { world.billed() };
    let bills = eventually_within(PATIENCE, "LiteLLM has all", billed, |bills| *bills == journal).await;
    assert_eq!(bills, journal);
}
