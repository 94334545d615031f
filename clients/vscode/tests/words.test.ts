/** Forms, diffs and texts, from plain data without a daemon. */
import assert from "node:assert/strict";

import type { Ask } from "toold";

import { test } from "../../typescript/tests/folders.js";
import { invocationMessage, texts } from "../src/chat.js";
import { sides } from "../src/diff.js";
import { argumentsOf, fieldsOf } from "../src/form.js";
import { describeProblems, describeSelection, type EditorProblem } from "../src/provided.js";
import { answerOf, askView, picks } from "../src/prompts.js";
import { statusView } from "../src/status.js";

const FORM = fieldsOf({
  properties: {
    depth: { type: "integer", minimum: 1, maximum: 9, default: 3 },
    path: { type: "string", description: "The folder.", minLength: 1 },
    mode: { enum: ["fast", "slow"] },
    words: { type: "array", items: { type: "string" } },
    deep: { type: "boolean" },
    more: { type: ["object", "null"] },
  },
  required: ["path", "mode"],
});
const field = (name: string) => FORM.find((each) => each.name === name)!;

test("a form asks for what is required first", () => {
  assert.deepEqual(
    FORM.map(({ name }) => name),
    ["path", "mode", "depth", "words", "deep", "more"],
  );
  assert.equal(field("depth").value, "3");
  assert.deepEqual(field("mode").choices, ["fast", "slow"]);
  assert.deepEqual(field("deep").choices, ["", "true", "false"]);
});

test("a form says what is wrong while one types", () => {
  const problems = (name: string, ...typed: string[]) => typed.map((each) => field(name).problem(each));
  assert.deepEqual(problems("depth", "", "x", "1.5", "0", "10", "4"), [
    undefined,
    "expected a number",
    "expected a whole number",
    "expected at least 1",
    "expected at most 9",
    undefined,
  ]);
  assert.deepEqual(problems("path", "", "a"), ["expected at least 1 characters", undefined]);
  const oneOf = "expected one of fast, slow";
  assert.deepEqual(problems("mode", "", "slow", "medium"), ["mode is required", undefined, oneOf]);
  assert.deepEqual(problems("more", "[]", "{}"), ["expected a JSON object: {...}", undefined]);
  assert.match(field("more").problem("{")!, /JSON/);
});

test("a form that is filled in gives arguments, without what was left out", () => {
  assert.deepEqual(argumentsOf(FORM, ["src", "fast", "", "a, b", "true", ""]), {
    path: "src",
    mode: "fast",
    words: ["a", "b"],
    deep: true,
  });
  assert.deepEqual(argumentsOf(FORM, ["src", "slow", "2", '["a,b"]', "", '{"x": 1}']), {
    path: "src",
    mode: "slow",
    depth: 2,
    words: ["a,b"],
    more: { x: 1 },
  });
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
  suggestions: [],
  asked_at: "",
  expires_at: "",
};

test("an ask for a folder says who wants it, and offers no patterns", () => {
  const { message, buttons } = askView(ASK);
  assert.equal(message, `list wants a folder to work in: ${ASK.reason}`);
  assert.deepEqual(
    buttons.map(({ title, reply }) => [title, reply.action, reply.scope]),
    [
      ["Allow and remember", "allow", "always"],
      ["Allow for this session", "allow", "session"],
      ["Deny", "deny", undefined],
    ],
  );
  const suggestions = [{ scope: "session", pattern: ASK.target } as const];
  assert.equal(askView({ ...ASK, suggestions }).buttons[0]?.title, "Allow once");
});
