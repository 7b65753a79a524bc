//! Tests the dashboard's part of the HTTP API: its pages, the link that signs a browser in, and what browsers report.

use std::fs;

use harness::{Agent, Answer, canary, served::served, shell_agents::shell_agent};
use http::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::orders::{Served, assert_problem};

const SESSION: &str = "/api/v1/session";
const LINK: &str = "/api/v1/session/link";
const REPORTS: &str = "/api/v1/csp-reports";
const OPERATOR: [&str; 5] = ["boss", "--account", "acct-1", "--role", "operator"];
const PAGES: [&str; 11] = [
    "/",
    "/sandbox",
    "/sandbox/",
    "/sandbox/r1",
    "/chat/t1",
    "/accounts",
    "/agents/x",
    "/approvals",
    "/gateways/g/x",
    "/system",
    "/signin",
];

/// Returns the setting with which a command finds the API, which has chosen its port.
fn listen(there: &Served) -> String {
    format!("api.listen={}", there.url().strip_prefix("http://").unwrap())
}

/// Returns the code of a new link for a principal.
async fn code(there: &Served, principal: &str) -> String {
    let printed =
        there.world.sluice().run(&["dashboard", "--set", &listen(there), "--principal", principal]).await;
    assert_eq!(printed.code, Some(0), "{printed:?}");
    let begin = format!("{}/signin#code=", there.url());
    let code = printed.stdout.trim().strip_prefix(&begin).unwrap_or_else(|| panic!("{printed:?}")).to_owned();
    assert_eq!(code.len(), 64, "{code}");
    canary::hand_out(&code);
    code
}

/// Returns the API as a page of this origin calls it.
fn page(there: &Served, origin: &str) -> Agent {
    there.api.clone().with_header("origin", origin)
}

async fn redeem(page: &Agent, code: &str) -> Answer {
    page.post(LINK, &json!({ "code": code })).await
}

async fn metric(there: &Served, series: &str) -> u64 {
    let text = there.api.get("/metrics").await.text();
    let line =
        text.lines().find_map(|line| line.strip_prefix(series)).unwrap_or_else(|| panic!("{series}: {text}"));
    line.trim().parse().unwrap()
}

#[tokio::test]
async fn every_page_is_hardened() {
    let there = Served::with("").await;
    for method in [Method::GET, Method::HEAD] {
        for path in PAGES {
            let answer = there.api.request(method.clone(), path, "".into()).await.unwrap();
            // Whether the dashboard was built, is another matter.
            assert!([200, 503].contains(&answer.status.as_u16()), "{method} {path}: {}", answer.status);
            let policy = answer.headers["content-security-policy"].to_str().unwrap();
            for rule in [
                "default-src 'none'",
                "script-src 'self'",
                "frame-ancestors 'none'",
                "report-uri /api/v1/csp-reports",
            ] {
                assert!(policy.contains(rule), "{path}: {policy}");
            }
            for (name, value) in [
                ("x-frame-options", "DENY"),
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "no-referrer"),
                ("cross-origin-opener-policy", "same-origin"),
                ("cache-control", "no-store"),
            ] {
                assert_eq!(answer.headers[name], value, "{path}: {name}");
            }
        }
    }
    for unknown in ["/sandboxes", "/studio", "/favicon.ico", "/index.html", "/api/v1/sandbox"] {
        assert_problem(&there.api.get(unknown).await, 404, "not_found");
    }
    let posted = there.api.request(Method::POST, "/sandbox", "{}".into()).await.unwrap();
    assert_problem(&posted, 405, "method_not_allowed");
    there.end().await;
}

#[tokio::test]
async fn no_path_leaves_the_assets() {
    let there = Served::with("").await;
    for path in [
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/index.html",
        "/assets/..%5cindex.html",
        "/assets/%2fetc%2fpasswd",
        "/assets/x%00.js",
        "/assets/none.js",
    ] {
        let answer = there.api.get(path).await;
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        assert_eq!(answer.headers["x-content-type-options"], "nosniff", "{path}");
    }
    assert_eq!(there.api.get("/assets").await.status, 404);
    there.end().await;
}

