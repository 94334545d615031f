/** The text of the item in the status bar. Does not use `vscode`. */

export interface Status {
  connected: boolean;
  running: number;
  asks: number;
}

export interface StatusView {
  text: string;
  tooltip: string;
  /** The command that a click runs. */
  command: "toold.connect" | "toold.answer" | "toold.cancel" | "toold.call";
  /** Whether a permission request waits for an answer. */
  warning: boolean;
}

export function statusView({ connected, running, asks }: Status): StatusView {
  if (!connected) {
    const tooltip = "Not connected to the daemon. Click to connect, and to start it if it is not running.";
    return { text: "$(debug-disconnect) toold", tooltip, command: "toold.connect", warning: false };
  }
  const calls = running === 0 ? "" : ` $(sync~spin) ${running}`;
  const summary = `${count(running, "call running", "calls running")}, ${count(asks, "request waiting", "requests waiting")}.`;
  if (asks > 0) {
    const text = `$(bell-dot) toold ${asks}${calls}`;
    return { text, tooltip: `${summary} Click to answer.`, command: "toold.answer", warning: true };
  }
  if (running > 0) {
    return {
      text: `$(tools) toold${calls}`,
      tooltip: `${summary} Click to cancel one.`,
      command: "toold.cancel",
      warning: false,
    };
  }
  return { text: "$(tools) toold", tooltip: "Connected. Click to call a tool.", command: "toold.call", warning: false };
}

function count(n: number, one: string, many: string): string {
  return n === 1 ? `1 ${one}` : `${n} ${many}`;
}
