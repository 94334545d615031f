/** An agent: an MCP client whose server is `toolctl mcp`, as Claude Code, Codex and others start it. */
import { spawn, type ChildProcessByStdio } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

import type { TestDaemon } from "./daemon.ts";

export interface ToolAnswer {
  content: { type: string; text?: string }[];
  isError?: boolean;
}

/**
 * Runs a program as an orphan: whatever starts an agent may decide nothing any more, so that must not be the test, which
 * runs toolctl too. The shell stays until its third descriptor closes, since Node closes the pipes of a child that ends.
 */
const ORPHAN = 'exec 4<&0; (setsid "$0" "$@" <&4 3<&- 4<&- &); exec cat <&3 >/dev/null 4<&-';

interface Waiting {
  resolve: (result: never) => void;
  reject: (error: Error) => void;
}

export class TestAgent {
  readonly #process: ChildProcessByStdio<Writable, Readable, null>;
  readonly #ended: Promise<unknown>;
  readonly #waiting = new Map<number, Waiting>();
  #id = 0;

  static async start(daemon: TestDaemon, name: string): Promise<TestAgent> {
    const agent = new TestAgent(daemon);
    await agent.#request("initialize", {
      protocolVersion: "2025-06-18",
      capabilities: {},
      clientInfo: { name, version: "1.0" },
    });
    agent.#send({ method: "notifications/initialized" });
    return agent;
  }

  private constructor(daemon: TestDaemon) {
    this.#process = spawn("sh", ["-c", ORPHAN, join(daemon.paths.bin, "toolctl"), "mcp"], {
      env: daemon.environment,
      cwd: daemon.paths.work,
      stdio: ["pipe", "pipe", "inherit", "pipe"],
    }) as ChildProcessByStdio<Writable, Readable, null>;
    this.#ended = once(this.#process.stdout, "close");
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#receive(line));
  }

  /** Calls a tool. Without waiting for the answer, the call runs on. */
  call(name: string, args: object = {}): Promise<ToolAnswer> {
    const answer = this.#request<ToolAnswer>("tools/call", { name, arguments: args });
    // The end of an agent ends its calls, which is no error of a test that does not look at them.
    answer.catch(() => {});
    return answer;
  }

  async stop(): Promise<void> {
    // The end of its input alone would let it wait for the answers.
    for (const requestId of this.#waiting.keys()) this.#send({ method: "notifications/cancelled", params: { requestId } });
    this.#process.stdin.end();
    await this.#ended;
    (this.#process.stdio[3] as Writable).end();
  }

  #request<T>(method: string, params: object): Promise<T> {
    const id = ++this.#id;
    return new Promise<T>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#send({ id, method, params });
    });
  }

  #send(message: object): void {
    this.#process.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  #receive(line: string): void {
    const { id, result, error } = JSON.parse(line) as { id?: number; result?: never; error?: { message: string } };
    if (id === undefined) return;
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (error) waiting?.reject(new Error(error.message));
    else waiting?.resolve(result as never);
  }
}
