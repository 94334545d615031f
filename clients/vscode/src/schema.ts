/** Checks of one argument against its JSON Schema, in words for the person who types it. Does not use `vscode`. */
import { Validator, type OutputUnit, type Schema as AnySchema } from "@cfworker/json-schema";

export interface Schema {
  $ref?: string;
  $defs?: Record<string, Schema>;
  definitions?: Record<string, Schema>;
  type?: string | string[];
  properties?: Record<string, Schema>;
  required?: string[];
  title?: string;
  description?: string;
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  oneOf?: Schema[];
  default?: unknown;
  format?: string;
  writeOnly?: boolean;
  minimum?: number;
  maximum?: number;
  exclusiveMinimum?: number;
  exclusiveMaximum?: number;
  items?: Schema;
}

/** Definitions may refer to themselves. */
const MAX_DEPTH = 8;

/** The schema of a property without its reference, and without the alternative `null`, which a form cannot enter. */
export function resolved(property: Schema, root: Schema, depth = 0): Schema {
  if (depth > MAX_DEPTH) return property;
  const { $ref, ...own } = property;
  const [, place, name] = /^#\/(\$defs|definitions)\/([^/]+)$/.exec($ref ?? "") ?? [];
  const target = place === undefined ? undefined : root[place as "$defs" | "definitions"]?.[name!];
  if (target !== undefined) return resolved({ ...target, ...own }, root, depth + 1);
  for (const kind of ["anyOf", "oneOf"] as const) {
    const { [kind]: all, ...rest } = property;
    const [only, ...others] = all?.filter((each) => each.type !== "null") ?? [];
    if (only && others.length === 0) return resolved({ ...only, ...rest }, root, depth + 1);
  }
  return property;
}

/** The types of a schema other than `null`; empty if it allows all. */
export function typesOf({ type }: Schema): string[] {
  return [type ?? []].flat().filter((each) => each !== "null");
}

export function shown(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/**
 * Returns a function that says what is expected instead of a value, or `undefined` for a valid one. The daemon checks
 * again, so a schema that cannot be read here accepts everything.
 */
export function checker(property: Schema, root: Schema): (value: unknown) => string | undefined {
  const { $defs, definitions } = root;
  let validator: Validator | undefined;
  try {
    validator = new Validator({ $defs, definitions, ...property } as AnySchema, "2020-12");
  } catch {
    return () => undefined;
  }
  return (value) => {
    try {
      const { errors } = validator.validate(value);
      return errors.length === 0 ? undefined : describe(errors, property, root, value);
    } catch {
      // A reference to elsewhere, or a pattern for another regex engine.
      return undefined;
    }
  };
}

function describe(errors: OutputUnit[], property: Schema, root: Schema, value: unknown): string {
  // The errors of alternatives follow their keyword, and each holds for one alternative only; other keywords lead to
  // the cause, which is last.
  const error = errors.find(({ keyword }) => keyword === "anyOf" || keyword === "oneOf") ?? errors.at(-1)!;
  const place = error.instanceLocation.replace(/^#\/?/, "");
  const wanted = at(error.keywordLocation, property) ?? at(error.keywordLocation, root);
  const what = expectation(error.keyword, wanted, at(error.instanceLocation, value));
  return place === "" ? what : `${decodeURIComponent(place).replaceAll("~1", "/").replaceAll("~0", "~")}: ${what}`;
}

/** The value at a JSON Pointer. */
function at(pointer: string, value: unknown): unknown {
  const keys = pointer.replace(/^#\/?/, "").split("/").filter(Boolean);
  return keys.reduce<unknown>((inner, key) => {
    const name = decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~");
    return (inner as Record<string, unknown> | undefined | null)?.[name];
  }, value);
}

function expectation(keyword: string, wanted: unknown, value: unknown): string {
  switch (keyword) {
    case "type":
      return `expected ${[wanted].flat().map((type) => NOUNS[String(type)] ?? String(type)).join(" or ")}`;
    case "enum":
      return `expected one of ${(wanted as unknown[]).map(shown).join(", ")}`;
    case "const":
      return `expected ${shown(wanted)}`;
    case "anyOf":
    case "oneOf":
      return `expected one of: ${(wanted as Schema[]).map(expected).join("; ")}`;
    case "minimum":
      return `expected at least ${wanted}`;
    case "maximum":
      return `expected at most ${wanted}`;
    case "exclusiveMinimum":
      return `expected more than ${wanted}`;
    case "exclusiveMaximum":
      return `expected less than ${wanted}`;
    case "multipleOf":
      return `expected a multiple of ${wanted}`;
    case "minLength":
      return `expected at least ${wanted} ${wanted === 1 ? "character" : "characters"}`;
    case "maxLength":
      return `expected at most ${wanted} characters, not ${[...String(value)].length}`;
    case "pattern":
      return `expected text that matches ${wanted}`;
    case "format":
      return `expected ${FORMATS[String(wanted)] ?? `text of the format ${wanted}`}`;
    case "minItems":
      return `expected at least ${wanted} ${wanted === 1 ? "entry" : "entries"}`;
    case "maxItems":
      return `expected at most ${wanted} entries`;
    case "uniqueItems":
      return "expected no entry twice";
    case "required": {
      const missing = (wanted as string[]).filter((name) => !(name in (value as object)));
      return `expected also ${missing.join(", ")}`;
    }
    case "false":
      return "not expected here";
    default:
      return `expected ${keyword} ${shown(wanted)}`;
  }
}

const NOUNS: Record<string, string> = {
  string: "text",
  integer: "a whole number",
  number: "a number",
  boolean: "true or false",
  array: "a list",
  object: "a JSON object",
  null: "null",
};

const FORMATS: Record<string, string> = {
  date: "a date, such as 2026-01-31",
  time: "a time, such as 09:30:00Z",
  "date-time": "a date and time, such as 2026-01-31T09:30:00Z",
  email: "an email address",
  uri: "a URI, such as https://example.org/",
  uuid: "a UUID",
};

/** The value that a schema allows, in a few words; empty if it says nothing about the type. */
export function expected(schema: Schema): string {
  const nouns = typesOf(schema).map((type) => NOUNS[type] ?? type);
  if (schema.enum) return `one of ${schema.enum.map(shown).join(", ")}`;
  if (schema.const !== undefined) return shown(schema.const);
  if (schema.format && FORMATS[schema.format]) return FORMATS[schema.format]!;
  const { minimum, maximum, exclusiveMinimum: over, exclusiveMaximum: under } = schema;
  const range =
    minimum !== undefined && maximum !== undefined
      ? [`from ${minimum} to ${maximum}`]
      : [minimum !== undefined && `at least ${minimum}`, maximum !== undefined && `at most ${maximum}`];
  range.push(over !== undefined && `more than ${over}`, under !== undefined && `less than ${under}`);
  return [nouns.join(" or "), ...range].filter(Boolean).join(", ").replace(", from", " from");
}
