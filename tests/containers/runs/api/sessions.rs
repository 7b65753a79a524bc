//! Tests browser sessions of the HTTP API: how one begins and ends, and that no other page can use it.

use std::{fs, time::Duration};

use harness::{Agent, Answer, canary, eventually, holds_for};
use http::Method;
use serde_json::{Value, json};

use super::orders::{Served, ended, order_text};

const SESSION: &str = "/api/v1/session";
const FORM: &str = "application/x-www-form-urlencoded";

/// World with a principal, and with a browser that is signed in as it.
struct SignedIn {
    there: Served,
    /// The API as the principal's programs use it.
    app: Agent,
    /// Answer to the sign-in.
    answer: Answer,
    /// Cookie of the session, as `NAME=VALUE`.
    cookie: String,
}

impl SignedIn {
    async fn with(settings: &str) -> Self {
        let there = Served::with(settings).await;
        let app = there.principal(&["app", "--account", "acct-7"]).await;
        let (answer, cookie) = sign_in(&app).await;
        Self { there, app, answer, cookie }
    }

    /// Returns the origin of the API's own pages.
    fn origin(&self) -> String {
        let said = &self.there.up.said;
        said.lines().find_map(|line| line.strip_prefix("api       ")).unwrap().to_owned()
    }

    /// Returns the API as the browser calls it with these headers, for a page of any origin.
    fn browser(&self, headers: &[(&str, &str)]) -> Agent {
        let api = self.there.api.clone().with_header("cookie", &self.cookie);
        headers.iter().fold(api, |api, (name, value)| api.with_header(name, value))
    }

    /// Returns the API as its own page calls it.
    fn page(&self) -> Agent {
        self.browser(&[("origin", &self.origin()), ("sec-fetch-site", "same-origin")])
    }
}

pub(super) async fn sign_in(app: &Agent) -> (Answer, String) {
    let answer = app.post(SESSION, &Value::Null).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let cookie = answer.headers["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    // The answer has it, of course. From now on it is searched for.
    canary::hand_out(cookie.split_once('=').unwrap().1);
    (answer, cookie)
}

/// Returns the status of an answer and its code, if it is a problem.
fn outcome(answer: &Answer) -> (u16, String) {
    let problem: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    (answer.status.as_u16(), problem["code"].as_str().unwrap_or_default().to_owned())
}

async fn order(api: &Agent) -> (u16, String) {
    outcome(&api.request(Method::POST, "/api/v1/runs", order_text("test:sh").into()).await.unwrap())
}

/// Returns the status for a request that the session identifies.
async fn status(browser: &Agent) -> u16 {
    browser.get(SESSION).await.status.as_u16()
}

#[tokio::test]
async fn a_browser_acts_without_its_token() {
    let here = SignedIn::with("").await;
    let me = json!({ "principal": "app", "account": "acct-7", "role": "member" });
    assert_eq!(
        (here.answer.json(), &here.answer.headers["cache-control"]),
        (me.clone(), &"no-store".parse().unwrap())
    );
    assert_eq!(
        here.answer.headers["set-cookie"],
        format!("{}; Max-Age=604800; Path=/; HttpOnly; SameSite=Strict", here.cookie).as_str()
    );
    assert_eq!(here.cookie.len(), "sluice_session=".len() + 64, "{}", here.cookie);
    for api in [&here.page(), &here.app] {
        assert_eq!(api.get(SESSION).await.json(), me);
    }
    assert_eq!(outcome(&here.there.api.get(SESSION).await), (401, "unauthenticated".to_owned()), "control");
    let path = "/api/v1/runs/r1";
    let put = here.page().request(Method::PUT, path, order_text("test:sh").into()).await.unwrap();
    assert_eq!(put.status, 201, "{}", put.text());
    let run = ended(&here.page(), "r1").await;
    assert_eq!((&run["account"], &run["user"]), (&json!("acct-7"), &json!("app")));
    assert!(!put.headers.keys().any(|name| name.as_str().starts_with("access-control-")), "no CORS");
    here.there.end().await;
}

/// Cookies have no port: a browser sends them to, and for pages of, each port of the host.
#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let here = SignedIn::with("").await;
    let own = here.origin();
    let by_name = own.replace("127.0.0.1", "localhost");
    for (headers, code) in [
        (vec![], "wrong_origin"),
        (vec![("origin", "http://127.0.0.1:3000")], "wrong_site"),
        (vec![("origin", "http://localhost:3000")], "wrong_site"),
        (vec![("origin", by_name.as_str())], "wrong_site"),
        (vec![("origin", "https://attacker.example"), ("sec-fetch-site", "cross-site")], "wrong_site"),
        (vec![("origin", "null")], "wrong_site"),
        (vec![("origin", own.as_str()), ("sec-fetch-site", "same-site")], "wrong_origin"),
        (vec![("origin", own.as_str()), ("sec-fetch-site", "cross-site")], "wrong_site"),
    ] {
        assert_eq!(order(&here.browser(&headers)).await, (403, code.to_owned()), "{headers:?}");
        let signed_out = here.browser(&headers).request(Method::DELETE, SESSION, "".into()).await.unwrap();
        assert_eq!(outcome(&signed_out), (403, code.to_owned()), "{headers:?}");
    }
    assert_eq!(here.page().get("/api/v1/runs").await.json()["runs"], json!([]), "nothing was ordered");
    assert_eq!(order(&here.page()).await.0, 201, "control: the API's own page");
    let other_program = here.app.clone().with_header("origin", "http://127.0.0.1:3000");
    assert_eq!(order(&other_program).await.0, 201, "control: no browser adds a token by itself");
    for run in here.page().get("/api/v1/runs").await.json()["runs"].as_array().unwrap() {
        ended(&here.page(), run["runId"].as_str().unwrap()).await;
    }
    here.there.end().await;
}

