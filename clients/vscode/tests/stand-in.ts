/**
 * A stand-in for the part of VS Code's API that the extension uses, with VS Code's own types, and a user whose actions
 * the tests script. Using anything else of the API throws.
 */
import { readFileSync } from "node:fs";

import type * as vscode from "vscode";

type Made<T> = { -readonly [K in keyof T]: T[K] };
type Listener<T> = (event: T) => unknown;

export class Disposable implements vscode.Disposable {
  static from(...all: { dispose(): unknown }[]): Disposable {
    return new Disposable(() => all.forEach((each) => each.dispose()));
  }
  constructor(private readonly onDispose: () => unknown) {}
  dispose(): void {
    this.onDispose();
  }
}

class EventEmitter<T> implements vscode.EventEmitter<T> {
  readonly #listeners = new Set<Listener<T>>();
  readonly event: vscode.Event<T> = (listener) => {
    this.#listeners.add(listener);
    return new Disposable(() => this.#listeners.delete(listener));
  };
  fire(event: T): void {
    for (const listener of [...this.#listeners]) listener(event);
  }
  dispose(): void {
    this.#listeners.clear();
  }
}

class CancellationTokenSource implements vscode.CancellationTokenSource {
  readonly #cancelled = new EventEmitter<unknown>();
  readonly token: Made<vscode.CancellationToken> = {
    isCancellationRequested: false,
    onCancellationRequested: this.#cancelled.event,
  };
  cancel(): void {
    this.token.isCancellationRequested = true;
    this.#cancelled.fire(undefined);
  }
  dispose(): void {
    this.#cancelled.dispose();
  }
}

class CancellationError extends Error implements vscode.CancellationError {}

export class Uri implements Pick<vscode.Uri, "scheme" | "path" | "fsPath" | "toString"> {
  static file(path: string): vscode.Uri {
    return new Uri("file", path) as Partial<vscode.Uri> as vscode.Uri;
  }
  static from({ scheme, path = "" }: Parameters<typeof vscode.Uri.from>[0]): vscode.Uri {
    return new Uri(scheme, path) as Partial<vscode.Uri> as vscode.Uri;
  }
  private constructor(
    readonly scheme: string,
    readonly path: string,
  ) {}
  get fsPath(): string {
    return this.path;
  }
  toString(): string {
    return `${this.scheme}:${this.scheme === "file" ? "//" : ""}${this.path}`;
  }
}

class Position implements Pick<vscode.Position, "line" | "character"> {
  constructor(
    readonly line: number,
    readonly character: number,
  ) {
    if (line < 0 || character < 0) throw new RangeError("positions count from 0");
  }
}

export class Range implements Pick<vscode.Range, "start" | "end"> {
  readonly start: vscode.Position;
  readonly end: vscode.Position;
  constructor(...given: [number, number, number, number] | [vscode.Position, vscode.Position]) {
    const [start, end] =
      given.length === 4 ? [new Position(given[0], given[1]), new Position(given[2], given[3])] : [given[0], given[1]];
    this.start = start as vscode.Position;
    this.end = end as vscode.Position;
  }
}

class Diagnostic implements Pick<vscode.Diagnostic, "range" | "message" | "severity" | "source"> {
  source?: string;
  constructor(
    readonly range: vscode.Range,
    readonly message: string,
    readonly severity: vscode.DiagnosticSeverity,
  ) {}
}

class TreeItem implements Made<Omit<vscode.TreeItem, "label">> {
  id?: string;
  description?: string | boolean;
  tooltip?: string | vscode.MarkdownString;
  iconPath?: vscode.TreeItem["iconPath"];
  contextValue?: string;
  command?: vscode.Command;
  constructor(
    readonly label: string,
    readonly collapsibleState: vscode.TreeItemCollapsibleState,
  ) {}
}

class Named {
  constructor(readonly id: string) {}
}

class LanguageModelTextPart implements vscode.LanguageModelTextPart {
  constructor(readonly value: string) {}
}

class LanguageModelToolResult implements vscode.LanguageModelToolResult {
  constructor(readonly content: vscode.LanguageModelTextPart[]) {}
}

class McpStdioServerDefinition implements vscode.McpStdioServerDefinition {
  cwd?: vscode.Uri;
  constructor(
    readonly label: string,
    public command: string,
    public args: string[] = [],
    public env: Record<string, string | number | null> = {},
    public version?: string,
  ) {}
}

class TabInputText implements vscode.TabInputText {
  constructor(readonly uri: vscode.Uri) {}
}

class TabInputTextDiff implements vscode.TabInputTextDiff {
  constructor(
    readonly original: vscode.Uri,
    readonly modified: vscode.Uri,
  ) {}
}

/** The actions of the user on prompts. By default, each returns `undefined`; `BACK` is the button that goes back. */
export interface Person {
  notice(message: string, buttons: string[]): Promise<string | undefined> | string | undefined;
  pick(title: string, labels: string[]): Promise<string | string[] | undefined> | string | string[] | undefined;
  type(title: string, validate: (typed: string) => unknown, value: string): Promise<string | undefined> | string | undefined;
}

export const BACK = "(back)";

/** A quick pick or an input box that the extension made: what it sets is kept, and the events can be fired. */
class Input {
  title = "";
  step?: number;
  totalSteps?: number;
  prompt?: string;
  value = "";
  validationMessage?: string;
  buttons: unknown[] = [];
  items: readonly vscode.QuickPickItem[] = [];
  selectedItems: readonly vscode.QuickPickItem[] = [];
  readonly accept = new EventEmitter<void>();
  readonly changeValue = new EventEmitter<string>();
  readonly triggerButton = new EventEmitter<vscode.QuickInputButton>();
  readonly hidden = new EventEmitter<void>();
  readonly onDidAccept = this.accept.event;
  readonly onDidChangeValue = this.changeValue.event;
  readonly onDidTriggerButton = this.triggerButton.event;
  readonly onDidHide = this.hidden.event;

  constructor(private readonly ask: (input: Input) => Promise<string | string[] | undefined>) {}

  /** The title as VS Code shows it. */
  get heading(): string {
    return this.step === undefined ? this.title : `${this.title} (${this.step}/${this.totalSteps})`;
  }

  type(text: string): string | undefined {
    this.value = text;
    this.changeValue.fire(text);
    return this.validationMessage;
  }

  show(): void {
    void this.ask(this).then((answer) => {
      if (answer === BACK && this.buttons.length > 0) return this.triggerButton.fire(this.buttons[0] as vscode.QuickInputButton);
      if (answer !== undefined) {
        this.selectedItems = this.items.filter(({ label }) => [answer].flat().includes(label));
        if (typeof answer === "string") this.type(answer);
        this.accept.fire();
      }
      // Someone who cannot answer gives up; nobody listens any more if the answer was accepted.
      this.hidden.fire();
    });
  }

  dispose(): void {}
}

type OpenDocument = Pick<vscode.TextDocument, "uri" | "version" | "isDirty" | "getText" | "lineAt">;

export class StandIn {
  /** Everything that was shown, in order. */
  readonly shown: string[] = [];
  readonly person: Person = { notice: () => undefined, pick: () => undefined, type: () => undefined };
  readonly settings: Record<string, unknown> = {};
  readonly commands = new Map<string, (...args: never[]) => unknown>();
  readonly chatTools = new Map<string, vscode.LanguageModelTool<object>>();
  readonly trees = new Map<string, vscode.TreeDataProvider<unknown>>();
  readonly problems = new Map<string, readonly vscode.Diagnostic[]>();
  /** Diagnostics, as language servers report them. */
  readonly languageProblems: [vscode.Uri, vscode.Diagnostic[]][] = [];
  readonly contexts: Record<string, unknown> = {};
  readonly documents: OpenDocument[] = [];
  readonly tabs: vscode.Tab[] = [];
  readonly log: string[] = [];
  readonly changed = new EventEmitter<vscode.TextDocumentChangeEvent>();
  readonly saved = new EventEmitter<vscode.TextDocument>();
  readonly closed = new EventEmitter<vscode.TextDocument>();
  readonly configured = new EventEmitter<vscode.ConfigurationChangeEvent>();
  /** Fires after everything that could be seen. */
  readonly seen = new EventEmitter<void>();
  activeTextEditor: vscode.TextEditor | undefined;
  mcp: vscode.McpServerDefinitionProvider | undefined;
  statusItem: Partial<Made<vscode.StatusBarItem>> = {};
  #contents: vscode.TextDocumentContentProvider | undefined;
  readonly #folder: string;
  /** The module that `require("vscode")` returns. */
  readonly api: object;

  constructor(folder: string) {
    this.#folder = folder;
    this.api = this.#make();
  }

  /** Waits until something holds; looks whenever anything happens. */
  async until(what: string, holds: () => boolean, patience = 30_000): Promise<void> {
    if (holds()) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`timed out waiting for ${what}; shown:\n${this.shown.join("\n")}`)),
        patience,
      );
      const listening = this.seen.event(() => {
        if (!holds()) return;
        clearTimeout(timer);
        listening.dispose();
        resolve();
      });
    });
  }

  /** The text that an editor would show at this address. */
  async content(uri: vscode.Uri): Promise<string> {
    if (uri.scheme === "file") return readFileSync(uri.fsPath, "utf8");
    return (await this.#contents!.provideTextDocumentContent(uri, new CancellationTokenSource().token)) ?? "";
  }

  /** A view as text, all unfolded. */
  async view(id: string): Promise<string> {
    const tree = this.trees.get(id)!;
    const lines = async (node: unknown, depth: number): Promise<string> => {
      let text = "";
      for (const child of (await tree.getChildren(node)) ?? []) {
        const { label, description, collapsibleState } = await tree.getTreeItem(child);
        const mark = collapsibleState === 0 ? " " : "v";
        text += `${"  ".repeat(depth)}${mark} ${String(label)}${description ? `  ${String(description)}` : ""}\n`;
        text += await lines(child, depth + 1);
      }
      return text;
    };
    return lines(undefined, 0);
  }

  #make() {
    return this.#strict({
      Disposable,
      EventEmitter,
      CancellationTokenSource,
      CancellationError,
      Uri,
      Position,
      Range,
      Diagnostic,
      TreeItem,
      ThemeIcon: Named,
      ThemeColor: Named,
      LanguageModelTextPart,
      LanguageModelToolResult,
      McpStdioServerDefinition,
      TabInputText,
      TabInputTextDiff,
      QuickInputButtons: { Back: {} },
      QuickPickItemKind: { Separator: -1, Default: 0 },
      DiagnosticSeverity: { Error: 0, Warning: 1, Information: 2, Hint: 3 },
      TreeItemCollapsibleState: { None: 0, Collapsed: 1, Expanded: 2 },
      StatusBarAlignment: { Left: 1, Right: 2 },
      ProgressLocation: { SourceControl: 1, Window: 10, Notification: 15 },
      window: this.#strict(this.#window()),
      workspace: this.#strict(this.#workspace()),
      commands: this.#strict(this.#commandsApi()),
      languages: this.#strict(this.#languages()),
      lm: this.#strict(this.#lm()),
    });
  }

  #show(line: string): void {
    this.shown.push(line);
    this.seen.fire();
  }

  #notice(kind: string) {
    return async (message: string, ...items: unknown[]): Promise<string | undefined> => {
      const buttons = items.filter((item) => typeof item === "string");
      this.#show([`${kind}: ${message}`, ...buttons.map((button) => `  [${button}]`)].join("\n"));
      return this.person.notice(message, buttons);
    };
  }

  #window() {
    const standIn = this;
    type Window = typeof vscode.window;
    const window: Pick<
      Window,
      | "activeTextEditor"
      | "createInputBox"
      | "createOutputChannel"
      | "createQuickPick"
      | "createStatusBarItem"
      | "registerTreeDataProvider"
      | "setStatusBarMessage"
      | "showErrorMessage"
      | "showInformationMessage"
      | "showInputBox"
      | "showQuickPick"
      | "showTextDocument"
      | "showWarningMessage"
      | "withProgress"
    > & { tabGroups: Pick<vscode.TabGroups, "all" | "close"> } = {
      get activeTextEditor() {
        return standIn.activeTextEditor;
      },
      createOutputChannel: (() => {
        const warn = (message: string) => void standIn.log.push(message);
        const channel: Partial<vscode.LogOutputChannel> = { warn, dispose() {} };
        return channel;
      }) as unknown as Window["createOutputChannel"],
      createStatusBarItem: (() => {
        const seen = () => standIn.seen.fire();
        standIn.statusItem = new Proxy<Partial<Made<vscode.StatusBarItem>>>(
          { show() {}, dispose() {} },
          { set: (item, name, value) => (Reflect.set(item, name, value), seen(), true) },
        );
        return standIn.statusItem as vscode.StatusBarItem;
      }) as Window["createStatusBarItem"],
      registerTreeDataProvider(id, provider) {
        standIn.trees.set(id, provider as vscode.TreeDataProvider<unknown>);
        provider.onDidChangeTreeData?.(() => standIn.seen.fire());
        return new Disposable(() => standIn.trees.delete(id));
      },
      setStatusBarMessage(message: string) {
        standIn.#show(`status bar: ${message}`);
        return new Disposable(() => {});
      },
      showErrorMessage: standIn.#notice("error") as Window["showErrorMessage"],
      showInformationMessage: standIn.#notice("information") as Window["showInformationMessage"],
      showWarningMessage: standIn.#notice("warning") as Window["showWarningMessage"],
      async showInputBox(options = {}, token) {
        standIn.#show(`input: ${options.title}${options.prompt ? `\n  ${options.prompt}` : ""}`);
        const typed = standIn.person.type(options.title ?? "", (text) => options.validateInput?.(text), "");
        return orCancelled(typed, token);
      },
      createInputBox: () => {
        const input: Input = new Input(async ({ heading, prompt, value }) => {
          standIn.#show(`input: ${heading}${prompt ? `\n  ${prompt}` : ""}`);
          return standIn.person.type(heading, (text) => input.type(text), value);
        });
        return input as Partial<vscode.InputBox> as vscode.InputBox;
      },
      createQuickPick: (() => {
        return new Input(async ({ heading, items }) => {
          const labels = items.filter(({ kind }) => kind !== -1).map(({ label }) => label);
          standIn.#show([`pick: ${heading}`, ...labels.map((label) => `  ${label}`)].join("\n"));
          return standIn.person.pick(heading, labels);
        });
      }) as unknown as Window["createQuickPick"],
      showQuickPick: (async (
        items: readonly vscode.QuickPickItem[],
        options: vscode.QuickPickOptions = {},
        token?: vscode.CancellationToken,
      ) => {
        const labels = items.map(({ label }) => label);
        standIn.#show([`pick: ${options.title}`, ...labels.map((label) => `  ${label}`)].join("\n"));
        const picked = await orCancelled(standIn.person.pick(options.title ?? "", labels), token);
        if (picked === undefined) return undefined;
        const chosen = items.filter(({ label }) => [picked].flat().includes(label));
        return options.canPickMany ? chosen : chosen[0];
      }) as unknown as Window["showQuickPick"],
      showTextDocument: (async (shown: vscode.TextDocument | vscode.Uri) => {
        const uri = "getText" in shown ? shown.uri : shown;
        standIn.#show(`editor: ${uri.toString()}\n${await standIn.content(uri)}`);
      }) as unknown as Window["showTextDocument"],
      async withProgress(options, task) {
        const source = new CancellationTokenSource();
        standIn.#show(`progress: ${options.title}`);
        standIn.cancelProgress = () => source.cancel();
        const report = ({ message }: { message?: string }) => standIn.#show(`progress: ${options.title}: ${message}`);
        return task({ report }, source.token);
      },
      tabGroups: {
        get all() {
          const group: Partial<vscode.TabGroup> = { tabs: standIn.tabs };
          return [group as vscode.TabGroup];
        },
        close: async (closed: vscode.Tab | vscode.TabGroup | readonly (vscode.Tab | vscode.TabGroup)[]) => {
          for (const tab of [closed].flat() as vscode.Tab[]) standIn.tabs.splice(standIn.tabs.indexOf(tab), 1);
          standIn.seen.fire();
          return true;
        },
      },
    };
    return window;
  }

  /** Presses the button of the last progress notification. */
  cancelProgress = () => {};

  #workspace() {
    const standIn = this;
    const folder: vscode.WorkspaceFolder = { uri: Uri.file(standIn.#folder), name: "work", index: 0 };
    const workspace: Pick<
      typeof vscode.workspace,
      | "getConfiguration"
      | "getWorkspaceFolder"
      | "onDidChangeConfiguration"
      | "onDidChangeTextDocument"
      | "onDidCloseTextDocument"
      | "onDidSaveTextDocument"
      | "openTextDocument"
      | "registerTextDocumentContentProvider"
      | "textDocuments"
      | "workspaceFolders"
    > = {
      workspaceFolders: [folder],
      get textDocuments() {
        return standIn.documents as vscode.TextDocument[];
      },
      getWorkspaceFolder: (uri) => (uri.fsPath.startsWith(`${standIn.#folder}/`) ? folder : undefined),
      getConfiguration(section) {
        const get = (name: string, otherwise?: unknown) => standIn.settings[`${section}.${name}`] ?? otherwise;
        return { get } as Partial<vscode.WorkspaceConfiguration> as vscode.WorkspaceConfiguration;
      },
      onDidChangeConfiguration: standIn.configured.event,
      onDidChangeTextDocument: standIn.changed.event,
      onDidSaveTextDocument: standIn.saved.event,
      onDidCloseTextDocument: standIn.closed.event,
      registerTextDocumentContentProvider(_scheme, provider) {
        standIn.#contents = provider;
        return new Disposable(() => (standIn.#contents = undefined));
      },
      openTextDocument: (async (uri: vscode.Uri) => {
        const text = await standIn.content(uri);
        const document: Partial<vscode.TextDocument> = { uri, getText: () => text };
        return document;
      }) as unknown as typeof vscode.workspace.openTextDocument,
    };
    return workspace;
  }

  #commandsApi() {
    const commands: Pick<typeof vscode.commands, "executeCommand" | "registerCommand"> = {
      registerCommand: (name, run) => {
        this.commands.set(name, run);
        return new Disposable(() => this.commands.delete(name));
      },
      executeCommand: (async (name: string, ...args: never[]) => {
        if (name === "setContext") {
          this.contexts[args[0]!] = args[1];
        } else if (name === "vscode.diff") {
          const [left, right, title] = args as unknown as [vscode.Uri, vscode.Uri, string];
          const input = new TabInputTextDiff(left, right);
          this.tabs.push({ label: title, input } as Partial<vscode.Tab> as vscode.Tab);
          this.#show(`diff: ${title}\n--\n${await this.content(left)}--\n${await this.content(right)}--`);
        } else {
          const run = this.commands.get(name);
          if (!run) throw new Error(`no command ${name}`);
          return run(...args);
        }
        return undefined;
      }) as unknown as typeof vscode.commands.executeCommand,
    };
    return commands;
  }

  #languages() {
    const languages: Pick<typeof vscode.languages, "createDiagnosticCollection" | "getDiagnostics"> = {
      createDiagnosticCollection: () => {
        const collection: Partial<vscode.DiagnosticCollection> = {
          set: ((uri: vscode.Uri, found: readonly vscode.Diagnostic[]) => {
            this.problems.set(uri.fsPath, found);
            this.seen.fire();
          }) as vscode.DiagnosticCollection["set"],
          clear: () => {
            this.problems.clear();
            this.seen.fire();
          },
          dispose() {},
        };
        return collection as vscode.DiagnosticCollection;
      },
      getDiagnostics: (() => this.languageProblems) as unknown as typeof vscode.languages.getDiagnostics,
    };
    return languages;
  }

  #lm() {
    const lm: Pick<typeof vscode.lm, "registerTool" | "registerMcpServerDefinitionProvider"> = {
      registerTool: (name, tool) => {
        this.chatTools.set(name, tool as unknown as vscode.LanguageModelTool<object>);
        return new Disposable(() => this.chatTools.delete(name));
      },
      registerMcpServerDefinitionProvider: (_id, provider) => {
        this.mcp = provider;
        return new Disposable(() => (this.mcp = undefined));
      },
    };
    return lm;
  }

  #strict<T extends object>(part: T): T {
    return new Proxy(part, {
      get(target, name) {
        // The bundle's interoperation with ES modules looks for these.
        if (name === "__esModule" || name === "then" || name === "default") return undefined;
        if (!(name in target)) throw new Error(`the stand-in has no ${String(name)}`);
        return Reflect.get(target, name) as unknown;
      },
    });
  }
}

export { CancellationTokenSource };

/** The user's answer, or nothing as soon as the token fires. */
async function orCancelled<T>(
  answer: Promise<T> | T,
  token: vscode.CancellationToken | undefined,
): Promise<T | undefined> {
  const cancelled = new Promise<undefined>((resolve) => token?.onCancellationRequested(() => resolve(undefined)));
  return Promise.race([answer, cancelled]);
}
