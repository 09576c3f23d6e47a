// One editor built on the official TypeScript SDK's draft of ACP v2, which validates every message: drives a session of
// each backend over one connection through its whole life, and prints what it saw as one JSON object.
//
// usage: node typescript_sdk_v2.mjs NODE_MODULES CWD COMMAND [ARGUMENT...]

import { allowed, drive, news, sdk } from "./driven.mjs";

const [nodeModules, cwd, ...bridge] = process.argv.slice(2);
const acp = await sdk(nodeModules, "@agentclientprotocol/sdk/experimental/v2/unstable");
const { agent, client: ours } = acp.methods;

const updates = [];
const asked = [];
const { hear, until } = news();

// The conversation by the protocol's rules: a whole message takes the place of what was there, a chunk adds to it.
function conversation(sessionId) {
  const messages = new Map();
  for (const { sessionUpdate: kind, messageId, content } of of(sessionId)) {
    const who = kind.replace("_chunk", "");
    if (!["user_message", "agent_message"].includes(who)) continue;
    const key = messages.get(messageId) ?? { who, text: "" };
    const text = (blocks) => blocks.map((block) => block.text ?? "").join("");
    key.text = kind.endsWith("_chunk") ? key.text + text([content]) : text(content);
    messages.set(messageId, key);
  }
  return [...messages].map(([messageId, { who, text }]) => ({ messageId, who, text }));
}

const of = (sessionId) => updates.filter((params) => params.sessionId === sessionId).map((params) => params.update);
const idles = (sessionId) => of(sessionId).filter((update) => update.sessionUpdate === "state_update" && update.stopReason);
const said = (sessionId) => conversation(sessionId).map((message) => message.text).join("\n");

const app = acp
  .client({ name: "editor" })
  .onNotification(ours.session.update, ({ params }) => {
    updates.push(params);
    hear();
  })
  .onRequest(ours.session.requestPermission, ({ params }) => {
    asked.push(params);
    return allowed(params);
  });

async function converse(ctx, backend) {
  const report = {};
  const { sessionId } = await ctx.request(agent.session.new, { cwd, _meta: { "acp-manifold": { backend } } });
  const submit = (text, id = sessionId) =>
    ctx.request(agent.session.prompt, { sessionId: id, prompt: [{ type: "text", text }] });
  const prompt = async (text, id = sessionId) => {
    const before = idles(id).length;
    const { messageId } = await submit(text, id);
    await until(() => idles(id).length > before);
    return { messageId, stopReason: idles(id)[before].stopReason };
  };

  const run = { claude: "RUN", codex: "RUNESC" }[backend];
  const first = await prompt(`${run}[touch ${backend}.txt && echo out-of-${backend}] ;; TEXT<<from ${backend}>>`);
  report.allowed = first.stopReason;
  first.call = of(sessionId).find((update) => update.sessionUpdate === "tool_call_update").toolCallId;
  report.question = asked.filter((params) => params.sessionId === sessionId).map((params) => params.subject.type);
  report.states = of(sessionId)
    .filter((update) => update.sessionUpdate === "state_update")
    .map((update) => update.state);
  report.printed = of(sessionId)
    .filter((update) => update.sessionUpdate === "terminal_output_chunk")
    .map((update) => Buffer.from(update.data, "base64").toString())
    .join("");

  const held = idles(sessionId).length;
  await submit("TEXT<<stop me>> GATE[never] TEXT<<not said>>");
  await until(() => said(sessionId).includes("stop me\n") || said(sessionId).endsWith("stop me"));
  const queued = submit("TEXT<<never sent>>").then(() => "inserted", (error) => error.code);
  await ctx.notify(agent.session.cancel, { sessionId });
  report.queued = await queued;
  await until(() => idles(sessionId).length > held);
  report.cancelled = idles(sessionId)[held].stopReason;

  const stopped = idles(sessionId).length;
  await submit("RUN[echo runs; sleep 987] ;; TEXT<<not said>>");
  const called = () => of(sessionId).findLast((update) => update.sessionUpdate === "tool_call_update");
  await until(() => called()?.status === "in_progress" && called().toolCallId !== first.call);
  await ctx.notify(agent.session.cancel, { sessionId });
  await until(() => idles(sessionId).length > stopped);
  report.stopped = [called().status, idles(sessionId)[stopped].stopReason];

  report.title = (await ctx.request(agent.session.setTitle, { sessionId, title: ` ${backend}\n title ` })).title;
  report.status = await ctx.request(agent.session.status, { sessionId });
  const live = conversation(sessionId);

  await ctx.request(agent.session.close, { sessionId });
  updates.splice(0);
  await ctx.request(agent.session.resume, { sessionId, cwd, replayFrom: { type: "start" } });
  const replayed = conversation(sessionId);
  report.sameIds = live
    .filter(({ who }) => who === "user_message")
    .every(({ messageId }) => replayed.some((message) => message.messageId === messageId));
  report.echoed = live.some(({ messageId, who }) => who === "user_message" && messageId === first.messageId);
  report.replayed = replayed.map(({ who, text }) => [who, text]);
  report.resumedTitle = of(sessionId).findLast((update) => update.sessionUpdate === "session_info_update")?.title;
  report.goesOn = (await prompt("TEXT<<again>>")).stopReason;

  const fork = await ctx.request(agent.session.fork, { sessionId, cwd });
  report.forked = (await prompt("TEXT<<in the copy>>", fork.sessionId)).stopReason;
  const list = async (params) => (await ctx.request(agent.session.list, { cwd, ...params })).sessions;
  const row = async (id, params) => (await list(params)).find((session) => session.sessionId === id);
  report.listed = [(await row(sessionId)).title, (await row(fork.sessionId)).title];
  await ctx.request(agent.session.archive, { sessionId });
  report.archived = [await row(sessionId), (await row(sessionId, { archived: "only" }))?.archived];
  await ctx.request(agent.session.unarchive, { sessionId });
  await ctx.request(agent.session.delete, { sessionId: fork.sessionId });
  report.left = [(await row(sessionId))?.title, await row(fork.sessionId)];
  return report;
}

await drive(acp, app, bridge, {
  greeting: { info: { name: "acp-manifold tests", version: "0" }, capabilities: {} },
  converse,
});
