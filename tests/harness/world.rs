//! Its own world for each test: a scripted upstream, a real proxy, temporary paths.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use bench::upstream::ScriptedUpstream;
use platform_core::{
    budget::Budget,
    capability::Capabilities,
    grant::{CallLimits, Correlation, Listener, RunGrant, Tap, UngrantedTools},
    host_tools::HostTools,
    id::{AccountId, AgentId, RunId},
    record::JournalLine,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::process::{Child, Command};

use crate::{
    agent::Agent,
    canary::{self, CANARY_KEY, Places, Spy},
    control::Control,
    docker,
    eventually::{PATIENCE, eventually},
    failure, mounts,
    process::{binary, kill_proxies},
    sluice::Sluice,
};

/// Everything a test needs. Stopped and removed on drop.
#[derive(Debug)]
pub struct World {
    /// Plays the model provider and remembers what it saw.
    pub upstream: ScriptedUpstream,
    /// The control socket.
    pub control: Control,
    /// Before its directory, which it would go on writing to.
    proxy: Option<Child>,
    /// Log level of the proxy.
    log: &'static str,
    /// Places where a test has put a canary, by a piece of their names.
    planted: Vec<String>,
    docker: Spy,
    dir: tempfile::TempDir,
}

/// A run that was registered by hand: no container, the test is the agent.
#[derive(Debug)]
pub struct Run {
    /// Its grant.
    pub grant: RunGrant,
    /// A client on its socket.
    pub agent: Agent,
    /// Its socket.
    pub socket: PathBuf,
}

impl World {
    /// A world with default settings.
    pub async fn start() -> Self {
        Self::with("").await
    }

    /// A world with a configuration that ends with `toml`.
    pub async fn with(toml: &str) -> Self {
        let upstream = ScriptedUpstream::start().await.unwrap();
        let base_url = upstream.base_url();
        Self::in_front_of(upstream, &base_url, toml).await
    }

    /// The same, its proxy logging only what is wrong: for many calls.
    pub async fn quiet(toml: &str) -> Self {
        let mut world = Self::with(toml).await;
        assert!(world.stop_proxy().await);
        world.log = "warn";
        world.start_proxy().await;
        world
    }

    /// A world with a proxy that forwards to `base_url`, which may lead to the scripted upstream by a fault proxy.
    pub async fn in_front_of(upstream: ScriptedUpstream, base_url: &str, toml: &str) -> Self {
        Self::reaching(upstream, &format!("base_url = '{base_url}'"), toml).await
    }

    /// A world with these settings of its proxy's upstream.
    pub async fn reaching(upstream: ScriptedUpstream, settings: &str, toml: &str) -> Self {
        // Short: a socket's path has at most 107 bytes.
        let dir = tempfile::Builder::new().prefix("sw-").tempdir_in("/tmp").unwrap();
        let root = dir.path().display();
        fs::write(dir.path().join("key"), CANARY_KEY).unwrap();
        fs::set_permissions(dir.path().join("key"), fs::Permissions::from_mode(0o600)).unwrap();
        // Tests of the prices that an upstream shows turn `model_info` on. Others see no request but their own.
        let config = format!(
            "[upstream]
{settings}
key_file = '{root}/key'
default_model = 'fake'
model_info = false
\
             [proxy]
run_dir = '{root}/run'
state_dir = '{root}/state'
threads = 2
drain_timeout = '2s'
client_gone_timeout = '500ms'
\
             [sandbox]\nstate_dir = '{root}/runner'\nworkspace_dir = '{root}/workspaces'\ngateway_dir = '{root}/gateways'\ndocker_socket = '{root}/docker.sock'\ninstallation = '{}'\n\
             [store]\nurl = 'sqlite://{root}/store/sluice.db'\n{toml}\n",
            dir.path().file_name().unwrap().to_string_lossy(),
        );
        fs::write(dir.path().join("sluice.toml"), config).unwrap();
        let control = Control::on(&dir.path().join("run/control/control.sock"));
        let docker = Spy::on(&dir.path().join("docker.sock"), &dir.path().join("workspaces"));
        let mut world =
            Self { upstream, control, dir, proxy: None, log: "debug", planted: Vec::new(), docker };
        world.start_proxy().await;
        world
    }

    /// Starts the proxy, also again after [`World::stop_proxy`].
    pub async fn start_proxy(&mut self) {
        self.start_proxy_with(&[]).await;
    }

    /// The same, with variables in its environment.
    pub async fn start_proxy_with(&mut self, variables: &[(&str, &str)]) {
        let mut command = Command::new(binary("sluice-proxy"));
        self.launch_proxy(command.env_clear().envs(variables.iter().copied())).await;
    }

    /// The same, with so many file descriptors and no right to more.
    pub async fn start_proxy_within(&mut self, descriptors: u32) {
        let mut within = Command::new("prlimit");
        within.env_clear().arg(format!("--nofile={descriptors}:{descriptors}")).arg(binary("sluice-proxy"));
        self.launch_proxy(&mut within).await;
    }

    async fn launch_proxy(&mut self, command: &mut Command) {
        let log = fs::OpenOptions::new().create(true).append(true).open(self.proxy_log()).unwrap();
        let child = command
            .arg("--config")
            .arg(self.config())
            .env("SLUICE_LOG", self.log)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        self.proxy = Some(child);
        eventually(
            "the proxy answers",
            || async { self.control.health().await.map_err(|error| (error.to_string(), self.log())) },
            Result::is_ok,
        )
        .await
        .unwrap();
    }

    /// Starts a proxy that is expected not to start, beside the one that may run, and returns its complaint.
    ///
    /// # Panics
    /// If it starts.
    pub async fn proxy_fails_to_start(&self) -> String {
        let mut proxy = Command::new(binary("sluice-proxy"));
        proxy.arg("--config").arg(self.config()).env_clear().stdin(Stdio::null()).kill_on_drop(true);
        let ended = tokio::time::timeout(PATIENCE, proxy.output()).await;
        let output = ended.expect("the proxy started, and should not have").unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Sends SIGTERM and waits for the end; returns whether it succeeded.
    pub async fn stop_proxy(&mut self) -> bool {
        self.search_proxy();
        self.signal_proxy(Signal::TERM);
        let mut child = self.proxy.take().unwrap();
        tokio::time::timeout(PATIENCE, child.wait()).await.expect("the proxy stops").unwrap().success()
    }

    /// Kills it, as a machine that fails would; returns when it is gone and another one may have its place.
    pub async fn kill_proxy(&mut self) {
        self.proxy.take().unwrap().kill().await.unwrap();
    }

    /// Sends a signal to the proxy.
    pub fn signal_proxy(&self, signal: Signal) {
        kill_process(Pid::from_raw(self.proxy_pid().cast_signed()).unwrap(), signal).unwrap();
    }

    /// Stops the proxy where it is; returns once it stands still.
    pub async fn hold_proxy(&self) {
        self.signal_proxy(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.proxy_pid());
        let state =
            || async { fs::read_to_string(&stat).unwrap().rsplit_once(") ").unwrap().1[..1].to_owned() };
        eventually("the proxy stands still", state, |state| state == "T").await;
    }

    /// Process id of the proxy.
    #[must_use]
    pub fn proxy_pid(&self) -> u32 {
        self.proxy.as_ref().unwrap().id().unwrap()
    }

    /// Registers a run `run` of account `account`, with this test as its agent.
    pub async fn run(&self, run: &str, account: &str) -> Run {
        self.run_with(grant(run, account)).await
    }

    /// Registers a run with any grant.
    pub async fn run_with(&self, grant: RunGrant) -> Run {
        let registered = self.control.register(&grant).await.unwrap();
        let socket = registered.socket.unwrap().path.join("llm.sock");
        Run { grant, agent: Agent::on(&socket), socket }
    }

    /// All records so far.
    pub async fn journal(&self) -> Vec<JournalLine> {
        self.control.journal(0).await
    }

    /// The journal, once it has `count` records.
    pub async fn records(&self, count: usize) -> Vec<JournalLine> {
        eventually("the journal has its records", || self.journal(), |lines| lines.len() >= count).await
    }

    /// The command line, in this world.
    #[must_use]
    pub fn sluice(&self) -> Sluice {
        Sluice::with_config(&self.config())
    }

    /// Path of the configuration.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        self.path().join("sluice.toml")
    }

    /// Replaces a piece of the configuration, for whatever reads it next.
    ///
    /// # Panics
    /// If it has no such piece.
    pub fn reconfigure(&self, piece: &str, other: &str) {
        let config = fs::read_to_string(self.config()).unwrap();
        assert!(config.contains(piece), "no {piece} in {config}");
        fs::write(self.config(), config.replace(piece, other)).unwrap();
    }

    /// Sets for how long calls of later connections go on after their client has left.
    ///
    /// # Panics
    /// If the proxy does not take it.
    pub async fn bound_left_calls(&self, bound: &str) {
        self.reconfigure("client_gone_timeout = '500ms'", &format!("client_gone_timeout = '{bound}'"));
        let reloaded = self.sluice().run(&["reload"]).await;
        assert!(reloaded.stdout.contains("proxy.client_gone_timeout\n"), "{reloaded:?}");
    }

    /// Changes the configuration so that processes that read it from now on use the Docker on `socket`, past the canary
    /// search.
    ///
    /// # Panics
    /// If it does so already.
    pub fn use_docker_on(&self, socket: &Path) {
        let ear = self.path().join("docker.sock");
        self.reconfigure(&format!("'{}'", ear.display()), &format!("'{}'", socket.display()));
    }

    /// The journal's file.
    #[must_use]
    pub fn journal_file(&self) -> PathBuf {
        self.path().join("state/journal/00000000000000000001.ndjson")
    }

    /// Files of in-flight marks, one of each data-plane thread that there was.
    ///
    /// # Panics
    /// If the journal is missing.
    #[must_use]
    pub fn marks_files(&self) -> Vec<PathBuf> {
        let files = fs::read_dir(self.path().join("state/journal")).unwrap().map(|file| file.unwrap().path());
        files.filter(|path| path.file_name().unwrap().to_string_lossy().starts_with("marks")).collect()
    }

    /// Directory of everything in this world.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Name under which this world's containers are labelled.
    #[must_use]
    pub fn installation(&self) -> String {
        self.path().file_name().unwrap().to_string_lossy().into_owned()
    }

    /// Returns the log of the proxy.
    #[must_use]
    pub fn log(&self) -> String {
        fs::read_to_string(self.proxy_log()).unwrap_or_default()
    }

    /// Shows what the proxy warned of, with a test that fails.
    fn show_complaints(&self) {
        failure::show(|| {
            let log = self.log();
            let complaints = log.lines().filter(|line| line.contains("WARN") || line.contains("ERROR"));
            let complaints: Vec<_> = complaints.rev().take(20).map(|line| format!("\n{line}")).collect();
            format!("The proxy's last complaints, newest first:{}", complaints.concat())
        });
    }

    /// Returns whether containers were created, or could have been past the canary search.
    fn may_have_containers(&self) -> bool {
        let ear = self.path().join("docker.sock").display().to_string();
        let is_searched = fs::read_to_string(self.config()).is_ok_and(|config| config.contains(&ear));
        !is_searched || self.docker.has_created()
    }

    fn proxy_log(&self) -> PathBuf {
        self.path().join("proxy.log")
    }

    /// A canary is where it belongs, in a place with `piece` in its name: a control, or an attack.
    pub fn has_planted(&mut self, piece: &str) {
        self.planted.push(piece.to_owned());
    }

    /// Returns the places where a canary was found in this world so far, except those where a test planted it.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn canaries(&self) -> Vec<String> {
        self.search_proxy();
        Places::files(self.path());
        let planted = |place: &String| self.planted.iter().any(|piece| place.contains(piece));
        canary::found().into_iter().filter(|place| !planted(place)).collect()
    }

    fn search_proxy(&self) {
        if let Some(pid) = self.proxy.as_ref().and_then(Child::id) {
            Places::process(pid);
            Places::control(&self.path().join("run/control/control.sock"));
        }
    }

    /// Returns the workspace of a run, as the host sees it, once it is there.
    ///
    /// # Panics
    /// If it never is, with the reported state of the run instead.
    pub async fn workspace(&self, run: &str) -> PathBuf {
        let look = || async {
            let shown = self.sluice().run(&["runs", "show", run, "--json"]).await;
            let path = (shown.code == Some(0)).then(|| self.tree(&shown.result())).flatten();
            path.filter(|path| path.join(".cogni/messages.json").exists()).ok_or(shown)
        };
        eventually("the run has a workspace", look, Result::is_ok).await.unwrap()
    }

    /// The newest workspace that `record` names.
    fn tree(&self, record: &Value) -> Option<PathBuf> {
        let workspace = record["resources"].as_array()?.iter().rfind(|thing| thing["kind"] == "workspace")?;
        Some(self.path().join("workspaces").join(workspace["name"].as_str()?).join("tree"))
    }

    /// Returns what runs have left, in words: containers, volumes, socket directories, workspaces, mounts, loop
    /// devices.
    ///
    /// # Panics
    /// If Docker does not answer.
    pub async fn left(&self) -> Vec<String> {
        let of = self.installation();
        let (containers, volumes) = tokio::join!(docker::containers_of(&of), docker::volumes_of(&of));
        let mut left: Vec<_> = containers.into_iter().map(|name| format!("container {name}")).collect();
        left.extend(volumes.into_iter().map(|name| format!("volume {name}")));
        for dir in ["run/runs", "workspaces", "workspaces/.files", "workspaces/.relay/runs"] {
            let entries = fs::read_dir(self.path().join(dir)).into_iter().flatten().flatten();
            let paths = entries.map(|entry| entry.path());
            // The directories of staged files and of relays stay, and are listed by themselves.
            let paths = paths.filter(|path| !path.ends_with(".files") && !path.ends_with(".relay"));
            left.extend(paths.map(|path| path.display().to_string()));
        }
        left.extend(mounts::below(self.path()).into_iter().map(|point| format!("mount {}", point.display())));
        left.extend(
            mounts::loops_below(self.path()).into_iter().map(|file| format!("loop device of {file}")),
        );
        left
    }

    /// Asserts that no run has left anything: no container, no socket directory, no workspace, no mount, no device.
    ///
    /// # Panics
    /// If something is left.
    pub async fn assert_nothing_left(&self) {
        // A container that is being made just now has copies of all mounts for a moment, and devices with them.
        let left = || async {
            let left = self.left().await;
            if left.iter().all(|thing| thing.starts_with("loop device")) {
                left
            } else {
                panic!("left: {left:?}")
            }
        };
        eventually("nothing is left", left, Vec::is_empty).await;
    }
}

