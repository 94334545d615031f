/**
 * In place of the form library's own list of parts, which has more than the page needs; see the alias in `vite.config.ts`.
 */
import ArrayField from "@rjsf/core/lib/components/fields/ArrayField.js";
import MultiSchemaField from "@rjsf/core/lib/components/fields/MultiSchemaField.js";
import NullField from "@rjsf/core/lib/components/fields/NullField.js";
import NumberField from "@rjsf/core/lib/components/fields/NumberField.js";
import ObjectField from "@rjsf/core/lib/components/fields/ObjectField.js";
import SchemaField from "@rjsf/core/lib/components/fields/SchemaField.js";
import StringField from "@rjsf/core/lib/components/fields/StringField.js";
import { DEFAULT_ID_SEPARATOR, englishStringTranslator } from "@rjsf/utils";

import { templates } from "./templates.tsx";
import { JsonField, UntypedField, widgets } from "./widgets.tsx";

export default function registry() {
  return {
    fields: {
      AnyOfField: MultiSchemaField,
      ArrayField,
      BooleanField: JsonField,
      CyclicSchemaField: JsonField,
      FallbackField: UntypedField,
      NullField,
      NumberField,
      ObjectField,
      OneOfField: MultiSchemaField,
      OptionalDataControlsField: () => null,
      SchemaField,
      StringField,
    },
    templates,
    widgets,
    rootSchema: {},
    formContext: {},
    translateString: englishStringTranslator,
    globalFormOptions: {
      idPrefix: "argument",
      idSeparator: DEFAULT_ID_SEPARATOR,
      useFallbackUiForUnsupportedType: false,
    },
  };
}
