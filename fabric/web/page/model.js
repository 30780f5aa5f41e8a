// What is known of the fabric: its layout, the last sample, and the samples
// before it, as far back as KEEP.

export const KEEP = 900;

// Ring is a series of the last KEEP values.
class Ring {
  constructor() { this.v = new Float32Array(KEEP).fill(NaN); }
}

// round rounds up to 1, 2 or 5 times a power of ten.
export function round(v) {
  if (!(v > 0)) return 1;
  const p = 10 ** Math.floor(Math.log10(v));
  return p * ([1, 2, 5].find((k) => v <= k * p * 1.001) || 10);
}

export class Model {
  constructor(layout) {
    this.layout = layout;
    this.names = new Map(layout.nodes.map((n, i) => [n.name, i]));
    // Ports by node, then number: the end, its peer and its link.
    this.ports = layout.nodes.map(() => []);
    for (const l of layout.links) {
      const a = { node: l.a.node, port: l.a.port, link: l }, b = { node: l.b.node, port: l.b.port, link: l };
      a.peer = b; b.peer = a;
      this.ports[a.node][a.port] = a;
      this.ports[b.node][b.port] = b;
    }
    this.ends = this.ports.flat().filter(Boolean);
    this.restart();
  }

  // restart clears the samples: another run begins.
  restart() {
    this.sample = null;
    this.time = new Float64Array(KEEP).fill(NaN);
    this.at = -1; // where the last sample is in the rings
    this.n = 0;
    this.full = this.high = 10e3; // the queue that is drawn largest, and the largest of late
    this.flows = new Map();
    for (const e of this.ends) { e.now = null; e.history = null; e.classes = null; e.losses = null; e.newPauses = e.newDrops = e.rank = e.stops = 0; }
    this.ways = []; // of packets that are traced
    this.causes = new Set(); // for which links lost something
  }

  add(s) {
    const was = this.sample;
    if (was && (s.run !== was.run || s.t < was.t)) { this.restart(); return this.add(s); }
    if (was && s.t === was.t) this.n--; else this.at = (this.at + 1) % KEEP;
    const at = this.at;
    this.n = Math.min(KEEP, this.n + 1);
    this.time[at] = s.t;
    this.sample = s;
    let top = 0;
    for (const p of s.ports) {
      const e = this.ports[p.node] && this.ports[p.node][p.port];
      if (!e) continue;
      e.newPauses = e.now ? Math.max(0, p.pauses - e.now.pauses) : p.pauses;
      e.newDrops = e.now ? Math.max(0, p.drops - e.now.drops) : p.drops;
      e.now = p;
      e.history ||= { queue: new Ring(), peak: new Ring(), sent: new Ring(), halted: new Ring() };
      e.history.queue.v[at] = p.queue_bytes;
      e.history.peak.v[at] = p.peak_bytes;
      e.history.sent.v[at] = p.sent_bps;
      e.history.halted.v[at] = p.halted;
      for (const c of p.classes || []) {
        e.classes ||= new Map();
        if (!e.classes.has(c.class)) e.classes.set(c.class, new Ring());
        e.classes.get(c.class).v[at] = c.queue_bytes;
      }
      top = Math.max(top, p.peak_bytes);
      // Lists follow what was of late, so that their order can be read.
      e.rank = Math.max(p.peak_bytes + this.load(e), 0.93 * e.rank);
      e.stops = Math.max(this.stopped(e), 0.93 * e.stops);
    }
    this.addLosses(s);
    if (s.ways) this.ways = s.ways;
    // The scale follows the largest queue at once, and falls slowly.
    this.high = Math.max(10e3, top, this.high * 0.995);
    this.full = round(this.high);
    this.addFlows(s, at);
  }

  // addLosses notes what links lost, by the cause of most first.
  addLosses(s) {
    const was = new Map();
    for (const l of s.losses || []) {
      const e = this.ports[l.node] && this.ports[l.node][l.port];
      if (!e) continue;
      if (was.has(e)) was.get(e).push(l); else was.set(e, [l]);
      this.causes.add(l.cause);
    }
    for (const [e, v] of was) e.losses = v;
  }

  addFlows(s, at) {
    for (const f of s.flows) {
      let h = this.flows.get(f.id);
      if (!h) this.flows.set(f.id, h = { id: f.id, series: {} });
      h.now = f; h.seen = s.t;
      const put = (name, v) => { (h.series[name] ||= new Ring()).v[at] = v; };
      put("rate_bps", f.rate_bps); put("goodput_bps", f.goodput_bps);
      put("window_bytes", f.window_bytes); put("in_flight_bytes", f.in_flight_bytes);
      for (const k in f.inside || {}) put("inside." + k, f.inside[k]);
    }
    for (const h of this.flows.values()) {
      if (h.seen === s.t) continue;
      for (const k in h.series) h.series[k].v[at] = NaN;
    }
    if (this.flows.size > 400) { // those that ended longest ago go
      const old = [...this.flows.values()].sort((a, b) => a.seen - b.seen).slice(0, this.flows.size - 300);
      for (const h of old) if (h.seen !== s.t) this.flows.delete(h.id);
    }
  }

  // points calls f with time and value of a series, oldest first.
  points(ring, f) {
    for (let i = this.n - 1; i >= 0; i--) {
      const k = (this.at - i + KEEP) % KEEP;
      f(this.time[k], ring.v[k]);
    }
  }

  span() {
    if (this.n === 0) return [0, 1];
    const first = this.time[(this.at - this.n + 1 + KEEP) % KEEP], last = this.time[this.at];
    return [first, last > first ? last : first + 1e-9];
  }

  name(e) { return this.layout.nodes[e.node].name; }
  isSwitch(e) { return this.layout.nodes[e.node].kind === "switch"; }
  load(e) { return e.now && e.link.rate_bps > 0 ? Math.min(1, e.now.sent_bps / e.link.rate_bps) : 0; }

  // stopped is the share of the time that an end could not send: what it says
  // itself, or, where it is not known, whether its neighbour stops it now.
  stopped(e) {
    let v = 0;
    if (e.now) v = Math.max(e.now.halted, e.now.paused ? 0.01 : 0);
    if (v === 0 && e.peer.now && e.peer.now.asked) v = 0.01;
    return v;
  }

  // find returns the end that leaf1:2 or leaf1:h3 names.
  find(text) {
    const [name, port] = text.split(":");
    const node = this.names.get(name);
    if (node === undefined || port === undefined) return null;
    return this.ports[node][/^\d+$/.test(port) ? Number(port) : -1] ||
      this.ports[node].find((e) => e && this.name(e.peer) === port) || null;
  }
}
