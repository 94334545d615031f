/** The walkthrough of `package.json`: context keys check off its steps. */
import * as vscode from "vscode";

export class Walkthrough {
  readonly #done = new Set<string>();

  /** Sets the context key `toold.STEP`. */
  async set(step: "connected" | "called" | "answered", done: boolean): Promise<void> {
    if (done) this.#done.add(step);
    else this.#done.delete(step);
    await setContext(step, done);
  }

  async open(): Promise<void> {
    // VS Code checks off a step when its key changes, and not when the key is set before VS Code first needs the steps.
    for (const step of this.#done) await setContext(step, false);
    await vscode.commands.executeCommand("workbench.action.openWalkthrough", "toold.toold#toold.start");
    for (const step of this.#done) await setContext(step, true);
  }
}

async function setContext(step: string, done: boolean): Promise<void> {
  await vscode.commands.executeCommand("setContext", `toold.${step}`, done);
}
