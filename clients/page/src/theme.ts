/** Light or dark: as the system has it, until the person chooses. */
import { signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "toold.theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];

export const theme = signal<Theme>(THEMES.find((name) => name === localStorage.getItem(KEY)) ?? "system");

/** Sets what the style sheet looks at. */
export function applyTheme(): void {
  const root = document.documentElement;
  if (theme.value === "system") delete root.dataset["theme"];
  else root.dataset["theme"] = theme.value;
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  localStorage.setItem(KEY, theme.value);
  applyTheme();
}
