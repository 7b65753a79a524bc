/** Holds the form of an agent's settings, sends it, and shows what someone else has set meanwhile. */
import { useState } from "react";
import { api } from "../../../api/client";
import { type ApiError, toApiError } from "../../../api/problem";
import { announce } from "../../../base/announce";
import type { GatewayAgent } from "./agents";
import { type Edit, type Fields, bodyOf, rebase } from "./settings";

/** Form of the settings. */
export interface SettingsUse extends Edit {
  isBusy: boolean;
  error: ApiError | null;
  /** Agent as someone else has set it, if a change was refused for that. */
  conflict: GatewayAgent | null;
  set: (changes: Partial<Fields>) => void;
  save: () => void;
  /** Gives up what was typed for what is set now. */
  takeTheirs: () => void;
  /** Sends the form again, on top of what is set now. */
  saveMine: () => void;
  discard: () => void;
}

/** Returns the form of `agent`. What was typed outlasts newer answers about the agent. `onAnswer` gets a newer agent. */
export function useSettings(agent: GatewayAgent, onAnswer: (agent: GatewayAgent) => void): SettingsUse {
  const [edit, setEdit] = useState<Edit | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ApiError | null>(null);
  const [conflict, setConflict] = useState<GatewayAgent | null>(null);
  const current = rebase(edit, agent);
  const path = { gateway: agent.gateway, agent: agent.id };
  const show = (next: Edit | null) => {
    setEdit(next);
    setError(null);
    setConflict(null);
  };
  const send = async (fields: Fields, revision: number) => {
    try {
      const saved = await api.put("/api/v1/gateways/{gateway}/agents/{agent}", { path, body: bodyOf(fields, revision) });
      onAnswer(saved);
      show(null);
      announce("The settings were saved. The gateway is given them now.");
    } catch (thrown) {
      const refused = toApiError(thrown);
      if (refused.code !== "gateway_agent_changed") throw refused;
      setConflict(await api.get("/api/v1/gateways/{gateway}/agents/{agent}", { path }));
      announce("Someone else has changed the agent meanwhile.");
    }
  };
  const attempt = (revision: number) => {
    if (isBusy) return;
    setBusy(true);
    setError(null);
    send(current.fields, revision).catch((thrown: unknown) => setError(toApiError(thrown))).finally(() => setBusy(false));
  };
  return {
    ...current, isBusy, error, conflict,
    set: (changes) => setEdit({ base: current.base, fields: { ...current.fields, ...changes } }),
    save: () => attempt(current.base.revision),
    saveMine: () => conflict !== null && attempt(conflict.revision),
    takeTheirs: () => {
      if (conflict !== null) onAnswer(conflict);
      show(null);
    },
    discard: () => show(null),
  };
}
