/** Takes the code of a one-time link out of the address. Imported first, so that no other code sees the code there. */

const match = /^#code=([A-Za-z0-9_-]{1,256})$/.exec(window.location.hash);
if (match !== null) window.history.replaceState(null, "", window.location.pathname);

/** Code of the one-time link that was opened, or null. */
export const linkCode: string | null = match?.[1] ?? null;
