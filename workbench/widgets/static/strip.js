// The strip: two rows on one token scale, ribbons between them, a budget line to drag.
// A style is fate × 16 + kind; two more "fates" stand for what is no message of the history.

const NOTE = 4, ADDED = 5, EMPTY = 255, STYLES = 96;
const LEFT = 70, RIGHT = 20, HIGH = 40, BEFORE = 18, AFTER = 100, TALL = 162;
const LOW = { 2: 0.6, 3: 0.36 }; // height of a summarized and a dropped message

// Place in `edges` (ascending, n + 1 of them) of the segment that holds `at`; -1 or n outside.
export function segmentAt(edges, n, at) {
  if (at < edges[0]) return -1;
  let low = 0, high = n;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (edges[middle] <= at) low = middle; else high = middle - 1;
  }
  return low;
}

// The style of each pixel column, so that there is never more than one mark per column. Where segments are thinner than
// a column, each kind wins as many columns as its tokens fill: what a column owes is carried on (error diffusion).
export function columnStyles(edges, styles, n, from, scale, width) {
  const out = new Uint8Array(width).fill(EMPTY), share = new Float64Array(STYLES), debt = new Float64Array(16), touched = [];
  let column = -1;
  const settle = () => {
    let best = EMPTY, most = -Infinity;
    for (const style of touched) {
      const owed = (debt[style & 15] += share[style]);
      if (owed > most) { most = owed; best = style; }
      share[style] = 0;
    }
    if (best !== EMPTY) { out[column] = best; debt[best & 15] -= 1; }
    touched.length = 0;
  };
  const add = (at, style, amount) => {
    if (at !== column) { settle(); column = at; }
    if (!share[style]) touched.push(style);
    share[style] += amount;
  };
  for (let s = Math.max(0, segmentAt(edges, n, from)); s < n; s++) {
    const left = Math.max(0, (edges[s] - from) * scale), right = Math.min(width, (edges[s + 1] - from) * scale);
    if (left >= width) break;
    if (right <= left) continue;
    const first = Math.floor(left), last = Math.min(width, Math.ceil(right)) - 1;
    add(first, styles[s], Math.min(right, first + 1) - left);
    if (last > first) {
      if (last > first + 1) out.fill(styles[s], first + 1, last);
      add(last, styles[s], right - last);
    }
  }
  settle();
  return out;
}

// The rows of a view with their places in tokens; made once per view.
export function readRows(rows) {
  const n = rows.n, per = numbers(rows.segments, Uint8Array), kind = numbers(rows.segment_kind, Uint8Array);
  const tokens = numbers(rows.segment_tokens, Int32Array), fixed = rows.fixed || [];
  const total = fixed.length + tokens.length;
  const edges = new Float64Array(total + 1), owner = new Int32Array(total).fill(-1), kinds = new Uint8Array(total);
  const rowEdges = new Float64Array(n + 1), first = new Int32Array(n + 1);
  let s = 0;
  for (const [code, size] of fixed) { kinds[s] = code; edges[s + 1] = edges[s] + size; s++; }
  const lead = s;
  for (let row = 0, t = 0; row < n; row++) {
    rowEdges[row] = edges[s]; first[row] = s;
    for (let k = 0; k < per[row]; k++, t++) { owner[s] = row; kinds[s] = kind[t]; edges[s + 1] = edges[s] + tokens[t]; s++; }
  }
  rowEdges[n] = edges[s]; first[n] = s;
  const index = numbers(rows.index, Int32Array), rowOf = new Map();
  index.forEach((message, row) => rowOf.set(message, row));
  return {
    n, lead, segments: total, edges, owner, kinds, rowEdges, first, index, rowOf, cuts: rows.cuts || [],
    role: numbers(rows.role, Uint8Array), name: numbers(rows.name, Uint16Array), names: rows.names || [], turns: numbers(rows.turns, Int32Array),
  };
}

