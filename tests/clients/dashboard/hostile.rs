//! Texts of agents stay texts: no code, no element, no address, no request and no odd character comes of them.

use harness::Dashboard;
use serde_json::{Value, json};

use super::agents::{ATTACKS, attacks, configuration, hostile_text};

const CASES: [&str; 16] = [
    "control",
    "ordered",
    "run",
    "failure",
    "line",
    "pages",
    "chat",
    "chunks",
    "links",
    "spoiled",
    "fabricated",
    "prototype",
    "pull_requests",
    "downloads",
    "forged",
    "forged_decision",
];

/// Checks that nothing came of the texts of a page.
fn assert_harmless(place: &str, page: &Value) {
    for (what, expected) in [
        ("ran", Value::Null),
        ("polluted", Value::Null),
        ("elements", json!(0)),
        ("links", json!([])),
        ("odd", json!([])),
        ("wide", json!(false)),
    ] {
        assert_eq!(page[what], expected, "{place}: {what}: {page:#}");
    }
    assert!(page["nodes"].as_u64().unwrap() < 3000, "{place}: {page:#}");
}

/// Checks all pages of a case, and that nothing left them.
fn assert_all_harmless(case: &Value) {
    for (path, page) in case["pages"].as_object().unwrap() {
        assert_harmless(path, page);
    }
    for what in ["foreign", "violations", "crashes"] {
        assert_eq!(case[what], json!([]), "{what} of {}", case["case"]);
    }
}

fn assert_control(case: &Value) {
    for (name, _) in ATTACKS {
        let expected = if name == "foreign" { Value::Null } else { json!(1) };
        assert_eq!(case["ran"][name], expected, "control: {name} works where nothing defends: {case:#}");
    }
    assert!(!case["images"].as_array().unwrap().is_empty(), "control: {case:#}");
    let all = &case["all"];
    assert_eq!(
        (&all["ran"], &all["polluted"], &all["wide"]),
        (&json!(1), &json!(1), &json!(true)),
        "control: {all:#}"
    );
    // Two pictures and a drawing; scripts count, too.
    assert!(all["elements"].as_u64().unwrap() >= 3, "control: {all:#}");
    assert!(all["links"].to_string().contains("javascript:"), "control: {all:#}");
    assert!(!all["odd"].as_array().unwrap().is_empty(), "control: {all:#}");
}

#[tokio::test]
async fn hostile_texts_stay_texts() {
    let dashboard = Dashboard::start("", &configuration()).await;
    let cases =
        dashboard.suite("hostile", json!({ "attacks": attacks(), "text": hostile_text() }), &CASES).await;
    assert_control(cases.of("control"));
    assert_eq!(cases.of("ordered")["states"], json!(["succeeded", "failed", "succeeded"]));
    for name in ["run", "failure", "pages", "spoiled", "fabricated", "prototype"] {
        assert_all_harmless(cases.of(name));
    }
    for (path, page) in cases.of("fabricated")["pages"].as_object().unwrap() {
        let text = page["text"].as_str().unwrap();
        assert!(text.contains(ATTACKS[0].1), "control: {path} shows what it was sent: {text}");
    }
    let answer = &cases.of("run")["pages"]["/sandbox/hostile?tab=answer"];
    let text = answer["text"].as_str().unwrap();
    assert!(ATTACKS[..4].iter().all(|(_, attack)| text.contains(attack)), "they are shown: {text}");
    assert!(answer["marks"].as_u64().unwrap() >= 6, "{answer:#}");
    assert_harmless("line", cases.of("line"));
    let line = cases.of("line");
    assert!(line["answered"] == true && line["shown"].as_u64().unwrap() < 300_000, "{line:#}");
    let chat = cases.of("chat");
    assert_harmless("chat", chat);
    assert_eq!((&chat["cards"], &chat["foreign"], &chat["violations"]), (&json!(0), &json!([]), &json!([])));
    assert!(chat["text"].as_str().unwrap().contains("waits for your decision: [Approve]"), "{chat:#}");
    let buttons = chat["buttons"].as_array().unwrap();
    assert!(
        buttons.iter().all(|name| name == "open" || name.as_str().unwrap().starts_with("Show more")),
        "{buttons:?}"
    );
    assert_chunks(cases.of("chunks"));
    assert_links(cases.of("links"));
    assert_pull_requests(cases.of("pull_requests"));
    assert_downloads(cases.of("downloads"));
    assert_forged(cases.of("forged"));
    assert_decision(cases.of("forged_decision"));
    dashboard.end().await;
}

