//! A real gateway that is not on the loopback gives a token alone no rights: a client is paired with it first.

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

/// A gateway elsewhere, and three entries for it: one without a device, and two devices.
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
    let said = format!("Please say that it is {run}");
    world
        .sluice()
        .run(&["run", "--json", "--agent", &agent, "--run-id", run, "--account", "acct-1", &said])
        .await
}

/// Checks that the gateway does not let it in, and that it says what to do about that.
async fn is_not_let_in(world: &World, name: &str, id: &str) {
    let agent = format!("sandbox:{name}");
    let refused = world
        .sluice()
        .run(&["run", "--agent", &agent, "--run-id", id, "--account", "acct-1", "Hello?"])
        .await;
    assert_eq!(refused.code, Some(70), "{refused:?}");
    assert!(refused.stderr.contains(&format!("`sluice gateway pair {name}`")), "{refused:?}");
}

/// The gateway is not on the loopback.
#[tokio::test]
async fn only_the_paired_client_is_let_in() {
    let mut world = World::start().await;
    let gateway = gateway(&mut world).await;
    is_not_let_in(&world, "tokenonly", "r1").await;
    let asked = world.sluice().run(&["gateway", "pair", "there", "--wait", "0"]).await;
    assert_eq!(asked.code, Some(75), "{asked:?}");
    is_not_let_in(&world, "there", "r2").await;

    // The operator approves it while it is waited for.
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

    // Each is a client of its own, which has nothing but the token and the key.
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
    // The control: it is the key that lets in, not the address, and no other client has become known by it.
    let asked = world.sluice().run(&["gateway", "pair", "stranger", "--wait", "0"]).await;
    assert_eq!(asked.code, Some(75), "{asked:?}");
    is_not_let_in(&world, "stranger", "r5").await;
    gateway.stop().await;
}
