// The panel beside the drawing: all of the fabric, or what is chosen.

import { Chart } from "./chart.js";
import * as fmt from "./format.js";

export function h(name, attrs, ...children) {
  const x = document.createElement(name);
  for (const k in attrs) {
    if (k === "on") x.addEventListener("click", attrs[k]); else if (k in x && k !== "list") x[k] = attrs[k]; else x.setAttribute(k, attrs[k]);
  }
  x.append(...children.filter((c) => c !== null && c !== undefined && c !== false));
  return x;
}

// fate says what became of a traced packet.
const fate = (m, w) => {
  const last = w.nodes.length ? m.layout.nodes[w.nodes[w.nodes.length - 1]].name : "?";
  return { delivered: "delivered", lost: `lost behind ${last}`, dropped: `dropped: ${w.reason}`, looped: "looped" }[w.kind] || w.kind;
};

const way = (m, e) => `${m.name(e)} → ${m.name(e.peer)}`;

export class Panel {
  constructor(root, select) { Object.assign(this, { root, select }); }

  // open lays the panel out for what is chosen: null, { port }, { flow } or { node }.
  open(model, chosen) {
    this.model = model;
    this.charts = [];
    this.root.replaceChildren();
    if (!chosen) this.overview();
    else if (chosen.port) this.port(chosen.port);
    else if (chosen.flow !== undefined) this.flow(chosen.flow);
    else if (chosen.way) this.way(chosen.way);
    else this.node(chosen.node);
    this.update();
  }

  update() {
    if (this.refresh) this.refresh();
    for (const c of this.charts) c.draw(this.model);
  }

  head(kind, title, id) {
    const back = h("button", { type: "button", className: "back", on: () => this.select(null), title: "All of the fabric (Escape)" }, "×");
    this.root.append(h("div", { className: "head", id }, h("p", { className: "kind" }, kind), h("h2", {}, title), back));
  }

  chart(...args) {
    const c = new Chart(this.root, ...args);
    this.charts.push(c);
    return c;
  }

  portButton(e, text) {
    return h("button", { type: "button", className: "link", on: () => this.select({ port: e }) }, text || way(this.model, e));
  }

  // table makes a table whose rows are replaced at each sample.
  table(title, columns, id) {
    const body = h("tbody", {});
    const t = h("table", { id }, h("thead", {}, h("tr", {}, ...columns.map((c) => h("th", { className: c.startsWith(">") ? "n" : "" }, c.replace(">", ""))))), body);
    const none = h("p", { className: "none" });
    this.root.append(h("h3", {}, title), t, none);
    return (rows, nothing) => {
      body.replaceChildren(...rows.map((r) => h("tr", {}, ...r.map((v, i) => h("td", { className: columns[i].startsWith(">") ? "n" : "" }, v)))));
      t.hidden = rows.length === 0;
      none.textContent = rows.length ? "" : nothing;
      none.hidden = rows.length > 0;
    };
  }

  // facts makes a list of names and values that are set at each sample.
  facts(names) {
    const dl = h("dl", { className: "stats" }), v = {};
    for (const n of names) { v[n] = h("dd", {}); dl.append(h("div", {}, h("dt", {}, n), v[n])); }
    this.root.append(dl);
    return v;
  }

