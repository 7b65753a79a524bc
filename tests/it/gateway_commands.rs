//! `sluice gateway`, where no gateway is: what is wrong is named, and nothing is made.

use std::{fs, os::unix::fs::PermissionsExt};

use harness::{Outcome, World};
use serde_json::Value;

/// A world with a gateway here and one elsewhere, whose token everybody can read.
async fn world() -> World {
    let world = World::with("[gateways.here]\n").await;
    let token = world.path().join("token");
    fs::write(&token, "a-token\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let there = format!(
        "[gateways.here]\n[gateways.there]\nurl = 'ws://127.0.0.1:9'\ntoken_file = '{}'\n",
        token.display()
    );
    world.reconfigure("[gateways.here]\n", &there);
    world.reconfigure("[proxy]\n", "[proxy]\nlisten = '127.0.0.1:4199'\n");
    world
}

fn codes(outcome: &Outcome, at: usize) -> Vec<String> {
    let all: Value = serde_json::from_str(&outcome.stdout).unwrap_or_else(|_| panic!("{outcome:?}"));
    let findings = all["gateways"][at]["findings"].as_array().unwrap().clone();
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn what_cannot_be_is_told_with_the_way_to_mend_it() {
    let world = world().await;
    for (words, code, told) in [
        (&["gateway", "up", "none"][..], 2, "there is no [gateways.none]; there are: here, there"),
        (&["gateway", "check", "none"], 2, "there is no [gateways.none]"),
        (&["gateway", "up", "there"], 2, "does not run here but at ws://127.0.0.1:9"),
        (&["gateway", "down", "there"], 2, "does not run here"),
        (&["gateway", "pair", "there"], 2, "`device_key_file`"),
    ] {
        let outcome = world.sluice().run(words).await;
        assert_eq!(outcome.code, Some(code), "{words:?}: {outcome:?}");
        assert!(outcome.stderr.contains(told), "{words:?}: {outcome:?}");
    }
    let listed = world.sluice().run(&["gateway", "ls"]).await;
    let rows: Vec<Vec<&str>> = listed.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[1], ["here", "down", "here", "any", "8", "trace"], "{listed:?}");
    assert_eq!(rows[2], ["there", "down", "ws://127.0.0.1:9", "any", "8", "trace"], "{listed:?}");

    let checked = world.sluice().run(&["gateway", "check", "--json"]).await;
    assert_eq!(checked.code, Some(1), "{checked:?}");
    assert_eq!(codes(&checked, 0), ["gateway_away", "secret_exposed"]);
    assert_eq!(codes(&checked, 1), ["gateway_away", "secret_exposed"]);
    assert!(checked.stdout.contains("chmod go="), "{checked:?}");
    let doctor = world.sluice().run(&["doctor"]).await;
    assert!(doctor.stdout.contains("here is down, there is down"), "{doctor:?}");
    world.assert_nothing_left().await;
}
