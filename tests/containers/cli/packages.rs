//! Tests what `make install` and `make package` put on a machine.

use std::{
    collections::BTreeSet,
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    process::Output,
};

use harness::{bare_debian::IMAGE, docker::docker, process::binary};
use platform_runtime::config::Environment;
use tokio::process::Command;

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Files that an installation has, besides one manual page for each command.
pub(super) const FILES: [&str; 16] = [
    "bin/sluice",
    "bin/sluice-proxy",
    "lib/sluicegate/cogni-tool",
    "lib/sluicegate/git-sync",
    "lib/sluicegate/sandbox-init",
    "lib/systemd/system/sluice-proxy.service",
    "lib/systemd/system/sluice.service",
    "lib/sysusers.d/sluicegate.conf",
    "share/bash-completion/completions/sluice",
    "share/doc/sluicegate/LICENSE",
    "share/doc/sluicegate/README.md",
    "share/doc/sluicegate/sluice.example.toml",
    "share/doc/sluicegate/sluice.schema.json",
    "share/fish/vendor_completions.d/sluice.fish",
    "share/man/man8/sluice-proxy.8",
    "share/zsh/vendor-completions/_sluice",
];

/// Runs `scripts/package.sh` for the programs under test, and returns its output.
pub(crate) async fn package(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let output = run_package(arguments, environment).await;
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Runs `scripts/package.sh` and returns its standard error.
async fn package_says(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let output = run_package(arguments, environment).await;
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stderr).unwrap()
}

async fn run_package(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    let mut command = Command::new(format!("{REPOSITORY}/scripts/package.sh"));
    // Its static programs are of the libraries that this test is built with.
    command.args(arguments).env("PROFILE", "dev").envs(environment.iter().copied()).output().await.unwrap()
}

/// Returns the directory of the programs under test.
pub(crate) fn programs() -> String {
    binary("sluice").parent().unwrap().display().to_string()
}

/// Returns the files below `root`, by their paths in it.
fn files_below(root: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else {
                found.insert(path.strip_prefix(root).unwrap().display().to_string());
            }
        }
    }
    found
}

#[tokio::test]
async fn install_puts_every_file_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let destination = dir.path().display().to_string();
    package(&["install", &programs(), &destination], &[("PREFIX", "/opt/sluicegate")]).await;
    let root = dir.path().join("opt/sluicegate");
    let (pages, files): (BTreeSet<_>, BTreeSet<_>) =
        files_below(&root).into_iter().partition(|file| file.starts_with("share/man/man1/"));
    assert_eq!(files, FILES.map(str::to_owned).into());
    for page in ["sluice", "sluice-run", "sluice-runs-ls", "sluice-audit-verify", "sluice-gateway-up"] {
        assert!(pages.contains(&format!("share/man/man1/{page}.1")), "{page}: {pages:?}");
    }
    let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
    for unit in ["sluice", "sluice-proxy"] {
        let start = format!("ExecStart=/opt/sluicegate/bin/{unit}");
        assert!(read(&format!("lib/systemd/system/{unit}.service")).contains(&start), "{unit}");
    }
    // What was there before stays.
    let kept = root.join("bin/kept");
    fs::write(&kept, "").unwrap();
    let bash = ["-n", "share/bash-completion/completions/sluice"];
    assert!(Command::new("bash").args(bash).current_dir(&root).status().await.unwrap().success());
    package(&["uninstall", &destination], &[("PREFIX", "/opt/sluicegate")]).await;
    assert_eq!(files_below(&root), BTreeSet::from(["bin/kept".to_owned()]));
}

/// A directory of programs that note how they are called, and end with a chosen code.
struct Stubs(tempfile::TempDir);

impl Stubs {
    fn new(names: &[&str], code: i32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in names {
            let program = dir.path().join(name);
            let log = dir.path().join("calls");
            let script = format!("#!/bin/sh\necho \"{name} $*\" >>{}\nexit {code}\n", log.display());
            fs::write(&program, script).unwrap();
            fs::set_permissions(program, Permissions::from_mode(0o755)).unwrap();
        }
        Self(dir)
    }

    /// Returns a `PATH` on which these programs come first.
    fn path(&self) -> String {
        format!("{}:{}", self.0.path().display(), Environment::capture().get("PATH").unwrap())
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.0.path().join("calls")).unwrap_or_default()
    }
}