  overview() {
    const m = this.model;
    this.root.append(h("div", { className: "head", id: "overview" }, h("p", { className: "kind" }, "fabric"), h("h2", {}, m.layout.name || "all")));
    const busiest = this.table("Longest queues", ["port", ">queue", ">peak", ">load"], "queues");
    const pauses = this.table("Pauses", ["", ">times", ">stopped", "in"], "pauses");
    const drops = this.table("Drops", ["port", ">frames"], "dropped");
    const metered = m.causes.size > 0;
    const losses = metered && this.table("Lost on links, as the meters at their ends find", ["direction", "cause", ">frames", "last"], "losses");
    const traced = m.ways.length > 0;
    const ways = traced && this.table("Packets that switches copied at each hop, the newest", ["packet", "", ">took"], "ways");
    this.refresh = () => {
      const known = m.ends.filter((e) => e.now);
      const queues = known.filter((e) => m.isSwitch(e)).sort((a, b) => b.rank - a.rank).slice(0, 8);
      keep(this.root, () => {
        busiest(queues.map((e) => [this.portButton(e), fmt.bytes(e.now.queue_bytes), fmt.bytes(e.now.peak_bytes), fmt.share(m.load(e))]), "No switch port is known yet.");
        const stops = m.ends.filter((e) => e.stops > 0.003).sort((a, b) => b.stops - a.stops).slice(0, 10);
        pauses(stops.map((e) => [this.portButton(e, `${m.name(e.peer)} stops ${m.name(e)}`), e.peer.now ? fmt.count(e.peer.now.pauses) : "–", fmt.share(m.stopped(e)),
          fmt.classes((e.now && e.now.paused) || (e.peer.now && e.peer.now.asked) || 0) || "–"]), pausesBefore(m));
        const lost = known.filter((e) => e.now.drops > 0).sort((a, b) => b.now.drops - a.now.drops).slice(0, 6);
        drops(lost.map((e) => [this.portButton(e), fmt.count(e.now.drops)]), m.sample && m.sample.drops ? "None at queues; other reasons: gswitch show drops." : "None.");
        if (metered) {
          const v = m.ends.flatMap((e) => (e.losses || []).map((l) => [e, l])).sort((a, b) => b[1].frames - a[1].frames).slice(0, 10);
          losses(v.map(([e, l]) => [this.portButton(e), h("span", { className: "cause " + l.cause }, l.cause), fmt.count(l.frames), fmt.clock(l.last_seconds, m.layout.end_seconds || l.last_seconds)]), "None.");
        }
        if (traced) {
          // What went wrong comes first.
          const v = [...m.ways].sort((a, b) => (a.kind === "delivered") - (b.kind === "delivered")).slice(0, 12);
          ways(v.map((w) => [h("button", { type: "button", className: "link", on: () => this.select({ way: w }) }, w.flow), fate(m, w), fmt.seconds(w.took_seconds)]), "None.");
        }
        if (!metered && m.causes.size > 0 || !traced && m.ways.length > 0) this.open(m, null);
      });
    };
  }

  // way shows a packet's way, as it was when it was chosen.
  way(w) {
    const m = this.model;
    this.head("traced packet", w.flow, "way");
    this.root.append(h("p", { className: "chips" }, chip(fate(m, w), w.kind === "delivered" ? "good" : "bad")));
    const v = this.facts(["identification", "seen first", "took"]);
    v.identification.textContent = w.id;
    v["seen first"].textContent = fmt.clock(w.first_seconds, m.layout.end_seconds || w.first_seconds);
    v.took.textContent = fmt.seconds(w.took_seconds);
    this.root.append(h("h3", {}, "Path"), h("ol", { className: "path", id: "path" }, ...w.nodes.map((n) => h("li", {}, m.layout.nodes[n].name))));
    this.refresh = null;
  }

