/** The views and their addresses: `#/decide/REQUEST_ID` is an ask in the view Decide. */
import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useErrorBoundary } from "preact/hooks";
import { Route, Router, Switch, useLocation } from "wouter-preact";
import { useHashLocation } from "wouter-preact/use-hash-location";

import { Empty } from "./components.tsx";
import { onDemand } from "./on-demand.tsx";
import { Block } from "./text.tsx";

interface View {
  path: string;
  title: string;
  /** Goes there after `g`. */
  key: string;
  Component: FunctionComponent;
}

/** A view's folder has its style sheet and its parts; the browser loads it when it is opened first. */
export const VIEWS: readonly View[] = [
  { path: "/now", title: "Now", key: "n", Component: onDemand(() => import("./views/now/index.tsx")) },
  { path: "/decide", title: "Decide", key: "d", Component: onDemand(() => import("./views/decide/index.tsx")) },
  { path: "/tools", title: "Tools", key: "t", Component: onDemand(() => import("./views/tools/index.tsx")) },
  { path: "/sources", title: "Sources", key: "s", Component: onDemand(() => import("./views/sources/index.tsx")) },
  { path: "/rules", title: "Rules", key: "r", Component: onDemand(() => import("./views/rules/index.tsx")) },
  { path: "/history", title: "History", key: "h", Component: onDemand(() => import("./views/history/index.tsx")) },
];

export { Link as ViewLink, useLocation, useRoute } from "wouter-preact";

/** Provides the address to everything below. */
export function HashRouter({ children }: { children: ComponentChildren }) {
  return <Router hook={useHashLocation}>{children}</Router>;
}

/** The view that the first part of the address names. */
export function useView(): View {
  const [path] = useLocation();
  return VIEWS.find((view) => path === view.path || path.startsWith(`${view.path}/`)) ?? VIEWS[0]!;
}

const Start = VIEWS[0]!.Component;

/** The view that the address names. Each view reads the rest of the address by `useRoute`. */
export function Views() {
  const [path] = useLocation();
  // Preact reports an error that a boundary catches nowhere else.
  const [fault, reset] = useErrorBoundary((error) => console.error(error));
  // Another view, or another part of this one, may do better.
  useEffect(reset, [path]);
  if (fault !== undefined) {
    return (
      <Empty title="This view has failed">
        <p>The other views and the daemon are not affected. The browser&#39;s console has the details.</p>
        <Block value={String(fault)} label="Error" />
        <button type="button" onClick={reset}>
          Try again
        </button>
      </Empty>
    );
  }
  return (
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
  );
}
