/** Fails when the built page is larger than people with a phone should have to load. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";

const LIMIT = 250_000;

const folder = process.argv[2] ?? "dist";
const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const sizes = files.map((file) => ({
  name: file.name,
  size: gzipSync(readFileSync(join(file.parentPath, file.name)), { level: 9 }).length,
}));
sizes.sort((a, b) => b.size - a.size);
for (const { name, size } of sizes) console.log(`${String(size).padStart(8)} ${name}`);
const total = sizes.reduce((sum, { size }) => sum + size, 0);
console.log(`${String(total).padStart(8)} bytes compressed, of ${LIMIT}`);
if (total > LIMIT) {
  console.error("the page is too large");
  process.exitCode = 1;
}
