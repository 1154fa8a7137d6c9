// Answers about a row: in a panel beside what was looked at.

import { get, post } from "./api.js";
import { count, counted, el, fill, toast } from "./dom.js";
import { change, linkTo, read } from "./route.js";

const TABS = [
  ["why", "Why"],
  ["graph", "Graph"],
  ["how", "How"],
  ["responsibility", "Who"],
  ["probability", "Likely"],
  ["whatif", "What if"],
  ["whynot", "Why not"],
];

const panel = document.getElementById("panel");
let asking = null;
let shown = "";

export function closePanel() {
  change({ ask: undefined, fact: undefined, chance: undefined, among: undefined });
}

export async function showPanel(place, about) {
  if (!place.ask) {
    asking?.abort();
    shown = "";
    panel.hidden = true;
    document.body.classList.remove("asking");
    return;
  }
  const key = JSON.stringify([place.ask, place.fact, place.epoch, place.chance, place.among, about.instance]);
  if (key === shown) return;
  shown = key;
  panel.hidden = false;
  document.body.classList.add("asking");
  asking?.abort();
  asking = new AbortController();
  const body = el("div", { class: "body" });
  fill(panel, header(place), body);
  if (!place.fact) {
    fill(body, el("p", { class: "empty" }, "Write a fact above, and ask."));
    panel.querySelector("input")?.focus();
    return;
  }
  fill(body, el("p", { class: "busy" }, "Looking…"));
  try {
    const listed = (text) => (text ? text.split(";").map((each) => each.trim()) : undefined);
    const parameters = { fact: place.fact, epoch: place.epoch, chance: listed(place.chance), among: listed(place.among) };
    const found = await get(`questions/${place.ask}`, parameters, asking.signal);
    fill(body, ...RENDER[place.ask](found, about, place));
    const isPast = place.epoch !== undefined;
    const again = el("button", { type: "button", class: "quiet", onclick: () => ((shown = ""), showPanel(read(), about)) }, "ask again");
    body.append(el("p", { class: "note" }, `As of epoch ${count(found.epoch)}. `, isPast ? null : again));
  } catch (error) {
    if (error.name === "AbortError") return;
    fill(body, place.ask === "responsibility" ? amongForm(about, place) : null, el("p", { class: "problem" }, error.message));
    if (/does not hold; /.test(error.message)) {
      body.append(el("p", {}, el("a", { href: linkTo({ ask: "whynot" }) }, "Why not?")));
    } else if (/ holds; /.test(error.message)) {
      body.append(el("p", {}, el("a", { href: linkTo({ ask: "why" }) }, "Why?")));
    }
  }
}

function header(place) {
  const tabs = TABS.map(([kind, title]) =>
    el("a", { href: linkTo({ ask: kind }), role: "tab", "aria-selected": String(kind === place.ask), title: TITLES[kind] }, title),
  );
  const input = el("input", {
    name: "fact",
    value: place.fact || "",
    placeholder: 'reach("a", "b")',
    spellcheck: "false",
    autocomplete: "off",
    "aria-label": "The fact asked about",
  });
  const form = el("form", {
    class: "facts",
    onsubmit: (event) => {
      event.preventDefault();
      change({ fact: input.value });
    },
  }, input, el("button", {}, "Ask"));
  return el(
    "div",
    { class: "head" },
    el("div", { class: "row" }, form, el("button", { type: "button", class: "close", title: "Close (Esc)", onclick: closePanel }, "×")),
    el("div", { class: "tabs", role: "tablist" }, tabs),
  );
}

const TITLES = {
  why: "The smallest proof",
  graph: "Everything that it can be derived from",
  how: "All derivations, summed up",
  responsibility: "How much each base fact contributes",
  probability: "How likely it is, if base facts are uncertain",
  whatif: "What would change if it went or came",
  whynot: "What is missing, and what would bring it",
};

export function factLink(fact, kind = "why") {
  return el("a", { class: "fact", href: linkTo({ ask: kind, fact: fact.text }), title: fact.text }, fact.text);
}

