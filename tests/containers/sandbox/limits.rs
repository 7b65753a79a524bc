//! Tests the resources a sandbox may use, and what happens when it wants more.

use harness::{Outcome, World};
use serde_json::{Value, json};

use super::{run, shell_agent};

async fn limited(script: &str, settings: &str) -> (Outcome, Value) {
    let world = World::with(&shell_agent(script, settings)).await;
    let outcome = run(&world).await;
    world.assert_nothing_left().await;
    let result = outcome.result();
    (outcome, result)
}

#[tokio::test]
async fn a_slow_run_is_killed_even_if_it_ignores_that() {
    for script in ["sleep 60", "trap '' TERM INT; while true; do sleep 1; done"] {
        let (outcome, result) = limited(script, "run_timeout = '3s'").await;
        assert_eq!(
            (outcome.code, &result["error"]["code"], &result["killed_by"]),
            (Some(124), &json!("timeout"), &json!("timeout"))
        );
        let took = result["duration_ms"].as_u64().unwrap();
        assert!((3000..30_000).contains(&took), "{script}: ended after {took} ms");
    }
}

/// Script that fills a hundred million bytes.
const HOG: &str = r#"perl -e 'my $memory = "x" x 100_000_000; print "it fits\n"'"#;

#[tokio::test]
async fn a_run_that_needs_too_much_memory_is_told_so() {
    let (outcome, result) = limited(&format!("exec {HOG}"), "memory = '64 MiB'").await;
    assert_eq!(
        (outcome.code, &result["error"]["code"], &result["oom_seen"], &result["exit_code"]),
        (Some(137), &json!("oom_killed"), &json!(true), &json!(137)),
        "{result}"
    );
    assert_eq!(result["error"]["message"], "needed more than 64 MiB of memory");
    // Control: with enough of it, it is not a failure.
    let (outcome, result) = limited(&format!("exec {HOG}"), "memory = '512 MiB'").await;
    assert_eq!((outcome.code, &result["oom_seen"]), (Some(0), &json!(false)), "{result}");
    assert_eq!(result["text"], "it fits");
}

#[tokio::test]
async fn an_agent_may_survive_an_out_of_memory_kill() {
    let (outcome, result) = limited(&format!("{HOG}; echo survived"), "memory = '64 MiB'").await;
    assert_eq!(
        (outcome.code, &result["oom_seen"], &result["exit_code"], &result["error"]),
        (Some(0), &json!(true), &json!(0), &Value::Null),
        "{result}"
    );
    assert_eq!(result["text"], "survived");
}

/// Script that starts processes up to the limit, and prints how many there were.
const CROWD: &str = r#"exec perl -e 'my $n = 0; while (defined(my $pid = fork)) { if (!$pid) { sleep 60 } $n++ } print "$n $!\n"'"#;

#[tokio::test]
async fn processes_are_limited_to_the_agents_number() {
    for limit in [64, 128] {
        let (outcome, result) = limited(CROWD, &format!("pids = {limit}")).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let (count, error) = result["text"].as_str().unwrap().split_once(' ').unwrap();
        // Init, the bridge and the agent itself are counted too.
        let count: u32 = count.parse().unwrap();
        assert!((limit / 2..limit).contains(&count), "{count} processes with a limit of {limit}");
        assert_eq!(error, "Resource temporarily unavailable");
    }
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_sandbox() {
    let world =
        World::with(&shell_agent("exec perl -e 'fork while 1'", "pids = 64\nrun_timeout = '4s'")).await;
    let bomb = run(&world);
    let host = async {
        // The host goes on: another run on it has all it needs.
        let other = World::start().await;
        other.sluice().run(&["run", "Hello?"]).await
    };
    let (bomb, host) = tokio::join!(bomb, host);
    assert_eq!((bomb.code, host.code), (Some(124), Some(0)), "{bomb:?} {host:?}");
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn long_output_keeps_head_and_tail_per_stream() {
    let script = "echo BEGIN; head -c 10M /dev/zero | tr '\\0' +; echo END; \
                  (echo begin; head -c 10M /dev/zero | tr '\\0' -; echo end) >&2";
    let (_, result) = limited(script, "").await;
    let limit = 2 << 20;
    for (stream, begin, end, sent, filler) in
        [("stdout", "BEGIN", "END", (10 << 20) + 10, '-'), ("stderr", "begin", "end", (10 << 20) + 10, '+')]
    {
        let text = result[stream]["text"].as_str().unwrap();
        assert!(text.starts_with(begin) && text.trim_end().ends_with(end), "{stream}");
        assert_eq!(result[stream]["cut_bytes"], json!(sent - limit));
        assert!(text.contains(&format!("[… {} bytes cut …]", sent - limit)), "{stream}");
        assert!(!text.contains(filler), "{stream} holds the other's bytes");
    }
}

#[tokio::test]
async fn endless_output_is_stopped_in_time() {
    let (outcome, result) =
        limited("yes | tee /dev/stderr", "run_timeout = '2s'\noutput_capture_limit = '64 KiB'").await;
    assert_eq!((outcome.code, &result["error"]["code"]), (Some(124), &json!("timeout")));
    let took = result["duration_ms"].as_u64().unwrap();
    // Docker first writes its buffers, half a million lines.
    assert!(took < 50_000, "ended after {took} ms");
    assert!(result["stdout"]["cut_bytes"].as_u64().unwrap() > 1 << 20, "{}", result["stdout"]["cut_bytes"]);
    assert!(result["stdout"]["text"].as_str().unwrap().len() < 66 << 10);
}
