/** Reads what an agent may do, tool by tool. Pure. */
import type { Schemas } from "../../../api/client";
import type { Tone } from "../../../components/StateChip";

/** Verdict about one tool. */
export type ToolExplanation = Schemas["GatewayToolExplanation"];

/** Verdict about one tool, in words for people. */
export interface ReadTool {
  tool: string;
  verdict: string;
  tone: Tone;
  layer: string;
  reason: string;
  setting: string | null;
}

const VERDICTS = new Map<string, [string, Tone]>([
  ["denied", ["denied", "bad"]],
  ["asks", ["a person decides", "warn"]],
  ["allowed", ["allowed", "good"]],
]);
const LAYERS = new Map<string, string>([
  ["host policy", "Policy of this host"],
  ["gateway tools", "Tools of the gateway"],
  ["sandbox tools", "Tools of OpenClaw’s containers"],
  ["approvals", "Approvals of commands"],
]);
const ORDER = [...VERDICTS.keys()];

/** Returns the tools: those that are denied first, then by name. Verdicts of a later version come last. */
export function readTools(tools: ToolExplanation[]): ReadTool[] {
  const rank = ({ verdict }: ToolExplanation) => (ORDER.indexOf(verdict) + ORDER.length + 1) % (ORDER.length + 1);
  const byName = (a: ToolExplanation, b: ToolExplanation) => (a.tool < b.tool ? -1 : a.tool > b.tool ? 1 : 0);
  return [...tools].sort((a, b) => rank(a) - rank(b) || byName(a, b)).map(readTool);
}

function readTool({ tool, verdict, layer, reason, setting }: ToolExplanation): ReadTool {
  const [text, tone] = VERDICTS.get(verdict) ?? [verdict, "idle"];
  return { tool, verdict: text, tone, layer: LAYERS.get(layer) ?? layer, reason, setting };
}

/** Returns how many tools there are of each verdict: `2: denied, 9: allowed`. */
export function countTools(tools: ReadTool[]): string {
  const counts = new Map<string, number>();
  for (const { verdict } of tools) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  return [...counts].map(([verdict, count]) => `${count}: ${verdict}`).join(", ");
}
