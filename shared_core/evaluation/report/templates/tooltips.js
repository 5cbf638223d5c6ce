"use strict";
// Tooltips and arrow keys for the charts.
(() => {
  function place(figure, tip, item) {
    const frame = figure.getBoundingClientRect();
    const spot = item.querySelector(".target").getBoundingClientRect();
    const middle = spot.left + spot.width / 2 - frame.left;
    const left = Math.max(0, Math.min(middle - tip.offsetWidth / 2, frame.width - tip.offsetWidth));
    const above = spot.top - frame.top - tip.offsetHeight - 6;
    tip.style.left = `${left}px`;
    tip.style.top = `${spot.top < tip.offsetHeight + 8 ? spot.bottom - frame.top + 6 : above}px`;
  }

  for (const figure of document.querySelectorAll("figure.tipped")) {
    const points = [...figure.querySelectorAll(".point")];
    // The tooltip of the browser would cover this one.
    for (const point of points) point.querySelector("title").remove();
    const tip = figure.querySelector(".tip");
    const hide = () => { tip.hidden = true; };
    const show = (item) => {
      const [head, ...rest] = item.dataset.tip.split("\n");
      const strong = document.createElement("strong");
      strong.textContent = head;
      strong.dir = "auto";
      tip.replaceChildren(strong, ...rest.map((line) => {
        const row = document.createElement("div");
        row.textContent = line;
        row.dir = "auto";
        return row;
      }));
      tip.hidden = false;
      place(figure, tip, item);
    };
    const of = (event) => event.target.closest?.("[data-tip]");

    figure.addEventListener("focusin", (event) => { if (of(event)) show(of(event)); });
    figure.addEventListener("focusout", hide);
    figure.addEventListener("pointerover", (event) => { if (of(event)) show(of(event)); });
    figure.addEventListener("pointerout", (event) => {
      if (!of(event)) return;
      const focused = document.activeElement?.closest?.("[data-tip]");
      if (focused && figure.contains(focused)) show(focused); else hide();
    });
    figure.addEventListener("keydown", (event) => {
      if (event.key === "Escape") { hide(); return; }
      const item = of(event);
      if (!item) return;
      const at = points.indexOf(item);
      const to = {
        ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: points.length - 1,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const next = points[(to + points.length) % points.length];
      for (const other of points) other.setAttribute("tabindex", "-1");
      next.setAttribute("tabindex", "0");
      next.focus();
    });
  }
})();
