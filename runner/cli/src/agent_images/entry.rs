//! Writes entries of agents into the configuration file, and leaves all other bytes of it as they are.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use super::{Error, Recipe};

/// Mode of a new configuration file: it holds no secret.
const MODE: u32 = 0o644;

/// Configuration file that gets entries.
pub(crate) struct EntryFile {
    path: PathBuf,
}

/// Beginning and end of an entry in the file.
struct Marks {
    begin: String,
    end: String,
}

impl Marks {
    fn of(recipe: &Recipe) -> Self {
        let Recipe { name, .. } = recipe;
        Self {
            begin: format!("# Begin of what `sluice agents add {name}` wrote."),
            end: format!("# End of what `sluice agents add {name}` wrote.\n"),
        }
    }
}

impl EntryFile {
    /// Creates a writer for the file at `path`, which need not exist.
    pub(crate) const fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// Returns the entry of `recipe` with `image` and `model`, between its marks.
    pub(crate) fn block(recipe: &Recipe, image: &str, model: Option<&str>) -> String {
        let Marks { begin, end } = Marks::of(recipe);
        let Recipe { title, version, package, .. } = recipe;
        let entry = recipe.entry.replace("{image}", image);
        let model = model.map_or_else(
            || "# model = \"…\"                           # upstream.default_model if absent\n".to_owned(),
            |model| format!("model = \"{model}\"\n"),
        );
        format!("{begin} {title} {version}, package {package}.\n{entry}{model}{end}")
    }

    /// Adds `block` at the end.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub(crate) fn append(&self, block: &str) -> Result<(), Error> {
        let text = self.read()?;
        let gap = match text.as_str() {
            "" => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        self.create_directory()?;
        let mut options = OpenOptions::new();
        let file = options.append(true).create(true).mode(MODE).open(&self.path);
        file.and_then(|mut file| file.write_all(format!("{gap}{block}").as_bytes()))
            .map_err(self.unwritable())
    }

    /// Puts `block` in place of the entry that an earlier call wrote for `recipe`.
    ///
    /// # Errors
    /// If the file has no such entry, or cannot be read or written.
    pub(crate) fn replace(&self, recipe: &Recipe, block: &str) -> Result<(), Error> {
        let text = self.read()?;
        let Marks { begin, end } = Marks::of(recipe);
        let foreign = || Error::Exists { agent: recipe.agent(), file: self.path.clone() };
        let start = text.find(&begin).ok_or_else(foreign)?;
        let length = text[start..].find(&end).ok_or_else(foreign)? + end.len();
        self.restore(&format!("{}{block}{}", &text[..start], &text[start + length..]))
    }

    /// Returns the text of the file; empty if there is none.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn read(&self) -> Result<String, Error> {
        match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            text => text.map_err(self.unwritable()),
        }
    }

    /// Gives the file this text, at once: a reader sees the earlier text or this one.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn restore(&self, text: &str) -> Result<(), Error> {
        let beside = self.path.with_extension("toml.new");
        let permissions = fs::metadata(&self.path).map(|found| found.permissions());
        fs::write(&beside, text)
            .and_then(|()| {
                permissions.map_or(Ok(()), |permissions| fs::set_permissions(&beside, permissions))
            })
            .and_then(|()| fs::rename(&beside, &self.path))
            .map_err(self.unwritable())
    }

    fn create_directory(&self) -> Result<(), Error> {
        self.path.parent().map_or(Ok(()), fs::create_dir_all).map_err(self.unwritable())
    }

    fn unwritable(&self) -> impl FnOnce(io::Error) -> Error + use<> {
        let path = self.path.clone();
        move |source| Error::Unwritable { path, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe() -> Recipe {
        Recipe::all().unwrap().remove(0)
    }

    fn file() -> EntryFile {
        let name = format!("sluice-entry-{}-{:?}", std::process::id(), std::thread::current().id());
        EntryFile::new(std::env::temp_dir().join(name).join("sluice.toml"))
    }

    #[test]
    fn other_bytes_of_the_file_stay() {
        let file = file();
        let [first, second] = ["one:1", "two:2"].map(|image| EntryFile::block(&recipe(), image, Some("m")));
        file.append("# mine\r\n[proxy]").unwrap();
        file.append(&first).unwrap();
        file.append("# last, without a line feed").unwrap();
        file.replace(&recipe(), &second).unwrap();
        let text = file.read().unwrap();
        assert_eq!(text, format!("# mine\r\n[proxy]\n\n{second}\n# last, without a line feed"));
        assert!(text.contains("image = \"two:2\"") && text.contains("\nmodel = \"m\"\n"), "{text}");
        fs::remove_dir_all(file.path.parent().unwrap()).unwrap();
    }

    #[test]
    fn an_entry_without_marks_is_not_replaced() {
        let file = file();
        file.append("[agents.\"sandbox:claude-code\"]\n").unwrap();
        let refused = file.replace(&recipe(), "x");
        assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
        fs::remove_dir_all(file.path.parent().unwrap()).unwrap();
    }
}
