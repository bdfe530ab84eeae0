// What the strip draws, as numbers: no canvas, no element, so that node can test it.
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
