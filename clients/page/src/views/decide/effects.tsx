/** What a command does, in words, the worst first. */
import type { Ask } from "toold/browser";

import { Badge } from "../../components.tsx";

export type Effect = NonNullable<Ask["effects"]>[number];

/** As in the daemon: each completes the sentence "the command ...". */
const IN_WORDS: Record<Effect, string> = {
  privilege: "gains rights that you do not have otherwise",
  secret: "handles secrets",
  destroy: "may remove what cannot be brought back",
  system: "changes this machine's system",
  publish: "publishes",
  change: "changes a service or a database",
  send: "sends data to another machine",
  install: "fetches code of others and may run it",
  process: "signals other processes",
  build: "runs code of the project",
  history: "changes Git's history or index",
  write: "changes files",
  fetch: "reads from the network",
  read: "reads",
};

/** As the daemon gives the reason of an ask when it is only what the command does. */
export function inWords(effects: readonly Effect[]): string {
  return effects.map((effect) => IN_WORDS[effect]).join(", ");
}

/** Those that no pattern covers which stops before the operation. */
const WORST: ReadonlySet<Effect> = new Set(["privilege", "secret", "destroy", "system", "publish"]);

export function Effects({ effects }: { effects: readonly Effect[] }) {
  return (
    <span class="row effects">
      {effects.map((effect) => (
        <Badge key={effect} tone={WORST.has(effect) ? "bad" : "warn"}>
          {IN_WORDS[effect] ?? effect}
        </Badge>
      ))}
    </span>
  );
}
