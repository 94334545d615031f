/** Commands for a terminal. */

/** A word with quotes for a shell of the POSIX kind, where it needs them. */
export function quote(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

export function commandLine(...words: string[]): string {
  return words.map(quote).join(" ");
}
