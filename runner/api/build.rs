//! Embeds the files of the built dashboard, each with its hash, and compressed where that makes it smaller.
//!
//! Runs no npm. An empty directory is a dashboard that is not built.

#[path = "build/embed.rs"]
mod embed;

use std::{
    env,
    error::Error,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use self::embed::{BuiltFile, find_files};

/// Directory of the built dashboard, from the directory of this crate.
const DIST: &str = "../../services/web/dist";

#[expect(
    clippy::disallowed_methods,
    reason = "cargo gives a build script its directories in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from).ok_or("cargo runs build scripts");
    let dist = variable("CARGO_MANIFEST_DIR")?.join(DIST);
    let target = variable("OUT_DIR")?;
    let mut out = io::stdout();
    writeln!(out, "cargo::rerun-if-changed=build.rs")?;
    writeln!(out, "cargo::rerun-if-changed=build/embed.rs")?;
    writeln!(out, "cargo::rerun-if-changed={}", dist.display())?;
    match find_files(&dist) {
        Ok(files) => write_table(&files, &target)?,
        Err(problems) => {
            for problem in problems {
                writeln!(out, "cargo::error={problem}")?;
            }
        }
    }
    Ok(())
}

/// Writes the table of `files`, and what they are compressed to.
fn write_table(files: &[BuiltFile], target: &Path) -> io::Result<()> {
    let mut rows = String::new();
    for (number, file) in files.iter().enumerate() {
        let bytes = fs::read(&file.path)?;
        let compressed = target.join(format!("{number}.gz"));
        let gzip = Some(embed::gzip(&bytes)?).filter(|gzip| gzip.len() < bytes.len());
        if let Some(gzip) = &gzip {
            fs::write(&compressed, gzip)?;
        }
        rows += &source_of(file, &bytes, gzip.map(|_| compressed.as_path()));
    }
    fs::write(target.join("files.rs"), format!("&[\n{rows}]\n"))
}

/// Returns the row of a file in the table, as Rust source.
fn source_of(file: &BuiltFile, bytes: &[u8], gzip: Option<&Path>) -> String {
    let hash: String = Sha256::digest(bytes).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let include = |path: &Path| format!("include_bytes!({:?})", path.display().to_string());
    let gzip = gzip.map_or("None".to_owned(), |path| format!("Some({})", include(path)));
    format!(
        "EmbeddedFile {{ name: {:?}, media_type: {:?}, hash: {hash:?}, bytes: {}, gzip: {gzip} }},\n",
        file.name,
        file.media_type,
        include(&file.path)
    )
}
