/** A form as a sequence of input boxes and quick picks. */
import * as vscode from "vscode";

import type { Field } from "../form.js";

/** One prompt for each field; `undefined` when you dismiss one. */
export async function fillIn(
  what: string,
  fields: readonly Field[],
  token?: vscode.CancellationToken,
): Promise<string[] | undefined> {
  const typed: string[] = [];
  for (const [i, field] of fields.entries()) {
    const title = `${what} (${i + 1}/${fields.length}): ${field.name}${field.required ? "" : " (optional)"}`;
    const value = field.choices
      ? await choose(field, field.choices, title, token)
      : await vscode.window.showInputBox(
          {
            title,
            prompt: field.description,
            value: field.value,
            ignoreFocusOut: true,
            validateInput: (text) => field.problem(text),
          },
          token,
        );
    if (value === undefined) return undefined;
    typed.push(value);
  }
  return typed;
}

async function choose(
  field: Field,
  choices: string[],
  title: string,
  token: vscode.CancellationToken | undefined,
): Promise<string | undefined> {
  const items = choices.map((value) => ({ label: value === "" ? "(none)" : value, value }));
  const options = { title, placeHolder: field.description, ignoreFocusOut: true };
  return (await vscode.window.showQuickPick(items, options, token))?.value;
}
