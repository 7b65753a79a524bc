//! runner_git brings an agent's commits to a remote: from a bundle, through a judgement, to one branch.
//!
//! The agent's repository is hostile, and no git of the host ever opens it. The crate sees only the bytes of a bundle,
//! which a program in a sandbox wrote.
//!
//! 1. [`MirrorCache`] keeps a bare copy of each remote and makes an [`AgentClone`] for a run.
//! 2. A container runs a [`BundleCommand`], which prints the bundle of the agent's commits.
//! 3. [`Quarantine`] takes the clone's start from that copy and the agent's objects from the bundle.
//! 4. [`Quarantine::judge`] compares the commits with a [`RelayPolicy`], and names each rule that they break. Accepted
//!    commits are written anew if their messages have effects.
//! 5. [`Quarantine::push`] sends one commit to `sandbox/<key>`, with a lease on what stood there.
//!
//! The host's own work, a [`FileChange`], goes the same way from the third step on.
//!
//! A [`Snapshot`] is a commit's files for readers alone.
//!
//! Git runs in a fixed environment, in few directories, with limits on time, memory and output: see [`Git`].

mod agent_clone;
mod askpass;
mod branch;
mod bundle;
mod bundle_command;
mod directory;
mod error;
mod harmless;
mod judge;
mod mirror;
mod object_id;
mod one_file;
mod program;
mod push;
mod quarantine;
mod remote;
mod remote_failure;
mod repo_pattern;
mod repo_url;
mod rewrite;
mod snapshot;
mod transport;

pub use self::{
    agent_clone::{AgentClone, AuthorIdentity, CloneOrder, InvalidAuthor},
    askpass::AskPass,
    branch::{BaseBranch, BranchKey, InvalidBranch, SandboxBranch},
    bundle::{BundleBounds, BundleHeader},
    bundle_command::{BundleCommand, BundleExit, OtherWork},
    error::Error,
    harmless::{TextKind, disarm, plain},
    judge::{
        AcceptedWork, CommitSummary, InvalidGlob, Objection, ProtectedPaths, RelayPolicy, RelayRule,
        RelayVerdict, SecretScan, WorkBounds,
    },
    mirror::{CloneDepth, Mirror, MirrorCache, MirrorScope},
    object_id::{InvalidObjectId, ObjectId},
    one_file::{FileAt, FileChange},
    program::{Confinement, Git, GitOutput, ProcessBounds},
    push::{PushOrder, PushOutcome},
    quarantine::{CollectOrder, Quarantine, Received},
    remote::Remote,
    remote_failure::RemoteFailure,
    repo_pattern::RepoPattern,
    repo_url::{InvalidRepoUrl, RepoUrl},
    snapshot::{Snapshot, SnapshotOrder},
};
