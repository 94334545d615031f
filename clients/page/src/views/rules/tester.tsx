/** "What would happen if": the decision about a call that nobody makes, with the parsed command and what decides. */
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Category, PermissionsCheckResult } from "toold/browser";

import { Badge } from "../../components.tsx";
import { session } from "../../daemon.ts";
import { Text, visible } from "../../text.tsx";
import { CATEGORIES, check, deciderId } from "./permissions.ts";
import { VerdictBadge } from "./verdict.tsx";

/** The elements that show what decided in the last test. */
export const deciders = signal<ReadonlySet<string>>(new Set());

type Command = NonNullable<PermissionsCheckResult["commands"]>[number];
type Part = Command["parts"][number];

const TARGETS: Readonly<Record<Category, string>> = {
  shell: "git push origin main && make > build.log",
  "file.write": "src/main.rs",
  "file.read": "/etc/hosts",
  network: "example.org:443",
  mcp: "server/tool",
  plugin: "tool_name",
  agent: "explore",
};

export function Tester() {
  const [category, setCategory] = useState<Category>("shell");
  const [target, setTarget] = useState("");
  const [tool, setTool] = useState("");
  const [cwd, setCwd] = useState("");
  const [result, setResult] = useState<PermissionsCheckResult>();
  const [problem, setProblem] = useState<string>();
  useEffect(() => () => void (deciders.value = new Set()), []);
  const test = async (event: Event) => {
    event.preventDefault();
    try {
      const answer = await check(category, target, { tool: tool.trim() || undefined, cwd: cwd.trim() || undefined });
      setResult(answer);
      setProblem(undefined);
      deciders.value = new Set(
        rulesOf(answer)
          .map(deciderId)
          .filter((id) => id !== undefined),
      );
    } catch (error) {
      setResult(undefined);
      setProblem(error instanceof Error ? error.message : String(error));
      deciders.value = new Set();
    }
  };
  return (
    <section class="card" aria-labelledby="tester-title">
      <h2 id="tester-title">What would happen if</h2>
      <form class="tester" onSubmit={(event) => void test(event)}>
        <label>
          Category
          <select value={category} onChange={({ currentTarget }) => setCategory(currentTarget.value as Category)}>
            {CATEGORIES.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
        </label>
        <label class="tester-target">
          {category === "shell" ? "Command line" : "Target"}
          <input
            class="mono"
            required
            spellcheck={false}
            autocapitalize="off"
            placeholder={TARGETS[category]}
            value={target}
            onInput={({ currentTarget }) => setTarget(currentTarget.value)}
          />
        </label>
        <label>
          Tool <span class="small dim">optional, for rules that name tools</span>
          <input
            class="mono"
            spellcheck={false}
            value={tool}
            onInput={({ currentTarget }) => setTool(currentTarget.value)}
          />
        </label>
        <label>
          Folder <span class="small dim">optional</span>
          <input
            class="mono"
            spellcheck={false}
            placeholder={session.value?.cwd}
            value={cwd}
            onInput={({ currentTarget }) => setCwd(currentTarget.value)}
          />
        </label>
        <button type="submit" class="primary">
          Test
        </button>
      </form>
      {problem !== undefined && (
        <p class="problem" role="alert">
          <Text value={problem} max={600} />
        </p>
      )}
      {result && <Answer result={result} />}
    </section>
  );
}

function rulesOf({ rule, parts = [], commands = [] }: PermissionsCheckResult): string[] {
  return [rule, ...parts.map((part) => part.rule), ...commands.flatMap((each) => each.parts.map((part) => part.rule))];
}

function Answer({ result }: { result: PermissionsCheckResult }) {
  const { verdict, rule, parts = [], commands = [] } = result;
  return (
    <div class="stack" role="status">
      <p class="row">
        <VerdictBadge verdict={verdict} /> <Decider rule={rule} />
      </p>
      {commands.length > 0 ? (
        <ol class="command-tree" aria-label="How the command line was parsed">
          {commands.map((command, at) => (
            <CommandNode key={at} command={command} />
          ))}
        </ol>
      ) : (
        parts.length > 0 && <Parts parts={parts} />
      )}
    </div>
  );
}

function CommandNode({ command }: { command: Command }) {
  const { command: text, known, words = [], unsure, reads_only, parts } = command;
  return (
    <li>
      <p class="row">
        {text === undefined ? <Badge>redirect</Badge> : <Text class="mono parsed-command" value={text} max={1000} />}
        {known && (
          <span title={`As in ${visible(known.version)}`}>
            <Badge tone="good">known: {visible(known.name)}</Badge>
          </span>
        )}
        {isUnknown(command) && <Badge tone="warn">unknown program</Badge>}
        {reads_only && <Badge tone="good">only reads</Badge>}
      </p>
      {unsure !== undefined && (
        <p class="unsure">
          Its effect is not certain: <Text value={unsure} max={600} />. No pattern with a wildcard matches it.
        </p>
      )}
      {words.length > 0 && (
        <ul class="parsed-words" aria-label="Words that the program interprets">
          {words.map(({ text, meaning }, at) => (
            <li key={at}>
              <Text class="mono" value={text} />{" "}
              <span class="dim">
                <Text value={meaning} />
              </span>
            </li>
          ))}
        </ul>
      )}
      <Parts parts={parts} />
    </li>
  );
}

/** Built-in commands of the shell are not among the known programs, but their words are. */
function isUnknown({ command, known, words = [], reads_only }: Command): boolean {
  return command !== undefined && known === undefined && words.length === 0 && !reads_only;
}

/** The permissions that a command needs: its own, and those for the files that it names. */
function Parts({ parts }: { parts: readonly Part[] }) {
  return (
    <ul class="needs" aria-label="Permissions that it needs">
      {parts.map(({ category, target, verdict, rule }, at) => (
        <li key={at}>
          <VerdictBadge verdict={verdict} /> <code>{category}</code> <Text class="mono" value={target} max={600} />{" "}
          <Decider rule={rule} />
        </li>
      ))}
    </ul>
  );
}

/** The rule or grant that decides, as a button that leads to it when it is in the lists below. */
function Decider({ rule }: { rule: string }) {
  const id = deciderId(rule);
  const text = <Text value={rule} max={600} />;
  if (id === undefined) return <span class="dim">{text}</span>;
  return (
    <button type="button" class="plain decider" onClick={() => show(id)}>
      {text}
    </button>
  );
}

function show(id: string): void {
  const element = document.getElementById(id);
  element?.scrollIntoView({ block: "center" });
  element?.focus();
}
