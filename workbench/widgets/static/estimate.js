// Estimates against reported prompts, in numbers. Every text is set as text.
export default (() => {
  const SOURCES = { policy: "policy’s own" };
  const SHARES = ["50 %", "90 %", "99 %", "all requests"];

  function render({ model, el }) {
    const tidy = cleaner();
    const root = build("div", { class: "cw cw-estimate", role: "group", "aria-label": "Estimates against reported usage" });
    const cell = (text, more = {}) => build("td", { class: "cw-num", text, ...more });
    const head = (text, more = {}) => build("th", { scope: "col", text, ...more });
    const percent = (value) => `${value >= 100 ? count(Math.round(value)) : value.toFixed(1)} %`;
    const signed = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${percent(Math.abs(value))}`;

    function table(now, hidden) {
      const body = build("tbody");
      for (const [name, source, bias, median, within, most, ...margins] of now.rows[hidden]) {
        body.append(build("tr", { class: source === "calibrated" ? "cw-e-best" : null }, build("th", { scope: "row", title: name }, build("span", { text: name }), build("span", { class: "cw-quiet", text: SOURCES[source] ? ` ${SOURCES[source]}` : "" })),
          cell(signed(bias), { class: bias <= -1 ? "cw-num cw-e-low" : "cw-num" }), cell(percent(median)), cell(percent(within)), cell(percent(most)),
          ...margins.map((tokens, at) => cell(count(tokens), { class: at === 0 ? "cw-num cw-e-margin" : "cw-num" }))));
      }
      const bytes = now.bytes[hidden];
      if (bytes.length) {
        body.append(build("tr", { class: "cw-e-bytes" }, build("th", { scope: "row", colspan: 5, text: "bytes of text that may be taken for one token" }),
          ...bytes.map((ratio, at) => cell(ratio.toFixed(2), { class: at === 0 ? "cw-num cw-e-margin" : "cw-num" }))));
      }
      const groups = build("tr", {}, build("td"), build("th", { scope: "colgroup", colspan: 4, text: "error of the prompt" }),
        build("th", { scope: "colgroup", colspan: 4, class: "cw-e-margin", text: "margin (tokens) that held in" }));
      const names = build("tr", {}, head("estimate", { class: "cw-e-name" }), head("typical", { class: "cw-num", title: "median with its sign: below 0 it counts too little" }), head("median", { class: "cw-num", title: "median size" }),
        head("9 in 10", { class: "cw-num", title: "9 of 10 requests were off by no more" }), head("worst", { class: "cw-num" }),
        ...SHARES.map((share, at) => head(share, { class: at === 0 ? "cw-num cw-e-margin" : "cw-num" })));
      return build("div", { class: "cw-e-list", tabindex: 0, role: "region", "aria-label": "Estimates and their errors" }, build("table", {}, build("thead", {}, groups, names), body));
    }

    function kinds(now) {
      const body = build("tbody");
      for (const [name, kind, tokens, error] of now.kinds) {
        const chip = build("span", { class: "cw-e-chip" });
        chip.style.background = `var(--cw-${kind})`;
        body.append(build("tr", {}, build("th", { scope: "row" }, chip, build("span", { text: name })), cell(count(tokens)),
          error ? cell(`${signed(error[0])} ± ${error[1].toFixed(1)}`, { title: "two standard errors" }) : cell("–", { class: "cw-num cw-quiet", title: now.few })));
      }
      if (!body.children.length) return [build("h4", { text: "Error by kind" }), build("p", { class: "cw-quiet", text: "No two requests follow one another: nothing can be told by kind." })];
      return [build("h4", { text: "Error by kind" }), build("table", {}, build("thead", {}, build("tr", {}, head("messages added between requests", { class: "cw-e-name" }), head("counted", { class: "cw-num" }), head("counter's error", { class: "cw-num" }))), body)];
    }

    function beside(now) {
      if (!now.beside.length) return [];
      const body = build("tbody");
      for (const [thread, index, tokens, requests, why] of now.beside) {
        const name = index < 0 ? build("span", { text: thread }) : build("button", { type: "button", class: "cw-link", "data-go": index, text: thread });
        body.append(build("tr", {}, build("th", { scope: "row" }, name, build("span", { class: "cw-quiet cw-e-why", text: why })), cell(count(requests)), cell(tokens)));
      }
      return [build("h4", { text: "Not in the file" }), build("table", {}, build("thead", {}, build("tr", {}, head("system text and tools that were sent with each request of", { class: "cw-e-name" }), head("requests", { class: "cw-num" }), head("tokens", { class: "cw-num" }))), body)];
    }

    function misses(now) {
      if (!now.calibrated) return [];
      const title = build("h4", { text: now.missed ? `Out of range: ${count(now.missed)}` : "Out of range: none" });
      const list = build("ul", { class: "cw-e-misses" });
      for (const [name, index, reported, estimated, why] of now.misses) {
        const line = index < 0 ? build("span", { text: name }) : build("button", { type: "button", class: "cw-link", "data-go": index, text: name });
        list.append(build("li", {}, line, build("span", { text: ` reported ${count(reported)}, calibrated ${count(estimated)}` }), build("span", { class: "cw-quiet cw-e-why", text: why })));
      }
      const rest = now.missed - now.misses.length;
      return [title, list, rest > 0 ? build("p", { class: "cw-quiet", text: `and ${count(rest)} more` }) : ""];
    }

    function draw() {
      const now = model.get("content");
      if (now.problem === undefined) return root.replaceChildren();
      if (now.problem) return root.replaceChildren(build("p", { class: "cw-quiet cw-e-problem", text: now.problem }));
      const tops = ["list", "side"].map((name) => root.querySelector(`.cw-e-${name}`)?.scrollTop ?? 0);
      const held = root.contains(document.activeElement) ? document.activeElement.dataset : null;
      const hidden = Number(model.get("hidden"));
      const bar = build("div", { class: "cw-e-bar" });
      if (now.calibrated) {
        const box = build("input", { type: "checkbox", "data-do": "hidden" });
        box.checked = Boolean(hidden);
        bar.append(build("label", {}, box, build("span", { text: " as if each estimate knew what the file does not hold " }), build("span", { class: "cw-quiet", text: `(${now.hidden})` })),
          build("button", { type: "button", class: "cw-button", "data-do": "use", "aria-pressed": String(now.on), text: now.on ? "Count as before" : "Count with the fitted counter" }));
      }
      const side = build("div", { class: "cw-e-side", tabindex: 0, role: "region", "aria-label": "Error by kind, and requests out of range" }, ...kinds(now), ...beside(now), ...misses(now));
      root.replaceChildren(build("p", { class: "cw-e-said", text: now.said }), bar, build("div", { class: "cw-e-columns" }, table(now, hidden), side));
      root.querySelector(".cw-e-list").scrollTop = tops[0];
      side.scrollTop = tops[1];
      if (held) { // what had the focus is built anew
        const again = held.do ? root.querySelector(`[data-do="${held.do}"]`) : held.go !== undefined ? root.querySelector(`[data-go="${held.go}"]`) : null;
        again?.focus({ preventScroll: true });
      }
    }

    tidy.on(root, "click", (event) => {
      const target = event.target.closest("[data-go], [data-do]");
      if (!target) return;
      if (target.dataset.go !== undefined) { model.set("selected", Number(target.dataset.go)); model.save_changes(); }
      else if (target.dataset.do === "use") model.send({ ask: "calibrate", on: !model.get("content").on });
    });
    tidy.on(root, "change", (event) => {
      if (event.target.dataset.do !== "hidden") return;
      model.set("hidden", event.target.checked);
      model.save_changes();
    });
    ownKeys(root, tidy);
    tidy.model(model, "change:content", draw);
    tidy.model(model, "change:hidden", draw);
    draw();
    el.append(root);
    return () => tidy.run();
  }
  return { render };
})();
