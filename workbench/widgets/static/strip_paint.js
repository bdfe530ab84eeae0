// The canvas of the strip. All places are CSS pixels from the left; what is filled stands on device pixels.

function painter(canvas, root) {
  const ctx = canvas.getContext("2d"), pen = rowPainter(ctx, root), { ink, hatch, rect, bar } = pen;
  let width = 0, dpr = 1, data = null, step = null;

  function size(wide, ratio) {
    width = wide; dpr = ratio;
    pen.scale(dpr);
    canvas.width = Math.round(width * dpr);
    canvas.height = Math.round(TALL * dpr);
  }

  // `over`: needed and available of a budget that cannot be held; `beyond`: from where to where too much is sent.
  function paint(s, rows, sent, { over, beyond }) {
    data = rows; step = sent;
    const c = ink();
    ctx.clearRect(0, 0, canvas.width, canvas.height);
    ctx.save();
    ctx.beginPath();
    ctx.rect(LEFT * dpr, 0, (s.inner + 1) * dpr, canvas.height);
    ctx.clip();
    if (step.after) ribbons(s, c);
    const row = (edges, styles, n, owner, from, top) => pen.row({ edges, styles, n, owner, from, scale: s.scale, left: LEFT, width: s.inner, top, high: HIGH });
    row(data.edges, step.styles, data.segments, data.owner, s.from, BEFORE);
    if (step.after) {
      row(step.after.edges, step.after.style, step.after.n, step.after.owner, s.under, AFTER);
      notes(s, c);
      if (beyond) bar(c.bad, s.y(Math.max(0, beyond[0])), s.y(beyond[1]), AFTER + HIGH + 2, 3);
    }
    if (over) {
      bar(hatch(c.bad, 0.1), s.y(0), s.y(over.needed), AFTER, HIGH);
      bar(c.bad, s.y(Math.max(0, over.available)), s.y(over.needed), AFTER, HIGH);
    }
    ticks(s, c);
    ctx.restore();
    cuts(s, c);
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

  return { size, paint, forget: pen.forget, free() { canvas.width = canvas.height = 0; data = step = null; } };
}
