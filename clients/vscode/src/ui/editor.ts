/** The state of the editor, for the tools that it provides. */
import * as vscode from "vscode";

import type { Editor, EditorProblem } from "../provided.js";

const SEVERITIES: Record<vscode.DiagnosticSeverity, EditorProblem["severity"]> = {
  [0]: "error",
  [1]: "warning",
  [2]: "information",
  [3]: "hint",
};

export const editor: Editor = {
  problems() {
    return vscode.languages.getDiagnostics().flatMap(([uri, diagnostics]) => {
      if (uri.scheme !== "file") return [];
      return diagnostics.map(({ range, severity, message, source }) => ({
        path: uri.fsPath,
        line: range.start.line + 1,
        column: range.start.character + 1,
        severity: SEVERITIES[severity],
        message,
        source,
      }));
    });
  },
  selection() {
    const active = vscode.window.activeTextEditor;
    if (!active) return undefined;
    const { document, selection } = active;
    const { start, end } = selection;
    // A selection of whole lines ends at the start of the next line.
    const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
    return {
      path: document.uri.scheme === "file" ? document.uri.fsPath : document.uri.toString(),
      firstLine: start.line + 1,
      lastLine: last + 1,
      text: document.getText(selection),
      cursorLine: document.lineAt(selection.active.line).text,
      unsaved: document.isDirty,
    };
  },
};
