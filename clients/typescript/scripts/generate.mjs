// Writes src/protocol.ts from the OpenRPC document, proto/openrpc.json.
//
//   node scripts/generate.mjs           writes the file
//   node scripts/generate.mjs --check   fails when the file is not current
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

// Types that get a name, by their position in the document: a method and a path of members, where `[]` is the items of an
// array and a number is one of several forms. Any other position with the same schema gets the name too. Types that others
// contain come first.
const NAMES = [
  ["Format", "tools.list/params/format"],
  ["Listing", "tools.list/params/mode"],
  ["Strategy", "tools.execute_batch/params/strategy"],
  ["Outcome", "audit.query/params/outcome"],
  ["Block", "tools.execute/result/content/[]"],
  ["Category", "permissions.pending/result/asks/[]/category"],
  ["Scope", "permissions.pending/result/asks/[]/suggestions/[]/scope"],
  ["Suggestion", "permissions.pending/result/asks/[]/suggestions/[]"],
  ["Source", "tools.schema/result/source"],
  ["Annotations", "tools.schema/result/annotations"],
  ["Tool", "tools.schema/result"],
  ["FoundTool", "tools.search/result/tools/[]"],
  ["ToolResult", "tools.execute/result"],
  ["Ask", "permissions.pending/result/asks/[]"],
  ["Resolution", "permissions.subscribe/items/1/action"],
  ["Answerer", "permissions.subscribe/items/1/by"],
  ["Action", "permissions.list/result/grants/[]/action"],
  ["PermissionEvent", "permissions.subscribe/items"],
  ["QuestionOption", "questions.subscribe/items/0/request/options/[]"],
  ["Question", "questions.subscribe/items/0/request"],
  ["QuestionEvent", "questions.subscribe/items"],
  ["Mode", "permissions.list/result/mode"],
  ["Rule", "permissions.list/result/rules/[]"],
  ["Grant", "permissions.list/result/grants/[]"],
  ["PluginError", "plugins.list/result/plugins/[]/error"],
  ["Plugin", "plugins.list/result/plugins/[]"],
  ["PluginList", "plugins.list/result"],
  ["McpServer", "mcp.servers/result/servers/[]"],
  ["McpServerList", "mcp.servers/result"],
  ["CallInfo", "calls.list/result/calls/[]"],
  ["SessionInfo", "session.list/result/sessions/[]"],
  ["AuditEntry", "audit.query/result/entries/[]"],
  ["Command", "commands.list/result/commands/[]"],
  ["Event", "events.subscribe/items"],
  ["Workspace", "session.open/result/workspace"],
  ["Session", "session.open/result"],
  ["SharedSession", "session.share/result"],
  ["WorkspaceInfo", "workspaces.list/result/workspaces/[]"],
  ["WorkspaceList", "workspaces.list/result"],
  ["DaemonStatus", "daemon.status/result"],
  ["Role", "tools.provide/params/roles/[]"],
  ["ProvidedTool", "tools.provide/params/tools/[]"],
  ["ProvidedResult", "tools.provide_result/params/result"],
  ["InvocationItem", "tools.provide/items"],
];

const DOCUMENT = fileURLToPath(new URL("../../../proto/openrpc.json", import.meta.url));
const OUTPUT = fileURLToPath(new URL("../src/protocol.ts", import.meta.url));

/** The TypeScript for schemas, with the names so far. */
class Printer {
  /** Maps a type, written without names and comments, to its name. */
  names = new Map();

