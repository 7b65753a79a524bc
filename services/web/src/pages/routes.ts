/** Lists the pages. A page registers itself here, and its code is loaded when it is first shown. */
import type { Route } from "../base/router";

/** All pages, in the order of the navigation. */
export const ROUTES: Route[] = [
  { path: "/", title: "Overview", nav: { label: "Overview", role: "viewer" }, load: () => import("./base/overview") },
  { path: "/sandbox", title: "Runs", nav: { label: "Runs", role: "viewer" }, load: () => import("./runs/list") },
  { path: "/sandbox/:run", title: "Run", load: () => import("./runs/run") },
  { path: "/chat", title: "Chat", nav: { label: "Chat", role: "viewer" }, load: () => import("./threads") },
  { path: "/chat/:thread", title: "Chat", load: () => import("./threads") },
  { path: "/approvals", title: "Approvals", nav: { label: "Approvals", role: "viewer" }, load: () => import("./people/approvals") },
  { path: "/accounts", title: "Accounts", nav: { label: "Accounts", role: "viewer" }, load: () => import("./money/accounts") },
  { path: "/accounts/:account", title: "Account", load: () => import("./money/account") },
  { path: "/agents", title: "Agents", nav: { label: "Agents", role: "viewer" }, load: () => import("./tools/agents") },
  { path: "/agents/draft", title: "Draft of an agent", load: () => import("./tools/agents/draft") },
  { path: "/agents/skill", title: "Draft of a skill", load: () => import("./tools/agents/skill") },
  { path: "/agents/proposals", title: "Proposals", load: () => import("./tools/agents/proposals") },
  { path: "/gateways", title: "Gateways", nav: { label: "Gateways", role: "viewer" }, load: () => import("./tools/gateways") },
  { path: "/gateways/:gateway", title: "Gateway", load: () => import("./tools/studio/gateway") },
  { path: "/gateways/:gateway/:agent", title: "Agent", load: () => import("./tools/studio/agent") },
  { path: "/system", title: "System", nav: { label: "System", role: "operator" }, load: () => import("./base/system") },
];
