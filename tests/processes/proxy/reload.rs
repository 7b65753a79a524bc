//! Tests that the configuration is read again while calls go on: all of it or nothing.

use std::fs;

use harness::{CANARY_KEY, Up, World, eventually, private_file};
use http::Method;
use platform_runtime::settings::Settings;
use rustix::process::Signal;
use serde_json::{Value, json};

/// Asks for a reload; returns the answer's status and document.
async fn reload(world: &World) -> (u16, Value) {
    let answer = world.control.send(Method::POST, "/v1/reload", String::new()).await;
    (answer.status.as_u16(), answer.json())
}

fn append(world: &World, toml: &str) {
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), format!("{config}\n{toml}\n")).unwrap();
}

fn shown(world: &World) -> String {
    world.upstream.ledger().last().unwrap().header("authorization")[0].to_owned()
}

#[tokio::test]
async fn the_key_rotates_without_a_dropped_call() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let stream = run.agent.stream("fake-words20-gap50ms").await;
    assert_eq!(reload(&world).await, (200, json!({ "changed": [], "not_open": [] })));
    private_file(&world.path().join("key"), "sk-second");
    run.agent.chat("fake").await;
    assert_eq!(shown(&world), format!("Bearer {CANARY_KEY}"), "a file alone changes nothing");
    let outcome = world.sluice().run(&["reload"]).await;
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (Some(0), "changed   upstream.key_file (its content)\n")
    );
    run.agent.chat("fake").await;
    assert_eq!(shown(&world), "Bearer sk-second");
    let (text, ended) = stream.until_break().await;
    assert!(ended.is_ok() && text.ends_with("data: [DONE]\n\n"), "{text}");
    // The doctor's question to the upstream goes with it as well.
    world.control.send(Method::GET, "/v1/upstream", String::new()).await;
    assert_eq!(shown(&world), "Bearer sk-second");
    let log = world.log();
    assert!(!log.contains(CANARY_KEY) && !log.contains("sk-second"), "{log}");
}

/// The reload reports every mistake.
#[tokio::test]
async fn a_bad_reload_changes_nothing() {
    let mut world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let good = fs::read_to_string(world.config()).unwrap();
    world.reconfigure("drain_timeout = '2s'", "drain_timeout = 'soon'");
    append(&world, "[accounts.acct-1]\nrequests = 1\ncolour = 'red'");
    private_file(&world.path().join("key"), "two words");
    let (status, problem) = reload(&world).await;
    let message = problem["error"]["message"].as_str().unwrap();
    assert_eq!((status, &problem["error"]["code"]), (409, &json!("reload_refused")));
    for words in ["has 3 errors", "proxy.drain_timeout", "accounts.acct-1.colour", "upstream.key_file"] {
        assert!(message.contains(words), "{words} is not in {message}");
    }
    assert!(!message.contains("two words"), "{message}");
    world.signal_proxy(Signal::HUP);
    let logged = || async { world.log().matches("not reloaded").count() };
    eventually("the log says so, too", logged, |count| *count == 2).await;
    for _ in 0..2 {
        assert_eq!(run.agent.chat("fake").await.status, 200, "what held holds on");
    }
    assert_eq!(shown(&world), format!("Bearer {CANARY_KEY}"));

    private_file(&world.path().join("key"), CANARY_KEY);
    fs::write(world.config(), good).unwrap();
    world.reconfigure("threads = 2", "threads = 3\nlisten = '127.0.0.1:0'");
    let (status, problem) = reload(&world).await;
    let message = problem["error"]["message"].as_str().unwrap();
    assert_eq!(status, 409);
    assert!(message.contains("proxy.listen, proxy.threads needs a restart"), "{message}");
    assert!(world.stop_proxy().await);
}

