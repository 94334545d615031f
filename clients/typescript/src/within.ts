/** The time limit of one request. */
import { RequestTimeout } from "./errors.js";

/** Waits for `work` for at most so many milliseconds, then fires the signal that `work` gets. */
export async function within<T>(
  patience: number,
  what: string,
  work: (signal: AbortSignal | undefined) => Promise<T>,
  outer?: AbortSignal,
): Promise<T> {
  if (!Number.isFinite(patience)) return work(outer);
  // Not `AbortSignal.timeout`, whose timer would go on after the work is done.
  const controller = new AbortController();
  const timer = setTimeout(() => {
    controller.abort(new RequestTimeout(`no answer to ${what} after ${patience / 1000} s`));
  }, patience);
  try {
    return await work(outer === undefined ? controller.signal : AbortSignal.any([outer, controller.signal]));
  } finally {
    clearTimeout(timer);
  }
}
