/** Names the shapes of the system, of gateways' checks and of drafts, as the API's document has them. */
import type { Schemas } from "../../../api/client";

/** Answer of `GET /api/v1/system`. */
export type System = Schemas["System"];
/** State of the data plane. */
export type DataPlane = Schemas["DataPlaneState"];
/** State of the journal, with its readers. */
export type Journal = Schemas["JournalStatus"];
/** Part of the system that needs an action. */
export type SystemFinding = Schemas["SystemFinding"];
/** Answer of `GET /api/v1/gateways/{gateway}/check`. */
export type GatewayCheck = Schemas["GatewayCheck"];
/** Finding of a check. */
export type GatewayFinding = Schemas["GatewayFinding"];
/** Value of a setting in a draft. */
export type SettingValue = string | number | boolean | (string | number | boolean)[];
/** Body of `POST /api/v1/agents/draft`. The document says of the settings only that they are an object. */
export type AgentDraft = Omit<Schemas["AgentDraftOrder"], "settings"> & { settings: Record<string, SettingValue> };
/** Answer of `POST /api/v1/agents/draft`. */
export type DraftedAgent = Schemas["AgentDraft"];
