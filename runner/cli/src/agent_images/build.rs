//! Builds an agent's image with `docker build`.

use std::{
    collections::VecDeque,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::Stdio,
};

use platform_runtime::{config::Environment, task, terminal};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::Command,
    sync::mpsc,
};

use super::{Error, Recipe};

/// Image that has Node and the first process of a sandbox already.
const OWN_BASE: &str = "sluicegate/sandbox-runtime:latest";
/// Image that Docker pulls for an installed program.
const PUBLIC_BASE: &str = "node:24-bookworm-slim";
/// First process of a sandbox, from the directory of this program.
const INSTALLED_INIT: &str = "../lib/sluicegate/sandbox-init";
/// Certificates that this machine trusts. A company's proxy may need its own.
const TRUSTED: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Variables of this process that a build needs for its downloads.
const PASSED: [&str; 8] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    NPM_REGISTRY,
    "PIP_INDEX_URL",
];
/// Variable with the address of the npm registry.
const NPM_REGISTRY: &str = "NPM_CONFIG_REGISTRY";
/// Last lines of Docker that are searched for the reason of a failure.
const MAX_TAIL: usize = 20;

/// A build of an agent's image.
pub(crate) struct ImageBuild<'b> {
    /// Its recipe.
    pub(crate) recipe: &'b Recipe,
    /// Name of the image.
    pub(crate) image: &'b str,
    /// Image to build on, if one was named.
    pub(crate) base: Option<&'b str>,
    /// Docker's API socket.
    pub(crate) socket: &'b Path,
    /// Environment of this process.
    pub(crate) environment: &'b Environment,
}

/// Directory of a build, removed on drop.
struct BuildDir(PathBuf);

impl BuildDir {
    fn create() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("sluice-agents-{}", std::process::id()));
        fs::create_dir(&path).map_err(unwritable(&path))?;
        Ok(Self(path))
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), Error> {
        let path = self.0.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all).map_err(unwritable(&path))?;
        fs::write(&path, content).map_err(unwritable(&path))
    }
}

impl Drop for BuildDir {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(directory = %self.0.display(), error = platform_runtime::report::chain(&error), "directory of the build not removed");
        }
    }
}

