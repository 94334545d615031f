/**
 * The variables that a client passes to `session.open`, so that commands find the toolchains that the client finds.
 *
 * The daemon has the environment of the client that started it, perhaps days ago. Only the client knows a version of
 * Node that was chosen since.
 */
import type { Session } from "./protocol.js";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Variables by which programs find their toolchains; a final `*` matches any text. All clients of toold pass the same
 * ones.
 */
export const TOOLCHAIN: readonly string[] = [
  "PATH",
  "VIRTUAL_ENV",
  "CONDA_PREFIX",
  "CONDA_DEFAULT_ENV",
  "PYENV_VERSION",
  "NVM_DIR",
  "NVM_BIN",
  "FNM_DIR",
  "VOLTA_HOME",
  "CARGO_HOME",
  "RUSTUP_HOME",
  "RUSTUP_TOOLCHAIN",
  "GOPATH",
  "GOROOT",
  "GOBIN",
  "JAVA_HOME",
  "SDKMAN_DIR",
  "GEM_HOME",
  "RBENV_VERSION",
  "ASDF_DIR",
  "MISE_DATA_DIR",
  "NIX_PATH",
  "SSH_AUTH_SOCK",
  "LANG",
  "LC_*",
  "TZ",
];

/**
 * The variables that a client of this role passes: a person's frontend passes the `TOOLCHAIN`, a client that acts for a
 * model all but those of toold itself. The daemon removes secrets.
 */
export function passedOn(role: string | null | undefined, environment: Environment): Record<string, string> {
  const passes = (name: string) => (role === "agent" ? !name.startsWith("TOOLD_") : isOfToolchain(name));
  // Node replaces invalid UTF-8 by U+FFFD, so such a value is not the one that was set.
  const isText = (text: string) => !text.includes("\ufffd");
  const passed: Record<string, string> = Object.create(null);
  for (const [name, value] of Object.entries(environment)) {
    if (value !== undefined && passes(name) && isText(name + value)) passed[name] = value;
  }
  return passed;
}

/** Warnings about what a session lacks, for a log; `own` are the variables that the caller named. */
export function lacks(session: Session, role: string | null | undefined, own: Environment): string[] {
  // An agent's secrets are ignored too, as they should be, and so is what a program below a tool passes by itself.
  const isExpected = (name: string) => Object.hasOwn(own, name) || (role === "agent" && isOfToolchain(name));
  const expected = (session.env_ignored ?? []).filter(isExpected);
  const warnings = [];
  if (expected.length > 0) {
    warnings.push(
      `these variables have no effect, since this client may not set them: ${expected.join(", ")}; ` +
        "set [agents] env in the configuration to allow them",
    );
  }
  if (session.workspace === "pending") {
    warnings.push(
      `this client may not work in ${session.cwd} yet, so the first call that needs it asks for approval; ` +
        `to allow it: toolctl workspaces allow ${quoted(session.cwd)}`,
    );
  } else if (session.workspace === "none") {
    warnings.push("the session has no folder to work in; allow one with: toolctl workspaces allow DIR");
  }
  if (session.not_kept) warnings.push(session.not_kept);
  return warnings;
}

function isOfToolchain(name: string): boolean {
  return TOOLCHAIN.some((known) => (known.endsWith("*") ? name.startsWith(known.slice(0, -1)) : name === known));
}

/** A word, quoted for a shell. */
function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
