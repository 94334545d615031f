/** The form library's parts, so that a form looks like the page and shows text of tools as everywhere else. */
import type {
  ArrayFieldItemButtonsTemplateProps,
  ArrayFieldItemTemplateProps,
  ArrayFieldTemplateProps,
  FieldErrorProps,
  FieldTemplateProps,
  IconButtonProps,
  MultiSchemaFieldTemplateProps,
  ObjectFieldTemplateProps,
  TemplatesType,
  WrapIfAdditionalTemplateProps,
} from "@rjsf/utils";
import { ADDITIONAL_PROPERTY_FLAG, buttonId, canExpand, descriptionId, errorId } from "@rjsf/utils";
import type { ComponentChildren } from "preact";

import { Text } from "../../../text.tsx";
import { Prose } from "../prose.tsx";
import type { FormSchema } from "./schema.ts";

function Field(props: FieldTemplateProps) {
  const { id, label, required, displayLabel, children, errors, rawDescription, rawErrors = [] } = props;
  const { schema, hidden, fieldPathId } = props;
  if (hidden) return null;
  // It has nothing to enter.
  if (schema.const === null) return <>{children as ComponentChildren}</>;
  const grouped = schema.type === "object" || schema.type === "array";
  const at = fieldPathId.path.at(-1);
  const isItem = typeof at === "number";
  return (
    <Additional {...(props as WrapIfAdditionalTemplateProps)}>
      <div class={`field ${rawErrors.length > 0 ? "wrong" : ""}`}>
        {displayLabel && !grouped && (
          <label class="field-label" for={schema.anyOf ? `${id}__anyof_select` : id}>
            {isItem ? `Item ${at + 1}` : <FieldName name={label} required={required} />}
          </label>
        )}
        {displayLabel && !grouped && rawDescription && (
          <p class="field-about" id={descriptionId(id)}>
            <Prose value={rawDescription} />
          </p>
        )}
        {children as ComponentChildren}
        {errors as ComponentChildren}
      </div>
    </Additional>
  );
}

function FieldName({ name, required }: { name: string; required?: boolean }) {
  return (
    <span>
      <Text value={name} />
      {required && <span class="dim"> required</span>}
    </span>
  );
}

/** A member whose name the person chooses. */
function Additional(props: WrapIfAdditionalTemplateProps & { children?: ComponentChildren }) {
  const { id, schema, label, onKeyRenameBlur, onRemoveProperty, children } = props;
  if (!(ADDITIONAL_PROPERTY_FLAG in schema)) return <>{children}</>;
  return (
    <div class="field-pair">
      <label>
        <span class="small dim">Name</span>
        <input defaultValue={label} onBlur={onKeyRenameBlur as never} />
      </label>
      {children}
      <button type="button" class="plain" id={buttonId(id, "remove")} onClick={onRemoveProperty as never}>
        Remove
      </button>
    </div>
  );
}

function ObjectField(props: ObjectFieldTemplateProps) {
  const { title, description, properties, required, schema, uiSchema, formData, fieldPathId, onAddProperty } = props;
  if ((schema.anyOf || schema.oneOf) && properties.length === 0) return null;
  const isRoot = fieldPathId.path.length === 0;
  const optional = properties.findIndex(({ name }) => !schema.required?.includes(name));
  const fields = (
    <>
      {properties.map(({ content, name }, at) => (
        <>
          {isRoot && at === optional && optional > 0 && <p class="fields-part">Optional</p>}
          <div key={name} class={isSmall(schema.properties?.[name]) && at >= optional && optional >= 0 ? "" : "whole"}>
            {content as ComponentChildren}
          </div>
        </>
      ))}
      {canExpand(schema, uiSchema, formData) && (
        <button type="button" id={buttonId(fieldPathId, "add")} onClick={onAddProperty as never}>
          Add a member
        </button>
      )}
    </>
  );
  if (isRoot) return <div class="fields">{fields}</div>;
  // Optional objects stay closed, so that a deep schema does not hide the fields that matter.
  const isItem = typeof fieldPathId.path.at(-1) === "number";
  const isOpen = required || isItem || Object.keys(formData ?? {}).length > 0;
  return (
    <details class="field-group" open={isOpen}>
      <summary>
        <FieldName name={title} required={required} />
      </summary>
      {description && (
        <p class="field-about" id={descriptionId(fieldPathId)}>
          <Prose value={String(description)} />
        </p>
      )}
      <div class="fields">{fields}</div>
    </details>
  );
}

