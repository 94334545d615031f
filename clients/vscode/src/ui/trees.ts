/** The views of tools and plugins, and the errors of plugins as problems at their lines. */
import * as vscode from "vscode";

import type { Link, Part } from "../link.js";
import { pluginNodes, problems, toolNodes, type Node } from "../nodes.js";

export function showTrees(link: Link, changed: vscode.Event<Part>): vscode.Disposable[] {
  const tools = new Tree(() => toolNodes(link.tools));
  const plugins = new Tree(() => pluginNodes(link.plugins));
  const diagnostics = vscode.languages.createDiagnosticCollection("toold");
  return [
    tools,
    plugins,
    diagnostics,
    vscode.window.registerTreeDataProvider("toold.tools", tools),
    vscode.window.registerTreeDataProvider("toold.plugins", plugins),
    changed((part) => {
      if (part === "tools") tools.refresh();
      if (part !== "plugins") return;
      plugins.refresh();
      showProblems(link, diagnostics);
    }),
  ];
}

class Tree implements vscode.TreeDataProvider<Node>, vscode.Disposable {
  readonly #changed = new vscode.EventEmitter<void>();
  readonly onDidChangeTreeData = this.#changed.event;

  constructor(private readonly roots: () => Node[]) {}

  refresh(): void {
    this.#changed.fire();
  }

  getChildren(node?: Node): Node[] {
    return node ? (node.children ?? []) : this.roots();
  }

  getTreeItem({ id, label, description, tooltip, icon, context, children, file }: Node): vscode.TreeItem {
    const { Collapsed, None } = vscode.TreeItemCollapsibleState;
    const item = new vscode.TreeItem(label, children?.length ? Collapsed : None);
    item.id = id;
    item.description = description;
    item.tooltip = tooltip;
    item.iconPath = new vscode.ThemeIcon(icon);
    item.contextValue = context;
    // A click on a node with children expands it, and opens nothing.
    if (file && !children) {
      const at = new vscode.Position(file.line - 1, 0);
      const selection = new vscode.Range(at, at);
      item.command = { command: "vscode.open", title: "Open", arguments: [vscode.Uri.file(file.path), { selection }] };
    }
    return item;
  }

  dispose(): void {
    this.#changed.dispose();
  }
}

function showProblems(link: Link, diagnostics: vscode.DiagnosticCollection): void {
  const byFile = new Map<string, vscode.Diagnostic[]>();
  for (const { path, line, message } of problems(link.plugins)) {
    // To the end of the line, whatever its length.
    const range = new vscode.Range(line - 1, 0, line - 1, Number.MAX_SAFE_INTEGER);
    const diagnostic = new vscode.Diagnostic(range, message, vscode.DiagnosticSeverity.Error);
    diagnostic.source = "toold";
    byFile.set(path, [...(byFile.get(path) ?? []), diagnostic]);
  }
  diagnostics.clear();
  for (const [path, found] of byFile) diagnostics.set(vscode.Uri.file(path), found);
}
