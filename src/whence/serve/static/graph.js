// Graphs, plans and maps, drawn on a canvas: thousands of nodes stay fluid, since nothing is an element of the page.
//
// Nodes with places stay there; the others are pushed apart by d3's simulation, for some milliseconds of each frame. New data
// keeps the places of nodes that were there.

import { count, el } from "./dom.js";
import { PALETTE, swatch } from "./spark.js";

const FRAME = 12; // milliseconds of a frame that the simulation may take
const NEAR = 14; // pixels

export class Drawing {
  constructor({ onNode, onEdge, label = "A graph" }) {
    this.onNode = onNode;
    this.onEdge = onEdge;
    this.canvas = el("canvas", { tabindex: "0", role: "img", "aria-label": label });
    this.told = el("output", { class: "hover" });
    this.legend = el("p", { class: "legend" });
    const buttons = el(
      "div",
      { class: "zoom" },
      el("button", { type: "button", title: "Closer", onclick: () => this.scaleBy(1.5) }, "+"),
      el("button", { type: "button", title: "Farther", onclick: () => this.scaleBy(1 / 1.5) }, "−"),
      el("button", { type: "button", title: "All of it", onclick: () => this.fit() }, "⤢"),
    );
    this.element = el("div", { class: "drawing" }, this.canvas, buttons, this.told, this.legend);
    this.nodes = [];
    this.edges = [];
    this.rooms = [];
    this.byId = new Map();
    this.transform = window.d3.zoomIdentity;
    this.hovered = null;
    this.isFitted = false;
    this.zoom = window.d3
      .zoom()
      .scaleExtent([0.02, 40])
      .on("zoom", (event) => {
        this.transform = event.transform;
        if (event.sourceEvent) this.isMoved = true;
        this.ask();
      });
    window.d3.select(this.canvas).call(this.zoom).on("dblclick.zoom", null);
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => this.show(null));
    this.canvas.addEventListener("click", (event) => this.click(event));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.watcher = new ResizeObserver(() => this.resize());
    this.watcher.observe(this.element);
    this.media = matchMedia("(prefers-color-scheme: dark)");
    this.media.addEventListener("change", (this.repaint = () => this.ask()));
    document.addEventListener("whence-theme", this.repaint);
  }

  close() {
    this.watcher.disconnect();
    this.media.removeEventListener("change", this.repaint);
    document.removeEventListener("whence-theme", this.repaint);
    this.simulation?.stop();
    this.isClosed = true;
  }

  // Nodes have an id, and may have a label, a group (what they are coloured by), and x and y. Edges have from and to; `mark`
  // makes an edge stand out.
  set({ nodes, edges, rooms = [], image = null, extent = null, colours = {}, legend = "", flip = false }) {
    const before = this.byId;
    this.byId = new Map();
    this.rooms = rooms;
    this.extent = extent;
    this.colours = colours;
    this.flip = flip ? -1 : 1;
    this.nodes = nodes.map((node) => {
      const made = before.get(node.id) || {};
      Object.assign(made, { label: undefined, group: undefined, fact: undefined }, node);
      if (node.x !== undefined) {
        made.fx = node.x;
        made.fy = node.y * this.flip;
        made.x = made.fx;
        made.y = made.fy;
      } else {
        made.fx = made.fy = null;
      }
      this.byId.set(node.id, made);
      return made;
    });
    this.edges = edges
      .filter((edge) => this.byId.has(edge.from) && this.byId.has(edge.to))
      .map((edge) => ({ ...edge, source: this.byId.get(edge.from), target: this.byId.get(edge.to) }));
    this.paint = this.palette(legend);
    if (image && image !== this.image?.from) this.load(image);
    const isNew = this.nodes.some((node) => !before.has(node.id)) || this.nodes.length !== before.size;
    if (this.nodes.some((node) => node.fx === null)) this.push(isNew);
    else {
      this.simulation?.stop();
      this.simulation = null;
    }
    if (!this.isFitted && this.nodes.length) this.fit();
    this.canvas.dataset.nodes = this.nodes.length;
    this.canvas.dataset.edges = this.edges.length;
    this.ask();
  }

  load(from) {
    const image = new Image();
    image.from = from;
    image.addEventListener("load", () => this.ask());
    image.src = from;
    this.image = image;
  }

  palette(title) {
    const groups = [...new Set(this.nodes.map((node) => node.group).filter((group) => group !== undefined))];
    if (!groups.length) {
      this.legend.replaceChildren();
      return () => null;
    }
    const isNumeric = groups.length > 8 && groups.every((group) => typeof group === "number");
    if (isNumeric) {
      const scale = window.d3.scaleSequential(window.d3.extent(groups), window.d3.interpolateViridis);
      const [low, high] = scale.domain();
      this.legend.replaceChildren(el("span", {}, title), ...[low, (low + high) / 2, high].map((value) => el("span", {}, swatch(scale(value)), count(value))));
      return (group) => (group === undefined ? null : scale(group));
    }
    groups.sort((one, other) => (String(one) < String(other) ? -1 : 1));
    const colour = (group) => this.colours[group] || PALETTE[groups.indexOf(group) % PALETTE.length];
    this.legend.replaceChildren(el("span", {}, title), ...groups.slice(0, 12).map((group) => el("span", {}, swatch(colour(group)), String(group))));
    return (group) => (group === undefined ? null : colour(group));
  }

  push(isNew) {
    const { d3 } = window;
    const size = this.nodes.length;
    for (const node of this.nodes) {
      if (node.x !== undefined && Number.isFinite(node.x)) continue;
      const near = this.edges.find((edge) => edge.target === node && Number.isFinite(edge.source.x))?.source;
      node.x = (near?.x || 0) + (Math.random() - 0.5) * (near ? 30 : 30 * Math.sqrt(size));
      node.y = (near?.y || 0) + (Math.random() - 0.5) * (near ? 30 : 30 * Math.sqrt(size));
    }
    if (!this.simulation) {
      this.simulation = d3
        .forceSimulation()
        .stop()
        .force("charge", d3.forceManyBody().theta(1.1).distanceMax(600))
        .force("link", d3.forceLink())
        .force("x", d3.forceX().strength(0.03))
        .force("y", d3.forceY().strength(0.03));
    }
    const simulation = this.simulation;
    simulation.nodes(this.nodes);
    simulation.force("charge").strength(size > 2000 ? -18 : -90);
    simulation.force("link").links(this.edges).distance(size > 500 ? 22 : 46).iterations(1);
    if (isNew) simulation.alpha(Math.max(simulation.alpha(), 0.6));
    this.tick();
  }

  tick() {
    if (this.isTicking || !this.simulation || this.isClosed) return;
    this.isTicking = true;
    requestAnimationFrame(() => {
      this.isTicking = false;
      if (!this.simulation || this.isClosed) return;
      const end = performance.now() + FRAME;
      do this.simulation.tick();
      while (performance.now() < end && this.simulation.alpha() > 0.02);
      this.tree = null;
      if (!this.isMoved) this.fit(true);
      this.draw();
      if (this.simulation.alpha() > 0.02) this.tick();
    });
  }

  bounds() {
    if (this.extent) {
      const { x, y, width, height } = this.extent;
      return this.flip > 0 ? [x, y, x + width, y + height] : [x, -(y + height), x + width, -y];
    }
    const xs = this.nodes.map((node) => node.x);
    const ys = this.nodes.map((node) => node.y);
    for (const room of this.rooms) {
      xs.push(room.x, room.x + room.width);
      ys.push(room.y * this.flip, (room.y + room.height) * this.flip);
    }
    const { d3 } = window;
    return [d3.min(xs) ?? 0, d3.min(ys) ?? 0, d3.max(xs) ?? 1, d3.max(ys) ?? 1];
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !this.nodes.length) return;
    const [left, top, right, bottom] = this.bounds();
    const margin = this.extent || this.rooms.length ? 16 : 44;
    const wide = Math.max(right - left, 1e-6);
    const high = Math.max(bottom - top, 1e-6);
    const scale = Math.min((width - 2 * margin) / wide, (height - 2 * margin) / high, this.simulation ? 2.5 : Infinity);
    const most = this.simulation ? 40 : scale * 40;
    this.zoom.scaleExtent([Math.min(0.02, scale / 4), most]);
    this.unit = this.simulation ? 1 : scale;
    const transform = window.d3.zoomIdentity
      .translate(width / 2, height / 2)
      .scale(scale)
      .translate(-(left + right) / 2, -(top + bottom) / 2);
    this.isFitted = true;
    window.d3.select(this.canvas).call(this.zoom.transform, transform);
  }

  scaleBy(factor) {
    this.isMoved = true;
    window.d3.select(this.canvas).call(this.zoom.scaleBy, factor);
  }

  key(event) {
    const steps = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (event.key in steps) {
      const [x, y] = steps[event.key];
      window.d3.select(this.canvas).call(this.zoom.translateBy, x / this.transform.k, y / this.transform.k);
    } else if (event.key === "+") this.scaleBy(1.5);
    else if (event.key === "-") this.scaleBy(1 / 1.5);
    else if (event.key === "0") this.fit();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    const ratio = devicePixelRatio || 1;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    if (!this.isMoved && this.nodes.length) this.fit();
    this.ask();
  }

  ask() {
    if (this.isAsked) return;
    this.isAsked = true;
    requestAnimationFrame(() => {
      this.isAsked = false;
      this.draw();
    });
  }

  draw() {
    const context = this.canvas.getContext("2d");
    const style = getComputedStyle(this.element);
    const colour = (name) => style.getPropertyValue(name).trim();
    const ratio = devicePixelRatio || 1;
    const { k, x, y } = this.transform;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    const px = (node) => node.x * k + x;
    const py = (node) => node.y * k + y;
    this.drawGround(context, colour, { k, x, y });
    const many = this.nodes.length > 900;
    const radius = Math.max(many ? 1.5 : 3, Math.min(many ? 5 : 7, 5.5 * Math.sqrt(this.simulation ? k : 1)));
    const plain = this.edges.filter((edge) => !edge.mark);
    context.lineWidth = many ? 0.6 : 1;
    context.strokeStyle = colour("--edge");
    this.drawEdges(context, plain, px, py, radius, colour("--edge"), this.edges.length < 1500);
    const marked = this.edges.filter((edge) => edge.mark);
    if (marked.length) {
      context.lineWidth = 3.5;
      context.strokeStyle = colour("--mark");
      this.drawEdges(context, marked, px, py, radius, colour("--mark"), true);
    }
    const byColour = new Map();
    for (const node of this.nodes) {
      const own = this.paint(node.group) || colour("--node");
      if (!byColour.has(own)) byColour.set(own, []);
      byColour.get(own).push(node);
    }
    for (const [own, nodes] of byColour) {
      context.fillStyle = own;
      context.beginPath();
      for (const node of nodes) {
        const r = node.mark ? radius + 3 : radius;
        context.moveTo(px(node) + r, py(node));
        context.arc(px(node), py(node), r, 0, 2 * Math.PI);
      }
      context.fill();
      if (!many) {
        context.lineWidth = 1.2;
        context.strokeStyle = colour("--ground");
        context.stroke();
      }
    }
    this.drawLabels(context, colour, px, py, radius);
  }

  drawGround(context, colour, { k, x, y }) {
    if (this.image?.complete && this.image.naturalWidth && this.extent) {
      const [left, top, right, bottom] = this.bounds();
      context.drawImage(this.image, left * k + x, top * k + y, (right - left) * k, (bottom - top) * k);
    }
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "left";
    for (const room of this.rooms) {
      const top = this.flip > 0 ? room.y : -(room.y + room.height);
      const box = [room.x * k + x, top * k + y, room.width * k, room.height * k];
      context.fillStyle = colour("--room");
      context.fillRect(...box);
      const own = room.group === undefined ? null : this.colours[room.group] || PALETTE[Math.abs(hash(String(room.group))) % PALETTE.length];
      if (own) {
        context.globalAlpha = 0.22;
        context.fillStyle = own;
        context.fillRect(...box);
        context.globalAlpha = 1;
      }
      context.lineWidth = 1.5;
      context.strokeStyle = colour("--wall");
      context.strokeRect(...box);
      context.fillStyle = colour("--muted");
      context.fillText(room.label, box[0] + 7, box[1] + 16, Math.max(10, box[2] - 10));
    }
  }

  drawEdges(context, edges, px, py, radius, own, arrows) {
    context.beginPath();
    for (const { source, target } of edges) {
      if (source === target) {
        context.moveTo(px(source) + radius, py(source) - radius);
        context.arc(px(source), py(source) - 2 * radius, 1.6 * radius, 0.4, 2 * Math.PI + 0.4);
        continue;
      }
      context.moveTo(px(source), py(source));
      context.lineTo(px(target), py(target));
    }
    context.stroke();
    if (!arrows) return;
    context.fillStyle = own;
    context.beginPath();
    for (const { source, target } of edges) {
      const dx = px(target) - px(source);
      const dy = py(target) - py(source);
      const length = Math.hypot(dx, dy);
      if (length < 4 * radius) continue;
      const [ux, uy] = [dx / length, dy / length];
      const [ax, ay] = [px(target) - ux * (radius + 1), py(target) - uy * (radius + 1)];
      context.moveTo(ax, ay);
      context.lineTo(ax - ux * 7 - uy * 3.2, ay - uy * 7 + ux * 3.2);
      context.lineTo(ax - ux * 7 + uy * 3.2, ay - uy * 7 - ux * 3.2);
      context.closePath();
    }
    context.fill();
  }

  drawLabels(context, colour, px, py, radius) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const seen = this.nodes.filter((node) => px(node) > -20 && px(node) < width + 20 && py(node) > -20 && py(node) < height + 20);
    const isShown = seen.length <= 160 || this.transform.k > 3 * this.unit;
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineWidth = 3;
    context.lineJoin = "round";
    context.strokeStyle = colour("--ground");
    context.fillStyle = colour("--text");
    const taken = [];
    const label = (node) => {
      const text = String(node.label ?? node.id);
      const short = text.length > 26 ? `${text.slice(0, 25)}…` : text;
      const half = short.length * 3.4;
      const [left, top] = [px(node) - half, py(node) - radius - 16];
      if (node !== this.hovered && taken.some((each) => left < each[0] + each[2] && left + 2 * half > each[0] && Math.abs(top - each[1]) < 13)) return;
      taken.push([left, top, 2 * half]);
      context.strokeText(short, px(node), py(node) - radius - 5);
      context.fillText(short, px(node), py(node) - radius - 5);
    };
    if (this.hovered) label(this.hovered);
    if (isShown) seen.slice(0, 400).forEach(label);
    else this.nodes.filter((node) => node.mark || node === this.hovered).forEach(label);
    if (this.hovered) {
      context.lineWidth = 2;
      context.strokeStyle = colour("--mark");
      context.beginPath();
      context.arc(px(this.hovered), py(this.hovered), radius + 4, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const [x, y] = this.transform.invert([event.clientX - box.left, event.clientY - box.top]);
    this.tree ||= window.d3.quadtree(this.nodes, (node) => node.x, (node) => node.y);
    const node = this.tree.find(x, y, NEAR / this.transform.k);
    if (node) return { node };
    if (this.edges.length > 4000) return {};
    const within = 5 / this.transform.k;
    const edge = this.edges.find(({ source, target }) => distance(x, y, source, target) < within);
    return edge ? { edge } : {};
  }

  hover(event) {
    if (event.buttons) return;
    const { node, edge } = this.at(event);
    this.show(node || null, edge);
  }

  show(node, edge = null) {
    const title = node ? node.title || `${node.label ?? node.id}${node.group === undefined ? "" : ` · ${node.group}`}` : edge?.fact || "";
    this.canvas.style.cursor = node || edge ? "pointer" : "";
    if (node === this.hovered && title === this.told.textContent) return;
    this.hovered = node;
    this.told.textContent = title;
    this.ask();
  }

  click(event) {
    const { node, edge } = this.at(event);
    if (node) this.onNode?.(node);
    else if (edge) this.onEdge?.(edge);
  }
}

function distance(x, y, from, to) {
  const dx = to.x - from.x;
  const dy = to.y - from.y;
  const along = Math.max(0, Math.min(1, ((x - from.x) * dx + (y - from.y) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - from.x - along * dx, y - from.y - along * dy);
}

function hash(text) {
  let value = 0;
  for (const each of text) value = (value * 31 + each.codePointAt(0)) | 0;
  return value;
}

// Where on a sheet a place on the globe is (Mercator).
export const onSheet = (longitude, latitude) => [
  longitude,
  (Math.log(Math.tan(Math.PI / 4 + (Math.max(-85, Math.min(85, latitude)) * Math.PI) / 360)) * 180) / Math.PI,
];
export const isOnGlobe = (column) => /^(lon|lng)/i.test(column);
