/** The rules of the configuration files, and the defaults for what no rule matches. */
import type { ComponentChildren } from "preact";

import { Badge, Empty } from "../../components.tsx";
import { Text } from "../../text.tsx";
import { CATEGORIES, DEFAULTS, defaultId, permissions, ruleId } from "./permissions.ts";
import { deciders } from "./tester.tsx";
import { VerdictBadge } from "./verdict.tsx";

export function RuleList() {
  const { rules = [], broken = [] } = permissions.value ?? {};
  return (
    <section class="stack" aria-labelledby="rules-title">
      <h2 id="rules-title">Rules</h2>
      {broken.length > 0 && (
        <div class="broken" role="alert">
          <p>Invalid rules. While there are any, everything that they might deny is denied.</p>
          <ul>
            {broken.map((each) => (
              <li key={each}>
                <Text value={each} max={600} />
              </li>
            ))}
          </ul>
        </div>
      )}
      {permissions.value && rules.length === 0 && (
        <p class="dim">
          There are no rules. Write them in the section <code>[[permission.rules]]</code> of the configuration file.
        </p>
      )}
      <ul class="entries" aria-label="Rules">
        {rules.map(({ category, pattern, action, tools, cwd, effect, agent, source }, at) => (
          <Entry key={at} id={ruleId(at)}>
            <p class="row">
              <VerdictBadge verdict={action} /> <code>{category}</code> <Text class="mono" value={pattern} max={600} />
              {effect !== undefined && <>, effect {effect}</>}
            </p>
            <p class="small dim">
              {agent !== undefined && (
                <>
                  for <Text value={agent} />,{" "}
                </>
              )}
              {tools && (
                <>
                  tools <Text class="mono" value={tools.join(", ")} />,{" "}
                </>
              )}
              {cwd !== undefined && (
                <>
                  in <Text class="mono" value={cwd} />,{" "}
                </>
              )}
              <Text class="mono" value={source} />
            </p>
          </Entry>
        ))}
      </ul>
      <details open>
        <summary>Defaults, where no rule, grant or mode decides</summary>
        <ul class="entries" aria-label="Defaults">
          {CATEGORIES.map((category) => (
            <Entry key={category} id={defaultId(category)}>
              <p class="row">
                <Badge>default</Badge> <code>{category}</code> {DEFAULTS[category]}
              </p>
            </Entry>
          ))}
        </ul>
      </details>
      {permissions.value === undefined && <Empty title="Loading…" />}
    </section>
  );
}

/** A row that is marked when it decided in the last test. */
export function Entry({ id, children }: { id: string; children: ComponentChildren }) {
  const decides = deciders.value.has(id);
  return (
    <li id={id} class={decides ? "decides" : ""} tabIndex={-1}>
      {decides && <span class="hidden">Decided in the test: </span>}
      {children}
    </li>
  );
}
