// The drawing: links as two directions, queues at the ports that they wait at.

import { place, track } from "./place.js";
import * as fmt from "./format.js";

const NS = "http://www.w3.org/2000/svg";

export function el(name, attrs, parent) {
  const x = document.createElementNS(NS, name);
  for (const k in attrs) x.setAttribute(k, attrs[k]);
  if (parent) parent.append(x);
  return x;
}

// depth is how deep a queue is, from 0 to 24; a hundredth of the scale is
// nothing.
const depth = (v, full) => v > full / 100 ? Math.ceil(24 * Math.sqrt(Math.min(1, v / full))) : 0;

export class Drawing {
  constructor(svg, stage, tip, select) {
    Object.assign(this, { svg, stage, tip, select });
    this.zoom = 1; this.cx = 0.5; this.cy = 0.5;
    this.lit = new Set();
    new ResizeObserver(() => this.model && this.build()).observe(stage);
    this.listen();
  }

  show(model) { this.model = model; this.zoom = 1; this.cx = this.cy = 0.5; this.build(); }

  build() {
    const m = this.model, w = this.stage.clientWidth, h = this.stage.clientHeight;
    if (!w || !h) return;
    this.w = w; this.h = h;
    this.spots = place(m, w, h);
    this.svg.replaceChildren();
    const crowd = m.ends.length > 240;
    this.svg.classList.toggle("crowd", crowd);
    this.svg.classList.toggle("vast", m.ends.length > 700);
    this.apart = crowd ? 0.9 : 2.2;
    this.thick = crowd ? 1.6 : 3;
    this.most = crowd ? 7 : 11;
    const base = el("g", { class: "links" }, this.svg), hits = el("g", { class: "hits" }, this.svg);
    const dots = el("g", { class: "queues" }, this.svg), nodes = el("g", { class: "nodes" }, this.svg);
    this.drawn = m.ends.map((e) => {
      const t = track(e, this.spots, this.apart);
      const loss = el("path", { class: "loss", d: t.d }, base);
      const line = el("path", { class: "way", d: t.d }, base);
      const hit = el("path", { class: "hit", d: t.d }, hits);
      const peak = el("circle", { class: "peak", cx: t.qx, cy: t.qy, r: 0 }, dots);
      const dot = el("circle", { class: "dot", cx: t.qx, cy: t.qy, r: 0 }, dots);
      hit.end = dot.end = peak.end = e;
      return { e, loss, line, dot, peak, cross: null, t, state: "" };
    });
    this.nodes = m.layout.nodes.map((n, i) => this.node(n, i, nodes, !crowd));
    this.pan();
    this.update();
    this.light(this.chosen || { ends: [], nodes: [] });
  }

  node(n, i, parent, focusable) {
    const s = this.spots[i];
    const g = el("g", { class: "node " + n.kind, transform: `translate(${s.x.toFixed(1)} ${s.y.toFixed(1)})` }, parent);
    if (focusable) { g.setAttribute("tabindex", "0"); g.setAttribute("role", "button"); g.setAttribute("aria-label", `${n.kind} ${n.name}`); }
    g.index = i;
    if (s.w === undefined) el("circle", { r: s.r }, g);
    else el("rect", { x: -s.w / 2, y: -s.h / 2, width: s.w, height: s.h, rx: Math.min(6, s.h / 3) }, g);
    if (s.label) {
      const t = el("text", { y: s.w === undefined ? s.r + 12 : 4 }, g);
      if (s.small) t.setAttribute("class", "small");
      t.textContent = n.name;
    }
    return g;
  }

  // update draws the last sample.
  update() {
    const m = this.model;
    if (!m || !this.drawn) return;
    const full = m.full;
    for (const d of this.drawn) {
      const p = d.e.now;
      const load = Math.round(m.load(d.e) * 20), stop = m.stopped(d.e);
      const level = depth(p && p.queue_bytes, full), peak = depth(p && p.peak_bytes, full);
      const stopped = stop > 0.3 ? 2 : stop > 0 ? 1 : 0, down = p && !p.up, drops = d.e.newDrops > 0;
      const cause = d.e.losses ? d.e.losses[0].cause : "";
      const state = `${load} ${level} ${peak} ${stopped} ${down} ${drops} ${cause}`;
      if (state === d.state) continue;
      d.state = state;
      d.loss.setAttribute("class", cause ? "loss " + cause : "loss");
      const c = d.line.classList;
      c.toggle("stopped", stopped > 0); c.toggle("storm", stopped === 2); c.toggle("down", !!down);
      d.line.style.setProperty("--load", load * 5 + "%");
      d.line.style.strokeWidth = (1 + (this.thick - 1) * load / 20 + (stopped ? 1 : 0)).toFixed(2);
      d.dot.setAttribute("r", level ? (1.5 + (this.most - 1.5) * level / 24).toFixed(1) : 0);
      d.dot.style.setProperty("--deep-share", Math.round(100 * level / 24) + "%");
      d.peak.setAttribute("r", peak ? (1.5 + (this.most - 1.5) * peak / 24).toFixed(1) : 0);
      if (drops && !d.cross) {
        d.cross = el("text", { class: "cross", x: d.t.qx, y: d.t.qy + 4 }, this.svg);
        d.cross.textContent = "×";
      } else if (!drops && d.cross) { d.cross.remove(); d.cross = null; }
    }
  }

