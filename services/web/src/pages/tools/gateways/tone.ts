/** Gives the states of gateways their meaning. Pure. */
import type { Tone } from "../../../components/StateChip";

const TONES = new Map<string, Tone>([["up", "good"], ["starting", "busy"], ["down", "bad"], ["unknown", "warn"]]);

/** Returns the meaning of a gateway's state. */
export function gatewayTone(state: string): Tone {
  return TONES.get(state) ?? "idle";
}
