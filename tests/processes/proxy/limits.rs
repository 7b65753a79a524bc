//! Tests that limits hold. A call reserves what it may need before it is sent, also while other calls draw on the same
//! budget.

use std::time::Duration;

use futures_util::future::join_all;
use harness::{
    Answer, Run, World, agent::Answering, agent::body_for, agent::chat_body, eventually, grant, pace,
};
use http::Method;
use platform_core::{
    budget::{Budget, Limit, LimitView},
    grant::{CallLimits, RunGrant},
    money::NanoDollars,
    record::{CostSource, Outcome, TokensSource},
    refusal::Refusal,
    token::UnixSeconds,
};
use serde_json::{Value, json};

const CHAT: &str = "/v1/chat/completions";

fn limited(run: &str, account: &str, budget: Budget) -> RunGrant {
    RunGrant { budget, ..grant(run, account) }
}

fn code(answer: &Answer) -> (u16, Option<String>) {
    let code =
        (!answer.status.is_success()).then(|| answer.json()["error"]["code"].as_str().unwrap().to_owned());
    (answer.status.as_u16(), code)
}

fn refused(status: u16, code: &str) -> (u16, Option<String>) {
    (status, Some(code.to_owned()))
}

async fn limit(world: &World, run: &Run, limit: Limit) -> LimitView {
    let view = world.control.run(&run.grant.run_id).await.unwrap();
    view.limits.into_iter().find(|view| view.limit == limit).unwrap()
}

async fn settled(world: &World, run: &Run) -> Vec<LimitView> {
    let view = || async { world.control.run(&run.grant.run_id).await.unwrap() };
    eventually("no call is in flight", view, |view| view.in_flight == 0).await.limits
}

/// Returns the tokens of a call in these tests: the upstream counts ten for the prompt, and one for each word.
async fn tokens_of_one(world: &World) -> u64 {
    let run = world.run("measure", "measure").await;
    run.agent.chat("fake-words20").await;
    let tokens = world.records(1).await.pop().unwrap().record.tokens;
    tokens.input + tokens.output
}

