//! Attacks on state and secrets by other users of the host: links in the place of files, directories they can write to, files
//! they can read, and pipes that are never written to.

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

/// A link in the place of a state file is refused by its name, and nothing is written or read through it. The control is the
/// start without links, before and after.
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
    // What is written before it is put in place is not written through a link, either; nor is a run read through one.
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

type Exposing = fn(&Path);

/// Changes that open a place to other users, and words of the refusal.
pub(super) const EXPOSED: [(&str, Exposing, &str); 8] = [
    ("state", |path| set(path, 0o777), "can be written by every user of this host: `chmod o-w "),
    ("state", |path| set(path, 0o1777), "can be written by every user of this host: `chmod o-w "),
    ("run", |path| chown(path, Some(1001), None).unwrap(), "belongs to uid 1001"),
    ("run", |path| set(path, 0o777), "can be written by every user of this host: `chmod o-w "),
    ("keys/key", |path| set(path, 0o644), "is open to every user of this host: `chmod o= "),
    ("keys/key", |path| set(path, 0o602), "is open to every user of this host: `chmod o= "),
    ("keys/key", |path| chown(path, Some(1001), None).unwrap(), "belongs to uid 1001"),
    ("keys", |path| set(path, 0o777), "can be written by every user of this host: `chmod o-w "),
];

/// State or keys that other users can change or read are refused with the place and the way to close it, by the proxy and by
/// every command that looks. The control is the world as it was.
#[tokio::test]
async fn what_other_users_can_reach_is_refused() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let keys = world.path().join("keys");
    fs::create_dir(&keys).unwrap();
    let key = world.path().join("key").display().to_string();
    world.reconfigure(&key, &keys.join("key").display().to_string());
    let right = || {
        private_file(&keys.join("key"), CANARY_KEY);
        for (name, mode) in [("state", 0o700), ("run", 0o755), ("keys", 0o755)] {
            set(&world.path().join(name), mode);
        }
        for name in ["run", "keys/key"] {
            chown(world.path().join(name), Some(0), None).unwrap();
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

/// A pipe in the place of the configuration or of a key is refused at once: calls, control and signals are not kept waiting.
/// The control is the reload after it.
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
