//! Writes entries of agents into the configuration file, and leaves all other bytes of it as they are.

use std::{
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use platform_runtime::file;
use rustix::fs::{Access, access};

use super::{Error, Recipe};

/// Mode of a new configuration file: it holds no secret.
const MODE: u32 = 0o644;

/// Entry of an agent that ships.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'e> {
    /// Recipe of its image.
    pub(crate) recipe: &'e Recipe,
    /// Its image.
    pub(crate) image: &'e str,
    /// Its model, if one was named.
    pub(crate) model: Option<&'e str>,
}

/// Configuration file that gets entries.
#[derive(Debug)]
pub(crate) struct EntryFile {
    path: PathBuf,
}

impl Entry<'_> {
    /// Returns the entry between its marks.
    pub(crate) fn block(&self) -> String {
        let entry = self.recipe.entry.replace("{image}", self.image);
        let model = self.model_line().unwrap_or_else(|| {
            "# model = \"…\"                           # upstream.default_model if absent".to_owned()
        });
        format!("{}\n{entry}{model}\n{}\n", self.first_line(), self.end())
    }

    /// Returns the beginning of the first line, which no version changes.
    fn begin(&self) -> String {
        format!("# Begin of what `sluice agents add {}` wrote.", self.recipe.name)
    }

    fn end(&self) -> String {
        format!("# End of what `sluice agents add {}` wrote.", self.recipe.name)
    }

    fn first_line(&self) -> String {
        let Recipe { title, version, package, .. } = self.recipe;
        format!("{} {title} {version}, package {package}.", self.begin())
    }

    fn image_line(&self) -> String {
        format!("image = \"{}\"", self.image)
    }

    fn model_line(&self) -> Option<String> {
        self.model.map(|model| format!("model = \"{model}\""))
    }

    /// Returns an earlier `block` of this agent with this image, and with this model if one was named. All other lines
    /// stay, which may be the user's. `None` if the block has no image.
    fn renew(&self, block: &str) -> Option<String> {
        let lines: Vec<_> = block.lines().collect();
        let at = |key: &str| lines.iter().position(|line| is_setting(line, key));
        let image = at("image")?;
        let model = at("model").or_else(|| at("# model"));
        let mut renewed: Vec<_> = lines.iter().map(|line| (*line).to_owned()).collect();
        renewed[0] = self.first_line();
        renewed[image] = self.image_line();
        if let Some(line) = self.model_line() {
            match model {
                Some(model) => renewed[model] = line,
                None => renewed.insert(image + 1, line),
            }
        }
        Some(renewed.join("\n"))
    }
}

/// Returns whether `line` sets `key`.
fn is_setting(line: &str, key: &str) -> bool {
    line.trim_start().strip_prefix(key).is_some_and(|rest| rest.trim_start().starts_with('='))
}

impl EntryFile {
    /// Creates a writer for the file at `path`, which need not exist.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the text of the file with `entry` at its end.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn text_with(&self, entry: &Entry<'_>) -> Result<String, Error> {
        let text = self.read()?;
        let gap = match text.as_str() {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        Ok(format!("{text}{gap}{}", entry.block()))
    }

    /// Returns the text of the file with the image of `entry` in the entry that an earlier call wrote.
    ///
    /// # Errors
    /// If the file has no such entry, or cannot be read.
    pub(crate) fn text_with_image(&self, entry: &Entry<'_>) -> Result<String, Error> {
        let text = self.read()?;
        let foreign = || Error::Exists { agent: entry.recipe.agent(), file: self.path.clone() };
        let start = text.find(&entry.begin()).ok_or_else(foreign)?;
        let length = text[start..].find(&entry.end()).ok_or_else(foreign)?;
        let (before, rest) = text.split_at(start);
        let (block, after) = rest.split_at(length);
        let renewed = entry.renew(block.trim_end_matches('\n')).ok_or_else(foreign)?;
        Ok(format!("{before}{renewed}\n{after}"))
    }

