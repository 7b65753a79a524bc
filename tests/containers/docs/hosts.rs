//! Pages about hosts: a web server in front of the API, and a host without a network. Their commands work as written.

use std::{fs, path::Path, process::Stdio};

use harness::{
    Up, World,
    book::{Page, own_state},
    bridge::free_port,
    canary,
    eventually::eventually,
    shell_agents::shell_agent,
};
use rustix::process::Signal;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
};

/// Makes a certificate for `localhost` in `dir`.
async fn certify(dir: &Path) {
    let arguments = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
                     -addext subjectAltName=DNS:localhost -keyout sluice.key -out sluice.pem";
    let made = Command::new("openssl").args(arguments.split_whitespace()).current_dir(dir).output().await;
    let made = made.unwrap();
    assert!(made.status.success(), "{made:?}");
}

/// Starts nginx with a server of the page. It is one process, so that a kill leaves nothing.
async fn serve(dir: &Path, server: &str, port: u16) -> Child {
    let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let paths = paths.map(|name| format!("{name}_temp_path {}/{name};\n", dir.display())).concat();
    let text = format!(
        "daemon off; master_process off; pid {}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{server}}}\n",
        dir.display()
    );
    let config = dir.join("nginx.conf");
    fs::write(&config, text).unwrap();
    let mut nginx = Command::new("/usr/sbin/nginx");
    nginx.args(["-e", "stderr", "-p"]).arg(dir).arg("-c").arg(&config).stdin(Stdio::null());
    let nginx = nginx.kill_on_drop(true).spawn().expect("nginx is needed: run `make setup`");
    let connect = || async { TcpStream::connect(("127.0.0.1", port)).await.map(drop) };
    eventually("nginx answers", connect, Result::is_ok).await.unwrap();
    nginx
}

/// The agent works until the page has seen an event of it, so the proxy has no buffer that ends with the run.
#[tokio::test]
async fn nginx_in_front_of_the_api_works_as_written() {
    let (api, front) = (free_port().to_string(), free_port().port());
    let page = Page::read("docs/src/how-to/reverse-proxy.md").with("127.0.0.1:4180", &api);
    let page = page.with("https://sluice.example", &format!("https://localhost:{front}"));
    let page = page.with(r#"{"input""#, r#"{"agentId":"test:sh","input""#);
    let agent = shell_agent("echo begun; sleep 40", "");
    let mut world = World::with(&format!("{agent}\n{}", page.blocks("toml").concat())).await;
    assert!(world.stop_proxy().await);
    let up = Up::start(world.sluice().env("SLUICE_UPSTREAM_DEFAULT_MODEL", "fake")).await;
    let dir = page.root.path().to_owned();
    certify(&dir).await;
    let server = page.blocks("nginx").concat().replace("/etc/nginx/", &format!("{}/", dir.display()));
    let server = server.replace("443", &front.to_string()).replace("sluice.example", "localhost");
    let _nginx = serve(&dir, &server, front).await;
    let bundle = dir.join("sluice.pem").display().to_string();
    let config = world.config().display().to_string();
    let environment = [("SLUICE_CONFIG", config.as_str()), ("CURL_CA_BUNDLE", &bundle)];
    let printed = page.succeeds(&environment).await;
    canary::hand_out(fs::read_to_string(dir.join("app.token")).unwrap().trim());
    assert!(printed.contains("\"defaultAgentId\"") && printed.contains("data: {"), "{printed}");
    // Control: the API refuses a name that it does not have, so nginx passes on what the client sent.
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--cacert", &bundle, "-H", "Host: other.example"]);
    let refused = curl.arg(format!("https://localhost:{front}/api/v1/ai/agents")).output().await.unwrap();
    assert!(String::from_utf8_lossy(&refused.stdout).contains("wrong_host"), "{refused:?}");
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}

#[tokio::test]
async fn a_host_without_a_network_works_as_written() {
    let page = Page::read("docs/src/how-to/air-gapped.md");
    let environment = own_state(&page.root());
    fs::create_dir_all(page.root.path().join("etc/sluicegate")).unwrap();
    fs::write(&environment[0].1, "").unwrap();
    let environment: Vec<_> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let printed = page.succeeds(&environment).await;
    for image in ["sluicegate/sandbox-runtime:latest", "sluicegate/git-sync:latest"] {
        assert!(printed.lines().any(|line| line == image), "{printed}");
    }
    let entry = fs::read_to_string(page.root.path().join("claude-code.toml")).unwrap();
    assert!(entry.contains("[agents.\"sandbox:claude-code\"]"), "{entry}");
}