impl Drop for World {
    /// A test that passed has let no secret out. What it leaves on purpose ends with its world: a run goes on in its
    /// container after its worker was killed, until another worker takes it; and so does a proxy.
    fn drop(&mut self) {
        let canaries = if std::thread::panicking() {
            self.show_complaints();
            Vec::new()
        } else {
            self.canaries()
        };
        kill_proxies(self.path());
        if self.may_have_containers() {
            docker::remove_containers_of(&self.installation());
        }
        // Of processes that were killed. Their directories could not be removed.
        mounts::remove_below(self.path());
        assert_eq!(canaries, Vec::<String>::new(), "a secret is where it must not be");
    }
}

/// A grant for a test that is the agent itself: the listener hears this test's own uid.
#[must_use]
pub fn grant(run: &str, account: &str) -> RunGrant {
    RunGrant {
        run_id: RunId::parse(run).unwrap(),
        attempt: 0,
        account: AccountId::parse(account).unwrap(),
        graph: AgentId::parse("sandbox:agent").unwrap(),
        correlation: Correlation::default(),
        listener: Listener::Unix { peer_uid: rustix::process::geteuid().as_raw() },
        limits: CallLimits::default(),
        budget: Budget::default(),
        expires: None,
        models: None,
        tools: None,
        host_tools: HostTools::default(),
        capabilities: Capabilities::default(),
        ungranted_tools: UngrantedTools::Refuse,
        tap: Tap::Off,
    }
}

/// Writes a file that only its owner can read.
///
/// # Panics
/// If it cannot.
pub fn private_file(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
