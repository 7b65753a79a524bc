//! Writes the tables in Markdown.

use super::Row;
use crate::{peer::Peer, workload::Workload};

/// Returns a table per workload, then a list of the work that each peer does not do.
#[must_use]
pub fn tables(rows: &[Row], workloads: &[Workload], peers: &[Peer]) -> String {
    let mut text = String::new();
    for workload in workloads {
        let of_workload: Vec<_> = rows.iter().filter(|row| row.workload == workload.name).collect();
        if !of_workload.is_empty() {
            text += &table(workload, &of_workload);
            text.push('\n');
        }
    }
    text += "| peer | what of Sluicegate's work it does not do |\n|---|---|\n";
    for peer in peers {
        text += &format!("| {} | {} |\n", peer.name, if peer.lacks.is_empty() { "–" } else { peer.lacks });
    }
    text
}

/// Returns the rows of one workload under a heading, the best CPU time of a real hop in bold.
fn table(workload: &Workload, rows: &[&Row]) -> String {
    let best =
        rows.iter().map(|row| row.cpu_us_per_request).filter(|cpu| *cpu > 0.0).fold(f64::MAX, f64::min);
    let streams = rows.iter().any(|row| row.event_delay_us.is_some());
    let (names, lines) =
        if streams { (" CPU µs/event | delay of an event µs |", "--:|--:|") } else { ("", "") };
    let mut text = format!("**{}**: {}\n\n", workload.name, workload.about);
    text += "| peer | CPU µs/request | least | quartiles | program + kernel | sleeps/request |";
    text += &format!("{names} requests/s | p50 µs | p99 µs | p99.9 µs | first byte µs | ");
    text += "MiB idle / peak / after | rounds |\n";
    text += &format!("|---|--:|--:|--:|--:|--:|{lines}--:|--:|--:|--:|--:|--:|--:|\n");
    for row in rows {
        let cpu = match row.cpu_us_per_request {
            0.0 => "– | – | – | – | –".to_owned(),
            cpu => cost(row, if cpu <= best { "**" } else { "" }),
        };
        let events = match (row.cpu_us_per_event, row.event_delay_us) {
            (Some(cpu), Some(delay)) => format!(" {cpu:.1} | {delay:.0} |"),
            _ => String::new(),
        };
        let discarded = if row.discarded > 0 { format!(" (−{})", row.discarded) } else { String::new() };
        text += &format!(
            "| {} | {cpu} |{events} {:.0} | {:.0} | {:.0} | {:.0} | {:.0} | {:.0} / {:.0} / {:.0} | {}{discarded} |\n",
            row.peer,
            row.rps,
            row.p50_us,
            row.p99_us,
            row.p999_us,
            row.ttfb_us,
            row.idle_mib,
            row.peak_mib,
            row.plateau_mib,
            row.rounds
        );
    }
    for (peer, held) in rows.iter().filter_map(|row| Some((row.peer, row.held?))) {
        text += &format!(
            "\nFor each of {} held, {peer} grew by {:.1} KiB and the kernel's slab by {:.1} KiB.\n",
            held.count, held.peer, held.kernel
        );
    }
    text
}

/// Returns the cells for the cost of a request: median, minimum, quartiles, its parts, and context switches.
fn cost(row: &Row, emphasis: &str) -> String {
    format!(
        "{emphasis}{:.1}{emphasis} | {:.1} | {:.1}–{:.1} | {:.1} + {:.1} | {:.2}",
        row.cpu_us.median,
        row.cpu_us.min,
        row.cpu_us.q1,
        row.cpu_us.q3,
        row.user_us,
        row.system_us,
        row.switches
    )
}
