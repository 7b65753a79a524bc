//! Reads tables with keys that the operator chooses.

use std::collections::BTreeMap;

use platform_core::invalid::InvalidValue;
use serde_json::json;

use super::{
    Section, Value,
    reader::{FieldDoc, join},
};

impl Section<'_> {
    /// Returns the values in the table `name`, each of which must pass `check`. Cannot be overridden.
    pub fn values<T: Value>(
        &self,
        name: &'static str,
        doc: &'static str,
        check: impl Fn(&str, &T) -> Result<(), InvalidValue>,
    ) -> BTreeMap<String, T> {
        let key = join(&self.key, name);
        let schema = json!({ "type": "object", "additionalProperties": T::schema(), "default": {} });
        self.reader.describe(FieldDoc { key: key.clone(), doc: doc.to_owned(), schema: Some(schema) });
        self.reader.allow_any(&key);
        let mut values = BTreeMap::new();
        if let Some(value) = self.entry(name) {
            self.reader.record_origin(key.clone(), self.origin(value));
        }
        let table = self.entry(name).and_then(|value| self.table_in(&key, value));
        for (entry, value) in table.into_iter().flatten() {
            let entry = entry.get_ref();
            let checked = T::from_toml(value.get_ref()).and_then(|read| check(entry, &read).map(|()| read));
            match checked {
                Ok(read) => drop(values.insert(entry.to_string(), read)),
                Err(problem) => self.reader.record_error(self.origin(value), &join(&key, entry), problem),
            }
        }
        let recorded = values.iter().map(|(name, value)| (name.clone(), value.to_json()));
        self.reader.record_value(key, serde_json::Value::Object(recorded.collect()));
        values
    }
}
