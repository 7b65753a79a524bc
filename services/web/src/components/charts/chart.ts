/** Names what charts are made of. */

/** Colour of a series. Each has a name beside it, so that colour alone says nothing. */
export type SeriesTone = "one" | "two" | "good" | "bad" | "warn" | "idle";

/** What the numbers of one colour are. */
export interface Series {
  name: string;
  tone: SeriesTone;
}

/** Row of a chart: what it is of, and one number for each series. `exact` has texts for the table where numbers are rounded. */
export interface ChartRow {
  label: string;
  values: number[];
  exact?: string[];
  /** Address of what the row counts. */
  to?: string;
}

/** Properties of a chart. */
export interface ChartProps {
  title: string;
  /** The most important number, in words. */
  summary: string;
  rows: ChartRow[];
  series: Series[];
  format: (value: number) => string;
}
