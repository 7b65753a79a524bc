//! Plans the runs of a play: their calls, and the moments at which they are cancelled.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::ScriptedUsage;
use crate::{
    agent::{Answering, saying},
    models::Models,
    random::Random,
    shell_agents::toml_argument,
};

const PATHS: [&str; 2] = ["/v1/chat/completions", "/v1/messages"];
/// Longest that a client stays which does not leave early, in milliseconds.
const STAYS_MS: usize = 30_000;

/// Most tokens of an answer that is as long as those of real models.
const MAX_OUTPUT: u32 = 1000;

/// Agent that makes the calls of its conversation, one after another, and repeats those that find no upstream.
const CALLS: &str = r#"call() {
  curl --silent --output /dev/null --write-out '%{http_code}' --max-time "$1" "http://localhost:8080$2" --json "$3"
}
jq -r '.[-1].content | fromjson | .[] | [.seconds, .path, (.body | tojson)] | join(" ")' /workspace/.cogni/messages.json |
while read -r seconds path body; do
  for _ in {1..120}; do [[ $(call "$seconds" "$path" "$body") =~ ^50[23]$ ]] || break; sleep 1; done
done; echo done"#;

/// A planned run.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) agent: &'static str,
    pub(super) model: &'static str,
    /// Text of its conversation.
    pub(super) prompt: String,
    /// Time after its order at which it is cancelled.
    pub(super) cancelled: Option<Duration>,
}

/// A call of the agent that makes the calls of its conversation.
#[derive(Debug, Serialize)]
struct PlannedCall {
    path: &'static str,
    body: Value,
    /// Time after which the client leaves.
    seconds: f64,
}

impl Plan {
    /// Returns a run with `calls` calls.
    pub(super) fn of(random: &mut Random, calls: usize, usage: ScriptedUsage) -> Self {
        let cancelled = (random.below(12) == 0).then(|| millis(500 + random.below(2500)));
        if random.below(25) == 0 {
            return Self { agent: "sandbox:openclaw", model: "fake-steps", prompt: tool_loop(), cancelled };
        }
        let calls: Vec<_> = (0..calls).map(|_| planned_call(random, usage)).collect();
        Self { agent: "chaos:calls", model: "fake", prompt: json!(calls).to_string(), cancelled }
    }
}

/// Returns the registry's entries of all agents.
pub(super) fn registry() -> String {
    format!(
        "[agents.'chaos:calls']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['bash', '-c', {}]\n\
         protocol = 'text'\nrun_timeout = '5min'\n\
         [agents.'sandbox:openclaw']\nargv = ['node', '/agent/run.mjs']\nname = 'OpenClaw'\n\
         image = 'sluicegate/sandbox-openclaw:latest'\nmemory = '2GiB'\nrun_timeout = '3min'\n",
        toml_argument(CALLS)
    )
}

/// Returns a conversation in which OpenClaw calls tools.
fn tool_loop() -> String {
    let exec = |command: &str| format!("call: exec {}\n", json!({ "command": command }));
    format!("Please:\n{}{}say: done", exec("date"), exec("ls /workspace"))
}

fn planned_call(random: &mut Random, usage: ScriptedUsage) -> PlannedCall {
    let path = PATHS[random.below(PATHS.len())];
    let models = Models::ALL[random.below(Models::ALL.len())];
    let answering = if random.below(3) == 0 { Answering::Whole } else { Answering::Streamed };
    let figures = match random.below(12) {
        _ if usage == ScriptedUsage::OfTexts => String::new(),
        0 => "-nousage".to_owned(),
        1 | 2 => String::new(),
        _ => format!("-usage{}x{}", 1 + random.below(1000), 1 + random.below(2000)),
    };
    // As long, and as fast, as the answers of real models.
    let (words, leaves_ms) = match usage {
        ScriptedUsage::Random => (random.below(40).to_string(), 600),
        ScriptedUsage::OfTexts => (format!("{}-gap20ms", 100 + random.below(200)), 3000),
    };
    let (fate, stays_ms) = match random.below(16) {
        0 => (format!("-cut{}", random.below(5)), STAYS_MS),
        1 => (format!("-errmid{}", 1 + random.below(4)), STAYS_MS),
        2 => ("-status500".to_owned(), STAYS_MS),
        3 => ("-firstbyte600ms".to_owned(), 100 + random.below(400)),
        4 if usage == ScriptedUsage::OfTexts => (String::new(), 200 + random.below(leaves_ms)),
        4 => ("-gap40ms".to_owned(), 200 + random.below(leaves_ms)),
        _ => (String::new(), STAYS_MS),
    };
    let script = format!("fake-words{words}{figures}{fate}");
    let name = models.name(path, &script).expect("each kind has a model there");
    let mut body = saying(path, &name, answering, &models.text(&script, "Tell me."));
    if usage == ScriptedUsage::OfTexts {
        body["max_tokens"] = json!(MAX_OUTPUT);
    }
    PlannedCall { path, body, seconds: millis(stays_ms).as_secs_f64() }
}

fn millis(count: usize) -> Duration {
    Duration::from_millis(count as u64)
}
