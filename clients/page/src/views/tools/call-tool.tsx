/** Calling a tool: its arguments as a form or as JSON, and the button that runs it. */
import { useMemo, useRef, useState } from "preact/hooks";
import type { Tool } from "toold/browser";

import { link, session } from "../../daemon.ts";
import { Text } from "../../text.tsx";
import { calls, problemsOf, startCall } from "./calls.ts";
import { ArgumentsForm, withoutEmpty } from "./form/form.tsx";
import { findProblems, type ArgumentProblem } from "./form/problems.ts";
import { formSchema, hasFields } from "./form/schema.ts";
import type { FormContext } from "./form/widgets.tsx";
import { CopyCall, Inspector } from "./inspector.tsx";
import { Outcome } from "./result.tsx";
import { Running } from "./running.tsx";

type Arguments = Record<string, unknown>;

export function CallTool({ tool }: { tool: Tool }) {
  const schema = useMemo(() => formSchema(tool.input_schema), [tool]);
  const context = useRef<FormContext>({ broken: new Map() });
  const [tab, setTab] = useState<"form" | "json">("form");
  const [value, setValue] = useState<Arguments>(() => recall(tool.name) ?? {});
  const [text, setText] = useState("");
  const [cleared, setCleared] = useState(0);
  const [found, setFound] = useState<readonly ArgumentProblem[]>();
  const call = calls.value.get(tool.name);
  const running = call !== undefined && call.end.value === undefined;
  const end = call?.end.value;
  // Until something is changed, the daemon's refusal of the last call counts.
  const problems = useMemo(() => found ?? problemsOf(end), [found, end]);
  const args = tab === "form" ? (withoutEmpty(schema, value) as Arguments) : parsed(text);

  const change = (next: Arguments) => {
    setValue(next);
    // Once shown, problems follow what is entered.
    if (problems.length > 0) setFound(findProblems(tool.input_schema, withoutEmpty(schema, next)));
  };
  const show = (next: "form" | "json") => {
    if (next === tab) return;
    if (next === "json") setText(JSON.stringify(args, null, 2));
    else if (typeof args === "object" && args !== null && !Array.isArray(args)) setValue(args as Arguments);
    setFound(undefined);
    setTab(next);
  };
  const clear = () => {
    sessionStorage.removeItem(key(tool.name));
    setValue({});
    setText("{}");
    setFound([]);
    setCleared(cleared + 1);
  };
  const run = (event: Event) => {
    event.preventDefault();
    if (running || args === undefined) return;
    if (tab === "form") {
      const broken = [...context.current.broken.values()].map((path) => ({ path, message: "is not JSON" }));
      const all = [...findProblems(tool.input_schema, args), ...broken];
      setFound(all.length > 0 ? all : undefined);
      if (all.length > 0) return;
    }
    remember(tool.name, args);
    setFound(undefined);
    startCall(tool.name, args);
  };
  return (
    <form class="stack" data-tool={tool.name} onSubmit={run} noValidate onKeyDown={(event) => runByKey(event, run)}>
      <div class="tabs buttons" role="group" aria-label="Arguments as">
        <button type="button" aria-pressed={tab === "form"} onClick={() => show("form")}>
          Form
        </button>
        <button type="button" aria-pressed={tab === "json"} onClick={() => show("json")}>
          JSON
        </button>
        <button type="button" class="plain" onClick={clear}>
          Clear
        </button>
      </div>
      {tab === "json" ? (
        <JsonEditor text={text} schema={tool.input_schema} onChange={setText} />
      ) : hasFields(schema) ? (
        <ArgumentsForm
          // Fields have a text of their own, which a new form forgets.
          key={cleared}
          schema={schema}
          value={value}
          problems={problems}
          context={context.current}
          onChange={change}
        />
      ) : (
        <p class="dim">This tool takes no arguments.</p>
      )}
      {tab === "form" && <Problems problems={problems} />}
      <div class="row">
        <button
          type="submit"
          class="primary"
          disabled={running || args === undefined || link.value.state !== "connected"}
        >
          {running ? "Running…" : "Run"}
        </button>
        <CopyCall tool={tool.name} args={args} folder={session.value?.cwd} />
      </div>
      {call && (
        <div class="stack" aria-live="polite">
          <Running call={call} />
          {end && <Outcome end={end} call={call} />}
          <Inspector call={call} />
        </div>
      )}
    </form>
  );
}

function runByKey(event: KeyboardEvent, run: (event: Event) => void): void {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) run(event);
}

/** All problems at once: some have no field of their own. */
function Problems({ problems }: { problems: readonly ArgumentProblem[] }) {
  if (problems.length === 0) return null;
  return (
    <div class="problem" role="alert">
      <p>The arguments do not match the tool&#39;s schema:</p>
      <ul class="problem-list">
        {problems.map(({ path, message }) => (
          <li key={`${path.join("/")} ${message}`}>
            <Text class="mono" value={path.join(".") || "arguments"} max={80} /> <Text value={message} max={600} />
          </li>
        ))}
      </ul>
    </div>
  );
}

/** For whatever a form cannot express. Arguments that do not match are sent too: that is how to see the refusal. */
function JsonEditor({ text, schema, onChange }: { text: string; schema: unknown; onChange: (text: string) => void }) {
  const value = parsed(text);
  const problems = useMemo(() => (value === undefined ? [] : findProblems(schema, value)), [text, schema]);
  return (
    <div class="stack">
      <textarea
        class="mono json-editor"
        rows={12}
        aria-label="Arguments as JSON"
        spellcheck={false}
        value={text}
        aria-invalid={value === undefined}
        onInput={({ currentTarget }) => onChange(currentTarget.value)}
      />
      {value === undefined && (
        <p class="problem" role="status">
          {syntaxProblem(text)}
        </p>
      )}
      <Problems problems={problems} />
    </div>
  );
}

function parsed(text: string): unknown {
  if (text.trim() === "") return {};
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function syntaxProblem(text: string): string {
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return `This is not JSON yet: ${error instanceof Error ? error.message : error}`;
  }
}

const key = (tool: string) => `toold.arguments.${tool}`;

/** In this tab alone: arguments may be secret. */
function remember(tool: string, args: unknown): void {
  try {
    sessionStorage.setItem(key(tool), JSON.stringify(args));
  } catch {
    // They are too long for the browser.
    sessionStorage.removeItem(key(tool));
  }
}

function recall(tool: string): Arguments | undefined {
  const value = parsed(sessionStorage.getItem(key(tool)) ?? "null");
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Arguments) : undefined;
}
