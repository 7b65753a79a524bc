/** Reads findings of a gateway's check: what was found, and what to do. Pure. */
import type { Schemas } from "../../../api/client";
import type { Tone } from "../../../components/StateChip";

/** Answer of `GET /api/v1/gateways/{gateway}/check`. */
export type GatewayCheck = Schemas["GatewayCheck"];
/** Finding of a check. */
export type GatewayFinding = Schemas["GatewayFinding"];

/** Finding, divided into what was found and what to do. */
export interface ReadFinding {
  code: string;
  level: string;
  tone: Tone;
  found: string;
  fix: string | null;
}

const LEVELS = new Map<string, [string, Tone]>([
  ["wrong", ["wrong", "bad"]],
  ["untested", ["untested", "warn"]],
  ["not_known", ["not known", "idle"]],
]);

const STATES = new Map<string, [string, Tone]>([
  ["ok", ["nothing is wrong", "good"]],
  ["wrong", ["something is wrong", "bad"]],
  ["untested", ["untested", "warn"]],
  ["not_known", ["not known", "idle"]],
]);

const ORDER = ["wrong", "untested", "not_known"];
/** Codes whose messages end with a cause, not with a fix. */
const CAUSES = new Set(["attribution_impossible", "gateway_unavailable", "secret_exposed", "not_known"]);

/** Returns the state of a check for people. */
export function readState({ state }: GatewayCheck): { text: string; tone: Tone } {
  const [text, tone] = STATES.get(state) ?? [state, "idle"];
  return { text, tone };
}

/** Returns the findings, the worst first. */
export function readFindings(findings: GatewayFinding[]): ReadFinding[] {
  const rank = (kind: string) => (ORDER.indexOf(kind) + ORDER.length + 1) % (ORDER.length + 1);
  return [...findings].sort((a, b) => rank(a.kind) - rank(b.kind)).map(readFinding);
}

function readFinding({ code, kind, message }: GatewayFinding): ReadFinding {
  const [level, tone] = LEVELS.get(kind) ?? [kind, "idle"];
  const at = CAUSES.has(code) ? -1 : message.indexOf(": ");
  return { code, level, tone, found: at < 0 ? message : message.slice(0, at), fix: at < 0 ? null : message.slice(at + 2) };
}
