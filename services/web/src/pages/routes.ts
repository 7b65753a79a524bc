/** Lists the pages. A page registers itself here, and its code is loaded when it is first shown. */
import type { Route } from "../app/router";

/** All pages, in the order of the navigation. */
export const ROUTES: Route[] = [
  { path: "/", title: "Overview", nav: { label: "Overview", role: "viewer" }, load: () => import("./overview") },
  { path: "/sandbox", title: "Runs", nav: { label: "Runs", role: "viewer" }, load: () => import("./runs") },
  { path: "/sandbox/:run", title: "Run", load: () => import("./run") },
  { path: "/chat", title: "Chat", nav: { label: "Chat", role: "viewer" }, load: () => import("./chat") },
  { path: "/chat/:thread", title: "Chat", load: () => import("./chat") },
  { path: "/approvals", title: "Approvals", nav: { label: "Approvals", role: "viewer" }, load: () => import("./approvals") },
  { path: "/accounts", title: "Accounts", nav: { label: "Accounts", role: "viewer" }, load: () => import("./accounts") },
  { path: "/accounts/:account", title: "Account", load: () => import("./account") },
  { path: "/agents", title: "Agents", nav: { label: "Agents", role: "viewer" }, load: () => import("./agents") },
  { path: "/agents/draft", title: "Draft of an agent", load: () => import("./agents/draft") },
  { path: "/agents/skill", title: "Draft of a skill", load: () => import("./agents/skill") },
  { path: "/gateways", title: "Gateways", nav: { label: "Gateways", role: "operator" }, load: () => import("./gateways") },
  { path: "/system", title: "System", nav: { label: "System", role: "operator" }, load: () => import("./system") },
];
