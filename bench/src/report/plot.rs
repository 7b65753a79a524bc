//! Draws the plot: small multiples of bars, one per question, made by gnuplot from `plot.tsv`. The script stays beside
//! it: `gnuplot plot.gnuplot` draws the plot again.

use std::{fs, io, path::Path, process::Command};

use super::{Row, headline};

/// Draws `plot.svg` and `plot.png` into `dir`. Without gnuplot, leaves the data and the script only.
pub(super) fn draw(rows: &[Row], dir: &Path) -> io::Result<()> {
    let (mut data, mut titles) = (String::new(), Vec::new());
    for headline in headline::ALL.iter().filter(|headline| headline.figures(rows).next().is_some()) {
        titles.push(format!("\"{}\"", headline.title));
        for (peer, value) in headline.figures(rows) {
            data += &format!("{peer}\t{value:.2}\t{}\n", u8::from(peer.starts_with("sluicegate")));
        }
        data += "\n\n"; // gnuplot's mark between two blocks
    }
    fs::write(dir.join("plot.tsv"), data)?;
    let script =
        format!("array titles[{}] = [{}]\n{}", titles.len(), titles.join(", "), include_str!("plot.gnuplot"));
    fs::write(dir.join("plot.gnuplot"), script)?;
    let drawn = match Command::new("gnuplot").arg("plot.gnuplot").current_dir(dir).output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        drawn => drawn?,
    };
    if drawn.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("gnuplot: {}", String::from_utf8_lossy(&drawn.stderr).trim())))
}
