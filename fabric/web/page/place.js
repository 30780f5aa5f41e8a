// Where nodes and links are drawn: tiers as rows, the hosts of a switch in a
// block below it, the ports of a switch along its edges.

const PAD = 26;

export function place(model, width, height) {
  const { nodes } = model.layout;
  const spots = nodes.map(() => ({}));
  const top = Math.max(1, ...nodes.map((n) => n.tier));
  const neighbours = (i) => model.ports[i].filter(Boolean).map((e) => e.peer.node);

  // Blocks of hosts below the switches of tier 1, in their order.
  const blocks = new Map();
  const loose = [];
  nodes.forEach((n, i) => { if (n.kind === "switch" && n.tier <= 1) blocks.set(i, []); });
  nodes.forEach((n, i) => {
    if (n.kind !== "host") return;
    const at = neighbours(i).find((k) => blocks.has(k));
    if (at === undefined) loose.push(i); else blocks.get(at).push(i);
  });
  if (loose.length) blocks.set(-1, loose);
  const list = [...blocks.entries()];

  const g = grid(list.map(([, v]) => v.length), width - 2 * PAD);
  const hosts = list.some(([, v]) => v.length);
  const radius = Math.max(2.5, Math.min(13, g.cell * 0.36));
  const label = g.cell >= 30;
  const rowHeight = label ? Math.max(40, 2 * radius + 18) : Math.min(g.cell, 40);
  const bottom = height - PAD - (label ? 12 : 0);
  const firstHostRow = hosts ? bottom - (g.rows - 1) * rowHeight : bottom + 0;
  const rows = top + (hosts ? 1 : 0);
  const rowY = (tier) => rows === 1 ? height / 2 : PAD + 10 + (firstHostRow - PAD - 10) * (top - tier) / (rows - 1);

  let x = (width - g.total) / 2;
  for (const [sw, v] of list) {
    const cols = Math.max(1, Math.ceil(v.length / g.rows)), w = Math.max(cols, g.least) * g.cell;
    v.forEach((h, k) => {
      const row = Math.floor(k / cols), inRow = Math.min(cols, v.length - row * cols);
      spots[h] = { x: x + w / 2 + (k % cols - (inRow - 1) / 2) * g.cell, y: firstHostRow + row * rowHeight, r: radius, label };
    });
    if (sw >= 0) spots[sw] = box(nodes[sw].name, x + w / 2, rowY(1), w + g.gap);
    x += w + g.gap;
  }
  for (let tier = 2; tier <= top; tier++) {
    const of = [];
    nodes.forEach((n, i) => { if (n.kind === "switch" && n.tier === tier) of.push(i); });
    const middle = (i) => {
      const below = neighbours(i).filter((k) => nodes[k].tier < tier && spots[k].x !== undefined).map((k) => spots[k].x);
      return below.length ? below.reduce((a, b) => a + b, 0) / below.length : width / 2;
    };
    const order = of.map((i) => [middle(i), i]).sort((a, b) => Math.abs(a[0] - b[0]) > 1 ? a[0] - b[0] : a[1] - b[1]);
    const step = Math.min(260, (width - 2 * PAD) / Math.max(1, of.length));
    order.forEach(([, i], k) => { spots[i] = box(nodes[i].name, width / 2 + (k - (of.length - 1) / 2) * step, rowY(tier), step); });
  }
  for (const s of spots) if (s.x === undefined) Object.assign(s, box("", width / 2, height / 2, 40));
  plug(model, spots);
  return spots;
}

// grid finds how the blocks fit: cells as large as can be, in few rows.
function grid(sizes, width) {
  let best = null;
  for (let rows = 1; rows <= 10; rows++) {
    // A switch without hosts, or with one, takes room too.
    const least = rows === 1 ? 1.6 : 1;
    const cols = sizes.reduce((a, n) => a + Math.max(least, Math.ceil(n / rows)), 0);
    const gaps = Math.max(0, sizes.length - 1) * 0.8;
    const cell = Math.min(76, width / (cols + gaps));
    const g = { rows, least, cell, gap: cell * 0.8, total: cell * (cols + gaps) };
    if (!best || cell > best.cell * 1.25) best = g;
    if (best.cell >= 30) break;
  }
  return best;
}

function box(name, x, y, room) {
  const want = 18 + 7.2 * name.length;
  const w = Math.max(10, Math.min(room * 0.82, Math.max(want, 64)));
  const label = w >= 8 + 5.6 * name.length;
  return { x, y, w, h: label ? 26 : Math.min(20, Math.max(10, w)), label, small: w < want };
}

// plug gives every end its place at its node.
function plug(model, spots) {
  model.ports.forEach((ports, i) => {
    const s = spots[i];
    const up = [], down = [];
    for (const e of ports) {
      if (!e) continue;
      const p = spots[e.peer.node];
      e.x = s.x; e.y = s.y;
      if (s.w === undefined) continue;
      if (p.y < s.y - 4) up.push(e); else if (p.y > s.y + 4) down.push(e); else side(e, s, p);
    }
    for (const [v, y] of [[up, s.y - s.h / 2], [down, s.y + s.h / 2]]) {
      v.sort((a, b) => spots[a.peer.node].x - spots[b.peer.node].x || spots[a.peer.node].y - spots[b.peer.node].y);
      const step = Math.min(22, (s.w - 6) / Math.max(1, v.length));
      v.forEach((e, k) => { e.x = s.x + (k - (v.length - 1) / 2) * step; e.y = y; });
    }
  });
}

function side(e, s, p) {
  e.x = s.x + (p.x > s.x ? s.w / 2 : -s.w / 2);
  e.y = s.y;
}

// track is the path of the direction that leaves end e, a little beside that
// of the other, and where its queue is drawn.
export function track(e, spots, apart) {
  const f = e.peer, dx = f.x - e.x, dy = f.y - e.y, len = Math.hypot(dx, dy) || 1;
  const ox = dy / len * apart, oy = -dx / len * apart;
  const a = { x: e.x + ox, y: e.y + oy }, b = { x: f.x + ox, y: f.y + oy };
  const s = spots[e.node], p = spots[f.node];
  // Switches of one row that are not next to each other: an arc above them.
  const far = Math.abs(s.y - p.y) < 4 && spots.some((o) => o !== s && o !== p && Math.abs(o.y - s.y) < 4 && (o.x - s.x) * (o.x - p.x) < 0);
  if (far) {
    const rise = s.y - Math.min(90, 24 + Math.abs(dx) * 0.14) + (dx > 0 ? apart : -apart) * 2;
    const ax = s.x + (dx > 0 ? 8 : -8), bx = p.x + (dx > 0 ? -8 : 8), y = s.y - s.h / 2;
    return { d: `M${ax.toFixed(1)} ${y.toFixed(1)}C${ax.toFixed(1)} ${rise.toFixed(1)} ${bx.toFixed(1)} ${rise.toFixed(1)} ${bx.toFixed(1)} ${y.toFixed(1)}`, qx: ax + (dx > 0 ? 3 : -3), qy: y - 10 };
  }
  const out = Math.min(len / 3, s.w === undefined ? s.r + 5 : 11);
  return { d: `M${a.x.toFixed(1)} ${a.y.toFixed(1)}L${b.x.toFixed(1)} ${b.y.toFixed(1)}`, qx: a.x + dx / len * out, qy: a.y + dy / len * out };
}
