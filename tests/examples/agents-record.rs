//! `agents-record FILE PAGE [AGENT…]` plays every scenario with every coding agent that ships, writes the record as JSON, and
//! its table into the page. It fails if an outcome is not the expected one.

#![allow(clippy::unwrap_used, reason = "a record that cannot be made has failed, with the place")]

use std::fs;

use bench::measure::machine::Machine;
use harness::coding_agents::{AgentScenario, AgentUpstream, CODING_AGENTS, works_with};
use serde_json::json;

const BEGIN: &str = "<!-- works-with:begin -->\n";
const END: &str = "<!-- works-with:end -->";

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [file, page, names @ ..] = arguments.as_slice() else {
        panic!("usage: agents-record FILE PAGE [AGENT…]")
    };
    let mut scenarios = Vec::new();
    let is_chosen = |name: &str| names.is_empty() || names.iter().any(|chosen| chosen == name);
    for agent in CODING_AGENTS.into_iter().filter(|agent| is_chosen(agent.name)) {
        for upstream in AgentUpstream::ALL {
            let world = agent.add(upstream).await;
            for scenario in AgentScenario::ALL {
                let played = agent.play(&world, scenario).await;
                #[expect(clippy::print_stderr, reason = "shows the progress of minutes")]
                {
                    eprintln!("{}", json!(played));
                }
                scenarios.push(played);
            }
        }
    }
    let record =
        json!({ "command": "make agents-record", "machine": Machine::here(), "scenarios": scenarios });
    fs::write(file, format!("{record:#}\n")).unwrap();
    let text = fs::read_to_string(page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has the marks of the table");
    let (_, after) = rest.split_once(END).expect("the page has the end of the table");
    fs::write(page, format!("{before}{BEGIN}{}{END}{after}", works_with(&record))).unwrap();
}