// What is sent, laid out in tokens. Each block belongs to a row, to the fixed part (-1) or to an insert (-2 - its number).
export function readStep(data, step) {
  const { n } = data, chosen = Boolean(step.fates), fates = chosen ? unpackFates(step.fates, n) : new Uint8Array(n);
  const styles = new Uint8Array(data.segments), counts = [0, 0, 0, 0];
  for (let s = 0; s < data.segments; s++) styles[s] = data.kinds[s] + (s < data.lead ? 0 : fates[data.owner[s]] * 16);
  if (!chosen) return { chosen, fates, styles, counts, inserts: [], after: null };
  for (let row = 0; row < n; row++) counts[fates[row]]++;
  const order = varints(step.order), edits = varints(step.edits), flat = varints(step.inserts), inserts = [];
  for (let i = 0; i < flat.length; i += 8)
    inserts.push({ note: flat[i] === 1, place: flat[i + 1], tokens: flat[i + 3], first: flat[i + 4] - 1, last: flat[i + 5], covers: flat[i + 6], quotes: flat[i + 7] });
  let rows;
  if (order.length) {
    let row = 0;
    rows = order.slice(1).map((step) => (row += step % 2 ? -(step + 1) / 2 : step / 2));
  } else {
    rows = [];
    for (let row = 0; row < n; row++) if (fates[row] < 2) rows.push(row);
  }
  const edges = [0], style = [], owner = [], at = new Float64Array(n).fill(-1), end = new Float64Array(n).fill(-1);
  let x = 0, edited = 0, next = 0;
  const put = (size, code, who) => { x += size; edges.push(x); style.push(code); owner.push(who); };
  for (let s = 0; s < data.lead; s++) put(data.edges[s + 1] - data.edges[s], data.kinds[s], -1);
  for (let place = 0; place <= rows.length; place++) {
    for (; next < inserts.length && inserts[next].place <= place; next++) {
      inserts[next].at = x;
      put(inserts[next].tokens, inserts[next].note ? NOTE * 16 + 8 : ADDED * 16 + 9, -2 - next);
    }
    if (place === rows.length) break;
    const row = rows[place], size = data.rowEdges[row + 1] - data.rowEdges[row];
    const stretch = fates[row] === 1 ? edits[edited++] / (size || 1) : 1;
    if (at[row] < 0) at[row] = x;
    for (let s = data.first[row]; s < data.first[row + 1]; s++) put((data.edges[s + 1] - data.edges[s]) * stretch, styles[s], row);
    end[row] = x;
  }
  return { chosen, fates, styles, counts, inserts, rows, after: { edges, style, owner, n: style.length, at, end, total: x } };
}

