//! The guide for applications, executed as it is written: both generated clients order a run and read its answer.

use std::{fs, os::unix::fs::symlink};

use harness::{Up, World, bridge::free_port, canary, clients, process::binary};
use platform_runtime::config::Environment;
use rustix::process::Signal;

use harness::book::Page;

/// Packages that the page installs, with their versions' names in the script.
const PACKAGES: [(&str, &str); 6] = [
    ("OPENAPI_PYTHON_CLIENT", "version "),
    ("OPENAPI_TYPESCRIPT", "openapi-typescript@"),
    ("OPENAPI_FETCH", "openapi-fetch@"),
    ("TYPESCRIPT", "typescript@"),
    ("TSX", "tsx@"),
    ("TYPES_NODE", "@types/node@"),
];

#[tokio::test]
async fn generated_clients_work_as_written() {
    let mut world = World::with("").await;
    assert!(world.stop_proxy().await);
    let address = free_port().to_string();
    let sluice = world.sluice().env("SLUICE_API_LISTEN", &address);
    let up = Up::start(sluice.env("SLUICE_UPSTREAM_DEFAULT_MODEL", "fake")).await;
    let page = Page::read("docs/src/how-to/applications-api.md").with("127.0.0.1:4180", &address);
    for pinned in clients::versions(&PACKAGES) {
        assert!(page.says(&pinned), "the page names another version than {pinned}");
    }
    let root = page.root();
    for (language, file) in [("python", "order.py"), ("ts", "order.mts")] {
        fs::write(format!("{root}/{file}"), page.blocks(language).concat()).unwrap();
    }
    let installed = clients::folder().await;
    symlink(format!("{installed}/node_modules"), format!("{root}/node_modules")).unwrap();
    let path = Environment::capture().get("PATH").unwrap_or_default().to_owned();
    let programs = binary("sluice").parent().unwrap().display().to_string();
    let path = format!("{programs}:{installed}/python/bin:{path}");
    let config = world.config().display().to_string();
    let stdout = page.succeeds(&[("SLUICE_CONFIG", &config), ("PATH", &path)]).await;
    canary::hand_out(fs::read_to_string(format!("{root}/app.token")).unwrap().trim());
    for shown in ["event: status running", "event: done", "answer: Hello from the scripted upstream"] {
        assert_eq!(stdout.matches(shown).count(), 2, "{shown}: {stdout}");
    }
    up.stop(Signal::TERM).await;
    world.assert_nothing_left().await;
}
