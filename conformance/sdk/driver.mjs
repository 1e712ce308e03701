// Drives an agent with the official TypeScript SDK and prints what happened as one JSON document.
// Usage: node driver.mjs BINARY WORKDIR
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { once } from "node:events";
import * as acp from "@agentclientprotocol/sdk";

const [binary, cwd] = process.argv.slice(2);

// connected runs op against a fresh agent process and returns what it returned, with the agent's exit and stderr.
async function connected(op) {
  const child = spawn(binary, ["acp"], { stdio: ["pipe", "pipe", "pipe"] });
  const exited = once(child, "exit");
  let stderr = "";
  child.stderr.on("data", (d) => { stderr += d; });
  const seen = { updates: [], permissions: [] };
  const waiting = [];
  const changed = () => { for (const w of waiting.splice(0)) w(); };
  const until = async (ok) => { while (!ok(seen)) await new Promise((r) => waiting.push(r)); };
  const app = acp
    .client({ name: "holdfast-conformance" })
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
      seen.permissions.push(params);
      changed();
      return { outcome: { outcome: "selected", optionId: params.options.find((o) => o.kind === "allow_once").optionId } };
    })
    .onNotification(acp.methods.client.session.update, ({ params }) => {
      seen.updates.push(params.update);
      changed();
    });
  const stream = acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout));
  const result = await app.connectWith(stream, async (ctx) => {
    const initialized = await ctx.request(acp.methods.agent.initialize, { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: {} });
    return { initialized, ...(await op(ctx, seen, until)) };
  });
  child.stdin.end();
  const [code] = await exited;
  return { ...result, updates: seen.updates, permissions: seen.permissions, code, stderr };
}

const text = (t) => [{ type: "text", text: t }];

const live = await connected(async (ctx, seen, until) => {
  const { sessionId } = await ctx.request(acp.methods.agent.session.new, { cwd, mcpServers: [] });
  const first = await ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt: text("run the command") });
  const second = ctx.request(acp.methods.agent.session.prompt, { sessionId, prompt: text("talk for long") });
  await until((s) => s.updates.some((u) => u.sessionUpdate === "agent_message_chunk" && u.content.text.includes("word")));
  await ctx.notify(acp.methods.agent.session.cancel, { sessionId });
  return { sessionId, stop: [first.stopReason, (await second).stopReason] };
});

const loaded = await connected(async (ctx) => {
  await ctx.request(acp.methods.agent.session.load, { sessionId: live.sessionId, cwd, mcpServers: [] });
  const list = await ctx.request(acp.methods.agent.session.list, {});
  return { listed: list.sessions.map((s) => s.sessionId) };
});

process.stdout.write(JSON.stringify({ live, loaded }));
