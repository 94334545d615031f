/** Forms, diffs and texts, from plain data without a daemon. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import type { Ask, Tool } from "toold";

import { test } from "../../typescript/tests/folders.js";
import { invocationMessage, texts } from "../src/chat.js";
import { sides } from "../src/diff.js";
import { argumentsOf, fieldsOf } from "../src/form.js";
import { describeProblems, describeSelection, type EditorProblem } from "../src/provided.js";
import { answerOf, askView, lastChanges, MORE, picks, plain, shortTitles } from "../src/prompts.js";
import { Recent } from "../src/recent.js";
import { statusView } from "../src/status.js";
import { toolItems } from "../src/tool-items.js";

const FORM = fieldsOf({
  properties: {
    depth: { type: "integer", minimum: 1, maximum: 9, default: 3 },
    path: { type: "string", description: "The folder.", minLength: 1 },
    mode: { enum: ["fast", "slow"] },
    words: { type: "array", items: { type: "string", maxLength: 3 }, maxItems: 2, uniqueItems: true },
    deep: { type: "boolean" },
    more: { type: ["object", "null"], properties: { x: { type: "number" } }, additionalProperties: false, required: ["x"] },
    size: { anyOf: [{ $ref: "#/$defs/Size" }, { type: "null" }] },
    days: { type: "array", items: { enum: [1, 2, 3] } },
    ratio: { type: "number", exclusiveMinimum: 0, exclusiveMaximum: 1, multipleOf: 0.25 },
    day: { type: "string", format: "date" },
    code: { type: "string", pattern: "^[a-z]{2}$" },
    either: { anyOf: [{ type: "integer" }, { type: "string", maxLength: 2 }] },
    loop: { $ref: "#/$defs/Loop" },
    odd: { type: "string", pattern: "(?i)x" },
    password: { type: "string", writeOnly: true },
  },
  required: ["path", "mode"],
  $defs: {
    Size: { oneOf: [{ const: "s", title: "Small" }, { const: "l", title: "Large" }] },
    Loop: { anyOf: [{ $ref: "#/$defs/Loop" }, { type: "null" }] },
  },
});
const labels = (name: string) => field(name).choices?.map(({ label }) => label);
const field = (name: string) => FORM.find((each) => each.name === name)!;

test("a form asks for what is required first", () => {
  assert.deepEqual(
    FORM.slice(0, 4).map(({ name }) => name),
    ["path", "mode", "depth", "words"],
  );
  assert.equal(field("depth").value, "3");
  assert.deepEqual(labels("mode"), ["fast", "slow"]);
  assert.deepEqual(labels("deep"), ["true", "false"]);
  assert.deepEqual([labels("size"), field("size").several], [["Small", "Large"], false]);
  assert.deepEqual([labels("days"), field("days").several], [["1", "2", "3"], true]);
});

test("a form says what is expected while you type", () => {
  const cases: [field: string, typed: string, problem: string | undefined][] = [
    ["depth", "", undefined],
    ["depth", "x", "expected a whole number from 1 to 9"],
    ["depth", "1.5", "expected a whole number"],
    ["depth", "0", "expected at least 1"],
    ["depth", "10", "expected at most 9"],
    ["depth", "4", undefined],
    ["path", "", "expected at least 1 character"],
    ["path", "a", undefined],
    ["mode", "", "mode is required: expected one of fast, slow"],
    ["mode", "medium", "expected one of fast, slow"],
    ["mode", "slow", undefined],
    ["deep", "yes", "expected true or false"],
    ["more", "[]", "expected a JSON object or null"],
    ["more", "{", "expected a JSON object, and this is not JSON"],
    ["more", "{}", "expected also x"],
    ["more", '{"x": "1"}', "x: expected a number"],
    ["more", '{"x": 1, "y": 2}', "y: not expected here"],
    ["more", '{"x": 1}', undefined],
    ["words", "a, b", undefined],
    ["words", "a, a", "expected no entry twice"],
    ["words", "a, b, c", "expected at most 2 entries"],
    ["words", "a, long", "1: expected at most 3 characters, not 4"],
    ["size", "m", "expected one of: s; l"],
    ["size", "l", undefined],
    ["days", '["1","3"]', undefined],
    ["days", '["7"]', "0: expected one of 1, 2, 3"],
    ["ratio", "0", "expected more than 0"],
    ["ratio", "1", "expected less than 1"],
    ["ratio", "0.3", "expected a multiple of 0.25"],
    ["ratio", "0.75", undefined],
    ["day", "tomorrow", "expected a date, such as 2026-01-31"],
    ["day", "2026-11-25", undefined],
    ["code", "abc", "expected text that matches ^[a-z]{2}$"],
    ["either", "abc", "expected one of: a whole number; text"],
    ["either", "ab", undefined],
    ["either", "7", undefined],
    ["loop", "anything", undefined],
    ["odd", "a pattern for another regex engine is the daemon's to check", undefined],
  ];
  assert.deepEqual(
    cases.map(([name, typed]) => [name, typed, field(name).problem(typed)]),
    cases,
  );
  assert.deepEqual([field("password").secret, field("path").secret], [true, false]);
  assert.equal(field("ratio").expected, "a number, more than 0, less than 1");
});

test("a form that is filled in gives arguments, without what was left out", () => {
  const typed = (texts: Record<string, string>) => new Map(Object.entries(texts));
  assert.deepEqual(argumentsOf(FORM, typed({ path: "src", mode: "fast", words: "a, b", deep: "true" })), {
    path: "src",
    mode: "fast",
    words: ["a", "b"],
    deep: true,
  });
  const all = { path: "src", mode: "slow", depth: "2", words: '["a,b"]', more: '{"x": 1}', days: '["1","2"]', size: "s" };
  assert.deepEqual(argumentsOf(FORM, typed(all)), {
    path: "src",
    mode: "slow",
    depth: 2,
    words: ["a,b"],
    more: { x: 1 },
    days: [1, 2],
    size: "s",
  });
  assert.deepEqual(fieldsOf(undefined), []);
});

test("what you called last is remembered, but no secrets and no documents", async () => {
  const memory = new Map<string, unknown>();
  const recent = new Recent({ get: (key) => memory.get(key) as never, update: async (key, value) => void memory.set(key, value) });
  await recent.called("greet", FORM, new Map([["path", "src"], ["password", "hunter2"], ["code", "x".repeat(5000)]]));
  await recent.called("read", FORM, new Map());
  await recent.called("greet", FORM, new Map([["mode", "fast"]]));
  assert.deepEqual(recent.tools(), ["greet", "read"]);
  assert.deepEqual(Object.fromEntries(recent.typed("greet")), { path: "src", mode: "fast" });
  assert.doesNotMatch(JSON.stringify([...memory]), /hunter2/);
  for (let i = 0; i < 100; i++) await recent.called(`tool_${i}`, [], new Map());
  assert.ok(recent.tools().length < 50);
});

test("tools are listed by the last calls, then by source, each with what it does and may need", () => {
  const tool = (name: string, source: Tool["source"], more: Partial<Tool> = {}): Tool => ({
    name,
    label: `Label of ${name}`,
    description: `Does ${name}. And more.`,
    input_schema: {},
    source,
    parallelizable: false,
    permissions: [],
    cacheable: false,
    annotations: {},
    ...more,
  });
  const builtin = { kind: "builtin", name: "builtin" } as const;
  const tools = [
    tool("write", builtin, { permissions: ["file.write"] }),
    tool("read", builtin, { annotations: { read_only: true } }),
    tool("near", { kind: "plugin", name: "local" }),
    tool("far", { kind: "mcp", name: "server" }),
  ];
  const items = toolItems(tools, ["near", "unloaded"]);
  assert.deepEqual(
    items.map(({ label, description = "", detail = "" }) => [label, description, detail]),
    [
      ["Called last", "", ""],
      ["near", "plugin local", "Does near"],
      ["Built-in", "", ""],
      ["read", "built-in: Label of read", "Does read \u2014 only reads"],
      ["write", "built-in: Label of write", "Does write \u2014 may need: file.write"],
      ["MCP servers", "", ""],
      ["far", "mcp server", "Does far"],
    ],
  );
});

const DIFF = `--- a/t.txt
+++ b/t.txt
@@ -1,3 +1,4 @@
 one
-two
+TWO
+and a half
 three
@@ -6 +7,2 @@
-six
\\ No newline at end of file
+SIX
+seven
`;

test("a diff becomes the file before and after", () => {
  const before = "one\ntwo\nthree\nfour\nfive\nsix";
  assert.deepEqual(sides(DIFF, before), { before, after: "one\nTWO\nand a half\nthree\nfour\nfive\nSIX\nseven\n" });
  const created = "--- /dev/null\n+++ b/new\n@@ -0,0 +1,2 @@\n+x\n+y\n\\ No newline at end of file\n";
  assert.deepEqual(sides(created, ""), { before: "", after: "x\ny" });
  const added = "@@ -2,0 +3 @@\n+new\n";
  assert.equal(sides(added, "1\n2\n3\n").after, "1\n2\nnew\n3\n");
});

test("a diff that does not fit shows its own parts", () => {
  assert.deepEqual(sides(DIFF, "something else\n"), {
    before: "one\ntwo\nthree\nsix",
    after: "one\nTWO\nand a half\nthree\nSIX\nseven\n",
  });
});

test("the status bar says who waits for whom", () => {
  const view = (connected: boolean, running: number, asks: number) => statusView({ connected, running, asks });
  assert.deepEqual([view(false, 0, 0).text, view(false, 0, 0).command], ["$(debug-disconnect) toold", "toold.connect"]);
  assert.deepEqual([view(true, 0, 0).text, view(true, 0, 0).command], ["$(tools) toold", "toold.call"]);
  assert.deepEqual(
    [view(true, 2, 0).text, view(true, 2, 0).command],
    ["$(tools) toold $(sync~spin) 2", "toold.cancel"],
  );
  const asked = view(true, 1, 1);
  assert.deepEqual(
    [asked.text, asked.command, asked.warning],
    ["$(bell-dot) toold 1 $(sync~spin) 1", "toold.answer", true],
  );
  assert.equal(asked.tooltip, "1 call running, 1 request waiting. Click to answer.");
});

const QUESTION = {
  request_id: "q",
  session_id: "s",
  call_id: "c",
  question: "Which?",
  options: [{ id: "a", label: "A", description: "first" }],
  multiple: false,
  allow_other: true,
  asked_at: "",
  expires_at: "",
};

test("a question offers its options, and own words where they will do", () => {
  assert.deepEqual(
    picks(QUESTION).map(({ id }) => id),
    ["a", undefined],
  );
  assert.deepEqual(picks({ ...QUESTION, allow_other: false }).length, 1);
  assert.deepEqual(picks({ ...QUESTION, options: [] }), []);
  const [option, other] = picks(QUESTION);
  assert.deepEqual(answerOf([option!]), { answer_ids: ["a"] });
  assert.equal(answerOf([other!]), "words");
  assert.deepEqual(answerOf(undefined), { cancelled: true });
});

test("results are texts, and what is none is named", () => {
  const content = [
    { type: "text", text: "hello" },
    { type: "image", data: "AAAA", mime_type: "image/png" },
    { type: "resource", uri: "file:///x", mime_type: "text/plain" },
  ] as const;
  assert.deepEqual(texts({ content: [...content] }), [
    "hello",
    "[image, image/png, 3 bytes]",
    "[file:///x, text/plain]",
  ]);
  assert.equal(invocationMessage("bash", { timeout_ms: 1, command: "ls\nrm" }), "bash: ls");
  assert.equal(invocationMessage("todo", { items: [] }), "todo");
});

const PROBLEMS: EditorProblem[] = [
  { path: "/w/b.ts", line: 2, column: 1, severity: "warning", message: "unused" },
  { path: "/w/src/a.ts", line: 9, column: 5, severity: "error", message: "no such name", source: "ts" },
  { path: "/w/src/a.ts", line: 3, column: 5, severity: "hint", message: "could be const" },
  { path: "/other/c.ts", line: 1, column: 1, severity: "error", message: "odd" },
];

test("problems are listed, the gravest first, for a file, a folder or all", () => {
  const list = (path?: string, severity?: EditorProblem["severity"]) =>
    describeProblems(PROBLEMS, { path, severity, cwd: "/w" });
  assert.equal(
    list(),
    "/other/c.ts:1:1: error: odd\nsrc/a.ts:9:5: error: no such name [ts]\nb.ts:2:1: warning: unused",
  );
  assert.equal(list("src/"), "src/a.ts:9:5: error: no such name [ts]");
  assert.equal(list("/w/src/a.ts", "hint").split("\n").length, 2);
  assert.equal(list("sr"), "no problems");
});

test("the selection is shown with its place, or the cursor's line", () => {
  const selection = { path: "/w/a.ts", firstLine: 2, lastLine: 3, text: "x\ny", cursorLine: "y", unsaved: true };
  assert.equal(describeSelection(selection, "/w"), "a.ts (unsaved), lines 2 to 3:\nx\ny");
  const cursor = { ...selection, text: "", lastLine: 2, unsaved: false };
  assert.equal(describeSelection(cursor, "/w"), "a.ts, the cursor is on line 2, nothing is selected:\ny");
  assert.equal(describeSelection(undefined, "/w"), "no file is open in the editor");
});

const ASK: Ask = {
  request_id: "1",
  session_id: "s",
  call_id: "c",
  call_ids: ["c"],
  category: "file.read",
  target: "/home/me/docs",
  tool: "list",
  source: { kind: "builtin", name: "builtin" },
  cwd: "/home/me/docs",
  reason: "use /home/me/docs as a workspace of claude: its tools may read everything in there",
  level: "read",
  suggestions: [],
  asked_at: "",
  expires_at: "",
};

test("an ask for a folder says who wants it, and offers no patterns", () => {
  const { message, buttons } = askView(ASK, []);
  assert.equal(message, `list wants a folder to work in: ${ASK.reason}`);
  assert.deepEqual(
    buttons.map(({ title, reply }) => [title, reply.action, reply.scope]),
    [
      ["Allow, and remember it for this client", "allow", "always"],
      ["Allow in this session", "allow", "session"],
      ["Deny", "deny", undefined],
    ],
  );
  const suggestions = [{ scope: "session", pattern: ASK.target } as const];
  assert.equal(askView({ ...ASK, suggestions }, []).buttons[0]?.title, "Allow once");
});

test("an ask says who asks and where, and each answer where it holds", () => {
  const ask: Ask = {
    ...ASK,
    category: "mcp",
    target: "docs/search",
    tool: "docs_search",
    source: { kind: "mcp", name: "docs" },
    agent: "codex",
    subagent: "Explore (a1)",
    session_name: "this codex session",
    level: "edit",
    reason: '{"q": "x"}',
    description: "looks it up",
    misleading: ["look twice"],
    suggestions: [
      { scope: "session", pattern: "docs/search" },
      { scope: "session", pattern: "docs/mcp:read", covers: "the tools of docs that only read, as docs itself says" },
    ],
  };
  const { message, buttons } = askView(ask, ["/home/me/src"]);
  const notes = '{"q": "x"}; the agent says: looks it up; careful: look twice; level edit';
  const who = "docs_search (mcp docs) for codex, sub-agent Explore (a1)";
  assert.equal(message, `${who} wants to call: docs/search (${notes}; in /home/me/docs)`);
  assert.equal(askView(ask, ["/home/me/docs"]).message, `${who} wants to call: docs/search (${notes})`);
  assert.deepEqual(
    buttons.map(({ title }) => title),
    [
      "Allow once",
      "Allow in this codex session",
      "Allow in this project for 1 hour",
      "Allow in this project",
      "Allow always",
      "Allow in this codex session: docs/mcp:read (the tools of docs that only read, as docs itself says)",
      "Deny",
    ],
  );
});

// All clients describe in the same words what an answer covers, and each is tested with these cases.
test("the answers are those of all clients", () => {
  const file = join(import.meta.dirname, "../../../../../proto/tests/answers.json");
  const cases = JSON.parse(readFileSync(file, "utf8")) as { name: string; ask: Ask; answers: string[] }[];
  for (const { name, ask, answers } of cases) {
    const titles = askView(ask, []).buttons.map(({ title }) => title.charAt(0).toLowerCase() + title.slice(1));
    assert.deepEqual(titles, answers, name);
  }
});

test("an ask names every agent that waits for the answer", () => {
  const agents = ["codex", "vscode", "claude"];
  const suggestions = [{ scope: "session", pattern: ASK.target } as const];
  assert.match(askView({ ...ASK, suggestions, agent: "codex", agents }, []).message, /^list for codex and claude wants /);
});

test("a notification has the answers that fit, and a button for all", () => {
  const titles = (...all: string[]) => shortTitles(all.map((title) => ({ title, reply: { action: "deny" } })), ["Diff"]);
  assert.deepEqual(titles("Allow once", "Deny"), ["Allow once", "Deny", "Diff"]);
  const pattern = "Allow in this session: ./some/long/folder/**";
  assert.deepEqual(titles("Allow once", "Allow in this session", pattern, "Deny"), ["Allow once", MORE, "Diff", "Deny"]);
});

test("no text from outside becomes a link in a message, which could run a command of the editor", () => {
  const link = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^)\s]+)/i;
  for (const target of ["[Allow once](command:x.y?1)", "a[0](HTTPS://x.example)", "[x]\u200b[y](file:///etc)"]) {
    assert.doesNotMatch(plain(target), link);
  }
  assert.equal(plain("a[0](1); [b](c)"), "a[0](1); [b](c)");
});

test("the last change of each file in the window's folders can be undone, the latest first", () => {
  const change = (path: string, tool: string, more = {}) => {
    return { session_id: "s", call_id: "c", tool, path, at: "2026-01-31T09:30:00Z", created: false, undone: false, ...more };
  };
  const changes = [
    change("/w/a.txt", "write", { created: true }),
    change("/w/b.txt", "edit"),
    change("/w/a.txt", "edit"),
    change("/w/c.txt", "edit", { undone: true }),
    change("/elsewhere/d.txt", "edit"),
    change("/w/e.txt", "bash", { removed: true }),
  ];
  assert.deepEqual(
    lastChanges(changes, ["/w"]).map(({ label, description }) => `${label} ${description.replace(/,.*/, "")}`),
    ["e.txt removed by bash", "a.txt changed by edit", "b.txt changed by edit"],
  );
});
