// Joins the stream of samples, the drawing, the panel, the lists and the
// address: #port=leaf1:2 (or leaf1:h3), #flow=17, #node=leaf1 choose.

import { Model } from "./model.js";
import { Drawing } from "./draw.js";
import { Panel, h, keep, pathOf, wayEnds, wayKey } from "./panel.js";
import { slide } from "./record.js";
import * as fmt from "./format.js";

const $ = (id) => document.getElementById(id);
const query = new URLSearchParams(location.search);
let model = null, chosen = null, held = false, link = "connecting", dirty = false, trouble = "";

const drawing = new Drawing($("picture"), $("stage"), $("tip"), select);
const panel = new Panel($("panel"), select);

// Theme: that of the system, until one is chosen.
function theme(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}
const stored = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
theme(query.get("theme") || stored());
$("theme").addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  theme(dark ? "light" : "dark");
  try { localStorage.setItem("theme", dark ? "light" : "dark"); } catch { /* private windows have none */ }
});

// ways are the traced packets that were chosen, of which samples soon have nothing any more.
const ways = new Map();

function select(what) {
  let hash = "";
  if (what && what.port) hash = `#port=${model.name(what.port)}:${what.port.port}`;
  else if (what && what.flow !== undefined) hash = `#flow=${what.flow}`;
  else if (what && what.way) { ways.set(wayKey(what.way), what.way); hash = `#packet=${encodeURIComponent(wayKey(what.way))}`; }
  else if (what && what.node !== undefined) hash = `#node=${model.layout.nodes[what.node].name}`;
  if (hash !== location.hash) history.pushState(null, "", hash || location.pathname + location.search);
  choose();
}

// choose shows what the address selects.
function choose() {
  if (!model) return;
  const [kind, value] = decodeURIComponent(location.hash.slice(1)).split("=");
  chosen = null;
  if (kind === "port") { const e = model.find(value || ""); if (e) chosen = { port: e }; }
  if (kind === "packet" && ways.has(value)) chosen = { way: ways.get(value) };
  if (kind === "flow" && value) chosen = { flow: Number(value) };
  if (kind === "node" && model.names.has(value)) chosen = { node: model.names.get(value) };
  panel.open(model, chosen);
  light();
  flows();
}

function light() {
  const lit = { ends: [], nodes: [] };
  if (chosen && chosen.port) { lit.ends = [chosen.port]; lit.nodes = [chosen.port.node, chosen.port.peer.node]; }
  if (chosen && chosen.node !== undefined) { lit.nodes = [chosen.node]; lit.ends = model.ports[chosen.node].filter(Boolean).flatMap((e) => [e, e.peer]); }
  if (chosen && chosen.flow !== undefined && model.flows.has(chosen.flow)) {
    const f = model.flows.get(chosen.flow).now, path = pathOf(model, f);
    lit.ends = [model.ports[f.src].find(Boolean), ...path].filter(Boolean);
    lit.nodes = [f.src, ...path.map((e) => e.node), f.dst];
  }
  if (chosen && chosen.way) { lit.ends = wayEnds(model, chosen.way); lit.nodes = chosen.way.nodes; }
  lit.key = JSON.stringify([lit.ends.map((e) => [e.node, e.port]), lit.nodes]);
  if (!drawing.chosen || drawing.chosen.key !== lit.key) drawing.light(lit);
}

function newLayout(l) {
  const same = model && JSON.stringify([model.layout.nodes, model.layout.links]) === JSON.stringify([l.nodes, l.links]);
  if (same) { model.layout = l; head(); return; }
  model = new Model(l);
  const names = l.nodes.map((n) => n.name);
  $("names").replaceChildren(...names.slice(0, 1000).map((n) => h("option", { value: n })));
  drawing.show(model);
  choose();
  head();
}

function newSample(s) {
  if (!model || held) return;
  model.add(s);
  if (!dirty) { dirty = true; requestAnimationFrame(paint); }
}

// A click is a press and a release on the same element. So no row is replaced between them.
let pressed = false;
window.addEventListener("pointerdown", () => { pressed = true; });
for (const up of ["pointerup", "pointercancel", "blur"]) window.addEventListener(up, () => setTimeout(() => {
  pressed = false;
  if (dirty) requestAnimationFrame(paint);
}));

