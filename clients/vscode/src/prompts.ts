/** The texts and buttons of permission requests and questions. Does not use `vscode`. */
import { isForWorkspace, type Answer, type Ask, type Question, type Reply, type Scope } from "toold";

export interface Button {
  title: string;
  reply: Reply;
}

export interface AskView {
  message: string;
  buttons: Button[];
}

const SCOPES: Record<Scope, string> = {
  once: "once",
  session: "for this session",
  project: "in this project",
  always: "always",
};

/** The answers for a folder. The first one is remembered for the client. */
const FOLDER: Button[] = [
  { title: "Allow and remember", reply: { action: "allow", scope: "always" } },
  { title: "Allow for this session", reply: { action: "allow", scope: "session" } },
  { title: "Deny", reply: { action: "deny" } },
];

/** The message and buttons of a permission request, with a button for each suggestion. */
export function askView(ask: Ask): AskView {
  const chain = ask.chain?.length ? ` through ${ask.chain.join(", ")}` : "";
  const agent = ask.agent === undefined || ask.agent === "vscode" ? "" : ` for ${ask.agent}`;
  const who = (ask.source.kind === "builtin" ? ask.tool : `${ask.tool} (${ask.source.kind} ${ask.source.name})`) + agent;
  if (isForWorkspace(ask)) {
    return { message: `${who}${chain} wants a folder to work in: ${ask.reason ?? ask.target}`, buttons: FOLDER };
  }
  const line = ask.command !== undefined && ask.command !== ask.target ? `, of: ${ask.command}` : "";
  const reason = ask.reason ? ` (${ask.reason})` : "";
  const buttons: Button[] = [{ title: "Allow once", reply: { action: "allow", scope: "once" } }];
  if (ask.parts?.length)
    buttons.push({
      title: `Allow all ${ask.parts.length} parts once`,
      reply: { action: "allow", scope: "once", all_parts: true },
    });
  for (const { scope, pattern } of ask.suggestions) {
    const what = pattern === ask.target ? "" : ` ${shortened(pattern, ask.cwd, "./")}`;
    buttons.push({ title: `Allow${what} ${SCOPES[scope]}`, reply: { action: "allow", scope, pattern } });
  }
  buttons.push({ title: "Deny", reply: { action: "deny" } });
  const part = ask.part === undefined ? "" : ` (${ask.part} of ${ask.parts?.length})`;
  return { message: `${who}${chain} wants ${verb(ask)}${part}: ${shortened(ask.target, ask.cwd)}${line}${reason}`, buttons };
}

function verb(ask: Ask): string {
  switch (ask.category) {
    case "file.read":
      return "to read";
    case "file.write":
      return "to write";
    case "shell":
      return "to run";
    case "network":
      return "to reach";
    case "mcp":
      return "to call";
    case "agent":
      return "to start the agent";
    case "plugin":
      return "to use";
  }
}

/** A path, relative to the folder that the call works in if it is inside. */
function shortened(text: string, cwd: string, here = ""): string {
  return text.startsWith(`${cwd}/`) ? here + text.slice(cwd.length + 1) : text;
}

export interface Pick {
  label: string;
  detail?: string;
  /** The option; absent for an answer as free text. */
  id?: string;
}

/** The choices of a question. */
export function picks(question: Question): Pick[] {
  const options: Pick[] = question.options.map(({ id, label, description }) => ({ label, detail: description, id }));
  if (question.allow_other && options.length > 0)
    options.push({ label: "Something else...", detail: "Type an answer" });
  return options;
}

/** The answer for a choice, or "words" when the user wants to type one. */
export function answerOf(chosen: readonly Pick[] | undefined): Answer | "words" {
  if (chosen === undefined || chosen.length === 0) return { cancelled: true };
  if (chosen.some((pick) => pick.id === undefined)) return "words";
  return { answer_ids: chosen.map((pick) => pick.id!) };
}
