/** Chooses a month. */
import { addMonths, monthOf, nameMonth } from "./month";

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