function paint() {
  if (pressed) return; // dirty stays, and the release paints
  dirty = false;
  if (!model.sample) return;
  drawing.update();
  panel.update();
  light();
  flows();
  head();
}

const plural = (n, what) => `${n} ${what}${n === 1 ? "" : what.endsWith("ch") ? "es" : "s"}`;

const engines = { sim: "virtual time", netns: "real frames", lab: "live fabric", record: "record" };

function head() {
  const l = model.layout, s = model.sample;
  $("title").textContent = l.title || l.name || "gfabric";
  document.title = `${l.title || l.name} – gfabric`;
  const hosts = l.nodes.filter((n) => n.kind === "host").length;
  $("subtitle").textContent = [s && s.run, `${plural(hosts, "host")}, ${plural(l.nodes.length - hosts, "switch")}`, engines[l.on] || l.on,
    l.scale > 1 ? `${fmt.count(l.scale)} times slower than the time of the nodes` : ""].filter(Boolean).join(" · ");
  $("full").textContent = fmt.bytes(model.full);
  $("progress").style.width = s && l.end_seconds ? Math.min(100, 100 * s.t / l.end_seconds) + "%" : "0";
  const causes = [...model.causes].sort();
  $("causes").hidden = causes.length === 0;
  $("causes").replaceChildren("lost on links, by cause:", ...causes.map((c) => h("span", { className: "cause " + c }, c)));
  const facts = [["time", s ? fmt.clock(s.t, l.end_seconds) : "–"], ["flows", s ? fmt.count(s.open) : "–"], ["ended", s ? fmt.count(s.ended) : "–"], ["drops", s ? fmt.count(s.drops) : "–"]];
  if (l.on !== "sim" && !l.record_seconds) facts.push(["late (p99)", s ? fmt.seconds(s.late_p99_seconds) : "–"]);
  $("facts").replaceChildren(...facts.map(([k, v]) => h("div", { className: k === "drops" && s && s.drops ? "warn" : "" }, h("dt", {}, k), h("dd", {}, v))));
  banner(l, s);
}

function banner(l, s) {
  let text = "", kind = "";
  if (trouble) { text = trouble; kind = "bad"; }
  else if (link === "lost") { text = "The connection is lost; trying again. What is shown is what was seen last."; kind = "bad"; }
  else if (s && l.late_bound_seconds > 0 && s.late_p99_seconds > l.late_bound_seconds) {
    text = `Not valid: the workers are ${fmt.seconds(s.late_p99_seconds)} late (99th percentile), the bound is ${fmt.seconds(l.late_bound_seconds)}. What you see is this machine, not the network: use a larger --scale.`; kind = "bad";
  } else if (s && s.done) { text = s.run ? `${s.run} is over. This is its last state.` : "It is over. This is the last state."; kind = "info"; }
  else if (!s) { text = "Waiting for the first sample."; kind = "info"; }
  else if (held) { text = "The picture is held; press Hold again to go on."; kind = "info"; }
  const b = $("banner");
  if (b.textContent !== text) b.textContent = text;
  b.className = "banner " + kind;
  b.hidden = !text;
}

function flows() {
  const s = model.sample, list = s ? s.flows : [];
  $("flowcount").textContent = s ? (s.open > list.length ? `${list.length} of ${fmt.count(s.open)} under way` : `${list.length} under way`) : "";
  const none = $("noflows");
  none.hidden = list.length > 0;
  none.textContent = model.layout.on === "lab" ? "Hosts with the kernel's own stack do not report their connections: see the ports." : "None is under way.";
  $("flows").hidden = list.length === 0;
  document.querySelector("main").classList.toggle("idle", list.length === 0 && !(s && s.open));
  keep(document.body, () => $("flows").tBodies[0].replaceChildren(...ordered(list).map((f) => {
    const row = h("tr", { className: chosen && chosen.flow === f.id ? "lit" : "" },
      h("td", {}, flowButton(f)), h("td", {}, f.group || ""), h("td", {}, f.cc || ""),
      h("td", { className: "n" }, fmt.rate(f.goodput_bps)), h("td", { className: "n" }, fmt.rate(f.rate_bps)),
      h("td", { className: "n" }, f.window_bytes ? fmt.bytes(f.window_bytes) : "–"), h("td", { className: "n" }, fmt.bytes(f.in_flight_bytes)),
      h("td", {}, bar(f)));
    row.dataset.flow = f.id;
    return row;
  })));
}

