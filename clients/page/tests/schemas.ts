/** Schemas of arguments that are hard to show: the corpora of the repository, and what real servers have sent. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const REPOSITORY = join(import.meta.dirname, "../../..");
const read = (path: string) => JSON.parse(readFileSync(join(REPOSITORY, path), "utf8")) as Record<string, unknown>;

const text = { type: "string" };
const argument = (schema: unknown, definitions: object = {}) => ({
  type: "object",
  properties: { value: schema },
  required: ["value"],
  $defs: definitions,
});

const HARD: Record<string, object> = {
  empty: { type: "object" },
  anything: { type: "object", additionalProperties: true },
  boolean_schemas: { type: "object", properties: { any: true, empty: {}, never: false } },
  recursive: {
    type: "object",
    properties: { tree: { $ref: "#/$defs/node" }, self: { $ref: "#" } },
    $defs: {
      node: {
        type: "object",
        properties: { name: text, children: { type: "array", items: { $ref: "#/$defs/node" } } },
      },
    },
  },
  mutual: argument({ $ref: "#/$defs/a" }, { a: { $ref: "#/$defs/b" }, b: { anyOf: [{ $ref: "#/$defs/a" }, text] } }),
  anchors: argument({ $ref: "#thing" }, { x: { $anchor: "thing", type: "integer", minimum: 3 } }),
  escapes: argument({ $ref: "#/$defs/a~1b%20~0" }, { "a/b ~": { enum: ["x", 1, null, { a: 1 }, [1]] } }),
  all_of: argument({
    allOf: [
      { type: "object", properties: { a: text, both: { minLength: 2 } }, required: ["a"] },
      { properties: { b: { type: "number" }, both: { type: "string", maxLength: 5 } }, required: ["b"] },
    ],
  }),
  conditions: {
    type: "object",
    properties: { kind: { enum: ["file", "folder"] } },
    if: { properties: { kind: { const: "file" } } },
    then: { properties: { size: { type: "integer" } }, required: ["size"] },
    else: { properties: { depth: { type: "integer" } } },
    dependentSchemas: { depth: { properties: { follow: { type: "boolean" } } } },
    not: { required: ["size", "depth"] },
    anyOf: [{ required: ["size"] }, { required: ["depth"] }],
  },
  unions: argument({
    anyOf: [
      { type: ["string", "null"] },
      {
        type: "array",
        items: { oneOf: [text, { type: "object", properties: { deep: { type: ["integer", "boolean"] } } }] },
      },
      { type: "object", additionalProperties: text },
      { enum: [1, 2] },
      true,
    ],
  }),
  pydantic: argument(
    { anyOf: [{ $ref: "#/$defs/Range" }, { type: "null" }], default: null, title: "Value" },
    {
      Range: { title: "Range", type: "object", properties: { lo: { type: "integer", default: 0 } }, required: ["lo"] },
    },
  ),
  tuples: argument({
    type: "array",
    prefixItems: [text, { type: "integer" }, { type: "boolean" }],
    items: { type: "number" },
  }),
  tuple_without_rest: argument({ type: "array", prefixItems: [text], items: false, minItems: 1 }),
  set: argument({ type: "array", uniqueItems: true, items: { enum: ["a", "b", "c"] } }),
  many_items: argument({ type: "array", items: text, minItems: 100000 }),
  maps: argument({
    type: "object",
    patternProperties: { "^x-": { type: "integer" }, "^y-": text },
    additionalProperties: { type: "object", properties: { a: text } },
    propertyNames: { pattern: "^[a-z-]+$" },
  }),
  odd_names: {
    type: "object",
    properties: { "": text, "a.b": text, "a/b": text, "a b": text, length: text, toString: text, hasOwnProperty: text },
    required: ["", "a.b"],
  },
  formats: {
    type: "object",
    properties: Object.fromEntries(
      ["date", "date-time", "time", "email", "uri", "uuid", "data-url", "color", "regex", "ipv6", "no-such-format"].map(
        (format) => [format, { type: "string", format }],
      ),
    ),
  },
  numbers: argument({ type: "number", exclusiveMinimum: 0, maximum: 1e308, multipleOf: 0.1, default: 0.1 }),
  letters: argument({ type: "string", pattern: "^(?i)\\p{L}+$" }),
  defaults_of_all_kinds: {
    type: "object",
    properties: {
      object: { type: "object", properties: { a: text }, default: { a: "x" } },
      list: { type: "array", items: text, default: ["a", "b"] },
      none: { type: ["string", "null"], default: null },
      wrong: { type: "integer", default: "seven" },
    },
    required: ["object", "list", "none", "wrong"],
  },
  content: argument({ type: "string", contentEncoding: "base64", contentMediaType: "image/png" }),
  draft_7: {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    definitions: { name: text },
    properties: {
      name: { $ref: "#/definitions/name" },
      pair: { type: "array", items: [text, text], additionalItems: false },
    },
    dependencies: { name: ["pair"] },
  },
  deep: Array.from({ length: 30 }).reduce<object>(
    (inner) => ({ type: "object", properties: { inner }, required: ["inner"] }),
    text,
  ),
  wide: {
    type: "object",
    properties: Object.fromEntries(Array.from({ length: 700 }, (_, at) => [`field_${at}`, text])),
  },
  discriminated: argument({
    oneOf: ["circle", "square"].map((kind) => ({
      type: "object",
      properties: { kind: { const: kind }, size: { type: "number" }, [kind]: { type: "boolean" } },
      required: ["kind", "size"],
    })),
    discriminator: { propertyName: "kind" },
  }),
  unevaluated: { type: "object", properties: { a: text }, unevaluatedProperties: false, unevaluatedItems: true },
};

/** By the name of the tool that has them. */
export function hardSchemas(): Map<string, object> {
  const found = new Map(Object.entries(HARD).map(([name, schema]) => [`hard_${name}`, schema]));
  const folder = "tests/tests/provider_schemas";
  for (const file of readdirSync(join(REPOSITORY, folder))) {
    const { $defs } = read(join(folder, file)) as { $defs: Record<string, object> };
    for (const name of Object.keys($defs)) {
      found.set(`${file.replace(/\.json$/, "")}_${name}`.toLowerCase(), argument({ $ref: `#/$defs/${name}` }, $defs));
    }
  }
  const { $schema: _, ...configuration } = read("daemon/toold/config.schema.json");
  found.set("configuration", configuration);
  return found;
}

export function conformancePlugin(): string {
  return readFileSync(join(REPOSITORY, "tests/conformance/plugins/conformance.lua"), "utf8");
}
