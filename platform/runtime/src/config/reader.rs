//! Walks a TOML document as the code reads it, and records the keys that were read and the errors that were found.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use platform_core::name::env::OVERRIDE_PREFIX;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{About, ConfigError, ConfigErrors, Environment, Origin, Sources, ValidationError, value::kind};

/// Value of each setting, defaults included, by its dotted key. A table with a name that the operator chose is present
/// as an empty object.
pub type Values = BTreeMap<String, serde_json::Value>;

/// Reads a whole configuration with `build`, which reads every setting from the root [`Section`]. The result has to
/// pass `check`, which runs even if some settings are wrong. Returns the settings, their values and what `check`
/// returned.
///
/// # Errors
/// All errors together: invalid TOML, wrong values, unknown keys, unknown overrides, and those that `check` returns.
pub fn read<T, C>(
    sources: &Sources,
    build: impl FnOnce(&Section<'_>) -> T,
    check: impl FnOnce(&T) -> Result<C, Vec<ValidationError>>,
) -> Result<(T, Values, C), ConfigErrors> {
    let (path, text) = source_text(sources);
    let (document, syntax_errors) = DeTable::parse_recoverable(text);
    let reader = Reader::new(SourceText { path, text }, sources);
    for error in syntax_errors {
        let offset = error.span().map_or(0, |span| span.start);
        reader.record_error(reader.text.origin(offset), "", syntax_problem(text, &error));
    }
    let built =
        build(&Section { reader: &reader, key: String::new(), table: Some(document.get_ref()), offset: 0 });
    reader.report_unknown_keys(document.get_ref(), "");
    reader.report_unused_overrides();
    let checked = check(&built);
    for ValidationError { about, problem } in checked.as_ref().err().into_iter().flatten() {
        match about {
            About::File => {
                let origin = Origin::File { path: path.display().to_string(), line: 0 };
                reader.record_error(origin, "", problem.clone());
            }
            About::Setting(key) => {
                reader.record_error(reader.origin_of(document.get_ref(), key), key, problem.clone());
            }
            About::Variable(name) => {
                reader.record_error(Origin::Variable((*name).to_owned()), "", problem.clone());
            }
        }
    }
    let errors = reader.errors.into_inner();
    match checked {
        Ok(result) if errors.is_empty() => Ok((built, reader.values.into_inner(), result)),
        _ => Err(ConfigErrors::sorted(errors)),
    }
}

/// Returns the message of a syntax error in `text`. Names a duplicate key, which the parser's message does not.
fn syntax_problem(text: &str, error: &toml::de::Error) -> String {
    match error.span().and_then(|span| text.get(span)) {
        Some(key) if error.message() == "duplicate key" => {
            format!("duplicate key `{key}`: remove one of the two")
        }
        _ => error.message().to_owned(),
    }
}

/// Records of one reading.
pub(super) struct Records {
    pub(super) fields: Vec<FieldDoc>,
    pub(super) values: Values,
    /// Sources of the values that are set.
    pub(super) origins: BTreeMap<String, Origin>,
}

/// Returns what `build` records as it reads `sources`. Errors are left out.
pub(super) fn records_of<T>(sources: &Sources, build: impl FnOnce(&Section<'_>) -> T) -> Records {
    let (path, text) = source_text(sources);
    let (document, _errors) = DeTable::parse_recoverable(text);
    let reader = Reader::new(SourceText { path, text }, sources);
    build(&Section { reader: &reader, key: String::new(), table: Some(document.get_ref()), offset: 0 });
    Records {
        fields: reader.fields.into_inner(),
        values: reader.values.into_inner(),
        origins: reader.origins.into_inner(),
    }
}

/// Returns the path and the text of the file, both empty without a file.
fn source_text(sources: &Sources) -> (&Path, &str) {
    sources.file.as_ref().map_or((Path::new(""), ""), |(path, text)| (path.as_path(), text.as_str()))
}

/// Description of a key in the schema.
#[derive(Debug, Clone)]
pub(super) struct FieldDoc {
    pub(super) key: String,
    pub(super) doc: String,
    /// Schema of the value; `None` for a table.
    pub(super) schema: Option<serde_json::Value>,
}

impl FieldDoc {
    pub(super) fn table(key: String, doc: &str) -> Self {
        Self { key, doc: doc.to_owned(), schema: None }
    }
}

/// Returns the result of `build` on an empty section: all defaults.
pub fn defaults<T>(build: impl FnOnce(&Section<'_>) -> T) -> T {
    read_empty(build).0
}

/// Returns the fields that `build` reads.
pub(super) fn fields_of<T>(build: impl FnOnce(&Section<'_>) -> T) -> Vec<FieldDoc> {
    read_empty(build).1
}

fn read_empty<T>(build: impl FnOnce(&Section<'_>) -> T) -> (T, Vec<FieldDoc>) {
    let sources = Sources::default();
    let reader = Reader::new(SourceText { path: Path::new(""), text: "" }, &sources);
    let built = build(&Section { reader: &reader, key: String::new(), table: None, offset: 0 });
    (built, reader.fields.into_inner())
}

/// Configuration file: its path and its text.
#[derive(Clone, Copy)]
struct SourceText<'a> {
    path: &'a Path,
    text: &'a str,
}

impl SourceText<'_> {
    /// Returns the line that contains the byte at `offset`.
    fn origin(self, offset: usize) -> Origin {
        let before = &self.text.as_bytes()[..offset.min(self.text.len())];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Origin::File { path: self.path.display().to_string(), line }
    }
}

/// A configuration that is being read, and the records of the reading.
pub(super) struct Reader<'a> {
    text: SourceText<'a>,
    environment: &'a Environment,
    flags: BTreeMap<&'a str, &'a str>,
    errors: RefCell<Vec<ConfigError>>,
    fields: RefCell<Vec<FieldDoc>>,
    /// Dotted keys that were read; `section.*` where any name is allowed.
    known: RefCell<BTreeSet<String>>,
    /// Names of variables that override a field that was read.
    variables: RefCell<BTreeSet<String>>,
    values: RefCell<Values>,
    origins: RefCell<BTreeMap<String, Origin>>,
}

impl<'a> Reader<'a> {
    fn new(text: SourceText<'a>, sources: &'a Sources) -> Self {
        let reader = Self {
            text,
            environment: &sources.environment,
            flags: sources.flags.iter().filter_map(|flag| flag.split_once('=')).collect(),
            errors: RefCell::default(),
            fields: RefCell::default(),
            known: RefCell::default(),
            variables: RefCell::default(),
            values: RefCell::default(),
            origins: RefCell::default(),
        };
        for flag in sources.flags.iter().filter(|flag| !flag.contains('=')) {
            reader.record_error(Origin::Flag(flag.clone()), "", "expected section.key=value".to_owned());
        }
        reader
    }

    pub(super) fn record_error(&self, origin: Origin, key: &str, problem: impl ToString) {
        self.errors.borrow_mut().push(ConfigError {
            origin,
            key: key.to_owned(),
            problem: problem.to_string(),
        });
    }

    pub(super) fn describe(&self, field: FieldDoc) {
        self.known.borrow_mut().insert(field.key.clone());
        self.fields.borrow_mut().push(field);
    }

    /// Marks every key directly below `key` as known.
    pub(super) fn allow_any(&self, key: &str) {
        self.known.borrow_mut().insert(join(key, "*"));
    }

    pub(super) fn record_value(&self, key: String, value: serde_json::Value) {
        self.values.borrow_mut().insert(key, value);
    }

    pub(super) fn record_origin(&self, key: String, origin: Origin) {
        self.origins.borrow_mut().insert(key, origin);
    }

    /// Returns the origin of the value of `key`, or of the nearest table around it.
    fn origin_of(&self, document: &DeTable<'_>, key: &str) -> Origin {
        if let Some((origin, _)) = self.override_of(key, [Some(override_variable(key)), None]) {
            return origin;
        }
        let mut table = Some(document);
        let mut offset = None;
        for word in key.split('.') {
            let entry = table.and_then(|table| table.iter().find(|(name, _)| name.get_ref() == word));
            let Some((name, value)) = entry else { break };
            offset = Some(name.span().start);
            table = if let DeValue::Table(inner) = value.get_ref() { Some(inner) } else { None };
        }
        offset.map_or(Origin::Nowhere, |offset| self.text.origin(offset))
    }

    /// Returns the override of `key`, flags before environment.
    pub(super) fn override_of(&self, key: &str, variables: [Option<String>; 2]) -> Option<(Origin, &'a str)> {
        let flag = self.flags.get(key).map(|value| (Origin::Flag(format!("{key}={value}")), *value));
        let found = flag.or_else(|| {
            variables
                .iter()
                .flatten()
                .find_map(|name| Some((Origin::Variable(name.clone()), self.environment.get(name)?)))
        });
        self.variables.borrow_mut().extend(variables.into_iter().flatten());
        found
    }

    fn report_unknown_keys(&self, table: &DeTable<'_>, prefix: &str) {
        for (key, value) in table {
            let path = join(prefix, key.get_ref());
            let known = self.known.borrow();
            let allows_any = known.contains(&join(prefix, "*"));
            if !allows_any && !known.contains(&path) {
                let siblings: Vec<_> = known.iter().filter_map(|key| child_name(key, prefix)).collect();
                let problem = format!("unknown key; known here: {}", siblings.join(", "));
                self.record_error(self.text.origin(key.span().start), &path, problem);
            } else if let DeValue::Table(inner) = value.get_ref() {
                drop(known);
                self.report_unknown_keys(inner, &path);
            }
        }
    }

    fn report_unused_overrides(&self) {
        for (name, _) in
            self.environment.overrides().filter(|(name, _)| !self.variables.borrow().contains(*name))
        {
            self.record_error(Origin::Variable(name.to_owned()), "", "overrides no setting".to_owned());
        }
        for (key, value) in self.flags.iter().filter(|(key, _)| !self.known.borrow().contains(**key)) {
            let problem = "no such setting; `sluice config schema` lists all".to_owned();
            self.record_error(Origin::Flag(format!("{key}={value}")), key, problem);
        }
    }
}

/// Returns `key` relative to `prefix`, if it lies directly below.
fn child_name<'k>(key: &'k str, prefix: &str) -> Option<&'k str> {
    let rest = if prefix.is_empty() { key } else { key.strip_prefix(prefix)?.strip_prefix('.')? };
    (!rest.contains('.') && rest != "*").then_some(rest)
}

