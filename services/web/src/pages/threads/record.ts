/** Reads fields of values whose form is not known. */

/** Returns the field `name` of `value`, or undefined if `value` is not an object or lacks it. */
export function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : undefined;
}

/** Returns the field if it is a text, else null. */
export function textField(value: unknown, name: string): string | null {
  const found = field(value, name);
  return typeof found === "string" ? found : null;
}

/** Returns the field if it is a number, else null. */
export function numberField(value: unknown, name: string): number | null {
  const found = field(value, name);
  return typeof found === "number" && Number.isFinite(found) ? found : null;
}
