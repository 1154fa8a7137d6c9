// Widgets, as the file beside the program declares them. Each shows a view and computes nothing.

import { get, post } from "./api.js";
import { count, counted, el, fill, toast } from "./dom.js";
import { Drawing, isOnGlobe, onSheet } from "./graph.js";
import { change, linkTo, read } from "./route.js";
import { sparkline, timeline } from "./spark.js";

const MOST = 5000;

export class DashboardPage {
  constructor(about) {
    this.about = about;
    this.element = el("section", { class: "dashboard" }, el("p", { class: "busy" }, "Loading…"));
    this.widgets = [];
    this.watched = [];
  }

  async show(place) {
    if (this.epoch !== place.epoch) {
      this.epoch = place.epoch;
      this.widgets.forEach((each) => each.refresh());
    }
    if (this.isBuilt) return;
    this.isBuilt = true;
    let found = null;
    try {
      found = await get("dashboard");
    } catch (error) {
      this.isBuilt = false;
      fill(this.element, el("p", { class: "problem" }, error.message));
      return;
    }
    this.widgets = found.widgets.map((declared) => new Widget(declared, this.about));
    this.watched = [...new Set(this.widgets.flatMap((each) => each.views))];
    fill(this.element, found.title ? el("h1", {}, found.title) : null, el("div", { class: "widgets" }, this.widgets.map((each) => each.element)));
    this.widgets.forEach((each) => each.refresh());
    this.onReady?.();
  }

  told(message) {
    if (read().epoch !== undefined) return;
    for (const each of this.widgets) if (each.views.some((view) => view in message.changed)) each.refresh();
  }

  close() {
    this.widgets.forEach((each) => each.close());
  }
}

class Widget {
  constructor(declared, about) {
    this.declared = declared;
    this.about = about;
    this.view = about.byName.get(declared.view);
    this.views = [declared.view, ...Object.values(declared).map((each) => each?.view).filter(Boolean)];
    this.body = el("div", { class: "body" });
    const title = declared.title ?? declared.view;
    this.element = el("article", { class: `widget kind-${declared.kind}`, "data-kind": declared.kind, "data-view": declared.view },
      el("h2", {}, el("a", { href: linkTo({ page: "view", name: declared.view, as: undefined }) }, title)), this.body);
    this.element.style.gridColumn = `span ${declared.width || { graph: 2, plan: 2, timeline: 2 }[declared.kind] || 1}`;
    if (declared.height) this.body.style.height = `${declared.height}px`;
  }

  close() {
    this.drawing?.close();
    clearTimeout(this.waiting);
    this.isClosed = true;
  }

  refresh() {
    if (this.isLoading) {
      this.isDue = true;
      return;
    }
    this.isLoading = true;
    const began = performance.now();
    this.load().catch((error) => fill(this.body, el("p", { class: "problem" }, error.message))).finally(() => {
      const pause = Math.max(60, 5 * (performance.now() - began));
      this.waiting = setTimeout(() => {
        this.isLoading = false;
        if (this.isDue && !this.isClosed) {
          this.isDue = false;
          this.refresh();
        }
      }, pause);
    });
  }

  at(view, column) {
    return this.about.byName.get(view).columns.findIndex((each) => each.name === column);
  }

  rows(view, more = {}) {
    return get(`views/${encodeURIComponent(view)}`, { limit: MOST, epoch: read().epoch, ...more });
  }

  async load() {
    if (!window.d3 && ["graph", "plan", "timeline"].includes(this.declared.kind)) throw new Error(this.about.undrawn);
    return this[`load_${this.declared.kind}`]();
  }

  async load_number() {
    const { value, view, unit = "" } = this.declared;
    const found = await this.rows(view, { limit: 1 });
    const shown = value ? (found.rows[0]?.cells[this.at(view, value)] ?? "—") : found.total;
    const epoch = read().epoch;
    const drawn = await get(`views/${encodeURIComponent(view)}/series`, { value, last: 120 });
    const [line] = Object.values(drawn.lines);
    fill(this.body, el("p", { class: "big" }, typeof shown === "number" ? count(shown) : String(shown), unit ? el("small", {}, ` ${unit}`) : null),
      epoch === undefined ? sparkline(line || [], 220, 36) : null);
  }

  async load_table() {
    const { view, columns, sort, where, limit = 20, action } = this.declared;
    const found = await this.rows(view, { sort, where, limit });
    const all = this.view.columns.map((each) => each.name);
    const shown = (columns || all).map((name) => [name, all.indexOf(name)]);
    const fresh = this.known;
    fill(this.body, el("div", { class: "scroll" }, el("table", { class: "rows" },
      el("thead", {}, el("tr", {}, shown.map(([name]) => el("th", {}, name)), action ? el("th") : null)),
      el("tbody", {}, found.rows.map((row) => el("tr", { class: fresh && !fresh.has(row.fact) ? "fresh" : null, onclick: () => change({ ask: this.view.base ? "whatif" : "why", fact: row.fact }) },
        shown.map(([, at]) => el("td", { class: typeof row.cells[at] === "number" ? "number" : null }, String(row.cells[at]))), action ? el("td", {}, this.button(row)) : null)))),
      found.total > found.rows.length ? el("p", { class: "note" }, `${counted(found.total, "row")} in all`) : null,
      found.total ? null : el("p", { class: "empty" }, "None.")));
    this.known = new Set(found.rows.map((row) => row.fact));
  }

  async load_timeline() {
    const { view, value, by } = this.declared;
    fill(this.body, timeline(await get(`views/${encodeURIComponent(view)}/series`, { value, by, last: 300 }), 200));
  }

