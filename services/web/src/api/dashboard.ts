/** Reads what the server has configured for the dashboard, once for each page load. */
import { createContext, use } from "react";
import { sendJson } from "./client";

/** Configuration of the dashboard, as `GET /api/v1/dashboard` answers it. */
export interface DashboardSettings {
  version: string | null;
  /** Address of a trace with `{trace}` in the place of its id, or null without a tracing system. */
  traceUrl: string | null;
  /** Only https addresses of this host are links to pull requests. */
  githubHost: string | null;
  pollSeconds: { system: number; gateways: number; approvals: number };
}

/** Settings of a server that does not answer: no links lead anywhere. */
export const NO_SETTINGS: DashboardSettings = {
  version: null,
  traceUrl: null,
  githubHost: null,
  pollSeconds: { system: 10, gateways: 30, approvals: 5 },
};

/** Reads the settings. A server without the route has none. */
export async function readDashboard(): Promise<DashboardSettings> {
  try {
    return { ...NO_SETTINGS, ...(await sendJson<Partial<DashboardSettings>>("get", "/api/v1/dashboard")) };
  } catch {
    return NO_SETTINGS;
  }
}

/** Context of the settings; the frame of the pages provides it. */
export const DashboardContext = createContext<DashboardSettings>(NO_SETTINGS);

/** Returns the settings. */
export function useDashboard(): DashboardSettings {
  return use(DashboardContext);
}