impl ImageBuild<'_> {
    /// Builds the image, and shows its steps on standard error. Docker's cache makes a second build fast.
    ///
    /// # Errors
    /// If there is no Docker or no image to build on, or the build fails.
    pub(crate) async fn run(&self) -> Result<(), Error> {
        let init = installed_init();
        let base = self.base_image(init.as_deref()).await?;
        let directory = BuildDir::create()?;
        for (name, text) in &self.recipe.files {
            directory.write(name, text.as_bytes())?;
        }
        fs::create_dir_all(directory.0.join("init")).map_err(unwritable(&directory.0))?;
        if let Some(init) = init {
            let copy = directory.0.join("init/sandbox-init");
            fs::copy(&init, &copy).map_err(unwritable(&copy))?;
        }
        directory.write("trust/ca.pem", &fs::read(TRUSTED).unwrap_or_default())?;
        let mut command = self.docker();
        command.args(["build", "--tag", self.image]);
        let mut arguments = self.arguments(&base);
        if self.environment.get(NPM_REGISTRY).is_none() {
            arguments.extend(npm_registry().await.map(|registry| (NPM_REGISTRY, registry)));
        }
        for (name, value) in arguments {
            command.args(["--build-arg", &format!("{name}={value}")]);
        }
        let log = std::env::temp_dir().join(format!("sluice-agents-{}.log", self.recipe.name));
        self.follow(command.arg(&directory.0), &log).await
    }

    /// Returns whether Docker has the image `name`.
    ///
    /// # Errors
    /// If Docker's program cannot be run.
    pub(crate) async fn has_image(&self, name: &str) -> Result<bool, Error> {
        let mut command = self.docker();
        command.args(["image", "inspect", name]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().await.map(|status| status.success()).map_err(Error::NoDocker)
    }

    fn docker(&self) -> Command {
        let mut command = Command::new("docker");
        command.arg("--host").arg(format!("unix://{}", self.socket.display()));
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Returns the image to build on. A public one lacks the first process of a sandbox, which `init` has then.
    async fn base_image(&self, init: Option<&Path>) -> Result<String, Error> {
        match (self.base, init) {
            (Some(base), _) => Ok(base.to_owned()),
            (None, _) if self.has_image(OWN_BASE).await? => Ok(OWN_BASE.to_owned()),
            (None, Some(_)) => Ok(PUBLIC_BASE.to_owned()),
            (None, None) => Err(Error::NoBase { image: OWN_BASE }),
        }
    }

    fn arguments(&self, base: &str) -> Vec<(&str, String)> {
        let Recipe { name, version, tools, .. } = self.recipe;
        let mut arguments = vec![
            ("BASE_IMAGE", base.to_owned()),
            ("TOOLS", tools.join(" ")),
            ("AGENT", format!("{name}@{version}")),
        ];
        let passed = PASSED.iter().filter_map(|name| Some((*name, self.environment.get(name)?.to_owned())));
        arguments.extend(passed);
        arguments
    }

    /// Runs `command` to its end. Keeps its output in `log` if it fails.
    async fn follow(&self, command: &mut Command, log: &Path) -> Result<(), Error> {
        command.env("BUILDKIT_PROGRESS", "plain").stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(Error::NoDocker)?;
        let (send, mut lines) = mpsc::channel(64);
        if let Some(stdout) = child.stdout.take() {
            task::spawn("docker output", pass_lines(stdout, send.clone()));
        }
        if let Some(stderr) = child.stderr.take() {
            task::spawn("docker errors", pass_lines(stderr, send.clone()));
        }
        drop(send);
        let mut output = BuildOutput::default();
        while let Some(line) = lines.recv().await {
            output.add(line);
        }
        if child.wait().await.map_err(Error::NoDocker)?.success() {
            return Ok(());
        }
        fs::write(log, &output.text).map_err(unwritable(log))?;
        Err(Error::Failed { image: self.image.to_owned(), reason: output.reason(), log: log.to_owned() })
    }
}

/// Returns the registry that npm on this host is configured for. Without npm here, the base image's own npm is asked.
async fn npm_registry() -> Option<String> {
    let mut npm = Command::new("npm");
    npm.args(["config", "get", "registry"]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let address = String::from_utf8(npm.output().await.ok()?.stdout).ok()?;
    Some(address.trim().to_owned()).filter(|address| address.starts_with("http"))
}

/// Output of Docker.
#[derive(Default)]
struct BuildOutput {
    text: String,
    tail: VecDeque<String>,
}

impl BuildOutput {
    /// Adds a line, and shows it if it tells a step.
    fn add(&mut self, line: String) {
        let is_step = ["Step ", "downloading "].iter().any(|start| line.starts_with(start))
            || line.starts_with('#') && (line.contains(" [") || line.contains("downloading "));
        if is_step {
            // Progress that cannot be shown is no reason to stop.
            let _shown = writeln!(io::stderr(), "  {}", terminal::safe(&line));
        }
        self.text.push_str(&line);
        self.text.push('\n');
        self.tail.push_back(line);
        if self.tail.len() > MAX_TAIL {
            self.tail.pop_front();
        }
    }

    /// Returns the last line that reports an error, else the last line.
    fn reason(&self) -> String {
        let is_error = |line: &&String| line.to_lowercase().contains("error");
        let line = self.tail.iter().find(is_error).or_else(|| self.tail.back());
        line.map_or_else(
            || "Docker printed nothing".to_owned(),
            |line| terminal::safe(line.trim()).into_owned(),
        )
    }
}

/// Sends each line of `output`, until it ends.
async fn pass_lines(output: impl AsyncRead + Unpin, lines: mpsc::Sender<String>) {
    let mut reader = BufReader::new(output).lines();
    while let Ok(Some(line)) = reader.next_line().await {
        if lines.send(line).await.is_err() {
            return;
        }
    }
}

/// Returns the first process of a sandbox that was installed with this program.
fn installed_init() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let init = program.parent()?.join(INSTALLED_INIT);
    init.is_file().then_some(init)
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Unwritable { path, source }
}
