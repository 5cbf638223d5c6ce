// One query: the picks of up to three settings.
(() => {
  const source = document.getElementById("data");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const byId = (id) => document.getElementById(id);
  const SHORT = 220;

  function make(name, classes, ...children) {
    const element = document.createElement(name);
    if (classes) element.className = classes;
    element.append(...children);
    return element;
  }

  function draw(name, attributes, ...children) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  }

  function bidi(name, classes, text) {
    const element = make(name, classes, text);
    element.dir = "auto";
    return element;
  }

  const figure = (value) => value.toFixed(3).replace("-", "−");
  const counted = (count, noun, plural) => `${count} ${count === 1 ? noun : plural}`;
  const cut = (text, most) => (text.length > most ? `${[...text].slice(0, most).join("").trimEnd()}…` : text);

  // The mark of a slot: a circle, a square, a diamond.
  function key(slot) {
    const r = 7, c = 10;
    const shape = slot === 0 ? draw("circle", { cx: c, cy: c, r })
      : slot === 1 ? draw("rect", { x: c - r, y: c - r, width: 2 * r, height: 2 * r })
        : draw("path", { d: `M${c} ${c - r}l${r} ${r}l${-r} ${r}l${-r} ${-r}Z` });
    shape.setAttribute("class", `outline s${slot}`);
    return draw("svg", { class: "key", width: 20, height: 20, viewBox: "0 0 20 20", "aria-hidden": "true" }, shape);
  }

  const slots = [...document.querySelectorAll(".slot-field select")];
  const querySelect = byId("query");
  const selected = () => slots.flatMap((select, slot) => (select.value === "" ? [] : [{ slot, setting: Number(select.value) }]));
  const label = (setting) => data.settings[setting].label;

  const line = (text, most) => cut(text.replace(/\s+/g, " "), most);
  // The queries that change most come first.
  for (const [name, belongs] of [
    ["Lose most", (change) => change?.[2]],
    ["Gain most", (change) => change && !change[2]],
    [data.queries.some((query) => query.change) ? "The first of all queries" : "Queries", (change) => !change],
  ]) {
    const group = document.createElement("optgroup");
    group.label = name;
    data.queries.forEach((query, i) => {
      if (belongs(query.change)) group.append(new Option(line(query.text, 110), i));
    });
    if (group.children.length) querySelect.append(group);
  }
  slots.forEach((select, slot) => {
    if (slot > 0) select.append(new Option("none", ""));
    let group = null;
    data.settings.forEach((setting, i) => {
      if (group?.label !== setting.method) {
        group = document.createElement("optgroup");
        group.label = setting.method;
        select.append(group);
      }
      group.append(new Option(cut(setting.label, 60), i));
    });
    select.value = data.start[slot] === undefined ? "" : String(data.start[slot]);
    select.previousElementSibling?.append(" ", key(slot));
  });

  // The parts of the query (its subtopics or answers) that a candidate covers, or a setting.
  const covers = (query, index) => query.covers[index] ?? [];
  const covered = (query, one) => [...new Set(one.picks.flatMap((index) => covers(query, index)))];
  const named = (query, parts) => parts.map((part) => query.parts[part]).join(", ");

  // Whether a candidate is right, and a setting lacks it: a part that no pick of the setting covers, or else a gold document.
  function right(query, index, other) {
    if (query.parts.length) return covers(query, index).some((part) => !covered(query, other).includes(part));
    return query.gold.includes(index) && !other.picks.includes(index);
  }

  const marked = (text, words) => text.split(/([\p{L}\p{M}\p{N}_]+)/u)
    .map((part) => (words.includes(part.toLowerCase()) ? make("mark", "", part) : part));

  // Of some picks, the one with the highest cosine with a candidate: its place among them, and the cosine as text.
  function closest(query, index, picks) {
    const members = Object.keys(query.near);
    const found = picks.map((pick, place) => ({ place, near: query.near[index]?.[members.indexOf(String(pick))] ?? -200 }));
    const best = found.reduce((a, b) => (b.near > a.near ? b : a), { near: -200 });
    return best.near > -200 && { place: best.place, text: (best.near / 100).toFixed(2).replace("-", "−") };
  }

  // The words of a pick that those before it lack.
  function freshWords(query, picks, rank) {
    const has = (index) => query.has[index] ?? [];
    const fresh = has(picks[rank]).filter((word) => !picks.slice(0, rank).some((earlier) => has(earlier).includes(word)));
    return fresh.map((word) => query.words[word]);
  }

  // The beginning of a text, and if it lacks one of these words, the place that has it.
  function short(text, words) {
    const begin = cut(text, SHORT);
    const missing = words.find((word) => !begin.toLowerCase().includes(word));
    const place = missing === undefined ? -1 : text.toLowerCase().indexOf(missing);
    return place < 0 || text.length <= SHORT ? begin : `${cut(text, SHORT - 110)} ${text.slice(Math.max(place - 50, 0), place + 60).trim()}…`;
  }

  // What speaks for a pick, given those before it.
  function why(query, { picks, setting }, rank, fresh) {
    const reason = query.reasons[setting]?.[rank];
    const index = picks[rank], before = picks.slice(0, rank);
    const near = closest(query, index, before);
    const said = query.beyond.includes(index) ? [] : [`Rank ${index + 1} by cosine.`];
    if (reason) said.push(`${reason[0].toUpperCase()}${reason.slice(1)}.`);
    else if (fresh.length) said.push(`${rank ? "Adds" : "Has"} ${fresh.map((word) => `“${word}”`).join(", ")}.`);
    else if (rank && query.words.length) said.push("No new coloured word.");
    if (near) said.push(`Most similar to pick ${near.place + 1}, cosine ${near.text}.`);
    return bidi("p", "why", said.join(" "));
  }

  function pick(query, one, rank, index, all) {
    const [document_, cosine, serves] = query.candidates[index];
    const [id, text] = data.documents[document_];
    const fresh = freshWords(query, one.picks, rank);
    const others = all.filter((other) => other !== one);
    const also = others.filter((other) => other.picks.includes(index));
    const item = make("li", "pick");
    const tags = make("div", "tags");
    if (others.length && also.length < others.length) {
      item.classList.add("apart");
      const names = also.map((other) => label(other.setting)).join(", ");
      tags.append(bidi("span", "apart", also.length ? `also in ${names}` : "only here"));
    } else if (others.length) {
      item.classList.add("shared");
      tags.append(make("span", "", others.length > 1 ? "in all three" : "in both"));
    }
    if (query.gold.includes(index)) tags.append(make("span", "gold", "★ gold"));
    if (covers(query, index).length) tags.append(bidi("span", "gold", `covers ${named(query, covers(query, index))}`));
    const without = others.filter((other) => one.setting === 0 && right(query, index, other));
    if (without.length) tags.append(bidi("span", "lost", `left out by ${without.map((other) => {
      const near = closest(query, index, other.picks);
      return label(other.setting) + (near ? ` (most similar to its pick ${near.place + 1}, cosine ${near.text})` : "");
    }).join(", ")}`));
    const near = others.find((other) => other.setting === 0);
    if (near && right(query, index, near)) tags.append(make("span", "won", "missed by similarity"));
    if (query.beyond.includes(index)) tags.append(make("span", "beyond", "not among the nearest"));
    if (serves !== undefined) tags.append(make("span", "serves", serves ? `for sub-question ${serves}` : "for the question"));
    item.append(
      make("header", "", make("span", "rank", String(rank + 1)), bidi("span", "id", id),
        make("span", "cosine", `cosine ${figure(cosine)}`)),
      tags,
      why(query, one, rank, fresh),
    );
    const excerpt = bidi("p", "excerpt", "");
    excerpt.append(...marked(short(text, fresh), query.words));
    item.append(excerpt);
    if (text.length > SHORT) {
      const more = make("button", "more", "Show more");
      more.type = "button";
      more.setAttribute("aria-expanded", "false");
      more.setAttribute("aria-label", `Show more of pick ${rank + 1}, ${id}`);
      more.addEventListener("click", () => {
        const open = more.getAttribute("aria-expanded") !== "true";
        more.setAttribute("aria-expanded", String(open));
        more.textContent = open ? "Show less" : "Show more";
        more.setAttribute("aria-label", `${more.textContent} of pick ${rank + 1}, ${id}`);
        excerpt.replaceChildren(...marked(open ? text : short(text, fresh), query.words));
      });
      item.append(more);
    }
    return item;
  }

  function column(query, one, all) {
    const heading = make("h3", "", key(one.slot), bidi("span", "", label(one.setting)));
    const list = make("ol", "", ...one.picks.map((index, rank) => pick(query, one, rank, index, all)));
    return make("section", "column", heading, one.picks.length ? list : make("p", "hint", "Nothing was picked."));
  }

  function summary(query, all) {
    const parts = [];
    if (all.length > 1) {
      const common = all[0].picks.filter((index) => all.every((one) => one.picks.includes(index))).length;
      const most = Math.max(...all.map((one) => one.picks.length));
      const who = all.length > 2 ? "All three" : "Both";
      parts.push(`${who} have ${common} of ${counted(most, "pick", "picks")} in common.`);
    }
    const nearest = query.candidates.length - query.beyond.length;
    if (query.goldTotal) {
      const hits = all.map((one) => `${label(one.setting)} ${one.picks.filter((i) => query.gold.includes(i)).length}`);
      const far = query.goldTotal - query.gold.filter((i) => !query.beyond.includes(i)).length;
      parts.push(`Picked of ${counted(query.goldTotal, "gold document", "gold documents")}: ${hits.join(", ")}.`);
      if (far) parts.push(`(${far} ${far === 1 ? "is" : "are"} not among the ${nearest} nearest candidates.)`);
    }
    if (query.parts.length) {
      const hits = all.map((one) => `${label(one.setting)} ${covered(query, one).length}`);
      parts.push(`Covered of ${counted(query.parts.length, "part", "parts")} (${query.parts.join(", ")}): ${hits.join(", ")}.`);
    }
    return parts.join(" ");
  }

  // Why a query gains or loses: for each setting the texts of similarity that it leaves out, and what it takes instead.
  function reasons(query, all) {
    const near = all.find((one) => one.setting === 0);
    const texts = (before, among, after = "", most = 0, others = []) => (among.length ? [before, ...among.flatMap((index, i) => {
      const [id, text] = data.documents[query.candidates[index][0]];
      const rank = near.picks.indexOf(index), like = closest(query, index, others);
      const facts = [rank < 0 ? "" : `pick ${rank + 1} of similarity`, like ? `most similar to its pick ${like.place + 1}, cosine ${like.text}` : ""];
      const place = facts.some(Boolean) ? ` (${facts.filter(Boolean).join("; ")})` : "";
      return [i ? ", " : " ", bidi("b", "", id), ...(most ? [" ", bidi("q", "", line(text, most))] : []), ...(most || others.length ? [place] : [])];
    }), after] : []);
    return !near ? [] : all.filter((one) => one !== near).map((one) => {
      const gold = (index) => query.gold.includes(index);
      const out = near.picks.filter((index) => !one.picks.includes(index));
      const taken = one.picks.filter((index) => !near.picks.includes(index));
      const item = make("li", "", bidi("b", "", label(one.setting)), " against similarity");
      if (query.change && one.setting === data.changed) item.append(`, ${data.measure} ${query.change[0]} → ${query.change[1]}`);
      item.append(": ");
      if (!taken.length && !out.length) item.append("the same texts.");
      else if (query.parts.length) {
        const [before, after] = [near, one].map((some) => covered(query, some));
        const lost = before.filter((part) => !after.includes(part)), won = after.filter((part) => !before.includes(part));
        if (lost.length) item.append("no longer covers ", bidi("b", "", named(query, lost)), "; ");
        if (won.length) item.append("also covers ", bidi("b", "", named(query, won)), "; ");
        if (!lost.length && !won.length) item.append("covers the same parts; ");
      }
      if (query.parts.length || !query.goldTotal) {
        const left = texts("leaves out", out, taken.length ? "; " : ".", 0, one.picks);
        item.append(...left, ...texts("takes", taken, " instead."));
      } else if (taken.length || out.length) {
        item.append(
          ...texts("leaves out the gold", out.filter(gold), "; ", 60, one.picks),
          ...texts("finds the gold", taken.filter(gold), "; ", 60),
          out.some(gold) || taken.some(gold) ? "" : "the same gold documents; ",
          ...texts("takes", taken.filter((index) => !gold(index)), " (not gold) instead."),
          taken.every(gold) ? "takes nothing else." : "",
        );
      }
      return item;
    });
  }

  function show() {
    const query = data.queries[Number(querySelect.value)];
    const all = selected().map((one) => ({ ...one, picks: query.picks[one.setting] ?? [] }));
    for (const select of slots) {
      const taken = new Set(slots.filter((other) => other !== select).map((other) => other.value));
      for (const option of select.options) option.disabled = option.value !== "" && taken.has(option.value);
    }
    byId("query-text").textContent = query.text;
    byId("sub-questions").replaceChildren(...query.subQuestions.map((text) => bidi("li", "", text)));
    byId("sub-questions").hidden = !query.subQuestions.length;
    byId("summary").textContent = summary(query, all);
    byId("reasons").replaceChildren(...reasons(query, all));
    byId("columns").replaceChildren(...all.map((one) => column(query, one, all)));
  }

  function step(by) {
    querySelect.selectedIndex = (querySelect.selectedIndex + by + data.queries.length) % data.queries.length;
    choose();
  }

  // The address names the query and the settings, so that it can be shared.
  const title = byId("queries-title");
  title.tabIndex = -1;
  const address = () => `#${new URLSearchParams({ query: data.queries[querySelect.value].id, settings: slots.map((select) => select.value) })}`;

  // A link adds an entry to the history, so that "back" returns to where the reader was.
  function choose(keep = "replaceState") {
    show();
    // A page inside another one, as in a notebook, has no address of its own.
    try { history[keep](null, "", address()); } catch { /* It cannot be shared there. */ }
  }

  function turnTo() {
    title.focus({ preventScroll: true });
    title.scrollIntoView();
  }

  function follow() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const place = data.queries.findIndex((query) => query.id === asked.get("query"));
    if (place < 0) return;
    querySelect.value = String(place);
    const wanted = asked.get("settings")?.split(",") ?? [];
    slots.forEach((select, slot) => {
      if ([...select.options].some((option) => option.value === wanted[slot])) select.value = wanted[slot];
    });
    show();
    turnTo();
  }

  // A link leads to a query, with the picks of similarity and of the setting that the link is about.
  for (const link of document.querySelectorAll("a[data-query]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const { query, setting } = link.dataset;
      querySelect.value = query;
      if (Number(setting) > 0) {
        const third = slots.map((select) => select.value).find((value) => !["", "0", setting].includes(value));
        ["0", setting, third ?? ""].forEach((value, slot) => { if (slots[slot]) slots[slot].value = value; });
      }
      choose("pushState");
      turnTo();
    });
  }

  for (const select of [querySelect, ...slots]) select.addEventListener("change", () => choose());
  byId("apart")?.addEventListener("change", (event) => byId("columns").classList.toggle("only-apart", event.target.checked));
  byId("before").addEventListener("click", () => step(-1));
  byId("after").addEventListener("click", () => step(1));
  for (const id of ["before", "after"]) byId(id).hidden = data.queries.length === 1;
  byId("explorer").hidden = false;
  querySelect.value = "0";
  show();
  follow();
  addEventListener("hashchange", follow);
})();
