//! Tests repositories that mean harm to the host that collects from them. Git on the host is the control.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use platform_core::name::SANDBOX_UID;
use runner_docker::{ExtractEnd, Extracted, Program};
use runner_git::BundleExit;
use rustix::fs::{CWD, Mode, mkfifoat};

use super::{BRANCH, Scene, bundle, script};

/// Content of another account.
const FOREIGN: &str = "secret of another account\n";

/// Word that a planted program prints.
const RAN: &str = "planted-program-ran";

/// Repository of a hostile agent with one commit, beside files of the host.
struct Hostile {
    scene: Scene,
    start: String,
    tip: String,
}

/// Something that an agent plants.
struct Vector {
    name: &'static str,
    plant: fn(&Hostile),
    /// Returns whether a careless host comes to harm.
    harms: fn(&Hostile) -> bool,
    end: End,
}

/// End of an extraction from a hostile repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Bundle(BundleExit),
    Slow,
}

const VECTORS: [Vector; 9] = [
    Vector {
        name: "hooks",
        plant: |hostile| {
            for hook in ["post-checkout", "reference-transaction", "post-index-change", "pre-push"] {
                hostile.program(&format!(".git/hooks/{hook}"));
            }
        },
        harms: |hostile| hostile.fires(&["checkout", "--quiet", "--detach"]),
        end: End::Bundle(BundleExit::Complete),
    },
    Vector {
        name: "fsmonitor",
        plant: |hostile| hostile.config("core.fsmonitor", &hostile.payload()),
        harms: |hostile| hostile.fires(&["status"]),
        end: End::Bundle(BundleExit::Complete),
    },
    Vector {
        name: "a program called git",
        plant: |hostile| ["git", "sh", ".git/git"].iter().for_each(|name| hostile.program(name)),
        harms: |hostile| {
            let mut naive = Command::new("sh");
            naive
                .args(["-c", "PATH=.:$PATH; git status"])
                .current_dir(hostile.scene.repo())
                .output()
                .unwrap();
            hostile.has_fired()
        },
        end: End::Bundle(BundleExit::Complete),
    },
    Vector {
        name: "objects of the host",
        plant: |hostile| {
            let alternates = format!("{}\n", hostile.other().join(".git/objects").display());
            hostile.write(".git/objects/info/alternates", &alternates);
            let entry = format!("100644,{},foreign.txt", hostile.foreign_blob());
            hostile.git(&["update-index", "--add", "--cacheinfo", &entry]);
            hostile.git(&["commit", "--quiet", "-m", "Foreign"]);
        },
        harms: |hostile| hostile.bundles_foreign_content(),
        end: End::Bundle(BundleExit::Failed),
    },
    Vector {
        name: "a fetch of missing objects",
        plant: |hostile| {
            let blob = hostile.git(&["rev-parse", "HEAD:work.txt"]);
            fs::remove_file(hostile.loose_object(&blob)).unwrap();
            hostile.config("remote.origin.promisor", "true");
            hostile.config("protocol.ext.allow", "always");
            let payload = hostile.payload().replace(' ', "% ");
            hostile.config("remote.origin.url", &format!("ext::sh -c {payload}"));
        },
        harms: |hostile| hostile.fires(&["bundle", "create", "-", &format!("{}..{BRANCH}", hostile.start)]),
        end: End::Bundle(BundleExit::Failed),
    },
    Vector {
        name: "a FIFO for a commit",
        plant: |hostile| {
            let object = hostile.loose_object(&hostile.tip);
            fs::remove_file(&object).unwrap();
            mkfifoat(CWD, &object, Mode::from_raw_mode(0o644)).unwrap();
        },
        harms: |hostile| {
            let mut naive = Command::new("timeout");
            naive.args(["1", "git", "-c", "safe.directory=*", "-C"]).arg(hostile.scene.repo());
            naive.args(["log", "-1", BRANCH]).output().unwrap().status.code() == Some(124)
        },
        end: End::Slow,
    },
    Vector {
        name: "a link to a repository of the host",
        plant: |hostile| {
            fs::remove_dir_all(hostile.scene.repo().join(".git")).unwrap();
            symlink(hostile.other().join(".git"), hostile.scene.repo().join(".git")).unwrap();
        },
        harms: Hostile::reads_foreign_content,
        end: End::Bundle(BundleExit::NoRepository),
    },
    Vector {
        name: "a file that leads to a repository of the host",
        plant: |hostile| {
            fs::remove_dir_all(hostile.scene.repo().join(".git")).unwrap();
            hostile.write(".git", &format!("gitdir: {}\n", hostile.other().join(".git").display()));
        },
        harms: Hostile::reads_foreign_content,
        end: End::Bundle(BundleExit::NoRepository),
    },
    Vector {
        name: "a link instead of the directory",
        plant: |hostile| {
            fs::remove_dir_all(hostile.scene.repo()).unwrap();
            symlink(hostile.other(), hostile.scene.repo()).unwrap();
        },
        harms: Hostile::reads_foreign_content,
        end: End::Bundle(BundleExit::NoRepository),
    },
];

impl Hostile {
    async fn new() -> Self {
        let scene = Scene::new().await;
        let other = scene.path().join("other");
        for (dir, file, content) in [(scene.repo(), "start.txt", "start\n"), (other, "foreign.txt", FOREIGN)]
        {
            fs::create_dir(&dir).unwrap();
            scene.git(&dir, &["init", "--quiet", &format!("--initial-branch={BRANCH}")]);
            fs::write(dir.join(file), content).unwrap();
            scene.git(&dir, &["add", "-A"]);
            scene.git(&dir, &["commit", "--quiet", "-m", "First"]);
        }
        let start = scene.git(&scene.repo(), &["rev-parse", "HEAD"]);
        fs::write(scene.repo().join("work.txt"), "work\n").unwrap();
        scene.git(&scene.repo(), &["add", "-A"]);
        scene.git(&scene.repo(), &["commit", "--quiet", "-m", "Work"]);
        let tip = scene.git(&scene.repo(), &["rev-parse", "HEAD"]);
        Self { scene, start, tip }
    }

