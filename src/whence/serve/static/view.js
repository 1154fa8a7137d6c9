// A view: as a table, as a graph, as what changes, or as the difference of two epochs.

import { get } from "./api.js";
import { clock, count, counted, debounce, el, fill } from "./dom.js";
import { Drawing, onSheet } from "./graph.js";
import { change, linkTo, read } from "./route.js";
import { timeline } from "./spark.js";

const PAGE = 100;
const MOST = 5000; // rows of a graph
const REMEMBERED = 300; // changes

export class ViewPage {
  constructor(about, name) {
    this.about = about;
    this.view = about.byName.get(name);
    this.title = el("h1", {}, name);
    this.summary = el("p", { class: "note" });
    this.tools = el("div", { class: "tools" });
    this.body = el("div", { class: "content" });
    this.element = el("section", { class: "view" }, el("div", { class: "heading" }, this.title, this.summary), this.tools, this.body);
    this.changes = [];
    this.known = new Set();
    this.selected = -1;
    this.watched = [name];
  }

  close() {
    this.drawing?.close();
    this.loading?.abort();
    clearTimeout(this.waiting);
  }

  show(place) {
    const as = place.as || (place.compare !== undefined ? "difference" : "table");
    const isOther = as !== this.as;
    this.as = as;
    if (isOther) {
      this.drawing?.close();
      this.drawing = null;
      fill(this.body, el("p", { class: "busy" }, "Loading…"));
      this.shown = null;
    }
    this.buildTools(place, as);
    const key = JSON.stringify([as, place.sort, place.search, place.where, place.offset, place.epoch, place.compare, place.from, place.to, place.colour, place.label, place.at]);
    if (key !== this.shown) {
      this.shown = key;
      this.known = new Set();
      this.load();
    }
  }

  buildTools(place, as) {
    const key = JSON.stringify([as, place.where, place.from, place.to, place.colour, place.label, place.at, place.search]);
    if (key === this.built) return;
    const isTyping = this.tools.contains(document.activeElement) && document.activeElement.name === "search" && as === this.builtAs;
    if (isTyping) return;
    this.built = key;
    this.builtAs = as;
    const tab = (to, title, extra = {}) =>
      el("a", { href: linkTo({ as: to === "table" ? undefined : to, compare: undefined, ...extra }), role: "tab", "aria-selected": String(as === to) }, title);
    const tabs = [tab("table", "Table"), tab("changes", "Changes"), tab("history", "History")];
    if (this.view.columns.length >= 2 || this.view.place) tabs.splice(1, 0, tab("graph", this.view.place && !this.view.graph ? "Plan" : "Graph"));
    if (as === "difference") tabs.push(el("a", { href: linkTo({}), role: "tab", "aria-selected": "true" }, "Difference"));
    const parts = [el("div", { class: "tabs", role: "tablist" }, tabs)];
    if (as === "table") parts.push(...this.filterTools(place));
    if (as === "graph") parts.push(...this.graphTools(place));
    fill(this.tools, ...parts);
  }

  filterTools(place) {
    const search = el("input", {
      type: "search",
      name: "search",
      value: place.search || "",
      placeholder: "Search (/)",
      "aria-label": "Search all columns",
      oninput: debounce(() => change({ search: search.value, offset: undefined }), 250),
    });
    const column = el("select", { "aria-label": "Column" }, this.view.columns.map((each) => el("option", {}, each.name)));
    const op = el("select", { "aria-label": "Comparison" }, ["=", "~", "!=", "<", "<=", ">", ">="].map((each) => el("option", { value: each }, each === "~" ? "contains" : each)));
    const value = el("input", { placeholder: "value", "aria-label": "Value", size: 8 });
    const form = el("form", {
      class: "filter",
      onsubmit: (event) => {
        event.preventDefault();
        change({ where: [...read().where, `${column.value}${op.value}${value.value}`], offset: undefined });
      },
    }, column, op, value, el("button", {}, "Filter"));
    const chips = place.where.map((each) =>
      el("button", { type: "button", class: "chip", title: "Take it away", onclick: () => change({ where: read().where.filter((one) => one !== each), offset: undefined }) }, each, " ×"),
    );
    return [search, this.view.columns.length ? form : null, ...chips];
  }

