/** A sentence or two of a tool, in which only code between backticks is set apart. */
import { visible } from "../../text.tsx";

const MAX = 1000;

export function Prose({ value }: { value: string }) {
  const parts = visible(value.slice(0, MAX)).split(/`([^`\n]+)`/);
  return (
    <bdi>
      {parts.map((part, at) => (at % 2 === 1 ? <code key={at}>{part}</code> : part))}
      {value.length > MAX && "…"}
    </bdi>
  );
}
