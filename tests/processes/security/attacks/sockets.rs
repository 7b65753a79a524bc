//! Attacks on the places of sockets: an agent writes to its own socket's directory, or control would give one directory
//! to two owners.

use std::{
    fs,
    os::unix::{
        fs::{chown, symlink},
        net::UnixListener,
    },
    path::{Path, PathBuf},
};

use harness::{Agent, World, eventually, grant};
use http::Method;
use serde_json::{Value, json};

type Plant = fn(&Path);

/// Things that an agent leaves where its own socket goes.
pub(super) const PLANTS: [(&str, Plant); 6] = [
    ("file", |place| fs::write(place, "in the way").unwrap()),
    ("link", |place| symlink("/dev/null", place).unwrap()),
    ("dangling", |place| symlink("/nowhere/at/all", place).unwrap()),
    ("directory", |place| fs::create_dir(place).unwrap()),
    ("full", |place| fs::create_dir_all(place.join("file")).unwrap()),
    ("foreign", |place| {
        drop(UnixListener::bind(place).unwrap());
        chown(place, Some(1001), None).unwrap();
    }),
];

/// Returns settings of static runs on `llm/<name>/llm.sock`.
fn runs(world: &World, names: &[&str]) -> String {
    let run = |name: &&str| {
        let socket = socket(world, name);
        format!("[runs.{name}]\naccount = 'acct-1'\npeer_uid = 0\nsocket = '{}'\n", socket.display())
    };
    names.iter().map(run).collect()
}

fn socket(world: &World, run: &str) -> PathBuf {
    world.path().join("llm").join(run).join("llm.sock")
}

async fn readiness(world: &World) -> (u16, Value) {
    let answer = world.control.send(Method::GET, "/v1/ready", String::new()).await;
    (answer.status.as_u16(), answer.json())
}

/// Agents plant files and links where their sockets go; the other runs are still served, and the proxy becomes ready.
/// Each planted run has its socket as soon as the way is free. The control is the run beside them.
#[tokio::test]
async fn a_planted_socket_path_stops_only_its_run() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let mut names: Vec<_> = PLANTS.iter().map(|(name, _)| *name).collect();
    names.push("honest");
    for name in &names {
        fs::create_dir_all(socket(&world, name).parent().unwrap()).unwrap();
    }
    // Its directory cannot be made, either.
    names.push("homeless/of");
    let config = fs::read_to_string(world.config()).unwrap();
    let settings = runs(&world, &names).replace("[runs.homeless/of]", "[runs.homeless]");
    fs::write(world.config(), config + &settings).unwrap();
    for (name, plant) in PLANTS {
        plant(&socket(&world, name));
    }
    world.start_proxy().await;
    assert_eq!(Agent::on(&socket(&world, "honest")).chat("fake").await.status, 200);
    world.run("registered", "acct-1").await.agent.chat("fake").await;
    let (status, told) = readiness(&world).await;
    assert_eq!((status, told["reasons"].as_array().unwrap().len()), (200, PLANTS.len() + 1), "{told}");
    let doctor = world.sluice().run(&["doctor"]).await;
    for (name, _) in PLANTS {
        assert!(
            told.to_string().contains(name) && doctor.stdout.contains(&format!("run {name}: ")),
            "{doctor:?}"
        );
    }
    for (name, _) in PLANTS {
        let place = socket(&world, name);
        drop(fs::remove_file(&place).or_else(|_| fs::remove_dir_all(&place)));
    }
    fs::create_dir(world.path().join("llm/homeless")).unwrap();
    let open = || readiness(&world);
    let (_, told) = eventually("they are open", open, |(_, told)| told["reasons"] == json!([])).await;
    assert_eq!(told["ready"], true);
    for name in names {
        assert_eq!(Agent::on(&socket(&world, name)).chat("fake").await.status, 200, "{name}");
    }
}

