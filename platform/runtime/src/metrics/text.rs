//! Writes families, samples and label values as the text that Prometheus reads: exposition format 0.0.4.

use std::fmt::{self, Write};

use super::Distribution;

/// Text in the exposition format, while it is written.
#[derive(Debug, Default)]
pub struct Exposition(String);

/// Type of a family's samples.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// Values that only grow.
    Counter,
    /// Current values.
    Gauge,
    /// Numbers of observations up to each bound.
    Histogram,
}

/// A family that samples are added to.
#[derive(Debug)]
pub struct Family<'e> {
    text: &'e mut String,
    name: &'static str,
}

/// Names and values of labels.
pub type Labels<'a> = &'a [(&'static str, &'a str)];

/// A decimal fraction with an exact integer amount, in millionths or billionths for example.
#[derive(Debug, Clone, Copy)]
pub struct Decimal {
    /// The amount, in units of the last digit.
    pub amount: u64,
    /// Number of digits behind the point.
    pub digits: u32,
}

/// Returns microseconds as seconds.
#[must_use]
pub const fn seconds(us: u64) -> Decimal {
    Decimal { amount: us, digits: 6 }
}

/// Returns billionths of a dollar as dollars.
#[must_use]
pub const fn dollars(nano: u64) -> Decimal {
    Decimal { amount: nano, digits: 9 }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = 10_u64.pow(self.digits);
        let width = self.digits as usize;
        write!(f, "{}.{:0width$}", self.amount / unit, self.amount % unit)
    }
}

impl Kind {
    const fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Exposition {
    /// Begins the family `name`. A family begins once, and all its samples follow.
    pub fn family(&mut self, kind: Kind, name: &'static str, help: &str) -> Family<'_> {
        debug_assert!(!help.contains(['\\', '\n']), "{help}");
        append(&mut self.0, format_args!("# HELP {name} {help}\n# TYPE {name} {}\n", kind.word()));
        Family { text: &mut self.0, name }
    }

    /// Writes a family of one sample without labels.
    pub fn single(&mut self, kind: Kind, name: &'static str, value: impl fmt::Display, help: &str) {
        self.family(kind, name, help).sample(&[], value);
    }

    /// Returns the text.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }
}

impl Family<'_> {
    /// Writes a sample of a counter or a gauge.
    pub fn sample(&mut self, labels: Labels<'_>, value: impl fmt::Display) {
        self.line("", labels, value);
    }

    /// Writes the samples of one histogram.
    pub fn histogram(&mut self, labels: Labels<'_>, histogram: &Distribution) {
        let Distribution { buckets, count, sum_us } = histogram;
        for (bound, count) in buckets.iter().chain([&("+Inf", *count)]) {
            self.line("_bucket", &[labels, &[("le", *bound)]].concat(), count);
        }
        self.line("_sum", labels, seconds(*sum_us));
        self.line("_count", labels, count);
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, value: impl fmt::Display) {
        append(self.text, format_args!("{}{suffix}", self.name));
        for (at, (name, value)) in labels.iter().enumerate() {
            append(
                self.text,
                format_args!("{}{name}=\"{}\"", if at == 0 { '{' } else { ',' }, Escaped(value)),
            );
        }
        append(self.text, format_args!("{} {value}\n", if labels.is_empty() { "" } else { "}" }));
    }
}

/// A label's value, escaped.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|char| match char {
            '\\' => f.write_str("\\\\"),
            '"' => f.write_str("\\\""),
            '\n' => f.write_str("\\n"),
            plain => f.write_char(plain),
        })
    }
}

fn append(text: &mut String, piece: fmt::Arguments<'_>) {
    text.push_str(&piece.to_string());
}
