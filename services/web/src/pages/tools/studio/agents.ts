/** Reads agents of a gateway: their states, their ids, and when to ask again. Pure. */
import { type Schemas, encodePart } from "../../../api/client";
import type { Tone } from "../../../components/StateChip";

/** Agent of a gateway. */
export type GatewayAgent = Schemas["GatewayAgent"];

/** Capabilities that an agent has or lacks. */
export const CAPABILITIES = [["commands", "Commands"], ["web", "Web"], ["files", "Files"]] as const;

const TONES = new Map<string, Tone>([["applied", "good"], ["applying", "busy"], ["failed", "bad"], ["removing", "warn"]]);
/** Seconds between two questions while the gateway is given a change. */
const MOVING_SECONDS = 3;

/** Returns the state for people, with its step: `applying: configuration`. */
export function readState({ state, step }: Pick<GatewayAgent, "state" | "step">): { text: string; tone: Tone } {
  return { text: step === null || state === "applied" ? state : `${state}: ${step}`, tone: TONES.get(state) ?? "idle" };
}

/** Returns whether the gateway is about to be given a change. A failed step is tried again. */
export function isMoving({ state }: Pick<GatewayAgent, "state">): boolean {
  return state === "applying" || state === "removing" || state === "failed";
}

/** Returns the seconds until the next question: few while an agent is about to change. */
export function pollSeconds(agents: Pick<GatewayAgent, "state">[], usual: number): number {
  return agents.some(isMoving) ? MOVING_SECONDS : usual;
}

/** Returns the id that an agent with this name gets: its letters a-z and digits, with one `-` for all that is between them. */
export function slugOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => letter.toLowerCase()).split(/[^a-z0-9]+/).filter((part) => part !== "").join("-");
}

const MAX_NAME = 64;

/** Returns why a text cannot be the name of an agent; null if it can. An empty one needs no explanation. */
export function nameMistake(name: string): string | null {
  if (name.trim() === "") return "";
  if ([...name.trim()].length > MAX_NAME) return `At most ${MAX_NAME} characters`;
  const id = slugOf(name);
  if (id === "") return "At least one letter a-z or digit, of which the id is made";
  return id === "default" ? "OpenClaw keeps the id default for itself" : null;
}

/** Returns why an agent cannot be changed here, or null if it can. */
export function fixedReason({ source, state }: Pick<GatewayAgent, "source" | "state">, mayChange: boolean): string | null {
  if (source === "configuration") return "The configuration file describes this agent, and only that changes it.";
  if (state === "removing") return "The agent is being removed.";
  return mayChange ? null : "To change an agent takes the role member, and an account that the gateway serves.";
}

/** Returns the address of a gateway's page, or of the page of one of its agents. */
export function pagePath(gateway: string, agent?: string): string {
  const own = `/gateways/${encodePart(gateway)}`;
  return agent === undefined ? own : `${own}/${encodePart(agent)}`;
}

/** Returns the newer one of two answers about an agent. */
export function newest(read: GatewayAgent | null, answered: GatewayAgent | null): GatewayAgent | null {
  if (read === null || answered === null) return read ?? answered;
  return answered.revision > read.revision ? answered : read;
}

/** Returns the address of a new chat with an agent of a gateway, by way of an agent of the catalog. */
export const chatPath = (agent: string, gatewayAgent: string): string => `/chat?agent=${agent}&gatewayAgent=${gatewayAgent}`;
