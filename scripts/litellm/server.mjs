// Serves the HTTP protocol of Prisma's query engine: single queries, batches and interactive transactions.
import { createServer } from "node:http";

const TRANSACTION = /^\/transaction\/(?<id>[^/]+)(?:\/(?<end>commit|rollback))?$/;
const START_TRANSACTION = { max_wait: 2_000, timeout: 5_000 };
const BATCH_TRANSACTION = { max_wait: 5_000, timeout: 60_000 };

// Serves `engine` on a port of localhost.
export function serve(engine, port) {
  const server = createServer(async (request, response) => {
    const { status, body } = await answer(engine, request).catch((error) => ({ status: 200, body: describe(error) }));
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(body));
  });
  server.listen(port, "localhost");
}

async function answer(engine, request) {
  if (request.method === "GET" && request.url.startsWith("/status")) return { status: 200, body: { status: "ok" } };
  const body = JSON.parse((await readAll(request)) || "{}");
  const { id, end } = request.url.match(TRANSACTION)?.groups ?? {};
  if (id === "start") return startTransaction(engine, body);
  if (id) return { status: 200, body: await engine.endTransaction(id, end) };
  const transaction = request.headers["x-transaction-id"] ?? null;
  const run = body.batch ? runBatch(engine, body, transaction) : engine.run(body.query, transaction);
  return { status: 200, body: await run };
}

async function readAll(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

async function startTransaction(engine, options) {
  const started = await engine.startTransaction({ ...START_TRANSACTION, ...options });
  return { status: started.error_code ? 500 : 200, body: started };
}

// Runs queries in order until one fails. In a transaction of its own, if the client asks for one, all or none take effect.
async function runBatch(engine, { batch, transaction: isAtomic }, outer) {
  const own = isAtomic && !outer ? (await engine.startTransaction(BATCH_TRANSACTION)).id : null;
  const results = [];
  let failure = null;
  for (const { query } of batch) {
    const result = await engine.run(query, own ?? outer);
    if (result.errors) {
      failure = result;
      break;
    }
    results.push(result);
  }
  if (own) await engine.endTransaction(own, failure ? "rollback" : "commit");
  return failure ?? { batchResult: results };
}

// Returns an error in the engine's form. P2010 is Prisma's code of a failed query.
function describe(error) {
  const details = { is_panic: false, message: String(error), error_code: "P2010", meta: {} };
  return { errors: [{ error: String(error?.stack ?? error), user_facing_error: details }] };
}