  graphTools(place) {
    const columns = this.view.columns;
    const choice = (name, title, options, value) =>
      el("label", {}, title, el("select", { onchange: (event) => change({ [name]: event.target.value }) }, options.map(([key, text]) => el("option", { value: key, selected: String(key) === String(value ?? "") }, text))));
    const named = columns.map((each, at) => [at, each.name]);
    const others = [["", "—"], ...this.about.views.filter((each) => each.columns.length).map((each) => [each.name, each.name])];
    const places = [["", "—"], ...this.about.views.filter((each) => each.place).map((each) => [each.name, each.name])];
    const edge = this.edge(place);
    if (!edge) return [choice("colour", "colour by", others, place.colour), choice("label", "label by", others, place.label)];
    return [
      choice("from", "from", named, edge.from),
      choice("to", "to", named, edge.to),
      choice("at", "places from", places, place.at ?? this.guessedPlaces()),
      choice("colour", "colour by", others, place.colour),
      choice("label", "label by", others, place.label),
    ];
  }

  edge(place) {
    const guess = this.view.graph || (this.view.columns.length >= 2 && !this.view.place ? { from: 0, to: 1 } : null);
    if (place.from === undefined && place.to === undefined) return guess;
    return { from: Number(place.from ?? guess?.from ?? 0), to: Number(place.to ?? guess?.to ?? 1) };
  }

  guessedPlaces() {
    const edge = this.edge(read());
    if (!edge) return "";
    const type = this.view.columns[edge.from]?.type;
    return this.about.views.find((each) => each.place && each.name !== this.view.name && each.columns[each.place.key].type === type)?.name || "";
  }

  // Something happened: at once if the last load is a while ago, and soon if not.
  told(message) {
    const name = this.view.name;
    const isChanged = name in message.changed;
    if (isChanged) this.note(message);
    if (read().epoch !== undefined) return;
    const also = this.watched.some((each) => each in message.changed);
    if (!also) return;
    if (this.as === "changes") this.drawChanges();
    else this.refresh();
  }

  note(message) {
    const found = message.changes[this.view.name];
    if (!found) return;
    const at = message.epochs.at(-1)?.at;
    for (const [rows, op] of [[found.gone, "-"], [found.added, "+"]]) {
      for (const row of rows) this.changes.unshift({ op, row, epoch: message.epoch, at });
    }
    if (found.cut) this.changes.unshift({ op: "", cut: found.cut, epoch: message.epoch, at });
    this.changes.length = Math.min(this.changes.length, REMEMBERED);
  }

  refresh() {
    if (this.waiting) return;
    const pause = Math.max(0, (this.lastLoad || 0) + Math.max(60, 5 * (this.lastTook || 0)) - performance.now());
    this.waiting = setTimeout(() => {
      this.waiting = 0;
      this.load(true);
    }, pause);
  }

  async load(isRefresh = false) {
    const place = read();
    if (isRefresh && this.isLoading) {
      this.isDue = true;
      return;
    }
    this.loading?.abort();
    const own = (this.loading = new AbortController());
    const started = performance.now();
    this.isLoading = true;
    try {
      await this[`load_${this.as}`](place, own.signal);
      this.body.classList.remove("stale");
    } catch (error) {
      if (error.name === "AbortError") return;
      this.drawing?.close();
      this.drawing = null;
      fill(this.body, el("p", { class: "problem" }, error.message));
    } finally {
      if (own === this.loading) {
        this.isLoading = false;
        this.lastLoad = performance.now();
        this.lastTook = this.lastLoad - started;
        if (this.isDue) {
          this.isDue = false;
          this.refresh();
        }
      }
    }
  }

