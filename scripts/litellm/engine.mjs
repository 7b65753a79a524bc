// Runs Prisma's WebAssembly query engine over Postgres, and serves it as the native engine would be. Prisma's Python client
// chooses the arguments, and scripts/litellm.sh sets PACKAGES.
//
// usage: query-engine --version | query-engine -p PORT ...     DATABASE_URL, PRISMA_DML_PATH (the schema)
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { serve } from "./server.mjs";
import { readJsonColumns, translate, untag } from "./translate.mjs";

// Commit of Prisma 5.17.0's engines. The Python client checks it.
const COMMIT = "393aa359c9ad4a4bb28630fb5613f9c281cde053";
const PARENT_CHECK_MS = 200;
const TRACE = JSON.stringify({ traceparent: "00-10-10-00" });

class Engine {
  constructor(engine, parse, jsonColumns) {
    this.engine = engine;
    this.parse = parse;
    this.jsonColumns = jsonColumns;
  }

  // Runs the queries of a GraphQL document, within a transaction if `transaction` is the id of one.
  async run(document, transaction) {
    const data = {};
    for (const { name, isRaw, body } of translate(this.parse(document), this.jsonColumns)) {
      const result = JSON.parse(await this.engine.query(JSON.stringify(body), TRACE, transaction));
      if (result.errors) return { errors: result.errors };
      const [value] = Object.values(result.data);
      data[name] = isRaw ? value : untag(value);
    }
    return { data };
  }

  async startTransaction(options) {
    return JSON.parse(await this.engine.startTransaction(JSON.stringify(options), TRACE));
  }

  async endTransaction(id, end) {
    const finish = end === "commit" ? this.engine.commitTransaction : this.engine.rollbackTransaction;
    return JSON.parse((await finish.call(this.engine, id, TRACE)) || "{}");
  }
}

if (!process.env.PACKAGES) throw new Error("PACKAGES is not set: scripts/litellm.sh run starts the query engine");
const installed = createRequire(join(process.env.PACKAGES, "package.json"));

// Returns the engine's exports, with its WebAssembly loaded.
async function loadEngine() {
  const runtime = join(process.env.PACKAGES, "node_modules/@prisma/client/runtime");
  const bindings = installed(join(runtime, "query_engine_bg.postgresql.js"));
  const module = await WebAssembly.compile(readFileSync(join(runtime, "query_engine_bg.postgresql.wasm")));
  const { exports } = await WebAssembly.instantiate(module, { "./query_engine_bg.js": bindings });
  bindings.__wbg_set_wasm(exports);
  return bindings;
}

// Connects to the database of a Prisma URL. Prisma's own parameters are removed, except `host`, a socket's directory.
function connect(address) {
  const url = new URL(address);
  const { host, schema = "public", connection_limit: max = "10" } = Object.fromEntries(url.searchParams);
  url.search = host ? new URLSearchParams({ host }).toString() : "";
  const pool = new (installed("pg").Pool)({ connectionString: url.href, max: Number(max) });
  pool.on("error", (error) => console.error(`query-engine: ${error.message}`));
  const adapter = new (installed("@prisma/adapter-pg").PrismaPg)(pool, { schema });
  return installed("@prisma/driver-adapter-utils").bindAdapter(adapter);
}

async function start(port) {
  const schema = readFileSync(process.env.PRISMA_DML_PATH, "utf8");
  // The engine accepts an adapter only with this feature, and knows no generator but Prisma's own.
  const generator = 'generator client {\n  provider = "prisma-client-js"\n  previewFeatures = ["driverAdapters"]\n}';
  const options = {
    datamodel: schema.replace(/generator client \{[^}]*\}/, generator),
    logLevel: "error",
    logQueries: false,
    configDir: ".",
    env: process.env,
    ignoreEnvVarErrors: true,
    datasourceOverrides: {},
    engineProtocol: "json",
  };
  const { QueryEngine } = await loadEngine();
  const engine = new QueryEngine(options, (line) => console.error(line), connect(process.env.DATABASE_URL));
  await engine.connect(TRACE);
  serve(new Engine(engine, installed("graphql").parse, readJsonColumns(schema)), port);
}

// A killed parent sends no signal.
function endWithParent() {
  const parent = process.ppid;
  setInterval(() => process.ppid === parent || process.exit(0), PARENT_CHECK_MS).unref();
}

if (process.argv.includes("--version")) {
  console.log(`query-engine ${COMMIT}`);
} else {
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(0));
  endWithParent();
  await start(Number(process.argv[process.argv.indexOf("-p") + 1]));
}
