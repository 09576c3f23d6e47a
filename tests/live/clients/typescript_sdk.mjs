// One editor built on the official TypeScript SDK: opens, prompts, allows, cancels, lists, titles, closes and loads
// a session of each backend over one connection, and prints what it saw as one JSON object.
//
// usage: node typescript_sdk.mjs NODE_MODULES ENTRY_POINT CWD COMMAND [ARGUMENT...]
//   ENTRY_POINT: "stable" or "unstable", that of the SDK to use.

import { allowed, drive, news, sdk } from "./driven.mjs";

const [nodeModules, entryPoint, cwd, ...bridge] = process.argv.slice(2);
const acp = await sdk(nodeModules, entryPoint === "unstable" ? "@agentclientprotocol/sdk/unstable" : "@agentclientprotocol/sdk");
const { agent, client: ours } = acp.methods;

const said = new Map();
const asked = [];
const never = [];
const { hear, until } = news();

function heard(sessionId, text) {
  said.set(sessionId, (said.get(sessionId) ?? "") + text);
  hear();
}

function refuse(method) {
  return () => {
    never.push(method);
    throw acp.RequestError.methodNotFound(method);
  };
}

const app = acp
  .client({ name: "editor" })
  .onNotification(ours.session.update, ({ params }) => {
    const { sessionUpdate: kind, content } = params.update;
    if (kind === "agent_message_chunk" && content.type === "text") heard(params.sessionId, content.text);
    if (kind === "user_message_chunk" && content.type === "text") heard(params.sessionId, `[${content.text}]`);
  })
  .onRequest(ours.session.requestPermission, ({ params }) => {
    asked.push(params.sessionId);
    return allowed(params);
  })
  .onRequest(ours.fs.readTextFile, refuse("fs/read_text_file"))
  .onRequest(ours.fs.writeTextFile, refuse("fs/write_text_file"))
  .onRequest(ours.terminal.create, refuse("terminal/create"));

async function converse(ctx, backend) {
  const report = {};
  const opened = await ctx.request(agent.session.new, { cwd, mcpServers: [], _meta: { "acp-manifold": { backend } } });
  const sessionId = opened.sessionId;
  const prompt = async (text) =>
    (await ctx.request(agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] })).stopReason;

  const run = { claude: "RUN", codex: "RUNESC" }[backend];
  report.allowed = await prompt(`${run}[touch ${backend}.txt] ;; TEXT<<from ${backend}>>`);
  report.asked = asked.filter((id) => id === sessionId).length;

  const cancelled = prompt("TEXT<<stop me>> GATE[never] TEXT<<not said>>");
  await until(() => (said.get(sessionId) ?? "").includes("stop me"));
  await ctx.notify(agent.session.cancel, { sessionId });
  report.cancelled = await cancelled;

  if (agent.session.setTitle) {
    report.title = (await ctx.request(agent.session.setTitle, { sessionId, title: ` ${backend}\n title ` })).title;
  }
  const { sessions } = await ctx.request(agent.session.list, { cwd });
  report.listed = sessions.filter((row) => row.sessionId === sessionId).map((row) => row.title);
  report.said = said.get(sessionId);

  await ctx.request(agent.session.close, { sessionId });
  said.set(sessionId, "");
  await ctx.request(agent.session.load, { sessionId, cwd, mcpServers: [] });
  report.replayed = said.get(sessionId);
  report.goesOn = await prompt("TEXT<<again>>");
  return report;
}

await drive(acp, app, bridge, {
  greeting: {
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
    clientInfo: { name: "acp-manifold tests", version: "0" },
  },
  converse,
  more: () => ({ never }),
});
