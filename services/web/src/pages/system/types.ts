/** Shapes of routes that the generated types do not have yet. The generated ones replace them. */

/** Answer of `GET /api/v1/system`. */
export interface System {
  version: string;
  ready: boolean;
  store: { state: string; description: string | null; schema: number; reason: string | null };
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

/** Value of a setting in a draft. */
export type SettingValue = string | number | boolean | (string | number | boolean)[];

/** Body of `POST /api/v1/agents/draft`. `settings` are those of the entry, as the configuration file names them. */
export interface AgentDraft {
  agentId: string;
  settings: Record<string, SettingValue>;
}

/** Answer of `POST /api/v1/agents/draft`. */
export interface DraftedAgent {
  toml: string;
  diff: string | null;
  replaces: boolean;
  file: string | null;
  problems: string[];
}
