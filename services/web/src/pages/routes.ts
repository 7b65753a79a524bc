/** Lists the pages. A page registers itself here, and its code is loaded when it is first shown. */
import type { Route } from "../app/router";

/** All pages, in the order of the navigation. */
export const ROUTES: Route[] = [
  { path: "/sandbox", title: "Runs", nav: { label: "Runs", role: "viewer" }, load: () => import("./runs") },
  { path: "/sandbox/:run", title: "Run", load: () => import("./run") },
  { path: "/chat", title: "Chat", nav: { label: "Chat", role: "viewer" }, load: () => import("./chat") },
  { path: "/chat/:thread", title: "Chat", load: () => import("./chat") },
];
