// The frame of the page: what is served, how it goes, where the viewer is in time.

import { get, Stream } from "./api.js";
import { closePanel, showPanel } from "./answer.js";
import { DashboardPage } from "./dashboard.js";
import { bytes, clock, count, counted, debounce, duration, el, fill, toast } from "./dom.js";
import { change, go, linkTo, read } from "./route.js";
import { sparkline, timeline } from "./spark.js";
import { ViewPage } from "./view.js";

const POINTS = 60;
const [top, nav, main, footer] = ["top", "views", "main", "time"].map((id) => document.getElementById(id));
let about = null;
let page = null;
let pageKey = "";
const recent = []; // times of epochs, of the last seconds
const stream = new Stream({ told, state: showState, anew: begin, since: () => `${about.instance}-${about.epoch}` });

async function begin() {
  let found = null;
  let past = null;
  try {
    found = await get("about");
    past = await get("epochs", { last: POINTS });
  } catch (error) {
    const isRefused = error.status === 401;
    fill(main, el("p", { class: "problem" }, isRefused ? `The server asks for a token: ${error.message}.` : `${error.message}. Trying again…`));
    showState("away");
    setTimeout(begin, isRefused ? 5000 : 1500);
    return;
  }
  found.byName = new Map(found.views.map((view) => [view.name, view]));
  for (const view of found.views) view.points = past.sizes[view.name] || [];
  found.epochs = past.epochs;
  about = found;
  document.title = `${about.name} · Whence`;
  buildTop();
  buildNav();
  buildTime();
  pageKey = "";
  route();
  stream.open();
}

// -- what happens

function told(message) {
  about.epoch = message.epoch;
  about.oldest = message.oldest;
  about.epochs = [...about.epochs, ...message.epochs].slice(-POINTS);
  for (const each of message.epochs) recent.push(each.at);
  for (const view of about.views) {
    view.size = message.sizes[view.name];
    if (message.epochs.length) view.points = [...view.points, view.size].slice(-POINTS);
    view.changed = message.changed[view.name];
  }
  Object.assign(about, { lag: message.lag, memory: message.memory, dead_letters: message.dead_letters, ended: message.ended });
  page?.told?.(message);
  drawSoon();
}

let isDrawing = false;
function drawSoon() {
  if (isDrawing) return;
  isDrawing = true;
  requestAnimationFrame(() => {
    isDrawing = false;
    drawTop();
    drawNav();
    drawTime();
  });
}

// -- the top

const parts = {};
function buildTop() {
  const themes = { "": "Colours of the system", light: "Light", dark: "Dark" };
  parts.state = el("span", { class: "state" }, "…");
  parts.facts = el("div", { class: "figures" });
  const theme = el("button", { type: "button", class: "quiet", title: "Light or dark", "aria-label": "Light or dark", onclick: () => {
    const order = Object.keys(themes);
    const now = document.documentElement.dataset.theme || "";
    const next = order[(order.indexOf(now) + 1) % order.length];
    if (next) document.documentElement.dataset.theme = next;
    else delete document.documentElement.dataset.theme;
    localStorage.setItem("whence-theme", next);
    document.dispatchEvent(new Event("whence-theme"));
    toast(themes[next]);
  } }, "◐");
  fill(top,
    el("button", { type: "button", class: "menu", "aria-label": "Views", "aria-expanded": "false", onclick: (event) => {
      const isOpen = document.body.classList.toggle("open");
      event.currentTarget.setAttribute("aria-expanded", String(isOpen));
    } }, "☰"),
    el("a", { class: "brand", href: "#/" }, el("img", { src: "icon.svg", alt: "", width: 24, height: 24 }), el("b", {}, about.name)),
    parts.state, parts.facts,
    el("button", { type: "button", class: "ask", title: "Ask why not", onclick: () => change({ ask: "whynot", fact: "" }) }, "Ask…"),
    theme,
    el("button", { type: "button", class: "quiet", title: "Keys (?)", "aria-label": "Keys", onclick: help }, "?"));
  showState(state);
  drawTop();
}

let state = "away";
function showState(now) {
  state = now;
  document.body.dataset.state = now;
  if (parts.state) fill(parts.state, now === "live" ? "live" : "reconnecting…");
}

