/** Questions before something that cannot be undone. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { Block } from "./text.tsx";

export interface Confirmation {
  title: string;
  body?: string;
  /** The button's text, such as `Cancel the call`. */
  action: string;
  danger?: boolean;
}

const open = signal<(Confirmation & { answer: (yes: boolean) => void }) | undefined>(undefined);

/** Asks, and resolves with the answer. */
export function confirm(confirmation: Confirmation): Promise<boolean> {
  open.value?.answer(false);
  return new Promise((resolve) => {
    const answer = (yes: boolean) => {
      open.value = undefined;
      resolve(yes);
    };
    open.value = { ...confirmation, answer };
  });
}

/** Where questions appear; once in the page. */
export function ConfirmDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const { value } = open;
  useEffect(() => {
    if (value) dialog.current?.showModal();
    else dialog.current?.close();
  }, [value]);
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby="confirm-title" onClose={() => value?.answer(false)}>
      {value && (
        <form method="dialog">
          <h2 id="confirm-title">{value.title}</h2>
          {value.body && <Block value={value.body} />}
          <div class="buttons">
            <button type="submit" autofocus>
              Go back
            </button>
            <button type="button" class={value.danger ? "danger" : "primary"} onClick={() => value.answer(true)}>
              {value.action}
            </button>
          </div>
        </form>
      )}
    </dialog>
  );
}
