// Numbers for people: three digits and a unit.

function scaled(v, step, units) {
  if (!Number.isFinite(v)) return "–";
  let i = 0;
  while (i < units.length - 1 && Math.abs(v) >= step * 0.9995) { v /= step; i++; }
  return digits(v) + " " + units[i];
}

export function digits(v) {
  const a = Math.abs(v);
  if (v === 0) return "0";
  if (a >= 1e5) return trim((v / 10 ** Math.floor(Math.log10(a))).toFixed(2)) + "e" + Math.floor(Math.log10(a));
  if (a >= 99.95) return Math.round(v).toString();
  if (a >= 9.995) return trim(v.toFixed(1));
  if (a >= 0.01) return trim(v.toFixed(2));
  return v.toExponential(1);
}

const trim = (s) => s.replace(/\.?0+$/, "");

export const rate = (v) => v < 1 ? "0" : scaled(v, 1000, ["b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"]);
export const bytes = (v) => scaled(v, 1000, ["B", "kB", "MB", "GB", "TB"]);
export const count = (v) => v < 10000 ? String(Math.round(v)) : scaled(v, 1000, ["", "k", "M", "G"]).replace(" ", "\u2009");
export const share = (v) => (100 * v < 0.5 ? (v > 0 ? "<1" : "0") : Math.round(100 * v)) + "\u2009%";

export function seconds(v) {
  if (v === 0) return "0 s";
  const a = Math.abs(v);
  if (a < 1e-6) return digits(v * 1e9) + " ns";
  if (a < 1e-3) return digits(v * 1e6) + " µs";
  if (a < 1) return digits(v * 1e3) + " ms";
  if (a < 120) return digits(v) + " s";
  return Math.floor(v / 60) + " min " + Math.round(v % 60) + " s";
}

// clock is an instant of a run, with as many digits as samples distinguish.
export function clock(v, end) {
  const top = end || v;
  if (top < 1e-3) return (v * 1e6).toFixed(1) + " µs";
  if (top < 0.03) return (v * 1e3).toFixed(3) + " ms";
  if (top < 1) return (v * 1e3).toFixed(2) + " ms";
  if (top < 600) return v.toFixed(2) + " s";
  return Math.floor(v / 60) + " min " + String(Math.floor(v % 60)).padStart(2, "0") + " s";
}

// classes names the bits of a bitmap.
export function classes(bits) {
  if (!bits) return "";
  const v = [];
  for (let c = 0; c < 8; c++) if (bits >> c & 1) v.push(c);
  return v.length === 8 ? "all classes" : (v.length > 1 ? "classes " : "class ") + v.join(", ");
}
