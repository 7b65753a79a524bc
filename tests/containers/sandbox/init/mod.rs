//! Tests `sandbox-init` as the first process of containers. `tests/processes/init` has it as a program on the host.

mod image;
mod pool;

use harness::docker::docker;
use tokio::process::Command;

const IMAGE: &str = "sluicegate/sandbox-runtime:latest";

/// A container of our image, by its id. Removed on drop.
struct Container(String);

impl Container {
    async fn start(options: &[&str], command: &[&str]) -> Self {
        Self(docker(&[&["run", "--detach"], options, &[IMAGE], command].concat()).await)
    }

    /// Returns its exit code, once it has ended.
    async fn exit_code(&self) -> i32 {
        docker(&["wait", &self.0]).await.parse().unwrap()
    }

    /// Returns its output on stdout.
    async fn output(&self) -> String {
        let output = Command::new("docker").args(["logs", &self.0]).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        std::process::Command::new("docker").args(["rm", "--force", "--volumes", &self.0]).output().ok();
    }
}
