/** Counts in months, in UTC, as statements and receipts have them: `2026-11`; and chooses one. */

const MONTH = /^\d{4}-(0[1-9]|1[0-2])$/;

/** Returns whether `text` is a month. */
export function isMonth(text: string): boolean {
  return MONTH.test(text);
}

/** Returns the month of `now`. */
export function monthOf(now: Date): string {
  return now.toISOString().slice(0, 7);
}

/** Returns the month that is `months` after `month`; a negative number goes back. */
export function addMonths(month: string, months: number): string {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return monthOf(new Date(Date.UTC(year, number - 1 + months, 1)));
}

/** Returns the name of a month, such as `November 2026`. */
export function nameMonth(month: string): string {
  const [year = 0, number = 1] = month.split("-").map(Number);
  return new Date(Date.UTC(year, number - 1, 1)).toLocaleDateString("en", { month: "long", year: "numeric", timeZone: "UTC" });
}

/** Renders the month with the one before and after it. */
export function MonthChoice({ month, onChoose }: { month: string; onChoose: (month: string) => void }) {
  const isLast = month >= monthOf(new Date());
  const before = addMonths(month, -1);
  const after = addMonths(month, 1);
  return (
    <div className="bar-line" role="group" aria-label="Month">
      <button type="button" onClick={() => onChoose(before)} aria-label={`Show ${nameMonth(before)}`}>←</button>
      <strong aria-live="polite">{nameMonth(month)}</strong>
      <button type="button" onClick={() => onChoose(after)} disabled={isLast} aria-label={`Show ${nameMonth(after)}`}>→</button>
      <span className="muted">in UTC</span>
    </div>
  );
}
