//! Tests the whole way of a repository into a workspace, and of an agent's commits out of it.

use std::fs;

use platform_core::id::RunId;
use runner_docker::ExtractEnd;
use runner_files::{CopyBounds, Selection, Stage, stages_dir};
use runner_git::{
    AgentClone, AuthorIdentity, BaseBranch, BundleExit, CloneDepth, CloneOrder, Git, Mirror, MirrorCache,
    Quarantine, Received, Remote, RepoUrl, SandboxBranch,
};

use super::{BRANCH, Scene, bundle, order};

/// Scene with a remote; the agent has got its repository.
struct Cloned {
    scene: Scene,
    git: Git,
    mirror: Mirror,
    start: String,
}

impl Cloned {
    async fn new() -> Self {
        let scene = Scene::new().await;
        let upstream = scene.path().join("upstream");
        fs::create_dir_all(upstream.join("src")).unwrap();
        scene.git(&upstream, &["init", "--quiet", "--initial-branch=main"]);
        fs::write(upstream.join("src/a.txt"), "a\n").unwrap();
        scene.git(&upstream, &["add", "-A"]);
        scene.git(&upstream, &["commit", "--quiet", "-m", "First"]);
        let git = Git::locate(&scene.path().join("home")).unwrap();
        let cache = MirrorCache::open(&git, &scene.path().join("cache")).unwrap();
        let url = RepoUrl::parse_local(&format!("file://{}/.git", upstream.display())).unwrap();
        let base = BaseBranch::parse("main").unwrap();
        let mirror = cache.refresh(&Remote { url, credential: None }, &base).await.unwrap();
        let clone_order = CloneOrder {
            base,
            branch: SandboxBranch::parse(BRANCH).unwrap(),
            depth: CloneDepth::default(),
            author: AuthorIdentity::new("Agent", "agent@example.org").unwrap(),
        };
        let dir = scene.path().join("clone");
        let clone = AgentClone::make(&mirror, &dir, &clone_order).await.unwrap();
        let selection = Selection::of_repository(&clone.dir, CopyBounds::default()).unwrap();
        let run = RunId::parse("r1").unwrap();
        let stages = stages_dir(scene.path());
        Stage::write(&stages, &run, &selection, &mut |_| {}).unwrap();
        Stage::open(&stages, &run).unwrap().unpack(&scene.tree()).unwrap();
        Self { scene, git, mirror, start: clone.start.to_string() }
    }

    /// Takes out the agent's work, and returns its end.
    async fn exit(&self) -> BundleExit {
        let extracted = self.scene.extract(&self.scene.spec(bundle(&self.start))).await;
        let ExtractEnd::Exited(code) = extracted.end else { panic!("{extracted:?}") };
        BundleExit::of(code)
    }

    /// Receives what was taken out.
    async fn receive(&self) -> Received {
        let quarantine = Quarantine::create(&self.git, &self.scene.path().join("quarantine")).await.unwrap();
        quarantine.receive(&self.mirror, &self.scene.output(), &order(&self.start)).await.unwrap()
    }
}

#[tokio::test]
async fn commits_leave_an_agents_workspace() {
    let cloned = Cloned::new().await;
    let scene = &cloned.scene;
    // What git says of a repository that belongs to another user is an error.
    assert_eq!(scene.agent("git status --porcelain; git fsck --strict").await, "");
    assert_eq!(cloned.exit().await, BundleExit::Complete);
    assert_eq!(cloned.receive().await, Received::Nothing);
    let work = "echo b > src/b.txt; git add -A; git commit --quiet -m Work; git rev-parse HEAD";
    let tip = scene.agent(work).await;
    assert_eq!(cloned.exit().await, BundleExit::Complete);
    let Received::Tip(received) = cloned.receive().await else { panic!("the commit is taken") };
    assert_eq!(received.to_string(), tip);
    // Packed, and replaced by nothing: the same.
    scene.agent("git commit --quiet --allow-empty -m More; git gc --quiet; git replace HEAD HEAD~1").await;
    assert_eq!(cloned.exit().await, BundleExit::Complete);
    assert!(matches!(cloned.receive().await, Received::Tip(_)));
}

#[tokio::test]
async fn a_bundle_that_cannot_be_made_says_why() {
    let cloned = Cloned::new().await;
    let rewritten = "git commit --quiet --allow-empty --amend -m Other";
    for (script, exit) in [
        // The start stays an object: the branch has a commit that the start lacks.
        (rewritten, BundleExit::Complete),
        (
            "tip=$(git rev-parse HEAD); git checkout --quiet --detach; git branch -D sandbox/run-1; git branch sandbox/run-1 $tip; git branch -m sandbox/run-1 mine",
            BundleExit::NoBranch,
        ),
        ("echo [core > .git/config", BundleExit::NoRepository),
        ("rm -rf .git", BundleExit::NoRepository),
        ("cd ..; rm -rf repo", BundleExit::NoRepository),
    ] {
        cloned.scene.agent(script).await;
        assert_eq!(cloned.exit().await, exit, "{script}");
    }
}
