//! Builds images with `docker build`, and loads archives of images.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use platform_runtime::{
    config::Environment,
    file, random,
    shutdown::{self, RunBy},
    task,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    sync::mpsc,
};

use super::{ContextFile, Error, output::BuildOutput};

/// Image that has Node and the first process of a sandbox already.
pub(super) const OWN_BASE: &str = "sluicegate/sandbox-runtime:latest";
/// Image that Docker pulls for an installed program.
pub(super) const PUBLIC_BASE: &str = "node:24-bookworm-slim";
/// Directory with the programs of images, from the directory of this program.
const INSTALLED_PROGRAMS: &str = "../lib/sluicegate";
/// Programs of a sandbox: its first process, and the one that calls host tools.
const PROGRAMS: [&str; 2] = ["sandbox-init", "cogni-tool"];
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
/// Beginning of Docker's answer for an image that it does not have.
const NO_SUCH_IMAGE: &str = "no such image";

/// Sources of an image: files, programs and arguments.
pub(crate) struct ImageContext<'b> {
    /// Name in the files of a failed build.
    pub(crate) name: &'b str,
    pub(crate) files: &'b [ContextFile],
    /// Arguments of the build, besides those for its downloads.
    pub(crate) arguments: Vec<(&'b str, String)>,
    /// Programs in the directory `init`, and whether the image can do without those that are not installed.
    pub(crate) programs: Programs,
}

/// Programs that a build copies into its context.
pub(crate) enum Programs {
    /// Those of a sandbox, as far as they are installed: the base may have them.
    IfInstalled,
    /// These have to be installed.
    Needed(&'static [&'static str]),
}

/// Docker's command line program, and where its daemon listens.
#[derive(Clone, Copy)]
pub(crate) struct DockerProgram<'b> {
    /// Docker's API socket.
    pub(crate) socket: &'b Path,
    /// Environment of this process.
    pub(crate) environment: &'b Environment,
}

/// Directory of a build, removed on drop.
struct BuildDir(PathBuf);

impl BuildDir {
    fn create() -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("sluice-agents-{:032x}", random::bits()));
        DirBuilder::new().mode(0o700).create(&path).map_err(unwritable(&path))?;
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

impl DockerProgram<'_> {
    /// Builds `image` on `base`, and shows the steps on standard error. Docker's cache makes a second build fast.
    ///
    /// # Errors
    /// If Docker is missing, a program is not installed, or the build fails.
    pub(crate) async fn build(
        &self,
        image: &str,
        base: &str,
        context: ImageContext<'_>,
    ) -> Result<(), Error> {
        let directory = BuildDir::create()?;
        for (name, text) in context.files {
            directory.write(name, text.as_bytes())?;
        }
        fs::create_dir_all(directory.0.join("init")).map_err(unwritable(&directory.0))?;
        for (name, program) in context.programs.find()? {
            let copy = directory.0.join("init").join(name);
            fs::copy(&program, &copy).map_err(unwritable(&copy))?;
        }
        directory.write("trust/ca.pem", &fs::read(TRUSTED).unwrap_or_default())?;
        let mut command = self.command();
        // A container of a failed step would keep the arguments of the build.
        command.args(["build", "--force-rm", "--tag", image]);
        let mut arguments = vec![("BASE_IMAGE", base.to_owned())];
        arguments.extend(context.arguments);
        arguments
            .extend(PASSED.iter().filter_map(|name| Some((*name, self.environment.get(name)?.to_owned()))));
        if self.environment.get(NPM_REGISTRY).is_none() {
            arguments.extend(npm_registry().await.map(|registry| (NPM_REGISTRY, registry)));
        }
        for (name, value) in arguments {
            command.args(["--build-arg", &format!("{name}={value}")]);
        }
        let output = self.follow(command.arg(&directory.0)).await?;
        output.map(drop).map_err(|output| failed(image, context.name, &output))
    }

    /// Loads the images of an archive that `docker save` made, and returns their names.
    ///
    /// # Errors
    /// If Docker is missing, or refuses the archive.
    pub(crate) async fn load(&self, archive: &Path) -> Result<Vec<String>, Error> {
        let mut command = self.command();
        command.arg("load").arg("--input").arg(archive);
        match self.follow(&mut command).await? {
            Ok(output) => {
                let named = output.text().lines().filter_map(|line| line.strip_prefix("Loaded image: "));
                Ok(named.map(str::to_owned).collect())
            }
            Err(output) => Err(Error::Archive { archive: archive.to_owned(), reason: output.reason() }),
        }
    }

    /// Returns whether Docker has the image `name`.
    ///
    /// # Errors
    /// If Docker's program cannot be run, or Docker does not answer.
    pub(crate) async fn has_image(&self, name: &str) -> Result<bool, Error> {
        let mut command = self.command();
        let inspected = command.args(["image", "inspect", name]).output().await.map_err(Error::NoDocker)?;
        let words = String::from_utf8_lossy(&inspected.stderr);
        match inspected.status.success() {
            true => Ok(true),
            false if words.to_lowercase().contains(NO_SUCH_IMAGE) => Ok(false),
            false => {
                let mut output = BuildOutput::default();
                words.lines().for_each(|line| output.keep(line));
                Err(Error::DockerUnavailable { socket: self.socket.to_owned(), reason: output.reason() })
            }
        }
    }

    /// Returns the image that an agent is built on unless another is named. A public one lacks the first process of a
    /// sandbox, which has to be installed then.
    ///
    /// # Errors
    /// If it finds none, or Docker does not say.
    pub(crate) async fn agent_base(&self) -> Result<&'static str, Error> {
        if self.has_image(OWN_BASE).await? {
            return Ok(OWN_BASE);
        }
        installed(PROGRAMS[0]).map(|_| PUBLIC_BASE).ok_or(Error::NoBase { image: OWN_BASE })
    }

    fn command(&self) -> Command {
        let mut command = Command::new("docker");
        command.arg("--host").arg(format!("unix://{}", self.socket.display()));
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    /// Runs `command` to its end, or ends it at the first signal. Returns its output, as an error if it failed.
    async fn follow(&self, command: &mut Command) -> Result<Result<BuildOutput, BuildOutput>, Error> {
        let signalled = shutdown::signalled(RunBy::Person).map_err(Error::NoDocker)?;
        command.env("BUILDKIT_PROGRESS", "plain").stdout(Stdio::piped()).stderr(Stdio::piped());
        // A terminal sends its signals to the whole group. This program passes on its own.
        command.process_group(0);
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
        let read = async {
            while let Some(line) = lines.recv().await {
                output.add(&line);
            }
        };
        tokio::select! {
            () = read => {}
            () = signalled => return end(child).await,
        }
        let is_success = child.wait().await.map_err(Error::NoDocker)?.success();
        Ok(if is_success { Ok(output) } else { Err(output) })
    }
}

