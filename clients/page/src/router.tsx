/** The views and their addresses: `#/decide/REQUEST_ID` is an ask in the view Decide. */
import type { ComponentChildren, FunctionComponent } from "preact";
import { lazy, Suspense } from "preact/compat";
import { Route, Router, Switch, useLocation } from "wouter-preact";
import { useHashLocation } from "wouter-preact/use-hash-location";

import { Empty } from "./components.tsx";

interface View {
  path: string;
  title: string;
  /** Goes there after `g`. */
  key: string;
  Component: FunctionComponent;
}

/** A view's folder has its style sheet and its parts; the browser loads it when it is opened first. */
export const VIEWS: readonly View[] = [
  { path: "/now", title: "Now", key: "n", Component: lazy(() => import("./views/now/index.tsx")) },
  { path: "/decide", title: "Decide", key: "d", Component: lazy(() => import("./views/decide/index.tsx")) },
  { path: "/tools", title: "Tools", key: "t", Component: lazy(() => import("./views/tools/index.tsx")) },
  { path: "/sources", title: "Sources", key: "s", Component: lazy(() => import("./views/sources/index.tsx")) },
  { path: "/rules", title: "Rules", key: "r", Component: lazy(() => import("./views/rules/index.tsx")) },
  { path: "/history", title: "History", key: "h", Component: lazy(() => import("./views/history/index.tsx")) },
];

export { Link as ViewLink, useLocation, useRoute } from "wouter-preact";

/** Provides the address to everything below. */
export function HashRouter({ children }: { children: ComponentChildren }) {
  return <Router hook={useHashLocation}>{children}</Router>;
}

/** The view of the address, and the first part of its path. */
export function useView(): View {
  const [path] = useLocation();
  return VIEWS.find((view) => path === view.path || path.startsWith(`${view.path}/`)) ?? VIEWS[0]!;
}

const Start = VIEWS[0]!.Component;

/** The view that the address names. Each view reads the rest of the address by `useRoute`. */
export function Views() {
  return (
    <Suspense fallback={<p class="loading">Loading…</p>}>
      <Switch>
        <Route path="/">
          <Start />
        </Route>
        {VIEWS.map(({ path, Component }) => (
          <Route key={path} path={`${path}/*?`}>
            <Component />
          </Route>
        ))}
        <Route>
          <Empty title="There is no such view" />
        </Route>
      </Switch>
    </Suspense>
  );
}
