//! Attacks on state and secrets by other users of the host. They use links in the place of files, directories they can
//! write to, files they can read, and pipes that are never written to.

use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
    path::Path,
    process::Stdio,
};

use harness::{CANARY_KEY, World, binary, eventually, grant, private_file};
use http::Method;
use rustix::process::Signal;
use serde_json::json;
use tokio::process::Command;

/// Files of the proxy's state, below the world's directory.
pub(super) const LINKED: [&str; 10] = [
    "state/closed",
    "state/revoked",
    "state/frozen",
    "state/consumers",
    "state/journal",
    "state/journal/id",
    "state/journal/lock",
    "state/journal/marks",
    "state/journal/sums",
    "state/journal/00000000000000000001.ndjson",
];

/// A link in the place of a state file is refused by its name, and nothing is written or read through it. The control
/// is the start without links, before and after.
#[tokio::test]
async fn a_link_among_the_state_is_refused() {
    let mut world = World::start().await;
    world.run("r1", "acct-1").await.agent.chat("fake").await;
    assert!(world.stop_proxy().await);
    let elsewhere = world.path().join("elsewhere");
    fs::write(&elsewhere, "precious").unwrap();
    for name in LINKED {
        let (place, aside) = (world.path().join(name), world.path().join("aside"));
        let was_there = fs::rename(&place, &aside).is_ok();
        symlink(&elsewhere, &place).unwrap();
        let said = world.proxy_fails_to_start().await;
        assert!(said.contains(place.to_str().unwrap()) && said.contains("symbolic link"), "{name}: {said}");
        assert_eq!(fs::read(&elsewhere).unwrap(), b"precious", "{name}");
        fs::remove_file(&place).unwrap();
        if was_there {
            fs::rename(&aside, &place).unwrap();
        }
    }
    // A link in the place of a temporary file is not written through, either; nor is a run read through one.
    for name in ["state/frozen.new", "state/consumers.new", "run/kept/r9.json"] {
        symlink(&elsewhere, world.path().join(name)).unwrap();
    }
    world.start_proxy().await;
    let ready = world.control.send(Method::GET, "/v1/ready", String::new()).await;
    assert_eq!(ready.status, 200);
    let told = ready.text();
    assert!(told.contains("r9") && told.contains("symbolic link"), "{told}");
    let frozen = world.sluice().run(&["freeze", "--all"]).await;
    assert_eq!(frozen.code, Some(0), "{frozen:?}");
    assert_eq!(fs::read(&elsewhere).unwrap(), b"precious");
    assert_eq!(mode(&world.path().join("state/frozen")), 0o600);
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// State is private under the widest umask, and becomes so if it was not.
#[tokio::test]
async fn state_is_private_under_any_umask() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    for name in ["state", "run"] {
        fs::remove_dir_all(world.path().join(name)).unwrap();
    }
    let mut proxy = Command::new("sh")
        .args(["-c", "umask 000 && exec \"$0\" --config \"$1\""])
        .arg(binary("sluice-proxy"))
        .arg(world.config())
        .env_clear()
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let health = || async { world.control.health().await.is_ok() };
    eventually("it answers", health, |answers| *answers).await;
    world.run("r1", "acct-1").await.agent.chat("fake").await;
    world.control.close(&"r1".parse().unwrap(), 0).await.unwrap();
    world.run("r2", "acct-1").await;
    world.control.send(Method::PUT, "/v1/runs/r2/revoked", String::new()).await;
    let all = json!([{ "kind": "all" }]).to_string();
    assert_eq!(world.control.send(Method::POST, "/v1/freeze", all).await.status, 200);
    proxy.kill().await.unwrap();
    let mut looked = 0;
    let mut dirs = vec![world.path().join("state"), world.path().join("run/kept")];
    while let Some(dir) = dirs.pop() {
        assert_eq!(format!("{:o}", mode(&dir)), "700", "{}", dir.display());
        for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
            looked += 1;
            if entry.is_dir() {
                dirs.push(entry);
            } else {
                assert_eq!(format!("{:o}", mode(&entry)), "600", "{}", entry.display());
                set(&entry, 0o666);
            }
        }
    }
    assert!(looked >= 8, "{looked} files were looked at");
    assert_eq!(mode(&world.path().join("run")), 0o755);
    world.start_proxy().await;
    for name in ["closed", "revoked", "frozen", "journal/marks", "journal/id"] {
        assert_eq!(mode(&world.path().join("state").join(name)), 0o600, "{name}");
    }
}

fn give_to_group(path: &Path, mode: u32) {
    chown(path, None, Some(12345)).unwrap();
    set(path, mode);
}

type Exposing = fn(&Path);