/// The unit of the data plane does not start without its user.
#[tokio::test]
async fn install_makes_the_services_user() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().display().to_string();
    let programs = programs();
    let arguments = ["install", &programs];
    let user = format!("systemd-sysusers {prefix}/lib/sysusers.d/sluicegate.conf");
    for code in [0, 1] {
        let stubs = Stubs::new(&["systemd-sysusers", "systemctl"], code);
        let said = package_says(&arguments, &[("PREFIX", &prefix), ("PATH", &stubs.path())]).await;
        assert_eq!(stubs.calls(), format!("{user}\nsystemctl daemon-reload\n"));
        for command in [&*user, "systemctl daemon-reload"] {
            assert_eq!(said.contains(&format!("still to do as root: `{command}`")), code == 1, "{said}");
        }
    }
    let staged = Stubs::new(&["systemd-sysusers", "systemctl"], 0);
    package(&[&arguments[..], &[&prefix]].concat(), &[("PATH", &staged.path())]).await;
    assert_eq!(staged.calls(), "", "the control: staged files are for another machine");
}

#[tokio::test]
async fn install_takes_the_target_directory_in_use() {
    let make = async |target: &str| {
        let mut command = Command::new("make");
        command.args(["--dry-run", "--no-print-directory", target, "CARGO_TARGET_DIR=/elsewhere"]);
        let output = command.current_dir(REPOSITORY).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(make("install").await.contains("package.sh install /elsewhere/release "));
    assert!(make("package").await.contains("package.sh deb /elsewhere/release /elsewhere/package"));
}

/// Units would name programs that systemd does not find.
#[tokio::test]
async fn install_refuses_a_relative_prefix() {
    let refused = run_package(&["install", &programs()], &[("PREFIX", "opt")]).await;
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("PREFIX=opt is not an absolute path"), "{said}");
}

/// The page is written by hand, because the data plane links no library for it.
#[tokio::test]
async fn the_proxys_manual_page_names_each_option() {
    let page = fs::read_to_string(format!("{REPOSITORY}/platform/man/sluice-proxy.8")).unwrap();
    let page = page.replace('\\', "");
    let help = Command::new(binary("sluice-proxy")).arg("--help").output().await.unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let options: Vec<_> = help.split_whitespace().filter(|word| word.starts_with("--")).collect();
    assert!(options.len() >= 5, "{help}");
    for option in options {
        let option = option.trim_end_matches(|c: char| !c.is_alphanumeric());
        assert!(page.contains(option), "{option}");
    }
}

/// Returns a directory with the programs under test without their debugging information, which takes long to remove: once
/// for all packages of a test.
async fn stripped_programs(out: &str) -> String {
    let stripped = format!("{out}/bin");
    fs::create_dir(&stripped).unwrap();
    for program in ["sluice", "sluice-proxy"] {
        let mut strip = Command::new("strip");
        strip.arg(binary(program)).arg("-o").arg(format!("{stripped}/{program}"));
        assert!(strip.status().await.unwrap().success());
    }
    stripped
}

/// Returns the file name of a package of `programs` with this revision, in the directory `out`.
async fn deb(programs: &str, out: &str, revision: &str) -> String {
    let environment = [("REVISION", revision), ("COMPRESSION", "none")];
    let path = package(&["deb", programs, out], &environment).await;
    Path::new(&path).file_name().unwrap().to_str().unwrap().to_owned()
}

/// Runs `script` as root in a Debian that has the packages of `out` in `/deb`, and returns its output.
async fn in_debian(out: &str, script: &str) -> String {
    in_debian_with(&[], out, script).await
}

/// The same in a container with further `options` of `docker run`.
async fn in_debian_with(options: &[&str], out: &str, script: &str) -> String {
    let volume = format!("{out}:/deb:ro");
    let user = ["--network", "none", "--user", "0", "--volume", &volume, "--entrypoint", "bash"];
    docker(&[&["run", "--rm"], options, &user[..], &[IMAGE, "-c", script]].concat()).await
}