impl Programs {
    /// Returns the programs that are installed, with their names.
    fn find(&self) -> Result<Vec<(&'static str, PathBuf)>, Error> {
        match self {
            Self::IfInstalled => {
                Ok(PROGRAMS.into_iter().filter_map(|name| Some((name, installed(name)?))).collect())
            }
            Self::Needed(names) => {
                names.iter().map(|name| Ok((*name, installed(name).ok_or(Error::NoProgram(name))?))).collect()
            }
        }
    }
}

/// Keeps the output of a failed build in a private file, which the error names.
fn failed(image: &str, name: &str, output: &BuildOutput) -> Error {
    let log = std::env::temp_dir().join(format!("sluice-agents-{name}-{:032x}.log", random::bits()));
    match file::create_private(&log, output.text().as_bytes()) {
        Ok(()) => Error::Failed { image: image.to_owned(), reason: output.reason(), log },
        Err(source) => Error::Unwritable { path: log, source },
    }
}

/// Ends Docker's program, so that Docker ends the build.
async fn end<T>(mut child: Child) -> Result<T, Error> {
    child.kill().await.map_err(Error::NoDocker)?;
    Err(Error::Interrupted)
}

/// Returns the registry that npm on this host is configured for. Without npm here, the base image's own npm is asked.
async fn npm_registry() -> Option<String> {
    let mut npm = Command::new("npm");
    npm.args(["config", "get", "registry"]).stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let address = String::from_utf8(npm.output().await.ok()?.stdout).ok()?;
    Some(address.trim().to_owned()).filter(|address| address.starts_with("http"))
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

/// Returns the program called `name` that was installed with this program, for images.
fn installed(name: &str) -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let installed = program.parent()?.join(INSTALLED_PROGRAMS).join(name);
    installed.is_file().then_some(installed)
}

fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Error + use<> {
    let path = path.to_owned();
    move |source| Error::Unwritable { path, source }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_build_has_a_private_directory() {
        let build_dir = BuildDir::create().unwrap();
        let path = build_dir.0.clone();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        assert_ne!(BuildDir::create().unwrap().0, path);
        drop(build_dir);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn docker_that_does_not_answer_is_named() {
        let socket = Path::new("/nonexistent/docker.sock");
        let docker = DockerProgram { socket, environment: &Environment::default() };
        match docker.has_image("i").await.unwrap_err() {
            Error::NoDocker(_) => {} // no program of Docker here
            error => {
                let words = error.to_string();
                assert!(words.starts_with("Docker does not answer at /nonexistent/docker.sock: "), "{words}");
            }
        }
    }
}
