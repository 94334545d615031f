/** The level of a session: how much runs without an approval. A person changes it. */
import type { SessionInfo } from "toold";
import * as vscode from "vscode";

import type { Link } from "../link.js";
import { LEVELS, levelChoices, sessionLabel, type Level } from "../prompts.js";
import { information, warning } from "./messages.js";

/** The command: shows the level of each session in the folders that are open, and changes that of one. */
export async function changeLevel(link: Link): Promise<void> {
  const session = await chosenSession(link);
  if (session === undefined) return;
  const { session_id } = session;
  const now = await link.client.request("permissions.level", { session_id });
  const title = `${sessionLabel(session)}: ${now.level} (${now.from})`;
  const chosen = await vscode.window.showQuickPick(levelChoices(now), { title });
  if (chosen === undefined) return;
  const raises = chosen.level !== undefined && LEVELS.indexOf(chosen.level) > LEVELS.indexOf(now.level);
  if (raises && !(await confirmed(session, chosen.level!, chosen.detail))) return;
  const set = await link.client.request("permissions.set_level", { session_id, level: chosen.level });
  void information(`The level is ${set.level} (${set.from}).`);
}

async function chosenSession(link: Link): Promise<SessionInfo | undefined> {
  const { sessions } = await link.client.request("session.list", {});
  const folders = (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath);
  const here = sessions.filter(({ cwd }) => folders.some((folder) => cwd === folder || cwd.startsWith(`${folder}/`)));
  const picks = (here.length > 0 ? here : sessions).map((session) => ({
    label: sessionLabel(session),
    detail: session.cwd,
    session,
  }));
  if (picks.length <= 1) return picks[0]?.session;
  return (await vscode.window.showQuickPick(picks, { title: "The level of which session?" }))?.session;
}

async function confirmed(session: SessionInfo, level: Level, about: string): Promise<boolean> {
  const set = `Set ${level}`;
  const message = `Set the level ${level} for ${sessionLabel(session)} in ${session.cwd}? Then ${about}.`;
  return (await warning(message, { modal: true }, set)) === set;
}
