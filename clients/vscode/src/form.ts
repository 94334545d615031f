/** A form for a tool's arguments, by its schema. Knows no vscode. */

export interface Field {
  name: string;
  required: boolean;
  description: string;
  /** To choose from; absent where one types. */
  choices?: string[];
  /** What stands there first. */
  value: string;
  /** What is wrong with what was typed; `undefined` when it will do. */
  problem(typed: string): string | undefined;
  /** The argument; `undefined` leaves it out. */
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

/** The fields of an object's schema: those that are required first. What they do not see, the daemon checks. */
export function fieldsOf(schema: unknown): Field[] {
  const { properties = {}, required = [] } = (schema ?? {}) as Schema;
  const fields = Object.entries(properties).map(([name, property]) => field(name, property, required.includes(name)));
  return [...fields.filter((each) => each.required), ...fields.filter((each) => !each.required)];
}

/** The arguments of a form that is filled in; both lists are in one order. */
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
    return (typed) => (known.has(typed) ? known.get(typed) : new Error(`one of ${[...known.keys()].join(", ")}`));
  }
  switch (type) {
    case "string":
      return (typed) => string(typed, schema);
    case "integer":
    case "number":
      return (typed) => number(typed, type, schema);
    case "boolean":
      return (typed) => (["true", "false"].includes(typed) ? typed === "true" : new Error("true or false"));
    case "array":
      // A list of words need not be typed as JSON.
      return (typed) => {
        if (!typed.trimStart().startsWith("[") && schema.items?.type === "string") {
          return typed.split(",").map((word) => word.trim());
        }
        const value = json(typed);
        return value instanceof Error || Array.isArray(value) ? value : new Error("a list in JSON: [...]");
      };
    case "object":
      return (typed) => {
        const value = json(typed);
        const fits = value instanceof Error || (typeof value === "object" && value !== null && !Array.isArray(value));
        return fits ? value : new Error("an object in JSON: {...}");
      };
    default:
      return json;
  }
}

function string(typed: string, { minLength = 0, maxLength = Infinity, pattern }: Schema): string | Error {
  const length = [...typed].length;
  if (length < minLength) return new Error(`at least ${minLength} characters`);
  if (length > maxLength) return new Error(`at most ${maxLength} characters`);
  if (pattern !== undefined && !matches(pattern, typed)) return new Error(`must match ${pattern}`);
  return typed;
}

function matches(pattern: string, typed: string): boolean {
  try {
    return new RegExp(pattern, "u").test(typed);
  } catch {
    return true; // Written for another engine: the daemon will tell.
  }
}

function number(typed: string, type: "integer" | "number", schema: Schema): number | Error {
  const { minimum = -Infinity, maximum = Infinity } = schema;
  const value = Number(typed);
  if (typed.trim() === "" || !Number.isFinite(value)) return new Error("a number");
  if (type === "integer" && !Number.isInteger(value)) return new Error("a whole number");
  if (value < minimum) return new Error(`at least ${minimum}`);
  if (value > maximum) return new Error(`at most ${maximum}`);
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
  if (type === "array") return "(a list: JSON, or words with commas between)";
  return type === "object" ? "(JSON)" : "";
}
