// What the server is asked, and what it says by itself.

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function answer(response) {
  let found = null;
  try {
    found = await response.json();
  } catch (error) {
    throw new Refused(response.status, "the server said nothing that can be read");
  }
  if (response.ok) return found;
  const detail = found.error || found.detail;
  throw new Refused(response.status, typeof detail === "string" ? detail : JSON.stringify(detail));
}

export async function get(path, parameters = {}, signal = undefined) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null && each !== "") query.append(name, each);
    }
  }
  const text = query.toString();
  return answer(await fetch(`api/${path}${text ? `?${text}` : ""}`, { signal }));
}

export async function post(path, body) {
  const headers = { "Content-Type": "application/json" };
  return answer(await fetch(`api/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

// Stays connected. `since` is what the page knows already. `told` gets epochs, `state` whether the server is there; `anew` is
// called when it is another one than before, or does not know any more what was missed.
export class Stream {
  constructor({ told, state, anew, since }) {
    Object.assign(this, { told, state, anew, since });
    this.views = null;
    this.source = null;
  }

  watch(views) {
    const wanted = [...new Set(views)].sort().join(",");
    if (wanted === this.views) return;
    this.views = wanted;
    if (this.source) this.open();
  }

  open() {
    this.source?.close();
    const source = new EventSource(`api/events?views=${encodeURIComponent(this.views)}&since=${this.since()}`);
    this.source = source;
    source.addEventListener("hello", (event) => {
      this.state("live");
      if (!JSON.parse(event.data).resumed) this.anew();
    });
    source.addEventListener("epochs", (event) => this.told(JSON.parse(event.data)));
    source.addEventListener("reset", () => this.anew());
    source.addEventListener("error", () => {
      if (source !== this.source) return;
      this.state("away");
      // A browser tries again by itself, unless it was answered and refused.
      if (source.readyState === EventSource.CLOSED) setTimeout(() => source === this.source && this.open(), 1500);
    });
  }
}
