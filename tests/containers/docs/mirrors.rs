//! The page on mirrored repositories: its commands work as they are written, and its entry is accepted.

use std::fs;

use harness::{Up, World, bridge::free_port, canary, mirrored_remote::MirroredRemote};
use rustix::process::Signal;
use serde_json::{Deserializer, Value};

use harness::book::Page;

#[tokio::test]
async fn mirroring_works_as_written() {
    let mut world = World::with("").await;
    assert!(world.stop_proxy().await);
    let page = Page::read("docs/src/how-to/mirrors.md");
    let volume = format!("sluice-{}-repo-web", world.installation());
    let entry = page.blocks("toml").concat().replace("sluice-default-repo-web", &volume);
    let config = fs::read_to_string(world.config()).unwrap();
    fs::write(world.config(), format!("{config}\n{entry}")).unwrap();
    let address = free_port().to_string();
    let up = Up::start(world.sluice().env("SLUICE_API_LISTEN", &address)).await;
    let remote = MirroredRemote::serve(&world.path().join("remote")).await;
    let page = page.with("https://github.com/example/web.git", &remote.url).with("127.0.0.1:4180", &address);
    let stdout = page.succeeds(&[("SLUICE_CONFIG", &world.config().display().to_string())]).await;
    canary::hand_out(fs::read_to_string(format!("{}/app.token", page.root())).unwrap().trim());
    let printed = format!("volumes = [{{ volume = \"{volume}\", container_path = \"/repo\" }}]");
    assert!(stdout.contains(&printed) && entry.contains(&printed), "{stdout}");
    let answers = stdout.find("{\"name\"").expect(&stdout);
    let answers: Vec<Value> =
        Deserializer::from_str(&stdout[answers..]).into_iter().map_while(Result::ok).collect();
    assert_eq!(answers[0]["sha"], answers[1]["repositories"][0]["sha"], "{stdout}");
    assert!(stdout.ends_with("web removed\n"), "{stdout}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
