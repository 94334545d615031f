/** Every schema becomes a form: those of the built-in tools, and the hard ones. */
import { expect, test } from "./fixtures.ts";
import { conformancePlugin, hardSchemas } from "./schemas.ts";
import { lua } from "./workshop.ts";

const schemas = hardSchemas();
const tool = ([name, schema]: [string, object]) => `hygge.register_tool{
  name = "${name}", description = "${name}", permission = false, input_schema = ${lua(schema)},
  execute = function() return "called" end,
}`;

test.use({
  contents: {
    plugins: { "hard.lua": [...schemas].map(tool).join("\n"), "conformance.lua": conformancePlugin() },
  },
});

test("every schema is shown as a form", async ({ signedIn, daemon }) => {
  test.slow();
  const failures: string[] = [];
  let current = "";
  signedIn.on("pageerror", (error) => failures.push(`${current}: ${error.message}`));
  signedIn.on("console", (message) => message.type() === "error" && failures.push(`${current}: ${message.text()}`));
  const { tools } = JSON.parse(await daemon.toolctl("list", "--json")) as {
    tools: { name: string; input_schema: { properties?: object } }[];
  };
  const names = tools.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(["bash", "edit", "todo", "test_simple_text", ...schemas.keys()]));
  let opened = 0;
  for (const { name, input_schema } of tools) {
    current = name;
    const shown = await signedIn.evaluate(showEverything, name);
    const expected = Object.values(input_schema.properties ?? {}).some((schema) => schema !== false);
    if (shown.alerts > 0) failures.push(`${name}: the form shows an error`);
    if (expected && shown.fields === 0) failures.push(`${name}: the form has no fields`);
    opened += shown.opened;
  }
  expect(failures).toEqual([]);
  // The test would say nothing if it found no buttons and choices.
  expect(opened).toBeGreaterThan(100);
});

/** Shows a tool, adds an item to each list, and chooses each kind of each union. */
async function showEverything(name: string): Promise<{ fields: number; alerts: number; opened: number }> {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const form = () => document.querySelector(`[data-tool="${name}"]`);
  location.hash = `/tools/${name}`;
  for (let frames = 0; !form() && frames < 600; frames += 1) await frame();
  const shown = form();
  if (!shown) throw new Error(`${name} is not shown`);
  let opened = 0;
  for (const button of [...shown.querySelectorAll<HTMLButtonElement>("button[id$='add']")].slice(0, 20)) {
    button.click();
    opened += 1;
    await frame();
  }
  for (const select of [...shown.querySelectorAll<HTMLSelectElement>("select[id$='of_select']")].slice(0, 20)) {
    for (const { value } of [...select.options].slice(0, 10)) {
      select.value = value;
      select.dispatchEvent(new Event("change", { bubbles: true }));
      opened += 1;
      await frame();
    }
  }
  await frame();
  const count = (selector: string) => shown.querySelectorAll(selector).length;
  return { fields: count(".field"), alerts: count("[role=alert]"), opened };
}
