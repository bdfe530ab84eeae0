// The reader: virtual rows of one height, one of them opened at the most, texts by page from the kernel.

const ROW = 27, SPARE = 3, CACHED = 3000, CHUNK = 60, BIG = 2000;
const GLYPHS = ["●", "✎", "◐", "○"], NONE = "·";

// Which entries of a list stand in a window of pixels. One entry may be opened: `extra` pixels stand below it.
export function windowOf(total, top, tall, opened = -1, extra = 0) {
  const at = (y) => {
    if (opened < 0 || y < (opened + 1) * ROW) return Math.floor(y / ROW);
    return y < (opened + 1) * ROW + extra ? opened : Math.floor((y - extra) / ROW);
  };
  return [Math.max(0, at(top) - SPARE), Math.min(total, at(top + tall) + 1 + SPARE)];
}

// Rows, and the notes where they stand (note k is -1 - k): after the last row that each covers.
export function weave(rows, notes) {
  if (!notes.length) return rows;
  const order = notes.map((note, k) => [note[0], k]).sort((a, b) => a[0] - b[0] || a[1] - b[1]), out = [];
  let next = 0;
  for (const row of rows) {
    while (next < order.length && order[next][0] < row) out.push(-1 - order[next++][1]);
    out.push(row);
  }
  while (next < order.length) out.push(-1 - order[next++][1]);
  return out;
}

let serial = 0;