/// Sources and files with an address outside the web are left out; the others are links.
fn assert_chunks(case: &Value) {
    assert_harmless("chunks", case);
    let web = json!("https://docs.example/page");
    let hrefs = case["hrefs"].as_array().unwrap();
    assert_eq!(hrefs.iter().filter(|href| **href == web).count(), 2, "control: {case:#}");
    assert!(hrefs.iter().all(|href| *href == web || href.as_str().unwrap().starts_with('/')), "{case:#}");
    assert_eq!(case["leftOut"], 8, "{case:#}");
    assert_eq!((&case["violations"], &case["foreign"]), (&json!([]), &json!([])), "{case:#}");
}

fn assert_links(case: &Value) {
    assert_eq!(case["before"], 0, "no link before a person opens one: {case:#}");
    let opened: Vec<_> =
        case["opened"].as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect();
    assert!(opened.contains(&"open the link to xn--pple-43d.com"), "{opened:?}");
    assert!(opened.iter().all(|label| !label.contains("javascript")), "{opened:?}");
    assert!(case["rel"].as_str().unwrap().contains("noopener"), "{case:#}");
}

/// Only https addresses of the configured host are links.
fn assert_pull_requests(case: &Value) {
    let links = case["links"].as_object().unwrap();
    let right = "https://github.com/a/b/pull/7";
    assert!(links[right].as_array().unwrap().contains(&json!(right)), "control: {links:#?}");
    for (url, found) in links.iter().filter(|(url, _)| *url != right) {
        let found = found.as_array().unwrap();
        let is_link = found.iter().any(|href| href.as_str().unwrap().contains("pull/7") || href == url);
        assert!(!is_link, "{url}: {found:?}");
    }
}

/// A browser sends a question, and never what was answered or decided.
fn assert_forged(case: &Value) {
    assert_eq!(
        (&case["sent"]["history"][0], &case["sent"]["approval"][0]),
        (&json!(200), &json!(400)),
        "{case:#}"
    );
    assert_eq!((&case["stored"][0][0], &case["stored"][1][0]), (&json!(200), &json!(404)), "{case:#}");
    for stored in case["stored"].as_array().unwrap() {
        assert_eq!(stored[1], false, "{case:#}");
    }
}

/// A decision that comes with a message does not count: the call waits until one comes through the API.
fn assert_decision(case: &Value) {
    assert_eq!(case["cards"], 1, "control: the chat draws a card for a call that waits: {case:#}");
    assert_eq!(case["sent"], json!([409, 200, 400]), "{case:#}");
    assert_eq!(case["before"], json!(["running", "waiting"]), "{case:#}");
    assert_eq!(case["after"], json!(["succeeded", "done"]), "control: a decision ends the wait: {case:#}");
}

/// Raw output is saved as a file: a browser that opens its address makes no document of it.
fn assert_downloads(case: &Value) {
    assert!(case["name"].as_str().unwrap().ends_with(".stderr.txt"), "{case:#}");
    assert_eq!(case["raw"], json!(["application/x-ndjson", "nosniff"]), "{case:#}");
    let (own, control) = (&case["opened"]["own"], &case["opened"]["control"]);
    assert_eq!(
        (&own["saved"], &own["ran"], &own["elements"]),
        (&json!(true), &Value::Null, &json!(0)),
        "{case:#}"
    );
    assert_eq!(control["ran"], 1, "control: called a document, it runs: {case:#}");
}