  port(e) {
    const m = this.model, rate = e.link.rate_bps;
    this.head(m.isSwitch(e) ? "port of a switch" : "port of a host", way(m, e), "port");
    const chips = h("p", { className: "chips" });
    this.root.append(chips);
    const v = this.facts(["link", "sends", "queue", "peak", "marked", "dropped", "asked to pause", "stopped"]);
    const hist = (k) => () => e.history ? e.history[k] : EMPTY;
    this.chart("Queue", fmt.bytes, [{ name: "peak", ring: hist("peak"), kind: "ghost", color: 1 }, { name: "now", ring: hist("queue"), kind: "line", color: 1 }]);
    this.chart("Sent", fmt.rate, [{ name: "", ring: hist("sent"), kind: "area", color: 0 }], rate);
    if (e.stops > 0 || (e.now && e.now.halted > 0) || seen(e.history && e.history.halted)) this.chart("Stopped by its neighbour", fmt.share, [{ name: "", ring: hist("halted"), kind: "area", color: 3 }]);
    const classes = this.table("Queues by class", ["class", ">now", ">peak ever", ">frames", ">marked", ">dropped"], "classes");
    const perClass = h("div", {});
    this.root.append(perClass);
    const flows = this.table("Flows through it", ["flow", ">goodput"], "through");
    const reverse = this.portButton(e.peer, `the other direction: ${way(m, e.peer)}`);
    this.root.append(h("p", {}, reverse));
    let drawn = 0;
    this.refresh = () => {
      const p = e.now;
      v.link.textContent = (rate ? fmt.rate(rate) : "any rate") + ", " + fmt.seconds(e.link.delay_seconds);
      if (!p) { chips.replaceChildren(chip("nothing is known of this port", "")); return; }
      v.sends.textContent = `${fmt.rate(p.sent_bps)} · ${fmt.share(m.load(e))}`;
      v.queue.textContent = fmt.bytes(p.queue_bytes);
      v.peak.textContent = fmt.bytes(p.peak_bytes);
      v.marked.textContent = fmt.count(p.marks);
      v.dropped.textContent = fmt.count(p.drops);
      v["asked to pause"].textContent = fmt.count(p.pauses) + "×";
      v.stopped.textContent = fmt.share(p.halted);
      chips.replaceChildren(chip(p.up ? "up" : "down", p.up ? "good" : "bad"),
        p.paused ? chip(`${m.name(e.peer)} stops ${fmt.classes(p.paused)}`, "stop") : "",
        p.asked ? chip(`stops ${m.name(e.peer)} in ${fmt.classes(p.asked)}`, "stop") : "");
      keep(this.root, () => {
        classes((p.classes || []).map((c) => [String(c.class), fmt.bytes(c.queue_bytes), fmt.bytes(c.peak_bytes), fmt.count(c.frames), fmt.count(c.marks), fmt.count(c.drops)]),
          m.isSwitch(e) ? "Nothing has passed yet." : "A host's queues are its queue pairs: see the flows.");
        const through = m.sample.flows.filter((f) => passes(m, f, e));
        flows(through.slice(0, 12).map((f) => [this.flowButton(f), fmt.rate(f.goodput_bps)]), "None that is known.");
      });
      if (e.classes && e.classes.size > 1 && drawn !== e.classes.size) {
        drawn = e.classes.size;
        this.charts = this.charts.filter((c) => !c.byClass);
        perClass.replaceChildren();
        const c = new Chart(perClass, "Each class", fmt.bytes, [...e.classes.entries()].sort((a, b) => a[0] - b[0]).map(([k, r]) => ({ name: "class " + k, ring: () => r, kind: "line" })));
        c.byClass = true;
        this.charts.push(c);
      }
    };
  }

  flowButton(f) {
    const m = this.model;
    return h("button", { type: "button", className: "link", on: () => this.select({ flow: f.id }) }, `${m.layout.nodes[f.src].name} → ${m.layout.nodes[f.dst].name}`);
  }

  flow(id) {
    const m = this.model, known = m.flows.get(id);
    if (!known) {
      this.head("flow", `number ${id}`, "flow");
      const p = h("p", { className: "none" }, "Not seen yet: it has ended, has not begun, or is not among those that move most.");
      this.root.append(p);
      this.refresh = () => { if (m.flows.has(id)) this.open(m, { flow: id }); };
      return;
    }
    const f = known.now;
    this.head(`flow ${f.group || ""}`, `${m.layout.nodes[f.src].name} → ${m.layout.nodes[f.dst].name}`, "flow");
    const chips = h("p", { className: "chips" }), v = this.facts(["control", "goodput", "allowed", "window", "in flight", "acknowledged"]);
    this.root.insertBefore(chips, this.root.lastChild);
    const hops = h("ol", { className: "path", id: "path" });
    hops.append(h("li", {}, m.layout.nodes[f.src].name));
    for (const e of pathOf(m, f)) hops.append(h("li", {}, this.portButton(e, `${m.name(e)}:${e.port}`)));
    hops.append(h("li", {}, m.layout.nodes[f.dst].name));
    this.root.append(h("h3", {}, "Path"), hops);
    const ring = (k) => () => known.series[k] || EMPTY;
    const first = m.ports[f.src].find(Boolean);
    this.chart("Rate", fmt.rate, [{ name: "goodput", ring: ring("goodput_bps"), kind: "area", color: 0 }, { name: "allowed", ring: ring("rate_bps"), kind: "line", color: 2 }], first && first.link.rate_bps);
    const window = f.window_bytes ? [{ name: "window", ring: ring("window_bytes"), kind: "line", color: 2 }] : [];
    this.chart(f.window_bytes ? "Window" : "In flight", fmt.bytes, [{ name: window.length ? "in flight" : "", ring: ring("in_flight_bytes"), kind: "area", color: 0 }, ...window]);
    const inside = Object.keys(known.series).filter((k) => k.startsWith("inside.") && !(k in SHOWN)).sort();
    if (inside.length) this.root.append(h("h3", {}, "Inside its control"));
    for (const k of inside) this.chart(k.slice(7), UNITS[k.slice(7)] || fmt.digits, [{ name: "", ring: ring(k), kind: "line", color: 4 }]);
    this.refresh = () => {
      const now = known.now, over = known.seen !== m.sample.t;
      v.control.textContent = now.cc || "none";
      v.goodput.textContent = over ? "–" : fmt.rate(now.goodput_bps);
      v.allowed.textContent = fmt.rate(now.rate_bps);
      v.window.textContent = now.window_bytes ? fmt.bytes(now.window_bytes) : "none";
      v["in flight"].textContent = over ? "–" : fmt.bytes(now.in_flight_bytes);
      v.acknowledged.textContent = fmt.bytes(now.acked_bytes) + (now.bytes ? " of " + fmt.bytes(now.bytes) : "");
      chips.replaceChildren(over ? chip("not seen since " + fmt.clock(known.seen, m.layout.end_seconds), "") : chip("under way", "good"));
    };
  }

