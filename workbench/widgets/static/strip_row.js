// A row of segments on a canvas: colour = kind, fate by height and hatch. All places are CSS pixels; what is filled stands on device pixels.

function rowPainter(ctx, root) {
  let dpr = 1, colours = null, hatches = new Map();

  function scale(ratio) { dpr = ratio; hatches = new Map(); }

  function ink() {
    if (colours) return colours;
    const style = getComputedStyle(root), get = (name) => style.getPropertyValue("--cw-" + name).trim();
    colours = { kinds: KINDS.map(get), fg: get("fg"), fg2: get("fg2"), bad: get("bad"), ribbon: Number(get("ribbon")) };
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

  const rect = (left, right, top, high) => ctx.fillRect(Math.round(left * dpr), Math.round(top * dpr), Math.max(1, Math.round(right * dpr) - Math.round(left * dpr)), Math.round(high * dpr));
  function bar(colour, left, right, top, high) { ctx.fillStyle = colour; rect(left, right, top, high); }

  // `from`: tokens at the left edge; `scale`: pixels per token; `owner`: whose segment it is, -1 for nobody's.
  function row({ edges, styles, n, owner, from, scale: perToken, left: offset, width, top, high }) {
    const columns = Math.round(width * dpr), scale = perToken * dpr;
    const style = columnStyles(edges, styles, n, from, scale, columns);
    // a hair of space after each message that is wide enough to be told from its neighbour
    for (let at = Math.max(0, segmentAt(edges, n, from)), start = edges[at]; at < n; at++) {
      if (at + 1 < n && owner[at + 1] === owner[at]) continue;
      const right = (edges[at + 1] - from) * scale, left = (start - from) * scale;
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
      runs.get(code).push(start + Math.round(offset * dpr), x - start);
    }
    const c = ink();
    for (const [code, list] of runs) {
      const fate = code >> 4, colour = c.kinds[code & 15], tall = Math.round(high * (LOW[fate] || 1) * dpr), y = Math.round((top + high) * dpr) - tall, hair = Math.max(1, Math.round(dpr));
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

  return { scale, ink, hatch, rect, bar, row, forget() { colours = null; } };
}
