//! The page on finished files, executed as it is written: each on a Debian that has no compiler, with a Docker that has no image.

use std::{fs, time::Instant};

use bench::upstream::ScriptedUpstream;
use harness::{
    artifacts::{dist, static_programs},
    bare_debian::IMAGE,
    book::Page,
    docker::docker,
    dockerd::{Containers, Dockerd},
};
use platform_runtime::config::Environment;
use tokio::process::Command;

/// Ends each program that loads it, as a module of another C library does.
const MODULE: &str = "void __attribute__((constructor)) end(void) { __builtin_trap(); }";
/// Parts of what `sluice demo` shows, besides the answer.
const SHOWN: [&str; 2] = ["quota_exhausted, decided by account.total_tokens", "\"run_id\":\"demo\""];

/// The page, the files that it is about, and where its commands run.
struct Installation {
    page: Page,
    dockerd: Dockerd,
    upstream: ScriptedUpstream,
}

impl Installation {
    async fn make() -> Self {
        let page = Page::read("docs/src/how-to/install.md");
        let root = page.root();
        let key = format!("{root}/key");
        let keys = format!(
            "mkdir {root}/dist {root}/tmp && openssl genpkey -algorithm ed25519 -out {key} &&
             openssl pkey -in {key} -pubout -out {root}/dist/sluicegate.pub &&
             echo '{MODULE}' | cc -shared -x c -o {root}/libnss_fatal.so.2 -"
        );
        assert!(Command::new("sh").args(["-c", &keys]).status().await.unwrap().success());
        let environment = [("IMAGES", IMAGE), ("SIGNING_KEY", &key)];
        dist(&["pack", &static_programs(), &format!("{root}/dist")], &environment).await;
        let dockerd = Dockerd::empty(Containers::End).await;
        Self { page, dockerd, upstream: ScriptedUpstream::start().await.unwrap() }
    }

    /// Runs `script` as root in a separate Debian, with the Docker of this test. Sandboxes are its siblings, so their
    /// directories have the same paths inside and outside.
    async fn in_debian(&self, variables: &[(&str, &str)], script: &str) -> String {
        let root = self.page.root();
        let client = Environment::capture().get("PATH").unwrap().to_owned();
        let client = std::env::split_paths(&client).map(|dir| dir.join("docker")).find(|path| path.exists());
        let volumes = [
            format!("{}:/var/run/docker.sock", self.dockerd.socket().display()),
            format!("{}:/usr/bin/docker:ro", client.unwrap().display()),
            format!("{root}:{root}"),
        ];
        let variables = variables.iter().map(|(name, value)| format!("{name}={value}"));
        let options = volumes.into_iter().flat_map(|volume| ["--volume".to_owned(), volume]);
        let options = options.chain(variables.flat_map(|variable| ["--env".to_owned(), variable]));
        let options: Vec<String> = options
            .chain(["--env".to_owned(), format!("TMPDIR={root}/tmp")])
            .chain(["--workdir".to_owned(), format!("{root}/dist")])
            .collect();
        let script = format!(
            "set -euo pipefail; exec 2>&1\nif command -v cc gcc rustc sluice; then exit 1; fi\n{script}"
        );
        let fixed = ["--network", "host", "--add-host", "model.test:127.0.0.1", "--user", "0"];
        let options: Vec<&str> = options.iter().map(String::as_str).chain(fixed).collect();
        let run = [&["run", "--rm"], &options[..], &["--entrypoint", "bash", IMAGE, "-c", &script]].concat();
        docker(&run).await
    }

    /// Returns an address of the upstream by a name of the host, which only a resolver finds.
    fn upstream_at(&self, host: &str) -> String {
        self.upstream.base_url().replace("127.0.0.1", host)
    }
}

/// The programs are static, so their names are looked up by the code that is linked into them.
#[tokio::test]
async fn artifacts_install_without_a_compiler() {
    let installation = Installation::make().await;
    let root = installation.page.root();
    let checked = installation.in_debian(&[], &installation.page.commands("## Check the files")).await;
    assert!(checked.contains("Signature Verified Successfully"), "{checked}");
    let inside = installation.in_debian(&[], &installation.page.commands("## Look up what is inside")).await;
    assert!(inside.contains("pkg:cargo/tokio@"), "{inside}");

    let began = Instant::now();
    let said = installation.in_debian(&[], &installation.page.commands("## From the archive")).await;
    eprintln!("archive, image and demo: {:?}", began.elapsed());
    assert!(said.contains(IMAGE), "it is loaded: {said}");
    for shown in SHOWN.iter().chain(&["A sluice gate lets through what may pass"]) {
        assert!(said.contains(shown), "{shown}: {said}");
    }

    let own =
        [("LITELLM_BASE_URL", &*installation.upstream_at("model.test")), ("LITELLM_MASTER_KEY", "sk-i")];
    let commands = format!(
        "cp {root}/libnss_fatal.so.2 /usr/lib/x86_64-linux-gnu; echo 'hosts: fatal files' >/etc/nsswitch.conf
         if getent hosts model.test; then echo 'the control: a dynamic program loads the module'; exit 1; fi
         {}",
        installation.page.commands("## As a Debian package")
    );
    let said = installation.in_debian(&own, &commands).await;
    for shown in SHOWN.iter().chain(&["Hello from the scripted upstream"]) {
        assert!(said.contains(shown), "{shown}: {said}");
    }

    let pip = format!(
        "/usr/bin/python3 -m venv {root}/venv && cd {root}/dist && . {root}/venv/bin/activate && {}",
        installation.page.commands("## As a Python wheel")
    );
    let mut environment = Command::new("bash");
    environment.args(["-c", &pip]).env("PIP_NO_INDEX", "1").env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    let installed = environment.output().await.unwrap();
    assert!(installed.status.success(), "{installed:?}");
    assert!(fs::exists(format!("{root}/venv/lib/sluicegate/sandbox-init")).unwrap());
    let own = [("LITELLM_BASE_URL", &*installation.upstream_at("localhost")), ("LITELLM_MASTER_KEY", "sk-i")];
    let demo =
        format!("PATH={root}/venv/bin:$PATH; sluice images load *-sandbox-runtime.tar.gz; sluice demo");
    let said = installation.in_debian(&own, &demo).await;
    for shown in SHOWN.iter().chain(&["Hello from the scripted upstream"]) {
        assert!(said.contains(shown), "{shown}: {said}");
    }
}