/// To cancel a run needs no body, so only the session demands JSON of it.
#[tokio::test]
async fn a_form_changes_nothing() {
    let here = SignedIn::with("").await;
    let own = here.origin();
    let post = async |headers: &[(&str, &str)]| {
        let path = "/api/v1/runs/none/cancel";
        outcome(&here.browser(headers).request(Method::POST, path, "a=b".into()).await.unwrap())
    };
    let attacker = ("origin", "https://attacker.example");
    let cross_site = [attacker, ("sec-fetch-site", "cross-site"), ("content-type", FORM)];
    assert_eq!(post(&cross_site).await, (403, "wrong_site".to_owned()));
    for form in [FORM, "text/plain", "multipart/form-data"] {
        let refused = post(&[("origin", &own), ("content-type", form)]).await;
        assert_eq!(refused, (415, "unsupported_media_type".to_owned()), "{form}");
    }
    let json = [("origin", own.as_str()), ("content-type", "application/json")];
    assert_eq!(post(&json).await, (404, "not_found".to_owned()), "control: its run is looked for");
    here.there.end().await;
}

#[tokio::test]
async fn a_session_ends_with_its_principal() {
    let here = SignedIn::with("").await;
    let sluice = async |arguments: &[&str]| {
        let outcome = here.there.world.sluice().run(&[&["principals"], arguments].concat()).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        outcome.stdout.trim().to_owned()
    };
    assert_eq!(status(&here.page()).await, 200, "control");
    let token = sluice(&["rotate", "app"]).await;
    canary::hand_out(&token);
    assert_eq!(status(&here.page()).await, 401);
    let rotated = here.there.api.clone().with_header("authorization", &format!("Bearer {token}"));
    let (_, cookie) = sign_in(&rotated).await;
    let browser = here.there.api.clone().with_header("cookie", &cookie);
    assert_eq!(status(&browser).await, 200, "control");
    sluice(&["revoke", "app"]).await;
    assert_eq!(status(&browser).await, 401);
    here.there.end().await;
}

#[tokio::test]
async fn ended_sessions_leave_the_store() {
    let here = SignedIn::with("\n[worker]\ngc_interval = '1s'\n").await;
    let log = || async { fs::read_to_string(here.there.world.path().join("up.log")).unwrap() };
    let removed = "ended browser sessions removed";
    let stays = "control: a session that has not ended stays";
    holds_for(Duration::from_secs(2), stays, log, |log| !log.contains(removed)).await;
    assert_eq!(here.there.world.sluice().run(&["principals", "revoke", "app"]).await.code, Some(0));
    eventually(removed, log, |log| log.contains(removed)).await;
    here.there.end().await;
}