const RENDER = {
  why(found) {
    return found.proofs.map((proof) => renderProof(proof)).concat(found.is_smallest ? [] : [el("p", { class: "note" }, "There may be a smaller proof.")]);
  },

  graph(found) {
    const drawing = new DOMParser().parseFromString(found.picture, "image/svg+xml").documentElement;
    const svg = document.importNode(drawing, true);
    for (const link of svg.querySelectorAll("a")) {
      const text = link.getAttribute("href").replace("#/ask/why/", "");
      link.setAttribute("href", linkTo({ ask: "graph", fact: text }));
    }
    const facts = found.graph.facts;
    const summary = `${counted(found.of, "derived fact")}, ${counted(found.graph.derivations.length, "derivation")}, ${counted(facts.filter((each) => each.base).length, "base fact")}`;
    const list = el("details", {}, el("summary", {}, "All derivations"), el("ul", { class: "derivations" }, found.graph.derivations.slice(0, 500).map((each) =>
      el("li", {}, factLink(facts[each.head]), ` by ${each.rule}: `, each.body.map((at, index) => [index ? ", " : "", factLink(facts[at])])),
    )));
    const picture = el("div", { class: "picture", tabindex: "0", role: "region", "aria-label": "The picture, which scrolls" }, svg);
    const size = el("button", { type: "button", class: "quiet", onclick: () => fit(!picture.classList.contains("fit")) });
    const fit = (is) => {
      picture.classList.toggle("fit", is);
      size.textContent = is ? "Full size" : "Fit the width";
      const root = svg.querySelector("[data-node] rect")?.getBoundingClientRect();
      if (root) picture.scrollLeft += root.left + root.width / 2 - picture.getBoundingClientRect().left - picture.clientWidth / 2;
    };
    requestAnimationFrame(() => fit(Number(svg.getAttribute("width")) < 1.7 * picture.clientWidth));
    return [
      el("p", { class: "note" }, summary, found.drawn < found.of ? `; the ${found.drawn} nearest are drawn` : "", found.graph.cut ? `; cut off at ${found.graph.cut.reason}` : ""),
      size,
      picture,
      list,
      rules(found.graph.rules),
    ];
  },

  how(found) {
    const meaning = {
      lineage: "all base facts that are used",
      posbool: "the smallest sets of base facts that are enough",
      why: "the sets of base facts that are used together",
      polynomial: "a term for each derivation",
      series: "derivations without end: the first terms",
    };
    return [el("dl", { class: "how" }, Object.entries(found.values).flatMap(([name, text]) => [
      el("dt", {}, name, el("small", {}, meaning[name] || "")),
      el("dd", {}, text === null ? "not found in time" : el("code", {}, text)),
    ]))];
  },

  responsibility(found, about, place) {
    if (!found.contributions.length) return [amongForm(about, place), el("p", { class: "empty" }, "No base fact decides about it.")];
    const most = Math.max(...found.contributions.map((each) => each.shapley), 1e-9);
    return [
      amongForm(about, place),
      el("table", { class: "shares" },
        el("thead", {}, el("tr", {}, el("th", {}, "base fact"), el("th", {}, "share"), el("th", {}, "responsibility"))),
        el("tbody", {}, found.contributions.slice(0, 200).map((each) => {
          const bar = el("i", { class: "bar" });
          bar.style.width = `${(each.shapley / most) * 100}%`;
          return el("tr", {}, el("td", {}, factLink(each, "whatif")), el("td", { class: "bars" }, bar, `${(each.shapley * 100).toFixed(1)} %${each.error ? ` ± ${(each.error * 100).toFixed(1)}` : ""}`),
            el("td", { class: "number" }, each.responsibility === null ? "" : each.responsibility.toFixed(2)));
        })),
      ),
      el("p", { class: "note" }, "A share is how often the fact decides if base facts come in random order; responsibility is 1 / (1 + how many others have to go before it alone decides)."),
    ];
  },

  probability(found, about, place) {
    const given = place.chance || "";
    const input = el("input", { value: given, placeholder: "link=0.9; cable=@reliability", "aria-label": "Probabilities of base facts", spellcheck: "false" });
    const form = el("form", { class: "facts", onsubmit: (event) => (event.preventDefault(), change({ chance: input.value })) }, input, el("button", {}, "Work out"));
    const value = found.exact ? percent(found.low) : `between ${percent(found.low)} and ${percent(found.high)}`;
    return [
      form,
      el("p", { class: "note" }, "Probabilities of base facts, all of a relation (link=0.9), of one fact, or from a column (link=@p); the others are certain."),
      el("p", { class: "big" }, value),
    ];
  },

  whatif(found, about) {
    const verb = found.op === "-" ? "went" : "came";
    const parts = Object.entries(found.counts).map(([name, each]) => el("li", {}, el("code", {}, name), " ", signed(each["+"], each["-"])));
    const list = el("ul", { class: "changes" }, found.changes.slice(0, 300).map((each) => el("li", { class: each.op === "+" ? "added" : "gone" }, each.op === "+" ? "+ " : "− ", factLink(each, each.op === "-" ? "why" : "whynot"))));
    const result = [el("p", {}, `If it ${verb}, ${counted(found.total, "row")} would change:`), el("ul", { class: "counts" }, parts), list];
    if (found.total > found.changes.length) result.push(el("p", { class: "note" }, `The first ${count(found.changes.length)} are shown.`));
    if (about.writable && read().epoch === undefined) {
      result.push(doIt([{ op: found.op, fact: found.asked.text }], found.op === "-" ? "Delete it" : "Insert it"));
    }
    return result;
  },

  whynot(found, about) {
    const parts = [el("p", {}, el("code", {}, found.fact.text), " does not hold.")];
    for (const each of found.beaten_by) parts.push(el("p", {}, "It is derived, but ", factLink(each), " is kept instead."));
    if (!found.attempts.length && !found.beaten_by.length) parts.push(el("p", {}, "No rule derives such a fact."));
    for (const attempt of found.attempts) {
      parts.push(el("section", { class: "attempt" }, el("h3", {}, attempt.rule, " comes closest with"), el("ul", {},
        attempt.found.map((each) => el("li", { class: "found" }, "found ", factLink(each))),
        attempt.missing.map((each) => el("li", { class: "missing" }, "missing ", el("code", {}, each))),
        attempt.present.map((each) => el("li", { class: "gone" }, "in the way ", factLink(each))),
        attempt.failed.map((each) => el("li", { class: "gone" }, "false ", el("code", {}, each))),
      )));
    }
    for (const repair of found.repairs) {
      const updates = [...repair.insert.map((fact) => ({ op: "+", fact })), ...repair.delete.map((fact) => ({ op: "-", fact }))];
      const list = el("ul", { class: "changes" }, updates.map(({ op, fact }) => el("li", { class: op === "+" ? "added" : "gone" }, op === "+" ? "+ " : "− ", factLink(fact, "whatif"))));
      const canApply = about.writable && read().epoch === undefined;
      parts.push(el("section", { class: "repair" }, el("h3", {}, "It would hold with"), list,
        canApply ? doIt(updates.map(({ op, fact }) => ({ op, fact: fact.text })), "Apply this repair") : null));
    }
    if (!found.repairs.length) parts.push(el("p", { class: "note" }, `No changes of base facts that would make it hold were found${found.bound ? `; the search stopped at ${found.bound}` : ""}.`));
    return parts;
  },
};