/// A directory that the agent can write is reported: at the start, by `config check` and by the doctor.
#[tokio::test]
async fn a_directory_its_agent_can_write_is_told() {
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let config = fs::read_to_string(world.config()).unwrap();
    let settings = runs(&world, &["closed", "owned", "open"]).replace("peer_uid = 0", "peer_uid = 1001");
    // Its directory is closed, and the one above it the agent's, which can move it away.
    let below = settings.replace("closed", "below").replace("/below/", "/agents/below/");
    let below = below.split("[runs.owned]").next().unwrap();
    fs::write(world.config(), config + &settings + below).unwrap();
    for name in ["closed", "owned", "open"] {
        fs::create_dir_all(socket(&world, name).parent().unwrap()).unwrap();
    }
    let dir = |name: &str| socket(&world, name).parent().unwrap().to_owned();
    chown(dir("owned"), Some(1001), None).unwrap();
    let agents = dir("closed").with_file_name("agents");
    fs::create_dir_all(agents.join("below")).unwrap();
    chown(&agents, Some(1001), None).unwrap();
    fs::set_permissions(dir("open"), std::os::unix::fs::PermissionsExt::from_mode(0o1777)).unwrap();
    let dirs = ["closed", "owned", "open"].map(|name| dir(name).display().to_string());
    world.start_proxy().await;
    let check = world.sluice().run(&["config", "check"]).await;
    assert_eq!(check.code, Some(0), "it is reported, not refused: {check:?}");
    let doctor = world.sluice().run(&["doctor"]).await;
    let warned = world.log().lines().filter(|line| line.contains("WARN")).collect::<String>();
    for told in [&warned, &check.stderr, &doctor.stdout] {
        assert!(told.contains(&format!("{} belongs to uid 1001", dirs[1])), "{told}");
        assert!(told.contains(&format!("{} belongs to uid 1001", agents.display())), "{told}");
        assert!(told.contains(&format!("{} can be written by every user", dirs[2])), "{told}");
        assert!(!told.contains(&format!("{} ", dirs[0])), "the one that is closed is not told: {told}");
    }
}

const DIR: &str = "0123456789abcdef0123456789abcdef";
const OTHER: &str = "fedcba9876543210fedcba9876543210";

/// Asks control for a run or gateway in a directory; returns the status and the problem's code and words.
async fn open(world: &World, path: &str, dir: &str) -> (u16, String) {
    let name = path.rsplit('/').next().unwrap();
    let body = if path.starts_with("/v1/runs") {
        json!({ "grant": grant(name, &format!("acct-{name}")), "socket_dir": dir })
    } else {
        json!({ "peer_uid": 0, "socket_dir": dir })
    };
    let answer = world.control.send(Method::PUT, path, body.to_string()).await;
    (answer.status.as_u16(), answer.text())
}

/// Owners of a directory, and those that come second.
pub(super) const SECONDS: [(&str, &str); 4] = [
    ("/v1/runs/y1", "/v1/runs/y2"),
    ("/v1/runs/y1", "/v1/gateways/g2"),
    ("/v1/gateways/g1", "/v1/gateways/g2"),
    ("/v1/gateways/g1", "/v1/runs/y2"),
];

/// A directory belongs to the run or gateway that came first, until that is closed, also after a restart. The control
/// is the same request for another directory.
#[tokio::test]
async fn a_socket_directory_has_one_owner() {
    let mut world = World::start().await;
    for (first, second) in SECONDS {
        assert_eq!(open(&world, first, DIR).await.0, 200, "{first}");
        assert_eq!(open(&world, first, DIR).await.0, 200, "{first} again");
        for _ in 0..2 {
            let (status, problem) = open(&world, second, DIR).await;
            assert!(
                status == 409 && problem.contains("socket_in_use"),
                "{first} {second}: {status} {problem}"
            );
            let owner = first.rsplit('/').next().unwrap();
            assert!(problem.contains(&format!(" {owner}: close that first")), "{problem}");
            world.kill_proxy().await;
            world.start_proxy().await;
        }
        let agent = Agent::on(&world.path().join("run/runs").join(DIR).join("llm.sock"));
        if first.ends_with("y1") {
            assert_eq!(agent.chat("fake").await.status, 200);
            let call = world.upstream.ledger().last().unwrap();
            assert_eq!(call.header("x-litellm-end-user-id"), ["acct-y1"]);
        }
        assert!(agent.connect().await.is_ok(), "{first}");
        assert_eq!(open(&world, second, OTHER).await.0, 200, "{second}: another directory is free");
        for path in [first, second] {
            world.control.send(Method::DELETE, path, String::new()).await;
        }
        // A run that was closed is not opened again.
        assert!(world.stop_proxy().await);
        for name in ["state/closed", "run/kept"] {
            let path = world.path().join(name);
            drop(fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path)));
        }
        world.start_proxy().await;
    }
}

