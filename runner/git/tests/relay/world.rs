//! world is a host with a remote, a cache and a relay, all in one directory that is removed at the end.

use std::{
    fs,
    path::{Path, PathBuf},
};

use runner_git::{
    AcceptedWork, AgentClone, AuthorIdentity, BaseBranch, BranchKey, BundleBounds, CloneDepth, CloneOrder,
    CollectOrder, Git, Mirror, MirrorCache, Objection, PushOrder, PushOutcome, Quarantine, Received,
    RelayPolicy, RelayRule, RelayVerdict, Remote, RepoUrl, SandboxBranch,
};
use tempfile::TempDir;

use crate::agent::{Agent, done, plain_git};

/// Host with one remote.
pub(crate) struct World {
    pub(crate) dir: PathBuf,
    pub(crate) home: PathBuf,
    /// Bare repository that people work with.
    pub(crate) upstream: PathBuf,
    pub(crate) git: Git,
    pub(crate) cache: MirrorCache,
    pub(crate) remote: Remote,
    _owned: TempDir,
}

/// End of a relay.
#[derive(Debug)]
pub(crate) enum Relayed {
    Nothing,
    Refused(Vec<Objection>),
    Pushed(PushOutcome),
}

impl Relayed {
    pub(crate) fn rules(&self) -> Vec<RelayRule> {
        match self {
            Self::Refused(objections) => objections.iter().map(|objection| objection.rule).collect(),
            Self::Nothing | Self::Pushed(_) => Vec::new(),
        }
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let owned = TempDir::new().expect("a directory is made");
        let dir = fs::canonicalize(owned.path()).expect("it is there");
        let home = dir.join("plain-home");
        fs::create_dir(&home).expect("a directory is made");
        let upstream = dir.join("upstream.git");
        make_upstream(&home, &dir, &upstream);
        let git = Git::locate(&dir.join("home")).expect("git is installed");
        let cache = MirrorCache::open(&git, &dir.join("cache")).expect("a cache is made");
        let url = RepoUrl::parse_local(&format!("file://{}", upstream.display())).expect("it is an address");
        Self { dir, home, upstream, git, cache, remote: Remote { url, credential: None }, _owned: owned }
    }

    pub(crate) fn base() -> BaseBranch {
        BaseBranch::parse("main").expect("it is a branch")
    }

    pub(crate) fn branch() -> SandboxBranch {
        SandboxBranch::of(&BranchKey::parse("run-1").expect("it is a key"), &Self::base())
            .expect("it is free")
    }

    pub(crate) fn order() -> CloneOrder {
        let author = AuthorIdentity::new("Agent", "agent@example.org").expect("it is an author");
        CloneOrder { base: Self::base(), branch: Self::branch(), depth: CloneDepth::default(), author }
    }

    pub(crate) async fn mirror(&self) -> Mirror {
        self.cache.refresh(&self.remote, &Self::base()).await.expect("the remote answers")
    }

    /// Clones for an agent.
    pub(crate) async fn agent(&self) -> Agent {
        let dir = self.dir.join(format!("workspace-{}", self.count("workspace-"))).join("repo");
        let mirror = self.mirror().await;
        let clone = AgentClone::make(&mirror, &dir, &Self::order()).await.expect("it is cloned");
        Agent { dir: clone.dir.clone(), clone, mirror, home: self.home.clone() }
    }

    fn count(&self, beginning: &str) -> usize {
        let entries = fs::read_dir(&self.dir).expect("the directory is listed").filter_map(Result::ok);
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(beginning)).count()
    }

    pub(crate) fn bundle_file(&self) -> PathBuf {
        self.dir.join("work.bundle")
    }

    /// Brings the agent's work to the remote.
    pub(crate) async fn relay(&self, agent: &Agent) -> Relayed {
        agent.bundle(&self.bundle_file());
        self.relay_bundle(agent, &RelayPolicy::default()).await
    }

    /// Brings the bundle that was made to the remote.
    pub(crate) async fn relay_bundle(&self, agent: &Agent, policy: &RelayPolicy) -> Relayed {
        self.relay_with(&self.git, agent, policy).await
    }

    pub(crate) async fn relay_with(&self, git: &Git, agent: &Agent, policy: &RelayPolicy) -> Relayed {
        let quarantine = match self.collect(git, agent).await {
            (quarantine, Received::Tip(_)) => quarantine,
            (_, Received::Nothing) => return Relayed::Nothing,
            (_, Received::Refused(objection)) => return Relayed::Refused(vec![objection]),
        };
        match quarantine.judge(policy).await.expect("it is judged") {
            RelayVerdict::Refused(objections) => Relayed::Refused(objections),
            RelayVerdict::Accepted(work) => {
                let order = push_order(agent, &work);
                Relayed::Pushed(quarantine.push(&self.remote, &order).await.expect("git runs"))
            }
        }
    }

    /// Returns the work in a quarantine, which must be accepted.
    pub(crate) async fn accepted(quarantine: &Quarantine) -> AcceptedWork {
        let verdict = quarantine.judge(&RelayPolicy::default()).await.expect("it is judged");
        let RelayVerdict::Accepted(work) = verdict else { panic!("{verdict:?}") };
        work
    }

    pub(crate) async fn collect(&self, git: &Git, agent: &Agent) -> (Quarantine, Received) {
        let start = &agent.clone.start;
        let quarantine = Quarantine::create(git, &self.dir.join("quarantine.git")).await.expect("it is made");
        let order = CollectOrder {
            start: start.clone(),
            branch: Self::branch(),
            depth: CloneDepth::default(),
            bounds: BundleBounds::default(),
        };
        let received = quarantine.receive(&agent.mirror, &self.bundle_file(), &order).await;
        (quarantine, received.expect("git runs"))
    }

    /// Returns the commit of a branch of the remote.
    pub(crate) fn remote_tip(&self, branch: &str) -> Option<String> {
        let mut git = plain_git(&self.home, &self.upstream);
        let output = git.args(["rev-parse", "--verify", "--quiet", branch]).output().expect("git starts");
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Makes another bare repository that has all that the remote has.
    pub(crate) fn copy_of_remote(&self, name: &str) -> PathBuf {
        let to = self.dir.join(format!("{name}-{}.git", self.count(name)));
        let mut git = plain_git(&self.home, &self.dir);
        done(git.args(["clone", "--quiet", "--bare", "--no-local"]).arg(&self.upstream).arg(&to));
        to
    }
}

/// Returns the order to push what an agent did.
pub(crate) fn push_order(agent: &Agent, work: &AcceptedWork) -> PushOrder {
    PushOrder::new(work, World::branch(), agent.clone.remote_tip.clone())
}

fn make_upstream(home: &Path, dir: &Path, upstream: &Path) {
    let first = dir.join("first");
    done(plain_git(home, dir).args(["init", "--quiet", "--initial-branch=main"]).arg(&first));
    for (name, content) in
        [("README.md", "Hello\n"), ("src/main.txt", "one\ntwo\n"), ("CODEOWNERS", "* @people\n")]
    {
        let path = first.join(name);
        fs::create_dir_all(path.parent().expect("it is in a directory")).expect("a directory is made");
        fs::write(path, content).expect("a file is written");
    }
    done(plain_git(home, &first).args(["add", "-A"]));
    done(plain_git(home, &first).args(["commit", "--quiet", "-m", "First"]));
    done(plain_git(home, &first).args(["commit", "--quiet", "--allow-empty", "-m", "Second"]));
    done(plain_git(home, dir).args(["clone", "--quiet", "--bare"]).arg(&first).arg(upstream));
}
