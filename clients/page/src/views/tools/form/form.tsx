/** A form for the arguments of a tool. */
import RjsfForm from "@rjsf/core/lib/components/Form.js";
import { Component, type ComponentChildren } from "preact";
import { useMemo } from "preact/hooks";

import { type ArgumentProblem, errorSchema, optionMatcher } from "./problems.ts";
import { type FormSchema } from "./schema.ts";
import type { FormContext } from "./widgets.tsx";

interface ArgumentsFormProps {
  schema: FormSchema;
  value: Record<string, unknown>;
  problems: readonly ArgumentProblem[];
  context: FormContext;
  onChange: (value: Record<string, unknown>) => void;
}

export function ArgumentsForm({ schema, value, problems, context, onChange }: ArgumentsFormProps) {
  const errors = useMemo(() => errorSchema(problems), [problems]);
  return (
    <FormBoundary key={JSON.stringify(schema)}>
      <RjsfForm
        schema={schema}
        formData={value}
        validator={optionMatcher}
        noValidate
        showErrorList={false}
        extraErrors={errors as never}
        formContext={context as never}
        idPrefix="argument"
        tagName={"div" as never}
        onChange={({ formData }) => onChange((formData ?? {}) as Record<string, unknown>)}
        experimental_defaultFormStateBehavior={{
          arrayMinItems: { populate: "requiredOnly" },
          emptyObjectFields: "populateRequiredDefaults",
        }}
      >
        <></>
      </RjsfForm>
    </FormBoundary>
  );
}

/** Removes what was left empty, so that the tool uses its defaults. */
export function withoutEmpty(schema: FormSchema, value: unknown, required = true): unknown {
  if (Array.isArray(value)) {
    if (value.length === 0 && !required) return undefined;
    const { items } = schema;
    const itemOf = (at: number) => (Array.isArray(items) ? (items[at] ?? {}) : (items ?? {})) as FormSchema;
    return value.map((item, at) => withoutEmpty(itemOf(at), item) ?? null);
  }
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).flatMap(([name, member]) => {
    const inner = schema.properties?.[name] as FormSchema | undefined;
    // The members of a union's options are not known here, so they stay as they are.
    const kept = withoutEmpty(inner ?? {}, member, inner === undefined || schema.required?.includes(name));
    return kept === undefined ? [] : [[name, kept] as const];
  });
  const lists = (schema.required ?? []).filter((name) => isList(schema.properties?.[name]) && !hasOwn(value, name));
  const whole = [...members, ...lists.map((name) => [name, []] as const)];
  return whole.length === 0 && !required && schema.type === "object" ? undefined : Object.fromEntries(whole);
}

function isList(schema: unknown): boolean {
  return (schema as FormSchema | undefined)?.type === "array";
}

function hasOwn(value: object, name: string): boolean {
  return Object.hasOwn(value, name) && (value as Record<string, unknown>)[name] !== undefined;
}

/** A schema that the form library fails at still leaves the arguments as JSON. */
class FormBoundary extends Component<{ children: ComponentChildren }, { failed: boolean }> {
  override state = { failed: false };

  override componentDidCatch(error: unknown): void {
    console.error("the form cannot show this schema:", error);
    this.setState({ failed: true });
  }

  override render() {
    if (!this.state.failed) return this.props.children;
    return <p role="alert">The form cannot show this tool's arguments. Enter them as JSON.</p>;
  }
}
