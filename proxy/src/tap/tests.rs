//! Tests which lines are kept, for which watchers, and for how long.

use std::time::Duration;

use allocation_counter::measure;
use platform_core::limit::{
    ByteSize,
    data_plane::{TAP_REST, TAP_RING, TAP_RINGS},
};

use super::*;

fn call() -> CallId {
    CallId::new(1, 1)
}

async fn texts(watcher: &mut Watcher, count: usize) -> Vec<String> {
    let mut texts = Vec::new();
    for _ in 0..count {
        match watcher.next().await.unwrap().event {
            TapEvent::Text { delta, .. } => texts.push(delta),
            other => panic!("{other:?}"),
        }
    }
    texts
}

#[test]
fn long_texts_are_split_between_letters() {
    let text = "ä".repeat(TAP_DELTA);
    let told: Vec<_> = pieces(&text).collect();
    assert_eq!((told.len(), told.concat()), (2, text));
    assert_eq!(pieces("").count(), 0);
    assert_eq!(pieces("short").collect::<Vec<_>>(), ["short"]);
}

#[tokio::test]
async fn watchers_get_the_kept_lines_not_yet_seen() {
    let (tap, rings) = (Tap::default(), Arc::default());
    tap.push(call(), AnswerDelta::Text("before anybody watched"));
    let mut first = tap.watch(&rings, 0);
    tap.push(call(), AnswerDelta::Text("one"));
    tap.push(call(), AnswerDelta::Text("two"));
    let one = first.next().await.unwrap();
    assert_eq!(texts(&mut tap.watch(&rings, 0), 2).await, ["one", "two"]);
    assert_eq!(texts(&mut tap.watch(&rings, one.n), 1).await, ["two"]);
    assert_eq!(texts(&mut tap.watch(&rings, u64::MAX), 2).await, ["one", "two"], "a number of another ring");
    assert_eq!(tap.watchers(), 1);
    tap.close();
    assert_eq!(texts(&mut first, 1).await, ["two"]);
    assert!(first.next().await.is_none() && !tap.is_open());
}

#[tokio::test]
async fn a_full_ring_counts_missed_lines() {
    let (tap, rings) = (Tap::default(), Arc::default());
    let mut slow = tap.watch(&rings, 0);
    const LINES: u64 = 1_000_000;
    for _ in 0..LINES {
        tap.push(call(), AnswerDelta::Text("word"));
    }
    assert!((TAP_RING.0 - 4096..=TAP_RING.0).contains(&rings.held()), "{}", rings.held());
    let TapEvent::Missed { count } = slow.next().await.unwrap().event else { panic!("nothing was missed") };
    let kept = tap.0.load().as_ref().unwrap().contents().lines.len();
    assert_eq!(count + kept as u64, LINES);
    assert_eq!(texts(&mut slow, kept).await.len(), kept);
}

/// Adds texts of about the size of a model's word.
fn say(tap: &Tap, times: usize) {
    (0..times).for_each(|_| tap.push(call(), AnswerDelta::Text("word")));
}

fn missed(line: Option<TapLine>) -> u64 {
    match line.unwrap().event {
        TapEvent::Missed { count } => count,
        other => panic!("nothing was missed: {other:?}"),
    }
}

#[test]
fn counted_bytes_are_those_allocated() {
    let (tap, rings) = (Tap::default(), Arc::default());
    let watcher = tap.watch(&rings, 0);
    let allocated = measure(|| say(&tap, 20_000)).bytes_current.unsigned_abs();
    let held = rings.held();
    assert!(
        allocated <= held && held < allocated + allocated / 2,
        "{allocated} are allocated, {held} counted"
    );
    tap.close();
    assert_eq!(rings.held(), held, "who still reads has it still");
    drop(watcher);
    assert_eq!(rings.held(), 0);
}

#[tokio::test]
async fn all_rings_share_one_bound() {
    const RUNS: u64 = 8;
    let most = ByteSize::kib(64);
    let rings = Arc::new(Rings::of(most));
    let first = Tap::default();
    let mut early = first.watch(&rings, 0);
    say(&first, 10_000);
    assert!(rings.held() > most.0 - 4096, "alone it may have all: {}", rings.held());
    let others: Vec<_> = (1..RUNS).map(|_| Tap::default()).collect();
    let watchers: Vec<_> = others.iter().map(|tap| tap.watch(&rings, 0)).collect();
    others.iter().for_each(|tap| say(tap, 1000));
    assert!(rings.held() <= most.0, "{} bytes are held", rings.held());
    // The run says nothing more, and still its excess is released.
    rings.release_unwatched(Instant::now());
    others.iter().for_each(|tap| say(tap, 1000));
    for tap in others.iter().chain([&first]) {
        let held = tap.0.load().as_ref().unwrap().contents().held;
        assert!((most.0 / RUNS / 2..=most.0 / RUNS).contains(&held), "one holds {held}");
    }
    assert!(missed(early.next().await) > 9000, "and who reads it is told");
    drop((watchers, others));
    rings.release_unwatched(Instant::now());
    say(&first, 10_000);
    assert!(rings.held() > most.0 - 4096, "what others had is free again: {}", rings.held());
}

#[tokio::test]
async fn an_unwatched_ring_rests_and_still_counts() {
    let (tap, rings) = (Tap::default(), Arc::default());
    let watcher = tap.watch(&rings, 0);
    say(&tap, 100);
    let now = Instant::now();
    let later = now + TAP_REST.duration() + Duration::from_secs(1);
    rings.release_unwatched(later);
    assert!(rings.held() > 0, "somebody watches");
    drop(watcher);
    rings.release_unwatched(now);
    assert!(rings.held() > 0, "they may come back");
    let seen = tap.watch(&rings, 0).next().await.unwrap();
    rings.release_unwatched(later);
    assert_eq!(rings.held(), 0);
    say(&tap, 50);
    assert_eq!(rings.held(), 0);
    let mut back = tap.watch(&rings, seen.n);
    tap.push(call(), AnswerDelta::Text("again"));
    assert_eq!(missed(back.next().await), 149, "all but the one that was seen");
    assert_eq!(texts(&mut back, 1).await, ["again"]);
    assert_eq!(TAP_RINGS.0 / TAP_RING.0, 256, "as its documentation says");
}
