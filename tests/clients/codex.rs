//! Tests the newest Codex with its own provider and every model that it offers. Its calls differ by model and by login.

use harness::{
    Bridge, World,
    codex::{Codex, CodexLogin},
    grant,
};
use platform_core::grant::{RunGrant, UngrantedTools};

/// Question that the scripted upstream answers, whatever the model.
const QUESTION: &str = "[fake-words3] Say something.";

#[tokio::test]
async fn codex_is_served_with_each_of_its_models() {
    let world = World::start().await;
    let ungranted_tools = UngrantedTools::Drop;
    let run = world.run_with(RunGrant { ungranted_tools, ..grant("r1", "acct-1") }).await;
    let bridge = Bridge::to(&run.socket).await;
    for login in [CodexLogin::ApiKey, CodexLogin::Account] {
        let codex = Codex::new(login, &format!("{}/v1", bridge.base_url()));
        let models = codex.models().await;
        assert!(models.len() >= 5, "{models:?}");
        for model in models {
            let events = codex.ask(&model, QUESTION).await;
            let answers = events.iter().filter(|event| event["item"]["type"] == "agent_message");
            assert_eq!(answers.count(), 1, "{login:?} {model}: {events:#?}");
            let seen = world.upstream.ledger().last().unwrap().json().unwrap();
            assert_eq!(seen["model"], model.as_str());
        }
    }
}

/// Control: with a login, each body comes compressed.
#[tokio::test]
async fn codex_compresses_with_a_login_alone() {
    let world = World::start().await;
    for (login, coding) in [(CodexLogin::ApiKey, None), (CodexLogin::Account, Some("zstd"))] {
        let codex = Codex::new(login, &format!("http://{}/v1", world.upstream.address()));
        codex.ask("gpt-5.5", QUESTION).await;
        let call = world.upstream.ledger().all().into_iter().rfind(|call| call.method == "POST").unwrap();
        let sent = call.headers.iter().find(|(name, _)| name == "content-encoding");
        assert_eq!(sent.map(|(_, value)| value.as_str()), coding, "{login:?}");
    }
}
