/** A form for a tool's arguments, from its schema. Does not use `vscode`. */

export interface Field {
  name: string;
  required: boolean;
  description: string;
  /** The choices; absent for a text field. */
  choices?: string[];
  /** The initial text. */
  value: string;
  /** The error in the text; `undefined` if it is valid. */
  problem(typed: string): string | undefined;
  /** The argument; `undefined` omits it. */
  argument(typed: string): unknown;
}

interface Schema {
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  description?: string;
  enum?: unknown[];
  const?: unknown;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  pattern?: string;
  items?: Schema;
}

/** The fields of an object's schema, the required ones first. The daemon checks whatever they do not. */
export function fieldsOf(schema: unknown): Field[] {
  const { properties = {}, required = [] } = (schema ?? {}) as Schema;
  const fields = Object.entries(properties).map(([name, property]) => field(name, property, required.includes(name)));
  return [...fields.filter((each) => each.required), ...fields.filter((each) => !each.required)];
}

/** The arguments of a completed form; both lists have the same order. */
export function argumentsOf(fields: readonly Field[], typed: readonly string[]): Record<string, unknown> {
  const given = fields.map((each, i) => [each.name, each.argument(typed[i] ?? "")] as const);
  return Object.fromEntries(given.filter(([, value]) => value !== undefined));
}

function field(name: string, schema: Schema, required: boolean): Field {
  const types = [schema.type ?? []].flat();
  const type = types.find((each) => each !== "null");
  const read = reader(type, schema);
  const empty = (typed: string) => typed === "" && !(required && type === "string");
  const choices = schema.enum?.map(shown) ?? (type === "boolean" ? ["true", "false"] : undefined);
  return {
    name,
    required,
    description: [schema.description ?? "", limits(type, schema)].filter(Boolean).join(" "),
    choices: choices && !required ? ["", ...choices] : choices,
    value: schema.default === undefined || schema.default === null ? "" : shown(schema.default),
    problem(typed) {
      if (empty(typed)) return required ? `${name} is required` : undefined;
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

function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function reader(type: string | undefined, schema: Schema): (typed: string) => unknown {
  if (schema.enum) {
    const known = new Map(schema.enum.map((value) => [shown(value), value]));
    return (typed) => (known.has(typed) ? known.get(typed) : new Error(`expected one of ${[...known.keys()].join(", ")}`));
  }
  switch (type) {
    case "string":
      return (typed) => string(typed, schema);
    case "integer":
    case "number":
      return (typed) => number(typed, type, schema);
    case "boolean":
      return (typed) => (["true", "false"].includes(typed) ? typed === "true" : new Error("expected true or false"));
    case "array":
      // You can type a list of words without JSON.
      return (typed) => {
        if (!typed.trimStart().startsWith("[") && schema.items?.type === "string") {
          return typed.split(",").map((word) => word.trim());
        }
        const value = json(typed);
        return value instanceof Error || Array.isArray(value) ? value : new Error("expected a JSON list: [...]");
      };
    case "object":
      return (typed) => {
        const value = json(typed);
        const fits = value instanceof Error || (typeof value === "object" && value !== null && !Array.isArray(value));
        return fits ? value : new Error("expected a JSON object: {...}");
      };
    default:
      return json;
  }
}

function string(typed: string, { minLength = 0, maxLength = Infinity, pattern }: Schema): string | Error {
  const length = [...typed].length;
  if (length < minLength) return new Error(`expected at least ${minLength} characters`);
  if (length > maxLength) return new Error(`expected at most ${maxLength} characters`);
  if (pattern !== undefined && !matches(pattern, typed)) return new Error(`must match ${pattern}`);
  return typed;
}

function matches(pattern: string, typed: string): boolean {
  try {
    return new RegExp(pattern, "u").test(typed);
  } catch {
    return true; // Written for another regex engine: the daemon checks it.
  }
}

function number(typed: string, type: "integer" | "number", schema: Schema): number | Error {
  const { minimum = -Infinity, maximum = Infinity } = schema;
  const value = Number(typed);
  if (typed.trim() === "" || !Number.isFinite(value)) return new Error("expected a number");
  if (type === "integer" && !Number.isInteger(value)) return new Error("expected a whole number");
  if (value < minimum) return new Error(`expected at least ${minimum}`);
  if (value > maximum) return new Error(`expected at most ${maximum}`);
  return value;
}

function json(typed: string): unknown {
  try {
    return JSON.parse(typed) as unknown;
  } catch (error) {
    return error as Error;
  }
}

function limits(type: string | undefined, schema: Schema): string {
  if (schema.enum || type === undefined) return "";
  if (type === "array") return "(a list: JSON, or words separated by commas)";
  return type === "object" ? "(JSON)" : "";
}
