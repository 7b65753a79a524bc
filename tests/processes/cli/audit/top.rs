//! Tests `sluice audit top`: keys change the screen, and the terminal is restored however the command ends.

use harness::{World, terminal::Left};
use rustix::process::Signal;
use serde_json::json;

use super::{json_of, said};

/// Shown when the screen is taken, and when it is given back.
const TAKEN: &str = "\x1b[?1049h\x1b[?25l";
const GIVEN_BACK: &str = "\x1b[?25h\x1b[?1049l";

/// Starts a world in which `r1` of `acct-1` has made two calls, and `r2` of `acct-2` one that failed and one that was
/// refused.
async fn world_with_calls() -> World {
    let world = World::start().await;
    let (first, second) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    assert_eq!(first.agent.chat("fake-cost").await.status, 200);
    assert_eq!(first.agent.chat("fake-words50").await.status, 200);
    assert_eq!(second.agent.chat("fake-status500").await.status, 500);
    assert_eq!(second.agent.post("/v1/nothing", &json!({})).await.status, 404);
    world.records(4).await;
    world
}

/// Returns the names of the rows, from the top.
fn names(screen: &str) -> Vec<&str> {
    let rows = screen.lines().skip_while(|line| !line.contains("/MIN")).skip(1);
    let names =
        rows.filter_map(|line| line.split_whitespace().next().map(|name| name.trim_end_matches("\x1b[K")));
    names.filter(|name| ["r1", "r2", "r3", "acct-1", "acct-2"].contains(name)).collect()
}

/// Returns the cells of a row.
fn cells<'s>(screen: &'s str, name: &str) -> Vec<&'s str> {
    let row = screen.lines().find(|line| line.starts_with(&format!("{name} ")));
    row.unwrap_or_else(|| panic!("no {name} in {screen}")).split_whitespace().collect()
}

#[track_caller]
fn assert_given_back(left: &Left) {
    let (before, behind) = left.text.split_once(TAKEN).expect("the screen was taken");
    assert!(!before.contains(GIVEN_BACK) && behind.matches(GIVEN_BACK).count() == 1, "{left:?}");
    assert_eq!(left.modes[0], left.modes[1]);
}

/// Keys choose between runs and accounts, and the order.
#[tokio::test]
async fn top_groups_and_sorts_by_key() {
    let world = world_with_calls().await;
    let mut seat = world.sluice().seated(&["audit", "top"]);
    let screen = seat.sees("both runs", |screen| names(screen) == ["r1", "r2"]).await;
    assert_eq!(cells(&screen, "r1")[1..5], ["2", "2", "0", "0"], "{screen}");
    assert_eq!(cells(&screen, "r2")[1..5], ["1", "2", "1", "1"], "{screen}");
    assert!(screen.starts_with("runs by tokens: 2 of them, 3 calls, 1 refused, 1 error,"), "{screen}");

    seat.types("e").await;
    seat.sees("the one with errors first", |screen| names(screen) == ["r2", "r1"]).await;
    seat.types("a").await;
    seat.sees("accounts", |screen| names(screen) == ["acct-2", "acct-1"]).await;
    seat.types("c").await;
    seat.sees("the dearest first", |screen| names(screen) == ["acct-1", "acct-2"]).await;
    seat.types("/t-2").await;
    seat.sees("what is filtered", |screen| names(screen) == ["acct-2"] && screen.contains("filter: t-2"))
        .await;
    seat.types("\r").await;
    seat.sees("the filter is kept", |screen| names(screen) == ["acct-2"] && screen.contains("[t-2]")).await;
    seat.types("\x1b").await;
    seat.sees("all again", |screen| names(screen) == ["acct-1", "acct-2"]).await;

    seat.types("r").await;
    world.run("r3", "acct-1").await.agent.chat("fake").await;
    seat.sees("a call that came meanwhile", |screen| names(screen).contains(&"r3")).await;
    seat.types("q").await;
    let left = seat.left().await;
    assert_eq!(left.code, 0);
    assert_given_back(&left);
}

