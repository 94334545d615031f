/** Rules that would have given the person's answers of the last days, to accept one by one. */
import { signal } from "@preact/signals";
import { useState } from "preact/hooks";

import { confirm } from "../../confirm.tsx";
import { Text, oneLine } from "../../text.tsx";
import { report, toast } from "../../toasts.tsx";
import { Effects } from "../decide/effects.tsx";
import { accept, permissions, refresh, sessions, suggested, type SuggestedRule } from "./permissions.ts";

/** In the select of places: every folder. */
const EVERYWHERE = "";

const key = ({ category, pattern }: { category: string; pattern: string }) => `${category} ${pattern}`;

/** Suggestions that the person does not want, until the page is loaded again. */
const rejected = signal<ReadonlySet<string>>(new Set());

export function Suggestions() {
  const granted = new Set((permissions.value?.grants ?? []).filter(({ action }) => action === "allow").map(key));
  const rules = suggested.value.filter((rule) => !granted.has(key(rule)) && !rejected.value.has(key(rule)));
  if (rules.length === 0) return null;
  return (
    <section class="stack" aria-labelledby="suggestions-title">
      <h2 id="suggestions-title">Suggested by your answers</h2>
      <ul class="entries" aria-label="Suggested by your answers">
        {rules.map((rule) => (
          <SuggestionRow key={key(rule)} rule={rule} />
        ))}
      </ul>
    </section>
  );
}

function SuggestionRow({ rule }: { rule: SuggestedRule }) {
  const { category, pattern, count, effects = [] } = rule;
  // A client that works in no project, such as this page, has the root as its folder.
  const projects = [...new Set(sessions.value.map(({ project }) => project))].filter((project) => project !== "/").sort();
  const [place = projects[0] ?? EVERYWHERE, setPlace] = useState<string>();
  const allow = async () => {
    const project = place === EVERYWHERE ? undefined : place;
    const where = project === undefined ? "everywhere" : `in ${project}`;
    const yes = await confirm({
      title: "Allow this from now on?",
      body: `${category} ${oneLine(pattern)}\n\nIt is allowed ${where}, to every agent, until you revoke it.`,
      action: "Allow it",
      danger: true,
    });
    if (!yes) return;
    try {
      await accept(rule, project);
      toast("It is allowed from now on.");
    } catch (error) {
      report(error);
    }
    await refresh().catch(report);
  };
  return (
    <li>
      <p>
        <code>{category}</code> <Text class="mono" value={pattern} max={600} />
      </p>
      <p class="small dim">would have given {count} of your answers of the last 7 days</p>
      {effects.length > 0 && <Effects effects={effects} />}
      <div class="buttons">
        <button type="button" aria-label={`Allow ${oneLine(pattern).slice(0, 80)}`} onClick={() => void allow()}>
          Allow
        </button>
        <label class="row">
          <span class="hidden">Where {pattern} is allowed</span>
          <select value={place} onChange={({ currentTarget }) => setPlace(currentTarget.value)}>
            {projects.map((project) => (
              <option key={project} value={project}>
                in {project}
              </option>
            ))}
            <option value={EVERYWHERE}>everywhere</option>
          </select>
        </label>
        <button type="button" class="plain" onClick={() => (rejected.value = new Set([...rejected.value, key(rule)]))}>
          Go on asking
        </button>
      </div>
    </li>
  );
}
