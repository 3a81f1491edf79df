// Refreshes the parts of a page that have data-fresh (the address of the part) and data-every (milliseconds). A part in
// use waits: one with an open dialog, with selected text, or in which someone types.

const last = new WeakMap(); // the HTML that each part was last made from
const kept = new WeakSet();

function busy(part) {
  const at = document.activeElement;
  const chosen = getSelection();
  return document.hidden || !chosen.isCollapsed && part.contains(chosen.anchorNode) || part.querySelector("[popover]:popover-open") || (part.contains(at) && at.matches("input, textarea, select"));
}

// What can have the focus in a part, in tab order.
const stops = (part) => [...part.querySelectorAll("a[href], button, summary, [tabindex]")].filter((e) => e.checkVisibility());

// What a stop is, whatever comes and goes around it: where it leads, or what it sends.
const means = (stop) => [stop.tagName, stop.getAttribute("href"), stop.form?.getAttribute("action"), stop.ariaLabel].join(" ");

// places says where a stop is in a part: among those that mean the same, and among all.
function places(stop, part) {
  const all = stops(part);
  return { id: stop.id, same: means(stop), nth: all.filter((e) => means(e) === means(stop)).indexOf(stop), at: all.indexOf(stop), x: stop.scrollLeft, y: stop.scrollTop };
}

// resume puts the focus on the same stop of the next state, or near it where that is gone.
function resume({ id, same, nth, at }, part) {
  const all = stops(part);
  const alike = all.filter((e) => means(e) === same);
  for (const stop of [document.getElementById(id), alike[Math.min(nth, alike.length - 1)], all[Math.min(at, all.length - 1)], document.getElementById("main")]) {
    if (document.activeElement === document.body) stop?.focus({ preventScroll: true });
  }
}

function put(part, text) {
  const template = document.createElement("template");
  template.innerHTML = text;
  const next = template.content.firstElementChild;
  if (!next || next.id !== part.id) return part;
  const folds = [part.querySelectorAll("details"), next.querySelectorAll("details")];
  for (const [at, was] of folds[0].entries()) {
    const same = was.id ? template.content.getElementById(was.id) : folds[0].length === folds[1].length && folds[1][at];
    if (same) same.open = was.open;
  }
  const active = part.contains(document.activeElement) ? document.activeElement : null;
  const place = active && places(active, part);
  const scrolled = stops(part).filter((e) => e.scrollLeft || e.scrollTop).map((e) => places(e, part));
  const said = part.querySelector("[data-say]")?.dataset.say;
  part.replaceWith(next);
  kept.add(next);
  for (const { same, nth, x, y } of scrolled) stops(next).filter((e) => means(e) === same)[nth]?.scrollTo(x, y);
  if (place) resume(place, next);
  const say = next.querySelector("[data-say]")?.dataset.say;
  if (say && say !== said) document.dispatchEvent(new CustomEvent("hookglass:announce", { detail: say }));
  document.dispatchEvent(new CustomEvent("hookglass:fresh", { detail: next.id }));
  return next;
}

const tell = (text) => document.dispatchEvent(new CustomEvent("hookglass:trouble", { detail: text }));

// stale says why a part is not updated. A single failure is not reported: the server may just be restarting.
function stale(status, failures) {
  if (status === 401) tell("You are signed out. This page stays as it is until you sign in again, for example in another tab.");
  else if (failures > 1 && navigator.onLine) tell("The server cannot be reached. This page stays as it is and updates once the server is back.");
}

async function keep(part) {
  let failures = 0;
  while (part.isConnected && part.dataset.every) {
    await new Promise((resolve) => setTimeout(resolve, Math.min(Number(part.dataset.every) * 2 ** failures, 30000)));
    if (!part.isConnected) {
      if (failures > 1) tell("");
      break;
    }
    if (busy(part)) continue;
    let status = 0;
    try {
      const answer = await fetch(part.dataset.fresh, { headers: { Accept: "text/html" } });
      status = answer.status;
      if (status === 404) return tell("What this page shows was deleted.");
      if (!answer.ok) throw new Error(status);
      const text = await answer.text();
      if (failures > 0) tell("");
      failures = 0;
      if (busy(part) || !part.isConnected || last.get(part) === text) continue;
      part = put(part, text);
      last.set(part, text);
    } catch {
      failures = Math.min(failures + 1, 5); // offline, or the server is restarting: keep what is shown
      stale(status, failures);
    }
  }
}

// Content that is loaded into a page later may bring parts of its own.
function begin() {
  for (const part of document.querySelectorAll("[data-fresh]")) {
    if (kept.has(part)) continue;
    kept.add(part);
    keep(part);
  }
}
begin();
document.addEventListener("hookglass:fresh", begin);