/// Returns the override variable of `key`: `SLUICE_PROXY_RUN_DIR` for `proxy.run_dir`.
pub(super) fn override_variable(key: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    OVERRIDE_PREFIX.chars().chain(key.chars().map(plain)).collect()
}

pub(super) fn join(prefix: &str, key: &str) -> String {
    if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") }
}

/// A table of the configuration.
pub struct Section<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) key: String,
    table: Option<&'a DeTable<'a>>,
    /// Offset of the table's name in the file.
    offset: usize,
}

impl std::fmt::Debug for Section<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Section").field("key", &self.key).finish_non_exhaustive()
    }
}

impl<'a> Section<'a> {
    /// Reads the table `name` below this one; it is empty if the file does not have it.
    pub fn section<T>(&self, name: &str, doc: &'static str, build: impl FnOnce(&Section<'a>) -> T) -> T {
        let key = join(&self.key, name);
        self.reader.describe(FieldDoc::table(key.clone(), doc));
        let value = self.entry(name);
        let table = value.and_then(|value| self.table_in(&key, value));
        let offset = value.map_or(0, |value| value.span().start);
        build(&Section { reader: self.reader, key, table, offset })
    }

    /// Reads the tables below `name`. The operator chooses the names of these tables.
    pub fn each<T>(
        &self,
        name: &str,
        doc: &'static str,
        mut build: impl FnMut(&str, &Section<'a>) -> T,
    ) -> Vec<T> {
        let key = join(&self.key, name);
        self.reader.describe(FieldDoc::table(key.clone(), doc));
        self.reader.describe(FieldDoc::table(join(&key, "*"), doc));
        let Some(tables) = self.entry(name).and_then(|value| self.table_in(&key, value)) else {
            // The schema is built from an empty document, so `build` reads one example entry.
            if self.table.is_none() {
                build("*", &Section { reader: self.reader, key: join(&key, "*"), table: None, offset: 0 });
            }
            return Vec::new();
        };
        let mut built = Vec::new();
        for (entry, value) in tables {
            let key = join(&key, entry.get_ref());
            let table = self.table_in(&key, value);
            let offset = entry.span().start;
            self.reader.record_value(key.clone(), serde_json::json!({}));
            built.push(build(entry.get_ref(), &Section { reader: self.reader, key, table, offset }));
        }
        built
    }

    /// Returns the variable `name` of the environment, if it is set and not empty.
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<&'a str> {
        self.reader.environment.get(name)
    }

    /// Reports that the value of `name` is wrong for a reason that its type cannot check.
    pub fn reject(&self, name: &str, problem: impl ToString) {
        let offset = self.entry(name).map_or(self.offset, |value| value.span().start);
        self.reader.record_error(self.reader.text.origin(offset), &join(&self.key, name), problem);
    }

    /// Reports that this section is not allowed, or not under this name.
    pub fn reject_itself(&self, problem: impl ToString) {
        self.reader.record_error(self.reader.text.origin(self.offset), &self.key, problem);
    }

    /// Returns whether `name` is set, to any value.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        let key = join(&self.key, name);
        self.entry(name).is_some()
            || self.reader.override_of(&key, [Some(override_variable(&key)), None]).is_some()
    }

    pub(super) fn entry(&self, name: &str) -> Option<&'a Spanned<DeValue<'a>>> {
        self.table.and_then(|table| table.get(name))
    }

    pub(super) fn origin(&self, value: &Spanned<DeValue<'_>>) -> Origin {
        self.reader.text.origin(value.span().start)
    }

    /// Returns `value` as a table; records an error if it is anything else.
    pub(super) fn table_in(&self, key: &str, value: &'a Spanned<DeValue<'a>>) -> Option<&'a DeTable<'a>> {
        if let DeValue::Table(table) = value.get_ref() {
            return Some(table);
        }
        self.reader.record_error(
            self.origin(value),
            key,
            format!("expected a table, found {}", kind(value.get_ref())),
        );
        None
    }
}
