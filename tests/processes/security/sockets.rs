//! Tests sockets and their directories: which users may reach them, and what is refused where they should go.

use std::{
    fs,
    os::unix::{
        fs::{MetadataExt, chown, symlink},
        net::UnixListener,
    },
    path::Path,
};

use harness::{Agent, World, grant};
use http::Method;
use platform_core::name::CONTROL_GROUP;
use serde_json::{Value, json};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

#[tokio::test]
async fn modes_let_in_who_must_come_in() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    run.agent.chat("fake").await;
    // The group may be missing on a machine where only root operates.
    let groups = fs::read_to_string("/etc/group").unwrap();
    let has_group = groups.lines().any(|line| line.split(':').next() == Some(CONTROL_GROUP));
    let table = [
        (world.path().join("run/control"), if has_group { 0o750 } else { 0o700 }),
        (world.path().join("run/control/control.sock"), 0o660),
        (world.path().join("run/runs"), 0o700),
        (run.socket.parent().unwrap().to_owned(), 0o711),
        (run.socket.clone(), 0o666),
        (world.journal_file(), 0o600),
    ];
    for (path, expected) in table {
        assert_eq!(format!("{:o}", mode(&path)), format!("{expected:o}"), "{}", path.display());
    }
    let name = run.socket.parent().unwrap().file_name().unwrap().to_str().unwrap();
    assert!(
        name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "a name nobody guesses: {name}"
    );
}

/// Makes something stand where the proxy wants to put a directory or a socket.
type Plant = fn(place: &Path, elsewhere: &Path);

const LINK: Plant = |place, elsewhere| symlink(elsewhere, place).unwrap();
const FILE: Plant = |place, _| fs::write(place, "precious").unwrap();
const FOREIGN_DIR: Plant = |place, _| {
    fs::create_dir(place).unwrap();
    chown(place, Some(1001), Some(1001)).unwrap();
};
const FOREIGN_SOCKET: Plant = |place, _| {
    drop(UnixListener::bind(place).unwrap());
    chown(place, Some(1001), Some(1001)).unwrap();
};

/// The files lie where the proxy puts its own.
#[tokio::test]
async fn planted_files_are_refused_and_left_alone() {
    let table = [
        ("run/control", LINK, "is a symbolic link"),
        ("run/control", FILE, "is not a directory"),
        ("run/control", FOREIGN_DIR, "belongs to uid 1001"),
        ("run/control/control.sock", LINK, "is a symbolic link"),
        ("run/control/control.sock", FILE, "is not a socket"),
        ("run/control/control.sock", FOREIGN_SOCKET, "belongs to uid 1001"),
        ("run/runs", LINK, "is a symbolic link"),
        ("run/runs", FOREIGN_DIR, "belongs to uid 1001"),
    ];
    let mut world = World::start().await;
    assert!(world.stop_proxy().await);
    let elsewhere = world.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    for (place, plant, complaint) in table {
        let place = world.path().join(place);
        drop(fs::remove_dir(&place));
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        plant(&place, &elsewhere);
        let planted = fs::symlink_metadata(&place).unwrap();
        let said = world.proxy_fails_to_start().await;
        assert!(said.contains(complaint) && said.contains(place.to_str().unwrap()), "{said}");
        let found = fs::symlink_metadata(&place).unwrap();
        assert_eq!((found.ino(), found.mode(), found.uid()), (planted.ino(), planted.mode(), planted.uid()));
        assert_eq!(
            fs::read_dir(&elsewhere).unwrap().count(),
            0,
            "nothing was made through {}",
            place.display()
        );
        drop(fs::remove_file(&place).or_else(|_| fs::remove_dir(&place)));
    }
    // Once all that is removed it starts.
    world.start_proxy().await;
}

/// Registers run `r1` with a directory of a given name and returns what is wrong with that.
async fn registration(world: &World, directory: &str) -> Value {
    let body = json!({ "grant": grant("r1", "acct-1"), "socket_dir": directory }).to_string();
    world.control.send(Method::PUT, "/v1/runs/r1", body).await.json()
}

/// The link lies where a run's directory or socket goes.
#[tokio::test]
async fn a_planted_link_is_refused() {
    let world = World::start().await;
    let (name, elsewhere) = ("0123456789abcdef0123456789abcdef", world.path().join("elsewhere"));
    let directory = world.path().join("run/runs").join(name);
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, &directory).unwrap();
    let problem = registration(&world, name).await;
    assert!(problem["error"]["message"].as_str().unwrap().contains("is a symbolic link"), "{problem}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    fs::remove_file(&directory).unwrap();
    fs::create_dir(&directory).unwrap();
    symlink(elsewhere.join("llm.sock"), directory.join("llm.sock")).unwrap();
    let problem = registration(&world, name).await;
    assert!(problem["error"]["message"].as_str().unwrap().contains("is a symbolic link"), "{problem}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    drop(fs::remove_dir_all(&directory));
    assert_eq!(registration(&world, name).await["socket_dir"], name, "without a link it works");
}

/// Returns a `run_dir` so long that a run's socket has `bytes` bytes.
fn run_dir(world: &World, bytes: usize) -> String {
    let root = world.path().display().to_string();
    let rest = "/runs//llm.sock".len() + 32;
    format!("{root}/{}", "d".repeat(bytes - rest - root.len() - 1))
}

async fn restart_in(world: &mut World, directory: &str) {
    let config = fs::read_to_string(world.config()).unwrap();
    let now = config.lines().find(|line| line.starts_with("run_dir")).unwrap().to_owned();
    assert!(world.stop_proxy().await);
    world.reconfigure(&now, &format!("run_dir = '{directory}'"));
    world.control = harness::Control::on(Path::new(&format!("{directory}/control/control.sock")));
}

#[tokio::test]
async fn a_socket_path_that_is_too_long_is_called_that() {
    let mut world = World::start().await;
    let directory = run_dir(&world, 107);
    restart_in(&mut world, &directory).await;
    world.start_proxy().await;
    let run = world.run("r1", "acct-1").await;
    assert_eq!((run.socket.as_os_str().len(), run.agent.chat("fake").await.status.as_u16()), (107, 200));

    let directory = run_dir(&world, 108);
    restart_in(&mut world, &directory).await;
    let said = world.proxy_fails_to_start().await;
    assert!(said.contains("a socket's path below it has at most 107 bytes, so it has at most 60"), "{said}");
    world.reconfigure(&directory, &run_dir(&world, 107));
}

#[tokio::test]
async fn a_second_proxy_does_not_take_over() {
    let world = World::start().await;
    let run = world.run("r1", "acct-1").await;
    let said = world.proxy_fails_to_start().await;
    assert!(said.contains("a proxy already serves"), "{said}");
    assert_eq!(run.agent.chat("fake").await.status, 200);
    let health = world.control.health().await.unwrap();
    assert_eq!((health.pid, health.runs), (world.proxy_pid(), 1));
    assert!(Agent::on(&run.socket).connect().await.is_ok());
}
