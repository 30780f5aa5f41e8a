"use strict";
// A click on a legend hides or shows what bears its key.
for (const button of document.querySelectorAll(".legend button")) {
  button.addEventListener("click", () => {
    const off = !button.classList.contains("off");
    for (const e of document.querySelectorAll("[data-k]")) {
      if (e.dataset.k !== button.dataset.k) continue;
      e.classList.toggle(e.tagName === "BUTTON" ? "off" : "hide", off);
    }
  });
}
// The values under the pointer, read off the axes.
const at = document.getElementById("at");
function value(axis, part) {
  const [kind, lo, hi, ...unit] = axis.split(" ");
  const a = +lo, b = +hi, u = unit.join(" ");
  let v = a + (b - a) * part;
  if (kind === "log") v = a * Math.pow(b / a, part);
  if (kind === "nines") return (100 * (1 - Math.pow(1 - a, 1 - part) * Math.pow(1 - b, part))).toFixed(3) + " %";
  if (kind === "ord") return "";
  if (u === "%") return (100 * v).toFixed(1) + " %";
  const units = ["n", "µ", "m", "", "k", "M", "G", "T"];
  const e = v === 0 ? 0 : Math.max(-3, Math.min(4, Math.floor(Math.log10(Math.abs(v)) / 3)));
  return ["s", "B", "b/s"].includes(u) ? (v / Math.pow(1000, e)).toPrecision(3) + " " + units[e + 3] + u : (+v.toPrecision(4)) + (u ? " " + u : "");
}
for (const svg of document.querySelectorAll("figure > svg")) {
  const [x, y, w, h] = svg.dataset.in.split(" ").map(Number);
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
    const px = ((event.clientX - box.left) * scale - x) / w, py = ((event.clientY - box.top) * scale - y) / h;
    at.hidden = px < 0 || px > 1 || py < 0 || py > 1;
    if (at.hidden) return;
    at.textContent = [value(svg.dataset.x, px), value(svg.dataset.y, 1 - py)].filter(Boolean).join("  ·  ");
    at.style.left = Math.min(event.clientX + 14, innerWidth - at.offsetWidth - 8) + "px";
    at.style.top = event.clientY + 16 + "px";
  });
  svg.addEventListener("pointerleave", () => { at.hidden = true; });
}
