//! The table that a person reads, in Markdown.

use super::Row;

/// Rows of one workload under a heading, the best CPU time of a real hop in bold.
#[must_use]
pub fn table(about: &str, rows: &[Row]) -> String {
    let best =
        rows.iter().map(|row| row.cpu_us_per_request).filter(|cpu| *cpu > 0.0).fold(f64::MAX, f64::min);
    let mut text = format!("**{about}**\n\n");
    text += "| peer | CPU µs/request | requests/s | p50 µs | p99 µs | first byte µs | event delay µs | MiB | spread |\n";
    text += "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n";
    for row in rows {
        let cpu = match row.cpu_us_per_request {
            0.0 => "–".to_owned(),
            cpu if cpu <= best => format!("**{cpu:.1}**"),
            cpu => format!("{cpu:.1}"),
        };
        let delay = row.event_delay_us.map_or_else(|| "–".to_owned(), |delay| format!("{delay:.0}"));
        text += &format!(
            "| {} | {cpu} | {:.0} | {:.0} | {:.0} | {:.0} | {delay} | {:.1} | ±{:.0} % |\n",
            row.peer, row.rps, row.p50_us, row.p99_us, row.ttfb_us, row.rss_mib, row.spread
        );
    }
    text
}
