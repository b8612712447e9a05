// The server: JSON in and out, and streams of events, with the token if there is one.

let token = sessionStorage.getItem("ivme-token");
let askForToken = async () => null;

/** What a server refuses, or that it does not answer (status 0). */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Sets what asks the user for a token; it gives null if the user gives none. */
export function onToken(ask) {
  askForToken = ask;
}

export function keepToken(given) {
  token = given;
  sessionStorage.setItem("ivme-token", given);
}

/** The answer of the server; integers that a JavaScript number cannot hold stay texts of digits. */
export async function ask(path, { body = null, signal = null, method = body === null ? "GET" : "POST" } = {}) {
  const answer = await answered(path, { method, signal, body: body && JSON.stringify(body) }, "application/json");
  return parsed(await answer.text());
}

/** Calls a function with the name and the content of each server-sent event, until the stream ends. */
export async function listen(path, signal, tell) {
  const answer = await answered(path, { signal }, "text/event-stream");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const events = (rest + part.value).split("\n\n");
    rest = events.pop();
    for (const event of events) told(event, tell);
  }
}

function told(event, tell) {
  const fields = Object.fromEntries(event.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
  if (fields.event) tell(fields.event, parsed(fields.data));
}

/** A response that is no refusal; a token is asked for where one is missing. */
async function answered(path, options, accept) {
  const used = token;
  const headers = { Accept: accept };
  if (used !== null) headers.Authorization = `Bearer ${used}`;
  if (options.body) headers["Content-Type"] = "application/json";
  const answer = await fetched(path, { ...options, headers });
  if (answer.status === 401) {
    const wanted = used === token ? await askForToken(used !== null) : true;
    if (wanted === null) throw new Refused(401, "this server needs its token");
    return answered(path, options, accept);
  }
  if (!answer.ok) throw new Refused(answer.status, parsed(await answer.text())?.error ?? `the server answered with status ${answer.status}`);
  return answer;
}

async function fetched(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "the server does not answer");
  }
}

function parsed(text) {
  try {
    return JSON.parse(text, exact);
  } catch {
    return null;
  }
}

function exact(_key, value, context) {
  const lost = typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value);
  return lost && /^-?\d+$/.test(context?.source ?? "") ? context.source : value;
}

/** A path of the server from names and the values of a query, an object or a list of pairs. */
export function pathTo(parts, query = {}) {
  const path = parts.map(encodeURIComponent).join("/");
  const given = new URLSearchParams(query).toString();
  return given ? `${path}?${given}` : path;
}
