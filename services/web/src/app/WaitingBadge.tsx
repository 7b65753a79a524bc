/** Shows how many approvals wait, beside their entry in the navigation. */
import { api } from "../api/client";
import { useDashboard } from "../api/dashboard";
import { useLoad } from "../api/useLoad";
import { usePoll } from "../api/usePoll";

const MAX_SHOWN = 99;

/** Returns the text of a count, which is empty for none. */
export function badgeText(count: number): string {
  if (count === 0) return "";
  return count > MAX_SHOWN ? `${MAX_SHOWN}+` : String(count);
}

/** Renders the count; nothing for none, or while it is not known. */
export function WaitingBadge() {
  const loaded = useLoad("waiting", (signal) => api.get("/api/v1/approvals", { signal }));
  usePoll(loaded, useDashboard().pollSeconds.approvals);
  const text = badgeText(loaded.error === null ? (loaded.data?.approvals.length ?? 0) : 0);
  if (text === "") return null;
  return <span className="nav-badge">{text}<span className="visually-hidden"> waiting for a decision</span></span>;
}
