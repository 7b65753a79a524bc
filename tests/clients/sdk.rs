//! Tests that calls that succeed directly also succeed through Sluicegate. The official SDKs make every kind of call
//! they support, directly and through both of its listeners. Case by case they get the same results, and the journal
//! has each call, with the SDK's figures. The programs that make the calls are in `tests/sdk`.

use std::collections::BTreeMap;

use bench::upstream::ScriptedUpstream;
use harness::{
    AiMock, Bridge, CANARY_KEY, Sdk, World, grant,
    sdks::documented_fields,
    shared::{register_shared, share, token},
};
use platform_core::{
    grant::RunGrant,
    id::ModelName,
    record::{ExchangeRecord, Outcome, TokensSource},
    route::Route,
};
use serde_json::{Value, json};

use crate::world_with_litellm;

/// Models that the cases use: a run may use only granted models.
const MODELS: [&str; 10] = [
    "fake",
    "fake-tools",
    "fake-words1000-gap20ms",
    "fake-errmid3",
    "fake-firstbyte2000ms",
    "fake-status400",
    "fake-status404",
    "fake-status429",
    "fake-status500",
    "fake-status503",
];

/// Cases that must differ, with their codes through Sluicegate: the run lacks a grant that a direct call does not need.
const REFUSED: [(&str, &str); 3] = [
    ("refused_unknown_field", "field_unknown"),
    ("refused_media_url", "not_granted"),
    ("refused_tool", "not_granted"),
];

/// Cases that differ for a known reason.
const DIFFERENT_WITH_AIMOCK: [&str; 3] = [
    // aimock cuts the connection; Sluicegate sends an error event, which SDKs turn into a proper error.
    "chat_error_in_the_middle",
    // aimock has no such route; Sluicegate answers from the grant.
    "models_one",
    // Sluicegate forbids storing, so the answer contains the reasoning in encrypted form.
    "responses_stored_unless_said",
];

const DIFFERENT_WITH_LITELLM: [&str; 1] = [
    // LiteLLM reports zero usage in each event unless usage is requested, and Sluicegate requests it.
    "completions_streamed",
];

/// The SDKs call the scripted upstream directly and through Sluicegate.
#[tokio::test]
async fn sdks_see_no_difference_scripted() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let base_url = upstream.base_url();
    let world = World::in_front_of(upstream, &base_url, "").await;
    conforms(world, &base_url, &[]).await;
}

#[tokio::test]
async fn sdks_see_no_difference_with_aimock() {
    let aimock = AiMock::start().await;
    let upstream = ScriptedUpstream::start().await.unwrap();
    let world = World::in_front_of(upstream, &aimock.base_url, "").await;
    conforms(world, &aimock.base_url, &DIFFERENT_WITH_AIMOCK).await;
}

#[tokio::test]
async fn sdks_see_no_difference_with_litellm() {
    let (world, litellm) = world_with_litellm().await;
    conforms(world, &litellm.base_url, &DIFFERENT_WITH_LITELLM).await;
}

/// Fields that an SDK documents but no run may send; `fields.rs` of the proxy has the reasons.
const LEFT_OUT: [(&str, &str); 14] = [
    ("/v1/chat/completions", "moderation"),
    ("/v1/messages", "billing_policy"),
    ("/v1/messages", "diagnostics"),
    ("/v1/messages", "fallback_credit_token"),
    ("/v1/messages", "fallbacks"),
    ("/v1/messages", "thread"),
    ("/v1/messages", "user_profile_id"),
    ("/v1/messages", "workspace_id"),
    ("/v1/messages/count_tokens", "billing_policy"),
    ("/v1/messages/count_tokens", "user_profile_id"),
    ("/v1/messages/count_tokens", "workspace_id"),
    ("/v1/responses", "access_programs"),
    ("/v1/responses", "background_options"),
    ("/v1/responses", "moderation"),
];

#[tokio::test]
async fn whatever_field_an_sdk_documents_is_known() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let mut refused = Vec::new();
    for (path, fields) in documented_fields().await {
        for field in fields.into_iter().filter(|field| field != "model") {
            let body = json!({ "model": "fake", &field: null });
            let answer = run.agent.post(&path, &body).await;
            match answer.status.as_u16() {
                200 => {}
                status => {
                    let text = answer.text();
                    assert!(status == 400 && text.contains("is not a field"), "{path} {field}: {text}");
                    refused.push((path.clone(), field));
                }
            }
        }
    }
    let refused: Vec<_> = refused.iter().map(|(path, field)| (path.as_str(), field.as_str())).collect();
    assert_eq!(refused, LEFT_OUT);
}

