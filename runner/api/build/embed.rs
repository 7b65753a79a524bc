//! Finds the files of the built dashboard, refuses those that no browser would ask for, and describes each in Rust.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

const INDEX: &str = "index.html";
/// Directory of all other files. Each has a name that its content decides.
const ASSETS: &str = "assets";
/// Entries that are not files of the dashboard: git's, and the list that Vite writes.
const OTHERS: [&str; 2] = [".gitignore", ".vite"];

/// Media types by the ending of a name.
const MEDIA_TYPES: [(&str, &str); 9] = [
    ("css", "text/css; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("png", "image/png"),
    ("svg", "image/svg+xml"),
    ("webp", "image/webp"),
    ("woff2", "font/woff2"),
];

/// File of the built dashboard.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BuiltFile {
    /// Name below the directory, such as `assets/index-Ab12.js`.
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) media_type: &'static str,
}

/// Returns the files in `dist`, in the order of their names; none if the dashboard is not built.
///
/// # Errors
/// All problems, each in a sentence with its fix.
pub(crate) fn find_files(dist: &Path) -> Result<Vec<BuiltFile>, Vec<String>> {
    let mut files = Vec::new();
    let mut problems = Vec::new();
    let mut read = |dir: &Path, prefix: &str| match names(dir) {
        Ok(names) => {
            for name in names.iter().filter(|name| !is_other(prefix, name)) {
                let path = dir.join(name);
                match judge(&path, name, prefix) {
                    Ok(media_type) => {
                        files.push(BuiltFile { name: format!("{prefix}{name}"), path, media_type });
                    }
                    Err(problem) => problems.push(format!("{}: {problem}", path.display())),
                }
            }
        }
        Err(error) => problems.push(format!("{} cannot be read: {error}", dir.display())),
    };
    read(dist, "");
    let assets = dist.join(ASSETS);
    if assets.is_dir() {
        read(&assets, "assets/");
    }
    if problems.is_empty() && !files.is_empty() && files.iter().all(|file| file.name != INDEX) {
        problems.push(format!(
            "{} has no {INDEX}: a build broke off, so run `make web` again, or remove its files",
            dist.display()
        ));
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    if problems.is_empty() { Ok(files) } else { Err(problems) }
}

/// Returns the names in a directory that exists.
fn names(dir: &Path) -> io::Result<Vec<String>> {
    fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Returns whether an entry does not belong to the dashboard's files, or is read by itself.
fn is_other(prefix: &str, name: &str) -> bool {
    prefix.is_empty() && (OTHERS.contains(&name) || name == ASSETS)
}

/// Returns the media type of the file `name`.
fn judge(path: &Path, name: &str, prefix: &str) -> io::Result<&'static str> {
    let refuse = |problem: &str| Err(io::Error::other(problem));
    if prefix.is_empty() && name != INDEX {
        return refuse(&format!("only {INDEX} and {ASSETS}/ are served: let Vite put it into {ASSETS}/"));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.starts_with('.') || !name.bytes().all(is_plain) {
        return refuse("its name is not of letters, digits, `.`, `_` and `-`: rename what it is built from");
    }
    if !fs::symlink_metadata(path).is_ok_and(|data| data.is_file()) {
        return refuse("it is not a plain file: remove it, and run `make web` again");
    }
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    let known = MEDIA_TYPES.iter().find(|(known, _)| *known == ending);
    known.map(|(_, media_type)| *media_type).ok_or_else(|| {
        io::Error::other(format!(
            "no media type is known for `.{ending}`: add it to MEDIA_TYPES in runner/api/build/embed.rs"
        ))
    })
}

/// Returns `bytes` compressed.
pub(crate) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    /// Directory that is removed at the end of a test.
    struct Dist(PathBuf);

    impl Dist {
        fn with(name: &str, files: &[&str]) -> Self {
            let dir = env::temp_dir().join(format!("sluice-dist-{}-{name}", std::process::id()));
            fs::create_dir_all(dir.join(ASSETS)).unwrap();
            for file in files {
                fs::write(dir.join(file), "text").unwrap();
            }
            Self(dir)
        }
    }

    impl Drop for Dist {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn built_files_are_found_in_order() {
        let dist = Dist::with("good", &["index.html", "assets/b-1.js", "assets/a-2.css", ".gitignore"]);
        fs::create_dir(dist.0.join(".vite")).unwrap();
        let found = find_files(&dist.0).unwrap();
        let names: Vec<_> = found.iter().map(|file| (file.name.as_str(), file.media_type)).collect();
        let expected = [
            ("assets/a-2.css", "text/css; charset=utf-8"),
            ("assets/b-1.js", "text/javascript; charset=utf-8"),
            ("index.html", "text/html; charset=utf-8"),
        ];
        assert_eq!(names, expected);
        let empty = Dist::with("empty", &[".gitignore"]);
        assert_eq!(find_files(&empty.0), Ok(Vec::new()), "it is not built");
    }

    #[test]
    fn odd_files_are_named_all_at_once() {
        let files = ["index.html", "assets/a b.js", "assets/a.exe", "assets/.hidden", "robots.txt"];
        let dist = Dist::with("odd", &files);
        fs::create_dir(dist.0.join("assets/deep")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", dist.0.join("assets/link.js")).unwrap();
        let problems = find_files(&dist.0).unwrap_err();
        for odd in [
            "a b.js: its name",
            "a.exe: no media type",
            ".hidden: its name",
            "robots.txt: only index.html",
            "deep: it is not a plain file",
            "link.js: it is not a plain file",
        ] {
            assert!(problems.iter().any(|problem| problem.contains(odd)), "{odd}: {problems:?}");
        }
        assert_eq!(problems.len(), 6, "{problems:?}");
        let broken = Dist::with("broken", &["assets/a.js"]);
        let problems = find_files(&broken.0).unwrap_err();
        assert!(problems[0].contains("has no index.html"), "{problems:?}");
    }
}
