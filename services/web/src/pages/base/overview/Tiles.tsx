/** The figures of an overview that people ask for first, each with where to see more. */
import type { ReactNode } from "react";
import { api } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { Link } from "../../../base/router";
import { useSession } from "../../../base/session";
import { formatCount, plural } from "../../../base/text/format";
import { StateChip } from "../../../components/StateChip";
import { Time } from "../../../components/Time";
import { type Overview, codeRows, countRuns, formatCompact, formatCost, sumOf } from "./figures";

const FAILURES = "/sandbox?state=failed,timed_out";

/** Renders the tiles. */
export function Tiles({ overview }: { overview: Overview }) {
  const { may } = useSession();
  const { total, approvals } = overview;
  const { ended, succeeded } = countRuns(overview);
  const refused = sumOf(codeRows(overview.refusals));
  return (
    <dl className="tiles">
      <Tile name="Spent" value={formatCost(total)} note={plural(total.calls, "model call")} />
      <Tile
        name="Tokens" value={formatCompact(total.inputTokens + total.outputTokens)}
        note={`${formatCompact(total.inputTokens)} in, ${formatCompact(total.outputTokens)} out`}
      />
      <Tile
        name="Runs ended" value={formatCount(ended)}
        note={<><Link to={FAILURES}>failures</Link>{ended > 0 && `, ${Math.round((succeeded / ended) * 100)} % succeeded`}</>}
      />
      <Tile name="Refused calls" value={formatCount(refused)} note={refused === 0 ? "no rule stopped a call" : "by reason below"} />
      <Tile
        name="Waiting for a person" value={formatCount(approvals.waiting)}
        note={approvals.oldestAt === null ? "no approval is open" : <WaitNote since={approvals.oldestAt} />}
      />
      {may("operator") && <Health />}
    </dl>
  );
}

function Tile({ name, value, note }: { name: string; value: ReactNode; note: ReactNode }) {
  return (
    <div className="tile panel">
      <dt>{name}</dt>
      <dd className="tile-value">{value}</dd>
      <dd className="tile-note">{note}</dd>
    </div>
  );
}

function WaitNote({ since }: { since: string }) {
  return (
    <>
      <Link to="/approvals">Decide</Link>, since <Time at={since} />
    </>
  );
}

function Health() {
  const system = useLoad("system", (signal) => api.get("/api/v1/system", { signal }));
  usePoll(system, useDashboard().pollSeconds.system);
  const { data, error } = system;
  if (data === null) return <Tile name="Health" value="–" note={error === null ? "asking" : <Link to="/system">not known</Link>} />;
  const findings = data.findings.length;
  return (
    <Tile
      name="Health" value={<StateChip state={data.ready ? "ready" : "not ready"} tone={data.ready ? "good" : "bad"} />}
      note={<Link to="/system">{findings === 0 ? "nothing to do" : plural(findings, "finding")}</Link>}
    />
  );
}
