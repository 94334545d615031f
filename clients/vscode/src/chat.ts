/** Maps the tools of chat to the daemon's. Does not use `vscode`. */
import { CallCancelled, InvalidArguments, RpcError, type Block, type Client, type ToolResult } from "toold";

const PREFIX = "toold_";

/** The daemon's name for a tool that `package.json` declares. */
export function toolOf(chatName: string): string {
  return chatName.slice(PREFIX.length);
}

/** The tools of the daemon that `package.json` declares, by their names in chat. */
export function declared(manifest: unknown): string[] {
  const { contributes } = manifest as { contributes?: { languageModelTools?: { name: string }[] } };
  return (contributes?.languageModelTools ?? []).map(({ name }) => name).filter((name) => name.startsWith(PREFIX));
}

/** Calls a tool for a model, and returns texts for it. An error of the daemon is a text too; a cancelled call rejects. */
export async function callForModel(
  client: Client,
  name: string,
  input: object,
  signal: AbortSignal,
): Promise<string[]> {
  try {
    return texts(await client.execute(name, input, { signal }));
  } catch (error) {
    if (signal.aborted || error instanceof CallCancelled) throw error;
    if (error instanceof InvalidArguments) {
      // All problems at once, or the model would fix them one by one.
      return [error.message, ...error.errors.map(({ path, message }) => `${path || "/"}: ${message}`)];
    }
    if (error instanceof RpcError) return [error.message];
    throw error;
  }
}

/** A result as texts. */
export function texts(result: Pick<ToolResult, "content">): string[] {
  return result.content.map(block);
}

function block(content: Block): string {
  switch (content.type) {
    case "text":
      return content.text;
    case "image":
    case "audio":
      return `[${content.type}, ${content.mime_type}, ${Math.floor((content.data.length * 3) / 4)} bytes]`;
    case "resource":
      return content.text ?? `[${[content.uri, content.mime_type, content.description ?? content.name].filter(Boolean).join(", ")}]`;
  }
}

/** The text in chat while a tool runs. */
export function invocationMessage(name: string, input: object): string {
  const [first] = Object.values(input).filter((value) => typeof value === "string");
  const argument = first === undefined ? "" : `: ${first.split("\n")[0]!.slice(0, 80)}`;
  return `${name}${argument}`;
}