  node(i) {
    const m = this.model, n = m.layout.nodes[i];
    this.head(n.kind, n.name, "node");
    const ports = this.table("Ports", ["to", ">sends", ">receives", ">queue", ">peak", ">drops"], "ports");
    const flows = this.table(n.kind === "host" ? "Flows" : "Flows through it", ["flow", ">goodput"], "through");
    this.refresh = () => keep(this.root, () => {
      ports(m.ports[i].filter(Boolean).map((e) => [this.portButton(e, `${e.port}: ${m.name(e.peer)}`), e.now ? fmt.rate(e.now.sent_bps) : "–", e.peer.now ? fmt.rate(e.peer.now.sent_bps) : "–",
        e.now ? fmt.bytes(e.now.queue_bytes) : "–", e.now ? fmt.bytes(e.now.peak_bytes) : "–", e.now ? fmt.count(e.now.drops) : "–"]), "It has none.");
      const own = m.sample ? m.sample.flows.filter((f) => f.src === i || f.dst === i || (f.path || []).some((p) => p.node === i)) : [];
      flows(own.slice(0, 12).map((f) => [this.flowButton(f), fmt.rate(f.goodput_bps)]), "None that is known.");
    });
  }
}

// Internals that the charts above show already, and the units of others.
const SHOWN = { "inside.R": 1, "inside.W": 1 };
const UNITS = { target: fmt.rate, Wc: fmt.bytes, ssthresh: fmt.bytes, flight: fmt.bytes };

const seen = (ring) => ring && ring.v.some((v) => v > 0);

const EMPTY = { v: new Float32Array(0) };

const chip = (text, kind) => h("span", { className: "chip " + kind }, text);

// wayKey names a traced packet, wayEnds the ports by which it left the nodes of its way.
export function wayKey(w) { return `${w.flow} ${w.id} ${w.first_seconds}`; }
export function wayEnds(m, w) {
  return w.nodes.slice(1).map((to, i) => (m.ports[w.nodes[i]] || []).find((e) => e && e.peer.node === to)).filter(Boolean);
}
export function pathOf(m, f) { return (f.path || []).map((p) => m.ports[p.node] && m.ports[p.node][p.port]).filter(Boolean); }

// passes reports whether a flow's data leaves by e.
function passes(m, f, e) {
  return (f.path || []).some((p) => p.node === e.node && p.port === e.port) || f.src === e.node;
}

function pausesBefore(m) {
  let n = 0;
  for (const e of m.ends) if (e.now) n += e.now.pauses;
  return n ? `None now; ${fmt.count(n)} times before.` : "None.";
}

// keep changes rows and gives the focus back to the button that had it.
export function keep(root, change) {
  const a = document.activeElement;
  const had = root.contains(a) && a.closest("tbody") ? { table: a.closest("table").id, text: a.textContent } : null;
  change();
  if (!had) return;
  const again = [...root.querySelectorAll(`#${had.table} button`)].find((b) => b.textContent === had.text);
  if (again) again.focus({ preventScroll: true });
}