/// Changes limits, prices and fields of bodies.
#[tokio::test]
async fn a_reload_applies_to_later_calls() {
    let world = World::with("[accounts.acct-2]\nrequests = 5").await;
    let (first, second) = (world.run("r1", "acct-1").await, world.run("r2", "acct-2").await);
    let body = json!({ "model": "fake", "messages": [{ "role": "user", "content": "hi" }], "colour": "red" });
    assert_eq!(first.agent.post("/v1/chat/completions", &body).await.status, 400);
    // An operator's limit of an account stays, unless the configuration says something else of that account.
    for account in ["acct-1", "acct-2"] {
        let said = world.sluice().run(&["limit", "--account", account, "--requests", "50"]).await;
        assert_eq!(said.code, Some(0), "{said:?}");
    }
    world.reconfigure("threads = 2", "threads = 2\nextra_body_fields = ['colour']");
    world.reconfigure("requests = 5", "requests = 1");
    append(&world, "[prices.fake]\ninput = '1'\noutput = '2'");
    world.signal_proxy(Signal::HUP);
    let reloaded = || async { world.log().contains("\"reloaded\"") };
    eventually("it is reloaded", reloaded, |done| *done).await;
    assert_eq!(first.agent.post("/v1/chat/completions", &body).await.status, 200);
    assert_eq!(second.agent.chat("fake").await.status, 200);
    assert_eq!(second.agent.chat("fake").await.json()["error"]["code"], "quota_exhausted");
    let accounts = world.sluice().run(&["usage", "--account", "acct-1", "--json"]).await;
    assert!(accounts.stdout.contains("50"), "{accounts:?}");
    let record = world.records(2).await.into_iter().find(|line| line.record.status == 200).unwrap().record;
    assert!(record.cost_nanodollars.is_some(), "{record:?}");
}

#[tokio::test]
async fn up_hands_a_hangup_on_to_its_proxy() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice()).await;
    private_file(&world.path().join("key"), "sk-second");
    let pid = rustix::process::Pid::from_raw(up.child.id().unwrap().cast_signed()).unwrap();
    rustix::process::kill_process(pid, Signal::HUP).unwrap();
    let run = world.run("r1", "acct-1").await;
    let key = || async {
        run.agent.chat("fake").await;
        shown(&world)
    };
    eventually("the new key is used", key, |key| key == "Bearer sk-second").await;
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
}

/// The answer to a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Answered {
    /// The proxy takes it.
    ByProxy,
    /// The proxy refuses the whole reload.
    Refused,
    /// `sluice up` takes it, and the proxy names it.
    ByUp,
    /// `sluice up` says that it stays as it is, and the proxy passes over it.
    Later,
}

/// Returns a change in each section: the section, what is replaced or else added, the setting that changes, the answer.
fn changes(root: &str) -> Vec<(&'static str, String, &'static str, Answered)> {
    use Answered::{ByProxy, ByUp, Later, Refused};
    let change = |section, text: &str, key, answered| (section, text.replace("ROOT", root), key, answered);
    vec![
        change("accounts", "[accounts.a]\nrequests = 9", "accounts.a.requests", ByProxy),
        change("agents", "[agents.'a:b']\nimage = 'a:1'\nargv = ['a']", "agents.a:b", ByUp),
        change(
            "agents_repository",
            "[agents_repository]\nurl = 'https://git.example/a/b'",
            "agents_repository.url",
            ByUp,
        ),
        change("api", "[api]\nlisten = '127.0.0.1:4199'", "api.listen", Later),
        change("billing", "[billing]\nfree_models = ['fake']", "billing.free_models", ByUp),
        change("connections", "[connections]\nrefresh_before = '9s'", "connections.refresh_before", Later),
        change(
            "gateways",
            "[gateways.g]\nmax_concurrent_sessions = 3",
            "gateways.g.max_concurrent_sessions",
            Later,
        ),
        change("github", "[github]\napp_id = 1\napp_key_file = 'ROOT/key'", "github.app_id", Later),
        change("journal", "[journal]\nretention = '9days'", "journal.retention", Refused),
        change("models", "[models.fake]\ncontext_window = 9000", "models.fake.context_window", ByUp),
        change("prices", "[prices.fake]\ninput = '1'\noutput = '2'", "prices.fake", ByProxy),
        change("proxy", "[proxy]\nkeep_alive_timeout = '9s'", "proxy.keep_alive_timeout", ByProxy),
        change("relay", "[relay]\nwait = '9s'", "relay.wait", ByUp),
        change("runs", "[runs.r9]\naccount = 'a'\nsocket = 'ROOT/r9/llm.sock'", "runs.r9", ByProxy),
        change("sandbox", "[sandbox]\ndisk_reserve = '1 GiB'", "sandbox.disk_reserve", Later),
        change("store", "[store]\nevent_retention = '9days'", "store.event_retention", Later),
        change(
            "telemetry",
            "[telemetry]\notlp_endpoint = 'http://127.0.0.1:9'",
            "telemetry.otlp_endpoint",
            Later,
        ),
        change("tools", "[tools]\nmax_calls = 9", "tools.max_calls", Later),
        change(
            "upstream",
            "[upstream]\npool_max_idle_per_thread = 9",
            "upstream.pool_max_idle_per_thread",
            Refused,
        ),
        change("worker", "[worker]\nmax_concurrent_runs = 3", "worker.max_concurrent_runs", Later),
    ]
}