/// Configuration stays when the package is removed.
#[tokio::test]
async fn the_debian_package_installs_and_upgrades() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display().to_string();
    let programs = stripped_programs(&out).await;
    let first = deb(&programs, &out, "1").await;
    let second = deb(&programs, &out, "2").await;
    let script = format!(
        "set -e
         ! command -v sluice
         dpkg --install /deb/{first}
         sluice --version && sluice-proxy --version
         getent passwd sluice-proxy | cut -d: -f1,7
         mkdir -p /etc/sluicegate && echo '[upstream]' > /etc/sluicegate/sluice.toml
         dpkg --install /deb/{second}
         dpkg-query --show sluicegate
         dpkg --remove sluicegate
         ! command -v sluice
         ls /etc/sluicegate; ls /usr/lib/systemd/system | grep -c sluice || true"
    );
    let said = in_debian(&out, &script).await;
    for line in ["sluice 0.1.0", "sluice-proxy:/usr/sbin/nologin", "sluicegate\t0.1.0-2", "sluice.toml\n0"] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

/// A purge leaves nothing: no file, no mount, no user, and in Docker nothing of Sluicegate.
#[tokio::test]
async fn a_purged_package_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display().to_string();
    let deb = deb(&stripped_programs(&out).await, &out, "1").await;
    let script = format!(
        "set -e
         printf '#!/bin/sh\necho \"docker $*\" >>/docker.log\n[ $1 != images ] || echo sluicegate/base:1\n' >/usr/local/bin/docker
         chmod 755 /usr/local/bin/docker
         find / -xdev -type f -path '*sluice*' | sort >/before
         dpkg --install /deb/{deb}
         sluice --version
         mkdir -p /etc/sluicegate /run/sluicegate /var/lib/sluicegate/workspaces/r1
         echo key >/etc/sluicegate/upstream.key; echo line >/var/lib/sluicegate/journal
         mount -t tmpfs workspace /var/lib/sluicegate/workspaces/r1; echo mounted
         dpkg --remove sluicegate
         ls /etc/sluicegate /var/lib/sluicegate/workspaces
         dpkg --purge sluicegate
         find / -xdev -type f -path '*sluice*' | sort >/after; diff /before /after && echo 'no file'
         grep sluicegate/workspaces /proc/mounts || echo 'no mount'
         getent passwd sluice-proxy || getent group sluicegate || echo 'no user'
         ls -d /etc/sluicegate /run/sluicegate /var/lib/sluicegate 2>&1 | grep -c 'No such file'
         cat /docker.log"
    );
    let said =
        in_debian_with(&["--cap-add", "SYS_ADMIN", "--security-opt", "apparmor=unconfined"], &out, &script)
            .await;
    for line in [
        "\nmounted\n",
        "\nupstream.key\n",
        "\nno file\n",
        "\nno mount\n",
        "\nno user\n",
        "\n3\n",
        "docker ps --all --quiet --filter label=sluicegate.installation",
        "docker rmi sluicegate/base:1",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
}

/// A service can fail to restart because of its configuration, which dpkg cannot mend.
#[tokio::test]
async fn a_failing_service_breaks_no_package() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display().to_string();
    let deb = deb(&programs(), &out, "1").await;
    let script = format!(
        "set -e
         mkdir -p /run/systemd/system
         printf '#!/bin/sh\\necho \"systemctl $*\"\\nexit 1\\n' >/usr/local/bin/systemctl
         chmod 755 /usr/local/bin/systemctl
         dpkg --install /deb/{deb} 2>&1
         dpkg-query --show --showformat '${{db:Status-Status}}\\n' sluicegate
         dpkg --remove sluicegate 2>&1
         dpkg-query --show --showformat '${{db:Status-Status}}\\n' sluicegate || echo gone
         dpkg-deb --contents /deb/{deb} | head -n 1"
    );
    let said = in_debian(&out, &script).await;
    for words in [
        "systemctl try-restart sluice-proxy.service sluice.service\n",
        "a service did not restart",
        "\ninstalled\n",
        "systemctl disable --now sluice.service sluice-proxy.service\n",
        "a service did not stop",
        "\ndrwxr-xr-x root/root",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let (_, removed) = said.split_once("a service did not stop").unwrap();
    assert!(removed.contains("systemctl daemon-reload\n"), "systemd forgets the units: {said}");
    assert!(removed.contains("\nconfig-files\n") || removed.contains("\ngone\n"), "{said}");
}