#[tokio::test]
async fn pages_open_by_links_and_in_no_frame() {
    let there = Served::with("").await;
    let from_elsewhere = |mode: &str, dest: &str| {
        let api = there.api.clone().with_header("sec-fetch-site", "cross-site");
        api.with_header("sec-fetch-mode", mode).with_header("sec-fetch-dest", dest)
    };
    let link = from_elsewhere("navigate", "document");
    assert_ne!(link.get("/sandbox").await.status, 403, "a person follows a link");
    assert_problem(&link.get("/api/v1/ai/agents").await, 403, "wrong_site");
    for (mode, dest) in [("navigate", "iframe"), ("navigate", "embed"), ("no-cors", "script")] {
        assert_problem(&from_elsewhere(mode, dest).get("/sandbox").await, 403, "wrong_site");
    }
    for (host, is_own) in [("attacker.example", false), ("localhost:4180", true)] {
        let mut wire = there.api.connect().await.unwrap();
        let request = format!("GET /sandbox HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        wire.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        wire.read_to_string(&mut answer).await.unwrap();
        assert_eq!(answer.starts_with("HTTP/1.1 421 "), !is_own, "{host}: {answer}");
    }
    there.end().await;
}

#[tokio::test]
async fn a_link_signs_in_once() {
    let there = Served::with("").await;
    there.token(&OPERATOR).await;
    let code = code(&there, "boss").await;
    let own = page(&there, &there.url());
    let answer = redeem(&own, &code).await;
    let me = json!({ "principal": "boss", "account": "acct-1", "role": "operator" });
    assert_eq!((answer.status.as_u16(), answer.json()), (201, me.clone()));
    let cookie = answer.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "its attributes");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    canary::hand_out(cookie.split_once('=').unwrap().1);
    let browser = there.api.clone().with_header("cookie", &cookie);
    assert_eq!(browser.get(SESSION).await.json(), me);
    assert_problem(&redeem(&own, &code).await, 401, "link_invalid");
    assert_eq!(browser.get(SESSION).await.json(), me, "the session goes on");
    let log = fs::read_to_string(there.world.path().join("up.log")).unwrap();
    assert!(!log.contains(&code), "no log has the code");
    assert_eq!(metric(&there, "sluice_sign_ins_total{way=\"link\",result=\"accepted\"}").await, 1);
    assert_eq!(metric(&there, "sluice_sign_ins_total{way=\"link\",result=\"refused\"}").await, 1);
    there.end().await;
}

/// A page of another origin that knows a code could sign the person in as its own principal.
#[tokio::test]
async fn only_an_own_page_redeems_a_link() {
    let there = Served::with("").await;
    there.token(&OPERATOR).await;
    let code = code(&there, "boss").await;
    let by_name = there.url().replace("127.0.0.1", "localhost");
    for (origin, refusal) in [
        ("http://127.0.0.1:3000", "wrong_site"),
        (by_name.as_str(), "wrong_site"),
        ("https://attacker.example", "wrong_site"),
        ("null", "wrong_site"),
    ] {
        assert_problem(&redeem(&page(&there, origin), &code).await, 403, refusal);
    }
    assert_problem(&redeem(&there.api, &code).await, 403, "wrong_origin");
    let own = page(&there, &there.url());
    let same_site = own.clone().with_header("sec-fetch-site", "same-site");
    assert_problem(&redeem(&same_site, &code).await, 403, "wrong_origin");
    let form = own.clone().with_header("content-type", "text/plain");
    let sent = form.request(Method::POST, LINK, json!({ "code": code }).to_string().into()).await.unwrap();
    assert_problem(&sent, 415, "unsupported_media_type");
    for wrong in [json!({}), json!({ "code": 1 }), json!({ "code": code, "as": "admin" })] {
        assert_problem(&own.post(LINK, &wrong).await, 400, "invalid_request");
    }
    assert_eq!(redeem(&own, &code).await.status, 201, "control: none of them used it up");
    there.end().await;
}

