//! `agents-record FILE PAGE [AGENT… | SCENARIO…]` plays every scenario with every coding agent that ships, writes the record as
//! JSON, and its table into the page. With names it plays these alone, and keeps the other rows of the record. It fails if
//! an outcome is not the expected one.

#![allow(clippy::unwrap_used, reason = "a record that cannot be made has failed, with the place")]

use std::fs;

use bench::measure::machine::Machine;
use harness::coding_agents::{AgentScenario, AgentUpstream, CODING_AGENTS, works_with};
use serde_json::{Value, json};

const BEGIN: &str = "<!-- works-with:begin -->\n";
const END: &str = "<!-- works-with:end -->";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, page, names @ ..] = arguments.as_slice() else {
        panic!("usage: agents-record FILE PAGE [AGENT… | SCENARIO…]")
    };
    let agents = chosen(CODING_AGENTS, names, |agent| agent.name.to_owned());
    let chosen_scenarios = chosen(AgentScenario::ALL, names, |scenario| word(&json!(scenario)));
    let is_known = |name: &String| {
        agents.iter().any(|agent| agent.name == name)
            || chosen_scenarios.iter().any(|scenario| word(&json!(scenario)) == *name)
    };
    assert!(names.iter().all(is_known), "neither an agent nor a scenario: {names:?}");
    let mut scenarios = Vec::new();
    for agent in agents {
        for upstream in AgentUpstream::ALL {
            let world = agent.add(upstream).await;
            for scenario in chosen_scenarios.iter().copied() {
                let played = json!(agent.play(&world, scenario).await);
                #[expect(clippy::print_stderr, reason = "shows the progress of minutes")]
                {
                    eprintln!("{played}");
                }
                scenarios.push(played);
            }
        }
    }
    let record = match names {
        [] => json!({ "command": "make agents-record", "machine": Machine::here(), "scenarios": scenarios }),
        names => renewed(serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap(), names, scenarios),
    };
    fs::write(file, format!("{record:#}\n")).unwrap();
    let text = fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has the marks of the table");
    let (_, after) = rest.split_once(END).expect("the page has the end of the table");
    fs::write(page, format!("{before}{BEGIN}{}{END}{after}", works_with(&record))).unwrap();
}

/// Returns those of `all` that `names` has; all if it has none of them.
fn chosen<T: Copy, const N: usize>(all: [T; N], names: &[String], name: impl Fn(&T) -> String) -> Vec<T> {
    let found: Vec<_> = all.into_iter().filter(|one| names.contains(&name(one))).collect();
    if found.is_empty() { all.to_vec() } else { found }
}

/// Returns `record` with `scenarios` in place of the rows for the same agent, upstream and scenario.
fn renewed(mut record: Value, names: &[String], scenarios: Vec<Value>) -> Value {
    let key = |row: &Value| ["agent", "upstream", "scenario"].map(|member| word(&row[member]));
    let new: Vec<_> = scenarios.iter().map(key).collect();
    let rows = record["scenarios"].as_array_mut().unwrap();
    rows.retain(|row| !new.contains(&key(row)));
    rows.extend(scenarios);
    record["renewed"] = json!({ "names": names, "machine": Machine::here() });
    record
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
