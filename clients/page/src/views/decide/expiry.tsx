/** How long a prompt can still be answered. */
import { clock, duration } from "../../time.tsx";

/** Milliseconds before the end, from which on it is marked. */
const SOON = 60_000;

export function Expiry({ at }: { at: string }) {
  const left = Math.max(0, Date.parse(at) - clock.value);
  return (
    <span class={`expiry small ${left < SOON ? "bad" : "dim"}`}>
      expires in {left < 1000 ? "a moment" : duration(Math.floor(left / 1000) * 1000)}
    </span>
  );
}
