// Elements and texts. Values become text and attributes, never markup: nothing here takes HTML.

export function el(tag, attributes = {}, ...children) {
  const made = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "selected") made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat().filter((each) => each !== null && each !== undefined && each !== false));
  return parent;
}

const thousands = new Intl.NumberFormat("en");
export const count = (number) => thousands.format(number);

export function bytes(number) {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (number >= 1000 && at < units.length - 1) {
    number /= 1000;
    at += 1;
  }
  return `${number.toFixed(at && number < 10 ? 1 : 0)} ${units[at]}`;
}

export function duration(seconds) {
  if (seconds < 1) return `${(seconds * 1000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

export const clock = (at) => new Date(at * 1000).toLocaleTimeString();

let hiding = 0;
export function toast(text, kind = "") {
  const box = document.getElementById("toast");
  box.textContent = text;
  box.className = `shown ${kind}`;
  clearTimeout(hiding);
  hiding = setTimeout(() => box.classList.remove("shown"), 5000);
}

export function debounce(call, pause) {
  let waiting = 0;
  return (...given) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => call(...given), pause);
  };
}

// The way to say a plural.
export const counted = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
