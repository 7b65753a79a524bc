//! `sluice agents add` with a stand-in for Docker's program: what it writes, and that nothing is left of what fails.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use harness::{
    canary::CANARY_KEY,
    eventually::eventually_within,
    process::binary,
    sluice::{Outcome, interrupt},
};
use tokio::process::Command;

/// Stand-in that has every image and builds at once.
const BUILDS: &str = "touch $TMPDIR/called";
/// Longest duration until a started program has started another.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// A directory for a configuration, temporary files and the stand-in.
struct Place(tempfile::TempDir);

impl Place {
    fn new(docker: &str) -> Self {
        let place = Self(tempfile::Builder::new().prefix("sw-add-").tempdir_in("/tmp").unwrap());
        for name in ["bin", "tmp"] {
            fs::create_dir(place.0.path().join(name)).unwrap();
        }
        let program = place.0.path().join("bin/docker");
        fs::write(&program, format!("#!/bin/sh\n{docker}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        place
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("etc/sluice.toml")
    }

    fn write_config(&self, text: &str) {
        fs::create_dir_all(self.config().parent().unwrap()).unwrap();
        fs::write(self.config(), text).unwrap();
    }

    fn read_config(&self) -> String {
        fs::read_to_string(self.config()).unwrap()
    }

    /// Returns the temporary files.
    fn temporary(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.0.path().join("tmp")).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary("sluice"));
        let path = format!("{}:/usr/bin:/bin", self.0.path().join("bin").display());
        command.args(["agents", "add"]).args(arguments).arg("--config").arg(self.config());
        command.env_clear().env("PATH", path).env("TMPDIR", self.0.path().join("tmp"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        command
    }

    async fn add(&self, arguments: &[&str]) -> Outcome {
        Outcome::from(self.command(arguments).output().await.unwrap())
    }
}

#[tokio::test]
async fn an_entry_is_added_and_keeps_its_edits() {
    let place = Place::new(BUILDS);
    let added = place.add(&["claude-code", "--json"]).await;
    assert_eq!(added.code, Some(0), "{added:?}");
    let report = added.result();
    assert_eq!((&report["agentId"], &report["replaced"]), (&"sandbox:claude-code".into(), &false.into()));
    assert_eq!(place.add(&["claude-code"]).await.code, Some(2), "it is there already");
    let edited = place.read_config().replace("run_timeout = \"30m\"", "run_timeout = \"2h\"  # mine");
    place.write_config(&edited);
    let renewed = place.add(&["claude-code", "--force", "--image", "mine:2"]).await;
    assert!(renewed.stdout.contains("its other settings are as before"), "{renewed:?}");
    let image = report["image"].as_str().unwrap();
    assert_eq!(place.read_config(), edited.replace(image, "mine:2"));
}

#[tokio::test]
async fn what_cannot_be_written_is_not_built() {
    let place = Place::new(BUILDS);
    let unknown = place.add(&["claude"]).await;
    assert!(unknown.code == Some(2) && !place.config().exists(), "{unknown:?}");
    place.write_config("agents = {}\n");
    let refused = place.add(&["claude-code"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert_eq!((place.read_config().as_str(), place.temporary()), ("agents = {}\n", vec![]));
    place.write_config("");
    assert_eq!(place.add(&["claude-code"]).await.code, Some(0));
    assert_eq!(place.temporary().len(), 1, "control: Docker was called");
}

/// Names of packages reach a shell in the build, so only names pass.
#[tokio::test]
async fn packages_reach_the_build_as_names_only() {
    let place = Place::new("echo \"$*\" >> $TMPDIR/arguments");
    let arguments = place.0.path().join("tmp/arguments");
    for wrong in ["make;reboot", "make,$(id)", "-y", "Make"] {
        let refused = place.add(&["codex", &format!("--packages={wrong}")]).await;
        assert_eq!(refused.code, Some(2), "{wrong}: {refused:?}");
        assert!(refused.stderr.contains("is not the name of a Debian package"), "{refused:?}");
    }
    assert!(!arguments.exists() && !place.config().exists());
    assert_eq!(place.add(&["codex", "--packages", "make,python3,g++"]).await.code, Some(0));
    let built = fs::read_to_string(&arguments).unwrap();
    assert!(built.contains("--build-arg PACKAGES=make python3 g++ "), "{built}");
}

#[tokio::test]
async fn docker_that_does_not_answer_is_named() {
    let place = Place::new("echo 'Cannot connect to the Docker daemon.' >&2; exit 1");
    let refused = place.add(&["claude-code", "--set", "sandbox.docker_socket=/run/no.sock"]).await;
    assert_eq!(refused.code, Some(69), "{refused:?}");
    let words = "Docker does not answer at /run/no.sock: Cannot connect to the Docker daemon.";
    assert!(refused.stderr.contains(words), "{refused:?}");
    assert!(!place.config().exists() && place.temporary().is_empty());
}

#[tokio::test]
async fn a_log_is_private_and_has_no_credentials() {
    let address = format!("https://user:{CANARY_KEY}@npm.corp/x");
    let place = Place::new(&format!(
        "case \"$*\" in *inspect*) exit 0;; esac; echo 'ERROR: cannot get {address}' >&2; exit 1"
    ));
    let failed = place.add(&["claude-code"]).await;
    assert_eq!(failed.code, Some(70), "{failed:?}");
    assert!(failed.stderr.contains("https://…@npm.corp/x"), "{failed:?}");
    let [log] = place.temporary().try_into().unwrap();
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    let shown = format!("{failed:?}{}", fs::read_to_string(log).unwrap());
    assert!(!shown.contains(CANARY_KEY), "{shown}");
    assert!(!place.config().exists());
}

#[tokio::test]
async fn a_signal_ends_the_build() {
    let place = Place::new("case \"$*\" in *inspect*) exit 0;; esac; echo $$ > $TMPDIR/pid; exec sleep 60");
    let running = place.command(&["claude-code"]).spawn().unwrap();
    let file = place.0.path().join("tmp/pid");
    let read = || async { fs::read_to_string(&file).unwrap_or_default() };
    let pid = eventually_within(START_TIMEOUT, "Docker is called", read, |pid| pid.ends_with('\n')).await;
    interrupt(&running);
    let ended = Outcome::from(running.wait_with_output().await.unwrap());
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(!Path::new("/proc").join(pid.trim()).exists(), "Docker's program has ended");
    assert_eq!(place.temporary(), [file]);
    assert!(!place.config().exists());
}
