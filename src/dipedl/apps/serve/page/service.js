// Requests to the service that this page came from.

let token = "";

export function setToken(text) {
  token = text;
}

export class Refusal extends Error {
  constructor(status, content) {
    super(content.reason ?? `the service answered with status ${status}`);
    this.status = status;
    this.refused = content.refused ?? [];
  }
}

// The content of an answer: of a GET, or of a POST if there is a body.
export async function ask(path, body) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const options = { headers };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  const reply = await fetch(path, options);
  const content = await reply.json().catch(() => ({}));
  if (!reply.ok) throw new Refusal(reply.status, content);
  return content;
}

// Does `work` when poked; what is poked meanwhile is done once more, with the newest state.
export function latest(work) {
  let running = false;
  let again = false;
  return async function poke() {
    again = true;
    if (running) return;
    running = true;
    try {
      while (again) {
        again = false;
        await work();
      }
    } finally {
      running = false;
    }
  };
}
