// The layout of a request: a bar in true proportions, the same as a table, and what broke the cache. Every text is set as text.
export default (() => {
  const SHORT = 12; // characters of the digest that are shown
  const NEAR = 0.03; // breakpoints nearer than this share of the bar have one number

  function render({ model, el }) {
    const tidy = cleaner();
    const root = build("div", { class: "cw cw-layout", role: "group", "aria-label": "Layout of the request" });
    const content = () => model.get("content");
    const percent = (part, whole) => (whole ? (100 * part) / whole : 0);
    const go = (index) => { if (index >= 0) { model.set("selected", index); model.save_changes(); } };
    const link = (index, text) => (index < 0 ? build("span", { text }) : build("button", { type: "button", class: "cw-link", "data-go": index, text }));

    // The bar: blocks, breakpoints below it, and a line under what is the same as before.
    function bar({ rows, cuts, total, reuse, zones }) {
      const track = build("div", { class: "cw-l-track" });
      const names = build("div", { class: "cw-l-names", "aria-hidden": "true" });
      let left = 0, zone = null;
      rows.forEach(([where, kind, title, tokens, , first], at) => {
        const share = percent(tokens, total);
        const part = build("div", { class: `cw-l-part cw-l-${kind}${where === "turn" ? " cw-l-now" : ""}`, "data-row": at, title: `${title}: ${count(tokens)} tokens` });
        if (first >= 0) part.dataset.go = first;
        part.style.left = `${left}%`;
        part.style.width = `${share}%`;
        track.append(part);
        if (zone && zone.name === where) zone.share += share;
        else zone = names.appendChild(build("span", { text: zones[where] })).cwZone = { name: where, left, share, element: names.lastChild };
        zone.element.style.left = `${zone.left}%`;
        zone.element.style.width = `${zone.share}%`;
        zone.element.hidden = zone.share < 7;
        left += share;
      });
      const marks = build("div", { class: "cw-l-marks" });
      let held = null, at0 = 0; // a number stands for all marks that are too near to have their own
      cuts.forEach(([, label, before], at) => {
        const share = percent(before, total);
        const near = held && share - at0 < 100 * NEAR;
        const mark = build("span", { class: "cw-l-mark", title: `${label}: ${count(before)} tokens before it`, text: near ? "" : at + 1 });
        mark.style.left = `${share}%`;
        marks.append(mark);
        if (near) held.textContent += `, ${at + 1}`;
        else [held, at0] = [mark, share];
      });
      const same = build("div", { class: "cw-l-same" });
      same.style.width = `${percent(reuse.tokens, total)}%`;
      const said = rows.map(([, , title, tokens]) => `${title} ${count(tokens)}`).slice(0, 12).join(", ");
      return build("div", { class: "cw-l-bar", role: "img", "aria-label": `${count(total)} tokens in order: ${said}` }, names, track, same, marks);
    }

    function table({ rows, cuts, total, zones, more }) {
      const body = build("tbody");
      const cutsAt = (place) => cuts.filter(([at]) => at === place).forEach(([, label, before]) => {
        body.append(build("tr", { class: "cw-l-cut" }, build("td", { colspan: 2 }, build("span", { text: label })), build("td", { class: "cw-num", text: count(before), title: "tokens before it" }), build("td")));
      });
      let zone = null;
      rows.forEach(([where, kind, title, tokens, size, first], at) => {
        cutsAt(at);
        const name = where === zone ? "" : zones[where];
        zone = where;
        body.append(build("tr", { "data-row": at, class: name ? "cw-l-first" : null },
          build("th", { scope: "row", text: name }),
          build("td", {}, build("span", { class: `cw-l-chip cw-l-${kind}${where === "turn" ? " cw-l-now" : ""}` }), link(first, title)),
          build("td", { class: "cw-num", text: count(tokens) }), build("td", { class: "cw-num cw-quiet", text: size ? count(size) : "" })));
      });
      if (more) body.append(build("tr", {}, build("th"), build("td", { colspan: 3, class: "cw-quiet", text: more })));
      cutsAt(rows.length);
      const head = build("tr", {}, build("th", { scope: "col", text: "In order" }), build("th", { scope: "col", text: "" }), build("th", { scope: "col", class: "cw-num", text: "tokens" }), build("th", { scope: "col", class: "cw-num", text: "bytes" }));
      return build("div", { class: "cw-l-list", tabindex: 0, role: "region", "aria-label": "Blocks of the request in order" },
        build("table", {}, build("thead", {}, head), body));
    }

    let whole = false;
    function digest(text) {
      const code = build("button", { type: "button", class: "cw-l-digest", "data-do": "whole", "aria-expanded": String(whole), title: whole ? "show its head" : "show all of it", text: whole ? text : text.slice(0, SHORT) });
      return build("p", { class: "cw-l-about" }, build("span", { text: "Prefix digest " }), code, " ", build("button", { type: "button", class: "cw-link", "data-do": "copy", text: "copy", "aria-label": "copy the whole digest" }), build("span", { role: "status", class: "cw-quiet cw-l-said" }));
    }
    function prefix({ text, rows, more, advice }) {
      const list = build("ul", { class: "cw-l-changes" });
      for (const { title, go: index, what, seen, digests } of rows) {
        list.append(build("li", {}, link(index, title), ...what.map((line) => build("span", { class: "cw-l-what", text: line })),
          build("span", { class: "cw-quiet cw-l-what", text: seen }), build("code", { class: "cw-quiet", text: digests })));
      }
      return [build("h4", { text: "Prefix of the recorded session" }), build("p", { class: rows.length ? "cw-l-broke" : "cw-quiet", text }), rows.length ? list : "", ...[more, advice].filter(Boolean).map((words) => build("p", { class: "cw-quiet", text: words }))];
    }

    function draw() {
      const now = content();
      if (!now.prefix) return root.replaceChildren();
      const list = root.querySelector(".cw-l-list"), side = root.querySelector(".cw-l-side");
      const tops = [list?.scrollTop ?? 0, side?.scrollTop ?? 0];
      const held = root.contains(document.activeElement) ? document.activeElement.dataset : null;
      const right = build("div", { class: "cw-l-side", tabindex: 0, role: "region", "aria-label": "Cache" });
      if (now.problem !== undefined) {
        right.append(...prefix(now.prefix));
        root.replaceChildren(build("p", { class: "cw-bad cw-l-problem", text: now.problem }), right);
        return;
      }
      right.append(digest(now.digest), build("h4", { text: "Same as the request before" }), build("p", { class: "cw-l-reuse", text: now.reuse.text }), ...prefix(now.prefix));
      root.replaceChildren(build("p", { class: "cw-quiet cw-l-head", text: now.head }), bar(now), build("div", { class: "cw-l-columns" }, table(now), right));
      root.querySelector(".cw-l-list").scrollTop = tops[0];
      right.scrollTop = tops[1];
      if (held) { // what had the focus is built anew
        const again = held.do ? root.querySelector(`[data-do="${held.do}"]`) : held.go !== undefined ? root.querySelector(`button[data-go="${held.go}"]`) : null;
        again?.focus({ preventScroll: true });
      }
      point();
    }
    function point() {
      const row = model.get("row");
      for (const element of root.querySelectorAll("[data-row]")) {
        const on = Number(element.dataset.row) === row;
        element.classList.toggle("cw-l-on", on);
        if (element.tagName === "TR") on ? element.setAttribute("aria-current", "true") : element.removeAttribute("aria-current");
      }
      const list = root.querySelector(".cw-l-list"), on = root.querySelector("tr.cw-l-on");
      if (!list || !on) return;
      const top = on.offsetTop - list.querySelector("thead").offsetHeight, bottom = on.offsetTop + on.offsetHeight;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
    }

    async function copy() {
      let words = "copied";
      try { await navigator.clipboard.writeText(content().digest); } catch { words = "this page may not copy; select it"; whole = true; draw(); }
      const said = root.querySelector(".cw-l-said");
      if (said) setText(said, ` ${words}`);
    }
    tidy.on(root, "click", (event) => {
      const target = event.target.closest("[data-go], [data-do]");
      if (!target) return;
      if (target.dataset.go !== undefined) go(Number(target.dataset.go));
      else if (target.dataset.do === "copy") copy();
      else { whole = !whole; draw(); }
    });
    ownKeys(root, tidy);
    tidy.model(model, "change:content", draw);
    tidy.model(model, "change:row", point);
    draw();
    el.append(root);
    return () => tidy.run();
  }
  return { render };
})();