  name(schema, given, name) {
    this.names.set(this.#print(schema, given, { plain: true, indent: "" }), name);
  }

  isNamed(schema, given) {
    return this.names.get(this.#print(schema, given, { plain: true, indent: "" }));
  }

  /** `given` says whether the client writes such a value, where members with a default are optional, or reads it. */
  type(schema, given, indent = "") {
    return this.#print(schema, given, { plain: false, indent });
  }

  /** The same, but for the outermost name. */
  definition(schema, given) {
    return this.#print(schema, given, { plain: false, indent: "", outermost: true });
  }

  #print(schema, given, how) {
    if (!how.plain && !how.outermost) {
      const name = this.isNamed(schema, given);
      if (name !== undefined) return name;
    }
    const inner = { ...how, outermost: false };
    if (typeof schema === "boolean") return schema ? "unknown" : "never";
    if ("const" in schema) return JSON.stringify(schema.const);
    if (schema.enum?.includes(null)) {
      const others = schema.enum.filter((value) => value !== null);
      return `${this.#print({ type: "string", enum: others }, given, inner)} | null`;
    }
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
    const union = schema.oneOf ?? schema.anyOf;
    if (union) {
      if (schema.properties) {
        const choices = this.#print({ oneOf: union }, given, inner);
        return `${this.#object(schema, given, inner)} & ${choices.includes("|") ? `(${choices})` : choices}`;
      }
      return [...new Set(union.map((choice) => this.#print(choice, given, inner)))].join(" | ");
    }
    if (Array.isArray(schema.type)) {
      return schema.type.map((type) => this.#print({ ...schema, type }, given, inner)).join(" | ");
    }
    switch (schema.type) {
      case "string":
        return "string";
      case "integer":
      case "number":
        return "number";
      case "boolean":
        return "boolean";
      case "null":
        return "null";
      case "array": {
        const item = this.#print(schema.items ?? true, given, inner);
        return /[|&]/.test(item) ? `Array<${item}>` : `${item}[]`;
      }
      case "object":
        return this.#object(schema, given, inner);
      default:
        return "unknown";
    }
  }

  #object(schema, given, how) {
    const properties = Object.entries(schema.properties ?? {});
    const rest = schema.additionalProperties;
    if (properties.length === 0) {
      const value = rest === undefined || rest === true ? "unknown" : this.#print(rest, given, how);
      return rest === undefined && !given ? "Record<string, never>" : `Record<string, ${value}>`;
    }
    const indent = `${how.indent}  `;
    const lines = properties.map(([name, property]) => {
      const present = schema.required?.includes(name) || (!given && property.default !== undefined);
      const optional = present ? "" : "?";
      const type = this.#print(property, given, { ...how, indent });
      const doc = how.plain ? "" : comment(property.description, indent);
      return `${doc}${indent}${/^\w+$/.test(name) ? name : JSON.stringify(name)}${optional}: ${type};\n`;
    });
    return `{\n${lines.join("")}${how.indent}}`;
  }
}

function comment(text, indent = "") {
  if (!text) return "";
  const lines = text
    .replaceAll("*/", "* /")
    .replaceAll(/\[`(\w+)`\]/g, "`$1`")
    .split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd()).join("\n")}\n${indent} */\n`;
}

/** `tools.provide_result` is `ToolsProvideResult`. */
function pascal(method) {
  return method.replaceAll(/(?:^|[._])(\w)/g, (_, letter) => letter.toUpperCase());
}

function paramsSchema(method) {
  const properties = Object.fromEntries(method.params.map((param) => [param.name, param.schema]));
  const required = method.params.filter((param) => param.required).map((param) => param.name);
  return { type: "object", properties, required };
}

function find(methods, path) {
  const [name, part, ...steps] = path.split("/");
  const method = methods.get(name);
  if (!method) throw new Error(`the document has no method ${name}, for ${path}`);
  let schema = { params: paramsSchema(method), result: method.result.schema, items: method["x-items"]?.schema }[part];
  for (const step of steps) {
    if (step === "[]") schema = schema?.items;
    else schema = /^\d+$/.test(step) ? schema?.oneOf?.[step] : schema?.properties?.[step];
  }
  if (schema === undefined) throw new Error(`the document has nothing at ${path}`);
  // What may be null keeps its name.
  if (schema.enum?.includes(null)) schema = { ...schema, enum: schema.enum.filter((value) => value !== null) };
  return { schema, given: part === "params" };
}

function generate(document) {
  const printer = new Printer();
  const parts = [];
  const define = (name, schema, given, summary) => {
    const type = printer.definition(schema, given);
    const doc = comment(schema.description ?? summary);
    const isObject = type.startsWith("{") && type.endsWith("}") && !type.includes("\n} ");
    parts.push(isObject ? `${doc}export interface ${name} ${type}\n` : `${doc}export type ${name} = ${type};\n`);
    printer.name(schema, given, name);
  };

  const methods = new Map(document.methods.map((method) => [method.name, method]));
  const progress = document["x-notifications"].find((notification) => notification.name === "tools.progress").params;
  define("Stream", progress.oneOf[0].properties.stream, false, "The stream that a process wrote to.");
  for (const [name, path] of NAMES) {
    if (name === "Tool") {
      define("Progress", { oneOf: progress.oneOf }, false, "Progress of a running call.");
      define("CallProgress", progress, false);
    }
    const { schema, given } = find(methods, path);
    define(name, schema, given);
  }

  const requests = [];
  const subscriptions = [];
  const notifications = [];
  for (const method of [...methods.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const schema = paramsSchema(method);
    let params = "Record<string, never>";
    if (method.params.length > 0) {
      params = `${pascal(method.name)}Params`;
      let type = printer.definition(schema, true);
      // A flattened union has no place among parameters by name.
      if (method.name === "tools.provide_progress") type += " & Progress";
      const doc = comment(`Params of \`${method.name}\`.`);
      parts.push(
        type.endsWith("}") ? `${doc}export interface ${params} ${type}\n` : `${doc}export type ${params} = ${type};\n`,
      );
    }
    const doc = comment(method.summary, "  ");
    const items = method["x-items"];
    if (items) {
      let item = printer.type(items.schema, false);
      if (item.includes("\n")) {
        item = `${pascal(method.name)}Item`;
        define(item, items.schema, false, `An item of \`${method.name}\`.`);
      }
      subscriptions.push(`${doc}  ${JSON.stringify(method.name)}: { params: ${params}; item: ${item} };\n`);
      const end = document.methods.find(({ summary }) => summary === `Ends a subscription of ${method.name}.`);
      if (!end) throw new Error(`nothing ends a subscription of ${method.name}`);
      const [begun, ended, called] = [method.name, end.name, items.method].map((name) => JSON.stringify(name));
      notifications.push(`  ${begun}: { items: ${called}, end: ${ended} },\n`);
      continue;
    }
    let result = printer.isNamed(method.result.schema, false) ?? printer.type(method.result.schema, false);
    if (result.includes("\n")) {
      const name = `${pascal(method.name)}Result`;
      define(name, method.result.schema, false);
      result = name;
    }
    requests.push(`${doc}  ${JSON.stringify(method.name)}: { params: ${params}; result: ${result} };\n`);
  }

  const errors = Object.entries(document.components.errors).map(
    ([kind, { code, message }]) => `${comment(message, "  ")}  ${kind}: ${code},\n`,
  );
  const made = "Made by scripts/generate.mjs of the daemon's OpenRPC document: change nothing here.";
  const complete = "as const satisfies Record<keyof Subscriptions, { items: string; end: keyof Methods }>";
  const body = (lines) => `{\n${lines.join("")}}`;
  return [
    `// The native protocol in types. ${made}\n`,
    ...parts,
    `/** Requests, by method. */\nexport interface Methods ${body(requests)}\n`,
    `/** Subscriptions, by the method that begins them. */\nexport interface Subscriptions ${body(subscriptions)}\n`,
    "/** The notification of each subscription's items, and the method that ends it. */",
    `export const SUBSCRIPTIONS = ${body(notifications)} ${complete};\n`,
    "/** Codes of errors, by their usual kind. */",
    `export const ERROR_CODES = ${body(errors)} as const;\n`,
  ].join("\n");
}

const check = process.argv.includes("--check");
const text = generate(JSON.parse(readFileSync(DOCUMENT, "utf8")));
if (!check) {
  writeFileSync(OUTPUT, text);
} else if (readFileSync(OUTPUT, "utf8") !== text) {
  console.error("src/protocol.ts is not what proto/openrpc.json describes: run npm run generate");
  process.exitCode = 1;
}
