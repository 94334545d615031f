/** The tools that you called last, and what you typed for them. Does not use `vscode`. */
import type { Field, Typed } from "./form.js";

/** Where it is kept; `vscode.Memento` is one. */
export interface Memory {
  get<T>(key: string): T | undefined;
  update(key: string, value: unknown): Thenable<void>;
}

/** By tool, the last one first: the text by field. */
type Remembered = [tool: string, typed: Record<string, string>][];

const KEY = "toold.recent";
const MAX_TOOLS = 30;
/** Longer text is not remembered: it is a document, not a value. */
const MAX_TEXT = 1000;

export class Recent {
  constructor(private readonly memory: Memory) {}

  /** The last one first. */
  tools(): string[] {
    return this.#all().map(([tool]) => tool);
  }

  typed(tool: string): Typed {
    return new Map(Object.entries(this.#all().find(([name]) => name === tool)?.[1] ?? {}));
  }

  async called(tool: string, fields: readonly Field[], typed: Typed): Promise<void> {
    const before = this.typed(tool);
    const kept = fields.flatMap(({ name, secret }) => {
      const text = typed.get(name) || before.get(name);
      return secret || !text || text.length > MAX_TEXT ? [] : [[name, text] as const];
    });
    const others = this.#all().filter(([name]) => name !== tool);
    await this.memory.update(KEY, [[tool, Object.fromEntries(kept)], ...others].slice(0, MAX_TOOLS));
  }

  #all(): Remembered {
    return this.memory.get<Remembered>(KEY) ?? [];
  }
}