  async load_alarm() {
    const { view, message, action } = this.declared;
    const found = await this.rows(view, { limit: 30 });
    const text = (row) => (message ? message.replace(/\{([^{}]*)\}/g, (_, name) => String(row.cells[this.at(view, name)])) : row.fact);
    this.element.classList.toggle("ringing", found.total > 0);
    fill(this.body, found.total
      ? el("ul", { class: "alarms", role: "alert" }, found.rows.map((row) => el("li", {}, el("a", { href: linkTo({ ask: "why", fact: row.fact }) }, text(row)), action ? this.button(row) : null)))
      : el("p", { class: "calm" }, "✓ none"),
      found.total > found.rows.length ? el("p", { class: "note" }, `${count(found.total)} in all`) : null);
  }

  async values(declared) {
    if (!declared) return new Map();
    const found = await this.rows(declared.view);
    const [key, value] = [this.at(declared.view, declared.key), this.at(declared.view, declared.value)];
    return new Map(found.rows.map((row) => [String(row.cells[key]), row.cells[value]]));
  }

  async edges(declared, mark) {
    if (!declared) return [];
    const found = await this.rows(declared.view);
    const [from, to] = [this.at(declared.view, declared.from), this.at(declared.view, declared.to)];
    return found.rows.map((row) => ({ from: String(row.cells[from]), to: String(row.cells[to]), fact: row.fact, mark }));
  }

  canvas() {
    if (!this.drawing) {
      this.drawing = new Drawing({
        label: this.declared.title || this.declared.view,
        onNode: (node) => this.pick(node),
        onEdge: (edge) => change({ ask: "why", fact: edge.fact }),
      });
      this.choice = el("div", { class: "choice" });
      fill(this.body, this.drawing.element, this.choice);
    }
    return this.drawing;
  }

  async load_graph() {
    const { view, from, to, label, colour, colours, place, path } = this.declared;
    const [edges, labels, groups, marked, places] = await Promise.all([
      this.edges({ view, from, to }), this.values(label), this.values(colour), this.edges(path, true), place ? this.rows(place.view) : null,
    ]);
    const isGlobe = place && isOnGlobe(place.x);
    const nodes = new Map();
    for (const each of [...edges, ...marked]) for (const id of [each.from, each.to]) nodes.set(id, { id, label: labels.get(id), group: groups.get(id) });
    if (place) {
      const [key, x, y] = ["key", "x", "y"].map((name) => this.at(place.view, place[name]));
      for (const row of places.rows) {
        const node = nodes.get(String(row.cells[key]));
        const [left, top] = isGlobe ? onSheet(row.cells[x], row.cells[y]) : [row.cells[x], row.cells[y]];
        if (node) Object.assign(node, { x: left, y: top });
      }
    }
    this.canvas().set({ nodes: [...nodes.values()], edges: [...edges, ...marked], colours, flip: isGlobe, legend: colour ? `${colour.value}: ` : "" });
  }

  async load_plan() {
    const { view, key, x, y, label, colour, colours, image, extent, rooms, room_colour: roomColour, edges, path } = this.declared;
    const [points, groups, lines, marked, walls, tints] = await Promise.all([
      this.rows(view), this.values(colour), this.edges(edges), this.edges(path, true), rooms ? this.rows(rooms.view) : null, this.values(roomColour),
    ]);
    const own = (name) => this.at(view, name);
    const nodes = points.rows.map((row) => {
      const id = String(row.cells[own(key)]);
      return { id, x: row.cells[own(x)], y: row.cells[own(y)], label: label ? row.cells[own(label)] : id, group: groups.get(id), fact: row.fact, row };
    });
    const drawn = (walls?.rows || []).map((row) => {
      const [name, left, top, width, height] = ["key", "x", "y", "width", "height"].map((each) => row.cells[this.at(rooms.view, rooms[each])]);
      return { label: String(name), x: left, y: top, width, height, group: tints.get(String(name)) };
    });
    const along = new Set(marked.flatMap((each) => [each.from, each.to]));
    for (const node of nodes) node.mark = along.has(node.id);
    this.canvas().set({ nodes, edges: [...lines, ...marked], rooms: drawn, colours, extent, legend: colour ? `${colour.value}: ` : "", image: image ? `api/dashboard/images/${encodeURIComponent(image)}` : null });
  }

  pick(node) {
    if (!this.declared.action || !node.row) {
      if (node.fact) change({ ask: this.view.base ? "whatif" : "why", fact: node.fact });
      else change({ page: "view", name: this.declared.view, as: undefined, search: node.id });
      return;
    }
    fill(this.choice, el("b", {}, node.label ?? node.id), el("a", { href: linkTo({ ask: this.view.base ? "whatif" : "why", fact: node.fact }) }, "why"), this.button(node.row));
  }

  // What a viewer may do with a row: put a tuple in that is made of it.
  button(row) {
    const { label, relation, values } = this.declared.action;
    const names = this.view.columns.map((each) => each.name);
    return el("button", {
      type: "button",
      class: "act",
      disabled: !this.about.writable,
      title: this.about.writable ? relation : "This page is for looking only",
      onclick: async (event) => {
        event.stopPropagation();
        const tuple = values.map((each) => {
          const whole = /^\{([^{}]*)\}$/.exec(each);
          if (whole) return row.cells[names.indexOf(whole[1])];
          return each.replace(/\{([^{}]*)\}/g, (_, name) => String(row.cells[names.indexOf(name)]));
        });
        try {
          await post("updates", { updates: [{ op: "+", relation, tuple }] });
          toast(`${label}: done`);
        } catch (error) {
          toast(error.message, "problem");
        }
      },
    }, label);
  }
}