/// Two names of one socket are one socket, and none of the proxy's own directories is a place for one.
#[tokio::test]
async fn a_socket_has_one_run_under_any_name() {
    let world = World::start().await;
    let root = world.path().display().to_string();
    fs::create_dir_all(world.path().join("llm/one")).unwrap();
    symlink("llm", world.path().join("alias")).unwrap();
    let config = fs::read_to_string(world.config()).unwrap();
    for (second, words) in [
        ("llm/one/llm.sock", "run a1 has the same socket"),
        ("llm/./one//llm.sock", "run a1 has the same socket"),
        ("llm/one/../one/llm.sock", "run a1 has the same socket"),
        ("alias/one/llm.sock", "run a1 has the same socket"),
        ("run/control/control.sock", "in a directory of the proxy's own sockets"),
        ("alias/../run/runs/llm.sock", "in a directory of the proxy's own sockets"),
        ("run/kept/llm.sock", "in a directory of the proxy's own sockets"),
    ] {
        let run =
            |id: &str, socket: &str| format!("[runs.{id}]\naccount = 'a'\nsocket = '{root}/{socket}'\n");
        let runs = run("a1", "llm/one/llm.sock") + &run("a2", second);
        fs::write(world.config(), format!("{config}\n{runs}")).unwrap();
        let check = world.sluice().run(&["config", "check"]).await;
        assert!(check.code == Some(2) && check.stderr.contains(words), "{second}: {check:?}");
        fs::write(world.config(), format!("{config}\n{}", runs.replace(second, "llm/one/other.sock")))
            .unwrap();
        let check = world.sluice().run(&["config", "check"]).await;
        assert!(second == "llm/one/llm.sock" || check.code == Some(0), "the control of {second}: {check:?}");
    }
    fs::write(world.config(), config).unwrap();
}

/// A run that cannot be opened again keeps its directory and its limits, even when another run is registered meanwhile.
/// The control is the same run once the way is free.
#[tokio::test]
async fn a_run_that_cannot_be_restored_loses_nothing() {
    let mut world = World::start().await;
    assert_eq!(open(&world, "/v1/runs/y1", DIR).await.0, 200);
    let limits = json!({ "requests": 1 }).to_string();
    assert_eq!(world.control.send(Method::PUT, "/v1/runs/y1/budget", limits).await.status, 200);
    assert!(world.stop_proxy().await);
    let dir = world.path().join("run/runs").join(DIR);
    let aside = world.path().join("run/runs/aside");
    fs::rename(&dir, &aside).unwrap();
    fs::write(&dir, "in the way").unwrap();
    world.start_proxy().await;
    for _ in 0..2 {
        let (status, problem) = open(&world, "/v1/runs/y1", DIR).await;
        assert!(status >= 500, "{status} {problem}");
        let (status, problem) = open(&world, "/v1/runs/y2", DIR).await;
        assert!(status == 409 && problem.contains(" y1: close that first"), "{status} {problem}");
    }
    let (_, told) = readiness(&world).await;
    assert!(told["reasons"].to_string().contains("y1"), "{told}");
    fs::remove_file(&dir).unwrap();
    fs::rename(&aside, &dir).unwrap();
    let marker = dir.join("mounted");
    fs::write(&marker, "").unwrap();
    assert_eq!(open(&world, "/v1/runs/y1", DIR).await.0, 200);
    assert!(marker.exists(), "the directory that a container has mounted is still that one");
    let agent = Agent::on(&dir.join("llm.sock"));
    assert_eq!(agent.chat("fake").await.status, 200);
    let second = agent.chat("fake").await;
    assert_eq!(
        (second.status.as_u16(), second.text().contains("quota_exhausted")),
        (400, true),
        "{}",
        second.text()
    );
}
