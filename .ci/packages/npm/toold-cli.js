#!/usr/bin/env node
// Runs the program of this name from the package for this platform, with the same arguments and the same input.
"use strict";
const { spawnSync } = require("node:child_process");
const { basename } = require("node:path");

const name = basename(process.argv[1], ".js");
const platform = `@toold/cli-${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${platform}/bin/${name}`);
} catch {
  console.error(`${name}: the package ${platform} is not installed; this platform may have none`);
  process.exit(1);
}
const ended = spawnSync(program, process.argv.slice(2), { stdio: "inherit" });
if (ended.error) {
  console.error(`${name}: ${ended.error.message}`);
  process.exit(1);
}
if (ended.signal) process.kill(process.pid, ended.signal);
process.exit(ended.status ?? 1);
