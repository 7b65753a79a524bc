//! Starts the proxy that Sluicegate replaces: nginx with the directives of the predecessor's template. It shows that an
//! attack which Sluicegate withstands succeeds elsewhere.

use std::{net::SocketAddr, path::Path, process::Stdio};

use platform_core::grant::RunGrant;
use tokio::process::{Child, Command};

use crate::{agent::Agent, eventually::eventually};

/// nginx in front of an upstream. Killed and removed on drop.
#[derive(Debug)]
pub struct OriginalProxy {
    /// A client on its socket.
    pub agent: Agent,
    _nginx: Child,
    _dir: tempfile::TempDir,
}

impl OriginalProxy {
    /// Starts nginx for the run of `grant`, with the upstream's key `key`.
    ///
    /// # Panics
    /// If nginx is missing or does not answer.
    pub async fn start(upstream: SocketAddr, grant: &RunGrant, key: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("sw-nginx-").tempdir_in("/tmp").unwrap();
        let (config, socket) = (dir.path().join("nginx.conf"), dir.path().join("llm.sock"));
        std::fs::write(&config, configuration(dir.path(), upstream, grant, key)).unwrap();
        let nginx = Command::new("/usr/sbin/nginx")
            .args(["-e", "stderr", "-p"])
            .arg(dir.path())
            .arg("-c")
            .arg(&config)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("nginx is needed to show what it lets through: run `make setup`");
        let agent = Agent::on(&socket).unsearched();
        eventually("nginx answers", || async { agent.connect().await.map(drop) }, Result::is_ok)
            .await
            .unwrap();
        Self { agent, _nginx: nginx, _dir: dir }
    }
}

/// Returns the template filled in for one run. It sets six headers, strips none, and ignores the body. nginx runs as
/// one process, so that a kill leaves nothing.
pub(crate) fn configuration(dir: &Path, upstream: SocketAddr, grant: &RunGrant, key: &str) -> String {
    let RunGrant { run_id, attempt, account, graph, .. } = grant;
    let dir = dir.display();
    format!(
        r#"daemon off;
master_process off;
pid {dir}/pid;
events {{ worker_connections 64; }}
http {{
  access_log off;
  default_type application/json;
  client_body_temp_path {dir}/body;
  proxy_temp_path {dir}/proxy;
  fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi;
  scgi_temp_path {dir}/scgi;
  upstream litellm {{ server {upstream}; keepalive 4; }}
  server {{
    listen unix:{dir}/llm.sock;
    location = /health {{ return 200 '{{"status":"ok","runId":"{run_id}"}}'; }}
    location /v1/ {{
      proxy_pass http://litellm;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header Content-Type application/json;
      proxy_set_header Authorization "Bearer {key}";
      proxy_set_header x-litellm-end-user-id "{account}";
      proxy_set_header x-litellm-spend-logs-metadata '{{"run_id":"{run_id}","attempt":{attempt},"graph_id":"{graph}"}}';
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_cache off;
      proxy_read_timeout 3600s;
    }}
    location / {{ return 404 '{{"error":"not_found"}}'; }}
  }}
}}
"#
    )
}
