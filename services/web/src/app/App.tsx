/** Renders the page of the address, or the sign-in where it takes one. */
import { type ReactNode, Suspense, createElement, lazy, useCallback, useEffect, useState } from "react";
import { DashboardContext, NO_SETTINGS, readDashboard } from "../api/dashboard";
import { Link, RouterProvider, componentOf, findRoute, useLocation } from "../base/router";
import { SessionProvider, useSession } from "../base/session";
import { EmptyState, ErrorBoundary, ErrorNote, Skeleton } from "../components/Notes";
import { ROUTES } from "../pages/routes";
import { Layout } from "./Layout";

const SignIn = lazy(() => import("../pages/people/signin"));

/** The dashboard. `linkCode` is the code of a one-time link, which the first module took out of the address. */
export function App({ linkCode }: { linkCode: string | null }) {
  return (
    <RouterProvider routes={ROUTES}>
      <SessionProvider>
        <Suspense fallback={<Skeleton rows={6} />}>
          <Gate linkCode={linkCode} />
        </Suspense>
      </SessionProvider>
    </RouterProvider>
  );
}

function Gate({ linkCode: opened }: { linkCode: string | null }) {
  const { state, reload } = useSession();
  // A link that was used or declined is forgotten: at the next sign-in it would begin a session without a question.
  const [linkCode, setLinkCode] = useState(opened);
  const forgetLink = useCallback(() => setLinkCode(null), []);
  const { path } = useLocation();
  switch (state.kind) {
    case "loading":
      return <Skeleton rows={6} />;
    case "unreachable":
      return (
        <main className="alone">
          <h1>Sluicegate</h1>
          <ErrorNote error={state.error} onRetry={reload} />
        </main>
      );
    case "signedOut":
      return <SignIn linkCode={linkCode} onLinkDone={forgetLink} reason={state.reason} />;
    case "signedIn":
      if (path === "/signin") return <SignIn linkCode={linkCode} onLinkDone={forgetLink} reason="none" />;
      return (
        <Settings>
          <Page />
        </Settings>
      );
  }
}

function Settings({ children }: { children: ReactNode }) {
  const [settings, setSettings] = useState(NO_SETTINGS);
  useEffect(() => void readDashboard().then(setSettings), []);
  return <DashboardContext value={settings}>{children}</DashboardContext>;
}

function Page() {
  const { path } = useLocation();
  const found = findRoute(ROUTES, path);
  if (found === null) {
    return (
      <Layout routes={ROUTES} title="Not found">
        <EmptyState title="There is no such page">
          <Link to="/sandbox">Show all runs</Link>
        </EmptyState>
      </Layout>
    );
  }
  return (
    <Layout routes={ROUTES} title={[...Object.values(found.params), found.route.title].join(" · ")}>
      <ErrorBoundary key={path}>{createElement(componentOf(found.route), { key: path })}</ErrorBoundary>
    </Layout>
  );
}
