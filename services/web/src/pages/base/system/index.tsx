/** State of the whole system: is it ready, what is wrong and how to fix it, its parts, its runs, and what is frozen. */
import { Suspense, lazy } from "react";
import { api, sendJson } from "../../../api/client";
import { useDashboard } from "../../../api/dashboard";
import { useLoad } from "../../../api/useLoad";
import { usePoll } from "../../../api/usePoll";
import { useSession } from "../../../base/session";
import { AgentText } from "../../../components/AgentText";
import { FixText } from "../../../components/FixText";
import { LoadNote, RoleNote } from "../../../components/LoadNote";
import { Skeleton } from "../../../components/Notes";
import { StateChip } from "../../../components/StateChip";
import { Parts } from "./Parts";
import { Runs } from "./Runs";
import type { System as SystemState, SystemFinding } from "./state";
import "../../money/accounts.css";
import "./system.css";

const FreezePanel = lazy(() => import("../../money/FreezePanel"));

/** Shows the system. */
export default function System() {
  const { may } = useSession();
  return may("operator") ? <Overview /> : <RoleNote role="operator" />;
}

function Overview() {
  const system = useLoad("system", (signal) => sendJson<SystemState>("get", "/api/v1/system", { signal }));
  const freezes = useLoad("freezes", (signal) => api.get("/api/v1/freezes", { signal }));
  const seconds = useDashboard().pollSeconds.system;
  usePoll(system, seconds);
  usePoll(freezes, seconds);
  const { data, error } = system;
  return (
    <>
      <div className="page-head">
        <h1>System</h1>
        {data !== null && error === null && <StateChip state={data.ready ? "ready" : "not ready"} tone={data.ready ? "good" : "bad"} />}
        {data !== null && <span className="muted">version <AgentText text={data.version} form="inline" /></span>}
      </div>
      <LoadNote loaded={system} rows={10} />
      {data !== null && (
        <>
          <Findings findings={data.findings} />
          <Parts system={data} />
          <Runs system={data} />
        </>
      )}
      <Suspense fallback={<Skeleton rows={2} />}><FreezePanel freezes={freezes} /></Suspense>
    </>
  );
}

function Findings({ findings }: { findings: SystemFinding[] }) {
  if (findings.length === 0) return null;
  return (
    <section className="panel stack" aria-labelledby="findings">
      <h2 id="findings">To do</h2>
      <ul className="system-findings">
        {findings.map((finding) => (
          <li key={`${finding.part} ${finding.found}`}>
            <StateChip state={finding.part} tone="warn" />
            <div>
              <FixText text={finding.found} />
              {finding.fix !== "" && <p className="muted">To do: <FixText text={finding.fix} /></p>}
            </div>
          </li>
        ))}
      </ul>
    </section>
  );
}
