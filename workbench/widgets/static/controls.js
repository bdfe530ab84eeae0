// Policy, budget and the policy's fields, made from their metadata. One way only: what a person does goes to the
// kernel as `wanted` (all of it, so that joined updates lose nothing), what is true comes back as `state`.
export default (() => {
  const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 6 });

  // 32,000 · 32_000 · 32k · 0.5 → a number; anything else → null.
  function parse(text, whole) {
    const match = /^([+-]?\d*\.?\d+)([km]?)$/i.exec(text.replace(/[,_\s]/g, ""));
    if (!match) return null;
    const value = Number(match[1]) * { "": 1, k: 1e3, m: 1e6 }[match[2].toLowerCase()];
    return Number.isFinite(value) && (!whole || Number.isInteger(value)) ? value : null;
  }

  // Where a value stands on a slider of 0 to 1000, and back. A range of many magnitudes is a log scale.
  const TICKS = 1000;
  const isLog = (field) => field.low > 0 && field.high / field.low >= 100;
  function place(field, value) {
    const { low, high } = field;
    const part = isLog(field) ? Math.log(Math.max(value, low) / low) / Math.log(high / low) : (value - low) / (high - low);
    return Math.min(1, Math.max(0, part));
  }
  function stepAt(field, value) {
    if (field.step) return field.step;
    if (isLog(field)) return value < 1e4 ? 100 : value < 1e5 ? 500 : value < 1e6 ? 5e3 : 5e4;
    return field.whole ? Math.max(1, Math.round((field.high - field.low) / 200)) : (field.high - field.low) / 100;
  }
  const clamp = (field, value) => Math.min(field.high, Math.max(field.low, value));
  function tidy(field, value) {
    const step = stepAt(field, value);
    const origin = isLog(field) ? 0 : field.low;
    return clamp(field, Number((origin + Math.round((value - origin) / step) * step).toFixed(6)));
  }
  function valueAt(field, part) {
    const { low, high } = field;
    return tidy(field, isLog(field) ? low * (high / low) ** part : low + part * (high - low));
  }
  function stepFrom(field, value, steps) {
    const step = stepAt(field, steps < 0 ? value - 1 : value);
    const origin = isLog(field) ? 0 : field.low;
    const at = (value - origin) / step;
    const next = steps > 0 ? Math.floor(at + 1e-9) + steps : Math.ceil(at - 1e-9) + steps;
    return clamp(field, Number((origin + next * step).toFixed(6)));
  }

  // A label, a box for the number and a slider. `change(value)` is called for what a person does.
  function numberField(field, change) {
    const id = `cw-${Math.random().toString(36).slice(2)}`;
    const box = build("input", { type: "text", inputmode: field.whole ? "numeric" : "decimal", id, class: "cw-num cw-box", autocomplete: "off", title: field.help || null });
    const label = build("label", { for: id, text: field.label, title: field.help || null });
    const mark = build("span", { class: "cw-least", hidden: true });
    const range = build("input", { type: "range", min: 0, max: TICKS, step: 1, "aria-label": field.label, title: field.help || null });
    const node = build("div", { class: "cw-field", "data-field": field.name }, build("div", { class: "cw-pair" }, label, box));
    const slides = field.low !== null && field.high !== null;
    if (slides) node.append(build("div", { class: "cw-slide" }, range, mark));
    const follow = field.follows ? build("button", { type: "button", class: "cw-link", text: `follow the ${field.follows === "window" ? "window" : "budget"}` }) : null;
    if (follow) node.append(follow);
    let value = null;
    let followed = null;

    const shown = () => (value === null ? followed : value);
    function draw() {
      const now = shown();
      if (document.activeElement !== box) box.value = now === null ? "" : number(now);
      box.classList.toggle("cw-follows", value === null);
      box.placeholder = value === null ? "as the budget" : "";
      box.removeAttribute("aria-invalid");
      if (follow) follow.hidden = value === null;
      if (!slides) return;
      const part = now === null ? 0 : place(field, now);
      range.value = Math.round(part * TICKS);
      range.style.setProperty("--at", `${part * 100}%`);
      range.setAttribute("aria-valuetext", now === null ? "as the budget" : `${number(now)} ${field.unit || ""}`.trim());
    }
    function set(next) {
      value = next;
      draw();
      change(next);
    }
    range.addEventListener("input", () => set(valueAt(field, range.value / TICKS)));
    range.addEventListener("keydown", (event) => {
      const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      const edge = { Home: field.low, End: field.high }[event.key];
      if (steps === undefined && edge === undefined) return;
      event.preventDefault();
      set(steps === undefined ? edge : stepFrom(field, shown() ?? field.low, steps));
    });
    function take() {
      if (box.value.trim() === (shown() === null ? "" : number(shown()))) return draw();
      const next = parse(box.value, field.whole);
      if (next === null) return box.setAttribute("aria-invalid", "true");
      if (next !== value) set(next);
      box.value = number(next);
    }
    box.addEventListener("change", take);
    box.addEventListener("blur", draw);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter") take();
      if (event.key === "Escape") { box.value = shown() === null ? "" : number(shown()); box.blur(); }
    });
    if (follow) follow.addEventListener("click", () => set(null));
    return {
      node,
      put(next, following = null) { value = next; followed = following; draw(); },
      least(at) {
        mark.hidden = at === null || at > field.high;
        if (!mark.hidden) mark.style.setProperty("--part", place(field, at));
        mark.title = at === null ? "" : `${number(at)} is the smallest window that works`;
      },
    };
  }

  function choiceField(field, change) {
    const select = build("select", { "aria-label": field.label, title: field.help || null });
    field.choices.forEach((choice, at) => select.append(build("option", { value: at, text: String(choice) })));
    select.addEventListener("change", () => change(field.choices[select.selectedIndex]));
    const node = build("div", { class: "cw-field", "data-field": field.name }, build("div", { class: "cw-pair" }, build("span", { text: field.label }), select));
    return { node, put: (value) => { select.selectedIndex = field.choices.findIndex((choice) => JSON.stringify(choice) === JSON.stringify(value)); } };
  }

  function flagField(field, change) {
    const box = build("input", { type: "checkbox" });
    box.addEventListener("change", () => change(box.checked));
    const node = build("div", { class: "cw-field", "data-field": field.name }, build("label", { class: "cw-pair", title: field.help || null }, build("span", { text: field.label }), box));
    return { node, put: (value) => { box.checked = value; } };
  }

  function textField(field, change) {
    const box = build("input", { type: "text", class: "cw-typed", "aria-label": field.label, title: field.help || null, autocomplete: "off" });
    const list = field.type === "list";
    box.addEventListener("change", () => change(list ? box.value.split(",").map((item) => item.trim()).filter(Boolean) : box.value));
    const node = build("div", { class: "cw-field", "data-field": field.name }, build("span", { text: list ? `${field.label} (a, b, …)` : field.label }), box);
    return { node, put: (value) => { if (document.activeElement !== box) box.value = list ? (value ?? []).join(", ") : value ?? ""; } };
  }

  const MAKERS = { number: numberField, choice: choiceField, flag: flagField, text: textField, list: textField };

  function render({ model, el }) {
    const root = build("div", { class: "cw cw-controls", role: "group", "aria-label": "Policy and budget" });
    const tidy = cleaner();
    let sent = 0; // the number of the newest change made here
    let now = {}; // what is wanted; the truth as soon as the kernel has answered
    let waiting = false;

    function want(change) {
      Object.assign(now, change);
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => {
        waiting = false;
        sent = Math.max(sent, model.get("state").seq) + 1;
        model.set("wanted", { seq: sent, policy: now.policy, params: now.params, budget: now.budget, history: now.history });
        model.save_changes();
      });
    }

    const policy = build("select", { class: "cw-policy", "aria-label": "Policy" });
    const summary = build("p", { class: "cw-hint" });
    const limit = build("p", { class: "cw-hint cw-limit", hidden: true });
    const historyHead = build("h4", { text: "History" });
    const history = build("div", { class: "cw-history", role: "radiogroup", "aria-label": "History" });
    const budgetHint = build("p", { class: "cw-hint cw-budget-hint", hidden: true });
    const fieldsHead = build("h4", { text: "This policy" });
    const fields = build("div", { class: "cw-fields" });
    const error = build("p", { class: "cw-error cw-bad", role: "alert", hidden: true });
    const reset = build("button", { type: "button", class: "cw-button cw-reset", text: "Reset" });
    const copy = build("button", { type: "button", class: "cw-button cw-copy", text: "Copy as Python" });
    const code = build("textarea", { class: "cw-code", readonly: true, rows: 4, "aria-label": "Python that makes this state", hidden: true, spellcheck: "false" });
    const result = build("dl", { class: "cw-result" });
    const bounds = model.get("bounds");
    const budget = bounds.map((field, at) => numberField(field, (value) => {
      const next = [...now.budget];
      next[at] = value;
      want({ budget: next });
    }));
    root.append(
      build("h4", { text: "Policy" }), policy, summary, limit, historyHead, history,
      build("h4", { text: "Budget" }), ...budget.map((field) => field.node), budgetHint,
      fieldsHead, fields, error, build("div", { class: "cw-buttons" }, reset, copy), code,
      build("h4", { text: "Result" }), result,
    );

    let made = {}, madeFrom = null;
    function drawCatalogue() {
      policy.replaceChildren();
      for (const [group, items] of model.get("catalogue")) {
        const into = build("optgroup", { label: group });
        for (const item of items) into.append(build("option", { value: item.name, text: item.title ? `${item.name} · ${item.title}` : item.name }));
        policy.append(into);
      }
    }
    function drawFields() {
      made = {};
      madeFrom = model.get("fields");
      fields.replaceChildren();
      for (const field of model.get("fields")) {
        made[field.name] = MAKERS[field.type](field, (value) => want({ params: { ...now.params, [field.name]: value } }));
        fields.append(made[field.name].node);
      }
      fieldsHead.hidden = model.get("fields").length === 0;
    }
    const HISTORIES = { full: "whole session", live: "since the last compaction" };
    function drawHistories() {
      const offered = model.get("histories");
      historyHead.hidden = history.hidden = offered.length < 2;
      const group = `cw-${Math.random().toString(36).slice(2)}`;
      history.replaceChildren(...offered.map((name) => {
        const radio = build("input", { type: "radio", name: group, value: name });
        radio.addEventListener("change", () => want({ history: name }));
        return build("label", {}, radio, build("span", { text: HISTORIES[name] }));
      }));
    }
    function show(node, text) {
      node.textContent = text;
      node.hidden = !text;
    }
    function drawState() {
      const state = model.get("state");
      if (madeFrom !== model.get("fields")) drawFields(); // traits that come together are told one by one
      const rows = state.result.map(([label, value, bad]) => build("div", {}, build("dt", { text: label }), build("dd", { text: value, class: bad ? "cw-bad" : null })));
      result.replaceChildren(...rows);
      show(error, state.error);
      root.dataset.seq = state.seq;
      if (state.seq < sent || waiting) return; // an answer to an older value: a newer one is on its way
      now = { policy: state.policy, params: state.params, budget: state.budget, history: state.history };
      policy.value = state.policy;
      show(summary, state.summary);
      show(limit, state.limit);
      show(budgetHint, state.hint);
      budget.forEach((field, at) => field.put(state.budget[at]));
      budget[0].least(state.least);
      for (const [name, field] of Object.entries(made)) field.put(state.params[name], state.follows[name] ?? null);
      for (const radio of history.querySelectorAll("input")) radio.checked = radio.value === state.history;
      if (!code.hidden && code.dataset.for !== JSON.stringify(now)) code.hidden = true;
    }

    policy.addEventListener("change", () => want({ policy: policy.value, params: {} }));
    reset.addEventListener("click", () => model.send({ type: "reset" }));
    copy.addEventListener("click", () => model.send({ type: "python" }));
    async function told(message) {
      if (message.type !== "python") return;
      code.value = message.text;
      code.hidden = false;
      code.dataset.for = JSON.stringify(now);
      try {
        await navigator.clipboard.writeText(message.text);
        copy.textContent = "Copied";
      } catch { // no permission: the text is selected, Ctrl+C copies it
        code.focus();
        code.select();
        copy.textContent = "Press Ctrl+C";
      }
      setTimeout(() => { copy.textContent = "Copy as Python"; }, 1500);
    }
    ownKeys(root, tidy);

    drawCatalogue();
    drawFields();
    drawHistories();
    drawState();
    tidy.model(model, "change:catalogue", drawCatalogue);
    tidy.model(model, "change:fields", drawState);
    tidy.model(model, "change:histories", () => { drawHistories(); drawState(); });
    tidy.model(model, "change:state", drawState);
    tidy.model(model, "msg:custom", told);
    el.append(root);
    return () => tidy.run();
  }
  return { render };
})();
