/**
 * A schema that the form library can show, made of any schema that a tool may declare: references are followed,
 * combinations are merged, and whatever a form cannot express becomes a field for JSON. It only shapes the form; the
 * arguments are checked by the tool's own schema.
 */
import type { RJSFSchema } from "@rjsf/utils";

import { flatten, isObject, record, type SchemaNode } from "./flatten.ts";

/** A schema of the form. A schema without a type is a field for JSON. */
export type FormSchema = RJSFSchema & {
  /** Of the values of `enum`, in their order. */
  labels?: string[];
  /** The default of an optional field, which is shown but not sent. */
  placeholder?: string;
  /** For texts that usually have several lines. */
  multiline?: boolean;
};

/** Deeper levels are fields for JSON. */
const MAX_DEPTH = 6;
/** More fields would make the page slow; the others are fields for JSON. */
const MAX_FIELDS = 400;
const TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"];
const MULTILINE =
  /content|text|body|code|script|command|patch|diff|prompt|input|query|^old|^new|message|source|sql|html|markdown/i;
/** Texts that a tool may want to be empty; others have to be entered. */
const MAY_BE_EMPTY = /^(content|text|body|new|new_string)$/;
/** Object members with these names would change what JavaScript does with the object. */
const RESERVED = new Set(["__proto__", "constructor", "prototype"]);

export function formSchema(root: unknown): FormSchema {
  const shaped = new Shaper(root).shape(root, { depth: 0, refs: [], required: true, name: "" });
  return shaped.type === "object" || shaped.anyOf ? shaped : { type: "object", properties: {} };
}

/** Whether a form has anything to fill in. */
export function hasFields(schema: FormSchema): boolean {
  const { properties = {}, anyOf, additionalProperties } = schema;
  return Object.keys(properties).length > 0 || anyOf !== undefined || Boolean(additionalProperties);
}

interface FieldContext {
  depth: number;
  /** The references that lead here: one that occurs again is a cycle. */
  refs: readonly string[];
  required: boolean;
  name: string;
}

class Shaper {
  readonly #root: unknown;
  #fields = 0;

  constructor(root: unknown) {
    this.#root = root;
  }

  shape(schema: unknown, place: FieldContext): FormSchema {
    this.#fields += 1;
    const flat = flatten(this.#root, schema, place.refs);
    if (flat === undefined || place.depth > MAX_DEPTH || this.#fields > MAX_FIELDS) return describe(schema);
    const { node } = flat;
    const here = { ...place, refs: flat.refs };
    const shaped = this.#kind(node, here);
    const { title, description } = node;
    return {
      ...(typeof title === "string" && { title }),
      ...(typeof description === "string" && { description }),
      ...defaults(node, place.required),
      ...shaped,
    };
  }

  #kind(node: SchemaNode, place: FieldContext): FormSchema {
    if ("const" in node) return choices([node["const"]]);
    if (Array.isArray(node["enum"]) && node["enum"].length > 0) return choices(node["enum"]);
    const options = this.#options(node, place);
    if (options) return options;
    const type = typeOf(node);
    if (Array.isArray(type))
      return this.#union(
        type.map((type) => ({ ...node, type })),
        place,
      );
    switch (type) {
      case "null":
        // As a constant: the form library sets none for an option of the type null.
        return { const: null as never };
      case "boolean":
        return choices([true, false]);
      case "number":
      case "integer":
        return { type };
      case "string":
        return text(node, place);
      case "array":
        return this.#array(node, place);
      case "object":
        return this.#object(node, place);
      default:
        return json();
    }
  }

  /** `anyOf` and `oneOf`. Options that only constrain what is shown anyway are left to the check of the arguments. */
  #options(node: SchemaNode, place: FieldContext): FormSchema | undefined {
    const options = [node["oneOf"], node["anyOf"]].find((value) => Array.isArray(value) && value.length > 0) as
      unknown[] | undefined;
    if (!options) return undefined;
    const { oneOf: _, anyOf: __, ...rest } = node;
    const flat = options
      .map((option) => flatten(this.#root, option, place.refs)?.node)
      .filter((each) => each !== undefined);
    if (flat.length < options.length) return json();
    if (flat.every((option) => "const" in option)) {
      const labels = flat.map(({ title, description }) => (typeof title === "string" ? title : (description ?? "")));
      return choices(
        flat.map((option) => option["const"]),
        labels.map(String),
      );
    }
    const shown = flat.filter((option) => SHOWN.some((key) => key in option));
    if (shown.length === 0) return undefined;
    if (typeOf(rest) === "object" && "properties" in rest) {
      // The members that all options share come first.
      return { ...this.#object(rest, place), ...this.#union(shown, place) };
    }
    return this.#union(
      shown.map((option) => ({ ...withoutNotes(rest), ...option })),
      place,
    );
  }

  #union(options: SchemaNode[], place: FieldContext): FormSchema {
    const [only, second] = options;
    if (only && second === undefined) return this.#kind(only, place);
    const inner = { ...place, depth: place.depth + 1 };
    return {
      anyOf: options.map((option) => {
        const { title, description, ...shaped } = this.shape(option, inner);
        // The title and the description of the whole are shown already.
        return {
          ...shaped,
          title: title ?? nameOf(option),
          ...(option["description"] !== undefined && { description }),
        };
      }),
    };
  }

