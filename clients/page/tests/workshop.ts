/** Tools for the tests of the view Tools. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { HOSTILE } from "./traffic.ts";

const PNG = readFileSync(join(import.meta.dirname, "../public/icon-192.png"), "base64");

const ORDER = {
  type: "object",
  properties: {
    note: { type: "string", maxLength: 80 },
    drink: {
      description: "What to make.",
      oneOf: [
        { const: "tea", description: "from a pot" },
        { const: "coffee", description: "from a machine" },
      ],
    },
    cups: { type: "integer", minimum: 1, maximum: 12 },
    sugar: {
      type: "object",
      properties: { lumps: { type: "integer" }, brown: { type: "boolean", default: false } },
      required: ["lumps"],
      additionalProperties: false,
    },
    until: { type: ["string", "null"], description: "The time, or `null` for now." },
    payment: {
      oneOf: [
        { type: "object", properties: { by: { const: "cash" } }, required: ["by"] },
        {
          type: "object",
          properties: { by: { const: "card" }, number: { type: "string", pattern: "^[0-9]+$" } },
          required: ["by", "number"],
        },
      ],
    },
    extra: { description: "Anything." },
    guests: { type: "array", items: { type: "string" } },
  },
  required: ["drink", "cups"],
  additionalProperties: false,
};

/** A table of Lua with the value. */
export function lua(value: unknown): string {
  return `hygge.json.decode([==[${JSON.stringify(value)}]==])`;
}

export const WORKSHOP = `
hygge.register_tool{
  name = "order", description = "Orders a drink", permission = false, input_schema = ${lua(ORDER)},
  execute = function(ctx, input) ctx.progress("ordering") return "ordered " .. (input.note or "") end,
}
hygge.register_tool{
  name = "brew", description = "Makes tea, slowly", permission = false, input_schema = {type = "object"},
  execute = function(ctx)
    ctx.output("the water is warm\\n")
    ctx.progress{message = "heating", progress = 2, total = 5}
    hygge.sleep("1h")
  end,
}
hygge.register_tool{
  name = "menu", description = "Shows what there is", permission = false, input_schema = {type = "object"},
  output_schema = {type = "object"},
  execute = function()
    return {
      content = {
        "# Today\\n\\n- **oolong**\\n- sencha\\n",
        {type = "image", data = "${PNG}", mime_type = "image/png"},
        {type = "resource", uri = "https://example.org/tea", name = "the teas"},
      },
      structured = {teas = {{name = "oolong", price = 4}, {name = "sencha", price = 3.5}, {name = "matcha", price = 6}}},
      metadata = {kitchen = "open"},
    }
  end,
}
`;

const TEXT = HOSTILE.join("\n\n");
const HOSTILE_SCHEMA = {
  type: "object",
  title: TEXT,
  properties: {
    [HOSTILE[1]!]: { type: "string", description: TEXT, default: TEXT, examples: [TEXT] },
    choice: { enum: HOSTILE, title: HOSTILE[0], description: TEXT },
    object: { type: "object", title: HOSTILE[3], properties: { [HOSTILE[8]!]: { title: HOSTILE[5] } } },
    union: {
      anyOf: [
        { title: HOSTILE[0], type: "string" },
        { title: HOSTILE[2], type: "integer" },
      ],
    },
  },
};
const HOSTILE_RESULT = {
  content: [
    TEXT,
    {
      type: "image",
      data: btoa("<svg xmlns='http://www.w3.org/2000/svg' onload='window.pwned=1'/>"),
      mime_type: "image/svg+xml",
    },
    { type: "resource", uri: "javascript:window.pwned=1", name: HOSTILE[3], mime_type: "text/html", text: TEXT },
  ],
  structured: { rows: HOSTILE.map((text) => ({ ["<b onmouseover='window.pwned=1'>"]: text })) },
  metadata: { [HOSTILE[0]!]: TEXT, __html: TEXT },
};

/** Each level doubles the checks of one value, and the pattern takes for ever in a browser. */
const EXPLOSIVE = {
  type: "object",
  properties: { text: { type: "string", pattern: "^(a+)+$" }, value: { $ref: "#/$defs/d0" } },
  $defs: Object.fromEntries(
    Array.from({ length: 40 }, (_, at) => {
      const next = at === 39 ? { type: "integer" } : { $ref: `#/$defs/d${at + 1}` };
      return [`d${at}`, { anyOf: [next, next] }];
    }),
  ),
};

/** A tool that tries whatever it can, one whose schema takes long to check, and one that writes much. */
export const HOSTILE_TOOLS = `
hygge.register_tool{
  name = "hostile", label = ${lua(HOSTILE[3])}, description = ${lua(TEXT)}, permission = false,
  input_schema = ${lua(HOSTILE_SCHEMA)},
  execute = function() return ${lua(HOSTILE_RESULT)} end,
}
hygge.register_tool{
  name = "explosive", description = "Has a schema that explodes", permission = false, input_schema = ${lua(EXPLOSIVE)},
  execute = function() return "called" end,
}
hygge.register_tool{
  name = "flood", description = "Writes one line of 10 MB", permission = false, input_schema = {type = "object"},
  execute = function(ctx)
    local piece = string.rep("tea ", 262144)
    for i = 1, 10 do ctx.output(piece) end
    return {content = {string.rep("tea ", 200000)}, structured = {line = piece}}
  end,
}
`;