#[tokio::test]
async fn a_link_ends_with_its_principal() {
    let there = Served::with("").await;
    there.token(&OPERATOR).await;
    let own = page(&there, &there.url());
    let [first, second] = [code(&there, "boss").await, code(&there, "boss").await];
    assert_eq!(redeem(&own, &first).await.status, 201, "control");
    let revoked = there.world.sluice().run(&["principals", "revoke", "boss"]).await;
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert_problem(&redeem(&own, &second).await, 401, "link_invalid");
    let none =
        there.world.sluice().run(&["dashboard", "--set", &listen(&there), "--principal", "boss"]).await;
    assert_eq!(none.code, Some(1), "{none:?}");
    there.end().await;
}

/// A stranger who tries does not lock people out.
#[tokio::test]
async fn wrong_links_and_tokens_are_limited() {
    let there = Served::with("").await;
    let token = there.token(&OPERATOR).await;
    let code = code(&there, "boss").await;
    let own = page(&there, &there.url());
    let wrong = there.api.clone().with_header("authorization", "Bearer sk-wrong");
    let mut limited = None;
    for _ in 0..40 {
        let by_link = redeem(&own, &"0".repeat(64)).await;
        let by_token = wrong.post(SESSION, &Value::Null).await;
        if by_link.status == 429 && by_token.status == 429 {
            limited = Some((by_link, by_token));
            break;
        }
    }
    let (by_link, by_token) = limited.expect("they are limited");
    for answer in [by_link, by_token] {
        assert_problem(&answer, 429, "too_many_attempts");
        assert!(answer.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    }
    assert_eq!(redeem(&own, &code).await.status, 201, "control: a right one is accepted");
    assert_eq!(
        there.authorized(&token).post(SESSION, &Value::Null).await.status,
        201,
        "control: and a token"
    );
    for way in ["link", "token"] {
        assert!(
            metric(&there, &format!("sluice_sign_ins_total{{way=\"{way}\",result=\"limited\"}}")).await > 0
        );
    }
    there.end().await;
}

#[tokio::test]
async fn a_command_says_why_it_has_no_link() {
    let there = Served::with("").await;
    assert!(there.up.said.contains("dashboard `sluice dashboard` prints a link"), "{}", there.up.said);
    let listen = listen(&there);
    let run = async |arguments: &[&str]| {
        let outcome = there.world.sluice().run(&[&["dashboard"], arguments].concat()).await;
        (outcome.code, outcome.stderr)
    };
    let (code, said) = run(&["--set", &listen]).await;
    assert!(code == Some(2) && said.contains("sluice principals add"), "{code:?} {said}");
    there.token(&["reader", "--account", "acct-1", "--role", "viewer"]).await;
    assert_eq!(run(&["--set", &listen]).await.0, Some(2), "a viewer does not see everything");
    there.token(&OPERATOR).await;
    let printed = there.world.sluice().run(&["dashboard", "--set", &listen, "--json"]).await.result();
    assert_eq!(
        (&printed["principal"], &printed["expiresSeconds"]),
        (&json!("boss"), &json!(120)),
        "the only one"
    );
    there.token(&["chief", "--account", "acct-1", "--role", "admin"]).await;
    let (code, said) = run(&["--set", &listen]).await;
    assert!(
        code == Some(2) && said.contains("boss, chief") && said.contains("--principal"),
        "{code:?} {said}"
    );
    let (code, said) = run(&[]).await;
    assert!(code == Some(2) && said.contains("port 0"), "{code:?} {said}");
    let (code, said) = run(&["--set", "api.listen=127.0.0.1:9"]).await;
    assert!(code == Some(69) && said.contains("sluice up"), "{code:?} {said}");
    there.end().await;
}

#[tokio::test]
async fn reports_of_browsers_are_shown_to_operators() {
    let there = Served::with("").await;
    let report = |blocked: &str| {
        let report = json!({ "document-uri": format!("{}/sandbox", there.url()), "effective-directive": "script-src-elem", "blocked-uri": blocked });
        json!({ "csp-report": report }).to_string()
    };
    let send = async |headers: &[(&str, &str)], body: String| {
        let api = there.api.clone().with_header("content-type", "application/csp-report");
        let api = headers.iter().fold(api, |api, (name, value)| api.with_header(name, value));
        api.request(Method::POST, REPORTS, body.into()).await.unwrap()
    };
    // A browser names no origin of a page without referrers.
    let own = [("origin", "null"), ("sec-fetch-site", "same-origin")];
    assert_eq!(send(&own, report("inline")).await.status, 204);
    assert_eq!(send(&own, report("\u{1b}]52;c;x\u{7}")).await.status, 204);
    for foreign in [
        &[("origin", "https://attacker.example")][..],
        &[("origin", "null")],
        &[("origin", "null"), ("sec-fetch-site", "cross-site")],
    ] {
        assert_problem(&send(foreign, report("planted")).await, 403, "wrong_site");
    }
    assert_problem(&send(&own, "{}".to_owned()).await, 400, "invalid_request");
    assert_problem(&send(&own, " ".repeat(40_000)).await, 413, "too_large");
    let doctor = there.world.sluice().run(&["doctor"]).await;
    assert!(doctor.stdout.contains("script-src-elem blocked inline on"), "{doctor:?}");
    assert!(!doctor.stdout.contains(['\u{1b}', '\u{7}']) && !doctor.stdout.contains("planted"), "{doctor:?}");
    let boss = there.principal(&OPERATOR).await;
    let system = boss.get("/api/v1/system").await.json();
    let findings = system["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["part"] == "dashboard"), "{system}");
    let mut last = 204;
    for number in 0..60 {
        last = send(&own, report(&format!("https://h/{number}"))).await.status.as_u16();
    }
    assert_eq!(last, 429, "they are limited");
    assert!(metric(&there, "sluice_csp_reports_total{result=\"kept\"}").await >= 2);
    assert!(metric(&there, "sluice_csp_reports_total{result=\"dropped\"}").await > 0);
    there.end().await;
}

#[tokio::test]
async fn operators_see_the_state_of_all_parts() {
    let there = Served::with("").await;
    let boss = there.principal(&OPERATOR).await;
    let reader = there.of_role("reader", "acct-1", "member").await;
    let system = boss.get("/api/v1/system").await.json();
    for (at, expected) in [
        ("/ready", json!(true)),
        ("/store/state", json!("ok")),
        ("/docker/state", json!("ok")),
        ("/dataPlane/state", json!("ready")),
        ("/dataPlane/upstream", json!("up")),
        ("/journal/state", json!("open")),
        ("/queue/waiting", json!(0)),
        ("/findings", json!([])),
    ] {
        assert_eq!(system.pointer(at), Some(&expected), "{at}: {system}");
    }
    assert_problem(&reader.get("/api/v1/system").await, 403, "forbidden");
    let settings = reader.get("/api/v1/dashboard").await.json();
    assert_eq!((&settings["traceUrl"], &settings["githubHost"]), (&Value::Null, &json!("github.com")));
    there.end().await;
}

#[tokio::test]
async fn a_gateway_is_checked_as_by_the_command() {
    let there = Served::with("[gateways.coding]\n").await;
    let boss = there.principal(&OPERATOR).await;
    let checked = boss.get("/api/v1/gateways/coding/check").await.json();
    let outcome = there.world.sluice().run(&["gateway", "check", "--json", "coding"]).await;
    let by_command: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let codes = |findings: &Value| -> Vec<Value> {
        findings.as_array().unwrap().iter().map(|finding| finding["code"].clone()).collect()
    };
    assert_eq!(
        codes(&checked["findings"]),
        codes(&by_command["gateways"][0]["findings"]),
        "{checked} {outcome:?}"
    );
    assert_ne!(checked["state"], "ok", "control: it does not run: {checked}");
    assert_problem(&boss.get("/api/v1/gateways/none/check").await, 404, "not_found");
    there.end().await;
}

#[tokio::test]
async fn a_draft_of_an_agent_writes_nothing() {
    let there = Served::with("").await;
    let boss = there.principal(&OPERATOR).await;
    let before = fs::read_to_string(there.world.config()).unwrap();
    let draft = async |agent: &str, settings: Value| {
        boss.post("/api/v1/agents/draft", &json!({ "agentId": agent, "settings": settings })).await
    };
    let new = draft("team:new", json!({ "image": "team/new:1", "argv": ["true"] })).await.json();
    assert_eq!((&new["problems"], &new["replaces"]), (&json!([]), &json!(false)), "{new}");
    assert!(new["diff"].as_str().unwrap().contains("+[agents.\"team:new\"]"), "{new}");
    let other = draft("test:sh", json!({ "image": "team/new:1", "argv": ["true"] })).await.json();
    assert_eq!((&other["problems"], &other["replaces"]), (&json!([]), &json!(true)), "{other}");
    let wrong = draft("team:new", json!({ "image": 7, "colour": "red" })).await.json();
    assert!(wrong["diff"].is_null() && wrong["problems"].to_string().contains("colour"), "{wrong}");
    assert_problem(&draft("team:new", json!({ "a\n[api]": 1 })).await, 400, "invalid_request");
    assert_eq!(fs::read_to_string(there.world.config()).unwrap(), before);
    there.end().await;
}

#[tokio::test]
async fn a_draft_of_behaviour_writes_nothing() {
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    fs::write(dir.path().join("TOOLS.md"), "# Tools\n\nUse rg.\n").unwrap();
    std::os::unix::fs::symlink("/etc/hostname", dir.path().join("SOUL.md")).unwrap();
    let behaviour = format!("behaviour_dir = '{}'", dir.path().display());
    let agents = shell_agent("true", &behaviour) + &shell_agent("true", "").replace("test:sh", "test:plain");
    let (world, up, api) = served("", &agents).await;
    let there = Served { world, up, api };
    let boss = there.principal(&OPERATOR).await;
    let draft = async |agent: &str, file: &str, text: &str| {
        let path = format!("/api/v1/agents/{agent}/behaviour/draft");
        boss.post(&path, &json!({ "file": file, "text": text })).await
    };
    let changed = draft("test:sh", "TOOLS.md", "# Tools\n\nUse grep.\n").await.json();
    let diff = changed["diff"].as_str().unwrap();
    assert!(diff.contains("-Use rg.") && diff.contains("+Use grep."), "{changed}");
    assert!(changed["path"].as_str().unwrap().ends_with("/TOOLS.md"), "{changed}");
    let new = draft("test:sh", "AGENTS.md", "Be brief.\n").await.json();
    assert!(new["diff"].as_str().unwrap().contains("+Be brief."), "{new}");
    for (agent, file, text, problem) in [
        ("test:plain", "AGENTS.md", "x", "no `behaviour_dir`"),
        ("test:sh", "SOUL.md", "x", "only regular files"),
        ("test:sh", "USER.md", &"x".repeat((64 << 10) + 1), "shorten it"),
        ("test:sh", "USER.md", "\u{1b}[2J", "control character"),
    ] {
        let refused = draft(agent, file, text).await.json();
        assert!(refused["diff"].is_null(), "{refused}");
        assert!(refused["problem"].as_str().unwrap().contains(problem), "{refused}");
    }
    assert_problem(&draft("test:sh", "../x", "x").await, 400, "invalid_request");
    assert_problem(&draft("test:none", "AGENTS.md", "x").await, 404, "not_found");
    assert_eq!(fs::read_to_string(dir.path().join("TOOLS.md")).unwrap(), "# Tools\n\nUse rg.\n");
    assert!(!dir.path().join("AGENTS.md").exists());
    there.end().await;
}
