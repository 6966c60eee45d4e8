// The TypeScript SDK's client at a server that it starts itself, over stdio.
//
//     node typescript_client.cjs MODULES NAME COMMAND [ARGUMENT ...]
//
// Reads [tool, arguments] as JSON, one a line, and prints each answer as one. When its input ends it closes.
const { createRequire } = require("node:module");
const { createInterface } = require("node:readline");

const [modules, name, command, ...args] = process.argv.slice(2);
const load = createRequire(`${modules}/`);
const { Client } = load("typescript-client");
const { StdioClientTransport } = load("typescript-client/stdio");

async function main() {
  const client = new Client({ name, version: "1" });
  const environment = { ...process.env };
  await client.connect(new StdioClientTransport({ command, args, env: environment, stderr: "inherit" }));
  for await (const line of createInterface({ input: process.stdin })) {
    const [tool, given] = JSON.parse(line);
    const result = await client.callTool({ name: tool, arguments: given });
    process.stdout.write(`${JSON.stringify(result)}\n`);
  }
  await client.close();
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
