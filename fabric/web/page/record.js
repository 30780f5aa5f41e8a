// The slider of a record: which instant is shown, and how much before it.

const $ = (id) => document.getElementById(id);
const units = { s: 1, ms: 1e-3, us: 1e-6, "µs": 1e-6, ns: 1e-9 };

// seconds reads a time such as 12.304s, 300us or 2; NaN if it is none.
export function seconds(text) {
  const m = /^\s*(\d+\.?\d*|\.\d+)\s*(s|ms|us|µs|ns|)\s*$/.exec(text || "");
  return m ? Number(m[1]) * units[m[2] || "s"] : NaN;
}

// text writes a time so that nothing of its nanoseconds is lost.
export function text(t) {
  return t.toFixed(9).replace(/0+$/, "").replace(/\.$/, "") + "s";
}

// slide shows a record of so many seconds, from an instant on. show gets its samples, or
// what went wrong.
export function slide(length, first, show) {
  let busy = false, wanted = null;
  $("slider").hidden = false;
  $("when").max = length;
  $("took").textContent = "of " + text(length);
  for (const part of [1, 0.1, 0.01, 0.001]) {
    const o = document.createElement("option");
    o.value = length * part;
    o.textContent = Number((length * part).toPrecision(2)) + " s before";
    o.selected = part === 0.1;
    $("span").append(o);
  }

  async function ask() {
    if (busy) return;
    busy = true;
    while (wanted !== null) { // only the last one that was asked for meanwhile
      const t = wanted;
      wanted = null;
      try {
        const r = await fetch(`api/at?t=${text(t)}&span=${text(Number($("span").value))}&n=120`);
        if (r.ok) show(await r.json(), ""); else show(null, await r.text());
      } catch (e) {
        show(null, "There is no answer: " + e.message);
      }
    }
    busy = false;
  }

  function go(t) {
    t = Math.min(length, Math.max(0, t));
    $("when").value = t;
    $("instant").value = text(t);
    const q = new URLSearchParams(location.search);
    q.set("at", text(t));
    history.replaceState(null, "", "?" + q + location.hash);
    wanted = t;
    ask();
  }

  const now = () => Number($("when").value);
  $("when").addEventListener("input", () => go(now()));
  $("span").addEventListener("change", () => go(seconds($("instant").value)));
  $("earlier").addEventListener("click", () => go(now() - Number($("span").value) / 100));
  $("later").addEventListener("click", () => go(now() + Number($("span").value) / 100));
  $("instant").addEventListener("change", () => {
    const t = seconds($("instant").value);
    $("instant").setCustomValidity(Number.isNaN(t) ? "A time, such as 12.304s or 300us" : "");
    if (Number.isNaN(t)) $("instant").reportValidity(); else go(t);
  });
  $("slider").addEventListener("submit", (ev) => ev.preventDefault());
  const t = seconds(first);
  go(Number.isNaN(t) ? length : t);
}