#[tokio::test]
async fn a_sign_out_ends_the_session() {
    let here = SignedIn::with("").await;
    let (_, cookie) = sign_in(&here.app).await;
    let other_browser = here.there.api.clone().with_header("cookie", &cookie);
    let path = "/api/v1/runs/r1";
    assert_eq!(
        here.page().request(Method::PUT, path, order_text("test:long").into()).await.unwrap().status,
        201
    );
    let follow =
        async |api: &Agent| api.send(Method::GET, &format!("{path}/events"), "".into()).await.unwrap();
    let stream = follow(&here.page()).await;
    assert_eq!(stream.status, 200);
    let out = here.page().request(Method::DELETE, SESSION, "".into()).await.unwrap();
    assert_eq!(
        (out.status.as_u16(), &out.headers["clear-site-data"]),
        (204, &r#""cache", "storage""#.parse().unwrap())
    );
    assert_eq!(out.headers["set-cookie"], "sluice_session=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict");
    assert_eq!((status(&here.page()).await, order(&here.page()).await.0), (401, 401));
    let cut = tokio::time::timeout(Duration::from_secs(30), stream.whole()).await;
    assert!(!cut.expect("the stream ends, too").unwrap().text().contains(r#""type":"error""#));
    assert_eq!((status(&other_browser).await, status(&here.app).await), (200, 200), "control");
    let cancelled = here.app.post(&format!("{path}/cancel"), &Value::Null).await;
    assert_eq!(cancelled.status, 202, "{}", cancelled.text());
    ended(&here.app, "r1").await;
    here.there.end().await;
}

#[tokio::test]
async fn only_a_token_begins_a_session() {
    let here = SignedIn::with("anonymous_account = 'local'").await;
    let refused = (401, "unauthenticated".to_owned());
    assert_eq!(
        outcome(&here.page().post(SESSION, &Value::Null).await),
        refused,
        "it does not prolong itself"
    );
    assert_eq!(outcome(&here.there.api.post(SESSION, &Value::Null).await), refused, "without a token");
    let me = here.there.api.get(SESSION).await.json();
    assert_eq!(me, json!({ "principal": null, "account": "local", "role": "member" }));
    // A page of another port could add a second cookie.
    let two = here.page().with_header("cookie", &format!("sluice_session={}", "0".repeat(64)));
    assert_eq!(outcome(&two.get(SESSION).await), refused);
    let unknown = here.there.api.clone().with_header("cookie", &format!("sluice_session={}", "0".repeat(64)));
    assert_eq!(outcome(&unknown.get(SESSION).await), refused);
    let viewer = here.there.principal(&["viewer", "--account", "acct-7", "--role", "viewer"]).await;
    let (_, cookie) = sign_in(&viewer).await;
    let page = here.there.api.clone().with_header("cookie", &cookie).with_header("origin", &here.origin());
    assert_eq!(
        order(&page).await,
        (403, "forbidden".to_owned()),
        "a session has the rights of its principal"
    );
    here.there.end().await;
}

/// A program in front of the API adds TLS: only `api.origins` knows the address of its pages.
#[tokio::test]
async fn only_configured_origins_act() {
    let here = SignedIn::with("origins = ['https://sluice.example', 'https://other.example:8443']").await;
    let cookie = here.answer.headers["set-cookie"].to_str().unwrap();
    assert!(
        cookie.starts_with("__Host-sluice_session=") && cookie.ends_with("; SameSite=Strict; Secure"),
        "{cookie}"
    );
    let own = here.origin();
    for (origin, expected) in [
        ("https://sluice.example", 201),
        ("https://other.example:8443", 201),
        (own.as_str(), 403),
        ("https://other.example", 403),
        ("http://sluice.example", 403),
    ] {
        assert_eq!(order(&here.browser(&[("origin", origin)])).await.0, expected, "{origin}");
    }
    for run in here.app.get("/api/v1/runs").await.json()["runs"].as_array().unwrap() {
        ended(&here.app, run["runId"].as_str().unwrap()).await;
    }
    here.there.end().await;
}
