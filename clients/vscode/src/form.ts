/** A form for a tool's arguments, from its schema. Does not use `vscode`. */
import { checker, expected, resolved, shown, typesOf, type Schema } from "./schema.js";

export interface Choice {
  /** The text for `problem` and `argument`. */
  typed: string;
  label: string;
}

export interface Field {
  name: string;
  required: boolean;
  description: string;
  /** The value that is expected, in a few words. */
  expected: string;
  /** The choices; absent for a text field. */
  choices?: Choice[];
  /** Whether several choices make the value; they are typed as a JSON list. */
  several: boolean;
  /** Whether the text must not be shown or remembered. */
  secret: boolean;
  /** The default. */
  value: string;
  /** The error in the text; `undefined` if it is valid. */
  problem(typed: string): string | undefined;
  /** The argument; `undefined` omits it. */
  argument(typed: string): unknown;
}

/** The text of each field that was filled in, by the field's name. */
export type Typed = ReadonlyMap<string, string>;

/** The fields of an object's schema, the required ones first. The daemon checks whatever they do not. */
export function fieldsOf(schema: unknown): Field[] {
  const root = resolved((schema ?? {}) as Schema, (schema ?? {}) as Schema);
  const { properties = {}, required = [] } = root;
  const fields = Object.entries(properties).map(([name, property]) => field(name, property, required.includes(name), root));
  return [...fields.filter((each) => each.required), ...fields.filter((each) => !each.required)];
}

/** The arguments of a completed form. */
export function argumentsOf(fields: readonly Field[], typed: Typed): Record<string, unknown> {
  const given = fields.map((each) => [each.name, each.argument(typed.get(each.name) ?? "")] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function field(name: string, property: Schema, required: boolean, root: Schema): Field {
  const schema = resolved(property, root);
  const check = checker(schema, root);
  const several = typesOf(schema).join() === "array" && choicesOf(schema.items ?? {}, root) !== undefined;
  const empty = (typed: string) => typed === "" && !(required && typesOf(schema).includes("string"));
  const read = (typed: string): unknown => {
    const value = several ? parseSeveral(typed, resolved(schema.items!, root)) : parse(typed, schema);
    const problem = value instanceof Error ? value.message : check(value);
    return problem === undefined ? value : new Error(problem);
  };
  return {
    name,
    required,
    description: schema.description ?? schema.title ?? "",
    expected: [expected(schema), typesOf(schema).includes("array") && !several ? listHint(schema) : ""].join(""),
    choices: several ? choicesOf(schema.items!, root) : choicesOf(schema, root),
    several,
    secret: schema.writeOnly === true || schema.format === "password",
    value: schema.default === undefined || schema.default === null ? "" : shown(schema.default),
    problem(typed) {
      if (empty(typed)) return required ? `${name} is required: expected ${expected(schema) || "a value"}` : undefined;
      const value = read(typed);
      return value instanceof Error ? value.message : undefined;
    },
    argument(typed) {
      if (empty(typed)) return undefined;
      const value = read(typed);
      if (value instanceof Error) throw value;
      return value;
    },
  };
}

function choicesOf(property: Schema, root: Schema): Choice[] | undefined {
  const schema = resolved(property, root);
  if (schema.enum) return schema.enum.filter((value) => value !== null).map((value) => ({ typed: shown(value), label: shown(value) }));
  if (typesOf(schema).join() === "boolean") return ["true", "false"].map((typed) => ({ typed, label: typed }));
  const named = schema.oneOf ?? schema.anyOf;
  if (!named?.length || named.some((each) => each.const === undefined)) return undefined;
  return named.map((each) => ({ typed: shown(each.const), label: each.title ?? shown(each.const) }));
}

function listHint({ items }: Schema): string {
  return items?.type === "string" ? ": words separated by commas, or JSON" : ", as JSON";
}

/** The value that was typed, or an error that says what is expected. */
function parse(typed: string, schema: Schema): unknown {
  const types = typesOf(schema);
  const known = [...(schema.enum ?? []), ...[...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].map((each) => each.const)];
  const chosen = known.find((value) => value !== undefined && shown(value) === typed);
  if (chosen !== undefined) return chosen;
  if (types.join() === "string" || (schema.enum ?? []).some((value) => typeof value === "string")) return typed;
  // You can type a list of words without JSON.
  if (types.includes("array") && schema.items?.type === "string" && !typed.trimStart().startsWith("[")) {
    return typed.split(",").map((word) => word.trim());
  }
  try {
    return JSON.parse(typed) as unknown;
  } catch {
    if (types.length === 0 || types.includes("string")) return typed;
    const json = types.includes("array") || types.includes("object") ? ", and this is not JSON" : "";
    return new Error(`expected ${expected(schema)}${json}`);
  }
}

/** Each choice of a list is as it would be alone. */
function parseSeveral(typed: string, items: Schema): unknown {
  const list = parse(typed, { type: "array", items: { type: "string" } });
  return Array.isArray(list) ? list.map((each) => (typeof each === "string" ? parse(each, items) : (each as unknown))) : list;
}