#[tokio::test]
async fn parallel_calls_never_exceed_a_budget() {
    let world = World::start().await;
    let each = tokens_of_one(&world).await;
    for parallel in [8, 64, 256] {
        let name = format!("r{parallel}");
        // A limit that suffices for one call's reservation, and for the real use of five.
        let total_tokens = Some(5 * each + 9000);
        let run =
            world.run_with(limited(&name, "acct-1", Budget { total_tokens, ..Budget::default() })).await;
        let answers = join_all((0..parallel).map(|_| run.agent.chat("fake-words20"))).await;
        let codes: Vec<_> = answers.iter().map(code).collect();
        let passed = codes.iter().filter(|(status, _)| *status == 200).count();
        assert!(passed >= 1, "{codes:?}");
        assert!(
            codes.iter().all(|code| code.0 == 200 || *code == refused(429, "quota_reserved")),
            "short only because others hold it: {codes:?}"
        );
        for view in settled(&world, &run).await {
            assert_eq!(view.reserved, 0, "{view:?}");
            assert!(view.allowed.is_none_or(|allowed| view.used <= allowed), "{view:?}");
        }
        assert_eq!(limit(&world, &run, Limit::TotalTokens).await.used, passed as u64 * each);
    }
    // Control: without a limit all of them pass.
    let run = world.run("free", "acct-1").await;
    let answers = join_all((0..64).map(|_| run.agent.chat("fake-words20"))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
}

#[tokio::test]
async fn an_exhausted_budget_refuses_finally() {
    let world = World::start().await;
    let budget = Budget { total_tokens: Some(3000), ..Budget::default() };
    let run = world.run_with(limited("r1", "acct-1", budget)).await;
    let mut used = 0;
    let last = loop {
        let answer = run.agent.chat("fake-words20").await;
        if answer.status != 200 {
            break answer;
        }
        let now = limit(&world, &run, Limit::TotalTokens).await;
        assert!(now.used > used && now.used <= 3000, "{now:?}");
        used = now.used;
        let asked: Value = world.upstream.ledger().last().unwrap().json().unwrap();
        assert!(asked["max_tokens"].as_u64().unwrap() < 3000, "cut down to what is left");
    };
    assert_eq!(code(&last), refused(400, "quota_exhausted"));
    assert_eq!(last.headers["x-should-retry"], "false");
    assert!(last.text().contains("total tokens") && last.text().contains("this run"), "{}", last.text());
    let record = world.journal().await.pop().unwrap().record;
    assert_eq!((record.outcome, record.refusal), (Outcome::Refused, Some(Refusal::QuotaExhausted)));
    // An operator can raise an exhausted limit.
    let more = json!({ "total_tokens": 100_000 }).to_string();
    assert_eq!(world.control.send(Method::PUT, "/v1/runs/r1/budget", more).await.status, 200);
    assert_eq!(run.agent.chat("fake").await.status, 200);
}

#[tokio::test]
async fn output_limits_use_the_name_of_each_route() {
    let world = World::start().await;
    let limits = CallLimits { output_tokens: 500, ..CallLimits::default() };
    let run = world.run_with(RunGrant { limits, ..grant("r1", "acct-1") }).await;
    let table = [
        (CHAT, json!({}), json!({ "max_tokens": 500 })),
        (CHAT, json!({ "max_tokens": 7 }), json!({ "max_tokens": 7 })),
        (CHAT, json!({ "max_tokens": null }), json!({ "max_tokens": 500 })),
        (CHAT, json!({ "max_tokens": 0 }), json!({ "max_tokens": 1 })),
        (
            CHAT,
            json!({ "max_completion_tokens": 9_000_000_000_u64 }),
            json!({ "max_completion_tokens": 500 }),
        ),
        (
            CHAT,
            json!({ "max_completion_tokens": 9000, "max_tokens": 40 }),
            json!({ "max_completion_tokens": 40, "max_tokens": 40 }),
        ),
        ("/v1/completions", json!({}), json!({ "max_tokens": 500 })),
        ("/v1/completions", json!({ "max_tokens": 501 }), json!({ "max_tokens": 500 })),
        ("/v1/responses", json!({}), json!({ "max_output_tokens": 500 })),
        ("/v1/responses", json!({ "max_output_tokens": 4096 }), json!({ "max_output_tokens": 500 })),
        ("/v1/messages", json!({ "max_tokens": 64000 }), json!({ "max_tokens": 500 })),
        ("/v1/embeddings", json!({}), json!({})),
    ];
    const NAMES: [&str; 3] = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
    for (path, asks, expected) in table {
        let mut body = body_for(path, "fake", Answering::Whole);
        body.as_object_mut().unwrap().retain(|name, _| !NAMES.contains(&name.as_str()));
        body.as_object_mut().unwrap().extend(asks.as_object().unwrap().clone());
        let answer = run.agent.post(path, &body).await;
        assert_eq!(answer.status, 200, "{path} {asks}: {}", answer.text());
        let mut seen: Value = world.upstream.ledger().last().unwrap().json().unwrap();
        seen.as_object_mut().unwrap().retain(|name, _| NAMES.contains(&name.as_str()));
        assert_eq!(seen, expected, "{path} {asks}");
        let is_less = asks.as_object().unwrap().values().filter_map(Value::as_u64).min() > Some(500);
        let told = answer.headers.get("x-sluice-output-limit").map(|tokens| tokens.to_str().unwrap());
        assert_eq!(told, is_less.then_some("500"), "{path} {asks}");
    }
    // The thinking budget must fit into the reduced `max_tokens`, or the upstream would refuse the proxy's own change.
    let mut body = body_for("/v1/messages", "fake", Answering::Whole);
    body["max_tokens"] = json!(32_000);
    body["thinking"] = json!({ "type": "enabled", "budget_tokens": 16_000 });
    assert_eq!(run.agent.post("/v1/messages", &body).await.status, 200);
    let seen: Value = world.upstream.ledger().last().unwrap().json().unwrap();
    assert_eq!((&seen["max_tokens"], &seen["thinking"]["budget_tokens"]), (&json!(500), &json!(499)));
    let answer =
        run.agent.post(CHAT, &json!({ "model": "fake", "messages": [], "max_tokens": "many" })).await;
    assert_eq!(code(&answer), refused(400, "body_invalid"));
    assert!(answer.text().contains("max_tokens"), "{}", answer.text());
}

/// A user of a run that is nearly used up learns that its limit cut the answer, and not the model.
#[tokio::test]
async fn a_short_limit_says_what_is_needed_and_left() {
    let prices = "[prices.'fake-words3']\ninput = '1000'\noutput = '1000'";
    let world = World::with(prices).await;
    let run = |name: &'static str, budget| world.run_with(limited(name, "acct-1", budget));
    let messages = json!([{ "role": "user", "content": "Hi" }]);
    let asks = |tokens: u64| json!({ "model": "fake-words3", "max_tokens": tokens, "messages": messages });
    let tokens = run("r1", Budget { total_tokens: Some(2000), ..Budget::default() }).await;
    let cut = tokens.agent.post(CHAT, &asks(5000)).await;
    assert_eq!(cut.status, 200, "{}", cut.text());
    let told: u64 = cut.headers["x-sluice-output-limit"].to_str().unwrap().parse().unwrap();
    let sent: Value = world.upstream.ledger().last().unwrap().json().unwrap();
    assert_eq!((sent["max_tokens"].as_u64(), told < 2000), (Some(told), true));
    let few = run("r2", Budget { total_tokens: Some(10), ..Budget::default() }).await;
    let money = Some(NanoDollars(10_000_000));
    let poor = run("r3", Budget { cost_nanodollars: money, ..Budget::default() }).await;
    for (run, words) in
        [(few, "of the limit of total tokens of this run, and 10 is left"), (poor, "$0.01 is left")]
    {
        let answer = run.agent.post(CHAT, &asks(5)).await;
        assert_eq!(code(&answer), refused(400, "quota_exhausted"));
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with("this call may need ") && message.ends_with(words), "{message}");
    }
    // Control: what is left is enough.
    let whole = tokens.agent.post(CHAT, &asks(5)).await;
    assert_eq!((whole.status.as_u16(), whole.headers.get("x-sluice-output-limit")), (200, None));
}

