/** Quick picks and input boxes as the steps of one form, with a button that goes back. */
import * as vscode from "vscode";

/** The answer of someone who wants to change the step before. */
export const BACK = Symbol("back");

export interface Step {
  title: string;
  placeholder?: string;
  /** From 1; shown with `total`. */
  step?: number;
  total?: number;
  /** Whether there is a step before. */
  back?: boolean;
  /** Closes the step, as Esc does. */
  token?: vscode.CancellationToken;
}

export interface TypeStep extends Step {
  prompt: string;
  /** The initial text, selected. */
  value: string;
  password?: boolean;
  problem(typed: string): string | undefined;
}

/** `undefined` when you dismiss the box. */
export function typeStep(options: TypeStep): Promise<string | typeof BACK | undefined> {
  const box = vscode.window.createInputBox();
  box.prompt = options.prompt;
  box.value = options.value;
  box.valueSelection = [0, options.value.length];
  box.password = options.password ?? false;
  return shown(box, options, (finish) => {
    box.onDidChangeValue((typed) => (box.validationMessage = typed === "" ? undefined : options.problem(typed)));
    box.onDidAccept(() => {
      box.validationMessage = options.problem(box.value);
      if (box.validationMessage === undefined) finish(box.value);
    });
  });
}

/** The items that you pick: one, or with `several` any number; `undefined` when you dismiss the list. */
export function pickStep<I extends vscode.QuickPickItem>(
  items: readonly I[],
  options: Step & { several?: boolean; selected?: readonly I[] },
): Promise<readonly I[] | typeof BACK | undefined> {
  const list = vscode.window.createQuickPick<I>();
  list.matchOnDescription = true;
  list.matchOnDetail = true;
  list.canSelectMany = options.several ?? false;
  list.items = items;
  if (options.selected?.length) {
    if (options.several) list.selectedItems = options.selected;
    else list.activeItems = options.selected;
  }
  return shown(list, options, (finish) => {
    list.onDidAccept(() => {
      if (options.several || list.selectedItems.length > 0) finish(list.selectedItems);
    });
  });
}

function shown<T, Q extends vscode.QuickPick<vscode.QuickPickItem> | vscode.InputBox>(
  input: Q,
  { title, placeholder, step, total, back, token }: Step,
  listen: (finish: (answer: T) => void) => void,
): Promise<T | typeof BACK | undefined> {
  input.title = title;
  input.placeholder = placeholder;
  input.step = step;
  input.totalSteps = total;
  input.buttons = back ? [vscode.QuickInputButtons.Back] : [];
  // You may look something up in another window meanwhile.
  input.ignoreFocusOut = true;
  let cancelling: vscode.Disposable | undefined;
  return new Promise<T | typeof BACK | undefined>((resolve) => {
    cancelling = token?.onCancellationRequested(() => resolve(undefined));
    input.onDidTriggerButton(() => resolve(BACK));
    input.onDidHide(() => resolve(undefined));
    listen(resolve);
    if (token?.isCancellationRequested) resolve(undefined);
    else input.show();
  }).finally(() => {
    cancelling?.dispose();
    input.dispose();
  });
}
