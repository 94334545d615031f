/** One schema out of references and `allOf`. */

export type SchemaNode = Record<string, unknown>;

const MAX_REFERENCES = 50;

export interface FlatSchema {
  node: SchemaNode;
  /** The references that led here: one that occurs again is a cycle. */
  refs: readonly string[];
}

/**
 * Follows references and merges `allOf`. `undefined` for a cycle, and for what this schema cannot resolve. A reference that
 * occurs twice counts as a cycle, so that the work cannot grow exponentially.
 */
export function flatten(root: unknown, schema: unknown, refs: readonly string[]): FlatSchema | undefined {
  if (schema === true || schema === undefined) return { node: {}, refs };
  if (!isObject(schema) || refs.length > MAX_REFERENCES) return undefined;
  const { $ref, $dynamicRef, allOf, ...rest } = schema;
  let merged: FlatSchema = { node: rest, refs };
  const ref = $ref ?? $dynamicRef;
  if (ref !== undefined) {
    if (typeof ref !== "string" || refs.includes(ref)) return undefined;
    const target = flatten(root, resolve(root, ref), [...refs, ref]);
    if (target === undefined) return undefined;
    merged = { node: merge(target.node, rest), refs: target.refs };
  }
  for (const part of Array.isArray(allOf) ? allOf : []) {
    const flat = flatten(root, part, merged.refs);
    if (flat === undefined) return undefined;
    merged = { node: merge(flat.node, merged.node), refs: flat.refs };
  }
  return merged;
}

/** The second wins, but for members that both have: they must match both. */
function merge(first: SchemaNode, second: SchemaNode): SchemaNode {
  const properties: [string, unknown][] = Object.entries(record(first["properties"]));
  const both = new Map(properties);
  for (const [name, member] of Object.entries(record(second["properties"]))) {
    const other = both.get(name);
    both.set(name, other === undefined ? member : { allOf: [other, member] });
  }
  const required = [first["required"], second["required"]].flatMap((names) => (Array.isArray(names) ? names : []));
  return {
    ...first,
    ...second,
    ...(both.size > 0 && { properties: Object.fromEntries(both) }),
    ...(required.length > 0 && { required: [...new Set(required)] }),
  };
}

/** The schema that a reference within the document names; `null` if there is none. */
export function resolve(root: unknown, ref: string): unknown {
  if (ref === "#") return root;
  if (ref.startsWith("#/")) {
    const parts = decode(ref.slice(2))
      .split("/")
      .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
    return parts.reduce<unknown>((at, part) => (isContainer(at) && Object.hasOwn(at, part) ? at[part] : null), root);
  }
  const anchor = ref.slice(1);
  const definitions = Object.values({ ...record(record(root)["$defs"]), ...record(record(root)["definitions"]) });
  const named = (schema: unknown) => isObject(schema) && [schema["$anchor"], schema["$dynamicAnchor"]].includes(anchor);
  return ref.startsWith("#") ? ([root, ...definitions].find(named) ?? null) : null;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function isContainer(value: unknown): value is SchemaNode {
  return typeof value === "object" && value !== null;
}

export function isObject(value: unknown): value is SchemaNode {
  return isContainer(value) && !Array.isArray(value);
}

export function record(value: unknown): SchemaNode {
  return isObject(value) ? value : {};
}