#[tokio::test]
async fn several_answers_or_prompts_count_as_several() {
    let world = World::start().await;
    let table = [
        (CHAT, json!({ "n": 4 }), 4),
        ("/v1/completions", json!({ "n": 2, "best_of": 3 }), 3),
        ("/v1/completions", json!({ "prompt": ["a", "b", "c", "d", "e"], "n": 2 }), 10),
        ("/v1/completions", json!({ "prompt": [1, 2, 3, 4] }), 1),
        ("/v1/completions", json!({ "prompt": [[1, 2], [3, 4]] }), 2),
    ];
    for (n, (path, asks, answers)) in table.into_iter().enumerate() {
        let budget = Budget { output_tokens: Some(1000), ..Budget::default() };
        let run = world.run_with(limited(&format!("r{n}"), "acct-1", budget)).await;
        let mut body = body_for(path, "fake", Answering::Whole);
        body.as_object_mut().unwrap().extend(asks.as_object().unwrap().clone());
        run.agent.post(path, &body).await;
        let seen: Value = world.upstream.ledger().last().unwrap().json().unwrap();
        assert_eq!(seen["max_tokens"], 1000 / answers, "{path} {asks}");
    }
}

#[tokio::test]
async fn rate_and_concurrency_limits_say_retry_after() {
    let world = World::start().await;
    let budget = Budget { requests_per_minute: Some(3), ..Budget::default() };
    let fast = world.run_with(limited("fast", "acct-1", budget)).await;
    let mut codes = Vec::new();
    for _ in 0..3 {
        codes.push(code(&fast.agent.chat("fake").await));
    }
    assert_eq!(codes, [(200, None), (200, None), (200, None)]);
    let answer = fast.agent.chat("fake").await;
    assert_eq!(code(&answer), refused(429, "rate_limited"));
    let wait: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=20).contains(&wait), "{wait}");

    let budget = Budget { calls_in_flight: Some(2), requests: Some(4), ..Budget::default() };
    let many = world.run_with(limited("many", "acct-1", budget)).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut stream = many.agent.stream("fake-stall1").await;
        stream.next().await.unwrap();
        held.push(stream);
    }
    let answer = many.agent.chat("fake").await;
    assert_eq!(code(&answer), refused(429, "concurrency_limited"));
    drop(held);
    settled(&world, &many).await;
    assert_eq!([many.agent.chat("fake").await.status, many.agent.chat("fake").await.status], [200, 200]);
    assert_eq!(
        code(&many.agent.chat("fake").await),
        refused(400, "quota_exhausted"),
        "four requests are made"
    );
}

