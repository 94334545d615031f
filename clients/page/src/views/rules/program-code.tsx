/** A code for a program that an agent may have left behind: its person types it there. */
import { signal } from "@preact/signals";
import type { Methods } from "toold/browser";

import { Copy } from "../../components.tsx";
import { request } from "../../daemon.ts";
import { Time } from "../../time.tsx";
import { report } from "../../toasts.tsx";

const made = signal<Methods["permissions.code"]["result"] | undefined>(undefined);

export function ProgramCode() {
  const { value } = made;
  return (
    <section class="stack" aria-labelledby="program-code-title">
      <h2 id="program-code-title">Your own programs</h2>
      <p class="small dim">
        A program without a terminal whose parent has ended may have been left behind by an agent, and decides nothing until you
        confirm it with a code: <code>toolctl agents confirm CODE</code> in the program.
      </p>
      {value && (
        <p class="row" role="status">
          <code>{value.code}</code> <Copy value={value.code} />
          <span class="small dim">
            counts once, and ends <Time at={value.expires_at} />
          </span>
        </p>
      )}
      <div>
        <button type="button" onClick={() => void make()}>
          Make a code
        </button>
      </div>
    </section>
  );
}

async function make(): Promise<void> {
  try {
    made.value = await request("permissions.code", {});
  } catch (error) {
    report(error);
  }
}