function drawTop() {
  const now = Date.now() / 1000;
  while (recent.length && recent[0] < now - 10) recent.shift();
  const rate = recent.length / 10;
  const last = about.epochs.at(-1);
  const lag = Object.entries(about.lag || {}).filter(([, value]) => value > 0).map(([name, value]) => (name === "bytes" ? bytes(value) : counted(value, name.replace(/s$/, ""))));
  const figure = (title, value, href, kind = "") => el("a", { class: `figure ${kind}`, href }, el("small", {}, title), el("b", {}, value));
  fill(parts.facts,
    figure("epoch", count(about.epoch), "#/epochs"),
    figure("epochs/s", rate.toFixed(1), "#/epochs"),
    last ? figure("last took", duration(last.seconds), "#/epochs") : null,
    figure("behind", lag.length ? lag.join(", ") : "0", "#/epochs", lag.length ? "warn" : ""),
    figure("dead letters", count(about.dead_letters), "#/letters", about.dead_letters ? "warn" : ""),
    figure("memory", bytes(about.memory), "#/epochs"),
    about.ended ? figure("updates", about.ended, "#/epochs") : null);
}

// -- the views

const items = new Map();
function buildNav() {
  items.clear();
  const item = (view) => {
    const found = { size: el("span", { class: "size" }), line: el("span", { class: "line" }), moved: el("span", { class: "moved" }) };
    found.element = el("a", { href: linkTo({ page: "view", name: view.name, as: undefined, where: [], search: undefined, sort: undefined, offset: undefined, compare: undefined, from: undefined, to: undefined, at: undefined, colour: undefined, label: undefined, ask: undefined, fact: undefined }), "data-view": view.name }, el("span", { class: "name" }, view.name), found.line, found.size, found.moved);
    items.set(view.name, found);
    return el("li", {}, found.element);
  };
  const group = (title, views) => (views.length ? el("section", {}, el("h2", {}, title), el("ul", {}, views.map(item))) : null);
  const derived = about.views.filter((view) => !view.base);
  fill(nav,
    el("section", {}, el("ul", {}, about.dashboard ? el("li", {}, el("a", { href: "#/" }, "Dashboard")) : null, el("li", {}, el("a", { href: "#/epochs" }, "Epochs and health")), el("li", {}, el("a", { href: "#/program" }, "Program")))),
    group("Views", derived.filter((view) => view.output)),
    group("Base relations", about.views.filter((view) => view.base)),
    group("Other relations", derived.filter((view) => !view.output)));
  drawNav();
}

function drawNav() {
  for (const view of about.views) {
    const item = items.get(view.name);
    if (!item) continue;
    if (item.drawn !== view.size || view.changed) {
      item.drawn = view.size;
      item.size.textContent = count(view.size);
      fill(item.line, sparkline(view.points, 56, 16));
    }
    if (view.changed) {
      const [plus, minus] = view.changed;
      item.moved.textContent = `${plus ? `+${count(plus)}` : ""}${plus && minus ? " " : ""}${minus ? `−${count(minus)}` : ""}`;
      item.element.classList.remove("flash");
      void item.element.offsetWidth; // begin the animation anew
      item.element.classList.add("flash");
      view.changed = undefined;
    }
  }
}

