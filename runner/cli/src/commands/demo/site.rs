//! Keeps what a demonstration runs: its own directory, a configuration, and `sluice up`.

use std::{
    fs::{self, DirBuilder, File},
    io,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use platform_core::{
    json::{self, Bounds},
    name,
};
use platform_runtime::{config::Environment, file, poll::poll_until, random};
use runner_model::lifecycle::{Outcome, State};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tokio::{
    process::{Child, Command},
    time::Instant,
};

use super::{DemoError, Error, ModelApi, model::ScriptedModel};

/// Longest wait for `sluice up`, and the interval at which its output is read meanwhile.
const START_TIMEOUT: Duration = Duration::from_secs(30);
const START_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Variables that a command gets besides its configuration.
const PASSED: [&str; 6] = ["HOME", "LANG", "PATH", "SLUICE_LOG", "TERM", "TMPDIR"];

/// A running Sluicegate on temporary paths.
pub(super) struct Site {
    dir: PathBuf,
    /// The whole environment of every command.
    environment: Vec<(String, String)>,
    program: PathBuf,
    /// Directories in which the person's shell looks for programs.
    path: Option<String>,
    up: Child,
}

/// Answer of `sluice runs ls --json`, in part.
#[derive(Deserialize)]
struct RunList {
    runs: Vec<RunLine>,
}

#[derive(Deserialize)]
struct RunLine {
    run_id: String,
}

/// Answer of `sluice models --json`, in part.
#[derive(Deserialize)]
struct ModelList {
    models: Vec<ModelLine>,
}

#[derive(Deserialize)]
struct ModelLine {
    model: String,
}

impl Site {
    /// Writes the configuration for `upstream`, starts `sluice up`, and waits until it is ready.
    pub(super) async fn start(environment: &Environment, upstream: &ModelApi) -> Result<Self, Error> {
        let dir = std::env::temp_dir().join(format!("sluice-demo.{:08x}", random::bits() & 0xffff_ffff));
        let failed = |source| DemoError::Write { path: dir.clone(), source };
        DirBuilder::new().mode(0o700).create(&dir).map_err(failed)?;
        let config = dir.join("sluice.toml");
        file::create_private(&dir.join("key"), upstream.key.expose().as_bytes()).map_err(failed)?;
        file::create_private(&config, configuration(&dir, upstream).map_err(failed)?.as_bytes())
            .map_err(failed)?;
        let program = std::env::current_exe()?;
        let own = program.parent().map(|dir| format!("{}:", dir.display())).unwrap_or_default();
        let mut passed: Vec<(String, String)> = PASSED
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), environment.get(name)?.to_owned())))
            .filter(|(name, _)| name != "PATH")
            .collect();
        passed.push(("PATH".to_owned(), own + environment.get("PATH").unwrap_or("/usr/bin:/bin")));
        passed.push((name::env::SLUICE_CONFIG.to_owned(), config.display().to_string()));
        let output = File::create(dir.join("up.log")).map_err(failed)?;
        let mut up = Command::new(&program);
        // Its own group: Ctrl-C ends the demonstration, which then stops it in order.
        up.arg("up").env_clear().envs(passed.clone()).process_group(0).kill_on_drop(true);
        let up = up.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).spawn()?;
        let mut site =
            Self { dir, environment: passed, program, path: environment.get("PATH").map(str::to_owned), up };
        match site.until_ready().await {
            Ok(()) => Ok(site),
            Err(error) => site.stop().await.and(Err(error)),
        }
    }

    async fn until_ready(&mut self) -> Result<(), Error> {
        let log = self.dir.join("up.log");
        let mut said = String::new();
        let is_ready = poll_until(Instant::now() + START_TIMEOUT, START_POLL_INTERVAL, async || {
            said = fs::read_to_string(&log).unwrap_or_default();
            let line = said.lines().find(|line| line.starts_with("ready"));
            let has_ended = self.up.try_wait().ok().flatten().is_some();
            line.map(|line| line == "ready").or(has_ended.then_some(false))
        });
        if is_ready.await == Some(true) { Ok(()) } else { Err(DemoError::NotReady { said }.into()) }
    }

    /// Returns a command of `sluice` that uses this site.
    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        self.with_environment(&self.program, arguments)
    }

    fn with_environment(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).env_clear().envs(self.environment.clone()).kill_on_drop(true);
        command
    }

    /// Returns what a command prints on standard output.
    async fn output(&self, arguments: &[&str]) -> Result<Vec<u8>, Error> {
        let output = self.command(arguments).stdin(Stdio::null()).stderr(Stdio::inherit()).output().await?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        Err(DemoError::Failed { command: arguments.join(" "), code: output.status.code() }.into())
    }

    /// Returns the first model that the upstream offers.
    pub(super) async fn first_model(&self) -> Result<Option<String>, Error> {
        let listed = self.output(&["models", "--json"]).await?;
        let ModelList { models } =
            json::from_slice(&listed, Bounds::STORED).map_err(Error::invalid_record)?;
        Ok(models.into_iter().next().map(|line| line.model))
    }

    /// Returns a link with which one browser signs in to the dashboard.
    pub(super) async fn dashboard_link(&self) -> Result<String, Error> {
        // The link needs the principal, and not its token.
        self.output(&["principals", "add", "demo", "--account", super::ACCOUNT, "--role", "operator"])
            .await?;
        Ok(String::from_utf8_lossy(&self.output(&["dashboard"]).await?).trim().to_owned())
    }

    /// Returns how a person calls this program: by its name if their shell finds it, else by its path.
    pub(super) fn called(&self) -> String {
        let found =
            |path: &str| std::env::split_paths(path).map(|dir| dir.join("sluice")).find(|path| path.exists());
        match &self.path {
            Some(path) if found(path).is_some_and(|found| found == self.program) => "sluice".to_owned(),
            _ => {
                let here = std::env::current_dir().unwrap_or_default();
                self.program.strip_prefix(here).unwrap_or(&self.program).display().to_string()
            }
        }
    }

    /// Opens a shell in which `sluice` uses this site, and waits for its end.
    pub(super) async fn shell(&self) -> Result<(), Error> {
        let mut shell = self.with_environment(Path::new("bash"), &["--norc", "-i"]);
        shell.env("PS1", "sluicegate \\w \\$ ").status().await?;
        Ok(())
    }

    /// Cancels the runs that go on, stops `sluice up`, and removes the directory.
    pub(super) async fn stop(mut self) -> Result<(), Error> {
        self.cancel_runs().await?;
        if let Some(up) = self.up.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            kill_process(up, Signal::TERM).map_err(io::Error::from)?;
        }
        self.up.wait().await?;
        let dir = &self.dir;
        fs::remove_dir_all(dir).map_err(|source| DemoError::Write { path: dir.clone(), source }.into())
    }

    /// Cancels the runs that have not ended: they outlive `sluice up` by design, and their mounts hold the directory.
    async fn cancel_runs(&self) -> Result<(), Error> {
        let has_ended =
            |name: &&str| Outcome::ALL.iter().any(|outcome| State::Ended(*outcome).name() == *name);
        let active = State::NAMES.into_iter().filter(|name| !has_ended(name));
        let states = active.flat_map(|state| ["--state", state]);
        let arguments: Vec<&str> =
            ["runs", "ls", "--json", "--number", "1000"].into_iter().chain(states).collect();
        let Ok(listed) = self.output(&arguments).await else { return Ok(()) };
        let RunList { runs } = json::from_slice(&listed, Bounds::STORED).map_err(Error::invalid_record)?;
        if runs.is_empty() {
            return Ok(());
        }
        let cancel: Vec<&str> =
            ["runs", "cancel"].into_iter().chain(runs.iter().map(|run| &*run.run_id)).collect();
        self.output(&cancel).await.map(drop)
    }
}

/// Returns the text of the configuration.
fn configuration(dir: &Path, ModelApi { base_url, model, .. }: &ModelApi) -> io::Result<String> {
    let models = model.as_ref().map(ScriptedModel::settings).unwrap_or_default();
    // Free a moment ago: another program has to be fast to take it.
    let api = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    let name = dir.file_name().map(|name| name.display().to_string()).unwrap_or_default();
    let dir = dir.display();
    Ok(format!(
        "[upstream]
base_url = \"{base_url}\"
key_file = \"{dir}/key\"
{models}[proxy]
run_dir = \"{dir}/run\"
state_dir = \"{dir}/state\"
[sandbox]
state_dir = \"{dir}/runner\"
workspace_dir = \"{dir}/workspaces\"
installation = \"{name}\"
[store]
url = \"sqlite://{dir}/store/sluice.db\"
[api]
listen = \"{api}\"
"
    ))
}
