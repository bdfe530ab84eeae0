// Two to four policies at one budget, on one token scale: what each makes of the history, what it sends, and where they part.

function render({ model, el }) {
  const TALL = 22, SENT = 26, THIN = 10, HEIGHT = 42, MARKS = 25;
  const WAYS = ["sent by some only", "sent with other words", "noted or dropped"];
  const tidy = cleaner(), ask = asker(model, tidy);
  const root = make("div", "cw cw-compare"), tip = make("div", "cw-tip");
  const total = build("b"), facts = build("span", { class: "cw-quiet" }), picker = build("select", { class: "cw-cmp-add", "aria-label": "add a policy" });
  const error = build("p", { class: "cw-bad cw-cmp-error", role: "alert" });
  const first = strip(-1), list = make("div", "cw-cmp-list"), legend = make("div", "cw-legend"), below = make("div", "cw-cmp-below");
  const kinds = build("table", { class: "cw-cmp-kinds" }), side = make("div", "cw-cmp-side"), message = make("div", "cw-cmp-message"), notes = make("div", "cw-cmp-notes");
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true");
  for (const [name, value] of Object.entries({ tabindex: 0, role: "slider", "aria-label": "messages", "aria-orientation": "horizontal", "aria-valuemin": 0 })) first.box.setAttribute(name, value);
  first.box.title = "Arrows: the message before and after. Page Up and Page Down: where the policies part.";
  side.append(message, notes);
  below.append(build("div", { class: "cw-cmp-scroll", tabindex: 0, role: "region", "aria-label": "tokens by kind" }, kinds), side);
  root.append(build("div", { class: "cw-cmp-head" }, build("span", { class: "cw-cmp-facts" }, total, facts), picker), error, first.whole, list, legend, below, tip);
  el.append(root);
  ownKeys(root, tidy);

  const rows = []; // one per policy: its line, its strip
  let content = null, about = {}, data = null, width = 0, dpr = 1;
  const gate = frameGate(paint);

  // A canvas with the names of its bands beside it. `place` is the policy's, -1 for the history.
  function strip(place) {
    const canvas = build("canvas", { "aria-hidden": "true" }), box = build("div", { class: "cw-cmp-box", "data-strip": place });
    box.append(canvas);
    const names = build("div", { class: "cw-cmp-bands", "aria-hidden": "true" }, build("span", { text: "history" }), build("span", { text: place < 0 ? "they part" : "sent" }));
    const ctx = canvas.getContext("2d");
    return { canvas, box, ctx, pen: rowPainter(ctx, root), whole: build("div", { class: "cw-cmp-strip" }, names, box) };
  }

  function policy(place) {
    const name = build("b"), tag = build("span", { class: "cw-cmp-tag", text: "set at the left" }), numbers = build("span", { class: "cw-cmp-numbers" });
    const gone = build("button", { type: "button", class: "cw-cmp-gone", "data-gone": place, text: "×" });
    const parts = strip(place), whole = build("section", { class: "cw-cmp-row" }, build("div", { class: "cw-cmp-line" }, name, tag, numbers, gone), parts.whole);
    tag.hidden = place > 0;
    gone.hidden = place === 0;
    return { ...parts, name, numbers, gone, section: whole };
  }

  function readRuns(buffer) {
    const flat = varints(buffer), n = flat.length / 2, edges = new Float64Array(n + 1), styles = new Uint8Array(n), owner = new Int32Array(n);
    for (let i = 0, who = -1; i < n; i++) {
      if (flat[2 * i] & 1) who++;
      owner[i] = who;
      styles[i] = flat[2 * i] >> 1;
      edges[i + 1] = edges[i] + flat[2 * i + 1];
    }
    return { n, edges, styles, owner };
  }

  function fill() {
    content = model.get("content");
    if (!content.rows) return;
    data = { before: readRuns(content.before), marks: readRuns(content.marks), rows: content.rows.map((row) => ({ fates: row.fates && readRuns(row.fates), sent: row.sent && readRuns(row.sent) })) };
    setText(total, `${count(content.tokens)} tokens`);
    const ways = content.ways.map((number, way) => number && `${count(number)} ${WAYS[way]}`).filter(Boolean);
    setText(facts, [` · ${several(content.messages)}`, ...ways].join(" · "));
    setText(error, content.error);
    picker.replaceChildren(build("option", { value: "-", text: content.full ? "four at the most" : "add a policy…" }), ...content.choices.map(([name, label]) => build("option", { value: "=" + name, text: label })));
    picker.disabled = content.full;
    first.box.setAttribute("aria-valuemax", Math.max(0, content.messages - 1));
    while (rows.length > content.rows.length) rows.pop().section.remove();
    while (rows.length < content.rows.length) { rows.push(policy(rows.length)); list.append(rows[rows.length - 1].section); }
    list.style.setProperty("--cw-widest", `${Math.max(...content.rows.map((row) => row.label.length))}ch`);
    content.rows.forEach((row, at) => line(rows[at], row));
    writeLegend();
    table();
    noteTexts();
    point();
    root.dataset.version = content.version;
  }

  function line(made, row) {
    setText(made.name, row.label);
    made.name.title = row.title;
    made.section.setAttribute("aria-label", row.label);
    made.gone.setAttribute("aria-label", `remove ${row.label}`);
    made.gone.title = `remove ${row.label}`;
    made.section.classList.toggle("cw-cmp-unanswered", row.after === null);
    if (row.after === null) { made.numbers.replaceChildren(build("span", { class: "cw-bad cw-cmp-problem", text: row.problem })); return; }
    const cell = (text, name, title) => build("span", { class: `cw-cmp-cell ${name}`, title: title || null, text });
    const share = (row.after / content.tokens) * 100, part = content.tokens ? `${share.toFixed(share < 10 ? 1 : 0)} %` : "–";
    made.numbers.replaceChildren(
      cell(`${count(row.after)} tokens`, "cw-cmp-after", `its own estimate: ${count(row.own)}`), cell(part, "cw-cmp-part"),
      ...row.counts.map((number, fate) => cell(`${count(number)} ${FATES[fate]}`, number ? `cw-cmp-${FATES[fate]}` : `cw-cmp-${FATES[fate]} cw-quiet`, fate === 2 && row.quoted ? `${count(row.quoted)} of them quoted` : "")),
      cell(row.notes ? `${row.notes === 1 ? "note" : `${count(row.notes)} notes`}, ${count(row.note_tokens)} tokens` : "no note", row.notes ? "cw-cmp-note" : "cw-cmp-note cw-quiet"),
      cell(row.findings ? `${count(row.findings)} finding${row.findings === 1 ? "" : "s"}` : "no findings", row.findings ? "cw-cmp-findings cw-bad" : "cw-cmp-findings cw-quiet", row.finding),
      row.limit ? cell(`its own limit: ${row.limit}`, "cw-quiet") : "");
  }

  function writeLegend() {
    const seen = new Set(content.kinds.map(([kind]) => kind)), edited = content.rows.some((row) => row.after !== null && row.counts[1]);
    legend.replaceChildren(...KINDS.filter((kind) => seen.has(kind)).map((kind) => build("span", {}, build("i", { class: `cw-of-${kind}` }), words(kind))),
      build("span", {}, build("i", { class: "cw-of-budget" }), `budget ${count(content.available)}`),
      build("span", { class: "cw-key", text: `full kept · ${edited ? "capped edited · " : ""}hatched summarized · outline dropped` }));
  }

  function table() {
    const head = build("tr", {}, build("th", { scope: "col", text: "tokens" }), build("th", { scope: "col", class: "cw-num", text: "history" }), ...content.rows.map((row) => build("th", { scope: "col", class: "cw-num", text: row.label })));
    const numbers = (all, each) => [build("td", { class: "cw-num", text: count(all) }), ...each.map((number) => build("td", { class: number ? "cw-num" : "cw-num cw-quiet", text: number === null ? "–" : count(number) }))];
    const body = content.kinds.map(([kind, all, each]) => build("tr", {}, build("th", { scope: "row" }, build("i", { class: `cw-of-${kind}` }), words(kind)), ...numbers(all, each)));
    const sum = build("tr", { class: "cw-cmp-sum" }, build("th", { scope: "row", text: "all" }), ...numbers(content.tokens, content.rows.map((row) => row.after)));
    kinds.replaceChildren(build("caption", { text: "Tokens by kind" }), build("thead", {}, head), build("tbody", {}, ...body, sum));
  }

  function noteTexts() {
    const open = new Set([...notes.querySelectorAll("details[open]")].map((one) => one.dataset.label));
    const parts = content.rows.filter((row) => row.text).map((row) => build("details", { "data-label": row.label, open: open.has(row.label) },
      build("summary", { text: `What ${row.label} puts in its place · ${row.notes === 1 ? "note" : `${count(row.notes)} notes`}, ${count(row.note_tokens)} tokens` }), build("pre", { class: "cw-note", tabindex: 0, text: row.text })));
    notes.replaceChildren(...parts);
  }

  // The selected message under each policy.
  function point() {
    about = model.get("about");
    const chosen = (about.rows || []).length > 0;
    const place = chosen && about.stretch[0] ? `stretch ${count(about.stretch[0])} of ${count(about.stretch[1])} on which they part` : chosen ? "they do not part here" : "";
    const fates = chosen ? about.rows.map((row) => build("tr", {}, build("th", { scope: "row", text: row.label }), build("td", { class: `cw-cmp-fate cw-is-${row.fate.split(",")[0]}`, text: row.fate || "no answer" }), build("td", { class: "cw-cmp-why" }, ...row.why.map((text) => build("p", { text }))))) : [];
    message.replaceChildren(
      build("p", { class: "cw-cmp-what" }, build("b", { text: about.text || "" }), chosen ? build("span", { class: "cw-quiet", text: ` ${place}` }) : build("span", { class: "cw-quiet", text: about.text ? "" : "Select a message to see what each policy makes of it." })),
      chosen ? build("p", { class: "cw-quiet cw-cmp-preview", text: about.preview }) : "",
      chosen ? build("table", { class: "cw-cmp-fates" }, build("tbody", {}, ...fates)) : "");
    first.box.setAttribute("aria-valuenow", Math.max(0, model.get("selected")));
    first.box.setAttribute("aria-valuetext", chosen ? `${about.text}: ${about.rows.map((row) => `${row.label} ${row.fate || "no answer"}`).join(", ")}` : "no message selected");
    root.dataset.selected = model.get("selected");
    gate.ask();
  }

  const perToken = () => width / Math.max(1, content.domain);

  function paint() {
    const wide = first.box.clientWidth || width;
    if (!root.isConnected || !data || !wide) return;
    const ratio = window.devicePixelRatio || 1;
    for (const one of [first, ...rows]) {
      const high = Math.round(HEIGHT * ratio), across = Math.round(wide * ratio);
      if (one.canvas.width !== across || one.canvas.height !== high) { one.canvas.width = across; one.canvas.height = high; one.pen.scale(ratio); }
    }
    width = wide; dpr = ratio;
    const scale = perToken(), row = (one, runs, top, high) => one.pen.row({ ...runs, from: 0, scale, left: 0, width, top, high });
    const clear = (one) => one.ctx.clearRect(0, 0, one.canvas.width, one.canvas.height);
    clear(first);
    row(first, data.before, 1, TALL);
    const { marks } = data, ink = first.pen.ink();
    for (let i = 0, last = -9; i < marks.n; i++) { // a mark is never too thin to be seen, and two are never one by chance
      if (!marks.styles[i]) continue;
      const left = Math.max(last, marks.edges[i] * scale), right = Math.max(marks.edges[i + 1] * scale, left + 1.5);
      if (marks.edges[i + 1] * scale > last) first.pen.bar(ink.fg, left, right, MARKS + 2, 5);
      last = Math.max(last, right);
    }
    frame(first, about.at, 1, TALL);
    rows.forEach((one, at) => {
      const told = content.rows[at], sent = data.rows[at].sent, c = one.pen.ink();
      clear(one);
      if (data.rows[at].fates) row(one, data.rows[at].fates, 1, TALL);
      if (sent) {
        row(one, sent, SENT, THIN);
        notesOf(one, sent, scale, c);
      } else if (told.needed) {
        one.pen.bar(one.pen.hatch(c.bad, 0.1), 0, told.needed * scale, SENT, THIN);
        one.pen.bar(c.bad, Math.max(0, content.available) * scale, told.needed * scale, SENT, THIN);
      }
      const line = content.available * scale;
      if (line >= 0 && line <= width) one.pen.bar(c.bad, Math.min(width - 2, line), Math.min(width, line + 2), SENT - 3, THIN + 6);
      const here = (about.rows || [])[at];
      if (here && told.after !== null) { frame(one, about.at, 1, TALL); frame(one, here.sent, SENT, THIN); }
    });
  }

  function notesOf(one, sent, scale, c) { // never too thin to be seen
    for (let i = 0; i < sent.n; i++) {
      const left = sent.edges[i] * scale;
      if (sent.styles[i] >> 4 === NOTE) one.pen.bar(c.kinds[8], left, Math.max(left + 2, sent.edges[i + 1] * scale), SENT, THIN);
    }
  }

  function frame(one, span, top, high) {
    if (!span) return;
    const c = one.pen.ink(), ctx = one.ctx, scale = perToken();
    const left = Math.max(1, Math.min(span[0] * scale - 2, width - 6)), right = Math.min(width - 1, Math.max(span[1] * scale + 2, left + 5));
    ctx.strokeStyle = c.fg;
    ctx.lineWidth = 2 * dpr;
    ctx.strokeRect(left * dpr, (top - 0.5) * dpr, (right - left) * dpr, (high + 1) * dpr);
  }

  // What is under the pointer: which strip, which band of it, how many tokens from the left.
  function under(event) {
    const box = event.target.closest(".cw-cmp-box");
    if (!box || !content?.rows) return null;
    const { left, top } = box.getBoundingClientRect(), x = event.clientX - left, place = Number(box.dataset.strip);
    if (place >= 0 && content.rows[place].after === null) return null;
    return { strip: place, at: x / perToken(), sent: place >= 0 && event.clientY - top >= SENT - 1, x, box };
  }

  let wanted = null;
  const name = afterPause(40, async () => {
    const found = wanted;
    if (!found) return;
    const { strip: place, at, sent } = found;
    let text = "";
    try { ({ text } = await ask("name", { strip: place, at, sent })); } catch { /* what was pointed at is gone */ }
    if (wanted !== found) return;
    tip.hidden = !text;
    if (!text) return;
    setText(tip, text);
    const base = root.getBoundingClientRect(), box = found.box.getBoundingClientRect();
    const x = box.left - base.left + found.x - tip.offsetWidth / 2;
    tip.style.transform = `translate(${Math.round(Math.max(4, Math.min(root.clientWidth - tip.offsetWidth - 4, x)))}px, ${Math.round(box.top - base.top - 26)}px)`;
  });
  function hide() { wanted = null; tip.hidden = true; }

  const tell = (what, more) => model.send({ ask: what, ...more });
  tidy.on(root, "pointermove", (event) => { wanted = under(event); if (wanted) name.ask(); else hide(); });
  tidy.on(root, "pointerleave", hide);
  tidy.on(root, "click", (event) => {
    const gone = event.target.closest("[data-gone]");
    if (gone) { tell("remove", { strip: Number(gone.dataset.gone) }); picker.focus(); return; }
    const found = under(event);
    if (found) tell("pick", { strip: found.strip, at: found.at, sent: found.sent });
  });
  tidy.on(picker, "change", () => {
    const value = picker.value;
    picker.value = "-";
    if (value !== "-") tell("add", { name: value.slice(1) });
  });
  tidy.on(first.box, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = { ArrowRight: ["move", 1], ArrowDown: ["move", 1], ArrowLeft: ["move", -1], ArrowUp: ["move", -1], PageDown: ["step", 1], PageUp: ["step", -1], Home: ["end", -1], End: ["end", 1] };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    tell(move[0], { by: move[1] });
  });

  tidy.model(model, "change:content", fill);
  tidy.model(model, "change:about", point);
  onTheme(tidy, () => { for (const one of [first, ...rows]) one.pen.forget(); gate.ask(); });
  const sized = new ResizeObserver(() => gate.ask());
  sized.observe(first.box);
  tidy.add(() => sized.disconnect());
  tidy.add(() => { gate.stop(); name.stop(); for (const one of [first, ...rows]) one.canvas.width = one.canvas.height = 0; content = data = wanted = null; root.remove(); });
  fill();
  return () => tidy.run();
}

export default { render };