/** Whether two such fields fit beside each other. */
function isSmall(schema: unknown): boolean {
  const { type, multiline, anyOf } = schema as FormSchema;
  return anyOf === undefined && !multiline && type !== "object" && type !== "array";
}

function ArrayField({ title, schema, required, items, canAdd, onAddClick, fieldPathId }: ArrayFieldTemplateProps) {
  return (
    <fieldset class="field-group" id={fieldPathId.$id}>
      <legend>
        <FieldName name={title} required={required} />
      </legend>
      {schema.description && (
        <p class="field-about" id={descriptionId(fieldPathId)}>
          <Prose value={schema.description} />
        </p>
      )}
      {items as ComponentChildren}
      {canAdd && (
        <button type="button" id={buttonId(fieldPathId, "add")} onClick={onAddClick as never}>
          Add an item
        </button>
      )}
    </fieldset>
  );
}

function ArrayItem({ children, buttonsProps, hasToolbar }: ArrayFieldItemTemplateProps) {
  return (
    <div class="field-item">
      <div>{children as ComponentChildren}</div>
      {hasToolbar && <ItemButtons {...buttonsProps} />}
    </div>
  );
}

function ItemButtons(props: ArrayFieldItemButtonsTemplateProps) {
  const { hasMoveUp, hasMoveDown, hasRemove, onMoveUpItem, onMoveDownItem, onRemoveItem, fieldPathId } = props;
  const place = `item ${Number(fieldPathId.path.at(-1)) + 1}`;
  return (
    <div class="buttons">
      {hasMoveUp && <IconButton label={`Move ${place} up`} icon="↑" onClick={onMoveUpItem as never} />}
      {hasMoveDown && <IconButton label={`Move ${place} down`} icon="↓" onClick={onMoveDownItem as never} />}
      {hasRemove && <IconButton label={`Remove ${place}`} icon="✕" onClick={onRemoveItem as never} />}
    </div>
  );
}

function IconButton({ label, icon, onClick }: { label: string; icon: string; onClick: (event: Event) => void }) {
  return (
    <button type="button" class="plain" aria-label={label} title={label} onClick={onClick}>
      {icon}
    </button>
  );
}

function Union({ selector, optionSchemaField }: MultiSchemaFieldTemplateProps) {
  return (
    <div class="field-union">
      {selector as ComponentChildren}
      {optionSchemaField as ComponentChildren}
    </div>
  );
}

function FieldErrors({ errors = [], fieldPathId }: FieldErrorProps) {
  if (errors.length === 0) return null;
  return (
    <ul class="field-errors" id={errorId(fieldPathId)}>
      {errors.map((error) => (
        <li key={String(error)}>
          <Text value={String(error)} max={600} />
        </li>
      ))}
    </ul>
  );
}

/** In place of parts that the form shows elsewhere, or not at all. */
const Nothing = () => null;
const Button = (_: IconButtonProps) => null;

export const templates = {
  ArrayFieldDescriptionTemplate: Nothing,
  ArrayFieldItemButtonsTemplate: ItemButtons,
  ArrayFieldItemTemplate: ArrayItem,
  ArrayFieldTemplate: ArrayField,
  ArrayFieldTitleTemplate: Nothing,
  BaseInputTemplate: Nothing,
  ButtonTemplates: {
    AddButton: Button,
    ClearButton: Button,
    CopyButton: Button,
    MoveDownButton: Button,
    MoveUpButton: Button,
    RemoveButton: Button,
    SubmitButton: Nothing,
  },
  CyclicSchemaExpandTemplate: Nothing,
  DescriptionFieldTemplate: Nothing,
  ErrorListTemplate: Nothing,
  FallbackFieldTemplate: Nothing,
  FieldErrorTemplate: FieldErrors,
  FieldHelpTemplate: Nothing,
  FieldTemplate: Field,
  GridTemplate: Nothing,
  MultiSchemaFieldTemplate: Union,
  ObjectFieldTemplate: ObjectField,
  OptionalDataControlsTemplate: Nothing,
  TitleFieldTemplate: Nothing,
  UnsupportedFieldTemplate: Nothing,
  WrapIfAdditionalTemplate: Additional,
} as unknown as TemplatesType;
