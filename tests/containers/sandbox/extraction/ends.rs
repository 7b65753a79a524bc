//! Tests how extractions end, and that each leaves no container.

use std::{
    fs::{self, File},
    path::Path,
    time::Duration,
};

use harness::{
    docker::{containers_of, docker},
    eventually,
};
use platform_core::{limit::ByteSize, name::label};
use platform_runtime::{retry::Transient, task};
use runner_docker::{Docker, Error, ExtractEnd, Limits};
use tokio::{
    io::copy_bidirectional,
    net::{UnixListener, UnixStream},
    sync::watch,
    time::Instant,
};

use super::{Scene, script};

/// Script that shows what a program may do.
const LOOKS: &str = "id -u; id -g; ls /sys/class/net; grep CapEff /proc/self/status; pwd; \
     for dir in /workspace / /llm-sock; do touch $dir/x 2>/dev/null && echo wrote; done; \
     ls /workspace; printf '\\377\\000\\n'; echo word >&2; exit 7";

#[tokio::test]
async fn a_program_reads_and_changes_nothing() {
    let scene = Scene::new().await;
    fs::write(scene.tree().join("file"), "").unwrap();
    let extracted = scene.extract(&scene.spec(script(LOOKS))).await;
    assert_eq!((extracted.end, extracted.detail.as_str()), (ExtractEnd::Exited(7), "word\n"));
    let expected = b"1001\n1001\nlo\nCapEff:\t0000000000000000\n/\nfile\n\xff\0\n";
    assert_eq!(fs::read(scene.output()).unwrap(), expected);
    // A later output replaces a longer one.
    assert_eq!(scene.extract(&scene.spec(script("echo end"))).await.end, ExtractEnd::Exited(0));
    assert_eq!(fs::read(scene.output()).unwrap(), b"end\n");
}

#[tokio::test]
async fn a_program_without_bounds_is_killed() {
    let scene = Scene::new().await;
    for (program, end) in [
        ("exec yes", ExtractEnd::TooLarge),
        ("head -c 1048577 /dev/zero", ExtractEnd::TooLarge),
        ("head -c 1048576 /dev/zero", ExtractEnd::Exited(0)),
        ("exec yes >&2", ExtractEnd::TimedOut),
        ("trap '' TERM; sleep 60; sleep 60", ExtractEnd::TimedOut),
        ("exec >&- 2>&-; sleep 60", ExtractEnd::TimedOut),
    ] {
        let mut spec = scene.spec(script(program));
        let is_slow = end == ExtractEnd::TimedOut;
        spec.timeout = Duration::from_secs(if is_slow { 1 } else { 60 });
        let begun = Instant::now();
        let extracted = scene.extract(&spec).await;
        assert_eq!(extracted.end, end, "{program}: {}", extracted.detail);
        assert!(extracted.bytes <= spec.limits.output.0, "{program}");
        assert!(extracted.detail.len() < 5 << 10, "{program}");
        assert!(begun.elapsed() < Duration::from_secs(50), "{program}");
    }
}

#[tokio::test]
async fn a_program_out_of_memory_is_named() {
    let scene = Scene::new().await;
    let mut spec = scene.spec(script("head -c 300M /dev/zero | tail -c 300M"));
    spec.limits = Limits { memory: ByteSize::mib(64), ..spec.limits };
    // Docker itself misses one kill in twenty beside a load; then the program has failed.
    let attempt = async || scene.extract(&spec).await.end;
    let was_named = |end: &ExtractEnd| {
        assert!(matches!(end, ExtractEnd::OutOfMemory | ExtractEnd::Exited(137)), "{end:?}");
        *end == ExtractEnd::OutOfMemory
    };
    eventually("Docker reports the kill", attempt, was_named).await;
}

#[tokio::test]
async fn a_dropped_extraction_can_be_repeated() {
    let scene = Scene::new().await;
    let slow = scene.spec(script("echo begun; sleep 60"));
    let filter = format!("name={}", slow.name);
    let running = || async { docker(&["ps", "--quiet", "--filter", &filter]).await };
    tokio::select! {
        extracted = scene.try_extract(&slow) => panic!("it takes a minute: {:?}", extracted.map(drop)),
        _ = eventually("it runs", running, |running| !running.is_empty()) => {}
    }
    assert_eq!(containers_of(&scene.installation()).await, [slow.name.as_str()]);
    let format = "{{.HostConfig.LogConfig.Type}} {{range .Mounts}}{{.Destination}} {{.RW}} {{end}}";
    assert_eq!(docker(&["inspect", "--format", format, &slow.name]).await, "none /workspace false");
    let extracted = scene.extract(&scene.spec(script("echo again"))).await;
    assert_eq!((extracted.end, extracted.bytes), (ExtractEnd::Exited(0), 6));
}

#[tokio::test]
async fn a_foreign_container_of_that_name_stays() {
    let scene = Scene::new().await;
    let spec = scene.spec(script("echo"));
    let foreign = format!("{}={}", label::INSTALLATION, scene.installation());
    docker(&["create", "--name", &spec.name, "--label", &foreign, &scene.image]).await;
    let refused = scene.try_extract(&spec).await;
    assert!(matches!(&refused, Err(error @ Error::Refused { .. }) if !error.is_transient()), "{refused:?}");
    assert_eq!(containers_of(&scene.installation()).await, [spec.name.as_str()]);
    scene.docker.remove(&spec.name).await.unwrap();
}

#[tokio::test]
async fn an_output_that_cannot_be_kept_is_an_error() {
    let scene = Scene::new().await;
    let spec = scene.spec(script("echo"));
    let read_only = File::open("/dev/null").unwrap();
    let refused = scene.docker.extract(&spec, read_only).await;
    assert!(matches!(&refused, Err(error @ Error::Output { .. }) if !error.is_transient()), "{refused:?}");
    assert_eq!(containers_of(&scene.installation()).await, [""; 0]);
}

/// Relays Docker's API on `socket`, until `cut` changes; then every connection ends, and later ones are relayed.
fn relay_docker(socket: &Path, cut: watch::Receiver<u32>) {
    let listener = UnixListener::bind(socket).unwrap();
    task::spawn("Docker that breaks off", async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut cut = cut.clone();
            cut.mark_unchanged();
            task::spawn("connection that breaks off", async move {
                let mut docker = UnixStream::connect(harness::docker::SOCKET).await.unwrap();
                tokio::select! {
                    _ = copy_bidirectional(&mut client, &mut docker) => {}
                    _ = cut.changed() => {}
                }
            });
        }
    });
}

#[tokio::test]
async fn an_output_that_breaks_off_is_an_error() {
    let mut scene = Scene::new().await;
    let socket = scene.path().join("docker.sock");
    let breaker = watch::Sender::new(0);
    relay_docker(&socket, breaker.subscribe());
    scene.docker = Docker::connect(&socket).await.unwrap();
    let spec = scene.spec(script("echo begun; sleep 3; echo end"));
    let breaks = async {
        let has_begun = || async { fs::metadata(scene.output()).is_ok_and(|output| output.len() > 0) };
        harness::eventually("it has begun", has_begun, |begun| *begun).await;
        breaker.send_modify(|cuts| *cuts += 1);
    };
    let broken = tokio::join!(scene.try_extract(&spec), breaks).0;
    assert!(matches!(&broken, Err(error) if error.is_transient()), "{broken:?}");
    assert_eq!(scene.extract(&spec).await.bytes, 10, "the control: a repetition has all of it");
}
