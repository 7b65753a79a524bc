//! `sluice audit tail`: the journal as a stream that other programs read.

use harness::{Outcome, World, eventually::PATIENCE};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    time::timeout,
};

/// Starts a world in which `r1`, `r2` and `r1` again have made a call each.
async fn world_with_calls() -> World {
    let world = World::start().await;
    let (first, second) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    for agent in [&first.agent, &second.agent, &first.agent] {
        assert_eq!(agent.chat("fake").await.status, 200);
    }
    world.records(3).await;
    world
}

fn runs(outcome: &Outcome) -> Vec<String> {
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{outcome:?}");
    outcome.events().iter().map(|line| line["run_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn tail_prints_journal_lines_unchanged() {
    let world = world_with_calls().await;
    let outcome = world.sluice().run(&["audit", "tail"]).await;
    assert_eq!(runs(&outcome), ["r1", "r2", "r1"]);
    assert_eq!(outcome.stdout, std::fs::read_to_string(world.journal_file()).unwrap());
}

#[tokio::test]
async fn one_run_can_be_picked_out() {
    let world = world_with_calls().await;
    assert_eq!(runs(&world.sluice().run(&["audit", "tail", "--run", "r1"]).await), ["r1", "r1"]);
    assert_eq!(runs(&world.sluice().run(&["audit", "tail", "--run", "r3"]).await), [""; 0]);
    let outcome = world.sluice().run(&["audit", "tail", "--run", "Not A Run"]).await;
    assert_eq!(outcome.code, Some(2), "{outcome:?}");
}

#[tokio::test]
async fn tail_filters_by_account_outcome_and_refusal() {
    let world = world_with_calls().await;
    let run = world.run("r3", "acct-2").await;
    assert_eq!(run.agent.post("/v1/nothing", &serde_json::json!({})).await.status, 404);
    world.records(4).await;
    let picked =
        async |arguments: &[&str]| runs(&world.sluice().run(&[&["audit", "tail"], arguments].concat()).await);
    assert_eq!(picked(&["--account", "acct-2"]).await, ["r2", "r3"]);
    assert_eq!(picked(&["--account", "acct-2", "--outcome", "complete"]).await, ["r2"]);
    assert_eq!(picked(&["--refusal", "route_unknown"]).await, ["r3"]);
    assert_eq!(picked(&["--refusal", "frozen"]).await, [""; 0]);
    let outcome = world.sluice().run(&["audit", "tail", "--outcome", "nonsense"]).await;
    assert!(outcome.code == Some(2) && outcome.stderr.contains("complete"), "{outcome:?}");
}

#[tokio::test]
async fn the_last_lines_are_those_of_what_was_picked() {
    let world = world_with_calls().await;
    let seqs =
        |outcome: &Outcome| -> Vec<_> { outcome.events().iter().map(|line| line["seq"].clone()).collect() };
    let tail =
        async |arguments: &[&str]| seqs(&world.sluice().run(&[&["audit", "tail"], arguments].concat()).await);
    assert_eq!(tail(&["-n", "2"]).await, [2, 3]);
    assert_eq!(tail(&["-n", "1", "--run", "r2"]).await, [2]);
    assert_eq!(tail(&["-n", "0"]).await, [0; 0]);
    assert_eq!(tail(&["-n", "9"]).await, [1, 2, 3]);
    let mut following = world.sluice().spawn(&["audit", "tail", "-n", "1", "-f"]);
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("a record in time");
        serde_json::from_str::<serde_json::Value>(&line.unwrap().expect("the stream goes on")).unwrap()
    };
    assert_eq!(next().await["seq"], 3);
    world.run("r3", "acct-1").await.agent.chat("fake").await;
    assert_eq!(next().await["seq"], 4, "none is shown twice, none is left out");
}

/// The exit code says that the proxy is gone.
#[tokio::test]
async fn tail_follow_ends_with_the_proxy() {
    let mut world = world_with_calls().await;
    let tail = world.sluice().spawn(&["audit", "tail", "-f"]);
    world.stop_proxy().await;
    let output = timeout(PATIENCE, tail.wait_with_output()).await.expect("it ends").unwrap();
    assert_eq!(output.status.code(), Some(69), "{output:?}");
}

#[tokio::test]
async fn tail_follow_shows_new_calls() {
    let world = world_with_calls().await;
    let mut tail = world.sluice().spawn(&["audit", "tail", "--run", "r2", "-f"]);
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = timeout(PATIENCE, lines.next_line()).await.expect("a record in time");
        serde_json::from_str::<serde_json::Value>(&line.unwrap().expect("the stream goes on")).unwrap()
    };
    assert_eq!(next().await["seq"], 2, "what was there already");
    world.run("r2", "acct-2").await.agent.chat("fake-echo").await;
    let record = next().await;
    assert_eq!((&record["seq"], &record["model_asked"]), (&4.into(), &"fake-echo".into()));
    assert!(tail.try_wait().unwrap().is_none(), "it goes on");
}

