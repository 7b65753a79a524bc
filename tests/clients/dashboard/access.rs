//! Tests who may look and who may act: sessions of browsers, other origins, roles, accounts.

use harness::Dashboard;
use serde_json::{Value, json};

use super::agents::configuration;

const CASES: [&str; 12] = [
    "link",
    "used_link",
    "other_session",
    "token",
    "wrong_token",
    "other_origins",
    "framing",
    "rebinding",
    "viewer",
    "foreign",
    "revoked",
    "back",
];

/// An open stream ends 5 seconds after its token was revoked. A page on a busy machine may need three more to show that.
const MAX_REVOKED_MS: u64 = 8000;

fn text<'c>(case: &'c Value, field: &str) -> &'c str {
    case[field].as_str().unwrap_or_else(|| panic!("no {field}: {case:#}"))
}

fn assert_secrets_are_nowhere(link: &Value, token: &Value) {
    assert_eq!((&link["found"], &token["found"], &token["cookie"]), (&json!([]), &json!([]), &json!([])));
    assert_eq!(link["control"], json!(["inside"]), "control: the search finds a code: {link:#}");
    assert!(!text(link, "url").contains('#') && text(link, "who").contains("boss"), "{link:#}");
    let cookie = json!([{ "name": "sluice_session", "path": "/", "httpOnly": true, "sameSite": "Strict", "domain": "127.0.0.1", "long": true }]);
    assert_eq!(token["cookies"], cookie);
}

/// No page of another origin changes anything, though it is of the same site and the browser sends the cookie.
fn assert_other_origins_are_refused(case: &Value) {
    for (name, seen) in case["sent"].as_object().unwrap() {
        let answers = seen["answers"].as_array().unwrap();
        let passed: Vec<_> =
            answers.iter().filter(|answer| answer.as_str().unwrap().starts_with('2')).collect();
        assert!(passed.is_empty() && answers.len() >= 2, "{name}: {seen:#}");
        assert_eq!(seen["got"], json!(["TypeError", "opaque 0"]), "{name}: nothing can be read");
    }
    assert_eq!(case["before"], "running", "nothing was changed");
    assert_eq!(case["after"], "cancelled", "control: the own page does it: {case:#}");
}

fn assert_roles(case: &Value) {
    let (reader, ann) = (&case["seen"]["reader"], &case["seen"]["ann"]);
    assert_eq!((&reader["run"], &reader["ask"]), (&json!([]), &json!(0)), "{case:#}");
    assert_eq!((&reader["says"], &ann["says"]), (&json!(true), &json!(false)), "{case:#}");
    assert_eq!((&ann["run"], &ann["ask"]), (&json!(["Cancel …"]), &json!(1)), "control: {case:#}");
    assert_eq!(reader["byHand"], json!([403, 403, 403, 403, 403]), "{case:#}");
    assert!(!reader["nav"].to_string().contains("System"), "{case:#}");
    assert_eq!(case["state"], "running");
}

#[tokio::test]
async fn only_who_may_sees_and_acts() {
    let dashboard = Dashboard::start("", &configuration()).await;
    let link = dashboard.link("boss").await;
    let input = json!({ "link": link, "sluice": dashboard.command() });
    let cases = dashboard.suite("access", input, &CASES).await;
    assert_secrets_are_nowhere(cases.of("link"), cases.of("token"));
    let log = dashboard.log();
    assert!(log.contains("sandbox.execution.started"), "control: {log}");
    assert!(!log.contains(link.split_once("#code=").unwrap().1), "no log has the code");
    let used = cases.of("used_link");
    assert!(text(used, "text").contains("does not work any more") && used["cookies"] == 0, "{used:#}");
    let other = cases.of("other_session");
    assert_eq!((&other["sent"], &other["stays"]), (&json!(0), &json!(true)), "{other:#}");
    assert!(text(other, "asks").contains("signed in as ann"), "{other:#}");
    assert_eq!(other["sentLater"], 0, "a declined link is forgotten: {other:#}");
    assert!(
        text(other, "used").contains("does not work any more"),
        "control: the button sends it: {other:#}"
    );
    let wrong = cases.of("wrong_token");
    assert!(
        text(wrong, "first").contains("not valid") && text(wrong, "last").contains("too_many_attempts"),
        "{wrong:#}"
    );
    assert!(wrong["refused"].as_i64().unwrap() >= 10 && wrong["limited"].as_i64().unwrap() >= 1, "{wrong:#}");
    assert_other_origins_are_refused(cases.of("other_origins"));
    let framing = cases.of("framing");
    assert_eq!(framing["control"], "inner", "{framing:#}");
    assert!(text(framing, "dashboard").contains("refused to connect"), "{framing:#}");
    let rebinding = cases.of("rebinding");
    assert_eq!(
        (&rebinding["own"], &rebinding["shows"], &rebinding["control"]),
        (&json!(421), &json!(false), &json!(200))
    );
    assert_roles(cases.of("viewer"));
    let foreign = cases.of("foreign");
    assert_eq!((&foreign["status"], &foreign["listed"]), (&json!([404, 404]), &json!([])), "{foreign:#}");
    assert!(text(foreign, "text").contains("Not found, or of another account"), "{foreign:#}");
    let revoked = cases.of("revoked");
    assert!(
        revoked["took"].as_u64().unwrap() < MAX_REVOKED_MS
            && text(revoked, "text").contains("session has ended"),
        "{revoked:#}"
    );
    let back = cases.of("back");
    assert_eq!((&back["status"], &back["cookies"]), (&json!(401), &json!(0)), "{back:#}");
    assert!(text(back, "text").contains("Sign in") && !text(back, "text").contains("test:long"), "{back:#}");
    dashboard.end().await;
}
