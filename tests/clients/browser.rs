//! Tests the chat of the HTTP API with `useChat` of Vercel's AI SDK in Chromium. The page has a browser session, and comes from
//! nginx at an origin of `api.origins`. The program is `tests/sdk/browser_chat.mjs`.

use harness::{
    Agent, Served,
    bridge::free_port,
    browser::ServedPage,
    eventually,
    shell_agents::{RECALLS, prints, reporting_agent, shell_agent},
};
use serde_json::{Value, json};

use crate::chat_clients::all_said;

/// Cases of the program, in order.
const CASES: [&str; 9] =
    ["sign-in", "streams", "resume", "stop", "tools", "text", "error", "other", "sign-out"];
/// Words that the slow agent writes, one after the other.
const WORDS: [&str; 6] = ["one ", "two ", "three ", "four ", "five ", "six"];
/// Threads of orders that a page of another origin forges.
const FORGED: [&str; 4] = ["other", "forged-json", "forged-text", "forged-form"];

/// World with an API that serves the page.
struct Site {
    there: Served,
    page: ServedPage,
    /// Token of the person who signs in.
    token: String,
    /// API as programs of the same principal use it.
    app: Agent,
}

impl Site {
    async fn start() -> Self {
        let own = free_port();
        let there = Served::of(&format!("origins = ['http://{own}']\n\n{}", agents()), RECALLS).await;
        let token = there.token(&["app", "--account", "acct-7"]).await;
        let page = ServedPage::start(&there.url(), own).await;
        let app = there.authorized(&token);
        Self { there, page, token, app }
    }

    async fn end(self) {
        self.page.chromium_ended().await;
        self.there.end().await;
    }

    /// Returns the messages that a thread has in the store.
    async fn stored(&self, thread: &str) -> Value {
        let answer = self.app.get(&format!("/api/v1/threads/{thread}")).await;
        assert_eq!(answer.status, 200, "{thread}: {}", answer.text());
        all_said(&answer.json()["messages"]).into()
    }

    /// Checks that a case ended well, and that the page shows what the thread has.
    async fn assert_shown(&self, thread: &str, case: &Value) {
        assert_eq!((&case["status"], &case["error"]), (&json!("ready"), &Value::Null), "{case:#}");
        assert_eq!(case["messages"], self.stored(thread).await, "{thread}");
    }
}

/// Returns the entries of the agents, one for each kind of answer.
fn agents() -> String {
    let streams = "stream = 'answer'";
    let look = json!({ "type": "text", "text": "Let me <b>look</b>." });
    let call =
        json!({ "type": "tool_call", "id": "c1", "name": "bash", "arguments": { "command": "ls -la" } });
    let output = json!({ "type": "tool_result", "id": "c1", "result": "one\ntwo" });
    let result = json!({ "type": "result", "text": "the answer" });
    let words = WORDS.map(|word| prints(&[json!({ "type": "text", "text": word })]));
    let whole = prints(&[json!({ "type": "result", "text": WORDS.concat() })]);
    [
        reporting_agent(&prints(&[look, call, output, result]), streams).replace("test:sh", "test:tools"),
        reporting_agent(&format!("{}{whole}", words.join("sleep 0.8; ")), streams)
            .replace("test:sh", "test:slow"),
        shell_agent("exit 3", "").replace("test:sh", "test:fails"),
    ]
    .concat()
}

/// Returns the values that a page has shown, and the milliseconds from the first to the last.
fn kept(list: &Value) -> (Vec<&str>, f64) {
    let list = list.as_array().unwrap();
    let at = |entry: Option<&Value>| entry.unwrap()["at"].as_f64().unwrap();
    let values = list.iter().map(|entry| entry["value"].as_str().unwrap()).collect();
    (values, at(list.last()) - at(list.first()))
}

fn assert_signed_in(case: &Value) {
    assert!(case["refused"]["error"].as_str().unwrap().contains("unauthenticated"), "control: {case:#}");
    assert_eq!(case["principal"], "app");
    assert_eq!(case["cookies"], json!([["sluice_session", "/", true, "Strict"]]));
    assert_eq!(case["readable"], json!({ "cookie": "", "token": false }), "scripts read neither");
}

async fn assert_text(site: &Site, case: &Value) {
    site.assert_shown("text", case).await;
    let answers = case["messages"].as_array().unwrap().iter().map(|message| message[2].clone());
    let texts = ["one", "user:one", "two", "user:one|assistant:user:one|user:two"];
    assert!(answers.eq(texts.map(|text| json!([["text", text]]))), "{case:#}");
    let [first, second] = [0, 1].map(|index| &case["regenerated"][index]["messages"][1]);
    assert_eq!(first[2], second[2]);
    assert_ne!(first[0], second[0], "a second run gave the second answer");
    assert_eq!(case["restored"]["messages"], case["messages"], "after a reload");
}

