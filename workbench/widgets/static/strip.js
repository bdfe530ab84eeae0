// The strip: two rows on one token scale, ribbons between them, a budget line to drag.

function render({ model, el }) {
  const tidy = cleaner();
  const root = make("div", "cw cw-strip"), plot = make("div", "cw-plot"), canvas = make("canvas"), pick = make("div", "cw-pick");
  const mark = [make("div", "cw-at"), make("div", "cw-at")], under = [make("div", "cw-at cw-hover"), make("div", "cw-at cw-hover")];
  const names = ["before", "after"].map((word) => { const box = make("div", "cw-name"); box.append(make("span", "", word), make("span", "cw-num")); return box; });
  const budget = make("div", "cw-budget"), label = make("div", "cw-label"), tip = make("div", "cw-tip"), legend = make("div", "cw-legend");
  canvas.setAttribute("aria-hidden", "true");
  for (const [element, name] of [[pick, "messages"], [budget, "budget line"]]) {
    element.tabIndex = 0;
    element.setAttribute("role", "slider");
    element.setAttribute("aria-label", name);
    element.setAttribute("aria-orientation", "horizontal");
  }
  tip.setAttribute("aria-hidden", "true");
  tip.hidden = true;
  plot.append(canvas, pick, ...under, ...mark, ...names, budget, label, tip);
  root.append(plot, legend);
  el.append(root);
  ownKeys(root, tidy);

  const brush = painter(canvas, root);
  let data = null, step = null, now = null; // rows, what is sent, the raw step
  let stale = 3; // 1: rows, 2: step
  let width = 0, dpr = 1, zoom = 1, from = 0;
  let scene = null; // what the last drawing used: scale and origins
  let hover = null, drag = null, dragged = null, keyed = false; // dragged: the window while the budget line is in a hand; keyed: keys were used last

  const gate = frameGate(draw);
  const send = frameGate(() => model.save_changes());

  function read() {
    if (stale & 1 || !data) { data = readRows(model.get("rows")); hover = null; }
    if (stale) { now = model.get("step"); step = readStep(data, now); writeLegend(); }
    stale = 0;
  }

  // Numbers of the budget as it is shown: the one in the hand before the kernel's.
  function money() {
    const n = now.numbers || {}, off = (n.reserve || 0) + (n.margin || 0);
    const max = dragged ?? model.get("max_tokens");
    return { max, off, reserve: n.reserve || 0, margin: n.margin || 0, available: max - off, before: n.before || 0, after: n.after, known: n.available !== undefined };
  }

  function layout() {
    const m = money(), over = now.over;
    const domain = drag?.domain || Math.max(m.before, m.after || 0, over ? over.needed : 0, 1);
    const inner = Math.max(10, width - LEFT - RIGHT), scale = (inner * zoom) / domain, span = domain / zoom;
    from = Math.max(0, Math.min(from, domain - span));
    let under = 0;
    if (zoom > 1 && step.after && drag?.under === undefined) { // the lower row follows what stands in the middle of the upper one
      const middle = from + span / 2, row = Math.max(0, Math.min(data.n - 1, segmentAt(data.rowEdges, data.n, middle)));
      const right = Math.max(step.after.total, Math.min(m.available, domain));
      let place = 0;
      if (data.n) {
        let kept = row;
        while (kept < data.n && step.after.at[kept] < 0) kept++;
        place = kept === row ? step.after.at[row] + middle - data.rowEdges[row] : kept < data.n ? step.after.at[kept] : step.after.total;
      }
      under = Math.max(0, Math.min(place - span / 2, right - span));
    } else if (drag?.under !== undefined) under = drag.under;
    return { domain, scale, span, from, under, inner, x: (tokens) => LEFT + (tokens - from) * scale, y: (tokens) => LEFT + (tokens - under) * scale };
  }

  function draw() {
    if (!root.isConnected) return;
    const wide = plot.clientWidth || width; // hidden for a moment (Lab does it in a theme switch) tells no resize: the last width holds
    if (!wide) return;
    read();
    const ratio = window.devicePixelRatio || 1;
    if (wide !== width || ratio !== dpr || !canvas.width) {
      width = wide; dpr = ratio;
      brush.size(width, dpr);
    }
    const m = money(), s = (scene = layout());
    brush.paint(s, data, step, { over: now.over, beyond: m.known && !now.limit && m.after > m.available ? [m.available, m.after] : null });
    place(m, s);
    if (keyed) showSelected();
    report(m);
  }

  // The parts that are elements: the names, the budget line and its words, the frames around one message.
  function place(m, s) {
    setText(names[0].lastChild, count(m.before));
    setText(names[1].lastChild, now.over ? count(now.over.needed) : m.after === undefined ? "–" : count(m.after));
    const shown = m.known, x = s.y(m.available), right = width - RIGHT / 2, parked = x > right, gone = x < LEFT - 1;
    const at = parked ? right : Math.max(LEFT, x), sum = `budget ${count(m.available)} = ${count(m.max)} − ${count(m.reserve)} − ${count(m.margin)}`;
    let text = sum;
    if (now.over) text = `needs ${count(now.over.needed)} · ${sum}`; // the header says why
    else if (now.limit) text = `${sum} · not what bounds this policy: ${now.limit}`;
    else if (m.after > m.available) text = `${sum} · ${count(m.after - m.available)} over`;
    else if (parked) text = `${sum} →`;
    else if (gone) text = `← ${sum}`;
    budget.hidden = label.hidden = !shown;
    budget.style.transform = `translateX(${Math.round(at)}px)`;
    budget.classList.toggle("cw-ignored", Boolean(now.limit));
    budget.classList.toggle("cw-away", gone);
    setText(label, text);
    const flip = at > width * 0.55;
    label.style.left = flip ? "" : `${Math.round(at + 6)}px`;
    label.style.right = flip ? `${Math.round(width - at + 6)}px` : "";
    budget.setAttribute("aria-valuemin", m.off);
    budget.setAttribute("aria-valuemax", Math.max(m.max, m.off + s.domain));
    budget.setAttribute("aria-valuenow", m.max);
    budget.setAttribute("aria-valuetext", text);
    frame(mark, data.rowOf.get(model.get("selected")) ?? -1, s);
    frame(under, hover === null ? -1 : hover, s);
    const row = data.rowOf.get(model.get("selected"));
    pick.setAttribute("aria-valuemin", 0);
    pick.setAttribute("aria-valuemax", Math.max(0, data.n - 1));
    pick.setAttribute("aria-valuenow", row ?? 0);
    pick.setAttribute("aria-valuetext", !data.n ? "no messages" : row === undefined ? "no message selected" : describe(row));
  }

  function frame(boxes, row, s) {
    const places = [null, null];
    if (row >= 0) {
      places[0] = [s.x(data.rowEdges[row]), s.x(data.rowEdges[row + 1])];
      if (step.after && step.after.at[row] >= 0) places[1] = [s.y(step.after.at[row]), s.y(step.after.end[row])];
    }
    boxes.forEach((box, i) => {
      const span = places[i], left = span && Math.max(LEFT - 2, span[0] - 2), right = span && Math.min(width - RIGHT + 2, Math.max(span[1] + 1, span[0] + 3));
      box.hidden = !span || right <= LEFT || left >= width - RIGHT + 2;
      if (box.hidden) return;
      box.style.transform = `translateX(${left}px)`;
      box.style.width = `${right - left}px`;
      box.style.top = `${(i ? AFTER : BEFORE) - 3}px`;
    });
  }

  function describe(row) {
    const kinds = [];
    for (let s = data.first[row]; s < data.first[row + 1]; s++) if (data.kinds[s] !== 9) kinds.push(words(KINDS[data.kinds[s]]));
    const name = data.name[row] ? " " + data.names[data.name[row] - 1] : "", role = ROLES[data.role[row]];
    const kind = kinds.filter((word) => word !== role).join(" + ");
    const parts = [`#${data.index[row]} ${role}`, kind + name, `${count(data.rowEdges[row + 1] - data.rowEdges[row])} tokens`];
    if (step.after && step.fates[row] === 1) parts.push(`edited to ${count(Math.round(step.after.end[row] - step.after.at[row]))}`);
    else if (step.after) parts.push(FATES[step.fates[row]]);
    return parts.filter((part) => part.trim()).join(" · ");
  }

  function describeInsert(item) {
    if (!item.note) return `added text · ${count(item.tokens)} tokens`;
    return `note · ${count(item.tokens)} tokens · stands for ${several(item.covers)}` + (item.quotes ? `, quotes ${count(item.quotes)}` : "");
  }

  function report(m) {
    const d = root.dataset;
    d.state = now.over ? "overflow" : step.chosen ? "ok" : "empty";
    d.before = m.before;
    d.after = m.after ?? "";
    d.budget = m.available;
    d.max = m.max;
    d.messages = data.n;
    FATES.forEach((fate, i) => { d[fate] = step.chosen ? step.counts[i] : ""; });
    d.notes = step.inserts.filter((item) => item.note).length;
    d.selected = model.get("selected");
    d.zoom = zoom.toFixed(2);
    d.theme = document.body.dataset.jpThemeLight === "false" ? "dark" : "light";
    d.version = now.version;
  }

  function writeLegend() {
    const seen = new Set(data.kinds);
    if (step.inserts.some((item) => item.note)) seen.add(8);
    const edited = step.counts[1] > 0, key = [...seen].sort().join() + edited;
    if (legend.dataset.key === key) return;
    legend.dataset.key = key;
    const entries = KINDS.map((kind, code) => [code, words(kind), `var(--cw-${kind})`]).filter(([code]) => seen.has(code));
    if (seen.has(0) && seen.has(1)) entries.splice(0, 2, [0, "system + tools", "linear-gradient(90deg, var(--cw-tools) 50%, var(--cw-system) 50%)"]);
    legend.replaceChildren(...entries.map(([, name, colour]) => {
      const item = make("span"), chip = make("i");
      chip.style.background = colour;
      item.append(chip, name);
      return item;
    }), make("span", "cw-key", `full kept · ${edited ? "capped edited · " : ""}hatched summarized · outline dropped`));
  }

  // What stands under a point of the plot: a row, an insert, or nothing.
  function at(event) {
    if (!scene || !data) return null;
    const box = plot.getBoundingClientRect(), px = event.clientX - box.left, py = event.clientY - box.top;
    if (px < LEFT || px > width - RIGHT) return null;
    if (py < BEFORE + HIGH + 9) {
      const tokens = from + (px - LEFT) / scene.scale, row = segmentAt(data.rowEdges, data.n, tokens);
      if (row >= 0 && row < data.n) return { row };
      return tokens < data.rowEdges[0] ? { text: `fixed part · ${count(data.rowEdges[0])} tokens outside the messages` } : null;
    }
    if (py < AFTER - 2 || !step.after) return null;
    const block = segmentAt(step.after.edges, step.after.n, scene.under + (px - LEFT) / scene.scale);
    if (block < 0 || block >= step.after.n) return null;
    const owner = step.after.owner[block];
    if (owner >= 0) return { row: owner };
    return { text: owner === -1 ? `fixed part · ${count(data.rowEdges[0])} tokens outside the messages` : describeInsert(step.inserts[-2 - owner]) };
  }

  // Names what is under the pointer, or, while keys are used, the selected message.
  function showTip(found, x, upper) {
    hover = found && found.row !== undefined ? found.row : null;
    tip.hidden = !found;
    if (found) {
      setText(tip, found.text || describe(found.row));
      tip.style.transform = `translate(${Math.round(Math.max(0, Math.min(width - tip.offsetWidth, x - tip.offsetWidth / 2)))}px, ${upper ? BEFORE + HIGH + 12 : AFTER - 28}px)`;
    }
    if (scene) frame(under, hover === null ? -1 : hover, scene);
  }

  function showSelected() {
    const row = data.rowOf.get(model.get("selected"));
    if (row === undefined || !scene) showTip(null);
    else showTip({ row }, scene.x((data.rowEdges[row] + data.rowEdges[row + 1]) / 2), true);
  }

  function select(row) {
    if (!data || !data.n) return;
    row = Math.max(0, Math.min(data.n - 1, row));
    model.set("selected", data.index[row]);
    send.ask();
    gate.ask();
  }

  function reveal(row) { // keep the selected message in sight when zoomed
    if (zoom === 1 || !scene) return;
    const a = data.rowEdges[row], b = data.rowEdges[row + 1];
    if (a < from || b > from + scene.span) from = (a + b) / 2 - scene.span / 2;
  }

  function zoomBy(factor, px) {
    if (!scene) return;
    const limit = Math.max(1, scene.domain / 20), tokens = from + (px - LEFT) / scene.scale;
    const next = Math.max(1, Math.min(limit, zoom * factor));
    from = tokens - ((tokens - from) * zoom) / next;
    zoom = next;
    gate.ask();
  }

  function center() {
    const row = data?.rowOf.get(model.get("selected"));
    const x = row === undefined ? NaN : scene.x((data.rowEdges[row] + data.rowEdges[row + 1]) / 2);
    return x >= LEFT && x <= width ? x : LEFT + scene.inner / 2;
  }

  tidy.on(pick, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !data) return;
    const row = data.rowOf.get(model.get("selected")) ?? -1, key = event.key;
    const turn = (forward) => {
      const starts = [...data.turns];
      const found = forward ? starts.find((start) => start > row) : starts.reverse().find((start) => start < row);
      return found ?? (forward ? data.n - 1 : 0);
    };
    const moves = { ArrowRight: () => row + 1, ArrowDown: () => row + 1, ArrowLeft: () => Math.max(0, row - 1), ArrowUp: () => Math.max(0, row - 1), Home: () => 0, End: () => data.n - 1, PageDown: () => turn(true), PageUp: () => turn(false) };
    if (moves[key]) { keyed = true; select(moves[key]()); }
    else if (key === "+" || key === "=") zoomBy(1.5, center());
    else if (key === "-" || key === "_") zoomBy(1 / 1.5, center());
    else if (key === "0") { zoom = 1; gate.ask(); }
    else return;
    event.preventDefault();
  });

  // A wheel that began outside and only scrolled this under the pointer goes on scrolling the page.
  let aimed = false;
  tidy.on(pick, "focus", () => { keyed = pick.matches(":focus-visible"); gate.ask(); });
  tidy.on(pick, "blur", () => { keyed = false; showTip(null); });
  tidy.on(pick, "pointerleave", () => { aimed = false; if (!drag) showTip(null); });
  tidy.on(plot, "wheel", (event) => {
    if (!aimed || !scene) return;
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (sideways ? zoom === 1 : zoom === 1 && event.deltaY > 0) return;
    event.preventDefault();
    if (sideways) { from += event.deltaX / scene.scale; gate.ask(); }
    else zoomBy(Math.exp(-Math.max(-120, Math.min(120, event.deltaY)) / 300), event.clientX - plot.getBoundingClientRect().left);
  }, { passive: false });

  tidy.on(pick, "pointerdown", (event) => {
    if (event.button) return;
    aimed = true;
    drag = { x: event.clientX, from, moved: false };
    pick.setPointerCapture(event.pointerId);
  });
  tidy.on(pick, "pointermove", (event) => {
    if (event.movementX || event.movementY) aimed = true;
    if (!drag) {
      const box = plot.getBoundingClientRect();
      keyed = false;
      read();
      showTip(at(event), event.clientX - box.left, event.clientY - box.top < 84);
      return;
    }
    if (Math.abs(event.clientX - drag.x) > 3) drag.moved = true;
    if (drag.moved && zoom > 1) { from = drag.from - (event.clientX - drag.x) / scene.scale; showTip(null); gate.ask(); }
  });
  const letGo = (event) => {
    const was = drag;
    drag = null;
    if (!was || was.moved || event.type === "pointercancel") return;
    const found = at(event);
    if (found && found.row !== undefined) select(found.row);
  };
  tidy.on(pick, "pointerup", letGo);
  tidy.on(pick, "pointercancel", letGo);

  function setBudget(max) {
    const m = money();
    max = Math.round(Math.max(m.off, max));
    if (max === m.max) return;
    if (drag) dragged = max;
    model.set("max_tokens", max);
    send.ask();
    gate.ask();
  }
  tidy.on(budget, "pointerdown", (event) => {
    if (event.button || !scene) return;
    event.preventDefault();
    budget.focus({ preventScroll: true });
    drag = { domain: scene.domain, under: scene.under, grip: scene.y(money().available) > width - RIGHT / 2 ? 0 : event.clientX - scene.y(money().available) };
    dragged = money().max;
    budget.setPointerCapture(event.pointerId);
  });
  tidy.on(budget, "pointermove", (event) => {
    if (drag?.grip === undefined || dragged === null) return;
    const box = plot.getBoundingClientRect(), px = drag.grip ? event.clientX - drag.grip : event.clientX - box.left;
    setBudget(drag.under + (px - LEFT) / scene.scale + money().off);
  });
  const release = () => { drag = null; dragged = null; gate.ask(); };
  tidy.on(budget, "pointerup", release);
  tidy.on(budget, "pointercancel", release);
  tidy.on(budget, "keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !data) return;
    const m = money(), fine = event.shiftKey ? 16 : 256, all = m.before + m.off;
    const moves = { ArrowRight: m.max + fine, ArrowUp: m.max + fine, ArrowLeft: m.max - fine, ArrowDown: m.max - fine, PageUp: m.max + 4096, PageDown: m.max - 4096, Home: m.off, End: all };
    if (!(event.key in moves)) return;
    event.preventDefault();
    setBudget(moves[event.key]);
  });

  tidy.model(model, "change:rows", () => { stale |= 1; zoom = 1; gate.ask(); });
  tidy.model(model, "change:step", () => { stale |= 2; gate.ask(); });
  tidy.model(model, "change:max_tokens", () => gate.ask());
  tidy.model(model, "change:selected", () => {
    const row = data?.rowOf.get(model.get("selected"));
    if (row !== undefined) reveal(row);
    gate.ask();
  });
  onTheme(tidy, () => { brush.forget(); gate.ask(); });
  const sized = new ResizeObserver(() => gate.ask());
  sized.observe(plot);
  tidy.add(() => sized.disconnect());
  tidy.add(gate.stop);
  tidy.add(() => { send.stop(); brush.free(); data = step = now = scene = null; root.remove(); });
  gate.ask();
  return () => tidy.run();
}

export default { render };
