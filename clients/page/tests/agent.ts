/** An agent: an MCP client whose server is `toolctl mcp`, as Claude Code, Codex and others start it. */
import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

import type { TestDaemon } from "./daemon.ts";

export interface ToolAnswer {
  content: { type: string; text?: string }[];
  isError?: boolean;
}

interface Waiting {
  resolve: (result: never) => void;
  reject: (error: Error) => void;
}

export class TestAgent {
  readonly #process: ChildProcessWithoutNullStreams;
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
    // Whatever started an agent may decide nothing any more, so this must not be the test, which runs toolctl too.
    this.#process = spawn("setsid", ["--fork", join(daemon.paths.bin, "toolctl"), "mcp"], {
      env: daemon.environment,
      cwd: daemon.paths.work,
      stdio: "pipe",
    });
    this.#process.stderr.resume();
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
    this.#process.stdin.end();
    await this.#ended;
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
