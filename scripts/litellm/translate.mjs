// Translates the GraphQL queries of Prisma's Python client to the JSON protocol of Prisma's WebAssembly engine, and answers
// back. Performs no I/O.

// Longer names precede their own beginnings, because the first match counts.
const ACTIONS = (
  "findUniqueOrThrow findFirstOrThrow findUnique findFirst findMany createManyAndReturn createMany createOne updateMany " +
  "updateOne deleteMany deleteOne upsertOne aggregate groupBy queryRaw executeRaw"
).split(" ");
const RAW_ACTIONS = new Set(["queryRaw", "executeRaw"]);
// Arguments whose fields are columns.
const COLUMN_ARGUMENTS = ["data", "where", "create", "update", "cursor"];

// Returns the names of the JSON columns of each model in a Prisma schema.
export function readJsonColumns(schema) {
  const columns = new Map();
  let model = new Set();
  for (const line of schema.split("\n")) {
    const [, name] = line.match(/^model (\w+) /) ?? [];
    if (name) columns.set(name, (model = new Set()));
    const [, column] = line.match(/^\s+(\w+)\s+Json(?:\?|\[\])?(?:\s|$)/) ?? [];
    if (column) model.add(column);
  }
  return columns;
}

// Translates a parsed GraphQL document. Returns one query for each root field, with the name of its answer.
export function translate(document, jsonColumns) {
  return document.definitions[0].selectionSet.selections.map((field) => {
    const action = ACTIONS.find((name) => field.name.value.startsWith(name));
    if (!action) throw new Error(`unknown root field ${field.name.value}`);
    const isRaw = RAW_ACTIONS.has(action);
    const modelName = isRaw ? undefined : field.name.value.slice(action.length) || undefined;
    const query = { arguments: readArguments(field.arguments), selection: readSelection(field.selectionSet) };
    if (isRaw) completeRaw(query.arguments);
    else markJson(query.arguments, jsonColumns.get(modelName) ?? new Set());
    return { name: (field.alias ?? field.name).value, isRaw, body: { modelName, action, query } };
  });
}

// Returns the value of an answer as the Python client reads it. The engine tags values that JSON cannot represent.
export function untag(value) {
  if (Array.isArray(value)) return value.map(untag);
  if (value === null || typeof value !== "object") return value;
  if ("$type" in value) return value.value;
  return mapValues(value, untag);
}

const mapValues = (object, map) =>
  Object.fromEntries(Object.entries(object).map(([name, value]) => [name, map(value, name)]));

const readArguments = (list = []) => Object.fromEntries(list.map((one) => [one.name.value, readValue(one.value)]));

function readSelection(set) {
  const fields = set?.selections ?? [];
  return Object.fromEntries(
    fields.map((field) => {
      const nested = { arguments: readArguments(field.arguments), selection: readSelection(field.selectionSet) };
      return [field.name.value, field.selectionSet ? nested : true];
    }),
  );
}

function readValue(node) {
  switch (node.kind) {
    case "NullValue":
      return null;
    case "BooleanValue":
    case "StringValue":
    case "EnumValue":
      return node.value;
    case "IntValue": {
      const number = Number(node.value);
      return Number.isSafeInteger(number) ? number : { $type: "BigInt", value: node.value };
    }
    case "FloatValue":
      return Number(node.value);
    case "ListValue":
      return node.values.map(readValue);
    case "ObjectValue":
      return Object.fromEntries(node.fields.map((field) => [field.name.value, readValue(field.value)]));
    default:
      throw new Error(`unsupported GraphQL value ${node.kind}`);
  }
}

function completeRaw(parameters) {
  parameters.parameters ??= "[]";
  // The adapter has no mapping for lists of Postgres' type `name`, in which LiteLLM asks for its views.
  parameters.query = parameters.query.replace("ARRAY_AGG(viewname)", "ARRAY_AGG(viewname::text)");
}

// Tags the values of JSON columns, which GraphQL represents as text.
function markJson(query, columns) {
  for (const name of COLUMN_ARGUMENTS) {
    if (name in query) query[name] = markColumns(query[name], columns);
  }
}

const isPlain = (value) => value !== null && typeof value === "object" && !("$type" in value);

function markColumns(value, columns) {
  if (Array.isArray(value)) return value.map((one) => markColumns(one, columns));
  if (!isPlain(value)) return value;
  return mapValues(value, (one, name) => (columns.has(name) ? tagJson(one) : markColumns(one, columns)));
}

function tagJson(value) {
  if (typeof value === "string") return { $type: "Json", value };
  if (Array.isArray(value)) return value.map(tagJson);
  if (!isPlain(value)) return value;
  // A filter's path into the column is a list of plain names.
  return mapValues(value, (one, name) => (name === "path" ? one : tagJson(one)));
}
