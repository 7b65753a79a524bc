//! What a sandbox may use, and what happens when it wants more.

use std::time::Instant;

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
async fn a_run_that_is_too_slow_is_killed_also_if_it_will_not_listen() {
    for script in ["sleep 60", "trap '' TERM INT; while true; do sleep 1; done"] {
        let began = Instant::now();
        let (outcome, result) = limited(script, "runtime = '1s'").await;
        assert_eq!(
            (outcome.code, &result["error"]["code"], &result["killed_by"]),
            (Some(124), &json!("timeout"), &json!("timeout"))
        );
        assert!(began.elapsed().as_secs() < 10, "ended {:?} after its start", began.elapsed());
    }
}

#[tokio::test]
async fn a_run_that_needs_too_much_memory_is_told_so() {
    let hog = "node -e 'const a=[]; while (true) a.push(Buffer.alloc(8 << 20, 1))'";
    let (outcome, result) = limited(&format!("exec {hog}"), "memory = '64 MiB'").await;
    assert_eq!(
        (outcome.code, &result["error"]["code"], &result["oom_seen"]),
        (Some(137), &json!("oom_killed"), &json!(true)),
        "{result}"
    );
    assert_eq!(result["error"]["message"], "needed more than 64 MiB of memory");

    let (outcome, result) = limited(&format!("{hog}; echo survived; exit 0"), "memory = '64 MiB'").await;
    assert_eq!(
        (outcome.code, &result["oom_seen"], &result["exit_code"]),
        (Some(0), &json!(true), &json!(0)),
        "{result}"
    );
    assert_eq!(result["text"], "survived");
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_sandbox() {
    let bomb = "bomb() { bomb | bomb & }; bomb; sleep 2; ls -d /proc/[0-9]* | wc -l";
    let (_, result) = limited(bomb, "pids = 64\nruntime = '5s'").await;
    let seen = result["stdout"]["text"].as_str().unwrap().trim().parse::<u32>().unwrap_or(0);
    assert!(seen <= 64 + 2, "{seen} processes lived: {result}");
    let free = std::fs::read_to_string("/proc/loadavg").unwrap();
    assert!(!free.is_empty(), "the host goes on");
}

#[tokio::test]
async fn of_too_much_output_beginning_and_end_are_kept_and_the_streams_stay_apart() {
    let script = "echo BEGIN; head -c 5000000 /dev/zero | tr '\\0' +; echo END; \
                  (echo begin; head -c 3000000 /dev/zero | tr '\\0' -; echo end) >&2";
    let (_, result) = limited(script, "").await;
    let limit = 2 << 20;
    for (stream, begin, end, sent, filler) in
        [("stdout", "BEGIN", "END", 5_000_010, '-'), ("stderr", "begin", "end", 3_000_010, '+')]
    {
        let text = result[stream]["text"].as_str().unwrap();
        assert!(text.starts_with(begin) && text.trim_end().ends_with(end), "{stream}");
        assert_eq!(result[stream]["cut_bytes"], json!(sent - limit));
        assert!(text.contains(&format!("[… {} bytes cut …]", sent - limit)), "{stream}");
        assert!(!text.contains(filler), "{stream} holds the other's bytes");
    }
}
