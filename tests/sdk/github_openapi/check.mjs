// Compares exchanges with GitHub's description of its REST API. Reads one exchange a line from a file; prints for each
// line a JSON list of what contradicts the description.
//
// usage: scripts/github-openapi.sh check FILE

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const packages = process.env.PACKAGES;
const load = createRequire(`${packages}/package.json`);
const Ajv = load("ajv").default;
const addFormats = load("ajv-formats").default;

const description = JSON.parse(
  readFileSync(`${packages}/node_modules/@octokit/openapi/generated/api.github.com.json`, "utf8"),
);

// OpenAPI 3.0 says `nullable` also beside `oneOf` and `$ref`, where JSON Schema has no such word.
function nullable(schema) {
  if (Array.isArray(schema)) return schema.map(nullable);
  if (schema === null || typeof schema !== "object") return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, nullable(value)]));
  if (copy.nullable === true && typeof copy.type !== "string") {
    delete copy.nullable;
    return { anyOf: [copy, { type: "null" }] };
  }
  if (copy.nullable === true && Array.isArray(copy.enum) && !copy.enum.includes(null)) copy.enum.push(null);
  return copy;
}

const components = { schemas: nullable(description.components.schemas) };
const options = { strict: false, allErrors: true, logger: false };
const ajv = addFormats(new Ajv(options));
ajv.addSchema({ $id: "https://api.github.com/", components });
const coercing = addFormats(new Ajv({ ...options, coerceTypes: true }));
coercing.addSchema({ $id: "https://api.github.com/", components });

// Schemas name each other as `#/components/...`, from the root of the description.
function rooted(schema) {
  if (Array.isArray(schema)) return schema.map(rooted);
  if (schema === null || typeof schema !== "object") return schema;
  const entries = Object.entries(schema).map(([key, value]) =>
    key === "$ref" ? [key, `https://api.github.com/${value}`] : [key, rooted(value)],
  );
  return Object.fromEntries(entries);
}

function problemsOf(validator, schema, value, what) {
  const validate = validator.compile(rooted(nullable(schema)));
  if (validate(value)) return [];
  return validate.errors.slice(0, 5).map((error) => `${what}${error.instancePath}: ${error.message}`);
}

function resolve(object) {
  if (!object?.$ref) return object;
  return resolve(object.$ref.slice(2).split("/").reduce((inner, key) => inner[key], description));
}

function operation(method, path) {
  const parts = path.split("/");
  const matches = (template) => {
    const own = template.split("/");
    return own.length === parts.length && own.every((part, at) => part.startsWith("{") || part === parts[at]);
  };
  const template = Object.keys(description.paths).find(matches);
  return template && description.paths[template][method.toLowerCase()];
}

function queryProblems(described, query) {
  const parameters = (described.parameters ?? []).map(resolve).filter((parameter) => parameter.in === "query");
  return [...new URLSearchParams(query)].flatMap(([name, value]) => {
    const parameter = parameters.find((parameter) => parameter.name === name);
    if (!parameter) return [`query: no parameter ${name}`];
    const schema = { type: "object", properties: { [name]: parameter.schema } };
    return problemsOf(coercing, schema, { [name]: value }, "query");
  });
}

function requestProblems(described, body) {
  const content = resolve(described.requestBody)?.content?.["application/json"];
  if (!content) return body === null ? [] : ["request: it has no body"];
  const schema = resolve(content.schema);
  const known = [schema, ...(schema.oneOf ?? []), ...(schema.anyOf ?? [])].flatMap((each) =>
    Object.keys(resolve(each).properties ?? {}),
  );
  const unknown = Object.keys(body ?? {}).filter((name) => !known.includes(name));
  return [
    ...unknown.map((name) => `request: no field ${name}`),
    ...problemsOf(ajv, content.schema, body ?? {}, "request"),
  ];
}

function answerProblems(described, status, answer) {
  if (status === 0 || status >= 500) return [];
  const response = resolve(described.responses[status]);
  const schema = response?.content?.["application/json"]?.schema;
  if (schema) return problemsOf(ajv, schema, answer, "answer");
  // Errors that every route may have are in no route's description.
  if (status < 400) return [`answer: no status ${status}`];
  const basic = { allOf: [{ $ref: "#/components/schemas/basic-error" }, { required: ["message"] }] };
  return problemsOf(ajv, basic, answer, "answer");
}

function problems({ method, path, query, request, status, answer }) {
  const described = operation(method, path);
  if (!described) return [`no operation ${method} ${path}`];
  return [
    ...queryProblems(described, query),
    ...requestProblems(described, request),
    ...answerProblems(described, status, answer),
  ];
}

const lines = readFileSync(process.argv[2], "utf8").split("\n").filter(Boolean);
for (const line of lines) console.log(JSON.stringify(problems(JSON.parse(line))));