/// An operator changes one setting in every section of the schema, one after the other, and asks proxy and `sluice up`
/// to read the configuration again. The process that the section belongs to answers for it. `sluice up` follows the
/// proxy by itself.
#[tokio::test]
async fn a_change_in_each_section_is_answered() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let log = world.path().join("up.log");
    let up = Up::start(world.sluice().env("SLUICE_LOG", "info").log_to(&log)).await;
    let pid = rustix::process::Pid::from_raw(up.child.id().unwrap().cast_signed()).unwrap();
    let good = fs::read_to_string(world.config()).unwrap();
    let changes = changes(&world.path().display().to_string());
    let schema = Settings::json_schema();
    let sections: Vec<_> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(
        sections,
        changes.iter().map(|(section, ..)| *section).collect::<Vec<_>>(),
        "a section is not in the table"
    );

    let end_of_log = || fs::read_to_string(&log).unwrap().len();
    let read_again = async |before: usize| {
        let said = || async { fs::read_to_string(&log).unwrap()[before..].to_owned() };
        let over = |said: &String| {
            said.contains("agents are those of the configuration") || said.contains("not reloaded")
        };
        eventually("`sluice up` has read it", said, over).await
    };
    for (section, text, key, answered) in changes {
        let heading = format!("[{section}]\n");
        let changed = match good.contains(&heading) {
            true => good.replace(&heading, &format!("{text}\n")),
            false => format!("{good}\n{text}\n"),
        };
        fs::write(world.config(), changed).unwrap();
        let before = end_of_log();
        let (status, answer) = reload(&world).await;
        let told = answer.to_string();
        match answered {
            Answered::ByProxy | Answered::ByUp => {
                assert!(status == 200 && told.contains(key), "{key}: {told}")
            }
            Answered::Refused => {
                assert!(status == 409 && told.contains(&format!("{key} needs a restart")), "{key}: {told}");
            }
            Answered::Later => {
                assert_eq!(answer, json!({ "changed": [], "not_open": [] }), "{key}")
            }
        }
        if answered == Answered::Refused {
            rustix::process::kill_process(pid, Signal::HUP).unwrap();
        }
        let said = read_again(before).await;
        let stays = said.contains(&format!("\"key\":\"{key}\"")) && said.contains("keeps its value");
        assert_eq!(stays, answered == Answered::Later, "{key}: {said}");
        assert_eq!(said.contains("not reloaded"), answered == Answered::Refused, "{key}: {said}");
        assert_eq!(said.contains("a:b added"), section == "agents", "agents that changed are named: {said}");
        assert!(!said.contains("Reloaded {"), "{key}: {said}");
        fs::write(world.config(), &good).unwrap();
        let before = end_of_log();
        assert_eq!(reload(&world).await.0, 200);
        read_again(before).await;
    }
    assert_eq!(up.stop(Signal::TERM).await.0, Some(0));
}
