//! Plays what the code of published clients sent: they list agents, chat, are asked, leave in mid-answer and come back. Their
//! records are in `tests/openclaw/frames/clients`. What is refused is listed here by name.

use std::collections::BTreeSet;

use harness::{
    gateway::{Cue, GatewayClient, Step},
    store::open_store,
};
use platform_core::host_tools::ToolCallState;
use runner_store::Store;
use serde_json::{Value, json};

use super::{PATIENCE, Scene, approvals::ask, last_event, refusal, text_of};

const STUDIO: &str = include_str!("../../../openclaw/frames/clients/openclaw-studio.jsonl");
const CLAW3D: &str = include_str!("../../../openclaw/frames/clients/claw3d.jsonl");
/// Methods that both clients call, and that are answered.
const ANSWERED: [&str; 18] = [
    "agent.wait",
    "agents.create",
    "agents.delete",
    "agents.files.get",
    "agents.files.set",
    "agents.list",
    "agents.update",
    "chat.abort",
    "chat.history",
    "chat.send",
    "config.get",
    "connect",
    "exec.approval.resolve",
    "models.list",
    "sessions.list",
    "sessions.patch",
    "sessions.preview",
    "status",
];
/// Refusals of the others, with their codes.
const STUDIO_REFUSED: [(&str, &str); 6] = [
    ("config.set", "METHOD_UNKNOWN"),
    ("cron.add", "METHOD_UNKNOWN"),
    ("cron.list", "METHOD_UNKNOWN"),
    ("exec.approvals.get", "METHOD_UNKNOWN"),
    // Of another model than the agent's.
    ("sessions.patch", "INVALID_PARAMS"),
    ("sessions.reset", "SESSION_NOT_RESET"),
];
const CLAW3D_REFUSED: [(&str, &str); 9] = [
    ("config.set", "METHOD_UNKNOWN"),
    ("cron.list", "METHOD_UNKNOWN"),
    ("exec.approvals.get", "METHOD_UNKNOWN"),
    ("sessions.patch", "INVALID_PARAMS"),
    ("sessions.reset", "SESSION_NOT_RESET"),
    ("sessions.usage", "METHOD_UNKNOWN"),
    ("skills.status", "METHOD_UNKNOWN"),
    ("tasks.list", "METHOD_UNKNOWN"),
    ("usage.cost", "METHOD_UNKNOWN"),
];

/// Client that sends what was recorded.
struct Player<'s> {
    scene: &'s Scene,
    store: Store,
    token: String,
    client: Option<GatewayClient>,
    cue: Cue,
    /// Run that the client ordered last.
    run: String,
    /// Request about which it is asked.
    approval: String,
    /// Answers to its requests, each with the method.
    answers: Vec<(String, Value)>,
    /// Request that waits for the end of the run.
    waiting: Option<Value>,
}

impl<'s> Player<'s> {
    async fn new(scene: &'s Scene) -> Self {
        let token = scene.token("ann", "acct-1", "member").await;
        let store = open_store(&scene.world).await;
        let (run, approval) = (String::new(), String::new());
        let (client, cue, answers, waiting) = (None, Cue::default(), Vec::new(), None);
        Self { scene, store, token, client, cue, run, approval, answers, waiting }
    }

    fn client(&mut self) -> &mut GatewayClient {
        self.client.as_mut().expect("the client is connected")
    }

    async fn play(&mut self, record: &str) {
        // The first line describes the record.
        for line in record.lines().skip(1) {
            let line: Value = serde_json::from_str(line).unwrap();
            match (line["cue"].as_str(), line["until"].as_str(), line.get("frame")) {
                (Some(cue), ..) => self.give(cue).await,
                (_, Some(what), _) => self.wait_for(what).await,
                (.., Some(frame)) => self.send(frame).await,
                _ => self.open(line.get("origin")).await,
            }
        }
    }

    async fn open(&mut self, origin: Option<&Value>) {
        let own = format!("http://{}", self.scene.address);
        let headers: Vec<_> = origin.map(|_named| ("origin", own.as_str())).into_iter().collect();
        self.client = Some(GatewayClient::open(&self.scene.url("own"), &headers).await.unwrap());
    }