  #array(node: SchemaNode, place: FieldContext): FormSchema {
    const item = { ...place, depth: place.depth + 1, required: true };
    const { prefixItems, minItems, maxItems, uniqueItems } = node;
    const limits = {
      ...(typeof minItems === "number" && { minItems: Math.min(minItems, 20) }),
      ...(typeof maxItems === "number" && { maxItems }),
    };
    if (Array.isArray(prefixItems)) {
      const rest = node["items"];
      return {
        type: "array",
        items: prefixItems.map((each) => this.shape(each, item) as never),
        ...(isObject(rest) && { additionalItems: this.shape(rest, item) }),
        ...limits,
      };
    }
    if (!isObject(node["items"])) return json();
    const items = this.shape(node["items"], item);
    // The form library shows several choices at once when each can be taken only once.
    return { type: "array", items, ...limits, ...(uniqueItems === true && items.enum && { uniqueItems: true }) };
  }

  #object(node: SchemaNode, place: FieldContext): FormSchema {
    const parts = [node, node["then"], node["else"], ...Object.values(record(node["dependentSchemas"]))];
    const members = new Map<string, unknown>();
    for (const part of parts) {
      for (const [name, member] of Object.entries(record(flatten(this.#root, part, place.refs)?.node["properties"]))) {
        if (member !== false && !RESERVED.has(name) && !members.has(name)) members.set(name, member);
      }
    }
    const others = [...Object.values(record(node["patternProperties"])), node["additionalProperties"]].find(isObject);
    if (members.size === 0 && others === undefined) {
      const closed = node["additionalProperties"] === false || place.depth === 0;
      return closed ? { type: "object", properties: {} } : json();
    }
    const required = (Array.isArray(node["required"]) ? node["required"] : []).filter((name) => members.has(name));
    const inner = { ...place, depth: place.depth + 1 };
    const names = [...required, ...[...members.keys()].filter((name) => !required.includes(name))];
    const shaped = names.map((name: string) => {
      return [name, this.shape(members.get(name), { ...inner, name, required: required.includes(name) })];
    });
    return {
      type: "object",
      properties: Object.fromEntries(shaped),
      required,
      additionalProperties: others === undefined ? false : this.shape(others, { ...inner, required: true, name: "" }),
    };
  }
}

/** Keywords that say what a value is, and so what a form shows. */
const SHOWN = ["type", "properties", "items", "prefixItems", "enum", "const", "anyOf", "oneOf", "additionalProperties"];

function typeOf(node: SchemaNode): string | string[] | undefined {
  const { type } = node;
  const types = (Array.isArray(type) ? type : [type]).filter((each): each is string => TYPES.includes(each as string));
  if (types.length > 0) return types.length === 1 ? types[0] : types;
  if ("properties" in node || "additionalProperties" in node || "patternProperties" in node) return "object";
  if ("items" in node || "prefixItems" in node) return "array";
  if ("minimum" in node || "maximum" in node || "multipleOf" in node) return "number";
  return "pattern" in node || "maxLength" in node || "minLength" in node ? "string" : undefined;
}

function text(node: SchemaNode, { name, required }: FieldContext): FormSchema {
  const { maxLength, minLength, pattern, format, examples } = node;
  const short = format !== undefined || pattern !== undefined || (typeof maxLength === "number" && maxLength <= 100);
  const empty = required && minLength === undefined && !short && MAY_BE_EMPTY.test(name);
  return {
    type: "string",
    multiline: !short && MULTILINE.test(name),
    ...(empty && { default: "" }),
    ...(Array.isArray(examples) && { examples: examples.slice(0, 20) }),
  };
}

function choices(values: unknown[], labels?: string[]): FormSchema {
  return { enum: values as never, ...(labels && { labels }) };
}

/** A field for JSON: without a type. The form library shows nothing for a schema without members. */
function json(): FormSchema {
  return { $comment: "JSON" };
}

function describe(schema: unknown): FormSchema {
  const { title, description } = record(schema);
  return {
    ...json(),
    ...(typeof title === "string" && { title }),
    ...(typeof description === "string" && { description }),
  };
}

/** A default is sent where a value is required; elsewhere it is a hint, since the tool has it too. */
function defaults(node: SchemaNode, required: boolean): FormSchema {
  const value = node["default"] ?? ("const" in node && required ? node["const"] : undefined);
  if (value === undefined) return {};
  return required ? { default: value as never } : { placeholder: inJson(value) };
}

function inJson(value: unknown): string {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}

function nameOf(option: SchemaNode): string {
  if ("const" in option) return inJson(option["const"]);
  const type = typeOf(option);
  if (Array.isArray(type)) return type.join(" or ");
  const tag = Object.values(record(option["properties"])).find((member) => isObject(member) && "const" in member);
  if (isObject(tag)) return inJson(tag["const"]);
  const names = Object.keys(record(option["properties"]));
  if (names.length > 0) return `object with ${names.slice(0, 3).join(", ")}${names.length > 3 ? ", …" : ""}`;
  if (type === "string") return "text";
  if (type === "array") return "list";
  return type ?? (Array.isArray(option["enum"]) ? "choice" : "JSON");
}

function withoutNotes({ title: _, description: __, default: ___, ...node }: SchemaNode): SchemaNode {
  return node;
}
