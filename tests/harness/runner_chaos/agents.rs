//! Defines the scripts of the runs in a play, and the end that each run must have.

use platform_core::event::RunErrorCode;
use runner_store::RunRecord;
use serde_json::json;

/// Behaviour of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Script {
    /// Calls the model, again if no answer comes.
    Asks,
    /// Calls the model, which takes long to answer.
    AsksLong,
    Sleeps,
    /// Prints more than any pipe holds.
    Prints,
    /// Continues until its run times out, and ignores `TERM`.
    Hangs,
    /// Continues until its run is cancelled.
    Waits,
}

impl Script {
    pub(super) const ALL: [Self; 6] =
        [Self::Asks, Self::AsksLong, Self::Sleeps, Self::Prints, Self::Hangs, Self::Waits];

    /// Returns its agent's id.
    pub(super) const fn agent(self) -> &'static str {
        match self {
            Self::Asks => "chaos:asks",
            Self::AsksLong => "chaos:asks-long",
            Self::Sleeps => "chaos:sleeps",
            Self::Prints => "chaos:prints",
            Self::Hangs => "chaos:hangs",
            Self::Waits => "chaos:waits",
        }
    }

    fn shell(self) -> String {
        match self {
            Self::Asks => call_until_answered("fake-words5"),
            Self::AsksLong => call_until_answered("fake-words5-firstbyte1500ms"),
            Self::Sleeps => "sleep 2; echo slept".to_owned(),
            Self::Prints => {
                "seq 1 9000 | xargs -n 1000; sleep 1; seq 9001 18000 | xargs -n 1000; echo end".to_owned()
            }
            Self::Hangs => "trap '' TERM; while :; do sleep 1; done".to_owned(),
            Self::Waits => "echo begun; sleep 100".to_owned(),
        }
    }

    /// Returns the registry's entries of all scripts.
    pub(super) fn registry() -> String {
        let entry = |script: Self| {
            let runtime = if script == Self::Hangs { "4s" } else { "2min" };
            format!(
                "[agents.'{}']\nimage = 'sluicegate/sandbox-runtime:latest'\nargv = ['bash', '-c', {}]\nprotocol = 'text'\nrun_timeout = '{runtime}'\ndisk = '64 MiB'\n",
                script.agent(),
                // A JSON string is a TOML string; the configuration needs doubled braces.
                json!(script.shell().replace('{', "{{").replace('}', "}}"))
            )
        };
        Self::ALL.map(entry).concat()
    }

    /// Returns the expected end: its state, and its answer if there is one.
    fn expected_end(self) -> (&'static str, Option<String>) {
        let answer = match self {
            Self::Asks | Self::AsksLong => "Hello from the scripted upstream,\ndone".to_owned(),
            Self::Sleeps => "slept".to_owned(),
            Self::Prints => (0..18).map(numbers).collect::<String>() + "end",
            Self::Hangs => return ("timed_out", None),
            Self::Waits => return ("cancelled", None),
        };
        ("succeeded", Some(answer))
    }

    /// Returns how `record` differs from the expected end, if it does.
    pub(super) fn differs(self, record: &RunRecord) -> Option<String> {
        let (state, answer) = self.expected_end();
        if (record.run.state.name(), &record.answer) == (state, &answer) {
            return None;
        }
        let actual = record.answer.as_ref().map(|text| {
            let end: Vec<_> = text.chars().rev().take(40).collect();
            (text.len(), end.into_iter().rev().collect::<String>())
        });
        Some(format!("{self:?}, and not {state}: {actual:?} {:?}", record.run))
    }
}

/// Returns whether the record is of a run with a killed sandbox. If its last call was interrupted by a kill of the
/// proxy, the run names that.
pub(super) fn is_sandbox_killed(record: &RunRecord) -> bool {
    let code = record.run.error.as_ref().map(|failure| failure.code);
    match code {
        Some(RunErrorCode::ContainerFailed) => true,
        Some(RunErrorCode::ModelUnavailable) => record.run.exit_code == Some(KILLED),
        _ => false,
    }
}

/// Exit code of a process that SIGKILL ended, as Docker writes it.
const KILLED: i64 = 137;

/// Returns a line of numbers, short enough that Docker's log does not split it.
fn numbers(thousand: u32) -> String {
    let numbers = (1..=1000).map(|number| (thousand * 1000 + number).to_string());
    numbers.collect::<Vec<_>>().join(" ") + "\n"
}

fn call_until_answered(model: &str) -> String {
    let body = json!({ "model": model, "messages": [{ "role": "user", "content": "hello" }] });
    format!(
        "until said=$(curl -s -m 30 -H 'content-type: application/json' -d '{body}' \
         \"$OPENAI_API_BASE/v1/chat/completions\" | jq -er '.choices[0].message.content // empty' 2>/dev/null) \
         && [ -n \"$said\" ]; do sleep 0.2; done; echo \"$said\"; echo done"
    )
}
