//! Starts the files of `platform/compose` as their README says, but without `docker compose` itself.

use std::{fs, os::unix::fs::chown, path::Path, process::Command, time::Duration};

use harness::{docker::docker, eventually::eventually_within};
use serde_json::Value;

/// Uid of the proxy's image.
pub(super) const PROXY: u32 = 65532;
/// LiteLLM needs half a minute to start with its database, and three times that on a busy machine.
const HEALTHY: Duration = Duration::from_secs(180);

/// The containers and networks of a file, started under names of the test's own. Removed on drop.
pub(super) struct Stack {
    /// Prefix of all names.
    pub(super) project: String,
    /// The file.
    pub(super) file: Value,
    /// Directories that replace those which the file names relative to itself.
    pub(super) directories: Vec<(&'static str, String)>,
    /// Values of the file's variables `${NAME…}`.
    pub(super) variables: Vec<(&'static str, String)>,
}

/// Returns a file of `platform/compose` as JSON. LiteLLM's Python parses the YAML.
pub(super) fn read(name: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../platform/compose").join(name);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/litellm.sh");
    let output = Command::new(script).arg("json").arg(file).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the texts of a list.
pub(super) fn texts(list: &Value) -> impl Iterator<Item = &str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap())
}

impl Stack {
    /// Returns the name that a container, network or volume of the file has here.
    pub(super) fn name(&self, what: &str) -> String {
        format!("{}-{what}", self.project)
    }

    /// Returns `text` with its variables filled in.
    fn filled(&self, text: &str) -> String {
        let mut filled = text.to_owned();
        for (name, value) in &self.variables {
            while let Some(at) = filled.find(&format!("${{{name}")) {
                let end = at + filled[at..].find('}').unwrap() + 1;
                filled.replace_range(at..end, value);
            }
        }
        assert!(!filled.contains("${"), "{filled}");
        filled
    }

    /// Creates the networks.
    pub(super) async fn create_networks(&self) {
        for (name, network) in self.file["networks"].as_object().unwrap() {
            let internal = (network["internal"] == true).then_some("--internal");
            let name = self.name(name);
            docker(&["network", "create"].into_iter().chain(internal).chain([&*name]).collect::<Vec<_>>())
                .await;
        }
    }

    /// Creates and starts the containers of `services`, which are in the order of their dependencies. Waits until each
    /// is healthy, as `depends_on` asks for.
    pub(super) async fn start(&self, services: &[&str]) {
        for service in services {
            let (first, others, arguments) = self.arguments(service);
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            docker(&[&["create", "--network", &first, "--network-alias", service], &arguments[..]].concat())
                .await;
            for network in others {
                docker(&["network", "connect", &network, &self.name(service)]).await;
            }
            docker(&["start", &self.name(service)]).await;
            self.wait_for_health(service).await;
        }
    }

