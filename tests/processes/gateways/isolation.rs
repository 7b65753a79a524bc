//! Tests that a turn receives only its own messages: none of another session or another run, and each piece once.

use gateway_bridge::Ending;
use harness::{
    eventually,
    gateway::{
        Cue, Dialect, ScriptedGateway, Step,
        bridged::{by_model, first_text, run, session, to_scripted, told, turn_in},
    },
};

#[tokio::test]
async fn pieces_are_clean_and_the_final_text_counts() {
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::with_headers(dialect).await;
        let bridge = to_scripted(&gateway);
        gateway.always(vec![Step::say("One "), Step::say("two "), Step::say("three.")]);
        let clean = run(&bridge, turn_in(dialect, "clean")).await;
        assert_eq!(
            (clean.text().trim(), clean.answer()),
            ("One two three.", "One two three."),
            "{dialect:?}"
        );

        let noisy = vec![
            Step::say("One "),
            Step::Again,
            Step::Tool,
            Step::Again,
            Step::say("two."),
            Step::Again,
            Step::EndAs("Another text.".to_owned()),
        ];
        gateway.always(noisy);
        let noisy = run(&bridge, turn_in(dialect, "noisy")).await;
        assert_eq!(noisy.answer(), "Another text.", "{dialect:?}");
        assert_eq!(noisy.text().matches("One").count(), 1, "{dialect:?}: {:?}", noisy.events);
        assert_eq!(noisy.text().matches("two").count(), 1, "{dialect:?}: {:?}", noisy.events);

        gateway.always(vec![Step::Swapped("One ".to_owned(), "two.".to_owned())]);
        let swapped = run(&bridge, turn_in(dialect, "swapped")).await;
        assert_eq!(swapped.answer(), "One two.", "{dialect:?}");
        bridge.close().await;
    }
}

#[tokio::test]
async fn events_of_other_turns_are_counted_not_passed() {
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::with_headers(dialect).await;
        let bridge = to_scripted(&gateway);
        let cue = Cue::default();
        let other = session("other");
        let other: &'static str = Box::leak(other.as_str().to_owned().into_boxed_str());
        let elsewhere = |run, session| Step::Elsewhere { run, session, text: "STOLEN" };
        gateway.always(vec![
            Step::say("One "),
            elsewhere(Some("run-of-another"), Some(other)),
            elsewhere(Some("run-of-another"), None),
            elsewhere(None, Some(other)),
            Step::Until(cue.clone()),
            Step::say("two."),
        ]);
        let mut running = bridge.run(turn_in(dialect, "mine")).await.unwrap();
        assert_eq!(first_text(&mut running).await.trim(), "One");
        let count = || async { bridge.counts().unattributed };
        let counted = eventually("what is another's is counted", count, |count| *count >= 6).await;
        cue.give();
        let own = told(running).await;
        assert_eq!(own.answer(), "One two.", "{dialect:?}: {counted}");
        assert!(!format!("{own:?}").contains("STOLEN"), "{dialect:?}: {own:?}");

        // The control: the same text in the turn's own name is delivered.
        gateway.always(vec![Step::Elsewhere { run: None, session: None, text: "STOLEN" }]);
        let own = run(&bridge, turn_in(dialect, "mine")).await;
        assert!(format!("{own:?}").contains("STOLEN"), "{dialect:?}: {own:?}");
        bridge.close().await;
    }
}

#[tokio::test]
async fn turns_that_run_at_once_never_mix() {
    for dialect in Dialect::ALL {
        let gateway = ScriptedGateway::with_headers(dialect).await;
        let bridge = to_scripted(&gateway);
        let names = ["red", "green", "blue", "black", "white", "grey", "pink", "gold"];
        for name in names {
            let word = |n: usize| Step::Say(format!("{name}{n} "));
            let pause = || Step::Pause(std::time::Duration::from_millis(3));
            let steps = (0..20).flat_map(|n| [word(n), pause()]).collect();
            gateway.script(session(name).as_str(), steps);
        }
        let all = names.map(|name| {
            let bridge = bridge.clone();
            async move {
                let told = run(&bridge, turn_in(dialect, name)).await;
                (name, told)
            }
        });
        for (name, told) in futures_util::future::join_all(all).await {
            assert_eq!(told.answer().split_whitespace().count(), 20, "{dialect:?} {name}");
            for word in told.answer().split_whitespace().chain(told.text().split_whitespace()) {
                assert!(word.starts_with(name), "{dialect:?}: {name} heard {word}");
            }
        }
        bridge.close().await;
    }
}

#[tokio::test]
async fn an_idle_reader_delays_no_other_turn() {
    let gateway = ScriptedGateway::with_headers(Dialect::Four).await;
    let bridge = to_scripted(&gateway);
    let piece = "x".repeat(64 << 10);
    gateway.script(session("slow").as_str(), vec![Step::Say(piece); 10]);
    let slow = bridge.run(turn_in(Dialect::Four, "slow")).await.unwrap();
    let quick = run(&bridge, turn_in(Dialect::Four, "quick")).await;
    assert_eq!(quick.answer(), "Hello there.");
    let slow = told(slow).await;
    assert_eq!(slow.answer().len(), 10 * (64 << 10));
    assert!(slow.text().len() < slow.answer().len(), "everything was kept");
    assert_eq!(bridge.counts().slow_readers, 1);
    bridge.close().await;
}

#[tokio::test]
async fn nonsense_is_counted_and_the_turn_goes_on() {
    let gateway = ScriptedGateway::with_headers(Dialect::Four).await;
    let bridge = to_scripted(&gateway);
    gateway.always(vec![
        Step::say("One "),
        Step::Text("no JSON".to_owned()),
        Step::Text("[1,2]".to_owned()),
        Step::Frame(serde_json::json!({ "type": "event", "event": "agent", "payload": 7 })),
        Step::Frame(serde_json::json!({ "type": "event", "event": "never.heard", "payload": { "a": 1 } })),
        Step::Frame(serde_json::json!({ "type": "res", "id": "nobody-asked", "ok": true, "payload": {} })),
        Step::say("two."),
    ]);
    let told = run(&bridge, by_model(turn_in(Dialect::Four, "mine"), "fake")).await;
    assert_eq!(told.answer(), "One two.");
    assert!(matches!(told.ending, Ending::Completed { .. }));
    assert!(bridge.counts().malformed >= 2, "{:?}", bridge.counts());
    bridge.close().await;
}
