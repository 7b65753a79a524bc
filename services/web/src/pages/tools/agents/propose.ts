/** Makes the body of a proposal from what was drafted. The server judges it. Pure. */
import type { Schemas } from "../../../api/client";
import type { Tone } from "../../../components/StateChip";
import type { AgentDraft } from "./draft-fields";

/** Proposal, as the API shows it. */
export type Proposal = Schemas["Proposal"];

/** Body of `POST /api/v1/agents/proposals`. The document says of the settings only that they are an object. */
export type ProposalOrder =
  | (AgentDraft & { kind: "agent" | "gatewayAgent" })
  | { kind: "skill"; name: string; text: string };

/** Pattern of the names of skills. Browsers read it with the flag `v`, which wants a `-` escaped. */
export const SKILL_NAME = "[a-z0-9](?:[a-z0-9\\-]{0,62}[a-z0-9])?";

const TONES: Record<Proposal["state"], Tone> = {
  queued: "idle", committed: "busy", pushed: "busy", proposed: "warn", merged: "good", closed: "idle", refused: "bad", failed: "bad",
};

const KINDS: Record<Proposal["kind"], string> = { agent: "Agent", gatewayAgent: "Agent of a gateway", skill: "Skill" };

/** Returns the proposal of a drafted agent. One whose mode is `gateway` is an agent of a gateway. */
export function agentProposal(draft: AgentDraft): ProposalOrder {
  return { ...draft, kind: draft.settings["mode"] === "gateway" ? "gatewayAgent" : "agent" };
}

/** Returns how good a state is. */
export function toneOf(state: Proposal["state"]): Tone {
  return TONES[state];
}

/** Returns the words for a kind. */
export function kindWords(kind: Proposal["kind"]): string {
  return KINDS[kind];
}