    /// Returns the text of the file; empty if it does not exist.
    fn read(&self) -> Result<String, Error> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(source) => Err(Error::Unreadable { path: self.path.clone(), source }),
            Ok(text) => Ok(text),
        }
    }

    /// Checks that the file can be written, and changes nothing.
    ///
    /// # Errors
    /// If the file or its directory is read-only or immutable.
    pub(crate) fn check_writable(&self) -> Result<(), Error> {
        // An immutable file is found by opening it, a read-only directory by asking.
        let target = fs::canonicalize(&self.path).unwrap_or_else(|_absent| self.path.clone());
        let opened = match OpenOptions::new().append(true).open(&target) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            opened => opened.map(drop),
        };
        let directory = existing_directory(&target);
        opened
            .and_then(|()| Ok(access(directory, Access::WRITE_OK | Access::EXEC_OK)?))
            .map_err(self.unwritable())
    }

    /// Gives the file this text, at once: a reader sees the earlier text or this one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&self, text: &str) -> Result<(), Error> {
        let written = match self.path.exists() {
            true => file::replace_content(&self.path, text.as_bytes()),
            false => self
                .path
                .parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| file::replace(&self.path, MODE, text.as_bytes())),
        };
        written.map_err(self.unwritable())
    }

    fn unwritable(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = self.path.clone();
        move |source| Error::Unwritable { path, source }
    }
}

/// Returns the nearest directory above `path` that exists.
fn existing_directory(path: &Path) -> &Path {
    let mut above = path.ancestors().skip(1).filter(|directory| directory.is_dir());
    above.next().unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn recipe() -> Recipe {
        Recipe::all().remove(0)
    }

    fn file(name: &str) -> EntryFile {
        let directory = std::env::temp_dir().join(format!("sluice-entry-{}-{name}", std::process::id()));
        EntryFile::new(directory.join("sluice.toml"))
    }

    fn remove(file: &EntryFile) {
        fs::remove_dir_all(file.path.parent().unwrap()).unwrap();
    }

    #[test]
    fn other_bytes_and_own_settings_stay() {
        let file = file("bytes");
        let recipe = recipe();
        let first = Entry { recipe: &recipe, image: "one:1", model: Some("m") };
        file.write("# mine\r\n[proxy]").unwrap();
        file.write(&file.text_with(&first).unwrap()).unwrap();
        let added = file.read().unwrap();
        assert_eq!(added, format!("# mine\r\n[proxy]\n\n{}", first.block()));
        let edited = added.replace("run_timeout = \"30m\"", "run_timeout = \"2h\" # mine") + "# last";
        assert_ne!(edited, added + "# last", "control");
        file.write(&edited).unwrap();
        let second = Entry { recipe: &recipe, image: "two:2", model: None };
        let renewed = file.text_with_image(&second).unwrap();
        assert_eq!(renewed, edited.replace("one:1", "two:2"));
        let third = Entry { recipe: &recipe, image: "two:2", model: Some("n") };
        file.write(&renewed).unwrap();
        let expected = renewed.replace("model = \"m\"", "model = \"n\"");
        assert_eq!(file.text_with_image(&third).unwrap(), expected);
        remove(&file);
    }

    #[test]
    fn a_commented_model_is_replaced() {
        let recipe = recipe();
        let entry = |model| Entry { recipe: &recipe, image: "i:1", model };
        let renewed = entry(Some("n")).renew(&entry(None).block()).unwrap();
        assert_eq!(format!("{renewed}\n"), entry(Some("n")).block());
    }

    #[test]
    fn an_entry_without_marks_is_not_replaced() {
        let file = file("marks");
        file.write("[agents.\"sandbox:claude-code\"]\n").unwrap();
        let refused = file.text_with_image(&Entry { recipe: &recipe(), image: "i", model: None });
        assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
        remove(&file);
    }

    #[test]
    fn a_link_to_the_file_stays() {
        let file = file("link");
        file.write("# one\n").unwrap();
        let link = EntryFile::new(file.path.with_extension("link"));
        symlink(&file.path, &link.path).unwrap();
        link.check_writable().unwrap();
        link.write("# two\n").unwrap();
        assert!(link.path.is_symlink());
        assert_eq!(file.read().unwrap(), "# two\n");
        remove(&file);
    }

    #[test]
    fn a_check_creates_nothing() {
        let file = file("check");
        file.check_writable().unwrap();
        assert!(!file.path.parent().unwrap().exists());
        let below_a_file = EntryFile::new("/proc/version/sluice.toml".into());
        let refused = below_a_file.check_writable().unwrap_err().to_string();
        assert_eq!(refused, "cannot write /proc/version/sluice.toml");
    }
}
