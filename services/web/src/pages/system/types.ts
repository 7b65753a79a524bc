/** Shapes of routes that the generated types do not have yet. The generated ones replace them. */

/** Answer of `GET /api/v1/system`. */
export interface System {
  version: string;
  ready: boolean;
  store: { state: string; backend: string; description: string; schema: number; reason: string | null };
  docker: { state: string; engine: string | null; api: string | null; reason: string | null };
  dataPlane: DataPlane;
  journal: Journal | null;
  runs: Record<string, number>;
  queue: { waiting: number; oldestSeconds: number | null };
  findings: SystemFinding[];
}

/** State of the data plane. */
export interface DataPlane {
  state: string;
  version: string | null;
  uptimeSeconds: number | null;
  openRuns: number | null;
  callsInFlight: number | null;
  upstream: string | null;
  reasons: string[];
  reason: string | null;
}

/** State of the journal, with its readers. */
export interface Journal {
  id: string;
  lastSeq: number;
  state: string;
  consumers: { name: string; acknowledged: number; lag: number }[];
}

/** Part of the system that needs an action. */
export interface SystemFinding {
  part: string;
  found: string;
  fix: string;
}

/** Answer of `GET /api/v1/gateways/{gateway}/check`. */
export interface GatewayCheck {
  gateway: string;
  state: string;
  findings: GatewayFinding[];
}

/** Finding of a check. */
export interface GatewayFinding {
  code: string;
  kind: string;
  message: string;
}

/** Body of `POST /api/v1/agents/draft`. */
export interface AgentDraft {
  agentId: string;
  image: string;
  argv?: string[];
  name?: string;
  description?: string;
  model?: string;
  models?: string[];
  runTimeout?: string;
  totalTokens?: number;
  cost?: string;
  protocol?: string;
}

/** Answer of `POST /api/v1/agents/draft`. */
export interface DraftedAgent {
  toml: string;
  diff: string | null;
  replaces: boolean;
  file: string | null;
  problems: string[];
}
