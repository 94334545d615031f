/** In place of the form library's Markdown, which would be a second one; see the alias in `vite.config.ts`. */
import type { ComponentChildren } from "preact";

import { Text } from "../../../text.tsx";

export function Markdown({ children }: { children?: ComponentChildren }) {
  return <>{typeof children === "string" ? <Text value={children} /> : children}</>;
}
