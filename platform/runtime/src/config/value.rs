//! Defines the types that a setting can have, with their TOML form, their text form and their schema.

use std::{net::SocketAddr, path::PathBuf, str::FromStr};

use platform_core::{
    capability::Capability,
    connection::ConnectionProvider,
    credits::{Credits, Markup},
    id::{AccountId, AgentId, ExternalId, GatewayId, InstallationId, ModelName, ToolName},
    invalid::InvalidValue,
    limit::{ByteSize, Millis},
    money::NanoDollars,
};
use serde_json::json;
use toml::de::DeValue;

/// Largest size: 1 PiB, more than any disk. Docker and the kernel store sizes as signed numbers.
const MAX_SIZE: ByteSize = ByteSize::mib(1 << 30);
/// Longest duration: 100 years. Clocks can add it to the current time without an overflow.
const MAX_DURATION: Millis = Millis::seconds(36_500 * 24 * 3600);

/// A type that a setting can have.
pub trait Value: Sized {
    /// Least and greatest amount, for types that count something. A setting has these bounds unless it declares its
    /// own. Zero is out of bounds, so that no setting interprets it as "no limit" by accident.
    const BOUNDS: Option<(u64, u64)> = None;

    /// Example as it is written in the file, for types with a text form that is often mistaken for a number.
    const EXAMPLE: Option<&'static str> = None;

    /// Returns the amount, for types that have bounds.
    fn amount(&self) -> Option<u64> {
        None
    }

    /// Returns an amount as a person writes it in a setting of this type.
    #[must_use]
    fn in_words(amount: u64) -> String {
        amount.to_string()
    }

    /// Parses a value from the environment or a flag.
    ///
    /// # Errors
    /// A description of what is wrong.
    fn from_text(text: &str) -> Result<Self, InvalidValue>;

    /// Parses a value from the file.
    ///
    /// # Errors
    /// A description of what is wrong.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        match value {
            DeValue::String(text) => Self::from_text(text),
            other => {
                let example =
                    Self::EXAMPLE.map(|example| format!(" such as \"{example}\"")).unwrap_or_default();
                Err(format!("expected a string{example}, found {}", kind(other)).into())
            }
        }
    }

    /// Returns the JSON Schema of one value.
    fn schema() -> serde_json::Value;

    /// Returns the value as JSON, for the schema's `default`.
    fn to_json(&self) -> serde_json::Value;
}

/// Returns the TOML type of `value`, with its article.
pub(crate) const fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "an array",
        DeValue::Table(_) => "a table",
    }
}

fn parse<T: FromStr<Err: ToString>>(text: &str) -> Result<T, InvalidValue> {
    text.parse().map_err(InvalidValue::of)
}

macro_rules! written_as_text {
    ($($type:ty $(: $greatest:expr)? $(=> $example:literal)?),*) => {$(
        impl Value for $type {
            $(
            const EXAMPLE: Option<&'static str> = Some($example);
            )?
            $(
            const BOUNDS: Option<(u64, u64)> = Some((1, $greatest));
            fn amount(&self) -> Option<u64> {
                Some(self.0)
            }
            fn in_words(amount: u64) -> String {
                Self(amount).to_string()
            }
            )?
            fn from_text(text: &str) -> Result<Self, InvalidValue> {
                parse(text)
            }
            fn schema() -> serde_json::Value {
                json!({ "type": "string" })
            }
            fn to_json(&self) -> serde_json::Value {
                json!(self.to_string())
            }
        }
    )*};
}

macro_rules! written_as_integer {
    ($($type:ty: $greatest:expr),*) => {$(
        impl Value for $type {
            const BOUNDS: Option<(u64, u64)> = Some((1, $greatest));
            fn amount(&self) -> Option<u64> {
                Some((*self).into())
            }
            fn from_text(text: &str) -> Result<Self, InvalidValue> {
                text.parse().map_err(|_error| {
                    format!("expected a whole number from {} to {}, found `{text}`", Self::MIN, Self::MAX).into()
                })
            }
            fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
                match value {
                    DeValue::Integer(number) if number.radix() == 10 => Self::from_text(number.as_str()),
                    other => Err(format!("expected a decimal whole number, found {}", kind(other)).into()),
                }
            }
            fn schema() -> serde_json::Value {
                json!({ "type": "integer", "minimum": Self::MIN, "maximum": Self::MAX })
            }
            fn to_json(&self) -> serde_json::Value {
                json!(self)
            }
        }
    )*};
}

