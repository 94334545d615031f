/**
 * The part of a schema that the page can check in a short time. A schema comes from a tool: its patterns may take for ever in
 * a browser, and are of another dialect; its unions may multiply.
 */
import { isObject, resolve } from "./flatten.ts";

/** Keywords whose members are schemas, and not keywords. */
const MAPS = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);
const DATA = new Set(["enum", "const", "default", "examples"]);
/** Keywords whose schemas apply to the same value. */
const IN_PLACE = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/** Schemas that may apply to one value. */
const MAX_CHECKS = 2_000;

const known = new WeakMap<object, unknown>();

/** The schema without patterns; `true`, which everything matches, when the check would take too long. */
export function checkable(schema: unknown): unknown {
  if (!isObject(schema)) return schema;
  if (!known.has(schema)) known.set(schema, isCheap(schema, schema) ? withoutPatterns(schema) : true);
  return known.get(schema);
}

function withoutPatterns(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutPatterns);
  if (!isObject(schema)) return schema;
  const { pattern: _, patternProperties, ...rest } = schema;
  const members = Object.entries(rest).flatMap(([name, value]): [string, unknown][] => {
    // Members that a pattern may have allowed are not superfluous.
    if (patternProperties !== undefined && /^(additional|unevaluated)Properties$/.test(name)) return [];
    if (DATA.has(name)) return [[name, value]];
    if (!MAPS.has(name) || !isObject(value)) return [[name, withoutPatterns(value)]];
    return [[name, Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutPatterns(each)]))]];
  });
  return Object.fromEntries(members);
}

/** Whether only so many schemas apply to each value. */
function isCheap(root: unknown, schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.every((each) => isCheap(root, each));
  if (!isObject(schema)) return true;
  if (checksAt(root, schema, MAX_CHECKS) <= 0) return false;
  return Object.entries(schema).every(([name, value]) => DATA.has(name) || isCheap(root, value));
}

/** How many checks are left after those of one value. */
function checksAt(root: unknown, schema: unknown, left: number): number {
  if (!isObject(schema) || left <= 0) return left;
  const { $ref } = schema;
  const parts = IN_PLACE.flatMap((name): unknown[] => [schema[name] ?? []].flat());
  if (typeof $ref === "string") parts.push(resolve(root, $ref));
  return parts.reduce<number>((rest, part) => checksAt(root, part, rest), left - 1);
}
