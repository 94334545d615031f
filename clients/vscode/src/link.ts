/** The window's connection to the daemon: the client, and the state that the views show. Does not use `vscode`. */
import { Client, connect, TooldError, Unreachable, type Ask, type ClientOptions, type Event, type Plugin, type Tool } from "toold";

/** The part of the state that may have changed. The views that show it refresh. */
export type Part = "connection" | "calls" | "asks" | "tools" | "plugins";

export interface RunningCall {
  call_id: string;
  session_id: string;
  tool: string;
}

export interface LinkOptions extends Omit<ClientOptions, "name" | "onConnection" | "log"> {
  /** The folders of the window; the session works in the first. */
  folders: string[];
  onChange: (part: Part) => void;
  log: (message: string) => void;
}

export class Link {
  readonly client: Client;
  tools: Tool[] = [];
  plugins: Plugin[] = [];
  /** Calls of all sessions that began while this window was connected. */
  readonly running = new Map<string, RunningCall>();
  /** Permission requests that wait for an answer. */
  readonly asks = new Map<string, Ask>();
  readonly #options: LinkOptions;
  #following: Promise<void> | undefined;
  #opening: Promise<void> | undefined;

  constructor(options: LinkOptions) {
    this.#options = options;
    const { folders: _, onChange: __, ...client } = options;
    this.client = new Client({ ...client, name: "vscode", onConnection: (connected) => this.#connection(connected) });
  }

  get connected(): boolean {
    return this.client.connected;
  }

  /** The daemon's socket. */
  get socket(): string {
    return this.client.socket;
  }

  /**
   * Connects, opens the window's session and follows the events. Reconnects when the daemon is gone, and then starts one;
   * does nothing when connected.
   */
  async open(): Promise<void> {
    this.#opening ??= this.#open().catch((error: unknown) => {
      this.#opening = undefined;
      throw error;
    });
    await this.#opening;
    if (this.connected && this.tools.length > 0) return;
    await this.client.connect();
    await Promise.all([this.#loadTools(), this.#loadPlugins()]);
  }

  /** Whether a daemon listens. Does not start one. */
  async daemonRuns(): Promise<boolean> {
    const { socket, log } = this.#options;
    try {
      await (await connect({ socket, log, start: false, reconnect: false })).close();
      return true;
    } catch (error) {
      if (error instanceof TooldError) return false;
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.client.close();
    await this.#following;
  }

  /** Adds a permission request, and removes it when it is over. */
  asked(ask: Ask, over: AbortSignal): void {
    this.asks.set(ask.request_id, ask);
    this.#options.onChange("asks");
    const end = () => {
      if (this.asks.delete(ask.request_id)) this.#options.onChange("asks");
    };
    if (over.aborted) end();
    else over.addEventListener("abort", end, { once: true });
  }

  /** Takes over a permission request as it is now. Returns what it was before; nothing when it is not open here. */
  renewed(ask: Ask): Ask | undefined {
    const before = this.asks.get(ask.request_id);
    if (before === undefined) return undefined;
    this.asks.set(ask.request_id, ask);
    this.#options.onChange("asks");
    return before;
  }

  /** Removes a permission request that was answered here. */
  answered(ask: Ask): void {
    if (this.asks.delete(ask.request_id)) this.#options.onChange("asks");
  }

  async #open(): Promise<void> {
    const [cwd, ...roots] = this.#options.folders;
    await this.client.openSession({ cwd: cwd ?? process.env["HOME"] ?? "/", roots });
    const plugins = ["plugin.loaded", "plugin.failed", "plugin.unloaded", "plugin.untrusted"] as const;
    const events = await this.client.events({ kinds: ["tools.changed", ...plugins, "call.started", "call.finished"] });
    this.#following = (async () => {
      for await (const event of events) this.#follow(event);
    })();
    await Promise.all([this.#loadTools(), this.#loadPlugins()]);
  }

  #follow(event: Event): void {
    switch (event.kind) {
      case "tools.changed":
        void this.#loadTools();
        break;
      case "plugin.loaded":
      case "plugin.failed":
      case "plugin.unloaded":
      case "plugin.untrusted":
        void this.#loadPlugins();
        break;
      case "call.started": {
        const { call_id, session_id, tool } = event;
        this.running.set(`${session_id}/${call_id}`, { call_id, session_id, tool });
        this.#options.onChange("calls");
        break;
      }
      case "call.finished":
        this.running.delete(`${event.session_id}/${event.call_id}`);
        this.#options.onChange("calls");
        break;
      case "lagged":
        // The end of a call may be among the lost events.
        this.running.clear();
        this.#options.onChange("calls");
        void this.#loadTools();
        void this.#loadPlugins();
        break;
      default:
        break;
    }
  }

  #connection(connected: boolean): void {
    this.running.clear();
    this.asks.clear();
    if (!connected) {
      this.tools = [];
      this.plugins = [];
    } else if (this.#following !== undefined) {
      void this.#loadTools();
      void this.#loadPlugins();
    }
    for (const part of ["connection", "calls", "asks", "tools", "plugins"] as const) this.#options.onChange(part);
  }

  async #loadTools(): Promise<void> {
    await this.#load(async () => (this.tools = await this.client.tools()), "tools");
  }

  async #loadPlugins(): Promise<void> {
    await this.#load(async () => (this.plugins = (await this.client.request("plugins.list")).plugins), "plugins");
  }

  async #load(load: () => Promise<unknown>, part: Part): Promise<void> {
    try {
      // A background request must not start a daemon that you have stopped.
      if (!this.connected) return;
      await load();
      this.#options.onChange(part);
    } catch (error) {
      if (!(error instanceof TooldError)) throw error;
      // The views were cleared with the connection, and the next one fills them.
      if (error instanceof Unreachable) return;
      this.#options.log(`can't list the ${part}: ${error.message}`);
    }
  }
}