    /// Sends a frame, and takes its answer. After a wait, that comes before the next frame.
    async fn send(&mut self, frame: &Value) {
        if let Some(waiting) = self.waiting.take() {
            self.take_answer(&waiting).await;
        }
        let text = frame.to_string();
        let names = [("{{token}}", &self.token), ("{{run}}", &self.run), ("{{approval}}", &self.approval)];
        let text = names.into_iter().fold(text, |text, (name, value)| text.replace(name, value));
        self.client().send_text(text).await;
        match frame["method"] == "agent.wait" {
            true => self.waiting = Some(frame.clone()),
            false => self.take_answer(frame).await,
        }
    }

    async fn take_answer(&mut self, frame: &Value) {
        let answer = self.told(|told| told["type"] == "res" && told["id"] == frame["id"]).await;
        if frame["method"] == "chat.send" {
            answer["payload"]["runId"].as_str().expect("a run").clone_into(&mut self.run);
        }
        self.answers.push((frame["method"].as_str().unwrap().to_owned(), answer));
    }

    /// Does what happened at this point of the record.
    async fn give(&mut self, cue: &str) {
        let own = &self.scene.own;
        match cue {
            "answer" => own.always(vec![Step::say("Hello "), Step::say("there.")]),
            "approval" => {
                let beginning = [Step::say("One "), Step::say("two ")];
                let end = [Step::Until(self.cue.clone()), Step::say("three.")];
                own.always([beginning, end].concat());
            }
            "ask" => ask(&self.store, &self.run, "c1", "echo one").await,
            "break" => self.client = None,
            "go" => self.cue.give(),
            "never" => own.always(vec![Step::say("I begin"), Step::Never]),
            other => panic!("the record has an unknown cue `{other}`"),
        }
    }

    /// Waits for that for which the client waited.
    async fn wait_for(&mut self, what: &str) {
        let run = self.run.clone();
        let is_text = |frame: &Value, text: &str| {
            frame["payload"]["runId"] == run.as_str() && text_of(&frame["payload"]) == text
        };
        match what {
            "answer" => assert_eq!(last_event(self.client(), &run).await["state"], "final"),
            "idle" => assert_eq!(last_event(self.client(), &run).await["state"], "aborted"),
            "first text" => drop(self.told(|frame| is_text(frame, "One two ")).await),
            "running" => drop(self.told(|frame| is_text(frame, "I begin")).await),
            "approval" => {
                let asked = self.told(|frame| frame["event"] == "exec.approval.requested").await;
                assert_eq!(asked["payload"]["request"]["command"], "echo one", "{asked}");
                asked["payload"]["id"].as_str().unwrap().clone_into(&mut self.approval);
            }
            "decided" => {
                let resolved = self.told(|frame| frame["event"] == "exec.approval.resolved").await;
                assert_eq!(resolved["payload"]["id"], self.approval.as_str(), "{resolved}");
                let call = self.store.tool_call(&run.parse().unwrap(), 0, "c1").await.unwrap().unwrap();
                let decided = (call.state, call.decided_by.as_deref());
                assert_eq!(decided, (ToolCallState::Approved, Some("principal/ann")));
            }
            other => panic!("the record waits for an unknown `{other}`"),
        }
    }

    async fn told(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let client = self.client();
        if let Some(seen) = client.seen.iter().find(|frame| is_wanted(frame)) {
            return seen.clone();
        }
        tokio::time::timeout(PATIENCE, client.until(is_wanted)).await.expect("the client is told")
    }

    /// Returns the answers to a method, the first one first.
    fn answers_to(&self, method: &str) -> Vec<&Value> {
        self.answers.iter().filter(|(name, _)| name == method).map(|(_, answer)| answer).collect()
    }

    /// Returns the methods that were refused, with the codes.
    fn refused(&self) -> Vec<(&str, String)> {
        let refused = self.answers.iter().filter(|(_, answer)| answer["ok"] == false);
        let refused: BTreeSet<_> =
            refused.map(|(method, answer)| (method.as_str(), refusal(answer).0)).collect();
        refused.into_iter().collect()
    }

    fn answered(&self) -> BTreeSet<&str> {
        let answered = self.answers.iter().filter(|(_, answer)| answer["ok"] == true);
        answered.map(|(method, _)| method.as_str()).collect()
    }
}

/// Returns the texts of a history, and that of the answer that is being given.
fn texts(history: &Value) -> Vec<&str> {
    let messages = history["payload"]["messages"].as_array().unwrap();
    let texts = messages.iter().map(|message| message["content"][0]["text"].as_str().unwrap());
    texts.chain(history["payload"]["inFlightRun"]["text"].as_str()).collect()
}

