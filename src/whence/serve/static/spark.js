// Small lines: how many rows there were, and numbers over time.

import { count, el } from "./dom.js";

export function sparkline(numbers, width = 72, height = 18) {
  const svg = el("svg:svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
  if (numbers.length < 2) return svg;
  const least = Math.min(...numbers);
  const most = Math.max(...numbers);
  const x = (at) => (at / (numbers.length - 1)) * (width - 4) + 2;
  const y = (value) => (most === least ? height / 2 : height - 3 - ((value - least) / (most - least)) * (height - 6));
  const points = numbers.map((value, at) => `${x(at).toFixed(1)},${y(value).toFixed(1)}`);
  svg.append(
    el("svg:polyline", { points: points.join(" ") }),
    el("svg:circle", { cx: x(numbers.length - 1), cy: y(numbers[numbers.length - 1]), r: 1.8 }),
  );
  return svg;
}

export const PALETTE = ["#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#a463f2", "#3ca951", "#ff8ab7", "#9c6b4e", "#97bbf5", "#9498a0"];

// Lines over epochs, with an axis and what is under the pointer.
export function timeline({ epochs, at, lines }, height = 180) {
  const names = Object.keys(lines);
  const box = el("div", { class: "timeline" });
  if (epochs.length < 2) {
    box.append(el("p", { class: "empty" }, "Nothing has changed yet."));
    return box;
  }
  const { d3 } = window;
  const width = 640;
  const edge = { left: 48, right: 12, top: 10, bottom: 22 };
  const values = names.flatMap((name) => lines[name]);
  // Epochs that were read from a log all at once are drawn one beside the other.
  const isTimed = at[at.length - 1] - at[0] > 2;
  const places = isTimed ? at : epochs;
  const x = d3.scaleLinear([places[0], places[places.length - 1]], [edge.left, width - edge.right]);
  const low = Math.min(...values);
  const high = Math.max(...values);
  const y = d3.scaleLinear([low === high ? low - 1 : low, high === low ? high + 1 : high], [height - edge.bottom, edge.top]).nice(4);
  const svg = el("svg:svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${names.join(", ")} over time` });
  for (const tick of y.ticks(4)) {
    svg.append(
      el("svg:line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: y(tick), y2: y(tick) }),
      el("svg:text", { x: edge.left - 6, y: y(tick) + 4, "text-anchor": "end" }, count(tick)),
    );
  }
  const time = isTimed ? d3.scaleTime([new Date(at[0] * 1000), new Date(at[at.length - 1] * 1000)], x.range()) : x;
  const format = isTimed ? time.tickFormat(5) : (tick) => (Number.isInteger(tick) ? `epoch ${count(tick)}` : "");
  for (const tick of time.ticks(5)) {
    svg.append(el("svg:text", { x: time(tick), y: height - 6, "text-anchor": "middle" }, format(tick)));
  }
  const line = d3.line((_, index) => x(places[index]), (value) => y(value)).curve(d3.curveStepAfter);
  names.forEach((name, index) => {
    svg.append(el("svg:path", { class: "line", d: line(lines[name]), stroke: PALETTE[index % PALETTE.length] }));
  });
  const cursor = el("svg:line", { class: "cursor", y1: edge.top, y2: height - edge.bottom, x1: -9, x2: -9 });
  const told = el("output", {}, "");
  svg.append(cursor);
  svg.addEventListener("pointermove", (event) => {
    const [place] = d3.pointer(event, svg);
    const index = Math.max(0, Math.min(at.length - 1, d3.bisectCenter(places, x.invert(place))));
    cursor.setAttribute("x1", x(places[index]));
    cursor.setAttribute("x2", x(places[index]));
    told.textContent = `epoch ${epochs[index]}: ${names.map((name) => `${name} ${count(lines[name][index])}`).join(", ")}`;
  });
  box.append(svg);
  if (names.length > 1) {
    box.append(el("p", { class: "legend" }, names.map((name, index) => el("span", {}, swatch(PALETTE[index % PALETTE.length]), name))));
  }
  box.append(told);
  return box;
}

export function swatch(colour) {
  const made = el("i", { class: "swatch" });
  made.style.background = colour;
  return made;
}
