/** Messages of the window, whose texts may be anybody's: they show no links, which could run any command of the editor. */
import * as vscode from "vscode";

import { plain } from "../prompts.js";

type Show = typeof vscode.window.showInformationMessage;

function withoutLinks(show: () => Show): Show {
  const all = (message: string, ...rest: unknown[]) => (show() as (...all: unknown[]) => unknown)(plain(message), ...rest);
  return all as Show;
}

export const information = withoutLinks(() => vscode.window.showInformationMessage);
export const warning = withoutLinks(() => vscode.window.showWarningMessage);
export const problem = withoutLinks(() => vscode.window.showErrorMessage);