/// Runs all cases in both languages, and compares the results. `different` lists the cases that are known to differ.
async fn conforms(mut world: World, upstream: &str, different: &[&str]) {
    share(&mut world, "clients").await;
    let (python, node) = tokio::join!(
        outcomes(&world, upstream, Sdk::Python, "python"),
        outcomes(&world, upstream, Sdk::Node, "node"),
    );
    let mut complaints = Vec::new();
    for (name, lines) in [("python", python), ("node", node)] {
        let direct = &lines["direct"];
        for (target, through) in lines.iter().filter(|(target, _)| *target != "direct") {
            assert_eq!(direct.len(), through.len(), "{name} {target}");
            for (direct, through) in direct.iter().zip(through) {
                complaints.extend(compared(direct, through, different));
            }
            let records = records_of(&world, &format!("{name}-{target}"), through).await;
            complaints.extend(through.iter().filter_map(|line| accounted(line, &records)));
        }
    }
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

/// Returns the output of `sdk`, by target: directly, through a run's own socket, through the shared listener, and for
/// the quicker of the languages through the bridge that stands before the socket in a sandbox.
async fn outcomes(world: &World, upstream: &str, sdk: Sdk, name: &str) -> BTreeMap<String, Vec<Value>> {
    let granted = |target: &str| RunGrant {
        models: Some(MODELS.iter().map(|model| ModelName::parse(model).unwrap()).collect()),
        ..grant(&format!("{name}-{target}"), "acct-1")
    };
    let own = world.run_with(granted("own")).await;
    let shared = register_shared(world, granted("shared")).await;
    let shared_key = token(&format!("{name}-shared"), 0, "new", 3600);
    let mut targets = vec![
        json!({ "name": "direct", "url": upstream, "key": CANARY_KEY }),
        json!({ "name": "own", "url": "http://localhost", "key": "none", "socket": own.socket }),
        json!({ "name": "shared", "url": format!("http://{shared}"), "key": shared_key }),
    ];
    let bridge = Bridge::to(&world.run_with(granted("bridge")).await.socket).await;
    if sdk == Sdk::Node {
        targets.push(json!({ "name": "bridge", "url": bridge.base_url(), "key": "none" }));
    }
    let mut by_target = BTreeMap::<_, Vec<_>>::new();
    for line in sdk.conform(&targets).await {
        by_target.entry(line["target"].as_str().unwrap().to_owned()).or_default().push(line);
    }
    by_target
}

/// Returns the fault of a case's result through Sluicegate, compared with its result directly, if any.
fn compared(direct: &Value, through: &Value, different: &[&str]) -> Option<String> {
    let name = direct["case"].as_str().unwrap();
    assert_eq!(through["case"], name);
    let same = ["ok", "digest", "calls"].iter().all(|field| direct[field] == through[field]);
    let is_right = match REFUSED.iter().find(|(case, _)| *case == name) {
        Some((_, code)) => direct["ok"] == json!(true) && through["digest"]["code"] == *code,
        None => same != different.contains(&name),
    };
    (!is_right).then(|| format!("{name}\n  directly: {direct}\n  through:  {through}"))
}

/// Waits until each call has a record, and returns the run's records by call id.
async fn records_of(world: &World, run: &str, lines: &[Value]) -> BTreeMap<String, ExchangeRecord> {
    let calls: u64 = lines.iter().map(|line| line["calls"].as_u64().unwrap()).sum();
    let find = || async {
        let journal = world.journal().await.into_iter().map(|line| line.record);
        let of_run = journal.filter(|record| record.run_id.as_str() == run);
        of_run.map(|record| (record.litellm_call_id.to_string(), record)).collect::<BTreeMap<_, _>>()
    };
    let records = harness::eventually(
        "each call is recorded",
        || async { find().await.len() as u64 },
        |count| *count >= calls,
    )
    .await;
    assert_eq!(records, calls, "{run}");
    find().await
}

/// Returns the difference between the journal's and the SDK's account of a case's calls, if any.
fn accounted(line: &Value, records: &BTreeMap<String, ExchangeRecord>) -> Option<String> {
    let name = line["case"].as_str().unwrap();
    let expected: &[Outcome] = match name {
        "chat_abandoned" | "messages_abandoned" => &[Outcome::ClientGone],
        // The SDK leaves when the error is reported, which may be before the stream has ended.
        "chat_error_in_the_middle" => &[Outcome::StreamError, Outcome::UpstreamGone, Outcome::ClientGone],
        _ => &[Outcome::Complete],
    };
    let ids = line["ids"].as_array().unwrap();
    let answers: Vec<_> = ids.iter().filter_map(|id| records.get(id.as_str()?)).collect();
    // Sluicegate's own answers have no id.
    let by_upstream = !name.starts_with("models") && !name.starts_with("refused");
    if by_upstream && answers.len() != ids.len() {
        return Some(format!("{name}: an answer without the id of a record: {line}"));
    }
    let is_right = |record: &&ExchangeRecord| {
        let metered = record.outcome == Outcome::Complete && record.route != Route::CountTokens;
        // aimock reports no tokens for an embedding; Sluicegate does not accept that.
        let counted = match record.tokens_source {
            TokensSource::Exact => true,
            TokensSource::Partial => record.route == Route::Embeddings && record.tokens.input > 0,
            TokensSource::Estimated | TokensSource::None => false,
        };
        record.status != 200 || expected.contains(&record.outcome) && (!metered || counted)
    };
    let reported =
        ["completion_tokens", "output_tokens"].iter().find_map(|field| line["tokens"][field].as_u64());
    let counted = answers.last().map(|record| record.tokens.output);
    let right = answers.iter().all(is_right) && (reported.is_none() || reported == counted);
    (!right).then(|| format!("{name}: the SDK was told {reported:?} tokens: {answers:?}"))
}
