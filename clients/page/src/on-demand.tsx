/** Parts of the page whose code the browser loads when they are shown first. */
import { signal } from "@preact/signals";
import type { FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";

import { Empty } from "./components.tsx";
import { link } from "./daemon.ts";

/**
 * A component whose code is loaded when it is shown first. A failure, such as a daemon that is away, is not the end:
 * the code is loaded again when the connection changes. Meanwhile `Substitute` is shown, with the same properties.
 */
export function onDemand<Props extends object>(
  load: () => Promise<{ default: FunctionComponent<Props> }>,
  Substitute?: FunctionComponent<Props>,
): FunctionComponent<Props> {
  const code = signal<{ Loaded?: FunctionComponent<Props>; problem?: string }>({});
  const attempt = () =>
    loadStyles().then(load).then(
      ({ default: Loaded }) => (code.value = { Loaded }),
      (error: unknown) => (code.value = { ...code.peek(), problem: String(error) }),
    );
  return function OnDemand(props: Props) {
    const { Loaded, problem } = code.value;
    const { state } = link.value;
    useEffect(() => {
      if (code.peek().Loaded === undefined) void attempt();
    }, [state]);
    if (Loaded !== undefined) return <Loaded {...props} />;
    if (Substitute !== undefined) return <Substitute {...props} />;
    if (problem !== undefined && state === "connected") return <NotLoaded problem={problem} />;
    return <p class="loading">Loading…</p>;
  };
}

/** Style sheets that could not be loaded. Vite adds each of them to the document only once. */
const failedStyles = new Set<HTMLLinkElement>();
const noteStyle = ({ target }: Event) => {
  if (target instanceof HTMLLinkElement && target.rel === "stylesheet") failedStyles.add(target);
};
addEventListener("error", noteStyle, { capture: true });

/** Loads those again: code that comes later would otherwise be shown without its styles. */
async function loadStyles(): Promise<void> {
  const loads = [...failedStyles].map((failed) => {
    const link = failed.cloneNode() as HTMLLinkElement;
    const loaded = new Promise<void>((resolve, reject) => {
      link.onload = () => resolve();
      link.onerror = () => reject(new Error(`could not load ${link.href}`));
    });
    failedStyles.delete(failed);
    failed.replaceWith(link);
    return loaded;
  });
  await Promise.all(loads);
}

/** Another daemon may have another version of the page, with other files. */
function NotLoaded({ problem }: { problem: string }) {
  return (
    <Empty title="This part of the page could not be loaded">
      <p class="dim">{problem}</p>
      <button type="button" onClick={() => location.reload()}>
        Load the page again
      </button>
    </Empty>
  );
}
