//! Shows the difference of two texts.

use std::time::Duration;

use similar::TextDiff;

/// Time after which a difference becomes coarser: texts without a common line would take seconds of a worker's thread.
const DIFF_TIMEOUT: Duration = Duration::from_millis(200);
/// Lines around a change in a difference.
const CONTEXT_LINES: usize = 3;

/// Returns the difference of two texts of the file `name`, in unified form.
#[must_use]
pub fn unified_diff(before: &str, after: &str, name: &str) -> String {
    TextDiff::configure()
        .timeout(DIFF_TIMEOUT)
        .diff_lines(before, after)
        .unified_diff()
        .context_radius(CONTEXT_LINES)
        .header(name, name)
        .to_string()
}
