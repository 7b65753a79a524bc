/** Frame of all pages: navigation, who is signed in, theme, shortcuts, and the page itself. */
import { type ReactNode, Suspense, lazy, useEffect, useRef, useState } from "react";
import { LiveRegion } from "../base/announce";
import { handleKey, useShortcuts } from "../base/keys";
import { Link, type Route, useLocation } from "../base/router";
import { useSession } from "../base/session";
import { visibleText } from "../base/text/marks";
import { Skeleton } from "../components/Notes";
import { useTheme } from "./theme";
import { WaitingBadge } from "./WaitingBadge";

const KeysDialog = lazy(() => import("./KeysDialog"));

/** Renders the frame around a page. Focus moves to the page when the address changes. */
export function Layout({ routes, title, children }: { routes: Route[]; title: string; children: ReactNode }) {
  const { path } = useLocation();
  const main = useRef<HTMLElement>(null);
  const shown = useRef(path);
  const [showsKeys, setShowsKeys] = useState(false);
  useEffect(() => {
    document.title = visibleText(`${title} · Sluicegate`);
    if (shown.current !== path) main.current?.focus({ preventScroll: true });
    if (shown.current !== path) window.scrollTo(0, 0);
    shown.current = path;
  }, [path, title]);
  useEffect(() => {
    window.addEventListener("keydown", handleKey);
    return () => window.removeEventListener("keydown", handleKey);
  }, []);
  useShortcuts([{ key: "?", label: "Show these shortcuts", run: () => setShowsKeys(true) }]);
  return (
    <div className="frame">
      <a className="skip" href="#main">Skip to the page</a>
      <Navigation routes={routes} onKeys={() => setShowsKeys(true)} />
      <main id="main" ref={main} tabIndex={-1}>
        <Suspense fallback={<Skeleton rows={8} />}>{children}</Suspense>
      </main>
      <LiveRegion />
      <Suspense>{showsKeys && <KeysDialog onClose={() => setShowsKeys(false)} />}</Suspense>
    </div>
  );
}

const SIGNS = { system: "◐", dark: "●", light: "○" };

function Navigation({ routes, onKeys }: { routes: Route[]; onKeys: () => void }) {
  const { path } = useLocation();
  const { may } = useSession();
  const { theme, next } = useTheme();
  const entries = routes.filter((route) => route.nav !== undefined && may(route.nav.role));
  return (
    <header className="nav">
      <Link to="/" className="brand">
        <span className="brand-gate" aria-hidden="true" />
        Sluicegate
      </Link>
      <nav aria-label="Pages">
        {entries.map((route) => (
          <div key={route.path}>
            <Link to={route.path} isCurrent={path === route.path || path.startsWith(`${route.path}/`)}>
              {route.nav?.label}
            </Link>
            {route.path === "/approvals" && <WaitingBadge />}
          </div>
        ))}
      </nav>
      <div className="nav-foot">
        <Identity />
        <button type="button" className="quiet" onClick={next} aria-label={`Theme: ${theme}. Change it`}>
          <span aria-hidden="true">{SIGNS[theme]}</span> <span className="theme-name">{theme}</span>
        </button>
        <button type="button" className="quiet nav-keys" onClick={onKeys}>
          <kbd>?</kbd> keys
        </button>
      </div>
    </header>
  );
}

function Identity() {
  const { state, signOut } = useSession();
  if (state.kind !== "signedIn") return null;
  const { principal, account, role } = state.session;
  return (
    <div className="identity">
      <span title={visibleText(`Account ${account}`)}>
        <bdi>{principal ?? "no token"}</bdi> <small>{role}</small>
      </span>
      {principal !== null && (
        <button type="button" className="quiet" onClick={() => void signOut()}>
          Sign out
        </button>
      )}
    </div>
  );
}
