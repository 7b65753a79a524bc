/** Reads what the server has configured for the dashboard, once for each page load. */
import { createContext, use } from "react";
import { type Schemas, api } from "./client";

/** Configuration of the dashboard; null in place of what a server does not say. */
export type DashboardSettings = Nullable<Schemas["DashboardSettings"], "version" | "githubHost">;

type Nullable<T, K extends keyof T> = Omit<T, K> & { [P in K]: T[P] | null };

/** Settings of a server that does not answer: no links lead anywhere. */
export const NO_SETTINGS: DashboardSettings = {
  version: null,
  traceUrl: null,
  githubHost: null,
  proposesAgents: false,
  proposesSkills: false,
  pollSeconds: { system: 10, gateways: 30, approvals: 5 },
};

/** Reads the settings. A server without the route has none. */
export async function readDashboard(): Promise<DashboardSettings> {
  try {
    return { ...NO_SETTINGS, ...(await api.get("/api/v1/dashboard", {})) };
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
