/** The texts and buttons of permission requests and questions. Does not use `vscode`. */
import { isForWorkspace, type Answer, type Ask, type FilesHistoryResult, type Question, type Reply, type Scope } from "toold";

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
  // Several agents may wait for the same answer.
  const agents = (ask.agents ?? [ask.agent]).filter((agent) => agent !== undefined && agent !== "vscode");
  const agent = agents.length === 0 ? "" : ` for ${agents.join(" and ")}`;
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

/** Opens the list of all answers. */
export const MORE = "More...";

/** Characters of buttons that fit into a notification, which cuts longer titles off. */
const MAX_TITLES = 45;

/** The titles for a notification: all answers if they fit, else the first and the last, and a button for all. */
export function shortTitles(buttons: readonly Button[], others: readonly string[]): string[] {
  const titles = buttons.map(({ title }) => title);
  if ([...titles, ...others].join("").length <= MAX_TITLES) return [...titles, ...others];
  return [titles[0]!, MORE, ...others, titles.at(-1)!];
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

export interface Change {
  path: string;
  label: string;
  description: string;
}

/** The last change of each file below these folders that can be undone, the latest first. */
export function lastChanges(changes: FilesHistoryResult["changes"], folders: readonly string[]): Change[] {
  const last = new Map<string, Change>();
  for (const { path, tool, at, undone, created, removed } of changes) {
    const folder = folders.find((each) => path.startsWith(`${each}/`));
    if (undone || folder === undefined) continue;
    const what = removed ? "removed by" : created ? "created by" : "changed by";
    // Again at the end, which is the latest.
    last.delete(path);
    const label = path.slice(folder.length + 1);
    last.set(path, { path, label, description: `${what} ${tool}, ${new Date(at).toLocaleTimeString()}` });
  }
  return [...last.values()].reverse();
}
