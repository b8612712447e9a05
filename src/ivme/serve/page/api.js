// The server: JSON in and out, with the token if there is one.

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

export const hasToken = () => token !== null;

export function keepToken(given) {
  token = given;
  sessionStorage.setItem("ivme-token", given);
}

/** The answer of the server; integers that a JavaScript number cannot hold stay texts of digits. */
export async function ask(path, { body = null, signal = null } = {}) {
  const used = token;
  const headers = { Accept: "application/json" };
  if (used !== null) headers.Authorization = `Bearer ${used}`;
  if (body !== null) headers["Content-Type"] = "application/json";
  const answer = await fetched(path, { method: body === null ? "GET" : "POST", headers, signal, body: body && JSON.stringify(body) });
  if (answer.status === 401) {
    const wanted = used === token ? await askForToken(used !== null) : true;
    if (wanted === null) throw new Refused(401, "this server needs its token");
    return ask(path, { body, signal });
  }
  const content = parsed(await answer.text());
  if (!answer.ok) throw new Refused(answer.status, content?.error ?? `the server answered with status ${answer.status}`);
  return content;
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

/** A path of the server from names and the values of a query. */
export function pathTo(parts, query = {}) {
  const path = parts.map(encodeURIComponent).join("/");
  const given = new URLSearchParams(query).toString();
  return given ? `${path}?${given}` : path;
}
