/** Names the limit that ended a run, and the setting behind it. Calls are listed moments after they end, so it asks twice. */
import { useEffect } from "react";
import { type Schemas, api } from "../../api/client";
import { useLoad } from "../../api/useLoad";
import { AgentText } from "../../components/agent-text/AgentText";
import { failureHelp, limitHelp } from "./failures";

/** Properties: the run that ended, its agent, the account that pays, and the code of its failure. */
export interface DecidedByProps {
  runId: string;
  agentId: string | null;
  account: string;
  code: string;
}

const LISTED_MS = 2_500;
const PAGE = 100;

/** Reads the rule of the last refused call. Calls come in pages, the oldest first. */
async function readLastRule(runId: string, signal: AbortSignal): Promise<{ rule: string | null }> {
  let rule: string | null = null;
  let cursor: string | null = null;
  do {
    const query: { limit: number; cursor?: string } = cursor === null ? { limit: PAGE } : { limit: PAGE, cursor };
    const page: Schemas["CallPage"] = await api.get("/api/v1/runs/{run}/calls", { path: { run: runId }, query, signal });
    rule = page.calls.findLast((call) => call.refusal !== null)?.rule ?? rule;
    cursor = page.nextCursor ?? null;
  } while (cursor !== null);
  return { rule };
}

/** Renders the advice; the general one until the call is known that was refused. */
export function DecidedBy({ runId, agentId, account, code }: DecidedByProps) {
  const { data, reload } = useLoad(runId, (signal) => readLastRule(runId, signal));
  const rule = data?.rule ?? null;
  const isMissing = data !== null && rule === null;
  useEffect(() => {
    if (!isMissing) return;
    const timer = setTimeout(reload, LISTED_MS);
    return () => clearTimeout(timer);
  }, [isMissing, reload]);
  return <AgentText text={(rule === null ? null : limitHelp(rule, agentId, account)) ?? failureHelp(code, account)} form="inline" />;
}