    /// Waits until a service that has a health check is healthy.
    pub(super) async fn wait_for_health(&self, service: &str) {
        let check = self.file["services"][service].get("healthcheck");
        if check.is_none_or(|check| health_arguments(check).is_empty()) {
            return;
        }
        let name = self.name(service);
        let look = || async { docker(&["inspect", "--format", "{{json .State.Health}}", &name]).await };
        let healthy = |state: &String| state.contains(r#""Status":"healthy""#);
        eventually_within(HEALTHY, &format!("{service} is healthy"), look, healthy).await;
    }

    /// Returns the first network of `service`, its other networks, and the arguments for `docker create`.
    fn arguments(&self, service: &str) -> (String, Vec<String>, Vec<String>) {
        let settings = &self.file["services"][service];
        let label = format!("sluicegate.installation={}", self.project);
        let mut all = vec!["--name".to_owned(), self.name(service), "--label".to_owned(), label];
        for (key, value) in settings.as_object().unwrap() {
            let options = self.options(key, value);
            all.extend(options.unwrap_or_else(|| panic!("this test does not know `{key}` of {service}")));
        }
        let words = |key: &str| settings.get(key).into_iter().flat_map(texts).map(str::to_owned);
        // Docker takes only the program of an entry point as an option.
        let mut entry = words("entrypoint");
        all.extend(entry.next().into_iter().flat_map(|program| ["--entrypoint".to_owned(), program]));
        all.push(settings["image"].as_str().unwrap().to_owned());
        all.extend(entry.chain(words("command")));
        let mut networks: Vec<_> = texts(&settings["networks"]).map(|network| self.name(network)).collect();
        (networks.remove(0), networks, all)
    }

    /// Returns the options of `docker create` for one key of a service, if it is one that this knows.
    fn options(&self, key: &str, value: &Value) -> Option<Vec<String>> {
        let one = |option: &str| {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            vec![option.to_owned(), self.filled(&value)]
        };
        let each = |option: &str| {
            texts(value).flat_map(|text| [option.to_owned(), self.filled(text)]).collect::<Vec<_>>()
        };
        Some(match key {
            "restart" => one("--restart"),
            "hostname" => one("--hostname"),
            "working_dir" => one("--workdir"),
            "mem_limit" => one("--memory"),
            "pids_limit" => one("--pids-limit"),
            "cap_drop" => each("--cap-drop"),
            "security_opt" => each("--security-opt"),
            "tmpfs" => each("--tmpfs"),
            "init" => vec!["--init".to_owned()],
            "read_only" => vec!["--read-only".to_owned()],
            "stop_grace_period" => {
                let seconds = value.as_str().unwrap().trim_end_matches('s');
                vec!["--stop-timeout".to_owned(), seconds.to_owned()]
            }
            "volumes" => texts(value)
                .flat_map(|volume| ["--volume".to_owned(), self.volume(&self.filled(volume))])
                .collect(),
            "environment" => self.variables_of(value),
            "secrets" => texts(value).flat_map(|secret| self.secret(secret)).collect(),
            "healthcheck" => health_arguments(value),
            // No port is published: tests run beside each other, and reach containers at their addresses.
            "ports" | "depends_on" | "networks" | "image" | "entrypoint" | "command" => Vec::new(),
            _ => return None,
        })
    }

    /// Returns the options that set environment variables.
    fn variables_of(&self, environment: &Value) -> Vec<String> {
        let variables = environment.as_object().unwrap().iter();
        variables
            .flat_map(|(name, value)| {
                ["--env".to_owned(), format!("{name}={}", self.filled(value.as_str().unwrap()))]
            })
            .collect()
    }

    /// Returns `volume` with a name of this test's own, or with the replaced directory.
    fn volume(&self, volume: &str) -> String {
        let (source, target) = volume.split_once(':').unwrap();
        if self.file["volumes"].get(source).is_some() {
            return format!("{}:{target}", self.name(source));
        }
        let replaced = self.directories.iter().find(|(directory, _)| *directory == source);
        replaced.map_or_else(|| volume.to_owned(), |(_, directory)| format!("{directory}:{target}"))
    }

    /// Returns the arguments that mount a secret's file.
    fn secret(&self, secret: &str) -> [String; 2] {
        let file = self.filled(self.file["secrets"][secret]["file"].as_str().unwrap());
        ["--volume".to_owned(), format!("{file}:/run/secrets/{secret}:ro")]
    }
}

/// Returns the arguments of a health check. Docker's options take a command of a shell, and an image without one cannot
/// have any: then there are none, and the test runs the command itself.
fn health_arguments(check: &Value) -> Vec<String> {
    let words: Vec<_> = texts(&check["test"]).skip(1).collect();
    if words[0] == "/sluice-proxy" {
        return Vec::new();
    }
    let command: Vec<_> = words.iter().map(|word| format!("'{word}'")).collect();
    let option = |name: &str| [format!("--health-{name}"), check[name].as_str().unwrap().to_owned()];
    let mut all = vec!["--health-cmd".to_owned(), command.join(" ")];
    all.extend(["interval", "timeout"].into_iter().flat_map(option));
    all.extend(["--health-retries".to_owned(), check["retries"].to_string()]);
    all
}

impl Drop for Stack {
    fn drop(&mut self) {
        let of = |kind: &str| {
            self.file[kind]
                .as_object()
                .unwrap()
                .keys()
                .map(|name| self.name(name))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let script = format!(
            "docker rm --force {}; docker network rm {}; docker volume rm {}",
            of("services"),
            of("networks"),
            of("volumes")
        );
        Command::new("sh").args(["-c", &script]).output().ok();
    }
}

/// Creates an empty directory that belongs to the proxy's user, and returns its path.
pub(super) fn proxy_dir(path: &Path) -> String {
    fs::remove_dir_all(path).ok();
    fs::create_dir_all(path).unwrap();
    chown(path, Some(PROXY), Some(PROXY)).unwrap();
    path.display().to_string()
}
