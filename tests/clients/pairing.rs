//! Tests pairing: a real gateway that is not on the loopback gives no scopes to a token alone.

use std::{fs::OpenOptions, io::Write, os::unix::fs::PermissionsExt, time::Duration};

use harness::{
    OpenClaw, Outcome, World, docker, grant,
    openclaw::{PROVIDER, Setup},
    private_file,
    shared::{register_shared, share},
};
use tokio::io::{AsyncBufReadExt, BufReader};

/// Longer than it takes to approve a request.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a gateway that is not on the loopback, and adds three entries for it: one without a device key, two with one.
async fn gateway(world: &mut World) -> OpenClaw {
    share(world, "gateways").await;
    let address = register_shared(world, grant("for-the-address", "nobody")).await;
    let setup = Setup::new(&format!("http://{address}/v1"), &["fake-echo"]);
    let gateway = OpenClaw::start(&Setup { also_on: Some(docker::host().await), ..setup }).await;
    private_file(&world.path().join("gateway.token"), gateway.token);
    let root = world.path().display();
    let mut settings = String::new();
    for (name, device) in [("tokenonly", ""), ("there", "there.key"), ("stranger", "stranger.key")] {
        settings += &format!(
            "[gateways.{name}]\nurl = '{}'\ntoken_file = '{root}/gateway.token'\nprovider = '{PROVIDER}'\n\
             account = 'acct-1'\n",
            gateway.url
        );
        if !device.is_empty() {
            settings += &format!("device_key_file = '{root}/{device}'\n");
        }
        settings += &format!(
            "[agents.'sandbox:{name}']\nmode = 'gateway'\ngateways = ['{name}']\nmodel = 'fake-echo'\nrun_timeout = '90s'\n"
        );
    }
    let mut file = OpenOptions::new().append(true).open(world.config()).unwrap();
    file.write_all(settings.as_bytes()).unwrap();
    gateway
}

async fn run(world: &World, name: &str, run: &str) -> Outcome {
    let agent = format!("sandbox:{name}");
    let message = format!("Please say that it is {run}");
    world
        .sluice()
        .run(&["run", "--json", "--agent", &agent, "--run-id", run, "--account", "acct-1", &message])
        .await
}

/// Checks that the gateway refuses the client, and that the error names the command for pairing.
async fn is_refused(world: &World, name: &str, id: &str) {
    let agent = format!("sandbox:{name}");
    let refused = world
        .sluice()
        .run(&["run", "--agent", &agent, "--run-id", id, "--account", "acct-1", "Hello?"])
        .await;
    assert_eq!(refused.code, Some(70), "{refused:?}");
    assert!(refused.stderr.contains(&format!("`sluice gateway pair {name}`")), "{refused:?}");
}

/// The gateway listens beyond the loopback.
#[tokio::test]
async fn only_the_paired_client_is_let_in() {
    let mut world = World::start().await;
    let gateway = gateway(&mut world).await;
    is_refused(&world, "tokenonly", "r1").await;
    let unpaired = world.sluice().run(&["gateway", "pair", "there", "--wait", "0"]).await;
    assert_eq!(unpaired.code, Some(75), "{unpaired:?}");
    is_refused(&world, "there", "r2").await;

    // The operator approves the request while `sluice gateway pair` waits.
    let mut pair = world.sluice().spawn(&["gateway", "pair", "there", "--wait", "60"]);
    let mut lines = BufReader::new(pair.stdout.take().unwrap()).lines();
    let request = loop {
        let line = lines.next_line().await.unwrap().expect("it says what to type");
        if let Some((_, request)) = line.split_once("openclaw devices approve ") {
            break request.to_owned();
        }
    };
    gateway.approve(&request).await;
    let paired = tokio::time::timeout(PATIENCE, pair.wait()).await.expect("it is let in").unwrap();
    assert!(paired.success(), "{:?}", lines.next_line().await);
    let key = world.path().join("there.key").metadata().unwrap().permissions().mode();
    assert_eq!(key & 0o777, 0o600);

    // Each run opens its own connection, with only the token and the key.
    for id in ["r3", "r4"] {
        let done = run(&world, "there", id).await;
        assert_eq!(done.code, Some(0), "{done:?}\n{}", gateway.log());
        assert!(done.stdout.contains(&format!("it is {id}")), "{done:?}");
    }
    let journal = world.journal().await;
    assert!(
        journal
            .iter()
            .any(|line| line.record.run_id.as_str() == "r4" && line.record.account.as_str() == "acct-1")
    );
    // The control: the key gives access, not the address; a client with another key is still refused.
    let unpaired = world.sluice().run(&["gateway", "pair", "stranger", "--wait", "0"]).await;
    assert_eq!(unpaired.code, Some(75), "{unpaired:?}");
    is_refused(&world, "stranger", "r5").await;
    gateway.stop().await;
}
