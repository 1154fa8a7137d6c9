"use strict";
{
  const picture = document.querySelector(".picture");
  const svg = picture.querySelector("svg");
  const { width, height } = svg.viewBox.baseVal;
  const boxes = [...svg.querySelectorAll("[data-node]")];
  const edges = [...svg.querySelectorAll("[data-ends]")].map((path) => ({ path, ends: path.dataset.ends.split(" ") }));
  const readable = 0.75;
  let scale = 1;

  // What is in the middle stays there.
  function zoom(to) {
    const across = (picture.scrollLeft + picture.clientWidth / 2) / scale;
    const down = (picture.scrollTop + picture.clientHeight / 2) / scale;
    scale = Math.min(4, Math.max(0.05, to));
    svg.style.width = `${width * scale}px`;
    svg.style.height = `${height * scale}px`;
    picture.scrollLeft = across * scale - picture.clientWidth / 2;
    picture.scrollTop = down * scale - picture.clientHeight / 2;
  }

  const fitting = () => Math.min(1, picture.clientWidth / width);
  const zooms = { out: () => scale / 1.25, in: () => scale * 1.25, fit: fitting, full: () => 1 };

  // Dims everything but a box, the edges at it and the boxes that they lead to.
  function look(number) {
    const lit = new Set([number]);
    for (const { path, ends } of edges) {
      const isLit = ends.includes(number);
      path.classList.toggle("lit", isLit);
      if (isLit) ends.forEach((end) => lit.add(end));
    }
    for (const box of boxes) box.classList.toggle("lit", lit.has(box.dataset.node));
    svg.classList.toggle("looking", number !== undefined);
  }

  const numberAt = (event) => event.target.closest("[data-node]")?.dataset.node ?? event.target.querySelector?.("[data-node]")?.dataset.node;

  function reveal() {
    const details = document.getElementById(location.hash.slice(1))?.closest("details");
    if (details) details.open = true;
  }

  for (const tools of document.querySelectorAll(".tools")) tools.hidden = false;
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => zoom(zooms[button.dataset.zoom]()));
  }
  for (const button of document.querySelectorAll("[data-open]")) {
    button.addEventListener("click", () => {
      for (const details of document.querySelectorAll("details")) details.open = Boolean(button.dataset.open);
    });
  }
  svg.addEventListener("pointerover", (event) => look(event.target.closest("[data-node]")?.dataset.node));
  svg.addEventListener("pointerleave", () => look());
  svg.addEventListener("focusin", (event) => look(numberAt(event)));
  svg.addEventListener("focusout", () => look());
  addEventListener("hashchange", reveal);
  reveal();

  zoom(Math.max(readable, fitting()));
  const root = boxes[0].querySelector("rect");
  picture.scrollLeft = (root.x.baseVal.value + root.width.baseVal.value / 2) * scale - picture.clientWidth / 2;
  picture.scrollTop = 0;
}
