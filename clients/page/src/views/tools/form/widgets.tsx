/** The fields of a form: text, numbers, choices and JSON. */
import NullField from "@rjsf/core/lib/components/fields/NullField.js";
import type { FieldProps, RegistryWidgetsType, WidgetProps } from "@rjsf/utils";
import { descriptionId, errorId } from "@rjsf/utils";
import { useEffect, useState } from "preact/hooks";

import { visible } from "../../../text.tsx";
import type { FormSchema } from "./schema.ts";

/** JSON fields whose text is not JSON: their paths by id. A form with any is not sent. */
export interface FormContext {
  broken: Map<string, string[]>;
}

function TextInput({ id, value, schema, label, rawErrors, onChange, options }: WidgetProps) {
  const { multiline, placeholder, type, examples } = schema as FormSchema;
  const isNumber = type === "number" || type === "integer";
  const shared = {
    id,
    value: value ?? "",
    placeholder: placeholder === undefined ? undefined : `default: ${visible(placeholder).slice(0, 100)}`,
    "aria-describedby": `${descriptionId(id)} ${errorId(id)}`,
    "aria-label": label === "" ? "Value" : undefined,
    "aria-invalid": (rawErrors ?? []).length > 0,
    spellcheck: false,
    autocomplete: "off",
    onInput: ({ currentTarget }: { currentTarget: { value: string } }) => {
      const text = currentTarget.value;
      onChange(text === "" ? (schema.default === "" ? "" : options.emptyValue) : text);
    },
  };
  if (multiline) return <textarea rows={2} {...shared} />;
  const suggested: unknown[] = Array.isArray(examples) ? examples : [];
  const list = suggested.length > 0 ? `${id}__examples` : undefined;
  return (
    <>
      <input type={isNumber ? "number" : "text"} step="any" list={list} {...shared} />
      {list && (
        <datalist id={list}>
          {suggested.map((example, at) => (
            <option key={at} value={String(example)} />
          ))}
        </datalist>
      )}
    </>
  );
}

/** Choices by their number, since a value may be anything. An optional one may be left out. */
function Choice(props: WidgetProps) {
  const { id, value, schema, label, required, multiple, rawErrors, onChange, options } = props;
  const { labels, placeholder, type } = schema as FormSchema;
  const all = options.enumOptions ?? [];
  const same = (other: unknown) => JSON.stringify(other) === JSON.stringify(value);
  // The selector of a union is a number of the form's own.
  const isUnion = type === "number";
  if (multiple) return <Choices {...props} />;
  const chosen = all.findIndex((option) => same(option.value));
  return (
    <select
      id={id}
      value={chosen < 0 ? "" : String(chosen)}
      aria-label={isUnion ? `Kind of ${visible(label)}` : undefined}
      aria-describedby={`${descriptionId(id)} ${errorId(id)}`}
      aria-invalid={(rawErrors ?? []).length > 0}
      onChange={({ currentTarget }) => {
        const option = all[Number(currentTarget.value)];
        onChange(currentTarget.value === "" ? undefined : option?.value);
      }}
    >
      {(!required || chosen < 0) && !isUnion && (
        <option value="">
          {placeholder === undefined ? (required ? "choose…" : "not set") : `default: ${visible(placeholder)}`}
        </option>
      )}
      {all.map((option, at) => (
        <option key={at} value={String(at)}>
          {optionText(option, labels?.[at], isUnion)}
        </option>
      ))}
    </select>
  );
}

function optionText({ value, label }: { value: unknown; label: string }, about = "", isUnion: boolean): string {
  if (isUnion) return visible(label).slice(0, 80);
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const whole = about === "" || about === text ? text : `${text}: ${about}`;
  return visible(whole ?? "").slice(0, 120);
}

function Choices({ id, value, label, options, onChange }: WidgetProps) {
  const taken: unknown[] = Array.isArray(value) ? value : [];
  const has = (each: unknown) => taken.some((other) => JSON.stringify(other) === JSON.stringify(each));
  return (
    <div id={id} class="row" role="group" aria-label={visible(label)}>
      {(options.enumOptions ?? []).map((option, at) => (
        <label key={at} class="row">
          <input
            type="checkbox"
            checked={has(option.value)}
            onChange={({ currentTarget }) => {
              const others = taken.filter((each) => JSON.stringify(each) !== JSON.stringify(option.value));
              onChange(currentTarget.checked ? [...others, option.value] : others);
            }}
          />
          {optionText(option, "", false)}
        </label>
      ))}
    </div>
  );
}

/** For schemas without a type: a null to choose in a union, or any value. */
export function UntypedField(props: FieldProps) {
  return props.schema.const === null ? <NullField {...props} /> : <JsonField {...props} />;
}

/** For values that no other field can express. */
export function JsonField({ fieldPathId, formData, onChange, registry, name }: FieldProps) {
  const id = fieldPathId.$id;
  const { broken } = registry.formContext as FormContext;
  const [text, setText] = useState(() => (formData === undefined ? "" : JSON.stringify(formData, null, 2)));
  const [problem, setProblem] = useState<string>();
  useEffect(() => () => void broken.delete(id), [id]);
  const change = (next: string) => {
    setText(next);
    broken.delete(id);
    setProblem(undefined);
    if (next.trim() === "") return onChange(undefined, fieldPathId.path);
    try {
      onChange(JSON.parse(next), fieldPathId.path);
    } catch (error) {
      broken.set(id, fieldPathId.path.map(String));
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <>
      <textarea
        id={id}
        class="mono"
        rows={2}
        placeholder="JSON"
        aria-label={`${visible(name)} as JSON`}
        aria-describedby={`${descriptionId(id)} ${id}__json`}
        aria-invalid={problem !== undefined}
        spellcheck={false}
        value={text}
        onInput={({ currentTarget }) => change(currentTarget.value)}
      />
      <p class="field-errors" id={`${id}__json`} role="status">
        {problem && `not JSON yet: ${problem}`}
      </p>
    </>
  );
}

export const widgets: RegistryWidgetsType = {
  TextWidget: TextInput as never,
  SelectWidget: Choice as never,
  CheckboxesWidget: Choices as never,
  UpDownWidget: TextInput as never,
};
