/** Checks arguments by the schema of a tool, without `eval`. The daemon has the last word. */
import { Validator, type OutputUnit, type Schema } from "@cfworker/json-schema";
import type { ErrorSchema, RJSFSchema, ValidatorType } from "@rjsf/utils";

import { checkable } from "./checkable.ts";

export interface ArgumentProblem {
  /** Where, from the outermost member. */
  path: string[];
  message: string;
}

/** Keywords whose errors only repeat those of the schemas below them. */
const OUTER = new Set(
  (
    "properties items prefixItems additionalItems $ref $dynamicRef allOf if then else dependentSchemas patternProperties " +
    "propertyNames additionalProperties unevaluatedProperties unevaluatedItems"
  ).split(" "),
);
const MAX_PROBLEMS = 50;

/** An empty list when the arguments match, and when the schema cannot be checked here. */
export function findProblems(schema: unknown, value: unknown): ArgumentProblem[] {
  let errors: OutputUnit[];
  try {
    errors = new Validator(checkable(schema) as Schema, "2020-12", false).validate(value).errors;
  } catch {
    // References to elsewhere, or endless recursion: the daemon knows better.
    return [];
  }
  const leaves = closestBranches(errors).filter(({ keyword }) => !OUTER.has(keyword));
  const problems = leaves.slice(0, MAX_PROBLEMS).map((error) => problemOf(error));
  // Two branches may say the same of one value.
  return [...new Map(problems.map((problem) => [JSON.stringify(problem), problem])).values()];
}

/** Splits a JSON Pointer, with or without `#`. */
export function splitPointer(pointer: string): string[] {
  const parts = pointer.replace(/^#?\/?/, "").split("/");
  return parts[0] === "" && parts.length === 1
    ? []
    : parts.map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/** The problems in the form that the form library wants. */
export function errorSchema(problems: readonly ArgumentProblem[]): ErrorSchema {
  const root: ErrorSchema = Object.create(null);
  for (const { path, message } of problems) {
    let at: Record<string, never> & { __errors?: string[] } = root as never;
    for (const part of path) at = at[part] ??= Object.create(null) as never;
    (at.__errors ??= []).push(message);
  }
  return root;
}

/** The form library asks only which option of a union a value matches. */
export const optionMatcher: ValidatorType = {
  isValid(schema: RJSFSchema, value: unknown): boolean {
    try {
      return new Validator(checkable(schema) as Schema, "2020-12", true).validate(value).valid;
    } catch {
      return false;
    }
  },
  validateFormData: () => ({ errors: [], errorSchema: {} }),
  rawValidation: () => ({ errors: [] }),
};

/** Of a union that does not match, only the errors of the option with the fewest. */
function closestBranches(errors: OutputUnit[]): OutputUnit[] {
  let kept = errors;
  for (const union of errors.filter(({ keyword }) => keyword === "anyOf" || keyword === "oneOf")) {
    const branches = new Map<string, OutputUnit[]>();
    for (const error of kept) {
      const rest = error.keywordLocation.startsWith(`${union.keywordLocation}/`)
        ? error.keywordLocation.slice(union.keywordLocation.length + 1)
        : undefined;
      if (rest === undefined || !error.instanceLocation.startsWith(union.instanceLocation)) continue;
      const branch = rest.split("/")[0]!;
      branches.set(branch, [...(branches.get(branch) ?? []), error]);
    }
    const byLength = [...branches.values()].sort((first, second) => first.length - second.length);
    // An option of another type than the value says little: the message of the union says it for all.
    const best = byLength.find((branch) => !branch.some((error) => isOfType(error, union))) ?? [];
    const dropped = new Set([...branches.values()].filter((branch) => branch !== best).flat());
    if (best.length > 0) dropped.add(union);
    kept = kept.filter((error) => !dropped.has(error));
  }
  return kept;
}

function isOfType(error: OutputUnit, union: OutputUnit): boolean {
  return error.keyword === "type" && error.instanceLocation === union.instanceLocation;
}

function problemOf({ keyword, error, instanceLocation }: OutputUnit): ArgumentProblem {
  const path = splitPointer(decodeURI(instanceLocation));
  const quoted = /"(.*)"/s.exec(error)?.[1];
  switch (keyword) {
    case "required":
      return { path: quoted === undefined ? path : [...path, quoted], message: "is required" };
    case "false":
      return { path, message: "is not an argument of this tool" };
    case "anyOf":
    case "oneOf":
      return { path, message: "matches none of the forms that the tool accepts" };
    default:
      return { path, message: error.replace(/^Instance /, "").replace(/^./, (first) => first.toLowerCase()) };
  }
}
