//! Reads a single setting, applies its default, checks it, and describes it for the schema.

use platform_core::invalid::InvalidValue;
use serde_json::json;
use toml::de::DeValue;

use super::{
    Section, Value,
    reader::{FieldDoc, join, override_variable},
    value::kind,
};

/// A setting that is being read. [`or`](Self::or), [`optional`](Self::optional), [`list`](Self::list) and
/// [`list_or`](Self::list_or) read it.
#[derive(Debug)]
pub struct Field<'s, 'a> {
    section: &'s Section<'a>,
    name: &'static str,
    doc: &'static str,
    variable: Option<&'static str>,
    /// Lower bound of the setting, instead of its type's.
    least: Option<u64>,
    /// Upper bound of the setting, instead of its type's.
    most: Option<u64>,
}

impl<'a> Section<'a> {
    /// Begins to read a setting of this section.
    #[must_use]
    pub const fn field(&self, name: &'static str, doc: &'static str) -> Field<'_, 'a> {
        Field { section: self, name, doc, variable: None, least: None, most: None }
    }
}

impl<'a> Field<'_, 'a> {
    /// Returns the table of this name as `build` reads it; it is empty if the file does not have it.
    pub fn table<T>(self, build: impl FnOnce(&Section<'a>) -> T) -> T {
        self.section.section(self.name, self.doc, build)
    }

    /// Also reads the setting from the variable `name`, its public name.
    #[must_use]
    pub const fn variable(mut self, name: &'static str) -> Self {
        self.variable = Some(name);
        self
    }

    /// Accepts zero as well, where zero has a meaning other than "no limit".
    #[must_use]
    pub const fn may_be_zero(mut self) -> Self {
        self.least = Some(0);
        self
    }

    /// Refuses values below `least`; for a list, fewer entries.
    #[must_use]
    pub fn at_least<T: Value>(mut self, least: &T) -> Self {
        self.least = least.amount();
        self
    }

    /// Refuses values above `most`.
    #[must_use]
    pub fn at_most<T: Value>(mut self, most: &T) -> Self {
        self.most = most.amount();
        self
    }

    /// Returns the value, or `default` if it is not set.
    pub fn or<T: Value>(self, default: T) -> T {
        let mut schema = T::schema();
        schema["default"] = default.to_json();
        let value = self.read(schema).unwrap_or(default);
        self.record_value(value.to_json());
        value
    }

    /// Returns the value, if it is set.
    #[must_use]
    pub fn optional<T: Value>(self) -> Option<T> {
        let value: Option<T> = self.read(T::schema());
        if let Some(value) = &value {
            self.record_value(value.to_json());
        }
        value
    }

    /// Returns the values of an array, or `default`. Cannot be overridden.
    pub fn list_or<T: Value>(self, default: Vec<T>) -> Vec<T> {
        let list = self.read_list(default);
        self.record_value(list.iter().map(Value::to_json).collect());
        list
    }

    /// Returns the values of an array, if it is set, even to an empty one. Cannot be overridden.
    #[must_use]
    pub fn list<T: Value>(self) -> Option<Vec<T>> {
        self.describe(json!({ "type": "array", "items": T::schema() }));
        let list: Option<Vec<T>> = self.read_items();
        if let Some(list) = &list {
            self.record_value(list.iter().map(Value::to_json).collect());
        }
        list
    }

    fn read_list<T: Value>(&self, default: Vec<T>) -> Vec<T> {
        let default_json: Vec<_> = default.iter().map(Value::to_json).collect();
        let mut schema = json!({ "type": "array", "items": T::schema(), "default": default_json });
        if let Some(least) = self.least {
            schema["minItems"] = least.into();
        }
        self.describe(schema);
        self.read_items().unwrap_or(default)
    }

    fn read_items<T: Value>(&self) -> Option<Vec<T>> {
        let value = self.section.entry(self.name)?;
        self.section.reader.record_origin(self.key(), self.section.origin(value));
        let DeValue::Array(items) = value.get_ref() else {
            self.report_at(value, format!("expected an array, found {}", kind(value.get_ref())));
            return None;
        };
        let least = self.least.unwrap_or(0);
        if (items.len() as u64) < least {
            self.report_at(value, format!("has {} entries: expected at least {least}", items.len()));
        }
        let parse = |item| {
            T::from_toml(toml::Spanned::get_ref(item)).map_err(|problem| self.report_at(item, problem)).ok()
        };
        Some(items.iter().filter_map(parse).collect())
    }

    fn read<T: Value>(&self, schema: serde_json::Value) -> Option<T> {
        self.describe(self.with_bounds::<T>(schema));
        let key = self.key();
        let reader = self.section.reader;
        let variables = [Some(override_variable(&key)), self.variable.map(str::to_owned)];
        if let Some((origin, text)) = reader.override_of(&key, variables) {
            reader.record_origin(key.clone(), origin.clone());
            return T::from_text(text)
                .and_then(|value| self.check_bounds(value))
                .map_err(|problem| reader.record_error(origin, &key, problem))
                .ok();
        }
        let value = self.section.entry(self.name)?;
        reader.record_origin(key, self.section.origin(value));
        let checked = T::from_toml(value.get_ref()).and_then(|read| self.check_bounds(read));
        checked.map_err(|problem| self.report_at(value, problem)).ok()
    }

    /// Returns the least and the greatest amount that the setting accepts.
    fn bounds<T: Value>(&self) -> Option<(u64, u64)> {
        let (least, most) = T::BOUNDS?;
        Some((self.least.unwrap_or(least), self.most.unwrap_or(most)))
    }

    /// Returns `value`, or the reason why its amount is out of range.
    fn check_bounds<T: Value>(&self, value: T) -> Result<T, InvalidValue> {
        let Some(((least, most), amount)) = self.bounds::<T>().zip(value.amount()) else { return Ok(value) };
        if (least..=most).contains(&amount) {
            return Ok(value);
        }
        let not_unlimited = if amount == 0 { "; zero does not mean unlimited" } else { "" };
        let [amount, least, most] = [amount, least, most].map(T::in_words);
        Err(format!("{amount} is out of range: expected {least} to {most}{not_unlimited}").into())
    }

    /// Returns `schema` with the setting's bounds. Sizes and times are strings, so their schema can only state whether
    /// they may be zero.
    fn with_bounds<T: Value>(&self, mut schema: serde_json::Value) -> serde_json::Value {
        if let Some((least, most)) = self.bounds::<T>() {
            if schema["type"] == "integer" {
                schema["minimum"] = least.into();
                schema["maximum"] = most.into();
            } else {
                schema["pattern"] = if least > 0 { "[1-9]" } else { "[0-9]" }.into();
            }
            // The description states the setting's own bounds, because the pattern of a size or time cannot.
            let bound_text = |word: &str, bound: Option<u64>| {
                bound.map(|bound| format!(" At {word} {}.", T::in_words(bound)))
            };
            let least = bound_text("least", self.least.filter(|least| *least > 0));
            let words: String = least.into_iter().chain(bound_text("most", self.most)).collect();
            schema["description"] = format!("{}{words}", self.doc).into();
        }
        schema
    }

    fn record_value(&self, value: serde_json::Value) {
        self.section.reader.record_value(self.key(), value);
    }

    fn key(&self) -> String {
        join(&self.section.key, self.name)
    }

    fn describe(&self, schema: serde_json::Value) {
        let doc = schema["description"].as_str().unwrap_or(self.doc).to_owned();
        self.section.reader.describe(FieldDoc { key: self.key(), doc, schema: Some(schema) });
    }

    fn report_at(&self, value: &toml::Spanned<DeValue<'_>>, problem: impl ToString) {
        self.section.reader.record_error(self.section.origin(value), &self.key(), problem);
    }
}
