array titles[6] = ["CPU µs per 1 KB request", "CPU µs per 164 KB request, 64 events", "CPU µs per streamed event", "p50 µs, one connection", "p99 µs at 2,000 requests/s", "peak MiB, 64 × 1 MiB in flight"]
# Bars per peer, one panel per block of plot.tsv, `titles` above them.
data = 'plot.tsv'
columns = 3
panels = |titles|
rows = (panels + columns - 1) / columns
set encoding utf8
do for [kind in "svg png"] {
  if (kind eq "svg") {
    set terminal svg size 1080, 60 + 210 * rows font "sans-serif,12" background "#ffffff"
  } else {
    set terminal pngcairo size 1080, 60 + 210 * rows font "sans-serif,10" background "#ffffff"
  }
  set output 'plot.'.kind
  set multiplot layout rows, columns margins 0.095, 0.985, 0.03, 0.94 spacing 0.095, 0.07
  set style fill solid noborder
  set border 0
  set tics scale 0
  unset key
  unset xtics
  set yrange [*:*] reverse
  set offsets 0, 0, 0.3, 0.3
  do for [panel = 1:panels] {
    stats data index (panel - 1) using 2 nooutput
    set title titles[panel] font ",12" offset 0, -0.6
    set xrange [0:STATS_max * 1.2]
    plot data index (panel - 1) using (0):0:(0):2:($0 - 0.38):($0 + 0.38):($3 == 1 ? 0x0b7a75 : 0xb8bfc6):ytic(1) \
           with boxxyerror linecolor rgb variable, \
         data index (panel - 1) using 2:0:(sprintf($2 < 10 ? "%.1f" : "%.0f", $2)) with labels left offset 0.4, 0
  }
  unset multiplot
  set output
}