// The order of the list: as flows began, until a column is chosen.
let order = "id", down = false;

function ordered(list) {
  const v = (f) => order === "id" ? f.id : order === "src" ? f.src * 1e6 + f.dst : f[order] ?? "";
  return [...list].sort((a, b) => (v(a) < v(b) ? -1 : v(a) > v(b) ? 1 : a.id - b.id) * (down ? -1 : 1));
}

for (const th of $("flows").tHead.rows[0].cells) {
  th.firstElementChild.addEventListener("click", () => {
    const by = th.dataset.by, numeric = th.classList.contains("n") || by === "acked_bytes";
    if (order !== by) { order = by; down = numeric; } else if (down === numeric) down = !down; else { order = "id"; down = false; }
    for (const o of th.parentNode.cells) o.setAttribute("aria-sort", o.dataset.by !== order ? "none" : down ? "descending" : "ascending");
    if (model) flows();
  });
}

function flowButton(f) {
  const n = model.layout.nodes;
  return h("button", { type: "button", className: "link", on: () => select({ flow: f.id }) }, `${n[f.src].name} → ${n[f.dst].name}`);
}

function bar(f) {
  if (!f.bytes) return fmt.bytes(f.acked_bytes);
  const m = document.createElement("meter");
  m.max = f.bytes; m.value = f.acked_bytes;
  m.title = `${fmt.bytes(f.acked_bytes)} of ${fmt.bytes(f.bytes)}`;
  return h("span", { className: "done" }, m, h("small", {}, m.title));
}

// What is typed into Find: a node, a port, or two hosts of a flow.
$("find").addEventListener("change", (ev) => {
  const text = ev.target.value.trim().toLowerCase().replace(/\s*(→|->|>)\s*/, " ");
  if (!model || !text) return;
  const port = model.find(text), [a, b] = text.split(" ");
  if (port) select({ port });
  else if (model.names.has(text)) select({ node: model.names.get(text) });
  else {
    const n = model.layout.nodes, f = [...model.flows.values()].map((k) => k.now).find((f) => n[f.src].name === a && n[f.dst].name === b);
    if (f) select({ flow: f.id }); else { ev.target.setCustomValidity("There is nothing of this name"); ev.target.reportValidity(); ev.target.setCustomValidity(""); return; }
  }
  ev.target.value = "";
});

function hold() {
  held = !held;
  $("hold").setAttribute("aria-pressed", held);
  if (model) head();
}
$("hold").addEventListener("click", hold);
$("nearer").addEventListener("click", () => drawing.zoomBy(1.5));
$("farther").addEventListener("click", () => drawing.zoomBy(1 / 1.5));
$("whole").addEventListener("click", () => drawing.zoomBy(1e-3));
window.addEventListener("popstate", choose);
window.addEventListener("hashchange", choose);
window.addEventListener("keydown", (ev) => {
  const typing = ev.target.closest("input, button, .node, a");
  if (ev.key === "Escape") select(null);
  else if (ev.key === "/" && !typing) { ev.preventDefault(); $("find").focus(); }
  else if (ev.key === " " && !typing) { ev.preventDefault(); hold(); }
});

function follow() {
  const stream = new EventSource("api/samples" + (query.has("every") ? "?every=" + encodeURIComponent(query.get("every")) : ""));
  stream.addEventListener("open", () => { link = "on"; if (model) head(); });
  stream.addEventListener("error", () => {
    link = "lost";
    if (model) head(); else $("subtitle").textContent = "no answer yet; trying again";
  });
  stream.addEventListener("layout", (ev) => newLayout(JSON.parse(ev.data)));
  stream.addEventListener("sample", (ev) => newSample(JSON.parse(ev.data)));
}

// Of a record, the samples up to an instant take the place of all before.
function instant(samples, error) {
  trouble = error || "";
  if (samples) {
    model.restart();
    for (const s of samples) model.add(s);
    paint();
    panel.open(model, chosen);
  }
  head();
}

function begin(l) {
  if (!l || !l.record_seconds) { follow(); return; }
  newLayout(l);
  $("hold").hidden = true;
  slide(l.record_seconds, query.get("at"), instant);
}

fetch("api/layout").then((r) => r.json()).then(begin, () => follow());
