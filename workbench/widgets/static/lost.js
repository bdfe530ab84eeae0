// What is lost: each measure with its number, and under it what was lost, with the places where it stood and was needed.
function lostView(link, tidy, cut) {
  const opened = new Map();
  const slider = build("input", { type: "range", min: 1, step: 1, class: "cw-lost-turn", "aria-label": "Turn in which the policy is asked" });
  const says = build("span", { class: "cw-quiet cw-num" });
  const asked = build("label", { class: "cw-lost-cut" }, build("span", { text: "Ask the policy" }), slider, says);
  function name(turn) { return turn >= Number(slider.max) ? "as now" : `in turn ${turn}`; }
  function label() {
    const text = name(Number(slider.value));
    slider.setAttribute("aria-valuetext", text);
    setText(says, text);
  }
  tidy.on(slider, "input", label);
  tidy.on(slider, "change", () => cut(Number(slider.value) >= Number(slider.max) ? -1 : Number(slider.value)));

  function row([kind, text, source, removed, needed]) {
    const places = build("span", { class: "cw-lost-places cw-quiet" });
    if (source >= 0) places.append("from ", link(source, `#${source}`));
    if (removed >= 0) places.append(source >= 0 ? " · gone at " : "gone at ", link(removed, `#${removed}`));
    if (needed >= 0) places.append(" · needed at ", link(needed, `#${needed}`));
    return build("li", {}, build("span", { class: "cw-lost-text", text }), build("span", { class: "cw-quiet cw-lost-kind", text: kind }), places);
  }
  function measure(key, [title, number, share, sentence, bad, rows, more]) {
    const head = [build("span", { class: "cw-lost-title", text: title }), build("span", { class: "cw-num cw-quiet", text: number }), build("span", { class: "cw-num", text: share })];
    if (!bad) return build("div", { class: "cw-lost-measure cw-lost-fine", title: sentence }, ...head);
    const list = build("ul", { class: "cw-lost-rows" }, ...rows.map(row));
    if (more) list.append(build("li", { class: "cw-quiet", text: `and ${count(more)} more` }));
    return details(key, "cw-lost-measure", head, [build("p", { class: "cw-quiet cw-lost-says", text: sentence }), list]);
  }
  function details(key, kind, head, inner) {
    const box = build("details", { class: kind, open: opened.get(key) ?? false }, build("summary", {}, ...head), ...inner);
    box.addEventListener("toggle", () => opened.set(key, box.open));
    return box;
  }
  function parts({ head, problem, proxies, turn, turns, measures, recorded }) {
    const found = [];
    if (turns > 2) {
      slider.max = turns;
      if (document.activeElement !== slider) slider.value = turn < 0 ? turns : turn;
      label();
      found.push(asked);  // the same element each time: it stays where it is
    }
    found.push(build("p", { class: problem ? "cw-bad cw-lost-head" : "cw-lost-head", text: head }));
    found.push(...measures.map((item) => measure(`now ${item[0]}`, item)));
    for (const { title, facts, measures: inner } of recorded) {
      found.push(details(title, "cw-group", [build("span", { text: title }), build("span", { class: "cw-quiet", text: ` ${facts}` })], inner.map((item) => measure(`${title} ${item[0]}`, item))));
    }
    found.push(build("p", { class: "cw-quiet cw-lost-proxies", text: proxies }));
    return found;
  }
  return { parts };
}