/// With `--json` it prints JSON there, too.
#[tokio::test]
async fn tail_on_a_terminal_prints_a_table() {
    let world = world_with_calls().await;
    let shown = world.sluice().on_terminal(&["audit", "tail"]).await.text();
    let lines: Vec<_> = shown.lines().collect();
    assert!(lines[0].starts_with("TIME ") && lines[0].ends_with("OUTCOME"), "{shown}");
    assert!(lines.len() == 4 && lines[2].contains(" r2 ") && lines[2].contains(" acct-2 "), "{shown}");
    assert!(lines[1..].iter().all(|line| line.ends_with("200 complete (stop)")), "{shown}");
    let json = world.sluice().on_terminal(&["audit", "tail", "--json"]).await.text();
    assert_eq!(json.lines().filter(|line| line.starts_with('{')).count(), 3, "{json}");
}

/// A narrow terminal loses columns, and no line is longer than it.
#[tokio::test]
async fn a_table_fits_its_terminal() {
    let world = world_with_calls().await;
    let left = world.sluice().seated_at(80, &["audit", "tail"]).left().await;
    let lines: Vec<_> = left.text.lines().skip_while(|line| !line.starts_with("TIME")).take(4).collect();
    assert!(
        lines[0].split_whitespace().eq(["TIME", "CALL", "RUN", "MODEL", "WHOLE", "OUTCOME"]),
        "{lines:?}"
    );
    assert!(lines.len() == 4 && lines.iter().all(|line| line.chars().count() <= 80), "{lines:?}");
    assert!(lines[1].ends_with("200 complete (stop)"), "{lines:?}");
}

/// A program reads everything, and so does a person who selects calls.
#[tokio::test]
async fn a_table_shows_the_last_twenty_calls() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    for _ in 0..22 {
        assert_eq!(run.agent.chat("fake").await.status, 200);
    }
    world.records(22).await;
    let rows = async |arguments: &[&str]| {
        let shown = world.sluice().on_terminal(&[&["audit", "tail"], arguments].concat()).await.text();
        shown.lines().filter(|line| line.contains(" r1 ")).count()
    };
    assert_eq!(rows(&[]).await, 20);
    assert_eq!((rows(&["-n", "21"]).await, rows(&["--run", "r1"]).await), (21, 22));
    assert_eq!(runs(&world.sluice().run(&["audit", "tail"]).await).len(), 22);
}

#[tokio::test]
async fn without_a_proxy_it_says_how_to_get_one() {
    let mut world = World::start().await;
    world.stop_proxy().await;
    let outcome = world.sluice().run(&["audit", "tail"]).await;
    assert_eq!(outcome.code, Some(69), "{outcome:?}");
    assert!(outcome.stderr.contains("sluice up"), "{}", outcome.stderr);
}