/// An agent may make three calls a minute; a call that is refused before it is looked into counts as well.
#[tokio::test]
async fn refused_calls_count_against_the_rate() {
    let world = World::start().await;
    let budget = Budget { requests_per_minute: Some(3), ..Budget::default() };
    let run = world.run_with(limited("fast", "acct-1", budget)).await;
    let unknown = async |run: &Run| code(&run.agent.post("/v1/unknown", &json!({})).await);
    for _ in 0..3 {
        assert_eq!(unknown(&run).await, refused(404, "route_unknown"));
    }
    assert_eq!(unknown(&run).await, refused(429, "rate_limited"));
    assert_eq!(code(&run.agent.chat("fake").await), refused(429, "rate_limited"));
    let models = run.agent.request(Method::GET, "/v1/models", String::new().into()).await.unwrap();
    assert_eq!(code(&models), refused(429, "rate_limited"), "what is answered here is a call, too");
    // Control: without a limit.
    let free = world.run("free", "acct-1").await;
    for _ in 0..10 {
        assert_eq!(unknown(&free).await, refused(404, "route_unknown"));
    }
    assert_eq!(free.agent.chat("fake").await.status, 200);
}

/// Runs of other accounts are not affected.
#[tokio::test]
async fn an_account_limit_spans_its_runs() {
    let world = World::with("[accounts.'*']\ntotal_tokens = 100000\n[accounts.'acct-1']\nrequests = 3").await;
    let (one, two) = (world.run("r1", "acct-1").await, world.run("r2", "acct-1").await);
    let other = world.run("r3", "acct-2").await;
    for run in [&one, &two, &one] {
        assert_eq!(run.agent.chat("fake").await.status, 200);
    }
    for run in [&one, &two] {
        let answer = run.agent.chat("fake").await;
        assert_eq!(code(&answer), refused(400, "quota_exhausted"));
        assert!(answer.text().contains("this account"), "{}", answer.text());
    }
    assert_eq!(other.agent.chat("fake").await.status, 200);
    let accounts: Value = world.control.send(Method::GET, "/v1/accounts", String::new()).await.json();
    let used = |account: usize, limit: usize| accounts[account]["limits"][limit]["used"].clone();
    assert_eq!((used(0, 0), used(1, 0)), (json!(3), json!(1)), "{accounts}");
    assert_eq!(accounts[1]["limits"][5]["allowed"], 100_000, "{accounts}");
    let more = json!({ "account": "acct-1", "budget": { "requests": 4 } }).to_string();
    assert_eq!(world.control.send(Method::PUT, "/v1/accounts", more).await.status, 200);
    assert_eq!(two.agent.chat("fake").await.status, 200);
    assert_eq!(code(&one.agent.chat("fake").await), refused(400, "quota_exhausted"));
}

