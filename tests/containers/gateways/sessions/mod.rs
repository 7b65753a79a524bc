//! Tests runs that are sessions of a gateway: the attribution of their calls, how they end, and that they survive their
//! worker. The gateway is scripted, and makes its calls through the proxy as OpenClaw does. Tests with the real one are
//! in `tests/clients`.

mod calls;
mod endings;
mod events;
mod survival;
mod versions;

use std::fs::OpenOptions;
use std::io::Write;

use harness::{
    Outcome, World,
    gateway::{Dialect, Provider, ScriptedGateway, TOKEN},
    grant, private_file,
    shared::{register_shared, share},
};

const AGENT: &str = "claw:main";
/// Slots, one for each run of a story: a slot that no run gives back is quarantined for longer than any story takes.
const SLOTS: u128 = 24;

fn slots() -> impl Iterator<Item = String> {
    (1..=SLOTS).map(|slot| format!("{slot:032x}"))
}

/// A scripted gateway, and a world where the agent's runs are sessions of it.
struct Sessions {
    world: World,
    gateway: ScriptedGateway,
}

impl Sessions {
    /// Starts a gateway, and attributes its calls to runs by `attribution`. The agent's entry ends with `more`.
    async fn of(dialect: Dialect, attribution: &str, more: &str) -> Self {
        let gateway = ScriptedGateway::start(dialect).await;
        let mut world = World::start().await;
        share(&mut world, "gateways").await;
        let address = register_shared(&world, grant("for-the-address", "nobody")).await;
        world.control.close(&"for-the-address".parse().unwrap(), 0).await.unwrap();
        let root = world.path().display();
        private_file(&world.path().join("gateway.token"), TOKEN);
        private_file(&world.path().join("slots"), &slots().collect::<Vec<_>>().join("\n"));
        let settings = format!(
            "[worker]\nlease_duration = '2s'\n[gateways.scripted]\nurl = '{}'\ntoken_file = '{root}/gateway.token'\nattribution = '{attribution}'\n\
             slots_file = '{root}/slots'\n[agents.'{AGENT}']\nmode = 'gateway'\ngateways = ['scripted']\nmodel = 'fake-echo'\n{more}\n",
            gateway.url(),
        );
        let mut file = OpenOptions::new().append(true).open(world.config()).unwrap();
        file.write_all(settings.as_bytes()).unwrap();
        gateway.provider_at(&format!("http://{address}"));
        gateway.set(|options| {
            for (at, slot) in slots().enumerate() {
                let provider = Provider::Url(format!("http://{address}/slot/{slot}"));
                options.providers.insert(format!("cogni-s{at}"), provider);
            }
            options.takes_headers = attribution == "headers";
            options.has_plugin = attribution == "plugin";
        });
        Self { world, gateway }
    }

    /// Executes a run of `account` with the message `message`, and waits for its end.
    async fn run(&self, run: &str, account: &str, message: &str) -> Outcome {
        self.run_with(&["--run-id", run, "--account", account], message).await
    }

    async fn run_with(&self, more: &[&str], message: &str) -> Outcome {
        let arguments = [&["run", "--json", "--agent", AGENT], more, &[message]].concat();
        self.world.sluice().run(&arguments).await
    }

    /// Returns run, account and status of each call that has ended.
    async fn calls(&self, count: usize) -> Vec<(String, String, u16)> {
        let records = self.world.records(count).await.into_iter().map(|line| line.record);
        let call = |record: platform_core::record::ExchangeRecord| {
            (record.run_id.to_string(), record.account.to_string(), record.status)
        };
        records.map(call).collect()
    }
}

/// Returns the code with which a run failed.
fn code(outcome: &Outcome) -> String {
    let result = outcome.result();
    let error = if result["error"].is_null() { &result } else { &result["error"] };
    error["code"].as_str().unwrap_or_else(|| panic!("{outcome:?}")).to_owned()
}

/// Returns the answer of a run.
fn answer(outcome: &Outcome) -> String {
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    let last = outcome.events().into_iter().find(|event| event["type"] == "assistant_final");
    last.unwrap_or_else(|| panic!("{outcome:?}"))["content"].as_str().unwrap().to_owned()
}
