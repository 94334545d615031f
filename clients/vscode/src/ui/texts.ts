/** Texts that editors show and that are in no file. */
import * as vscode from "vscode";

const SCHEME = "toold";

export class Texts implements vscode.Disposable, vscode.TextDocumentContentProvider {
  readonly #texts = new Map<string, string>();
  readonly #registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  /** Returns the address of the text for editors. */
  put(path: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${path}` });
    this.#texts.set(uri.path, text);
    return uri;
  }

  /** Forgets the texts below a path, and closes the editors that show or compare them. */
  async drop(path: string): Promise<void> {
    const below = (uri: vscode.Uri) => uri.scheme === SCHEME && uri.path.startsWith(`/${path}/`);
    for (const known of this.#texts.keys()) if (known.startsWith(`/${path}/`)) this.#texts.delete(known);
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs);
    const old = tabs.filter(({ input }) => {
      if (input instanceof vscode.TabInputTextDiff) return below(input.modified);
      return input instanceof vscode.TabInputText && below(input.uri);
    });
    if (old.length > 0) await vscode.window.tabGroups.close(old, true);
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.#texts.get(uri.path) ?? "";
  }

  dispose(): void {
    this.#registration.dispose();
    this.#texts.clear();
  }
}
