/** Makes links to other systems, only where the server's configuration allows them. */
import { encodePart } from "../../api/client";
import { webAddress } from "../../base/text/links";

/** Returns the address of a trace, or null without a template or a trace. */
export function traceLink(template: string | null, traceId: string | null): URL | null {
  if (template === null || traceId === null || !template.includes("{trace}")) return null;
  return webAddress(template.replace("{trace}", () => encodePart(traceId)));
}

/** Returns `address` if it is https, of exactly the host `host`, and without a user name; else null: then it is text. */
export function pullRequestLink(address: string, host: string | null): URL | null {
  const url = webAddress(address);
  if (url === null || host === null || url.protocol !== "https:" || url.host !== host) return null;
  return url.username === "" && url.password === "" ? url : null;
}