/// Checks what a client has seen at the end of its record.
async fn assert_story(player: &mut Player<'_>) {
    for listed in player.answers_to("agents.list") {
        assert_eq!(
            listed["payload"]["agents"],
            json!([{ "id": "main", "name": "main", "identity": { "name": "main" } }])
        );
    }
    let mut histories: Vec<_> = player.answers_to("chat.history").into_iter().map(texts).collect();
    histories.retain(|texts| !texts.is_empty());
    assert_eq!(histories[0], ["Say hello", "Hello there."]);
    assert_eq!(histories[1], ["Say hello", "Hello there.", "Run it", "One two "], "back in mid-answer");
    assert_eq!(*histories.last().unwrap(), ["Say hello", "Hello there.", "Run it", "One two three."]);
    let run = player.answers_to("agent.wait")[0]["payload"]["runId"].as_str().unwrap().to_owned();
    let client = player.client();
    let finals = client.seen.iter().filter(|frame| {
        frame["event"] == "chat"
            && frame["payload"]["runId"] == run.as_str()
            && frame["payload"]["state"] == "final"
    });
    assert_eq!(
        finals.map(|frame| text_of(&frame["payload"])).collect::<Vec<_>>(),
        ["One two three."],
        "once"
    );
}

/// Checks that the introduction of a client opens no gateway of another account.
async fn assert_stranger(scene: &Scene, player: &Player<'_>) {
    let mut client = GatewayClient::open(&scene.url("theirs"), &[]).await.unwrap();
    let record = STUDIO.lines().find(|line| line.contains(r#""method":"connect""#)).unwrap();
    let line: Value = serde_json::from_str(&record.replace("{{token}}", &player.token)).unwrap();
    client.send_text(line["frame"].to_string()).await;
    assert_eq!(refusal(&client.answer("1").await).0, "GATEWAY_UNKNOWN");
}

#[tokio::test]
async fn openclaw_studio_works() {
    let scene = Scene::start().await;
    let mut player = Player::new(&scene).await;
    player.play(STUDIO).await;
    assert_story(&mut player).await;
    assert_stranger(&scene, &player).await;
    let refused = player.refused();
    assert_eq!(refused, STUDIO_REFUSED.map(|(method, code)| (method, code.to_owned())));
    assert_eq!(player.answered(), BTreeSet::from(ANSWERED));
    drop(player);
    scene.end().await;
}

#[tokio::test]
async fn claw3d_works() {
    let scene = Scene::start().await;
    let mut player = Player::new(&scene).await;
    player.play(CLAW3D).await;
    assert_story(&mut player).await;
    let refused = player.refused();
    assert_eq!(refused, CLAW3D_REFUSED.map(|(method, code)| (method, code.to_owned())));
    assert_eq!(player.answered(), BTreeSet::from(ANSWERED));
    drop(player);
    scene.end().await;
}

/// Clients send some parameters by themselves. What they mean by them passes, and nothing else.
#[tokio::test]
async fn what_cannot_be_kept_is_refused() {
    let scene = Scene::start().await;
    let ann = scene.token("ann", "acct-1", "member").await;
    let mut client = scene.client("own", &ann).await;
    let session = "agent:main:main";
    let set = |name: &str, content: &str| json!({ "agentId": "bot", "name": name, "content": content });
    for (method, params, words) in [
        ("agents.create", json!({ "name": "Bot", "workspace": "/root/bot" }), "at /workspace"),
        ("agents.create", json!({ "name": "Bot", "workspace": "sluicegate/../bot" }), "at /workspace"),
        ("agents.create", json!({ "name": "Bot", "workspace": "sluicegate/bot" }), ""),
        ("agents.files.set", set("IDENTITY.md", "I am root."), "unsupported file"),
        ("agents.files.set", set("IDENTITY.md", ""), ""),
        ("sessions.patch", json!({ "key": session, "execSecurity": "full" }), "unexpected property"),
        ("sessions.patch", json!({ "key": session, "model": "other" }), "at /model"),
        ("sessions.patch", json!({ "key": "agent:none:main", "model": null }), "unknown agent id"),
        ("sessions.patch", json!({ "key": session, "model": null, "thinkingLevel": "high" }), ""),
        ("sessions.reset", json!({ "key": session }), "a session keeps its conversation"),
    ] {
        let answer = client.call(method, params).await;
        let told = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(told.contains(words) && told.is_empty() == words.is_empty(), "{method}: {answer}");
    }
    scene.end().await;
}
