//! One integration binary, many stories: linking once is what takes time.

mod path;
mod tidy;
