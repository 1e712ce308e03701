// Drives a server with the official TypeScript clients, of both lines and in every era, and prints what happened as one JSON document.
// Usage: node clients.mjs BINARY WORKDIR
import { Client as Modern } from "@modelcontextprotocol/client";
import { StdioClientTransport as ModernStdio } from "@modelcontextprotocol/client/stdio";
import { Client as Legacy } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as LegacyStdio } from "@modelcontextprotocol/sdk/client/stdio.js";

const [binary, cwd] = process.argv.slice(2);
const info = { name: "holdfast-conformance", version: "1" };
const server = { command: binary, args: ["mcp", "--trust", cwd, "--authority", "full"], env: process.env, stderr: "pipe" };

const clients = {
  "sdk": () => [new Legacy(info), new LegacyStdio(server)],
  "client, legacy": () => [new Modern(info), new ModernStdio(server)],
  "client, auto": () => [new Modern(info, { versionNegotiation: { mode: "auto" } }), new ModernStdio(server)],
  "client, modern": () => [new Modern(info, { versionNegotiation: { mode: { pin: "2026-07-28" } } }), new ModernStdio(server)],
};

// The clients hold every result against its output schema themselves, and throw.
async function story(name, [client, transport]) {
  let stderr = "";
  await client.connect(transport);
  transport.stderr?.on("data", (d) => { stderr += d; });
  const { tools } = await client.listTools();
  const call = async (tool, args) => (await client.callTool({ name: tool, arguments: args })).structuredContent;
  const args = { cwd, objective: "Produce out.txt.", mode: "edit", idempotencyKey: name };
  const { goal } = await call("create_goal", args);
  const again = await call("create_goal", args);
  let now = goal;
  const history = [];
  while (now.status === "active") {
    now = (await call("get_goal", { goalId: goal.goalId, history: true })).goal;
    if (history.at(-1) !== now.phase) history.push(now.phase);
  }
  const session = await call("get_session", { sessionId: goal.sessionId });
  const out = {
    version: client.getServerVersion()?.name, tools: tools.map((t) => t.name), goal: goal.goalId, again: again.goal.goalId, status: now.status, phases: history,
    items: session.items.length, listed: (await call("list_goals", {})).goals.map((g) => g.goalId),
    sessions: (await call("list_sessions", { limit: 1 })).sessions.length, effects: (await call("list_effects", { sessionId: goal.sessionId })).effects.length,
    approvals: (await call("list_approvals", {})).approvals.length,
    refused: [
      (await call("update_goal", { goalId: goal.goalId, action: "pause" })).error.code,
      (await call("get_goal", { goalId: "none" })).error.code,
      (await call("create_goal", { cwd, objective: "Other.", idempotencyKey: name })).error.code,
    ],
  };
  await client.close();
  return { ...out, stderr };
}

const out = {};
for (const [name, make] of Object.entries(clients)) out[name] = await story(name, make());
process.stdout.write(JSON.stringify(out));
