/** The texts and buttons of permission requests and questions. Does not use `vscode`. */
import {
  isForWorkspace,
  type Answer,
  type Ask,
  type FilesHistoryResult,
  type PermissionsLevelResult,
  type Question,
  type Reply,
  type Scope,
  type SessionInfo,
} from "toold";

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
  session: "in this session",
  project: "in this project",
  always: "always",
};

/**
 * The message and buttons of a permission request, with a button for each suggestion. `folders` are those of the window: the
 * message names another one.
 */
export function askView(ask: Ask, folders: readonly string[]): AskView {
  const chain = ask.chain?.length ? ` through ${ask.chain.join(", ")}` : "";
  // Several agents may wait for the same answer.
  const agents = (ask.agents ?? [ask.agent]).filter((agent) => agent !== undefined && agent !== "vscode");
  const agent = agents.length === 0 ? "" : ` for ${agents.join(" and ")}`;
  const subagent = ask.subagent === undefined ? "" : `, sub-agent ${ask.subagent}`;
  const who =
    (ask.source.kind === "builtin" ? ask.tool : `${ask.tool} (${ask.source.kind} ${ask.source.name})`) + agent + subagent;
  const session = ask.session_name === undefined ? SCOPES.session : `in ${ask.session_name}`;
  const inSession: Button = { title: `Allow ${session}`, reply: { action: "allow", scope: "session" } };
  const deny: Button = { title: "Deny", reply: { action: "deny" } };
  if (isForWorkspace(ask)) {
    const remembered: Button = { title: "Allow, and remember it for this client", reply: { action: "allow", scope: "always" } };
    const message = `${who}${chain} wants a folder to work in: ${ask.reason ?? ask.target}`;
    return { message, buttons: [remembered, inSession, deny] };
  }
  const line = ask.command !== undefined && ask.command !== ask.target ? `, of: ${ask.command}` : "";
  const said = ask.description ? `the agent says: ${ask.description}` : undefined;
  const careful = ask.misleading?.map((warning) => `careful: ${warning}`) ?? [];
  const level = ask.level === undefined || ask.level === "read" ? undefined : `level ${ask.level}`;
  const place = folders.includes(ask.cwd) ? undefined : `in ${ask.cwd}`;
  const all = [ask.reason, said, ...careful, level, place, until(ask.expires_at)];
  const notes = all.filter((note) => note !== undefined && note !== null && note !== "");
  const reason = notes.length === 0 ? "" : ` (${notes.join("; ")})`;
  const buttons: Button[] = [{ title: "Allow once", reply: { action: "allow", scope: "once" } }];
  if (ask.parts?.length)
    buttons.push({
      title: "Allow all parts once",
      reply: { action: "allow", scope: "once", all_parts: true },
    });
  if (ask.suggestions.length > 0) {
    buttons.push(
      inSession,
      { title: "Allow in this project for 1 hour", reply: { action: "allow", scope: "project", expires_in: 3600 } },
      { title: `Allow ${SCOPES.project}`, reply: { action: "allow", scope: "project" } },
      { title: `Allow ${SCOPES.always}`, reply: { action: "allow", scope: "always" } },
    );
  }
  for (const { scope, pattern, covers } of ask.suggestions.filter(({ pattern }) => pattern !== ask.target)) {
    const place = scope === "session" ? session : SCOPES[scope];
    const what = shortened(pattern, ask.cwd, "./") + (covers === undefined ? "" : ` (${covers})`);
    buttons.push({ title: `Allow ${place}: ${what}`, reply: { action: "allow", scope, pattern } });
  }
  buttons.push(deny);
  const part = ask.part === undefined ? "" : ` (${ask.part} of ${ask.parts?.length})`;
  return { message: `${who}${chain} wants ${verb(ask)}${part}: ${shortened(ask.target, ask.cwd)}${line}${reason}`, buttons };
}

/** Without what the window would make a link of, such as `[Allow](command:...)`. */
export function plain(text: string): string {
  return text.replace(/\]\((?=(?:https?|command|file):)/gi, "] (");
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

export type Level = NonNullable<SessionInfo["level"]>;

/** From little to much. */
export const LEVELS: readonly Level[] = ["read", "edit", "develop", "operate"];

const ABOUT: Record<Level, string> = {
  read: "only reading needs no approval",
  edit: "changes of files in the session's folders need no approval",
  develop: "builds and tests need no approval either, where commands can be confined",
  operate: "downloads, and installations into the session's folders, need no approval either",
};

export interface LevelPick {
  label: string;
  detail: string;
  /** Absent for the level of the configuration. */
  level?: Level;
}

/** The levels to choose from, with the one that counts now. */
export function levelChoices({ level: now, unconfined }: PermissionsLevelResult): LevelPick[] {
  const levels = LEVELS.map((level): LevelPick => {
    const confined = level === "read" || unconfined === undefined ? "" : `; commands ask all the same: ${unconfined}`;
    return { label: level === now ? `${level} (now)` : level, detail: ABOUT[level] + confined, level };
  });
  return [...levels, { label: "configured", detail: "the level of the configuration" }];
}

/** A session as a person knows it. */
export function sessionLabel({ session_id, client }: SessionInfo): string {
  return client === undefined || client === null ? session_id : `${client.name} (${session_id})`;
}

/** When the answer comes too late, for a prompt that does not wait for long: its message stays as it was shown. */
function until(expiresAt: string): string | undefined {
  const expires = new Date(expiresAt);
  const left = expires.getTime() - Date.now();
  return left < 5 * 60_000 ? `answer by ${expires.toLocaleTimeString()}` : undefined;
}
