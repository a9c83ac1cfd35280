// A turn of a chat service: append what the user said, build the request, call the model with it.
import createClient from "openapi-fetch";

import type { paths } from "./api.d.ts";

const client = createClient<paths>({
  baseUrl: "http://127.0.0.1:8731",
  headers: { Authorization: "Bearer TOKEN" }, // left out on the loopback without tokens
});

export async function request(session: string, text: string, id: string): Promise<Record<string, unknown>> {
  const path = { session };
  const said = await client.POST("/api/sessions/{session}/messages", {
    params: { path },
    body: { messages: [{ message: { role: "user", content: text }, id }], follow: false },
  });
  if (said.error) throw new Error(said.error.detail);
  const built = await client.POST("/api/sessions/{session}/build", {
    params: { path },
    body: { provider: "anthropic", envelope: false, cache: true },
  });
  if (built.error) throw new Error(built.error.detail);
  return built.data.request ?? {};
}
