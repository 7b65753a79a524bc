/** Starts the dashboard. The code of a one-time link leaves the address before anything else happens. */
import { linkCode } from "./app/link";
import { createRoot } from "react-dom/client";
import { App } from "./app/App";
import { applyTheme } from "./app/theme";
import "./styles/index.css";

applyTheme();
const root = document.getElementById("root");
if (root !== null) createRoot(root).render(<App linkCode={linkCode} />);
// A page that the browser kept for Back and Forward may belong to a session that has ended: it is read anew.
window.addEventListener("pageshow", (event) => {
  if (event.persisted) window.location.reload();
});
