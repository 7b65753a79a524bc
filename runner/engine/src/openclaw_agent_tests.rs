//! Tests which agent of OpenClaw a run uses, with its own store.

use platform_core::{
    code::{Code, Coded},
    grant::Correlation,
    id::{AccountId, AgentId, ExternalId, GatewayAgentId, InstallationId, ModelName, RunId},
    limit::Millis,
    priority::Priority,
};
use platform_runtime::{config::Sources, settings::Settings};
use runner_model::lifecycle::{Completion, Transition};
use runner_store::{Address, Claimant, Created, HostId, HostIdentity, Store, Worker};
use tempfile::TempDir;

use crate::{
    gateway_agent_choice::GatewayAgentOrder,
    relay::RepoChoice,
    run_order::{OrderError, OrderLimits, RunOrder},
    run_request::{Keep, RunRequest},
    thread::ThreadOrder,
};

const DESCRIBED: &str = "[agents.'sandbox:openclaw'.openclaw_agents]\nreviewer = { tools = ['read'] }\n\
    author = { tools = ['read', 'write', 'apply_patch'] }\nwatcher = { tools = [] }\n";

/// The agent that an entry has without describing it.
const MAIN: &str = "main:exec,process,read,write,edit,apply_patch";

struct Scene {
    store: Store,
    runs: u32,
    _dir: TempDir,
}

impl Scene {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let address = format!("sqlite://{}/private/sluice.db", dir.path().display());
        let installation = InstallationId::parse("here").unwrap();
        let store = Store::open(&Address::parse(&address, None).unwrap(), installation).await.unwrap();
        let host = HostIdentity { id: HostId::from_random(1), name: "host".to_owned() };
        let store = store.serving(host).await.unwrap();
        Self { store, runs: 0, _dir: dir }
    }

    /// Orders a run of the thread `thread` under the settings `text`, and ends it.
    async fn order(
        &mut self,
        text: &str,
        thread: &str,
        gateway_agent: GatewayAgentOrder,
    ) -> Result<RunRequest, OrderError> {
        let file = Some(("s.toml".into(), text.to_owned()));
        let settings = Settings::read(&Sources { file, ..Sources::default() }).unwrap();
        self.runs += 1;
        let order = RunOrder {
            run_id: RunId::parse(&format!("r{}", self.runs)).unwrap(),
            account: AccountId::parse("acct-1").unwrap(),
            correlation: Correlation::default(),
            agent_id: AgentId::parse("sandbox:openclaw").unwrap(),
            gateway_agent,
            model: Some(ModelName::parse("fake").unwrap()),
            image: None,
            limits: OrderLimits::default(),
            priority: Priority::default(),
            history: vec![],
            question: "q".to_owned(),
            thread: Some(ThreadOrder::behind(ExternalId::parse(thread).unwrap())),
            repo: RepoChoice::default(),
            host_tools: None,
            keep: Keep::Nothing,
            hash: None,
        };
        let request = order.request(&settings, &self.store).await?;
        let worker = Worker::named("worker");
        let claimant = Claimant::Worker(&worker, Millis::seconds(600));
        let created = self.store.create(&request.row().unwrap(), claimant).await.unwrap();
        let Created::New(run) = created else { panic!("{created:?}") };
        let completion = Completion { exit_code: Some(0), oom_seen: None, answer: Ok("answer".to_owned()) };
        for transition in [
            Transition::Prepare,
            Transition::Start,
            Transition::Run,
            Transition::Settle(completion),
            Transition::Finish(None),
        ] {
            self.store.step(&run.fencing_token(), &transition.into()).await.unwrap();
        }
        Ok(request)
    }
}

fn named(id: &str) -> GatewayAgentOrder {
    GatewayAgentOrder::Named(GatewayAgentId::parse(id).unwrap())
}

/// Returns the agent of a run, and its tools: `ID:TOOL,TOOL`.
fn chosen(request: &RunRequest) -> String {
    request.spec.agent.openclaw_variable().map(|(_, value)| value).unwrap_or_default()
}

#[tokio::test]
async fn a_run_uses_the_openclaw_agent_it_names() {
    let mut scene = Scene::new().await;
    for (order, expected) in [
        (named("reviewer"), "reviewer:read"),
        (named("author"), "author:read,write,apply_patch"),
        (named("watcher"), "watcher:"),
        (named("main"), MAIN),
        (GatewayAgentOrder::Unnamed, MAIN),
        (GatewayAgentOrder::Configured, MAIN),
    ] {
        let thread = format!("{order:?}");
        let request = scene.order(DESCRIBED, &thread, order).await.unwrap();
        assert_eq!(chosen(&request), expected, "{thread}");
    }
    let described = format!("{DESCRIBED}main = {{ tools = ['edit'] }}\n");
    let request = scene.order(&described, "other", GatewayAgentOrder::Unnamed).await.unwrap();
    assert_eq!(chosen(&request), "main:edit");
    let request = scene.order("", "none", GatewayAgentOrder::Unnamed).await.unwrap();
    assert_eq!(chosen(&request), "", "an entry without any is as before");
}

#[tokio::test]
async fn an_openclaw_agent_that_is_unknown_is_refused() {
    let mut scene = Scene::new().await;
    let error = scene.order(DESCRIBED, "a", named("reviwer")).await.unwrap_err();
    assert_eq!(error.code(), Code::GatewayAgentUnknown);
    assert_eq!(
        error.to_string(),
        "`openclaw_agents` of sandbox:openclaw describes no `reviwer` (did you mean reviewer?): name one of main, author, \
         reviewer, watcher, or describe it there"
    );
    let error = scene.order("", "a", named("reviewer")).await.unwrap_err();
    assert_eq!(error.code(), Code::GatewayAgentUnknown);
    assert!(error.to_string().contains("runs at no gateway"), "as before: {error}");
}

#[tokio::test]
async fn a_thread_keeps_its_openclaw_agent() {
    let mut scene = Scene::new().await;
    scene.order(DESCRIBED, "chat", named("reviewer")).await.unwrap();
    let next = scene.order(DESCRIBED, "chat", GatewayAgentOrder::Unnamed).await.unwrap();
    assert_eq!(chosen(&next), "reviewer:read");
    let other = scene.order(DESCRIBED, "other", GatewayAgentOrder::Unnamed).await.unwrap();
    assert_eq!(chosen(&other), MAIN, "the control: another thread");
    let limited = scene.order(DESCRIBED, "chat", GatewayAgentOrder::Configured).await.unwrap();
    assert_eq!(chosen(&limited), "reviewer:read", "a caller that may name none gets no more tools");
    // What it may do is what the entry says now.
    let more = DESCRIBED.replace("['read'] }", "['read', 'edit'] }");
    let next = scene.order(&more, "chat", GatewayAgentOrder::Unnamed).await.unwrap();
    assert_eq!(chosen(&next), "reviewer:read,edit");
    let without = DESCRIBED.replace("reviewer", "critic");
    let error = scene.order(&without, "chat", GatewayAgentOrder::Unnamed).await.unwrap_err();
    assert_eq!(error.code(), Code::GatewayAgentUnknown);
    assert!(error.to_string().contains("the thread's agent `reviewer` was removed"), "{error}");
    let main = scene.order(&without, "chat", named("main")).await.unwrap();
    assert_eq!(chosen(&main), MAIN);
    let next = scene.order(&without, "chat", GatewayAgentOrder::Unnamed).await.unwrap();
    assert_eq!(chosen(&next), MAIN);
}
