//! Starts a world where runs are sessions of a real gateway, with the real LiteLLM in front of the scripted models.

use std::{collections::BTreeMap, fs::OpenOptions, io::Write, net::SocketAddr};

use bench::upstream::ScriptedUpstream;
use serde_json::Value;

use crate::{
    CANARY_KEY, FaultProxy, LiteLlm, OpenClaw, Outcome, World, grant,
    openclaw::{PROVIDER, Setup},
    private_file,
    shared::{register_shared, share},
};

/// Account and run of a call.
pub type Payer = (String, String);

/// Input tokens of each call, fewest first; they identify the calls.
pub type Calls = Vec<u64>;

/// A gateway of the newer version, and a world where runs are its sessions.
#[derive(Debug)]
pub struct Sessions {
    /// World with the proxy and the scripted models.
    pub world: World,
    /// LiteLLM between proxy and models, if the test uses it.
    pub litellm: Option<LiteLlm>,
    /// Real gateway; the runs are its sessions.
    pub gateway: OpenClaw,
    /// Relay between `sluice` and the gateway.
    pub relay: FaultProxy,
    /// Address of the proxy's listener for gateways.
    pub address: SocketAddr,
}

impl Sessions {
    /// Starts a gateway with these models, changed by `change`. Sessions use the first model by default.
    ///
    /// # Panics
    /// If something does not start.
    pub async fn of(models: &[&str], change: impl FnOnce(Setup) -> Setup) -> Self {
        let upstream = ScriptedUpstream::start().await.unwrap();
        let litellm = LiteLlm::in_front_of(&upstream, CANARY_KEY).await;
        let world = World::in_front_of(upstream, &litellm.base_url, "").await;
        Self::in_world(world, Some(litellm), change(Setup::new("", models))).await
    }

    /// Starts a gateway without LiteLLM, so that a call reaches the models as soon as the proxy sends it.
    ///
    /// # Panics
    /// If something does not start.
    pub async fn without_litellm(models: &[&str], change: impl FnOnce(Setup) -> Setup) -> Self {
        Self::in_world(World::start().await, None, change(Setup::new("", models))).await
    }

    async fn in_world(mut world: World, litellm: Option<LiteLlm>, setup: Setup) -> Self {
        share(&mut world, "gateways").await;
        let address = register_shared(&world, grant("for-the-address", "nobody")).await;
        world.control.close(&"for-the-address".parse().unwrap(), 0).await.unwrap();
        // The address must stay the same when the proxy is started again.
        world.reconfigure("listen = '127.0.0.1:0'", &format!("listen = '{address}'"));
        let setup = Setup { base_url: format!("http://{address}/v1"), ..setup };
        let gateway = OpenClaw::start(&setup).await;
        private_file(&world.path().join("gateway.token"), gateway.token);
        let relay = FaultProxy::to(gateway.url.strip_prefix("ws://").unwrap().parse().unwrap()).await;
        let settings = format!(
            "[gateways.real]\nurl = '{}'\ntoken_file = '{}/gateway.token'\nprovider = '{PROVIDER}'\n\
             [agents.'sandbox:openclaw-gateway']\nmode = 'gateway'\ngateways = ['real']\nmodel = '{}'\nrun_timeout = '100s'\n",
            relay.base_url().replace("http://", "ws://"),
            world.path().display(),
            setup.models[0],
        );
        let sessions = Self { world, litellm, gateway, relay, address };
        sessions.configure(&settings);
        sessions
    }

    /// Adds to the configuration.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn configure(&self, toml: &str) {
        let mut file = OpenOptions::new().append(true).open(self.world.config()).unwrap();
        file.write_all(toml.as_bytes()).unwrap();
    }

    /// Executes a run to its end.
    pub async fn run(&self, (run, account): (&str, &str), more: &[&str], message: &str) -> Outcome {
        self.world.sluice().run(&[&arguments((run, account))[..], more, &[message]].concat()).await
    }

    /// Returns the calls that LiteLLM has billed, by account and run.
    ///
    /// # Panics
    /// If LiteLLM is absent, or one of its records has no number of prompt tokens.
    #[must_use]
    pub fn billed(&self) -> BTreeMap<Payer, Calls> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        grouped(self.litellm.as_ref().unwrap().records().iter().map(|record| {
            let payer = (text(&record["end_user"]), text(&record["spend_logs_metadata"]["run_id"]));
            (payer, record["prompt_tokens"].as_u64().unwrap())
        }))
    }

    /// Returns the journaled calls of each run, with its account. Refused calls are left out, and with them the
    /// unattributed.
    pub async fn journaled(&self) -> BTreeMap<Payer, Calls> {
        let records = self.world.journal().await.into_iter().map(|line| line.record);
        let known = records.filter(|record| record.refusal.is_none());
        grouped(
            known
                .map(|record| ((record.account.to_string(), record.run_id.to_string()), record.tokens.input)),
        )
    }

    /// Returns the calls that the models received in each conversation, by the mark that the conversation contains.
    ///
    /// # Panics
    /// If a call contains none of `marks`, or more than one.
    #[must_use]
    pub fn calls_by_mark<'m>(&self, marks: &[&'m str]) -> BTreeMap<&'m str, Calls> {
        let calls = self.world.upstream.ledger().all();
        grouped(calls.iter().filter(|call| call.method == "POST").map(|call| {
            let body = String::from_utf8_lossy(&call.body).into_owned();
            let found: Vec<_> = marks.iter().filter(|mark| body.contains(**mark)).collect();
            assert_eq!(found.len(), 1, "a call is in one conversation: {found:?} {body}");
            (*found[0], tokens(&call.json().unwrap()))
        }))
    }
}

/// Returns the prompt tokens of a request, as the scripted upstream counts them: a quarter of its text's bytes.
fn tokens(body: &Value) -> u64 {
    let bytes = |content: &Value| match content {
        Value::String(text) => text.len(),
        parts => {
            parts.as_array().into_iter().flatten().map(|part| part["text"].as_str().unwrap().len()).sum()
        }
    };
    let messages = body["messages"].as_array().unwrap().iter();
    let bytes: usize = messages.map(|message| bytes(&message["content"])).sum();
    u64::try_from(bytes.div_ceil(4)).unwrap()
}

/// Returns the arguments of `sluice` that execute `run` for `account`; further ones and the message follow.
#[must_use]
pub const fn arguments<'a>((run, account): (&'a str, &'a str)) -> [&'a str; 8] {
    ["run", "--json", "--agent", "sandbox:openclaw-gateway", "--run-id", run, "--account", account]
}

fn grouped<K: Ord>(calls: impl Iterator<Item = (K, u64)>) -> BTreeMap<K, Calls> {
    let mut all: BTreeMap<K, Calls> = BTreeMap::new();
    calls.for_each(|(key, tokens)| all.entry(key).or_default().push(tokens));
    all.values_mut().for_each(|calls| calls.sort_unstable());
    all
}

/// Returns the answer of a run.
///
/// # Panics
/// If the run has no answer.
#[must_use]
pub fn answer(outcome: &Outcome) -> String {
    let last = outcome.events().into_iter().find(|event| event["type"] == "assistant_final");
    last.unwrap_or_else(|| panic!("{outcome:?}"))["content"].as_str().unwrap().to_owned()
}