/// The whole way: cursor, details, help, and the filter that the sum follows.
#[tokio::test]
async fn top_explains_keys_and_shows_details() {
    let world = world_with_calls().await;
    let mut seat = world.sluice().seated(&["audit", "top"]);
    let screen = seat.sees("both runs", |screen| names(screen) == ["r1", "r2"]).await;
    assert!(screen.contains("▼IN") && screen.contains("▼OUT"), "{screen}");
    for look in ["\x1b[7mr1 ", "\x1b[1mRUN ", "\x1b[31m      1\x1b[0m"] {
        assert!(seat.shown().contains(look), "{look:?} is not in {:?}", seat.shown());
    }
    seat.types("?").await;
    seat.sees("the help", |screen| screen.contains("PgUp, PgDn") && screen.contains("▼ marks")).await;
    seat.types("\x1b").await;
    seat.sees("the rows", |screen| names(screen) == ["r1", "r2"]).await;
    seat.types("\x1b[B\r").await;
    let details = seat.sees("the details", |screen| screen.starts_with("run r2")).await;
    assert!(details.contains("1 refused, 1 failed") && details.contains("fake-status500"), "{details}");
    seat.types("\x1b").await;
    seat.sees("the rows", |screen| names(screen) == ["r1", "r2"]).await;
    seat.types("/r2\r").await;
    seat.sees("its sum", |screen| screen.starts_with("runs by tokens: 1 of 2, 1 call, 1 refused, 1 error,"))
        .await;
    seat.types("q").await;
    assert_eq!(seat.left().await.code, 0);
}

#[tokio::test]
async fn no_color_leaves_the_cursor_alone() {
    let world = world_with_calls().await;
    let mut seat = world.sluice().env("NO_COLOR", "1").seated(&["audit", "top"]);
    seat.sees("both runs", |screen| names(screen) == ["r1", "r2"]).await;
    assert!(seat.shown().contains("\x1b[7mr1 "), "{:?}", seat.shown());
    assert!(!seat.shown().contains("\x1b[1m") && !seat.shown().contains("\x1b[31m"), "{:?}", seat.shown());
}

#[tokio::test]
async fn signals_and_ctrl_c_give_the_terminal_back() {
    let world = world_with_calls().await;
    for (signal, code) in [(Signal::TERM, 130), (Signal::INT, 130), (Signal::HUP, 130)] {
        let mut seat = world.sluice().seated(&["audit", "top"]);
        seat.sees("the runs", |screen| names(screen).len() == 2).await;
        seat.signal(signal);
        let left = seat.left().await;
        assert_eq!(left.code, code, "{left:?}");
        assert_given_back(&left);
    }
    let mut seat = world.sluice().seated(&["audit", "top"]);
    seat.sees("the runs", |screen| names(screen).len() == 2).await;
    seat.types("\x1a\x1b[A\x03").await;
    let left = seat.left().await;
    assert_eq!(left.code, 0, "{left:?}");
    assert_given_back(&left);
    // Control: without a chance to give it back, the difference is seen.
    let mut seat = world.sluice().seated(&["audit", "top"]);
    seat.sees("the runs", |screen| names(screen).len() == 2).await;
    seat.signal(Signal::KILL);
    let left = seat.left().await;
    assert_ne!(left.modes[0], left.modes[1]);
}

/// The message about the proxy comes after the terminal is restored, where it can be read.
#[tokio::test]
async fn top_restores_the_terminal_if_the_proxy_dies() {
    let mut world = world_with_calls().await;
    let mut seat = world.sluice().seated(&["audit", "top"]);
    seat.sees("the runs", |screen| names(screen).len() == 2).await;
    world.kill_proxy().await;
    let left = seat.left().await;
    assert_eq!(left.code, 69, "{left:?}");
    assert_given_back(&left);
    let told = left.text.split_once(GIVEN_BACK).unwrap().1;
    assert!(told.contains("sluice: the"), "it is told where it can be read: {told}");
}

/// The output is a table, or one JSON object.
#[tokio::test]
async fn top_without_a_terminal_prints_once() {
    let world = world_with_calls().await;
    let table = said(&world, &["top", "--by", "errors"]).await;
    assert_eq!((names(&table), table.contains('\x1b')), (vec!["r2", "r1"], false), "{table}");
    let json = json_of(&world, &["top", "--group", "account", "--by", "calls"]).await;
    let row = &json["rows"][0];
    assert_eq!(
        (&row["account"], &row["calls"], &row["calls_per_minute"]),
        (&json!("acct-1"), &json!(2), &json!(2))
    );
}
