//! Tests that the key goes to the upstream and nowhere else, however loudly the upstream repeats it.

use bench::upstream::ScriptedUpstream;
use harness::{
    CANARY_KEY, KeyRejectingUpstream, World,
    agent::{Answering, body_for},
    files::files,
};
use http::Method;

/// Searched are answers, log, journal and the doctor's report.
#[tokio::test]
async fn a_repeated_key_gets_nowhere() {
    let rejecting = KeyRejectingUpstream::start().await;
    let world = World::in_front_of(ScriptedUpstream::start().await.unwrap(), &rejecting.base_url(), "").await;
    let mut seen = Vec::new();
    let run = world.run("r1", "acct-1").await;
    for path in ["/v1/chat/completions", "/v1/messages"] {
        for answering in [Answering::Whole, Answering::Streamed] {
            let answer = run.agent.post(path, &body_for(path, "gpt-4o", answering)).await;
            seen.push((format!("answer of {path}"), format!("{:?} {}", answer.headers, answer.text())));
        }
    }
    for path in
        ["/v1/health", "/v1/upstream", "/v1/runs", "/v1/runs/r1", "/v1/journal?after=0", "/v1/nothing"]
    {
        let answer = world.control.send(Method::GET, path, String::new()).await;
        seen.push((format!("control's answer of {path}"), format!("{:?} {}", answer.headers, answer.text())));
    }
    for arguments in [&["run", "--json", "Hello?"][..], &["doctor", "--json"], &["audit", "tail"]] {
        let outcome = world.sluice().env("SLUICE_LOG", "trace").run(arguments).await;
        seen.push((format!("output of {arguments:?}"), outcome.stdout + &outcome.stderr));
    }
    seen.extend(files(world.path()).into_iter().filter(|(path, _)| !path.ends_with("/key")));

    // Control: the upstream was shown the key each time, and said it in heads and bodies.
    let said = rejecting.answers().await;
    // Four calls, two looks by control and doctor, and the agent's own.
    assert!(said.len() > 6, "{said:?}");
    assert!(said.iter().all(|answer| answer.matches(CANARY_KEY).count() == 3), "{said:?}");
    for (place, text) in &seen {
        assert!(!text.contains(CANARY_KEY), "the key is in the {place}: {text}");
    }
    let log = seen.iter().find(|(path, _)| path.ends_with("proxy.log")).unwrap();
    assert!(log.1.contains("DEBUG"), "the log was looked at: {log:?}");
    let journals = seen.iter().filter(|(path, text)| path.ends_with(".ndjson") && text.contains("acct-1"));
    assert_eq!(journals.count(), 1, "the journal was looked at");
}
