/** Routes the pages: reads the address, renders the page that owns it, and changes the address without a reload. */
import {
  type ComponentType, type MouseEvent, type ReactNode, createContext, lazy, useCallback, useContext, useEffect, useMemo, useState,
} from "react";
import type { Role } from "./session";

/** Page of the dashboard. `path` has parameters as `:name`. */
export interface Route {
  path: string;
  title: string;
  /** Entry in the navigation; pages below another one have none. */
  nav?: { label: string; role: Role };
  load: () => Promise<{ default: ComponentType }>;
}

/** Address that is shown, with what a page needs of it. */
export interface Location {
  path: string;
  params: Record<string, string>;
  query: URLSearchParams;
  navigate: (to: string, how?: "push" | "replace") => void;
  /** Changes parts of the query in place; null removes one. */
  setQuery: (changes: Record<string, string | null>) => void;
}

const LocationContext = createContext<Location | null>(null);

/** Returns the address that is shown. */
export function useLocation(): Location {
  const location = useContext(LocationContext);
  if (location === null) throw new Error("useLocation outside of RouterProvider");
  return location;
}

/** Returns the parameters if `path` is one of `pattern`, else null. */
export function matchPath(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const given = path.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const params: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":") && value !== "") params[part.slice(1)] = decode(value);
    else if (part !== value) return null;
  }
  return params;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Finds the route of `path`. */
export function findRoute(routes: Route[], path: string): { route: Route; params: Record<string, string> } | null {
  for (const route of routes) {
    const params = matchPath(route.path, path);
    if (params !== null) return { route, params };
  }
  return null;
}

const readAddress = () => ({ path: window.location.pathname, search: window.location.search });

/** Gives the address to everything below it. */
export function RouterProvider({ routes, children }: { routes: Route[]; children: ReactNode }) {
  const [address, setAddress] = useState(readAddress);
  useEffect(() => {
    const update = () => setAddress(readAddress());
    window.addEventListener("popstate", update);
    return () => window.removeEventListener("popstate", update);
  }, []);
  const navigate = useCallback((to: string, how: "push" | "replace" = "push") => {
    if (how === "push") window.history.pushState(null, "", to);
    else window.history.replaceState(null, "", to);
    setAddress(readAddress());
  }, []);
  const location = useMemo<Location>(() => {
    const query = new URLSearchParams(address.search);
    const setQuery = (changes: Record<string, string | null>) => {
      for (const [name, value] of Object.entries(changes)) {
        if (value === null || value === "") query.delete(name);
        else query.set(name, value);
      }
      const text = query.toString();
      navigate(text === "" ? address.path : `${address.path}?${text}`, "replace");
    };
    const params = findRoute(routes, address.path)?.params ?? {};
    return { path: address.path, params, query, navigate, setQuery };
  }, [address, routes, navigate]);
  return <LocationContext value={location}>{children}</LocationContext>;
}

/** Properties of a link to another page. */
export interface LinkProps {
  to: string;
  children: ReactNode;
  className?: string;
  isCurrent?: boolean;
}

/** Link to another page of the dashboard. A modifier key opens a new tab, as usual. */
export function Link({ to, children, className, isCurrent = false }: LinkProps) {
  const { navigate } = useLocation();
  const follow = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} className={className} onClick={follow} aria-current={isCurrent ? "page" : undefined}>
      {children}
    </a>
  );
}

const components = new Map<Route, ComponentType>();

/** Returns the component of a route; its code is loaded when it is first shown. */
export function componentOf(route: Route): ComponentType {
  const known = components.get(route);
  if (known !== undefined) return known;
  const component = lazy(route.load);
  components.set(route, component);
  return component;
}