/// Until the configuration says something else of the account, also if it is edited while no proxy runs.
#[tokio::test]
async fn a_set_account_limit_outlasts_restarts() {
    let mut world = World::with("[accounts.'acct-8']\nrequests = 100").await;
    for (account, requests) in [("acct-7", 1), ("acct-8", 1)] {
        let limits = json!({ "account": account, "budget": { "requests": requests } }).to_string();
        let answer = world.control.send(Method::PUT, "/v1/accounts", limits).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let used_up = world.run("r1", "acct-7").await;
    assert_eq!(used_up.agent.chat("fake").await.status, 200, "control: within its limit");
    assert_eq!(code(&used_up.agent.chat("fake").await), refused(400, "quota_exhausted"));

    assert!(world.stop_proxy().await);
    world.start_proxy().await;
    assert_eq!(code(&used_up.agent.chat("fake").await), refused(400, "quota_exhausted"));
    let anew = world.run("r2", "acct-7").await;
    assert_eq!(code(&anew.agent.chat("fake").await), refused(400, "quota_exhausted"), "another run, too");
    let unlimited = world.run("r3", "acct-9").await;
    assert_eq!(unlimited.agent.chat("fake").await.status, 200, "control: an account without a limit");

    assert!(world.stop_proxy().await);
    world.reconfigure("requests = 100", "requests = 50");
    world.start_proxy().await;
    let accounts: Value = world.control.send(Method::GET, "/v1/accounts", String::new()).await.json();
    let allowed = |account: &str| {
        let view = accounts.as_array().unwrap().iter().find(|view| view["account"] == account).unwrap();
        view["limits"][0]["allowed"].clone()
    };
    assert_eq!((allowed("acct-7"), allowed("acct-8")), (json!(1), json!(50)), "{accounts}");
}

/// The higher of the upstream's own figure and the table's counts in the end.
#[tokio::test]
async fn cost_is_reserved_by_price_then_corrected() {
    let prices = "[prices.'fake-cost']\ninput = '1000'\noutput = '1000'\n[prices.'fake-words20']\ninput = '1'\noutput = '2'\n\
        [prices.'fake-free']\ninput = '1'\noutput = '2'";
    let world = World::with(prices).await;
    let budget = Budget { cost_nanodollars: Some(NanoDollars(20_000_000_000)), ..Budget::default() };
    let run = world.run_with(limited("r1", "acct-1", budget)).await;
    let answer = run.agent.chat("fake").await;
    assert_eq!(code(&answer), refused(400, "model_unpriced"));
    assert!(world.upstream.ledger().is_empty());

    run.agent.chat("fake-words20").await;
    let priced = world.records(2).await.pop().unwrap().record;
    let cost = NanoDollars(priced.tokens.input * 1000 + priced.tokens.output * 2000);
    assert_eq!((priced.cost_nanodollars, priced.cost_source), (Some(cost), CostSource::Priced));

    run.agent.chat("fake-cost").await;
    let told = world.records(3).await.pop().unwrap().record;
    let dear = NanoDollars((told.tokens.input + told.tokens.output) * 1_000_000);
    assert_eq!((told.cost_nanodollars, told.cost_source), (Some(dear), CostSource::Unconfirmed));
    let used = limit(&world, &run, Limit::CostNanodollars).await.used;
    assert_eq!(used, cost.0 + told.cost_nanodollars.unwrap().0);
    // LiteLLM reports 0 for models it does not know: then the table of prices holds.
    run.agent.chat("fake-free").await;
    let free = world.records(4).await.pop().unwrap().record;
    assert_eq!((free.cost_nanodollars.unwrap().0 > 0, free.cost_source), (true, CostSource::Priced));
    // At that price, four dollars are four thousand tokens, those of the prompt among them.
    let budget = Budget { cost_nanodollars: Some(NanoDollars(4_000_000_000)), ..Budget::default() };
    let poor = world.run_with(limited("r2", "acct-1", budget)).await;
    poor.agent.chat("fake-cost").await;
    let seen: Value = world.upstream.ledger().last().unwrap().json().unwrap();
    assert!((1..4000).contains(&seen["max_tokens"].as_u64().unwrap()), "{seen}");
    // Control: the run that can pay for it may have more.
    run.agent.chat("fake-words20").await;
    let seen: Value = world.upstream.ledger().last().unwrap().json().unwrap();
    assert_eq!(seen["max_tokens"], 8192);
}

#[tokio::test]
async fn a_call_of_unknown_end_stays_fully_charged() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let body = chat_body("fake-hang", Answering::Whole).to_string();
    let asked = run.agent.send(Method::POST, CHAT, body.into());
    let seen = eventually("it is upstream", || async { world.upstream.ledger().len() }, |calls| *calls == 1);
    tokio::select! {
        _ = asked => panic!("it is never answered"),
        _ = seen => {}
    }
    let record = world.records(1).await.pop().unwrap().record;
    assert_eq!((record.outcome, record.tokens_source), (Outcome::ClientGone, TokensSource::Estimated));
    assert_eq!(record.tokens.output, 8192);
    assert_eq!(limit(&world, &run, Limit::OutputTokens).await.used, 8192);
    // Control: a call that the upstream refuses costs nothing.
    run.agent.chat("fake-status429").await;
    assert_eq!(limit(&world, &run, Limit::OutputTokens).await.used, 8192);
}

