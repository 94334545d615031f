/** How the daemon has read a command line, on demand. */
import { useState } from "preact/hooks";
import type { Ask, PermissionsCheckResult } from "toold/browser";

import { Badge } from "../../components.tsx";
import { request } from "../../daemon.ts";
import { Text } from "../../text.tsx";
import { report } from "../../toasts.tsx";
import { Effects } from "./effects.tsx";

const TONES = { allow: "good", ask: "warn", deny: "bad" } as const;

export function Explained({ ask }: { ask: Ask }) {
  const [answer, setAnswer] = useState<PermissionsCheckResult>();
  const load = async () => {
    if (answer) return;
    try {
      const { tool, session_id, cwd, target, command = target } = ask;
      const params = { category: "shell", target: command, tool, session_id, cwd, explain: true } as const;
      setAnswer(await request("permissions.check", params));
    } catch (error) {
      report(error);
    }
  };
  return (
    <details class="explained" onToggle={(event) => event.currentTarget.open && void load()}>
      <summary>How this command is read</summary>
      {answer?.commands?.map((command, at) => (
        <div key={at} class="command">
          <p class="row">
            <Text class="mono" value={command.command ?? "a redirect"} max={1000} />
            {command.reads_only && <Badge tone="good">changes nothing</Badge>}
            {command.known && (
              <span class="dim small">
                known: <Text value={`${command.known.name} (${command.known.version})`} />
              </span>
            )}
          </p>
          {command.effects && command.effects.length > 0 && <Effects effects={command.effects} />}
          {command.unsure !== undefined && (
            <p class="small warn">
              not certain: <Text value={command.unsure} />
            </p>
          )}
          {command.words && command.words.length > 0 && (
            <dl class="facts small">
              {command.words.map(({ text, meaning }, word) => (
                <div key={word} class="contents">
                  <dt class="mono">
                    <Text value={text} />
                  </dt>
                  <dd>
                    <Text value={meaning} />
                  </dd>
                </div>
              ))}
            </dl>
          )}
          <ul class="verdicts small">
            {command.parts.map(({ category, target, verdict, rule }, part) => (
              <li key={part}>
                <Badge tone={TONES[verdict]}>{verdict}</Badge> {category}{" "}
                <Text class="mono" value={target} /> <Text class="dim" value={rule} />
              </li>
            ))}
          </ul>
        </div>
      ))}
    </details>
  );
}
