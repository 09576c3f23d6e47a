// What editors built on the official TypeScript SDK have in common here: the bridge is their child, a session of each
// backend is driven over one connection, and what was seen is printed as one JSON object.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

/** The SDK's entry point of this name, from a node_modules directory. */
export async function sdk(nodeModules, name) {
  return import(pathToFileURL(createRequire(join(nodeModules, "x.js")).resolve(name)).href);
}

/** Lets functions wait for what comes in: `hear` after each piece, `until` for what they look for. */
export function news() {
  const waiting = [];
  return {
    hear() {
      for (const look of waiting.splice(0)) look();
    },
    async until(holds) {
      while (!holds()) await new Promise((resolve) => waiting.push(resolve));
    },
  };
}

/** The answer that allows what is asked, once. */
export function allowed(params) {
  const { optionId } = params.options.find((option) => option.kind === "allow_once");
  return { outcome: { outcome: "selected", optionId } };
}

/** Runs the bridge and the client on it, and prints what was seen together with the exit status of the bridge. */
export async function drive(acp, app, [command, ...words], { greeting, converse, more = () => ({}) }) {
  const { agent } = acp.methods;
  const child = spawn(command, words, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((resolve) => child.on("exit", resolve));
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const report = await app.connectWith(stream, async (ctx) => {
    const greeted = await ctx.request(agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, ...greeting });
    const unknown = await ctx
      .request(agent.session.prompt, { sessionId: "no-such", prompt: [{ type: "text", text: "x" }] })
      .then(() => "answered", (error) => error.code);
    const claude = await converse(ctx, "claude");
    const codex = await converse(ctx, "codex");
    return { greeting: greeted, unknown, claude, codex };
  });
  child.stdin.end();
  report.exit = await exited;
  process.stdout.write(JSON.stringify({ ...report, ...more() }) + "\n");
}