function render({ model, el }) {
  const tidy = cleaner(), ask = asker(model, tidy), id = `cw-reader-${++serial}`;
  const root = make("div", "cw cw-reader"), bar = make("div", "cw-bar"), search = make("input"), found = make("span", "cw-found cw-num");
  const list = make("div", "cw-list"), space = make("div", "cw-space"), full = make("div", "cw-full"), empty = make("div", "cw-empty cw-quiet");
  search.type = "search";
  search.setAttribute("aria-label", "search the transcript");
  found.setAttribute("role", "status");
  const filters = Object.fromEntries(["role", "kind", "fate", "tool"].map((name) => {
    const select = make("select");
    select.setAttribute("aria-label", name);
    return [name, select];
  }));
  bar.append(search, ...Object.values(filters), found);
  list.tabIndex = 0;
  list.setAttribute("role", "grid");
  list.setAttribute("aria-label", "messages");
  list.setAttribute("aria-keyshortcuts", "Enter P");
  full.hidden = true;
  full.tabIndex = 0;
  full.setAttribute("role", "region");
  space.setAttribute("role", "rowgroup");
  list.append(space, empty);
  space.append(full);
  root.append(bar, list);
  el.append(root);
  ownKeys(root, tidy);

  let rows = null, index = null, rowOf = null, fates = null, notes = [], version = 0;
  let hits = null; // rows that the kernel found, or null for all
  let entries = [], where = new Map(); // what is listed: rows, or -1 - note
  let opened = null, extra = 0; // the entry that is opened and the height of its text
  let query = "", asked = 0, first = true, stale = true;
  const cache = new Map(), pending = new Set(), pool = [];

  const gate = frameGate(draw), send = frameGate(() => model.save_changes()), pause = afterPause(200, lookUp);

  function load() {
    rows = model.get("rows");
    index = numbers(rows.index, Int32Array);
    rowOf = new Map();
    index.forEach((message, row) => rowOf.set(message, row));
    cache.clear(); pending.clear();
    close();
    search.placeholder = `search ${count(rows.n)} messages`;
    for (const [name, values] of [["role", rows.roles], ["kind", rows.kinds], ["fate", FATES], ["tool", rows.tools]]) {
      const select = filters[name], before = select.value;
      select.replaceChildren(...["", ...values].map((value) => {
        const option = make("option", "", value ? (name === "kind" ? words(value) : value) : `all ${name}s`);
        option.value = value;
        return option;
      }));
      select.value = values.includes(before) ? before : "";
      select.hidden = !values.length;
    }
    list.style.setProperty("--cw-digits", `${String(index.length ? index.reduce((a, b) => Math.max(a, b), 0) : 0).length + 1}ch`);
    empty.textContent = rows.n ? "nothing fits the search and the filters" : "no messages";
  }

  function follow() {
    const step = model.get("step");
    version = step.version;
    fates = step.fates ? unpackFates(step.fates, rows.n) : null;
    notes = step.notes || [];
    if (opened !== null && opened < 0) close(); // a note belongs to its selection
    arrange();
    if (first && fates) { // the first look is at the place where the history was cut
      first = false;
      let cut = -1;
      for (let row = rows.n - 1; row > 0 && cut < 0; row--) if (fates[row] < 2 && fates[row - 1] > 1) cut = row;
      if (cut > 0 && model.get("selected") < 0 && !list.scrollTop) { list.scrollTop = Math.max(0, (where.get(cut) - 6) * ROW); }
    }
  }

  function arrange() {
    const base = hits || Array.from({ length: rows.n }, (_, row) => row), fate = FATES.indexOf(filters.fate.value);
    const shown = fate < 0 ? base : base.filter((row) => fates && fates[row] === fate);
    entries = hits || fate >= 0 ? shown : weave(shown, notes);
    where = new Map();
    entries.forEach((entry, at) => where.set(entry, at));
    if (opened !== null && !where.has(opened)) close();
    list.setAttribute("aria-rowcount", entries.length);
    setText(found, hits || fate >= 0 ? `${count(shown.length)} of ${count(rows.n)}` : "");
    empty.hidden = entries.length > 0;
    space.style.height = `${entries.length * ROW + (opened === null ? 0 : extra)}px`;
  }

  const lit = () => { for (const select of Object.values(filters)) select.classList.toggle("cw-on", Boolean(select.value)); };

  async function lookUp() {
    lit();
    const wanted = { query: search.value.trim(), role: filters.role.value, kind: filters.kind.value, tool: filters.tool.value }, turn = ++asked;
    const all = !wanted.query && !wanted.role && !wanted.kind && !wanted.tool;
    try {
      const reply = all ? null : await ask("find", wanted);
      if (turn !== asked) return; // a newer search is on its way
      hits = reply ? Array.from(numbers(reply.buffers[0], Int32Array)) : null;
      if (wanted.query !== query) { query = wanted.query; cache.clear(); pending.clear(); }
      arrange();
      list.scrollTop = hits ? 0 : list.scrollTop;
      if (!hits) reveal(model.get("selected"));
      root.dataset.query = wanted.query;
    } catch (error) {
      if (turn === asked) setText(found, error.message);
    }
    gate.ask();
  }

  // Ask for the texts of the rows in sight that are not here yet.
  async function fetchRows(wanted) {
    const missing = wanted.filter((row) => row >= 0 && !cache.has(row) && !pending.has(row)).slice(0, CHUNK);
    if (!missing.length) return;
    const turn = cache, now = query;
    missing.forEach((row) => pending.add(row));
    try {
      const reply = await ask("rows", { rows: missing, query });
      if (now !== query || turn !== cache) return;
      if (cache.size > CACHED) cache.clear();
      for (const [row, role, kind, tokens, size, text, tag, turnStart, hit] of reply.rows) cache.set(row, { role, kind, tokens, size, text, tag, turn: turnStart, hit });
    } catch (error) {
      missing.forEach((row) => cache.set(row, { role: "", kind: "framing", tokens: 0, size: 0, text: error.message, tag: "error", turn: false, hit: null }));
    }
    missing.forEach((row) => pending.delete(row));
    gate.ask();
  }

  function newRow() {
    const box = make("div", "cw-row"), cells = ["glyph", "index", "role", "text", "tokens"].map((name) => {
      const cell = make("span", `cw-${name}`);
      cell.setAttribute("role", "gridcell");
      return cell;
    });
    const pin = make("button", "cw-pin", "pin");
    pin.tabIndex = -1;
    pin.type = "button";
    const last = make("span");
    last.setAttribute("role", "gridcell");
    last.append(pin);
    box.setAttribute("role", "row");
    box.append(...cells, last);
    space.append(box);
    return { box, glyph: cells[0], index: cells[1], role: cells[2], text: cells[3], tokens: cells[4], pin, entry: null, said: "" };
  }

  function draw() {
    if (!root.isConnected || !rows) return;
    if (stale) { stale = false; follow(); }
    const tall = list.clientHeight || 14 * ROW, place = opened === null ? -1 : where.get(opened);
    const [from, to] = windowOf(entries.length, list.scrollTop, tall, place, extra);
    while (pool.length < to - from) pool.push(newRow());
    const chosen = rowOf.get(model.get("selected")), pins = new Set(model.get("pins"));
    pool.forEach((row, i) => {
      const at = from + i;
      row.box.hidden = at >= to;
      if (at < to) paint(row, at, entries[at], chosen, pins, place);
      else row.entry = null;
    });
    full.hidden = opened === null;
    if (opened !== null) full.style.transform = `translateY(${(place + 1) * ROW}px)`;
    const active = chosen !== undefined && where.get(chosen) >= from && where.get(chosen) < to;
    if (active) list.setAttribute("aria-activedescendant", `${id}-${chosen}`);
    else list.removeAttribute("aria-activedescendant");
    const want = entries.slice(from, to);
    fetchRows(want);
    const d = root.dataset;
    d.version = version;
    d.shown = entries.length;
    d.messages = rows.n;
    d.selected = model.get("selected");
    d.pins = pins.size;
    d.ready = want.every((row) => row < 0 || cache.has(row)); // no text in sight is still on its way
  }

  function paint(row, at, entry, chosen, pins, place) {
    const { box } = row, y = at * ROW + (place >= 0 && at > place ? extra : 0);
    box.style.transform = `translateY(${y}px)`;
    const note = entry < 0, text = cache.get(entry), fate = note || !fates ? -1 : fates[entry], message = note ? null : index[entry];
    const pinned = !note && pins.has(message), is = `${entry}|${fate}|${Boolean(text)}|${entry === chosen}|${pinned}|${entry === opened}|${note ? version : ""}|${query}`;
    if (row.said === is) return;
    row.said = is;
    row.entry = entry;
    const classes = ["cw-row", note ? "cw-noted" : fate < 0 ? "" : `cw-${FATES[fate]}`];
    if (entry === chosen) classes.push("cw-sel");
    if (entry === opened) classes.push("cw-opened");
    if (text?.turn) classes.push("cw-turn");
    if (pinned) classes.push("cw-pinned");
    box.className = classes.filter(Boolean).join(" ");
    box.id = note ? `${id}-note${-1 - entry}` : `${id}-${entry}`;
    box.setAttribute("aria-rowindex", at + 1);
    box.setAttribute("aria-selected", entry === chosen);
    box.setAttribute("aria-expanded", entry === opened);
    row.pin.hidden = note;
    if (note) {
      const [, tokens, covers, quotes, isNote] = notes[-1 - entry];
      const says = isNote ? `stands for ${several(covers)}` + (quotes ? `, ${count(quotes)} of them quoted` : "") : "added text, no part of the history";
      setText(row.glyph, "▪"); setText(row.index, ""); setText(row.role, isNote ? "note" : "added"); row.text.replaceChildren(make("span", "cw-words", says)); setText(row.tokens, count(tokens));
      row.glyph.style.color = "var(--cw-note-ink)";
      box.setAttribute("aria-label", `${isNote ? "note" : "added"}, ${says}, ${count(tokens)} tokens`);
      return;
    }
    const state = fate < 0 ? "" : FATES[fate];
    setText(row.glyph, fate < 0 ? NONE : GLYPHS[fate]);
    row.glyph.title = state;
    row.glyph.style.color = text ? `var(--cw-${text.kind}-ink)` : "";
    setText(row.index, `#${message}`);
    setText(row.role, text ? text.role : "");
    setText(row.tokens, text ? count(text.tokens) : "");
    row.pin.setAttribute("aria-pressed", pinned);
    row.pin.setAttribute("aria-label", `pin #${message}`);
    setText(row.pin, pinned ? "pinned" : "pin");
    row.text.replaceChildren();
    if (text) {
      if (text.tag) row.text.append(make("span", text.tag === "error" ? "cw-tag cw-bad" : "cw-tag", text.tag));
      const says = make("span", "cw-words");
      if (text.hit) says.append(text.text.slice(0, text.hit[0]), make("mark", "", text.text.slice(...text.hit)), text.text.slice(text.hit[1]));
      else says.append(text.text);
      row.text.append(says);
      row.text.title = `${count(text.size)} characters`;
      if (text.size >= BIG) row.text.append(make("span", "cw-size", size(text.size)));
    }
    box.setAttribute("aria-label", [`#${message} ${text ? text.role : ""}`, state, pinned ? "pinned" : "", text ? `${count(text.tokens)} tokens` : "", text ? text.text : ""].filter(Boolean).join(", "));
  }

  const size = (n) => n < 1e6 ? `${(n / 1000).toFixed(n < 1e4 ? 1 : 0)} k chars` : `${(n / 1e6).toFixed(1)} M chars`;

  function reveal(message) {
    const at = where.get(rowOf.get(message));
    if (at === undefined) return;
    const place = opened === null ? -1 : where.get(opened), y = at * ROW + (place >= 0 && at > place ? extra : 0), tall = list.clientHeight;
    if (y < list.scrollTop || y + ROW > list.scrollTop + tall) {
      const near = y + ROW > list.scrollTop - 2 * ROW && y < list.scrollTop + tall + 2 * ROW;
      list.scrollTop = near ? (y < list.scrollTop ? y : y + ROW - tall) : y - tall / 2;
    }
  }

  function select(row) {
    if (model.get("selected") === index[row]) return;
    model.set("selected", index[row]);
    send.ask();
  }

  function close() {
    if (opened === null) return;
    opened = null; extra = 0;
    full.hidden = true;
    full.replaceChildren();
    space.style.height = `${entries.length * ROW}px`;
    root.dataset.opened = "";
  }

  function toggle(entry) {
    if (opened === entry) { close(); gate.ask(); return; }
    close();
    opened = entry;
    full.setAttribute("aria-label", entry < 0 ? "text of the note" : `text of #${index[entry]}`);
    more(entry, 0);
  }

  async function more(entry, offset) {
    const content = entry < 0 ? { note: -1 - entry, version, offset } : { row: entry, offset };
    let reply = null, problem = "";
    try { reply = await ask("text", content); } catch (error) { problem = error.message; }
    if (opened !== entry || !rows) return;
    full.querySelector(".cw-more")?.remove();
    if (problem) full.append(make("div", "cw-bad", problem));
    for (const [kind, title, text] of reply ? reply.pieces : []) {
      if (title) {
        const head = make("div", "cw-title", title);
        head.style.setProperty("--cw-ink", `var(--cw-${kind}-ink)`);
        full.append(head);
      }
      if (text) full.append(make("pre", "", text));
    }
    if (reply && reply.next !== null) {
      const button = make("button", "cw-button cw-more", `show more (${count(reply.next)} of ${count(reply.total)} characters are shown)`);
      button.type = "button";
      button.addEventListener("click", () => { button.disabled = true; more(entry, reply.next); });
      full.append(button);
    }
    full.hidden = false;
    extra = full.offsetHeight;
    space.style.height = `${entries.length * ROW + extra}px`;
    root.dataset.opened = entry < 0 ? `note ${-1 - entry}` : index[entry];
    if (!offset) { // the opened text comes into sight
      const bottom = (where.get(entry) + 1) * ROW + extra;
      if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = Math.min((where.get(entry)) * ROW, bottom - list.clientHeight);
    }
    gate.ask();
  }

  function togglePin(row) {
    const message = index[row], pins = model.get("pins");
    model.set("pins", pins.includes(message) ? pins.filter((other) => other !== message) : [...pins, message].sort((a, b) => a - b));
    send.ask();
    gate.ask();
  }

  tidy.on(space, "click", (event) => {
    const box = event.target.closest(".cw-row"), row = box && pool.find((one) => one.box === box);
    if (!row || row.entry === null) return;
    if (event.target === row.pin) { togglePin(row.entry); return; }
    if (String(window.getSelection())) return; // somebody is copying text
    if (row.entry >= 0) select(row.entry);
    toggle(row.entry);
  });

  tidy.on(list, "keydown", (event) => {
    if (event.target !== list || event.ctrlKey || event.metaKey || event.altKey || !rows?.n || !entries.length) return;
    const at = where.get(rowOf.get(model.get("selected"))), key = event.key, page = Math.max(1, Math.floor(list.clientHeight / ROW) - 1), last = entries.length - 1;
    const to = { ArrowDown: at === undefined ? 0 : at + 1, ArrowUp: at === undefined ? 0 : at - 1, PageDown: (at ?? 0) + page, PageUp: (at ?? 0) - page, Home: 0, End: last }[key];
    if (to !== undefined) {
      let next = Math.max(0, Math.min(last, to));
      const back = key === "ArrowUp" || key === "PageUp" || key === "End" ? -1 : 1;
      while (entries[next] < 0 && next + back >= 0 && next + back <= last) next += back; // notes are opened, not selected
      if (entries[next] >= 0) select(entries[next]);
    } else if ((key === "Enter" || key === " ") && at !== undefined) toggle(entries[at]);
    else if (key === "Escape") { close(); gate.ask(); }
    else if (key.toLowerCase() === "p" && at !== undefined) togglePin(entries[at]);
    else return;
    event.preventDefault();
  });
  tidy.on(full, "keydown", (event) => { if (event.key === "Escape") { close(); list.focus(); gate.ask(); } });
  tidy.on(list, "scroll", () => gate.ask(), { passive: true });
  tidy.on(search, "input", () => pause.ask());
  for (const name of ["role", "kind", "tool"]) tidy.on(filters[name], "change", lookUp);
  tidy.on(filters.fate, "change", () => { lit(); arrange(); list.scrollTop = 0; gate.ask(); });
  tidy.model(model, "change:rows", () => { load(); hits = null; search.value = ""; query = ""; asked++; stale = true; gate.ask(); });
  tidy.model(model, "change:step", () => { stale = true; gate.ask(); });
  tidy.model(model, "change:pins", () => gate.ask());
  tidy.model(model, "change:selected", () => { if (stale) { stale = false; follow(); } reveal(model.get("selected")); gate.ask(); });
  const sized = new ResizeObserver(() => gate.ask());
  sized.observe(list);
  tidy.add(() => sized.disconnect());
  tidy.add(() => { gate.stop(); send.stop(); pause.stop(); cache.clear(); rows = null; root.remove(); });
  load();
  gate.ask();
  return () => tidy.run();
}

export default { render };
