"use strict";
(() => {
  // One query: the picks of up to three settings.
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (name, classes, ...children) => {
    const element = document.createElement(name);
    if (classes) element.className = classes;
    element.dir = "auto";
    element.append(...children);
    return element;
  };
  const SHORT = 220;
  const cut = (text, most) => (text.length > most ? `${[...text].slice(0, most).join("").trimEnd()}…` : text);
  const label = (setting) => data.settings[setting];
  const slots = [...document.querySelectorAll("select.slot")], querySelect = byId("query");

  // The queries that change most come first.
  for (const [name, loses] of [["Lose most", true], ["Gain most", false], ["Queries", null]]) {
    const group = make("optgroup", "", ...data.queries.flatMap((query, i) => (query.loses === loses ? [new Option(cut(query.text.replace(/\s+/g, " "), 110), i)] : [])));
    group.label = name;
    if (group.children.length) querySelect.append(group);
  }
  slots.forEach((select, slot) => {
    if (slot > 0) select.append(new Option("none", ""));
    data.settings.forEach((name, i) => select.append(new Option(cut(name, 60), i)));
    select.value = data.start[slot] ?? "";
  });

  // The parts of the query (its subtopics) that a candidate covers, or a setting.
  const covers = (query, index) => query.candidates[index].parts;
  const covered = (query, one) => [...new Set(one.picks.flatMap((index) => covers(query, index)))];
  // Whether a candidate is right, and a setting lacks it: a part that no pick of the setting covers, or else a gold document.
  const lacks = (query, index, other) => (query.parts.length
    ? covers(query, index).some((part) => !covered(query, other).includes(part))
    : query.gold.includes(index) && !other.picks.includes(index));
  const marked = (text, words) => text.split(/([\p{L}\p{M}\p{N}_]+)/u)
    .map((part) => (words.includes(part.toLowerCase()) ? make("mark", "", part) : part));

  function pick(query, one, rank, index, all) {
    const { id, text, cosine, beyond } = query.candidates[index];
    const others = all.filter((other) => other !== one), also = others.filter((other) => other.picks.includes(index));
    const tags = [];
    const tag = (classes, words) => tags.push(make("span", classes, words));
    if (also.length < others.length) tag("apart", also.length ? `also in ${also.map((other) => label(other.setting)).join(", ")}` : "only here");
    if (query.gold.includes(index)) tag("gold", "★ gold");
    if (covers(query, index).length) tag("gold", `covers ${covers(query, index).map((part) => query.parts[part]).join(", ")}`);
    const without = one.setting === 0 ? others.filter((other) => lacks(query, index, other)) : [];
    if (without.length) tag("lost", `left out by ${without.map((other) => label(other.setting)).join(", ")}`);
    if (others.some((other) => other.setting === 0 && lacks(query, index, other))) tag("won", "missed by similarity");
    if (beyond) tag("beyond", "not among the nearest");
    const reason = query.reasons[one.setting]?.[rank];
    const excerpt = make("p", "excerpt", ...marked(cut(text, SHORT), query.words));
    const item = make("li", also.length < others.length ? "pick apart" : "pick",
      make("header", "", make("b", "", String(rank + 1)), make("span", "id", id), make("span", "cosine", `cosine ${cosine.toFixed(3).replace("-", "−")}`)),
      make("div", "tags", ...tags), make("p", "why", [...(beyond ? [] : [`Rank ${index + 1} by cosine.`]), ...(reason ? [`${reason[0].toUpperCase()}${reason.slice(1)}.`] : [])].join(" ")), excerpt);
    if (text.length > SHORT) {
      const more = make("button", "more", "Show more");
      more.type = "button";
      more.addEventListener("click", () => { excerpt.replaceChildren(...marked(text, query.words)); more.remove(); });
      item.append(more);
    }
    return item;
  }

  function summary(query, all) {
    const counts = (count) => all.map((one) => `${label(one.setting)} ${count(one)}`).join(", ");
    const said = [];
    if (query.goldTotal) said.push(`Gold documents, of ${query.goldTotal}: ${counts((one) => one.picks.filter((i) => query.gold.includes(i)).length)}.`);
    if (query.parts.length) said.push(`Parts, of ${query.parts.length} (${query.parts.join(", ")}): ${counts((one) => covered(query, one).length)}.`);
    return said.join(" ");
  }

  function show() {
    const query = data.queries[Number(querySelect.value)];
    const all = slots.filter((select) => select.value !== "").map((select) => ({ setting: Number(select.value), picks: query.picks[select.value] ?? [] }));
    byId("query-text").textContent = query.text;
    byId("summary").textContent = summary(query, all);
    byId("columns").replaceChildren(...all.map((one) => make("section", "column", make("h3", "", label(one.setting)),
      make("ol", "", ...one.picks.map((index, rank) => pick(query, one, rank, index, all))))));
  }

  // The address names the query and the settings, so that it can be shared.
  function choose() {
    show();
    const address = new URLSearchParams({ query: data.queries[querySelect.value].id, settings: slots.map((select) => select.value) });
    // A page inside another one, as in a notebook, has no address of its own.
    try { history.replaceState(null, "", `#${address}`); } catch { /* It cannot be shared there. */ }
  }

  function turnTo() {
    byId("queries-title").focus({ preventScroll: true });
    byId("queries-title").scrollIntoView();
  }

  function follow() {
    const asked = new URLSearchParams(location.hash.slice(1)), place = data.queries.findIndex((query) => query.id === asked.get("query"));
    if (place < 0) return;
    querySelect.value = String(place);
    const wanted = asked.get("settings")?.split(",") ?? [];
    slots.forEach((select, slot) => { if ([...select.options].some((option) => option.value === wanted[slot])) select.value = wanted[slot]; });
    show();
    turnTo();
  }

  // A link leads to a query, with the picks of similarity and of the setting that the link is about.
  for (const link of document.querySelectorAll("a[data-query]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      querySelect.value = link.dataset.query;
      ["0", link.dataset.setting].forEach((value, slot) => { if (slots[slot]) slots[slot].value = value; });
      choose();
      turnTo();
    });
  }

  for (const select of [querySelect, ...slots]) select.addEventListener("change", choose);
  byId("explorer").hidden = false;
  querySelect.value = "0";
  show();
  follow();
  addEventListener("hashchange", follow);
})();