    /// Returns the repository of another account of this host.
    fn other(&self) -> PathBuf {
        self.scene.path().join("other")
    }

    /// Returns the file that a planted program makes on the host.
    fn canary(&self) -> PathBuf {
        self.scene.path().join("canary")
    }

    /// Returns a script that touches all that it could harm, and says that it ran.
    fn payload(&self) -> String {
        let canary = self.canary().display().to_string();
        format!("touch {canary};touch /workspace/fired;touch /workspace/repo/fired;echo {RAN} >&2")
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.scene.git(&self.scene.repo(), arguments)
    }

    fn config(&self, name: &str, value: &str) {
        self.git(&["config", name, value]);
    }

    fn write(&self, path: &str, content: &str) {
        fs::write(self.scene.repo().join(path), content).unwrap();
    }

    fn program(&self, path: &str) {
        self.write(path, &format!("#!/bin/sh\n{}\n", self.payload()));
        fs::set_permissions(self.scene.repo().join(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn loose_object(&self, id: &str) -> PathBuf {
        self.scene.repo().join(".git/objects").join(&id[..2]).join(&id[2..])
    }

    fn foreign_blob(&self) -> String {
        self.scene.git(&self.other(), &["rev-parse", "HEAD:foreign.txt"])
    }

    fn has_fired(&self) -> bool {
        let fired = [self.canary(), self.scene.tree().join("fired"), self.scene.repo().join("fired")];
        fired.iter().any(|path| fs::remove_file(path).is_ok())
    }

    /// Runs git on the host, and returns whether it ran what was planted.
    fn fires(&self, arguments: &[&str]) -> bool {
        self.scene.naive(&self.scene.repo(), arguments);
        self.has_fired()
    }

    fn reads_foreign_content(&self) -> bool {
        let shown = self.scene.naive(&self.scene.repo(), &["show", "HEAD:foreign.txt"]);
        shown.stdout == FOREIGN.as_bytes()
    }

    /// Bundles on the host, and returns whether the bundle has the content of another account.
    fn bundles_foreign_content(&self) -> bool {
        let file = self.scene.path().join("naive.bundle");
        self.git(&["bundle", "create", "--quiet", file.to_str().unwrap(), BRANCH]);
        let clone = self.scene.path().join("naive");
        self.scene.git(self.scene.path(), &["clone", "--quiet", "naive.bundle", "naive", "--branch", BRANCH]);
        fs::read_to_string(clone.join("foreign.txt")).is_ok_and(|text| text == FOREIGN)
    }

    /// Runs `program` on the agent's files.
    async fn extract(&self, program: Program) -> Extracted {
        let tree = self.scene.tree();
        let owner = format!("{SANDBOX_UID}:{SANDBOX_UID}");
        assert!(Command::new("chown").args(["-hR", &owner]).arg(&tree).status().unwrap().success());
        let mut spec = self.scene.spec(program);
        spec.timeout = Duration::from_secs(8);
        self.scene.extract(&spec).await
    }

    /// Returns whether the bundle that was taken out is whole, and ends with the agent's commit.
    fn is_taken(&self, bundle: &Path) -> bool {
        let listed = self.git(&["bundle", "list-heads", bundle.to_str().unwrap()]);
        self.git(&["bundle", "verify", "--quiet", bundle.to_str().unwrap()]);
        listed == format!("{} refs/heads/{BRANCH}", self.tip)
    }
}

#[tokio::test]
async fn hostile_repositories_harm_no_host() {
    for Vector { name, plant, harms, end } in VECTORS {
        let hostile = Hostile::new().await;
        plant(&hostile);
        // Planting with git may run it.
        hostile.has_fired();
        let extracted = hostile.extract(bundle(&hostile.start)).await;
        assert!(!hostile.has_fired(), "{name}");
        assert!(!extracted.detail.contains(RAN), "{name} runs nothing: {}", extracted.detail);
        let ended = match extracted.end {
            ExtractEnd::Exited(code) => End::Bundle(BundleExit::of(code)),
            ExtractEnd::TimedOut => End::Slow,
            other => panic!("{name}: {other:?}"),
        };
        assert_eq!(ended, end, "{name}: {extracted:?}");
        if end == End::Bundle(BundleExit::Complete) {
            assert!(hostile.is_taken(&hostile.scene.output()), "{name}");
            hostile.has_fired();
        }
        assert!(harms(&hostile), "the control: {name} harms a careless host");
    }
}

/// A git that runs everything stands in for a fault of git that the settings do not prevent.
#[tokio::test]
async fn a_program_that_runs_inside_is_harmless() {
    let hostile = Hostile::new().await;
    hostile.config("core.fsmonitor", &hostile.payload());
    let careless = "cd /workspace/repo; PATH=/usr/bin:/bin; git -c safe.directory=* status --short";
    let extracted = hostile.extract(script(careless)).await;
    assert_eq!(extracted.end, ExtractEnd::Exited(0), "{extracted:?}");
    assert!(extracted.detail.contains(RAN), "the control: it runs: {extracted:?}");
    assert!(!hostile.has_fired());
}
