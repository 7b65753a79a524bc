//! Tests that bytes leave a workspace through a container that only reads it, whatever the workspace holds.

mod commits;
mod ends;
mod hostile;

use std::{
    fs::{self, File},
    os::unix::fs::chown,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use harness::docker::{self, containers_of, docker};
use platform_core::{limit::ByteSize, name::SANDBOX_UID};
use runner_docker::{Docker, Error, ExtractSpec, Extracted, Limits, Program, labels};
use runner_git::{BundleBounds, BundleCommand, CloneDepth, CollectOrder, ObjectId, SandboxBranch};
use tempfile::TempDir;

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";
/// Branch of the agent.
const BRANCH: &str = "sandbox/run-1";

/// Workspace of an agent, and the way out of it.
struct Scene {
    dir: TempDir,
    docker: Docker,
    image: String,
}

impl Scene {
    async fn new() -> Self {
        let dir = TempDir::new().unwrap();
        let docker = Docker::connect(Path::new(docker::SOCKET)).await.unwrap();
        let image = docker.image(&IMAGE.parse().unwrap()).await.unwrap();
        let scene = Self { dir, docker, image };
        fs::create_dir(scene.tree()).unwrap();
        chown(scene.tree(), Some(SANDBOX_UID), Some(SANDBOX_UID)).unwrap();
        scene
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn tree(&self) -> PathBuf {
        self.path().join("tree")
    }

    fn repo(&self) -> PathBuf {
        self.tree().join("repo")
    }

    /// Returns the file with what was taken out.
    fn output(&self) -> PathBuf {
        self.path().join("output")
    }

    fn installation(&self) -> String {
        let name = self.path().file_name().unwrap().to_string_lossy();
        format!("extraction-{}", name.trim_start_matches(".tmp").to_lowercase())
    }

    fn spec(&self, program: Program) -> ExtractSpec {
        let installation = self.installation();
        ExtractSpec {
            name: format!("sluice-{installation}-r1.1.bundle"),
            image: self.image.clone(),
            labels: labels([&installation, "r1", "test:sh", "w1"], 1),
            program,
            workspace: self.tree(),
            limits: Limits::of_extraction(ByteSize::mib(1)),
            timeout: Duration::from_secs(60),
        }
    }

    /// Takes out what `spec` prints. No container stays.
    async fn extract(&self, spec: &ExtractSpec) -> Extracted {
        let extracted = self.try_extract(spec).await.unwrap();
        assert_eq!(containers_of(&self.installation()).await, [""; 0]);
        assert_eq!(fs::metadata(self.output()).unwrap().len(), extracted.bytes);
        extracted
    }

    async fn try_extract(&self, spec: &ExtractSpec) -> Result<Extracted, Error> {
        let output = File::options().create(true).truncate(false).write(true).open(self.output()).unwrap();
        self.docker.extract(spec, output).await
    }

    /// Runs `script` in the repository as the agent does.
    async fn agent(&self, script: &str) -> String {
        let mount = format!("{}:/workspace", self.tree().display());
        let fixed = ["run", "--rm", "--network", "none", "--volume", &mount, "--workdir", "/workspace/repo"];
        let script = format!("set -e; {script}");
        docker(&[&fixed[..], &["--entrypoint", "sh", IMAGE, "-c", &script]].concat()).await
    }

    /// Runs git as a careless host does.
    fn naive(&self, dir: &Path, arguments: &[&str]) -> Output {
        let mut git = Command::new("git");
        git.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").env("HOME", self.path());
        git.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
        for role in ["AUTHOR", "COMMITTER"] {
            git.env(format!("GIT_{role}_NAME"), "Agent");
            git.env(format!("GIT_{role}_EMAIL"), "agent@example.org");
        }
        // The repository belongs to another user.
        git.args(["-c", "safe.directory=*", "-C"]).arg(dir).args(arguments).output().unwrap()
    }

    /// Runs git on the host, which must succeed, and returns its output.
    fn git(&self, dir: &Path, arguments: &[&str]) -> String {
        let output = self.naive(dir, arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }
}

impl Drop for Scene {
    /// A test that failed half-way may have left a container.
    fn drop(&mut self) {
        if std::thread::panicking() {
            docker::remove_containers_of(&self.installation());
        }
    }
}

/// Returns the order to take all since `start`.
fn order(start: &str) -> CollectOrder {
    CollectOrder {
        start: ObjectId::parse(start).unwrap(),
        branch: SandboxBranch::parse(BRANCH).unwrap(),
        depth: CloneDepth::default(),
        bounds: BundleBounds::default(),
    }
}

/// Returns the program that bundles all since `start`.
fn bundle(start: &str) -> Program {
    let command = BundleCommand::new(&order(start));
    Program {
        argv: command.argv(),
        environment: command.environment(),
        working_directory: BundleCommand::WORKING_DIRECTORY.to_owned(),
    }
}

/// Returns the program that is a shell script.
fn script(script: &str) -> Program {
    let argv = ["/bin/sh", "-c", script].map(str::to_owned).into();
    Program { argv, environment: [].into(), working_directory: "/".to_owned() }
}