  async load_table(place, signal) {
    const offset = Number(place.offset || 0);
    const { sort, search, where, epoch } = place;
    const found = await get(`views/${encodeURIComponent(this.view.name)}`, { sort, search, where, offset, limit: PAGE, epoch }, signal);
    if (offset && offset >= found.total) {
      change({ offset: found.total > PAGE ? Math.floor((found.total - 1) / PAGE) * PAGE : undefined });
      return;
    }
    this.summary.textContent = `${counted(found.total, "row")}${search || where.length ? " found" : ""}${epoch === undefined ? "" : ` after epoch ${count(found.epoch)}`}`;
    const isFirst = !this.known.size;
    const columns = this.view.columns;
    const head = columns.map((each) => {
      const isSorted = sort === each.name || sort === `-${each.name}`;
      const next = sort === each.name ? `-${each.name}` : each.name;
      return el("th", { "aria-sort": isSorted ? (sort.startsWith("-") ? "descending" : "ascending") : null, scope: "col" },
        el("a", { href: linkTo({ sort: next, offset: undefined }), title: `${each.name}: ${each.type}` }, each.name, el("small", {}, each.type), isSorted ? (sort.startsWith("-") ? " ↓" : " ↑") : ""));
    });
    this.rows = found.rows;
    const rows = found.rows.map((row, at) =>
      el("tr", { tabindex: "-1", "data-at": at, "data-fact": row.fact, class: [!isFirst && !this.known.has(row.fact) ? "fresh" : "", at === this.selected ? "selected" : ""].join(" ").trim() || null, onclick: () => this.ask(row) },
        columns.length ? row.cells.map((cell) => el("td", { class: typeof cell === "number" ? "number" : null }, String(cell))) : el("td", {}, "it holds")),
    );
    this.known = new Set(found.rows.map((row) => row.fact));
    const table = el("table", { class: "rows" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows));
    const last = Math.floor(Math.max(0, found.total - 1) / PAGE) * PAGE;
    const step = (to, text, title) => el("a", { class: "step", href: linkTo({ offset: to || undefined }), "aria-disabled": String(to < 0 || to > last || to === offset), title }, text);
    const pager = el("div", { class: "pager" },
      step(0, "«", "First"), step(offset - PAGE, "‹", "Before (PageUp)"),
      el("span", {}, found.total ? `${count(offset + 1)}–${count(Math.min(offset + PAGE, found.total))} of ${count(found.total)}` : "no rows"),
      step(offset + PAGE, "›", "Next (PageDown)"), step(last, "»", "Last"),
    );
    const scrolled = this.body.querySelector(".scroll")?.scrollTop || 0;
    fill(this.body, el("div", { class: "scroll" }, table, found.total ? null : el("p", { class: "empty" }, "No rows.")), pager);
    this.body.querySelector(".scroll").scrollTop = isFirst ? 0 : scrolled;
    this.body.dataset.epoch = found.epoch;
  }

  async load_difference(place, signal) {
    const to = place.epoch ?? this.about.epoch;
    const found = await get(`views/${encodeURIComponent(this.view.name)}/difference`, { from: place.compare, to }, signal);
    this.summary.textContent = `${counted(found.total, "row")} differ between epoch ${place.compare} and ${to}`;
    const list = (rows, kind, sign) => el("ul", { class: "changes" }, rows.map((row) => el("li", { class: kind }, `${sign} `, el("a", { href: linkTo({ ask: "why", fact: row.fact, epoch: kind === "gone" ? place.compare : place.epoch }) }, row.fact))));
    fill(this.body, el("div", { class: "scroll two" },
      el("section", {}, el("h2", {}, `Came (${count(found.added.length)}${found.total > found.added.length + found.gone.length ? "+" : ""})`), list(found.added, "added", "+")),
      el("section", {}, el("h2", {}, `Went (${count(found.gone.length)})`), list(found.gone, "gone", "−"))));
  }

  async load_changes() {
    this.drawChanges();
  }

  drawChanges() {
    this.summary.textContent = "What changes, as it happens";
    const rows = this.changes.map((each) =>
      each.cut
        ? el("li", { class: "note" }, `epoch ${count(each.epoch)}: ${counted(each.cut, "more change")}`)
        : el("li", { class: each.op === "+" ? "added" : "gone" }, el("small", {}, `${count(each.epoch)}`), each.op === "+" ? " + " : " − ",
            el("a", { href: linkTo({ ask: each.op === "+" ? "why" : "whynot", fact: each.row.fact }) }, each.row.fact)),
    );
    fill(this.body, el("div", { class: "scroll" }, rows.length ? el("ul", { class: "changes" }, rows) : el("p", { class: "empty" }, "Nothing has changed since this page was opened.")));
  }

  async load_history(place, signal) {
    if (!window.d3) throw new Error(this.about.undrawn);
    const [drawn, listed] = await Promise.all([
      get(`views/${encodeURIComponent(this.view.name)}/series`, {}, signal),
      get("epochs", { last: 60 }, signal),
    ]);
    this.summary.textContent = "Rows over the last epochs";
    const sizes = listed.sizes[this.view.name];
    fill(this.body, el("div", { class: "scroll" }, timeline(drawn, 220), el("ul", { class: "epochs" }, listed.epochs.map((each, at) =>
      el("li", {}, el("a", { href: linkTo({ as: undefined, epoch: each.epoch }) }, `epoch ${count(each.epoch)}`), el("small", {}, ` ${clock(each.at)} · ${counted(sizes[at], "row")}`),
        " ", el("a", { class: "quiet", href: linkTo({ as: undefined, epoch: each.epoch, compare: each.epoch - 1 }) }, "what changed")),
    ).reverse())));
  }