/// Changes that open a place to other users, and words of the refusal.
pub(super) const EXPOSED: [(&str, Exposing, &str); 13] = [
    ("state", |path| chown(path, Some(1001), None).unwrap(), "belongs to uid 1001"),
    ("state", |path| give_to_group(path, 0o770), "can be written by group 12345: `chmod g-w "),
    ("sluice.toml", |path| set(path, 0o666), "can be written by every user of this host: `chmod o-w "),
    ("sluice.toml", |path| chown(path, Some(1001), None).unwrap(), "belongs to uid 1001"),
    ("ca/ca.pem", |path| set(path, 0o646), "can be written by every user of this host: `chmod o-w "),
    ("state", |path| set(path, 0o777), "can be written by every user of this host: `chmod o-w "),
    ("state", |path| set(path, 0o1777), "can be written by every user of this host: `chmod o-w "),
    ("run", |path| chown(path, Some(1001), None).unwrap(), "belongs to uid 1001"),
    ("run", |path| set(path, 0o777), "can be written by every user of this host: `chmod o-w "),
    ("keys/key", |path| set(path, 0o644), "is open to every user of this host: `chmod o= "),
    ("keys/key", |path| set(path, 0o602), "is open to every user of this host: `chmod o= "),
    ("keys/key", |path| chown(path, Some(1001), None).unwrap(), "belongs to uid 1001"),
    ("keys", |path| set(path, 0o777), "can be written by every user of this host: `chmod o-w "),
];

/// State or keys that other users can change or read are refused with the place and the way to close it. The proxy and
/// every command that looks at them refuse. The control is the world as it was.
#[tokio::test]
async fn files_that_other_users_can_reach_are_refused() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let (keys, ca) = (world.path().join("keys"), world.path().join("ca"));
    fs::create_dir(&keys).unwrap();
    fs::create_dir(&ca).unwrap();
    fs::write(ca.join("ca.pem"), "").unwrap();
    let ca_file = format!("ca_file = '{}'\n[proxy]", ca.join("ca.pem").display());
    world.reconfigure("[proxy]", &ca_file);
    let key = world.path().join("key").display().to_string();
    world.reconfigure(&key, &keys.join("key").display().to_string());
    let right = || {
        private_file(&keys.join("key"), CANARY_KEY);
        for (name, mode) in
            [("state", 0o700), ("run", 0o755), ("keys", 0o755), ("sluice.toml", 0o644), ("ca/ca.pem", 0o644)]
        {
            set(&world.path().join(name), mode);
        }
        for name in ["state", "run", "keys/key", "sluice.toml"] {
            chown(world.path().join(name), Some(0), Some(0)).unwrap();
        }
    };
    for (name, expose, words) in EXPOSED {
        right();
        let check = world.sluice().run(&["config", "check"]).await;
        assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""), "{check:?}");
        let place = world.path().join(name);
        expose(&place);
        let told = format!("{} {words}", place.display());
        let said = world.proxy_fails_to_start().await;
        assert!(said.contains(&told) && !said.contains(CANARY_KEY), "{told} is not in {said}");
        let check = world.sluice().run(&["config", "check"]).await;
        assert!(check.code == Some(2) && check.stderr.contains(&told), "{told} is not in {check:?}");
        let doctor = world.sluice().run(&["doctor"]).await;
        assert!(doctor.stdout.contains(&told), "{told} is not in {doctor:?}");
    }
    right();
    world.start_proxy().await;
}

/// Changes that open what the control plane works with.
pub(super) const OPEN_TO_CONTROL: [(&str, Exposing, &str); 6] = [
    ("runner", |path| set(path, 0o777), "can be written by every user of this host: `chmod o-w "),
    ("runner", |path| chown(path, Some(1001), None).unwrap(), "belongs to uid 1001"),
    ("workspaces", |path| set(path, 0o702), "can be written by every user of this host: `chmod o-w "),
    ("gateways", |path| give_to_group(path, 0o770), "can be written by group 12345: `chmod g-w "),
    ("ca.pem", |path| set(path, 0o666), "can be written by every user of this host: `chmod o-w "),
    ("sluice.toml", |path| set(path, 0o666), "can be written by every user of this host: `chmod o-w "),
];

/// `sluice up` and `run` refuse exposed files and directories of the control plane, and other commands report them. The
/// control is the world as it was.
#[tokio::test]
async fn an_open_control_plane_does_not_start() {
    let world = World::start().await;
    let [ca, key] = ["ca.pem", "key"].map(|name| world.path().join(name).display().to_string());
    let gateway =
        format!("[gateways.g]\nurl = 'wss://127.0.0.1:1'\ntoken_file = '{key}'\nca_file = '{ca}'\n[store]");
    world.reconfigure("[store]", &gateway);
    world.reconfigure("[proxy]", "[proxy]\nlisten = '127.0.0.1:0'");
    fs::write(&ca, "").unwrap();
    for name in ["runner", "workspaces", "gateways"] {
        fs::create_dir_all(world.path().join(name)).unwrap();
    }
    for (name, expose, words) in OPEN_TO_CONTROL {
        for (name, mode) in [
            ("runner", 0o700),
            ("workspaces", 0o700),
            ("gateways", 0o700),
            ("ca.pem", 0o644),
            ("sluice.toml", 0o644),
        ] {
            chown(world.path().join(name), Some(0), Some(0)).unwrap();
            set(&world.path().join(name), mode);
        }
        let check = world.sluice().run(&["config", "check"]).await;
        assert_eq!((check.code, check.stderr.as_str()), (Some(0), ""), "{check:?}");
        let place = world.path().join(name);
        expose(&place);
        let told = format!("{} {words}", place.display());
        for command in [&["up"][..], &["run", "Hello?"], &["config", "check"]] {
            let refused = world.sluice().run(command).await;
            assert!(
                refused.code == Some(2) && refused.stderr.contains(&told),
                "{told} is not in {refused:?}"
            );
        }
        let doctor = world.sluice().run(&["doctor"]).await;
        assert!(doctor.stdout.contains(&told), "{told} is not in {doctor:?}");
    }
}