// Bands that join the rows: [left, right] above and below, in pixels; neighbours closer than a pixel are one.
export function bands(pieces) {
  const out = [];
  for (const piece of pieces) {
    const last = out[out.length - 1];
    if (last && piece[0] - last[1] < 1 && Math.abs(piece[2] - last[3]) < 1 && piece[0] >= last[0]) { last[1] = piece[1]; last[3] = piece[3]; }
    else out.push(piece.slice());
  }
  return out;
}

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

  const ctx = canvas.getContext("2d");
  let data = null, step = null, now = null; // rows, what is sent, the raw step
  let stale = 3; // 1: rows, 2: step
  let width = 0, dpr = 1, zoom = 1, from = 0, colours = null, hatches = new Map();
  let scene = null; // what the last drawing used: scale and origins
  let hover = null, drag = null, dragged = null; // dragged: the window while the budget line is in a hand

  const gate = frameGate(draw);
  const send = frameGate(() => model.save_changes());

  function read() {
    if (stale & 1 || !data) { data = readRows(model.get("rows")); hover = null; colours = null; }
    if (stale) { now = model.get("step"); step = readStep(data, now); writeLegend(); }
    stale = 0;
  }

  function ink() {
    if (colours) return colours;
    const style = getComputedStyle(root), get = (name) => style.getPropertyValue("--cw-" + name).trim();
    colours = { kinds: KINDS.map(get), fg: get("fg"), fg2: get("fg2"), bad: get("bad"), accent: get("accent"), ribbon: Number(get("ribbon")) };
    hatches = new Map();
    return colours;
  }

  function hatch(colour, faint) {
    const key = colour + faint;
    if (!hatches.has(key)) {
      const size = Math.round(6 * dpr), tile = document.createElement("canvas"), pen = tile.getContext("2d");
      tile.width = tile.height = size;
      pen.fillStyle = pen.strokeStyle = colour;
      pen.globalAlpha = faint;
      pen.fillRect(0, 0, size, size);
      pen.globalAlpha = 0.9;
      pen.lineWidth = dpr;
      pen.beginPath();
      for (const shift of [-size, 0, size]) { pen.moveTo(shift, size); pen.lineTo(shift + size, 0); }
      pen.stroke();
      hatches.set(key, ctx.createPattern(tile, "repeat"));
    }
    return hatches.get(key);
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
    return { domain, scale, span, under, inner, x: (tokens) => LEFT + (tokens - from) * scale, y: (tokens) => LEFT + (tokens - under) * scale };
  }

  function draw() {
    if (!root.isConnected) return;
    const wide = plot.clientWidth || width; // hidden for a moment (Lab does it in a theme switch) tells no resize: the last width holds
    if (!wide) return;
    read();
    const ratio = window.devicePixelRatio || 1;
    if (wide !== width || ratio !== dpr || !canvas.width) {
      width = wide; dpr = ratio; hatches = new Map();
      canvas.width = Math.round(width * dpr);
      canvas.height = Math.round(TALL * dpr);
    }
    const c = ink(), m = money(), s = (scene = layout());
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.save();
    ctx.beginPath();
    ctx.rect(LEFT * dpr, 0, (s.inner + 1) * dpr, canvas.height);
    ctx.clip();
    if (step.after) ribbons(s, c);
    row(data.edges, step.styles, data.segments, data.owner, from, s, BEFORE);
    if (step.after) {
      row(step.after.edges, step.after.style, step.after.n, step.after.owner, s.under, s, AFTER);
      notes(s, c);
      if (m.known && m.after > m.available && !now.limit) bar(c.bad, s.y(Math.max(0, m.available)), s.y(m.after), AFTER + HIGH + 2, 3);
    }
    if (now.over) {
      ctx.fillStyle = hatch(c.bad, 0.1);
      rect(s.y(0), s.y(now.over.needed), AFTER, HIGH);
      bar(c.bad, s.y(Math.max(0, now.over.available)), s.y(now.over.needed), AFTER, HIGH);
    }
    ticks(s, c);
    ctx.restore();
    cuts(s, c);
    place(m, s);
    report(m);
  }

  const rect = (left, right, top, high) => ctx.fillRect(Math.round(left * dpr), Math.round(top * dpr), Math.max(1, Math.round(right * dpr) - Math.round(left * dpr)), Math.round(high * dpr));
  function bar(colour, left, right, top, high) { ctx.fillStyle = colour; rect(left, right, top, high); }

  function row(edges, styles, n, owner, origin, s, top) {
    const columns = Math.round(s.inner * dpr), scale = s.scale * dpr;
    const style = columnStyles(edges, styles, n, origin, scale, columns);
    // a hair of space after each message that is wide enough to be told from its neighbour
    for (let at = Math.max(0, segmentAt(edges, n, origin)), start = edges[at]; at < n; at++) {
      if (at + 1 < n && owner[at + 1] === owner[at]) continue;
      const right = (edges[at + 1] - origin) * scale, left = (start - origin) * scale;
      start = edges[at + 1];
      if (left > columns) break;
      if (right - left > 4 * dpr && right <= columns && owner[at] !== -1) style.fill(EMPTY, Math.max(0, Math.round(right) - Math.max(1, Math.round(dpr / 2))), Math.round(right));
    }
    const runs = new Map();
    for (let x = 0; x < columns; ) {
      const code = style[x], start = x;
      while (x < columns && style[x] === code) x++;
      if (code === EMPTY) continue;
      if (!runs.has(code)) runs.set(code, []);
      runs.get(code).push(start + Math.round(LEFT * dpr), x - start);
    }
    const c = ink();
    for (const [code, list] of runs) {
      const fate = code >> 4, colour = c.kinds[code & 15], tall = Math.round(HIGH * (LOW[fate] || 1) * dpr), y = Math.round((top + HIGH) * dpr) - tall, hair = Math.max(1, Math.round(dpr));
      ctx.beginPath();
      for (let i = 0; i < list.length; i += 2) {
        const x = list[i], w = list[i + 1];
        if (fate !== 3) ctx.rect(x, y, w, tall);
        else {
          ctx.rect(x, y, w, hair);
          ctx.rect(x, y + tall - hair, w, hair);
          if (w > 3 * hair) { ctx.rect(x, y + hair, hair, tall - 2 * hair); ctx.rect(x + w - hair, y + hair, hair, tall - 2 * hair); }
        }
      }
      ctx.fillStyle = fate === 2 ? hatch(colour, 0.32) : fate === ADDED ? hatch(c.fg2, 0.2) : colour;
      ctx.fill();
      if (fate === 1) { // edited: full height under a dark cap
        ctx.beginPath();
        for (let i = 0; i < list.length; i += 2) ctx.rect(list[i], y, list[i + 1], Math.round(3 * dpr));
        ctx.fillStyle = c.fg;
        ctx.fill();
      }
    }
  }

  // Notes are never too thin to be seen.
  function notes(s, c) {
    let last = -9;
    for (const item of step.inserts) {
      const left = s.y(item.at), right = Math.max(left + 2, s.y(item.at + item.tokens));
      if (!item.note || right <= last + 1) continue;
      bar(c.kinds[8], left, right, AFTER, HIGH);
      last = right;
    }
  }

  function ribbons(s, c) {
    const top = BEFORE + HIGH + 9, bottom = AFTER - 2;
    const kept = [], noted = [];
    const rows = step.rows;
    for (let i = 0; i < rows.length; ) {
      const first = rows[i];
      let last = first;
      i++;
      while (i < rows.length && rows[i] === last + 1 && step.after.at[rows[i]] === step.after.end[last]) last = rows[i++];
      kept.push([s.x(data.rowEdges[first]), s.x(data.rowEdges[last + 1]), s.y(step.after.at[first]), s.y(step.after.end[last])]);
    }
    for (const item of step.inserts) {
      if (item.first < 0) continue;
      const pieces = [];
      for (let row = item.first; row <= item.last; row++) {
        if (step.fates[row] !== 2) continue;
        const start = row;
        while (row < item.last && step.fates[row + 1] === 2) row++;
        pieces.push([start, row]);
      }
      const sum = pieces.reduce((all, [a, b]) => all + data.rowEdges[b + 1] - data.rowEdges[a], 0) || 1;
      let at = item.at;
      for (const [a, b] of pieces) {
        const part = ((data.rowEdges[b + 1] - data.rowEdges[a]) / sum) * item.tokens;
        noted.push([s.x(data.rowEdges[a]), s.x(data.rowEdges[b + 1]), s.y(at), s.y(at + part)]);
        at += part;
      }
    }
    for (const [list, colour] of [[noted, c.kinds[8]], [kept, c.kinds[2]]]) {
      ctx.globalAlpha = c.ribbon;
      ctx.fillStyle = colour;
      ctx.beginPath();
      for (const [a, b, d, e] of bands(list)) {
        if (Math.max(b, e) < LEFT || Math.min(a, d) > width) continue;
        ctx.moveTo(a * dpr, top * dpr); ctx.lineTo(b * dpr, top * dpr); ctx.lineTo(e * dpr, bottom * dpr); ctx.lineTo(d * dpr, bottom * dpr); ctx.closePath();
      }
      ctx.fill();
      ctx.globalAlpha = 1;
    }
  }

  function ticks(s, c) {
    let last = -9;
    ctx.fillStyle = c.fg2;
    for (const row of data.turns) {
      const x = s.x(data.rowEdges[row]);
      if (x < LEFT - 1 || x - last < 5) continue;
      if (x > width) break;
      rect(x, x + 1 / dpr, BEFORE + HIGH + 2, 5);
      last = x;
    }
  }

  function cuts(s, c) {
    let free = -9;
    for (const row of data.cuts) {
      const x = s.x(data.rowEdges[row]);
      if (x < LEFT - 1 || x > width - RIGHT + 1) continue;
      ctx.strokeStyle = ctx.fillStyle = c.fg;
      ctx.lineWidth = dpr;
      ctx.setLineDash([3 * dpr, 3 * dpr]);
      ctx.beginPath();
      ctx.moveTo(Math.round(x * dpr) + 0.5, 3 * dpr);
      ctx.lineTo(Math.round(x * dpr) + 0.5, (BEFORE + HIGH + 4) * dpr);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.font = `${11 * dpr}px ${getComputedStyle(root).fontFamily}`;
      const text = "real compaction", wide = ctx.measureText(text).width / dpr, side = x + 8 + wide > width ? x - 6 - wide : x + 6;
      if (side > free) { ctx.fillStyle = c.fg2; ctx.fillText(text, side * dpr, 12 * dpr); free = side + wide + 8; }
    }
  }

  // The parts that are elements: the names, the budget line and its words, the frames around one message.
  function place(m, s) {
    setText(names[0].lastChild, count(m.before));
    setText(names[1].lastChild, now.over ? count(now.over.needed) : m.after === undefined ? "–" : count(m.after));
    const shown = m.known, x = s.y(m.available), right = width - RIGHT / 2, parked = x > right, gone = x < LEFT - 1;
    const at = parked ? right : Math.max(LEFT, x), sum = `budget ${count(m.available)} = ${count(m.max)} − ${count(m.reserve)} − ${count(m.margin)}`;
    let text = sum;
    if (now.over) text = `${now.over.culprit} ${count(now.over.needed)} > ${count(now.over.available)} · ${sum}`;
    else if (now.limit) text = `${sum} · not what bounds this policy: ${now.limit}`;
    else if (m.after > m.available) text = `${sum} · ${count(m.after - m.available)} over`;
    else if (parked) text = `${sum} →`;
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
    legend.replaceChildren(...KINDS.flatMap((kind, code) => {
      if (!seen.has(code)) return [];
      const item = make("span"), chip = make("i");
      chip.style.background = `var(--cw-${kind})`;
      item.append(chip, words(kind));
      return [item];
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

  function showTip(found, event) {
    hover = found && found.row !== undefined ? found.row : null;
    tip.hidden = !found;
    if (found) {
      setText(tip, found.text || describe(found.row));
      const box = plot.getBoundingClientRect(), x = event.clientX - box.left, wide = tip.offsetWidth;
      tip.style.transform = `translate(${Math.max(0, Math.min(width - wide, x - wide / 2))}px, ${event.clientY - box.top < 84 ? BEFORE + HIGH + 12 : AFTER - 28}px)`;
    }
    if (scene) frame(under, hover === null ? -1 : hover, scene);
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
    if (moves[key]) select(moves[key]());
    else if (key === "+" || key === "=") zoomBy(1.5, center());
    else if (key === "-" || key === "_") zoomBy(1 / 1.5, center());
    else if (key === "0") { zoom = 1; gate.ask(); }
    else return;
    event.preventDefault();
  });

  // A wheel that began outside and only scrolled this under the pointer goes on scrolling the page.
  let aimed = false;
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
    if (!drag) { read(); showTip(at(event), event); return; }
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
  onTheme(tidy, () => { colours = null; gate.ask(); });
  const sized = new ResizeObserver(() => gate.ask());
  sized.observe(plot);
  tidy.add(() => sized.disconnect());
  tidy.add(gate.stop);
  tidy.add(() => { send.stop(); canvas.width = canvas.height = 0; data = step = now = scene = null; root.remove(); });
  gate.ask();
  return () => tidy.run();
}

export default { render };
