/** Draws a picture from a text: five rows of blocks, the same on both sides. The same text gives the same picture. */

const SIDE = 5;
const COLUMNS = 3;

/** Picture: its hue in degrees, and which of its 25 blocks are filled, row by row. */
export interface AvatarBlocks {
  hue: number;
  blocks: boolean[];
}

/** Returns the picture of `seed`. No picture is empty. */
export function avatarOf(seed: string): AvatarBlocks {
  const hash = hashOf(seed);
  const bits = hash & 0x7fff || 0x1f;
  const blocks = Array.from({ length: SIDE * SIDE }, (_, at) => {
    const column = Math.min(at % SIDE, SIDE - 1 - (at % SIDE));
    return ((bits >> (Math.floor(at / SIDE) * COLUMNS + column)) & 1) === 1;
  });
  return { hue: (hash >>> 15) % 360, blocks };
}

/** Renders the picture of `seed`. It says nothing that the name beside it does not say. */
export function Avatar({ seed }: { seed: string }) {
  const { hue, blocks } = avatarOf(seed);
  const filled = blocks.flatMap((isFilled, at) => (isFilled ? [`M${at % SIDE} ${Math.floor(at / SIDE)}h1v1h-1z`] : []));
  return (
    <svg className="avatar" viewBox="-1 -1 7 7" width="28" height="28" aria-hidden="true" focusable="false">
      <path d={filled.join("")} fill={`hsl(${hue} 55% 50%)`} shapeRendering="crispEdges" />
    </svg>
  );
}

/** Returns a random seed. */
export function randomSeed(): string {
  return [...crypto.getRandomValues(new Uint8Array(6))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Mixes all characters into 32 bits: FNV-1a, and a last step so that similar texts differ in all bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}
