/** A decision of the permission engine. */
import { Badge } from "../../components.tsx";
import type { Verdict } from "./permissions.ts";

export function VerdictBadge({ verdict }: { verdict: Verdict }) {
  return <Badge tone={verdict === "allow" ? "good" : verdict === "deny" ? "bad" : "warn"}>{verdict}</Badge>;
}