// Which base relations count; the others are taken for granted.
function amongForm(about, place) {
  const chosen = place.among ? place.among.split(";") : null;
  const boxes = about.views.filter((view) => view.base).map((view) => el("input", { type: "checkbox", name: view.name, checked: !chosen || chosen.includes(view.name) }));
  return el("form", { class: "among", onchange: () => {
    const wanted = boxes.filter((each) => each.checked).map((each) => each.name);
    change({ among: wanted.length === boxes.length ? undefined : wanted.join(";") });
  } }, "among ", boxes.map((each) => el("label", {}, each, each.name)));
}

const percent = (value) => `${(value * 100).toPrecision(value > 0.9999 && value < 1 ? 8 : 4).replace(/\.?0+$/, "")} %`;

export function signed(plus, minus) {
  return el("span", { class: "signed" }, plus ? el("b", { class: "added" }, `+${count(plus)}`) : null, " ", minus ? el("b", { class: "gone" }, `−${count(minus)}`) : null);
}

function doIt(updates, title) {
  const button = el("button", { type: "button", class: "act", onclick: async () => {
    button.disabled = true;
    try {
      const done = await post("updates", { updates });
      toast(`Epoch ${done.epoch}: ${counted(done.inserted, "row")} in, ${count(done.deleted)} out`);
      shown = "";
    } catch (error) {
      toast(error.message, "problem");
      button.disabled = false;
    }
  } }, title);
  return button;
}

function rules(listed) {
  if (!listed.length) return null;
  return el("details", { open: true }, el("summary", {}, "Rules"), el("dl", { class: "rules" }, listed.flatMap((rule) => [
    el("dt", {}, rule.name, el("small", {}, `${rule.file}:${rule.line}`)),
    el("dd", {}, el("code", {}, rule.text)),
  ])));
}

// A proof as a tree that folds; what was shown already is named only. Steps come with what they rest on before them.
function renderProof(proof) {
  const done = new Set();
  const root = el("ul", { class: "proof" });
  const pending = [[proof.steps.length - 1, root, 0]];
  while (pending.length) {
    const [at, parent, depth] = pending.pop();
    const step = proof.steps[at];
    const isBase = step.rule === undefined;
    const title = [factLink(step, isBase ? "whatif" : "why")];
    if (isBase) {
      parent.append(el("li", { class: "base" }, ...title));
      continue;
    }
    if (done.has(at)) {
      parent.append(el("li", {}, ...title, el("small", {}, "as above")));
      continue;
    }
    done.add(at);
    const below = el("ul");
    const extra = [
      ...(step.absent || []).map((text) => el("li", { class: "missing" }, "no ", el("code", {}, text))),
      ...(step.aggregates || []).map((each) => el("li", { class: "note" }, `${each.op} = ${each.value}`)),
    ];
    parent.append(el("li", {}, el("details", { open: depth < 12 }, el("summary", {}, ...title, el("small", {}, `by ${step.rule}`)), below)));
    for (const premise of [...step.premises].reverse()) pending.push([premise, below, depth + 1]);
    below.append(...extra);
  }
  return el("div", {}, root, rules(proof.rules));
}