/// Runs `sluice-proxy --check` as root: its exit code and its words.
async fn checked(world: &World) -> (Option<i32>, String) {
    let mut check = Command::new(binary("sluice-proxy"));
    let check = check.arg("--check").arg("--config").arg(world.config()).env_clear().stdin(Stdio::null());
    let output = check.output().await.unwrap();
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

fn give(world: &World, names: &[&str], uid: u32) {
    names.iter().for_each(|name| chown(world.path().join(name), Some(uid), None).unwrap());
}

/// An operator runs a check as root: it judges a service's directories as the service's user, and no advice takes them
/// away from that user. An agent's user is not a service's, and where a proxy runs, its user decides.
#[tokio::test]
async fn a_check_by_root_is_that_of_the_service() {
    const SERVICE: u32 = 12345;
    let mut world = World::start().await;
    give(&world, &["state"], SERVICE);
    let check = world.sluice().run(&["config", "check"]).await;
    assert!(
        check.code == Some(2) && check.stderr.contains("belongs to uid 12345"),
        "root runs it: {check:?}"
    );
    give(&world, &["state"], 0);
    assert!(world.stop_proxy().await);
    // Systemd makes the service's directories where root's are.
    set(world.path(), 0o755);
    give(&world, &["state", "state/journal", "run", "key"], SERVICE);
    assert_eq!(checked(&world).await, (Some(0), "the configuration is valid\n".to_owned()));
    let check = world.sluice().run(&["config", "check"]).await;
    assert_eq!(check.code, Some(0), "{check:?}");
    let said = world.proxy_fails_to_start().await;
    assert!(said.contains("belongs to uid 12345") && !said.contains("chown 0"), "{said}");
    give(&world, &["run"], 3000);
    let (code, said) = checked(&world).await;
    assert!(code == Some(2) && said.contains("uid 3000") && said.contains("`chown 12345 "), "{said}");
    give(&world, &["run", "state", "state/journal", "key"], 1001);
    let (code, said) = checked(&world).await;
    assert!(code == Some(2) && said.contains("belongs to uid 1001") && !said.contains("chown 0"), "{said}");
    let peer = "[runs.r]\naccount = 'a'\nsocket = '/nowhere/llm.sock'\npeer_uid = 12345\n[store]";
    world.reconfigure("[store]", peer);
    give(&world, &["run", "state", "state/journal", "key"], SERVICE);
    let (code, said) = checked(&world).await;
    assert!(code == Some(2) && said.contains("belongs to uid 12345"), "an agent of [runs]: {said}");
}

/// A pipe in the place of the configuration or of a key is refused at once: calls, control and signals are not kept
/// waiting. The control is the reload after it.
#[tokio::test]
async fn a_pipe_for_a_configuration_blocks_nothing() {
    let mut world = World::start().await;
    let run = world.run_with(grant("r1", "acct-1")).await;
    for name in ["sluice.toml", "key"] {
        let (place, aside) = (world.path().join(name), world.path().join("aside"));
        fs::rename(&place, &aside).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &place, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR)
            .unwrap();
        for _ in 0..20 {
            world.signal_proxy(Signal::HUP);
        }
        let answer = world.control.send(Method::POST, "/v1/reload", String::new()).await;
        assert!(answer.status == 409 && answer.text().contains("not a regular file"), "{}", answer.text());
        assert_eq!(run.agent.chat("fake").await.status, 200);
        let said = world.proxy_fails_to_start().await;
        assert!(said.contains("not a regular file"), "{said}");
        fs::remove_file(&place).unwrap();
        fs::rename(&aside, &place).unwrap();
        let answer = world.control.send(Method::POST, "/v1/reload", String::new()).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    rustix::fs::mkfifoat(rustix::fs::CWD, world.path().join("pipe"), rustix::fs::Mode::RWXU).unwrap();
    let config = world.config();
    fs::rename(&config, world.path().join("aside")).unwrap();
    fs::rename(world.path().join("pipe"), &config).unwrap();
    world.signal_proxy(Signal::HUP);
    assert!(world.stop_proxy().await, "it stops when told to");
    fs::remove_file(config).unwrap();
}
