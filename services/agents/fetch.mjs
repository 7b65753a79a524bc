// Installs an agent's package into a directory, while its image is built. The recipe names each file of the npm registry with
// its hash. Runs no script of a package, so an installation is the same everywhere.
//
// usage: node fetch.mjs RECIPE DIRECTORY      NPM_CONFIG_REGISTRY is the registry's address
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";

const { registry: REGISTRY, headers: HEADERS } = readRegistry(process.env.NPM_CONFIG_REGISTRY || configured());

// Returns the registry's address and the headers of a request. A user and a password of the address become a header: they
// are not shown, and `fetch` refuses them in an address.
function readRegistry(address) {
  if (!URL.canParse(address)) throw new Error("the registry's address is not a URL: correct NPM_CONFIG_REGISTRY");
  const url = new URL(address);
  const user = [url.username, url.password].map(decodeURIComponent).join(":");
  url.username = "";
  url.password = "";
  const registry = url.href.replace(/\/+$/, "");
  return { registry, headers: user === ":" ? {} : { authorization: `Basic ${Buffer.from(user).toString("base64")}` } };
}

// Returns the registry that the base image's npm is configured for.
function configured() {
  try {
    return execFileSync("npm", ["config", "get", "registry"], { encoding: "utf8" }).trim();
  } catch {
    throw new Error("no npm registry is known: set NPM_CONFIG_REGISTRY, or name a base image that has npm");
  }
}

async function download(file) {
  const url = `${REGISTRY}/${file.path}`;
  let response;
  try {
    response = await fetch(url, { headers: HEADERS });
  } catch (error) {
    throw new Error(`cannot download ${url}: ${error.cause?.message ?? error.message}`);
  }
  if (!response.ok) throw new Error(`cannot download ${url}: HTTP ${response.status}`);
  const bytes = Buffer.from(await response.arrayBuffer());
  const integrity = `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
  if (integrity !== file.integrity) throw new Error(`${url} is ${integrity}, and the recipe says ${file.integrity}`);
  return bytes;
}

// Unpacks what lies below `file.from` in the archive.
function unpack(bytes, file, directory) {
  const archive = path.join(directory, ".archive.tgz");
  writeFileSync(archive, bytes);
  const strip = `--strip-components=${file.from.split("/").length}`;
  const excluded = (file.exclude ?? []).map((name) => `--exclude=${file.from}/${name}`);
  execFileSync("tar", ["-xzf", archive, "-C", directory, "--no-same-owner", strip, ...excluded, file.from]);
  rmSync(archive);
  execFileSync("chmod", ["-R", "a+rX,go-w", directory]);
  for (const program of file.programs) chmodSync(path.join(directory, program), 0o755);
}

const [recipe, directory] = process.argv.slice(2);
const { files, title } = JSON.parse(readFileSync(recipe, "utf8"));
const wanted = files.filter((file) => file.cpu === undefined || file.cpu === process.arch);
try {
  if (wanted.length === 0) throw new Error(`${title} has no package for ${process.arch}`);
  mkdirSync(directory, { recursive: true });
  for (const file of wanted) {
    console.log(`downloading ${file.path}`);
    unpack(await download(file), file, directory);
  }
} catch (error) {
  console.error(`fetch: error: ${error.message}`);
  process.exitCode = 1;
}