#[tokio::test]
async fn spending_and_closed_runs_survive_a_kill() {
    let mut world = World::with("[accounts.'acct-1']\nrequests = 10").await;
    let run =
        world.run_with(limited("r1", "acct-1", Budget { requests: Some(9), ..Budget::default() })).await;
    let done = world.run("done", "acct-2").await;
    done.agent.chat("fake").await;
    world.control.close(&done.grant.run_id, 0).await.unwrap();
    for _ in 0..8 {
        assert_eq!(run.agent.chat("fake").await.status, 200);
    }
    world.kill_proxy().await;
    world.start_proxy().await;

    // Closed although no worker has opened it on this proxy yet.
    let late = grant("late", "acct-2");
    assert_eq!(world.control.close(&late.run_id, 0).await.unwrap_err().error.code, "run_unknown");
    assert_eq!(world.control.register(&late).await.unwrap_err().error.code, "run_closed");
    let closed = world.control.register(&done.grant).await.unwrap_err();
    assert_eq!(closed.error.code, "run_closed");
    let again = world.run_with(run.grant.clone()).await;
    assert_eq!(again.agent.chat("fake").await.status, 200);
    assert_eq!(
        code(&again.agent.chat("fake").await),
        refused(400, "quota_exhausted"),
        "one of nine was left"
    );
    let other = world.run("r2", "acct-1").await;
    assert_eq!(other.agent.chat("fake").await.status, 200);
    assert_eq!(code(&other.agent.chat("fake").await), refused(400, "quota_exhausted"), "one of ten was left");
}

#[tokio::test]
async fn hidden_reasoning_is_charged_if_clients_leave() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    // One says something, and then nothing; the other says nothing.
    let pause = Duration::from_millis(700);
    let table = [
        ("fake-gap5ms-stall1", pause, 100),
        ("fake-gap60000ms", pause, 100),
        ("fake-stall1", Duration::ZERO, 0),
    ];
    for (model, pause, least) in table {
        let before = world.journal().await.len();
        let stream = run.agent.stream(model).await;
        pace(pause).await;
        drop(stream);
        let record = world.records(before + 1).await.pop().unwrap().record;
        assert_eq!(record.outcome, Outcome::ClientGone);
        let output = record.tokens.output;
        assert!((least..8192).contains(&output), "{model}: {output}");
        assert!(least > 0 || output < 100, "{model}: {output}, the control");
    }
}

#[tokio::test]
async fn an_expired_run_is_cut_and_refused() {
    let world = World::start().await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let expires = Some(UnixSeconds(now + 2));
    let run = world.run_with(RunGrant { expires, ..grant("r1", "acct-1") }).await;
    let lasting = world.run("r2", "acct-1").await;
    let mut stream = run.agent.stream("fake-stall1").await;
    stream.next().await.unwrap();
    assert!(stream.whole().await.is_err(), "it is cut");
    let record = world.records(1).await.pop().unwrap().record;
    assert_eq!(record.outcome, Outcome::RunClosed);
    let over = world.run_with(RunGrant { expires: Some(UnixSeconds(now)), ..grant("r3", "acct-1") }).await;
    let answer =
        over.agent.request(Method::POST, CHAT, chat_body("fake", Answering::Whole).to_string().into()).await;
    assert!(answer.is_err() || code(&answer.unwrap()) == refused(400, "run_deadline_exceeded"));
    assert_eq!(lasting.agent.chat("fake").await.status, 200);
}
