/** A form as a sequence of steps: one for each required field, then a list of the optional ones. */
import * as vscode from "vscode";

import type { Field, Typed } from "../form.js";
import { BACK, pickStep, typeStep, type Step } from "./steps.js";

export interface FormOptions {
  title: string;
  /** The label of the item that completes the form. */
  submit: string;
  /** The texts to begin with, such as those of the last time. */
  last?: Typed;
  /** Whether there is a step before the form. */
  back?: boolean;
  token?: vscode.CancellationToken;
}

/** The texts of the fields; `undefined` when you dismiss a step, `BACK` when you leave the first one backwards. */
export async function fillIn(fields: readonly Field[], options: FormOptions): Promise<Typed | typeof BACK | undefined> {
  const typed = new Map<string, string>();
  const required = fields.filter((field) => field.required);
  const optional = fields.filter((field) => !field.required);
  const total = required.length + (optional.length > 0 ? 1 : 0);
  let at = 0;
  while (at < total) {
    const { title, token } = options;
    const step = { title, token, step: at + 1, total, back: at > 0 || options.back === true };
    const field = required[at];
    const answer = field
      ? await ask(field, typed.get(field.name) ?? options.last?.get(field.name), { ...step, title: `${title}: ${field.name}` })
      : await chooseOptional(optional, typed, options, step);
    if (answer === undefined) return undefined;
    if (answer === BACK) {
      if (at === 0) return BACK;
      at -= 1;
    } else {
      if (field) typed.set(field.name, answer);
      at += 1;
    }
  }
  return typed;
}

/** Lists the optional fields until the form is complete. */
async function chooseOptional(
  optional: readonly Field[],
  typed: Map<string, string>,
  options: FormOptions,
  step: Step,
): Promise<string | typeof BACK | undefined> {
  for (;;) {
    const items: (vscode.QuickPickItem & { field?: Field })[] = [
      { label: `$(play) ${options.submit}` },
      { label: "Optional", kind: vscode.QuickPickItemKind.Separator },
      ...optional.map((field) => ({ label: field.name, description: described(field, typed), detail: field.description, field })),
    ];
    const chosen = await pickStep(items, { ...step, placeholder: `Enter to ${options.submit.toLowerCase()}, or choose a value to set` });
    if (chosen === undefined || chosen === BACK) return chosen;
    const field = chosen[0]?.field;
    if (!field) return "";
    const last = typed.get(field.name) ?? options.last?.get(field.name);
    const answer = await ask(field, last, { title: `${options.title}: ${field.name} (optional)`, token: options.token, back: true });
    if (answer === undefined) return undefined;
    if (answer === "") typed.delete(field.name);
    else if (answer !== BACK) typed.set(field.name, answer);
  }
}

function described(field: Field, typed: Typed): string {
  const text = typed.get(field.name);
  if (text !== undefined) return field.secret ? "= \u2022\u2022\u2022" : `= ${text}`;
  return [field.expected, field.value && `default ${field.value}`].filter(Boolean).join("; ");
}

/** The text of one field; empty to leave it out. */
async function ask(field: Field, last: string | undefined, step: Step): Promise<string | typeof BACK | undefined> {
  const value = last ?? field.value;
  if (!field.choices) {
    const { description, expected, secret: password, problem } = field;
    const prompt = description && expected ? `${description} (${expected})` : description || expected;
    return typeStep({ ...step, prompt, value, password, problem });
  }
  const choices = field.choices.map(({ label, typed }) => ({ label, typed, description: typed === label ? "" : typed }));
  const none = field.required || field.several ? [] : [{ label: "Leave it out", typed: "", description: "" }];
  const items = [...choices, ...none];
  const before = field.several ? selection(value) : [value];
  const selected = items.filter(({ typed }) => before.includes(typed));
  const placeholder = field.description || field.expected;
  const picked = await pickStep(items, { ...step, placeholder, several: field.several, selected });
  if (picked === undefined || picked === BACK) return picked;
  if (!field.several) return picked[0]!.typed;
  return picked.length === 0 && !field.required ? "" : JSON.stringify(picked.map(({ typed }) => typed));
}

/** The choices in a JSON list. */
function selection(typed: string): string[] {
  try {
    return [JSON.parse(typed) as unknown].flat().map(String);
  } catch {
    return [];
  }
}
