//! Tests what `make dist` makes: what is in it, its sums, its signature, and that it is the same twice.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use harness::artifacts::{dist, run_dist, static_programs};
use tokio::process::Command;

use super::packages::FILES;

/// Files of an installation that belong to a host, and not to an environment of Python.
const OF_HOST: &str = "lib/sys";

/// Returns what a shell prints that runs `script` in `dir`.
async fn shell(dir: &Path, script: &str) -> String {
    let output = Command::new("bash").args(["-euo", "pipefail", "-c", script]).current_dir(dir).output();
    let output = output.await.unwrap();
    assert!(output.status.success(), "{script}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the only file of `dir` with a name that ends with `end`.
fn only(dir: &Path, end: &str) -> PathBuf {
    let files = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut files = files.filter(|path| path.to_string_lossy().ends_with(end));
    let found = files.next().unwrap_or_else(|| panic!("nothing ends with {end}"));
    assert!(files.next().is_none(), "several end with {end}");
    found
}

#[tokio::test]
async fn artifacts_hold_every_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display().to_string();
    dist(&["pack", &static_programs(), &out], &[("IMAGES", "")]).await;
    shell(dir.path(), "sha256sum --check SHA256SUMS").await;
    let archive = only(dir.path(), "linux-x86_64.tar.gz");
    let listed = shell(dir.path(), &format!("tar -tvzf {} --numeric-owner", archive.display())).await;
    assert!(listed.lines().all(|line| line.split_whitespace().nth(1) == Some("0/0")), "{listed}");
    let top = archive.file_name().unwrap().to_string_lossy().replace(".tar.gz", "/");
    let names = |listed: &str, start: &str| -> BTreeSet<String> {
        let paths = listed.lines().filter_map(|line| line.split_once(start)).map(|(_, path)| path.to_owned());
        paths.filter(|path| !path.is_empty() && !path.ends_with('/') && !path.contains("man/man1/")).collect()
    };
    assert_eq!(names(&listed, &top), FILES.map(str::to_owned).into());
    assert!(listed.contains("man/man1/sluice-run.1"), "{listed}");
    let unit = format!("tar -xOzf {} {top}lib/systemd/system/sluice.service", archive.display());
    assert!(shell(dir.path(), &unit).await.contains("ExecStart=/usr/local/bin/sluice"));
    let needed = shell(dir.path(), "dpkg-deb --field sluicegate_*.deb Depends").await;
    assert_eq!(needed.trim(), "", "static programs need no package");

    let wheel = only(dir.path(), ".whl");
    let listed = shell(dir.path(), &format!("python3 -m zipfile -l {}", wheel.display())).await;
    for file in FILES {
        let place =
            file.strip_prefix("bin/").map_or(format!("data/{file} "), |name| format!("scripts/{name} "));
        assert_eq!(listed.contains(&place), !file.starts_with(OF_HOST), "{place}: {listed}");
    }
    let contents = fs::read_to_string(only(dir.path(), ".cdx.json")).unwrap();
    for package in ["pkg:cargo/rustls@", "pkg:npm/react@", "\"expression\": \"MIT\"", "SHA-512"] {
        assert!(contents.contains(package), "{package}");
    }
    assert!(!contents.contains("pkg:cargo/proptest@"), "what only tests need is in no program");
}

/// The sums say whether a file is whole, and their signature says who it is from.
#[tokio::test]
async fn sums_of_artifacts_are_signed() {
    let dir = tempfile::tempdir().unwrap();
    let [key, out] = ["key", "out"].map(|name| dir.path().join(name).display().to_string());
    let made = "openssl genpkey -algorithm ed25519 -out key; openssl pkey -in key -pubout -out sluicegate.pub
                mkdir out; echo program >out/sluicegate-0.1.0-linux-x86_64.tar.gz; cd out; sha256sum sluicegate-* >SHA256SUMS";
    shell(dir.path(), made).await;
    let [_, said] = dist(&["sign", &out], &[]).await;
    assert!(said.contains("unsigned: `make dist SIGNING_KEY=FILE` signs"), "{said}");
    let [_, said] = dist(&["sign", &out], &[("SIGNING_KEY", &key)]).await;
    let verify = said.lines().find_map(|line| line.split_once("openssl pkeyutl -verify")).unwrap().1;
    let verify =
        format!("cp ../sluicegate.pub .; openssl pkeyutl -verify{verify} && sha256sum --check SHA256SUMS");
    let verified = shell(Path::new(&out), &verify).await;
    assert!(verified.contains("Signature Verified Successfully") && verified.contains(": OK"), "{verified}");
    for change in ["echo changed >>sluicegate-*.gz", "sha256sum sluicegate-* >SHA256SUMS"] {
        shell(Path::new(&out), &format!("{change}; ! ({verify})")).await;
    }
    shell(dir.path(), "openssl genpkey -algorithm x25519 -out key").await;
    let refused = run_dist(&["sign", &out], &[("SIGNING_KEY", &key)]).await;
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("it has to be an Ed25519 key"), "{said}");
}

#[tokio::test]
async fn the_same_programs_pack_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let [sums, _] = dist(&["check", &static_programs()], &[("IMAGES", "")]).await;
    assert_eq!(sums.lines().count(), 4, "{sums}");
    let other = [("IMAGES", ""), ("SOURCE_DATE_EPOCH", "1600000000")];
    dist(&["pack", &static_programs(), &dir.path().display().to_string()], &other).await;
    let other = fs::read_to_string(dir.path().join("SHA256SUMS")).unwrap();
    assert!(other.lines().all(|line| !sums.contains(line)), "the control, of another commit: {other}{sums}");
}
