/** The form of a question: fields of simple types, as MCP's elicitation has them, and JSON for all others. */
import type { QuestionsReplyParams } from "toold/browser";

import { oneLine, Text } from "../../text.tsx";
import { toast } from "../../toasts.tsx";

/** The part of JSON Schema that a field is made from. */
interface FieldSchema {
  type?: string;
  title?: string;
  description?: string;
  format?: string;
  default?: unknown;
  enum?: unknown[];
  enumNames?: string[];
  oneOf?: { const?: unknown; title?: string }[];
  anyOf?: { const?: unknown; title?: string }[];
  items?: FieldSchema;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
}

interface FormSchema {
  properties?: Record<string, FieldSchema>;
  required?: string[];
}

interface FormProps {
  schema: unknown;
  ready: boolean;
  onReply: (params: Omit<QuestionsReplyParams, "request_id">) => void;
}

export function QuestionForm({ schema, ready, onReply }: FormProps) {
  const { properties = {}, required = [] } = (schema ?? {}) as FormSchema;
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget as HTMLFormElement);
    try {
      const fields = Object.entries(properties).map(([name, field]) => [name, valueOf(name, field, data)] as const);
      onReply({ content: Object.fromEntries(fields.filter(([, value]) => value !== undefined)) });
    } catch (error) {
      toast((error as Error).message, "error");
    }
  };
  return (
    <form class="question-form" onSubmit={send}>
      {Object.entries(properties).map(([name, field]) => (
        <Field key={name} name={name} field={field} required={required.includes(name)} />
      ))}
      <div class="buttons">
        <button type="submit" class="primary" disabled={!ready}>
          Send
        </button>
        <button type="button" class="danger" disabled={!ready} onClick={() => onReply({ declined: true })}>
          Decline
        </button>
        <button type="button" disabled={!ready} onClick={() => onReply({ cancelled: true })}>
          Do not answer
        </button>
      </div>
    </form>
  );
}

interface FieldProps {
  name: string;
  field: FieldSchema;
  required: boolean;
}

function Field({ name, field, required }: FieldProps) {
  const label = (
    <span>
      <Text value={field.title ?? name} />
      {required ? "" : <span class="dim"> (optional)</span>}
    </span>
  );
  const about = field.description !== undefined && (
    <span class="dim small">
      <Text value={field.description} max={1000} />
    </span>
  );
  const options = optionsOf(field);
  if (options) {
    return (
      <label>
        {label}
        {about}
        <select name={name} required={required}>
          <option value="">{required ? "Choose…" : "none"}</option>
          {options.map(({ value, title }, at) => (
            <option key={at} value={at} selected={value === field.default}>
              {oneLine(title)}
            </option>
          ))}
        </select>
      </label>
    );
  }
  const many = field.type === "array" && field.items ? optionsOf(field.items) : undefined;
  if (many) {
    return (
      <fieldset>
        <legend>{label}</legend>
        {about}
        {many.map(({ value, title }, at) => (
          <label key={at} class="check">
            <input
              type="checkbox"
              name={name}
              value={at}
              defaultChecked={Array.isArray(field.default) && field.default.includes(value)}
            />
            <Text value={title} />
          </label>
        ))}
      </fieldset>
    );
  }
  if (field.type === "boolean") {
    return (
      <label class="check">
        <input type="checkbox" name={name} defaultChecked={field.default === true} />
        <span>
          <Text value={field.title ?? name} /> {about}
        </span>
      </label>
    );
  }
  if (field.type === "string" || field.type === "integer" || field.type === "number") {
    return (
      <label>
        {label}
        {about}
        <input
          name={name}
          required={required}
          {...inputOf(field)}
          defaultValue={field.default === undefined ? "" : String(field.default)}
          minLength={field.minLength}
          maxLength={field.maxLength}
          min={field.minimum}
          max={field.maximum}
        />
      </label>
    );
  }
  return (
    <label>
      {label}
      {about}
      <textarea
        name={name}
        class="mono"
        rows={4}
        required={required}
        placeholder="JSON"
        defaultValue={field.default === undefined ? "" : JSON.stringify(field.default, null, 2)}
      />
    </label>
  );
}

const FORMATS: Record<string, string> = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

function inputOf(field: FieldSchema): { type: string; step?: string } {
  if (field.type === "integer") return { type: "number", step: "1" };
  if (field.type === "number") return { type: "number", step: "any" };
  return { type: FORMATS[field.format ?? ""] ?? "text" };
}

function optionsOf(field: FieldSchema): { value: unknown; title: string }[] | undefined {
  if (field.enum) return field.enum.map((value, at) => ({ value, title: field.enumNames?.[at] ?? String(value) }));
  const variants = field.oneOf ?? field.anyOf;
  if (!variants?.every((variant) => "const" in variant)) return undefined;
  return variants.map((variant) => ({ value: variant.const, title: variant.title ?? String(variant.const) }));
}

/** The value of a field as its type wants it; `undefined` for one that was left empty. */
function valueOf(name: string, field: FieldSchema, data: FormData): unknown {
  const options = optionsOf(field);
  const text = String(data.get(name) ?? "");
  if (options) return text === "" ? undefined : options[Number(text)]?.value;
  const many = field.type === "array" && field.items ? optionsOf(field.items) : undefined;
  if (many) return data.getAll(name).map((at) => many[Number(at)]?.value);
  if (field.type === "boolean") return data.has(name);
  if (text === "") return undefined;
  if (field.type === "integer" || field.type === "number") return Number(text);
  if (field.type === "string") return field.format === "date-time" ? new Date(text).toISOString() : text;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name} is not JSON: ${(error as Error).message}`, { cause: error });
  }
}
