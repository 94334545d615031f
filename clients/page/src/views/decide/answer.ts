/** Sending an answer once, and not before the person could see what it answers. */
import { useEffect, useState } from "preact/hooks";
import { UnknownId } from "toold/browser";

import { request } from "../../daemon.ts";
import { report, toast } from "../../toasts.tsx";
import { answeredHere } from "./outcomes.ts";

/** How long a new prompt takes no answer, in milliseconds: a key or click may have been meant for what was there. */
const UNARMED = 500;

type Reply = "permissions.reply" | "questions.reply";

/** Whether the prompt takes answers now, and the function that sends one. */
export function useAnswer(id: string): { ready: boolean; answer: typeof send } {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setReady(true), UNARMED);
    return () => clearTimeout(timer);
  }, [id]);
  const send = async <M extends Reply>(method: M, params: Parameters<typeof request<M>>[1]): Promise<void> => {
    if (!ready) return;
    setReady(false);
    answeredHere.add(id);
    try {
      await request(method, params);
    } catch (error) {
      answeredHere.delete(id);
      if (error instanceof UnknownId) return toast(`Nothing was changed: ${error.message}`);
      report(error);
      setReady(true);
    }
  };
  return { ready, answer: send };
}
