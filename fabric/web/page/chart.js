// Series over time, as small drawings.

import { el } from "./draw.js";
import { round } from "./model.js";
import * as fmt from "./format.js";

const H = 92, LEFT = 2, TOP = 6, BOTTOM = 16;

// Chart draws series of one unit: { name, ring, kind: line|area|ghost, limit }.
export class Chart {
  constructor(parent, title, unit, series, limit) {
    Object.assign(this, { unit, series, limit, least: unit === fmt.bytes ? 1500 : 1 });
    const box = document.createElement("figure");
    box.className = "chart";
    const cap = document.createElement("figcaption");
    cap.append(Object.assign(document.createElement("b"), { textContent: title }));
    this.values = Object.assign(document.createElement("span"), { className: "values" });
    cap.append(this.values);
    this.svg = el("svg", { height: H, role: "img", "aria-label": title });
    box.append(cap, this.svg);
    parent.append(box);
    this.hover = null;
    this.svg.addEventListener("pointermove", (ev) => { this.hover = (ev.clientX - this.svg.getBoundingClientRect().left) / this.svg.clientWidth; this.draw(this.model); });
    this.svg.addEventListener("pointerleave", () => { this.hover = null; this.draw(this.model); });
  }

  draw(model) {
    this.model = model;
    if (!model) return;
    const w = Math.max(120, this.svg.clientWidth || 360), [from, to] = model.span();
    const x = (t) => LEFT + (w - 2 * LEFT) * (t - from) / (to - from);
    let top = 0;
    for (const s of this.series) model.points(s.ring(), (t, v) => { if (v > top) top = v; });
    // Near the limit, the limit is in sight; else the axis ends at a round number.
    top = this.limit && (top > this.limit * 0.5 || top === 0) ? Math.max(top, this.limit * 1.1) : round(top || this.least);
    const y = (v) => TOP + (H - TOP - BOTTOM) * (1 - v / top);
    this.svg.setAttribute("viewBox", `0 0 ${w} ${H}`);
    this.svg.replaceChildren();
    for (const f of [0, 0.5, 1]) el("line", { class: "grid", x1: LEFT, x2: w - LEFT, y1: y(top * f), y2: y(top * f) }, this.svg);
    if (this.limit && this.limit <= top) el("line", { class: "limit", x1: LEFT, x2: w - LEFT, y1: y(this.limit), y2: y(this.limit) }, this.svg);
    const pick = this.hover === null ? to : from + (to - from) * this.hover;
    const said = [];
    this.series.forEach((s, i) => {
      let d = "", area = "", open = null, best = Infinity, value = NaN, lastX = 0;
      model.points(s.ring(), (t, v) => {
        const gap = Math.abs(t - pick);
        if (gap < best) { best = gap; value = v; }
        if (Number.isNaN(v)) {
          if (open !== null) area += `L${lastX.toFixed(1)} ${y(0)}Z`;
          open = null;
          return;
        }
        const px = x(t), c = `${px.toFixed(1)} ${y(v).toFixed(1)}`;
        if (open === null) { d += "M" + c; area += `M${px.toFixed(1)} ${y(0)}L${c}`; open = px; } else { d += "L" + c; area += "L" + c; }
        lastX = px;
      });
      if (open !== null) area += `L${lastX.toFixed(1)} ${y(0)}Z`;
      if (s.kind !== "line") el("path", { class: `area s${s.color ?? i}${s.kind === "ghost" ? " ghost" : ""}`, d: area }, this.svg);
      if (s.kind !== "ghost") el("path", { class: `line s${s.color ?? i}`, d }, this.svg);
      said.push([s, value, i]);
    });
    if (this.hover !== null) el("line", { class: "cursor", x1: x(pick), x2: x(pick), y1: TOP, y2: H - BOTTOM }, this.svg);
    const text = (v, attrs) => { el("text", attrs, this.svg).textContent = v; };
    text(this.unit(top), { x: LEFT, y: TOP + 9, class: "axis" });
    text(fmt.clock(from, to), { x: LEFT, y: H - 4, class: "axis" });
    text(fmt.clock(pick, to), { x: this.hover === null ? w - LEFT : Math.min(w - LEFT, Math.max(90, x(pick))), y: H - 4, class: "axis end" });
    this.values.replaceChildren(...said.map(([s, v, i]) => {
      const e = document.createElement("span");
      e.className = `v s${s.color ?? i}`;
      e.textContent = `${s.name} ${Number.isNaN(v) ? "–" : this.unit(v)}`;
      return e;
    }));
  }
}