/// Checks that a page showed the words as they came, not at once. It began with the first `words` of them.
fn assert_streamed(case: &Value, words: usize) {
    let (texts, milliseconds) = kept(&case["shown"]["texts"]);
    let beginnings: Vec<_> = (1..=WORDS.len()).map(|count| WORDS[..count].concat()).collect();
    let counts = texts.iter().map(|text| beginnings.iter().position(|beginning| beginning == text));
    let counts: Option<Vec<_>> = counts.collect();
    let counts = counts.unwrap_or_else(|| panic!("no beginning of the answer: {texts:?}"));
    assert!(counts.is_sorted() && counts[0] + 1 >= words && counts.len() + words >= 4, "{texts:?}");
    assert!(milliseconds > 1000.0, "{case:#}");
    let (statuses, _) = kept(&case["shown"]["statuses"]);
    assert!(statuses.ends_with(&["streaming", "ready"]), "{statuses:?}");
}

/// Checks that nothing was done for a page of another origin, though the browser sent the cookie.
async fn assert_refused(site: &Site, case: &Value) {
    assert!(case["error"].as_str().unwrap().contains("wrong_site"), "{case:#}");
    let forged = json!({ "json": "TypeError", "text": "TypeError", "form": 0, "read": "TypeError" });
    assert_eq!(case["forged"], forged, "no answer can be read");
    let control = json!({ "json": 200, "text": 415, "form": 415, "read": 200 });
    assert_eq!(case["control"], control, "the same from the own origin");
    let sent = [
        "POST /api/v1/ai/chat 403 same-origin cookie",
        "OPTIONS /api/v1/ai/chat 403 same-site -",
        "POST /api/v1/ai/chat 403 same-site cookie",
        "POST /api/v1/ai/chat 403 same-site cookie",
        "GET /api/v1/session 403 same-site cookie",
    ];
    assert_eq!(site.page.requests_of_other_origin(), sent);
    for thread in FORGED {
        let answer = site.app.get(&format!("/api/v1/threads/{thread}")).await;
        assert_eq!(answer.status, 404, "{thread}: {}", answer.text());
    }
}

async fn check(site: &Site, case: &Value) {
    match case["case"].as_str().unwrap() {
        "sign-in" => assert_signed_in(case),
        "text" => assert_text(site, case).await,
        "tools" => {
            site.assert_shown("tools", case).await;
            let tool = json!(["bash", "c1", "output-available", { "command": "ls -la" }, "one\ntwo"]);
            let parts = json!([["text", "Let me <b>look</b>."], tool, ["text", "the answer"]]);
            assert_eq!(case["messages"][1][2], parts);
        }
        "streams" => {
            site.assert_shown("streams", case).await;
            assert_streamed(case, 1);
        }
        "resume" => {
            site.assert_shown("resume", case).await;
            assert_streamed(case, 2);
        }
        "error" => {
            assert_eq!(case["status"], "error");
            assert!(case["error"].as_str().unwrap().contains("ended with exit code 3"), "{case:#}");
            assert_eq!(case["messages"], site.stored("error").await);
        }
        "stop" => {
            site.assert_shown("stop", case).await;
            let run = format!("/api/v1/runs/{}", case["messages"][1][0].as_str().unwrap());
            let state = || async { site.app.get(&run).await.json()["state"].clone() };
            eventually("the run is cancelled", state, |state| state == "cancelled").await;
        }
        "other" => assert_refused(site, case).await,
        "sign-out" => {
            assert!(case["error"].as_str().unwrap().contains("unauthenticated"), "{case:#}");
            assert_eq!((&case["before"], &case["after"]), (&json!(1), &json!(0)), "cookies");
        }
        other => panic!("no case {other}"),
    }
}

#[tokio::test]
async fn use_chat_in_chromium_shows_the_thread() {
    let site = Site::start().await;
    let cases = site.page.chats(&site.token).await;
    assert!(cases.iter().map(|case| &case["case"]).eq(&CASES), "{cases:?}");
    for case in &cases {
        check(&site, case).await;
    }
    site.end().await;
}

#[tokio::test]
async fn a_killed_browser_test_leaves_no_process() {
    let site = Site::start().await;
    site.page.kill_chats(&site.token).await;
    site.end().await;
}
