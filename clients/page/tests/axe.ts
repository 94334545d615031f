/** Accessibility, by axe. */
import AxeBuilder from "@axe-core/playwright";
import { expect, type Page } from "@playwright/test";

/** Fails if axe finds something serious or critical, in light or dark. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const axe = new AxeBuilder({ page });
    // Nothing else differs.
    if (colorScheme === "dark") axe.withRules(["color-contrast"]);
    const { violations } = await axe.analyze();
    const grave = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
    const found = grave.map(({ id, nodes }) => `${colorScheme}: ${id}: ${nodes.map((node) => node.html).join(" ")}`);
    expect(found).toEqual([]);
  }
  await page.emulateMedia({ colorScheme: "light" });
}