  async load_graph(place, signal) {
    if (!window.d3) throw new Error(this.about.undrawn);
    const edge = this.edge(place);
    const name = (view) => `views/${encodeURIComponent(view)}`;
    const epoch = place.epoch;
    const at = place.at ?? this.guessedPlaces();
    const wanted = [get(name(this.view.name), { limit: MOST, epoch }, signal)];
    for (const each of [at, place.colour, place.label]) wanted.push(each ? get(name(each), { limit: MOST, epoch }, signal) : null);
    const [rows, places, colours, labels] = await Promise.all(wanted);
    this.watched = [this.view.name, at, place.colour, place.label].filter(Boolean);
    const shapes = graphOf(rows.rows, { edge, own: this.view, placed: at && this.about.byName.get(at), places, colours, labels });
    if (!this.drawing) {
      this.drawing = new Drawing({
        label: `${this.view.name} as a graph`,
        onNode: (node) => this.pick(node),
        onEdge: (one) => this.ask(one),
      });
      fill(this.body, this.drawing.element);
    }
    this.drawing.set({ ...shapes, legend: place.colour ? `${place.colour}: ` : "" });
    this.summary.textContent = `${counted(shapes.nodes.length, "node")}, ${counted(shapes.edges.length, "edge")}${rows.total > rows.rows.length ? `; the first ${count(rows.rows.length)} of ${counted(rows.total, "row")}` : ""}`;
  }

  // A node leads to its rows, unless it is one itself.
  pick(node) {
    if (node.fact) this.ask(node);
    else change({ as: undefined, search: undefined, where: [`${this.view.columns[this.edge(read()).from].name}=${node.id}`], offset: undefined });
  }

  ask(row) {
    const kind = this.view.base ? "whatif" : "why";
    change({ ask: kind, fact: row.fact });
  }

  key(event) {
    if (this.as !== "table" || !this.rows) return false;
    const move = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    if (move) {
      this.select(Math.max(0, Math.min(this.rows.length - 1, this.selected + move)));
      return true;
    }
    if (event.key === "Enter" && this.rows[this.selected]) {
      this.ask(this.rows[this.selected]);
      return true;
    }
    const page = { PageDown: PAGE, PageUp: -PAGE }[event.key];
    if (page) {
      const step = [...this.body.querySelectorAll(".pager .step")][page > 0 ? 2 : 1];
      if (step?.getAttribute("aria-disabled") === "false") step.click();
      return true;
    }
    return false;
  }

  select(at) {
    this.selected = at;
    for (const row of this.body.querySelectorAll("tbody tr")) {
      const isIt = Number(row.dataset.at) === at;
      row.classList.toggle("selected", isIt);
      if (isIt) {
        row.scrollIntoView({ block: "nearest" });
        row.focus({ preventScroll: true });
      }
    }
  }
}

// What to draw of rows: edges between values, or nodes with places.
export function graphOf(rows, { edge, own, placed, places, colours, labels }) {
  const nodes = new Map();
  const node = (id) => {
    const key = String(id);
    if (!nodes.has(key)) nodes.set(key, { id: key });
    return nodes.get(key);
  };
  const edges = [];
  let flip = false;
  const put = (shape, each) => {
    const made = node(each.cells[shape.key]);
    [made.x, made.y] = shape.on === "globe" ? onSheet(each.cells[shape.x], each.cells[shape.y]) : [each.cells[shape.x], each.cells[shape.y]];
    flip ||= shape.on === "globe";
    return made;
  };
  if (edge) {
    for (const row of rows) {
      const [from, to] = [node(row.cells[edge.from]), node(row.cells[edge.to])];
      edges.push({ from: from.id, to: to.id, fact: row.fact });
    }
  } else {
    for (const row of rows) put(own.place, row).fact = row.fact;
  }
  for (const row of places?.rows || []) if (nodes.has(String(row.cells[placed.place.key]))) put(placed.place, row);
  for (const row of colours?.rows || []) {
    const found = nodes.get(String(row.cells[0]));
    if (found) found.group = row.cells.length > 1 ? row.cells[row.cells.length - 1] : "yes";
  }
  for (const row of labels?.rows || []) {
    const found = nodes.get(String(row.cells[0]));
    if (found) found.label = row.cells.length > 1 ? `${row.cells[0]}: ${row.cells.slice(1).join(", ")}` : row.cells[0];
  }
  const all = [...nodes.values()];
  // Nodes without a place would be drawn wherever the others are not.
  const someHave = all.some((each) => each.x !== undefined);
  return { nodes: someHave ? all.filter((each) => each.x !== undefined) : all, edges, flip };
}