/// Implements `Value` for an enum with variants that are written as these words.
macro_rules! written_as_word {
    ($type:ty { $($variant:ident: $word:literal),+ $(,)? }) => {
        impl $crate::config::Value for $type {
            fn from_text(text: &str) -> Result<Self, platform_core::invalid::InvalidValue> {
                match text {
                    $($word => Ok(Self::$variant),)+
                    other => {
                        let words = [$(concat!("`", $word, "`")),+].join(" or ");
                        Err(format!("expected {words}, found `{other}`").into())
                    }
                }
            }
            fn schema() -> serde_json::Value {
                serde_json::json!({ "enum": [$($word),+] })
            }
            fn to_json(&self) -> serde_json::Value {
                match self {
                    $(Self::$variant => $word.into(),)+
                }
            }
        }
    };
}
pub(crate) use written_as_word;

written_as_text!(
    String,
    ByteSize: MAX_SIZE.0 => "512 MiB",
    Millis: MAX_DURATION.0 => "20s",
    AccountId,
    GatewayId,
    AgentId,
    ExternalId,
    InstallationId,
    ModelName,
    ToolName,
    Capability,
    ConnectionProvider,
    NanoDollars: u64::MAX => "25"
);
written_as_integer!(u16: 0xffff, u32: 0xffff_ffff, u64: u64::MAX);

impl Value for Markup {
    const EXAMPLE: Option<&'static str> = Some("1.25");

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        parse(text)
    }
    /// Parses the digits of a number as they are written: a float would round some.
    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        match value {
            DeValue::String(text) => Self::from_text(text),
            DeValue::Float(number) => Self::from_text(number.as_str()),
            DeValue::Integer(number) if number.radix() == 10 => Self::from_text(number.as_str()),
            other => Err(format!("expected a decimal number such as 1.25, found {}", kind(other)).into()),
        }
    }
    fn schema() -> serde_json::Value {
        json!({ "type": ["string", "number"], "minimum": 0, "maximum": Self::GREATEST })
    }
    fn to_json(&self) -> serde_json::Value {
        json!(self.to_string())
    }
}

impl Value for Credits {
    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        let credits = text.parse().ok().map(Self).filter(Self::is_representable);
        credits.ok_or_else(|| {
            format!("expected a whole number of credits from -{0} to {0}, found `{text}`", Self::GREATEST)
                .into()
        })
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        match value {
            DeValue::Integer(number) if number.radix() == 10 => Self::from_text(number.as_str()),
            other => Err(format!("expected a decimal whole number, found {}", kind(other)).into()),
        }
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "integer", "minimum": -Self::GREATEST, "maximum": Self::GREATEST })
    }
    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for bool {
    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(|_error| format!("expected `true` or `false`, found `{text}`").into())
    }
    fn from_toml(value: &DeValue<'_>) -> Result<Self, InvalidValue> {
        match value {
            DeValue::Boolean(value) => Ok(*value),
            other => Err(format!("expected `true` or `false`, found {}", kind(other)).into()),
        }
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "boolean" })
    }
    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}

impl Value for SocketAddr {
    const EXAMPLE: Option<&'static str> = Some("127.0.0.1:8080");

    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        text.parse().map_err(|_error| {
            format!("expected an address and a port such as `127.0.0.1:8080`, found `{text}`").into()
        })
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "string" })
    }
    fn to_json(&self) -> serde_json::Value {
        json!(self.to_string())
    }
}

impl Value for PathBuf {
    fn from_text(text: &str) -> Result<Self, InvalidValue> {
        let path = Self::from(text);
        if path.is_absolute() {
            Ok(path)
        } else {
            Err(format!("expected an absolute path, found `{text}`").into())
        }
    }
    fn schema() -> serde_json::Value {
        json!({ "type": "string", "pattern": "^/" })
    }
    fn to_json(&self) -> serde_json::Value {
        json!(self)
    }
}
