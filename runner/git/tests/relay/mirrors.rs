//! mirrors tests what a mirror bears: a fetch that was killed, damage, and branches that are replaced.

use std::{fs, path::PathBuf};

use runner_git::{AgentClone, BaseBranch, MirrorCache, PushOutcome};

use crate::{
    agent::{done, fed, plain_git},
    world::{Relayed, World},
};

/// Packs after which a mirror is surely repacked.
const PACKS: usize = 52;

impl World {
    /// Returns the repository of the only mirror.
    fn mirrored(&self) -> PathBuf {
        let mut entries = fs::read_dir(self.dir.join("cache")).expect("the cache is listed");
        entries.next().expect("it has a mirror").expect("it is read").path().join("repository.git")
    }

    /// Moves a branch of the remote to a new commit, beside its old history.
    fn replace_branch(&self, name: &str) {
        let mut commit = plain_git(&self.home, &self.upstream);
        let new = done(commit.args(["commit-tree", "main^{tree}", "-m", "Replaced"]));
        let reference = format!("refs/heads/{name}");
        done(plain_git(&self.home, &self.upstream).args(["update-ref", &reference, &new]));
    }
}

#[tokio::test]
async fn a_killed_fetch_leaves_a_mirror_usable() {
    let world = World::new();
    world.mirror().await;
    let mirrored = world.mirrored();
    for leftover in ["packed-refs.lock", "refs/heads/main.lock", "shallow.lock", "objects/pack/tmp_pack_x"] {
        let path = mirrored.join(leftover);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    world.replace_branch("main");
    let tip = world.mirror().await.base_tip(&World::base()).await.unwrap();
    assert_eq!(Some(tip.to_string()), world.remote_tip("main"));
    assert!(!mirrored.join("objects/pack/tmp_pack_x").exists());
}

#[tokio::test]
async fn a_damaged_mirror_is_made_again() {
    let world = World::new();
    world.mirror().await;
    let mirrored = world.mirrored();
    fs::remove_file(mirrored.join("HEAD")).unwrap();
    let tip = world.mirror().await.base_tip(&World::base()).await.unwrap();
    assert_eq!(Some(tip.to_string()), world.remote_tip("main"));
}

#[tokio::test]
async fn a_base_takes_the_place_of_a_former_one() {
    let world = World::new();
    let upstream = |arguments: &[&str]| {
        done(plain_git(&world.home, &world.upstream).args(arguments));
    };
    for (gone, new) in [("old", "old/new"), ("old/new", "old")] {
        upstream(&["branch", gone, "main"]);
        world.cache.refresh(&world.remote, &BaseBranch::parse(gone).unwrap()).await.unwrap();
        upstream(&["branch", "-D", gone]);
        upstream(&["branch", new, "main"]);
        let base = BaseBranch::parse(new).unwrap();
        let mirror = world.cache.refresh(&world.remote, &base).await.unwrap();
        assert!(mirror.base_tip(&base).await.is_ok());
        upstream(&["branch", "-D", new]);
    }
}

#[tokio::test]
async fn a_start_that_was_replaced_stays() {
    let world = World::new();
    let agent = world.agent().await;
    let mirrored = world.mirrored();
    done(plain_git(&world.home, &mirrored).args(["repack", "-a", "-d", "-q"]));
    for number in 0..PACKS {
        let text = number.to_string();
        let mut store = plain_git(&world.home, &mirrored);
        let blob = fed(store.args(["hash-object", "-w", "--stdin"]), text.as_bytes());
        let mut pack = plain_git(&world.home, &mirrored);
        fed(pack.args(["pack-objects", "--quiet", "objects/pack/pack"]), format!("{blob}\n").as_bytes());
    }
    // The remote still has the start, or it could not take a commit on a shallow one.
    done(plain_git(&world.home, &world.upstream).args(["branch", "kept", "main"]));
    world.replace_branch("main");
    world.mirror().await;
    let packs = fs::read_dir(mirrored.join("objects/pack")).unwrap().count();
    assert!(packs < PACKS, "it was repacked: {packs} files");
    agent.work();
    let relayed = world.relay(&agent).await;
    assert!(matches!(relayed, Relayed::Pushed(PushOutcome::Pushed)), "{relayed:?}");
}

#[tokio::test]
async fn a_clock_that_steps_back_hides_no_commit() {
    let world = World::new();
    world.mirror().await;
    let dir = world.mirrored().parent().unwrap().to_owned();
    let entries = fs::read_dir(dir).unwrap().filter_map(Result::ok);
    let is_time = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("fetched-");
    let times: Vec<_> = entries.filter(is_time).collect();
    assert_eq!(times.len(), 1);
    // In the clock of that fetch, all of today was long ago.
    fs::write(times[0].path(), u128::MAX.to_string()).unwrap();
    world.replace_branch("main");
    let tip = world.mirror().await.base_tip(&World::base()).await.unwrap();
    assert_eq!(Some(tip.to_string()), world.remote_tip("main"));
}

#[tokio::test]
async fn a_cache_may_lie_at_an_encoded_path() {
    let world = World::new();
    let git = &world.git;
    let cache = MirrorCache::open(git, &world.dir.join("cache%41")).unwrap();
    let mirror = cache.refresh(&world.remote, &World::base()).await.unwrap();
    let clone = AgentClone::make(&mirror, &world.dir.join("clone"), &World::order()).await;
    assert!(clone.is_ok(), "{clone:?}");
}
