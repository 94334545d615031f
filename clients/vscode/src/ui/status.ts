/** The item in the status bar. */
import * as vscode from "vscode";

import type { Link, Part } from "../link.js";
import { statusView } from "../status.js";

export function showStatus(link: Link, changed: vscode.Event<Part>): vscode.Disposable {
  const item = vscode.window.createStatusBarItem("toold.status", vscode.StatusBarAlignment.Left);
  item.name = "toold";
  const show = () => {
    const view = statusView({ connected: link.connected, running: link.running.size, asks: link.asks.size });
    item.text = view.text;
    item.tooltip = view.tooltip;
    item.command = view.command;
    item.backgroundColor = view.warning ? new vscode.ThemeColor("statusBarItem.warningBackground") : undefined;
  };
  show();
  item.show();
  return vscode.Disposable.from(item, changed(show));
}