function markNav(place) {
  for (const link of nav.querySelectorAll("a")) {
    const isHere = link.dataset.view ? place.page === "view" && place.name === link.dataset.view : link.getAttribute("href") === `#/${place.page}`;
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

// -- time

const time = {};
function buildTime() {
  const move = debounce(() => {
    const chosen = Number(time.slider.value);
    change({ epoch: chosen >= about.epoch ? undefined : chosen });
  }, 60);
  time.slider = el("input", { type: "range", min: 0, max: 1, step: 1, "aria-label": "Epoch", oninput: () => {
    time.label.textContent = `epoch ${count(Number(time.slider.value))}`;
    move();
  } });
  time.label = el("output", {});
  time.live = el("button", { type: "button", class: "live", onclick: () => change({ epoch: undefined, compare: undefined }) }, "Live");
  time.back = el("button", { type: "button", title: "One epoch back ([)", onclick: () => step(-1) }, "◀");
  time.on = el("button", { type: "button", title: "One epoch on (])", onclick: () => step(1) }, "▶");
  time.compare = el("button", { type: "button", class: "quiet", title: "The difference between here and now, or here and the epoch before", onclick: () => {
    const place = read();
    if (place.compare !== undefined) change({ compare: undefined });
    else if (place.epoch !== undefined) go({ ...place, as: undefined, compare: place.epoch, epoch: undefined });
    else change({ as: undefined, compare: Math.max(about.oldest, about.epoch - 1) });
  } }, "Compare");
  fill(footer, time.live, time.back, time.slider, time.on, time.label, time.compare);
  drawTime();
}

function step(by) {
  const place = read();
  const next = Math.max(about.oldest, Math.min(about.epoch, Number(place.epoch ?? about.epoch) + by));
  change({ epoch: next >= about.epoch && by > 0 ? undefined : next });
}

function drawTime() {
  const place = read();
  const isPast = place.epoch !== undefined;
  time.slider.min = about.oldest;
  time.slider.max = about.epoch;
  if (document.activeElement !== time.slider || !isPast) time.slider.value = isPast ? place.epoch : about.epoch;
  time.slider.disabled = about.oldest === about.epoch;
  time.label.textContent = place.compare !== undefined ? `${place.compare} → ${isPast ? place.epoch : "now"}` : isPast ? `epoch ${count(Number(place.epoch))}` : `${count(about.epoch - about.oldest)} epochs back`;
  time.live.setAttribute("aria-pressed", String(!isPast));
  time.compare.hidden = place.page !== "view";
  time.compare.setAttribute("aria-pressed", String(place.compare !== undefined));
  document.body.classList.toggle("past", isPast);
}

// -- where the viewer is

function route() {
  if (!about) return;
  const place = read();
  if (!place.page && !about.dashboard) {
    const first = about.views.find((view) => view.output && !view.base) || about.views[0];
    if (first) {
      location.replace(`#/view/${encodeURIComponent(first.name)}`);
      return;
    }
  }
  document.body.classList.remove("open");
  const key = `${place.page}/${place.name}`;
  if (key !== pageKey) {
    page?.close?.();
    page = makePage(place);
    pageKey = key;
    fill(main, page.element);
    page.onReady = () => stream.watch(page.watched || []);
  }
  page.show?.(place);
  stream.watch(page.watched || []);
  showPanel(place, about);
  markNav(place);
  // Views keep the moment that is looked at.
  for (const [name, item] of items) item.element.href = `#/view/${encodeURIComponent(name)}${place.epoch === undefined ? "" : `?epoch=${place.epoch}`}`;
  drawTime();
}

function makePage(place) {
  if (place.page === "view" && about.byName.has(place.name)) return new ViewPage(about, place.name);
  if (place.page === "epochs") return new EpochsPage();
  if (place.page === "letters") return new LettersPage();
  if (place.page === "program") return { element: el("section", { class: "view" }, el("h1", {}, about.name), el("pre", { class: "program" }, about.program)) };
  if (!place.page) return new DashboardPage(about);
  return { element: el("p", { class: "problem" }, `There is no view ${place.name}.`) };
}

// What was asked for, or null when it is said why it did not come.
async function orSay(body, asked) {
  try {
    return await asked;
  } catch (error) {
    fill(body, el("p", { class: "problem" }, error.message));
    return null;
  }
}

class EpochsPage {
  constructor() {
    this.element = el("section", { class: "view" }, el("h1", {}, "Epochs and health"), (this.body = el("div", { class: "scroll" })));
  }

  async show() {
    if (this.isLoading) return;
    this.isLoading = true;
    const found = await orSay(this.body, Promise.all([get("status"), get("epochs", { last: 200 })]));
    this.isLoading = false;
    if (!found) return;
    const [status, past] = found;
    const listed = past.epochs;
    const drawn = { epochs: listed.map((each) => each.epoch), at: listed.map((each) => each.at) };
    const table = (head, rows) => el("table", { class: "rows" }, el("thead", {}, el("tr", {}, head.map((each) => el("th", {}, each)))), el("tbody", {}, rows.map((row) => el("tr", {}, row.map((each, at) => el("td", { class: at ? "number" : null }, each))))));
    if (!window.d3) {
      fill(this.body, el("p", { class: "problem" }, about.undrawn));
      return;
    }
    fill(this.body,
      el("h2", {}, "Time of an epoch, in ms"), timeline({ ...drawn, lines: { ms: listed.map((each) => each.seconds * 1000) } }, 150),
      el("h2", {}, "Rows that changed"), timeline({ ...drawn, lines: { in: listed.map((each) => each.inserted), out: listed.map((each) => each.deleted) } }, 150),
      el("h2", {}, "Memory by relation"), table(["relation", "rows", "memory"], Object.entries(status.bytes).filter(([name]) => about.byName.has(name)).sort((one, other) => other[1] - one[1]).map(([name, size]) => [name, count(status.sizes[name] ?? 0), bytes(size)])),
      el("p", { class: "note" }, `${bytes(status.memory)} in all, ${bytes(status.value_bytes)} of it for distinct values; ${counted(status.viewers, "viewer")}.`),
      el("h2", {}, "Last epochs"), table(["epoch", "at", "updates", "in", "out", "took"], [...listed].reverse().slice(0, 50).map((each) => [count(each.epoch), clock(each.at), count(each.updates), count(each.inserted), count(each.deleted), duration(each.seconds)])));
  }

  told() {
    this.waiting ||= setTimeout(() => {
      this.waiting = 0;
      this.show();
    }, 1000);
  }

  close() {
    clearTimeout(this.waiting);
  }
}

class LettersPage {
  constructor() {
    this.element = el("section", { class: "view" }, el("h1", {}, "Dead letters"), (this.body = el("div", { class: "scroll" })));
  }

  async show() {
    const found = await orSay(this.body, get("dead-letters"));
    if (!found) return;
    this.count = found.count;
    fill(this.body, el("p", { class: "note" }, `${counted(found.count, "record")} could not be applied${found.count > found.letters.length ? `; the last ${found.letters.length} are shown` : ""}.`),
      el("table", { class: "rows" }, el("thead", {}, el("tr", {}, ["where", "reason", "record"].map((each) => el("th", {}, each)))),
        el("tbody", {}, found.letters.map((each) => el("tr", {}, el("td", {}, each.where), el("td", {}, each.reason), el("td", {}, el("code", {}, each.record)))))));
  }

  told(message) {
    if (message.dead_letters !== this.count) this.show();
  }
}

// -- keys

const KEYS = [["/", "search"], ["j k ↓ ↑", "choose a row"], ["Enter", "why is it there"], ["PageDown PageUp", "further rows"], ["t g c h", "table, graph, changes, history"], ["[ ]", "one epoch back, on"], ["l", "live"], ["a", "ask about a fact"], ["Esc", "close"], ["?", "these keys"]];

function help() {
  const dialog = el("dialog", { class: "help" }, el("h2", {}, "Keys"), el("dl", {}, KEYS.flatMap(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)])),
    el("form", { method: "dialog" }, el("button", { autofocus: true }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    if (event.target.matches("input, select")) event.target.blur();
    else if (read().ask) closePanel();
    document.body.classList.remove("open");
    return;
  }
  if (event.target.matches("input, select, textarea")) return;
  const as = { t: undefined, g: "graph", c: "changes", h: "history" };
  if (event.key === "/") main.querySelector('input[type="search"]')?.focus();
  else if (event.key === "?") help();
  else if (event.key === "[") step(-1);
  else if (event.key === "]") step(1);
  else if (event.key === "l") change({ epoch: undefined, compare: undefined });
  else if (event.key === "a") change({ ask: "whynot", fact: read().fact || "" });
  else if (event.key in as && read().page === "view") change({ as: as[event.key], compare: undefined });
  else if (event.key === "Enter" && event.target.matches("a, button, summary")) return;
  else if (!page?.key?.(event)) return;
  event.preventDefault();
});

window.addEventListener("hashchange", route);
setInterval(() => about && drawTop(), 2000);
begin();