  // light marks what is chosen: ends and nodes.
  light(chosen) {
    this.chosen = chosen;
    if (!this.drawn) return;
    const ends = new Set(chosen.ends), nodes = new Set(chosen.nodes);
    this.svg.classList.toggle("some", ends.size + nodes.size > 0);
    for (const d of this.drawn) {
      const on = ends.has(d.e);
      d.line.classList.toggle("lit", on);
      d.dot.classList.toggle("lit", on);
      if (on) d.line.parentNode.append(d.line);
    }
    this.nodes.forEach((g, i) => g.classList.toggle("lit", nodes.has(i)));
  }

  pan() {
    const w = this.w / this.zoom, h = this.h / this.zoom;
    const half = 0.5 / this.zoom;
    this.cx = Math.min(1 - half, Math.max(half, this.cx));
    this.cy = Math.min(1 - half, Math.max(half, this.cy));
    this.svg.setAttribute("viewBox", `${this.cx * this.w - w / 2} ${this.cy * this.h - h / 2} ${w} ${h}`);
    this.stage.classList.toggle("zoomed", this.zoom > 1);
  }

  zoomBy(f, x = this.w / 2, y = this.h / 2) {
    const was = this.zoom;
    this.zoom = Math.min(12, Math.max(1, this.zoom * f));
    // What is under the pointer stays there.
    this.cx += (x / this.w - 0.5) * (1 / was - 1 / this.zoom);
    this.cy += (y / this.h - 0.5) * (1 / was - 1 / this.zoom);
    this.pan();
  }

  listen() {
    const { svg, stage } = this;
    let drag = null;
    svg.addEventListener("wheel", (ev) => {
      if (!ev.ctrlKey && this.zoom === 1 && ev.deltaY > 0) return;
      ev.preventDefault();
      const r = stage.getBoundingClientRect();
      this.zoomBy(Math.exp(-ev.deltaY * 0.002), ev.clientX - r.left, ev.clientY - r.top);
    }, { passive: false });
    svg.addEventListener("pointerdown", (ev) => { drag = { x: ev.clientX, y: ev.clientY, moved: false }; });
    window.addEventListener("pointermove", (ev) => {
      if (!drag || this.zoom === 1) return;
      const dx = ev.clientX - drag.x, dy = ev.clientY - drag.y;
      if (!drag.moved && Math.hypot(dx, dy) < 4) return;
      Object.assign(drag, { moved: true, x: ev.clientX, y: ev.clientY });
      this.cx -= dx / this.w / this.zoom; this.cy -= dy / this.h / this.zoom;
      this.pan();
    });
    window.addEventListener("pointerup", () => { setTimeout(() => { drag = null; }); });
    svg.addEventListener("click", (ev) => {
      if (drag && drag.moved) return;
      const node = ev.target.closest(".node");
      if (node) this.select({ node: node.index });
      else if (ev.target.end) this.select({ port: ev.target.end });
      else this.select(null);
    });
    svg.addEventListener("keydown", (ev) => {
      if ((ev.key === "Enter" || ev.key === " ") && ev.target.index !== undefined) { ev.preventDefault(); this.select({ node: ev.target.index }); }
    });
    svg.addEventListener("pointermove", (ev) => this.hover(ev));
    svg.addEventListener("pointerleave", () => { this.tip.hidden = true; });
  }

  hover(ev) {
    const m = this.model, node = ev.target.closest && ev.target.closest(".node"), e = ev.target.end;
    this.tip.hidden = !node && !e;
    if (this.tip.hidden) return;
    if (node) this.tip.textContent = m.layout.nodes[node.index].name;
    else {
      const p = e.now;
      this.tip.textContent = `${m.name(e)} → ${m.name(e.peer)}` + (p ? `  ${fmt.rate(p.sent_bps)} (${fmt.share(m.load(e))}), queue ${fmt.bytes(p.queue_bytes)}, peak ${fmt.bytes(p.peak_bytes)}` : "  no data") +
        (e.losses || []).map((l) => `, lost ${fmt.count(l.frames)} (${l.cause})`).join("");
    }
    const r = this.stage.getBoundingClientRect();
    const x = ev.clientX - r.left, left = x > r.width / 2;
    this.tip.style.left = left ? "" : x + 14 + "px";
    this.tip.style.right = left ? r.width - x + 14 + "px" : "";
    this.tip.style.top = Math.max(4, ev.clientY - r.top - 30) + "px";
  }
}
