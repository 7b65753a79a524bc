//! Tests the recipe of the book that adds programs to an image. Its packages come from a directory, not from a mirror.

use std::{fs, path::Path, process::Stdio};

use harness::{book::Page, docker::docker};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use super::images::OwnImages;

const BASE: &str = "sluicegate/sandbox-runtime:latest";

async fn succeeds(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
}

async fn build(image: &str, directory: &Path) {
    let mut command = Command::new("docker");
    command.args(["build", "--force-rm", "--tag", image]).arg(directory).env("DOCKER_BUILDKIT", "0");
    succeeds(&mut command).await;
}

/// Writes a package that has a program of its name, and returns its paragraph of the list of packages.
async fn package(repository: &Path, name: &str) -> String {
    let tree = repository.join(format!("{name}-tree"));
    let program = format!("usr/bin/{name}");
    let control = format!(
        "Package: {name}\nVersion: 99\nArchitecture: all\nMaintainer: Tests <tests@sandbox.invalid>\nDescription: test\n"
    );
    for (path, text) in [("DEBIAN/control", control.as_str()), (&program, "#!/bin/sh\necho it is here\n")] {
        let path = tree.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    succeeds(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&tree)).await;
    succeeds(Command::new("chmod").arg("755").arg(tree.join(&program))).await;
    let archive = repository.join(format!("{name}.deb"));
    succeeds(Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).args([&tree, &archive])).await;
    fs::remove_dir_all(tree).unwrap();
    let bytes = fs::read(archive).unwrap();
    let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{control}Filename: ./{name}.deb\nSize: {}\nSHA256: {digest}\n\n", bytes.len())
}

/// Builds the image `base` with an apt that knows only the packages `names` of a directory.
async fn build_base(base: &str, names: &[&str]) {
    let context = tempfile::tempdir().unwrap();
    let repository = context.path().join("repository");
    fs::create_dir(&repository).unwrap();
    let mut list = String::new();
    for name in names {
        list += &package(&repository, name).await;
    }
    fs::write(repository.join("Packages"), list).unwrap();
    succeeds(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(&repository)).await;
    let dockerfile = format!(
        "FROM {BASE}\nUSER 0\nCOPY repository /repository\nRUN rm -f /etc/apt/sources.list.d/* && echo 'deb [trusted=yes] file:/repository ./' >/etc/apt/sources.list\n"
    );
    fs::write(context.path().join("Dockerfile"), dockerfile).unwrap();
    build(base, context.path()).await;
}

#[tokio::test]
async fn the_recipe_of_the_book_adds_programs() {
    let page = Page::read("docs/src/how-to/agents.md");
    let recipe = page.text.split_once("```dockerfile\n").unwrap().1.split_once("```").unwrap().0;
    let name = |what: &str| format!("sluice-test/recipe-{what}:{}", std::process::id());
    let (base, extended) = (name("base"), name("extended"));
    let _images = OwnImages(vec![extended.clone(), base.clone()]);
    build_base(&base, &["make", "python3"]).await;
    let context = tempfile::tempdir().unwrap();
    assert!(recipe.contains(BASE), "{recipe}");
    fs::write(context.path().join("Dockerfile"), recipe.replace(BASE, &base)).unwrap();
    build(&extended, context.path()).await;
    let said = async |image: &str| {
        let inside = ["run", "--rm", "--network", "none", "--entrypoint", "sh", image, "-c"];
        docker(&[&inside[..], &["id -u; make; python3; exit 0"]].concat()).await
    };
    assert_eq!(said(&extended).await.trim(), "1001\nit is here\nit is here");
    assert_eq!(said(BASE).await.trim(), "1001", "control: the image without them");
}
