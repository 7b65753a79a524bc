// Makes calls one after the other with the Node SDK in its default settings, retries included. Prints the end of each
// call as one JSON line.
//
// usage: scripts/sdks.sh node tests/sdk/restarts.mjs URL COUNT
import { createRequire } from "node:module";
import { join } from "node:path";

if (!process.env.PACKAGES) throw new Error("PACKAGES is not set: run this with scripts/sdks.sh node");
const { OpenAI } = createRequire(join(process.env.PACKAGES, "package.json"))("openai");

const [url, count] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: "none" });
for (let call = 0; call < Number(count); call++) {
  const began = performance.now();
  let end;
  try {
    const body = { model: "fake-firstbyte100ms", messages: [{ role: "user", content: "hi" }] };
    const answer = await client.chat.completions.create(body);
    end = { ok: Boolean(answer.choices[0].message.content) };
  } catch (error) {
    end = { ok: false, error: String(error) };
  }
  console.log(JSON.stringify({ ...end, seconds: Math.round(performance.now() - began) / 1000 }));
}
