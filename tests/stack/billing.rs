//! Every session of a real gateway is billed to its owner: the real OpenClaw, as npm has it, and the real LiteLLM. Only the models are
//! scripted.

use std::{collections::BTreeMap, fs::OpenOptions, io::Write, time::Duration};

use futures_util::future::join_all;
use harness::{
    LiteLlm, OpenClaw, Outcome, World,
    eventually::eventually_within,
    grant,
    openclaw::{PROVIDER, Setup},
    private_file,
    shared::{register_shared, share},
};
use serde_json::Value;

use crate::world_with_litellm;

const PATIENCE: Duration = Duration::from_secs(30);

/// The proxy's listener for gateways, as a base URL, and a gateway that calls models there.
async fn gateway(world: &mut World) -> OpenClaw {
    share(world, "gateways").await;
    let address = register_shared(world, grant("for-the-address", "nobody")).await;
    let setup =
        Setup::new(&format!("http://{address}/v1"), &["fake-steps", "fake-status401", "fake-status429"]);
    let gateway = OpenClaw::start(&setup).await;
    private_file(&world.path().join("gateway.token"), gateway.token);
    let settings = format!(
        "[gateways.real]\nurl = '{}'\ntoken_file = '{}/gateway.token'\nprovider = '{PROVIDER}'\n\
         [agents.'sandbox:openclaw-gateway']\nmode = 'gateway'\ngateways = ['real']\nmodel = 'fake-steps'\nruntime = '100s'\n",
        gateway.url,
        world.path().display()
    );
    let mut file = OpenOptions::new().append(true).open(world.config()).unwrap();
    file.write_all(settings.as_bytes()).unwrap();
    gateway
}

async fn run(world: &World, (run, account): (&str, &str), more: &[&str], message: &str) -> Outcome {
    let named =
        ["run", "--json", "--agent", "sandbox:openclaw-gateway", "--run-id", run, "--account", account];
    world.sluice().run(&[&named[..], more, &[message]].concat()).await
}

fn text(outcome: &Outcome) -> String {
    let last = outcome.events().into_iter().find(|event| event["type"] == "assistant_final");
    last.unwrap_or_else(|| panic!("{outcome:?}"))["content"].as_str().unwrap().to_owned()
}

/// How many calls LiteLLM has billed to which account and run.
fn billed(litellm: &LiteLlm) -> BTreeMap<(String, String), usize> {
    let mut calls = BTreeMap::new();
    for record in litellm.records() {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let whose = (text(&record["end_user"]), text(&record["spend_logs_metadata"]["run_id"]));
        *calls.entry(whose).or_default() += 1;
    }
    calls
}

/// How many calls the journal has of each run, with its account.
async fn journaled(world: &World) -> BTreeMap<(String, String), usize> {
    let mut calls = BTreeMap::new();
    for line in world.journal().await {
        let record = line.record;
        *calls.entry((record.account.to_string(), record.run_id.to_string())).or_default() += 1;
    }
    calls
}

#[tokio::test]
async fn eight_sessions_of_four_accounts_are_each_billed_to_their_owner() {
    let (mut world, litellm) = world_with_litellm().await;
    let gateway = gateway(&mut world).await;
    let runs: Vec<_> = (0..8).map(|n| (format!("r{n}"), format!("acct-{}", n % 4))).collect();
    let told = |run: &str| {
        format!(
            "Do this:
call: exec {{\"command\":\"echo of-{run}; sleep 0.3\"}}
call: exec {{\"command\":\"echo again-{run}\"}}
say: done by {run}"
        )
    };
    let at_once = runs.iter().map(|(name, account)| {
        let message = told(name);
        let world = &world;
        async move { run(world, (name, account), &[], &message).await }
    });
    let outcomes = join_all(at_once).await;
    for ((name, _), outcome) in runs.iter().zip(&outcomes) {
        assert_eq!(outcome.code, Some(0), "{outcome:?}\n{}", gateway.log());
        let said = text(outcome);
        assert!(said.contains(&format!("done by {name}")), "{name}: {said}");
        for (other, _) in runs.iter().filter(|(other, _)| other != name) {
            assert!(
                !outcome.stdout.contains(&format!("-{other}")) && !said.contains(&format!("by {other}")),
                "{name}: {outcome:?}"
            );
        }
    }
    // Each run's own words are in its own calls, and its calls are billed to its account.
    let journal = journaled(&world).await;
    for (name, account) in &runs {
        let calls = journal.get(&(account.clone(), name.clone())).copied().unwrap_or_default();
        assert_eq!(calls, 3, "{name}: {journal:?}");
    }
    // What LiteLLM bills is what the journal says, call by call; what the gateway calls by itself is not let through.
    let attributed: BTreeMap<_, _> =
        journal.into_iter().filter(|((_, run), _)| run != "unattributed").collect();
    let same = || async { billed(&litellm) };
    let bills = eventually_within(PATIENCE, "LiteLLM has all of them", same, |bills| {
        bills.len() == 8 && *bills == attributed
    })
    .await;
    assert_eq!(bills, attributed);
    let asked = world.upstream.ledger().all().into_iter().filter(|call| call.json().is_ok()).count();
    assert_eq!(asked, attributed.values().sum::<usize>());
    gateway.stop().await;
}
