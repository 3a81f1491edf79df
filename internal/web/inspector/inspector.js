// The live inspector: requests arrive by Server-Sent Events, open beside the list, and follow the keyboard.

const root = document.querySelector("[data-inspector]");
const rows = document.getElementById("rows");
const detail = document.getElementById("detail");
const base = root.dataset.base;
const maxRows = 1000; // in the list; older ones are dropped and can be loaded again
const say = (text) => document.dispatchEvent(new CustomEvent("hookglass:announce", { detail: text }));
const trouble = (text) => document.dispatchEvent(new CustomEvent("hookglass:trouble", { detail: text }));
const sideBySide = () => getComputedStyle(document.querySelector(".requests")).display !== "none" && getComputedStyle(detail).display !== "none";
const blank = detail.querySelector("[data-panel], [data-back]") ? null : detail.innerHTML;

// ---- One request beside the list

let opening = 0;
let loading = new AbortController(); // aborts a load when another request is opened
let slow = 0; // the timer after which a loading request is marked as loading
let lost = null; // the open request whose load failed; it is retried once the server answers

// leaves reports whether the open request may go: what was typed beside it goes with it.
const leaves = (sent = null) => document.dispatchEvent(new CustomEvent("hookglass:leave", { detail: { within: detail, sent }, cancelable: true }));

async function open(id, { history: entry = "push", tab: wanted } = {}) {
  if (entry === "push" && !leaves()) return;
  const turn = ++opening;
  loading.abort();
  loading = new AbortController();
  mark(id);
  busy(true);
  let html;
  try {
    const answer = await fetch(`${base}/requests/${id}/panel${location.search}`, { signal: loading.signal });
    if (answer.redirected || answer.status === 401) return location.assign(`${base}/requests/${id}${location.search}`); // the full page asks to sign in
    if (answer.ok || answer.status === 404) html = await answer.text();
    if (answer.status === 404) document.getElementById(id)?.setAttribute("data-gone", "");
  } catch {}
  if (turn !== opening) return; // another was opened meanwhile
  lost = html === undefined ? id : null;
  if (lost) say("The request could not be loaded");
  const tab = detail.querySelector('[role="tab"][aria-selected="true"]')?.id;
  if (!lost || !detail.querySelector("[data-again]")) {
    detail.innerHTML = html ?? document.getElementById("unloaded").innerHTML; // rendered by this server, which escapes everything
  }
  document.dispatchEvent(new CustomEvent("hookglass:fresh", { detail: "detail" }));
  fold();
  busy(false);
  detail.scrollTop = 0;
  const narrow = !root.hasAttribute("data-open") && getComputedStyle(detail).display === "none";
  const kept = document.getElementById(wanted ? `tab-${wanted}` : tab);
  // Push the address before the layout changes, so that the history entry keeps the scroll position of the list.
  const address = `${base}/requests/${id}${location.search}${kept && sideBySide() ? location.hash : ""}`;
  // The request that is open already gets no second entry, as a link to the page that one is on gets none.
  if (entry !== "keep") record(entry === "push" && requestOf(location.pathname) !== id ? "pushState" : "replaceState", address);
  root.setAttribute("data-open", "");
  if (narrow) scrollTo(0, 0);
  if (kept && (wanted || sideBySide())) select(kept);
  if (!lost) seen(id);
  title(detail.querySelector("[data-panel]")?.dataset.title ?? null);
  if (narrow) detail.focus({ preventScroll: true });
}

function close({ push = true } = {}) {
  if (push && !leaves()) return;
  opening++;
  loading.abort();
  busy(false);
  lost = null;
  const was = rows.querySelector("[aria-current]");
  mark(null);
  root.removeAttribute("data-open");
  if (blank !== null) detail.innerHTML = blank;
  title(null);
  if (push) record("pushState", base + location.search);
  (was?.isConnected ? was : rows.querySelector("a.row"))?.focus({ preventScroll: false });
}

// again retries the request whose load failed, without waiting for the stream: it may have survived the failure.
function again() {
  if (lost && detail.ariaBusy !== "true") open(lost, { history: "keep" });
}
addEventListener("online", again);

// busy marks the request as loading if that takes longer than people notice.
function busy(on) {
  detail.ariaBusy = String(on);
  clearTimeout(slow);
  if (!on) detail.removeAttribute("data-slow");
  else {
    slow = setTimeout(() => {
      detail.setAttribute("data-slow", "");
      say("Loading");
    }, 300);
  }
}

// On a phone the facts of a request are folded, and stay as they were left from request to request.
const fold = () => detail.querySelector("button[data-facts]")?.setAttribute("aria-expanded", String(detail.hasAttribute("data-facts")));
detail.addEventListener("click", (event) => {
  if (!event.target.closest("button[data-facts]")) return;
  detail.toggleAttribute("data-facts");
  fold();
});

function mark(id) {
  const was = rows.querySelector("[aria-current]");
  was?.removeAttribute("aria-current");
  const item = was?.closest("li[data-gone]");
  if (item && item.id !== id) drop(item);
  document.getElementById(id)?.querySelector(".row")?.setAttribute("aria-current", "true");
  reveal();
}

// reveal scrolls the row of the open request into view.
function reveal() {
  if (sideBySide()) rows.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

const requestOf = (path) => path.startsWith(`${base}/requests/`) ? path.slice(base.length + 10) : null;
const plain = (event) => event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;

root.addEventListener("click", (event) => {
  if (!plain(event)) return;
  const row = event.target.closest("a.row");
  const back = event.target.closest("a[data-back]");
  const more = event.target.closest("a[data-more]");
  if (event.target.closest("[data-again]")) again();
  if (row) {
    event.preventDefault();
    open(row.parentElement.id);
  } else if (back && blank !== null) {
    event.preventDefault();
    close();
  } else if (more) {
    event.preventDefault();
    load(more);
  }
});

let shown = location.href;

// record puts the address of what is shown into the history. Browsers refuse more than 100 or 200 of them in ten
// seconds, as while a key is held down, and Safari throws: the last one follows once they take it.
function record(how, address, state = {}) {
  const turn = opening;
  try {
    history[how](state, "", address);
  } catch {}
  if (location.href !== new URL(address, location.href).href) setTimeout(() => turn === opening && record(how, address, state), 1000);
  shown = location.href;
}

addEventListener("popstate", () => {
  if (location.href.split("#")[0] === shown.split("#")[0]) return; // only a place of the page, as of the link to the content
  if (!leaves()) return history.pushState({}, "", shown);
  shown = location.href;
  const id = requestOf(location.pathname);
  if (id) open(id, { history: "keep", tab: location.hash.match(/^#part-(.+)$/)?.[1] });
  else if (blank !== null) close({ push: false });
  else location.reload();
});

// ---- The list stays where it is read

// Safari moves what is read when rows come or go above it, or the bar of the selected ones. Others hold it still.
let hold = () => {};
if (!CSS.supports("overflow-anchor", "auto")) {
  const list = document.querySelector(".requests");
  const scroller = () => sideBySide() ? list : document.scrollingElement;
  let read = {}; // a row in sight, and its place in what is scrolled
  const place = (row) => row.getBoundingClientRect().top + scroller().scrollTop;
  const look = () => {
    const top = Math.max(list.getBoundingClientRect().top, 0);
    const row = [...rows.children].find((item) => item.getBoundingClientRect().bottom > top);
    read = row ? { row, within: scroller(), at: place(row) } : {};
  };
  hold = () => {
    const { row, within, at } = read;
    if (row?.isConnected && row.checkVisibility() && within === scroller() && within.scrollTop > 0) within.scrollTop += place(row) - at;
    look();
  };
  // A scroll is told before the bar that moved rows in the same frame is observed.
  addEventListener("scroll", hold, { capture: true, passive: true });
  new MutationObserver(hold).observe(rows, { childList: true, subtree: true });
  new ResizeObserver(hold).observe(document.querySelector(".bulk"));
}

// ---- Older requests

async function load(link, { focus = true } = {}) {
  if (link.ariaDisabled === "true") return;
  const item = link.parentElement;
  link.ariaDisabled = "true";
  link.textContent = "Loading…";
  try {
    const part = document.createElement("template");
    for (let from; from !== link.dataset.more;) { // trim may have changed it meanwhile
      from = link.dataset.more;
      const answer = await fetch(from);
      if (!answer.ok) throw new Error(String(answer.status));
      part.innerHTML = await answer.text();
    }
    const had = document.activeElement;
    for (const older of part.content.querySelectorAll("li[id]")) {
      const kept = document.getElementById(older.id); // by trim
      if (kept) older.replaceWith(kept);
    }
    const first = part.content.querySelector("a");
    item.replaceWith(part.content);
    (focus ? first : had)?.focus({ preventScroll: true });
    unread();
    watch();
    found();
  } catch {
    link.textContent = "Could not load. Try again";
    link.dataset.failed = "";
    link.ariaDisabled = "false";
  }
}

// regain loads older rows until the open request is in the list, after a reload or on the way back to the page.
async function regain(id) {
  for (let left = maxRows / 50; id && left > 0 && !document.getElementById(id); left--) {
    const more = rows.querySelector("a[data-more]");
    if (!more || more.ariaDisabled === "true" || more.parentElement.previousElementSibling?.id < id) break; // it is not further down
    await load(more, { focus: false });
    if ("failed" in more.dataset) break;
  }
  mark(id);
}

// found updates the note of a search that has looked at older requests.
function found() {
  const none = document.getElementById("none");
  const some = rows.querySelector("a.row") !== null;
  if (some) none.hidden = true;
  else if (!rows.querySelector("a[data-more]")) none.textContent = none.dataset.whole;
}

// counted shows how many requests a search has found: those in the list, and a plus where more may match.
const matches = document.getElementById("found"); // null: nothing is searched for
function counted() {
  if (!matches) return;
  const more = rows.querySelector(".more") || held?.length || stale;
  matches.textContent = rows.querySelectorAll(":scope > li[id]:not([data-gone])").length.toLocaleString("en-US") + (more ? "+" : "");
}
if (matches) new MutationObserver(counted).observe(rows, { childList: true, subtree: true, attributeFilter: ["data-gone"] });

// The list loads more when its end scrolls into view. The link stays for keyboard users.
const end = new IntersectionObserver((entries) => {
  for (const e of entries) if (e.isIntersecting) load(e.target, { focus: false });
}, { rootMargin: "400px" });
function watch() {
  end.disconnect();
  const more = rows.querySelector("a[data-more]");
  if (more && !("failed" in more.dataset)) end.observe(more);
}
watch();

// ---- Unread requests, remembered by this browser

const memory = `hookglass:seen:${base}`;
function recall() {
  try {
    return JSON.parse(localStorage.getItem(memory));
  } catch {
    return null; // local storage is off
  }
}
const known = recall() ?? { upTo: document.documentElement.dataset.now, ids: [] }; // by the server's clock, which dates requests
const most = 500; // ids, which sort by time: where there are more, what came before the newest of them counts as read
known.ids.sort();

function unread(items = rows.querySelectorAll(":scope > li[data-received]")) {
  for (const item of items) {
    const fresh = item.dataset.received > known.upTo && !known.ids.includes(item.id) && !(known.ids.length >= most && item.id < known.ids[0]);
    if (fresh === item.hasAttribute("data-unread")) continue;
    item.toggleAttribute("data-unread", fresh);
    const row = item.querySelector(".row");
    if (fresh) {
      const mark = document.createElement("span");
      mark.className = "unread-mark";
      mark.textContent = "unread";
      row.append(mark);
    } else row.querySelector(".unread-mark")?.remove();
  }
}

function seen(id) {
  const elsewhere = recall()?.ids ?? []; // in other tabs
  known.ids = [...new Set([...known.ids, ...elsewhere, id])].sort().slice(-most);
  remember();
  unread();
}

function remember() {
  try {
    localStorage.setItem(memory, JSON.stringify(known));
  } catch {} // local storage is off
}
remember();
unread();
const opened = detail.querySelector("[data-panel]")?.dataset.panel;
if (opened) seen(opened);
reveal();
if (opened && ["reload", "back_forward"].includes(performance.getEntriesByType("navigation")[0]?.type)) regain(opened);

// ---- Tabs of the detail

const tabs = () => [...detail.querySelectorAll('[role="tab"]')];

function select(tab) {
  for (const t of tabs()) {
    const on = t === tab;
    t.ariaSelected = String(on);
    t.tabIndex = on ? 0 : -1;
    document.getElementById(t.getAttribute("aria-controls")).toggleAttribute("data-shown", on);
  }
  tab.parentElement.scrollLeft = tab.offsetLeft - tab.parentElement.offsetLeft - 40; // the tabs of a phone are one row that is pushed aside
}

// choose selects a tab for a person. It puts the tab into the address, so that a reload or a shared link leads to it.
function choose(tab) {
  select(tab);
  if (requestOf(location.pathname)) record("replaceState", `#${tab.getAttribute("aria-controls")}`, history.state);
}

const linked = location.hash && tabs().find((t) => `#${t.getAttribute("aria-controls")}` === location.hash);
if (linked) select(linked);

detail.addEventListener("click", (event) => {
  const tab = event.target.closest('[role="tab"]');
  if (tab) choose(tab);
});

detail.addEventListener("keydown", (event) => {
  const tab = event.target.closest('[role="tab"]');
  if (!tab) return;
  const all = tabs();
  const at = all.indexOf(tab);
  const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = all[(to + all.length) % all.length];
  choose(next);
  next.focus();
});

// tally shows in the tab of a part the count, or another word, that an element has for it.
function tally(part, { count, bad }) {
  const tab = document.getElementById(`tab-${part}`);
  tab.querySelector(".count")?.remove();
  if (!count) return;
  const told = document.createElement("span");
  told.className = bad === undefined ? "count" : "count bad";
  told.textContent = count;
  tab.append(told);
}

document.addEventListener("hookglass:fresh", (event) => {
  if (event.detail === "deliveries") tally("deliveries", document.getElementById("deliveries").dataset);
});

// ---- Colours of tags: rules for whatever names one, so that what arrives later has its colours too

const colours = new CSSStyleSheet(); // the content policy forbids styles in the markup
for (const tag of document.querySelectorAll("#bulk-tags [data-color]")) {
  colours.insertRule(`.badge.tag[title="${CSS.escape(tag.value)}"]::before { content: ""; background: ${tag.dataset.color}; }`);
}
document.adoptedStyleSheets.push(colours);

// ---- Arrivals

let unseen = 0;
let plainTitle = document.title.replace(/ · hookglass$/, "");

function title(text) {
  if (text !== undefined) plainTitle = text ? `${text} · ${root.dataset.name}` : root.dataset.name;
  document.title = `${unseen ? `(${unseen}) ` : ""}${plainTitle} · hookglass`;
}

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && unseen) {
    unseen = 0;
    title();
  }
});

// Screen readers hear of a single request at once, and of a flood every two seconds.
let untold = 0;
let telling = 0;

function tell(request) {
  if (telling) {
    untold++;
    return;
  }
  say(`New request: ${request}`);
  const later = () => {
    telling = untold ? setTimeout(later, 2000) : 0;
    if (untold) say(untold === 1 ? "1 more new request" : `${untold} more new requests`);
    untold = 0;
  };
  telling = setTimeout(later, 2000);
}

// In a flood many rows arrive between two frames. They are inserted together and without the fading highlight.
let coming = [];
let lately = 0; // rows inserted within the last second
let grown = 0; // rows inserted above the reader since the list was last within its limit

function arrive(html) {
  if (held !== null) {
    if (held.push(html) > maxRows) {
      held.shift();
      passed++;
    }
    pausing();
  } else if (coming.push(html) === 1) setTimeout(put);
}

function put() {
  const part = document.createElement("template");
  part.innerHTML = coming.reverse().join(""); // rendered by this server, which escapes everything
  coming = [];
  const items = [...part.content.children].filter((item) => item.id && !document.getElementById(item.id) && part.content.getElementById(item.id) === item);
  if (items.length === 0) return;
  const first = rows.querySelector("a.row, a[data-more]") === null;
  if (lately < 5) for (const item of items) item.classList.add("fresh");
  grown += items.length;
  lately += items.length;
  setTimeout(() => lately -= items.length, 1000);
  unread(items);
  rows.prepend(...items);
  for (const id of ["waiting", "none"]) {
    const empty = document.getElementById(id);
    if (empty) empty.hidden = true;
  }
  trim();
  if (document.hidden) {
    unseen += items.length;
    title();
  }
  for (const item of items.toReversed()) tell(item.querySelector("a.row").dataset.title);
  document.dispatchEvent(new CustomEvent("hookglass:arrived", { detail: items.map(described) }));
  if (first && !root.hasAttribute("data-open") && sideBySide()) open(items.at(-1).id, { history: "replace" });
}

const described = (item) => ({ id: item.id, title: item.querySelector("a.row").dataset.title, what: item.querySelector(".row-what").textContent });

// trim keeps a list that grows all day fast. It drops the last rows, except those in use, and the link for more starts
// where they were. A reader who has scrolled that far keeps the rows there, unless requests are missing above them; if
// more arrive above than the list holds, the list pauses.
function trim() {
  hold(); // before it asks which rows are in sight
  const all = rows.querySelectorAll(":scope > li:not(.more)");
  if (all.length < maxRows || all.length === maxRows && !gap) {
    grown = 0;
    return;
  }
  const end = all[maxRows]?.getBoundingClientRect();
  if (!gap && end.height > 0 && end.top < innerHeight) {
    if (grown > maxRows && held === null) pause(true);
    return;
  }
  gap = false;
  grown = 0;
  cut([...all].slice(maxRows), all[maxRows - 1].dataset.at);
}

// cut removes rows, except those in use, and makes the link for more continue at the given place.
function cut(items, place) {
  for (const item of items) {
    if (item.contains(document.activeElement) || item.querySelector("[aria-current], .pick:checked")) continue;
    item.remove();
  }
  let more = rows.querySelector(".more");
  if (!more) {
    more = document.createElement("li");
    more.className = "more";
    const link = document.createElement("a");
    link.className = "button";
    link.textContent = "Load more";
    more.append(link);
    rows.append(more);
  }
  const link = more.querySelector("a");
  const query = new URLSearchParams(location.search);
  query.set("cursor", place);
  link.href = `${base}?${query}`;
  link.dataset.more = `${base}/rows?${query}`;
}

// ---- Changes to listed requests: marked by an action, or deleted elsewhere

let renewing = false;
let outdated = null; // what to read: "new" until a listed request is met, "all" for the whole list

// renew reads the list again. Only one read runs at a time, so a flood of changes is read at the pace of the server.
async function renew(reach = "new") {
  outdated = outdated === "all" ? "all" : reach;
  if (renewing) return;
  renewing = true;
  while (outdated) {
    const far = outdated === "all";
    outdated = null;
    try {
      await read(far);
      await marks();
    } catch {
      break; // the next change, or the stream when it is back, reads again
    }
  }
  renewing = false;
}

async function read(far) {
  const before = new Set([...rows.children].map((item) => item.id));
  const now = new Map();
  let more;
  for (let from = `${base}/rows${location.search}`, left = maxRows; from && left > 0 && !meets(now, far); from = more?.querySelector("a").dataset.more) {
    const answer = await fetch(from);
    if (!answer.ok || answer.redirected) return;
    const part = document.createElement("template");
    part.innerHTML = await answer.text(); // rendered by this server, which escapes everything
    more = part.content.querySelector(".more");
    for (const item of part.content.querySelectorAll("li[id]")) now.set(item.id, item);
    left -= Math.max(part.content.childElementCount, 1);
  }
  merge(now, more, before);
}

// meets reports whether the rows that were read overlap the list: its beginning, or its end.
function meets(now, far) {
  const listed = [...rows.querySelectorAll(":scope > li[id]")];
  return far ? now.has(listed.at(-1)?.id) : listed.some((item) => now.has(item.id));
}

// merge updates the beginning of the list to the rows that were read; older rows stay as they were loaded. A paused
// list gets no new rows. A row that was listed before the read began and is not among the rows read was deleted.
function merge(now, more, before) {
  const listed = [...rows.querySelectorAll(":scope > li[id]")];
  const shared = listed.findLastIndex((item) => now.has(item.id));
  if (shared < 0 && more && held !== null) return; // so many wait that no listed row was read, and none may have gone
  const whole = !more || shared < 0; // no listed row comes after the rows that were read
  for (const item of listed.slice(0, whole ? listed.length : shared + 1)) if (before.has(item.id) && !now.has(item.id)) gone(item);
  let next; // the row before which a new row is inserted; undefined: after the list, where the link loads it
  if (whole) {
    rows.querySelector(".more")?.remove();
    if (more) rows.append(more);
    next = more;
  }
  for (const item of [...now.values()].toReversed()) {
    const has = document.getElementById(item.id);
    if (has) {
      const [shown, known] = [has, item].map((one) => one.querySelector(".row-sub"));
      if (shown.innerHTML !== known.innerHTML) shown.replaceWith(known);
      delete has.dataset.gone;
      next = has;
    } else if (next !== undefined && held === null) {
      rows.insertBefore(item, next);
      next = item;
    }
  }
  unread();
  trim();
  watch();
  empty();
}

// marks updates the marks of the open request, and says if it was deleted.
async function marks() {
  const id = detail.querySelector("[data-panel]")?.dataset.panel;
  if (!id) return;
  const turn = opening;
  const answer = await fetch(`${base}/requests/${id}/marks`);
  if (!answer.ok || answer.redirected) return;
  const part = document.createElement("template");
  part.innerHTML = await answer.text(); // rendered by this server, which escapes everything
  if (turn !== opening) return; // another was opened meanwhile
  const stop = stopped();
  for (const now of part.content.children) {
    const shown = detail.querySelector(`[data-mark="${now.dataset.mark}"]`);
    const same = now.dataset.state ? now.dataset.state === shown?.dataset.state : now.outerHTML === shown?.outerHTML;
    if (!shown || same || shown.querySelector("select:focus, details[open]")) continue;
    shown.replaceWith(now.cloneNode(true));
    if (now.dataset.mark === "signature") tally("signature", now.dataset);
  }
  resume(stop);
}

// gone removes a row that was deleted or no longer matches the search. The open request stays until another is opened.
function gone(item) {
  if (!item.querySelector("[aria-current]")) return drop(item);
  item.dataset.gone = "";
}

function drop(item) {
  const at = item.contains(document.activeElement);
  const beside = at && (item.nextElementSibling ?? item.previousElementSibling)?.querySelector("a");
  item.remove();
  if (at) (beside || detail).focus({ preventScroll: true });
  count();
  empty();
}

// empty shows the note of an empty list.
function empty() {
  const none = rows.childElementCount === 0;
  const note = document.getElementById("waiting") ?? document.getElementById("none");
  note.hidden = !none;
  if (!none) document.getElementById("none").hidden = true;
}

// ---- The stream

const live = document.getElementById("live");
const words = { connecting: "Connecting", live: "Live", paused: "Paused", retry: "Reconnecting", out: "Signed out", ended: "Ended" };
const fresh = document.getElementById("new");
let held = null; // rows that arrived while paused, at most as many as the list holds; null: not paused
let passed = 0; // rows that arrived while paused beyond those
let gap = false; // whether rows are missing below the ones that waited
let stale = false; // whether waiting rows may have been marked or deleted
let skipped = null; // where the list continues after the waiting rows, if the stream left out requests before them

function state(name) {
  if (name === "live" && held !== null) name = "paused";
  live.dataset.state = name;
  live.textContent = words[name];
  live.ariaPressed = String(held === null);
}

function pausing() {
  counted();
  fresh.hidden = !held?.length;
  fresh.textContent = held?.length ? `${(held.length + passed).toLocaleString("en-US")}${skipped ? "+" : ""} new` : "";
}

// skip handles a stream that leaves out requests because there are too many. All listed rows are older than those, and
// are loaded again below them.
function skip(place) {
  coming = [];
  if (held === null) return cut(rows.querySelectorAll(":scope > li:not(.more)"), place);
  held = [];
  passed = 0;
  skipped = place;
  pausing();
}

// release inserts the waiting rows.
function release() {
  const waiting = held ?? [];
  held = null;
  if (skipped) skip(skipped);
  skipped = null;
  gap ||= passed > 0;
  passed = 0;
  for (const html of waiting) arrive(html);
  if (stale) renew();
  stale = false;
}

// The stream goes on while the list is paused, so that nothing is missed; new rows wait.
function pause(on) {
  if (!live || ["out", "ended"].includes(live.dataset.state)) return;
  release();
  if (on) held = [];
  state(live.dataset.state === "paused" ? "live" : live.dataset.state);
  pausing();
  say(on ? "Paused. New requests wait until you resume" : "Live");
}
live?.addEventListener("click", () => pause(held === null));
fresh?.addEventListener("click", () => {
  release();
  put();
  held = [];
  pausing();
  rows.querySelector("a.row")?.focus();
});

// EventSource reconnects by itself, except after an error status, and it does not notice a connection that died
// silently, as during sleep. In both cases follow opens a new one after the last event seen.
function follow(address) {
  let source, watch, turn, place, asking;
  let last = root.dataset.newest;
  let marked = ""; // stands for the marks of the requests that were listed
  let wait = 1000;

  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(connect, 40000); // more than two beats
    wait = 1000;
    if (live.dataset.state === "live" || live.dataset.state === "paused") return;
    const was = live.dataset.state;
    state("live");
    trouble("");
    again();
    if (was === "retry" || was === "out") renew();
  };
  const heard = (event) => {
    if (event.lastEventId) last = event.lastEventId;
    alive();
  };

  const ended = () => ["out", "ended"].includes(live.dataset.state);
  const told = (total) => {
    document.getElementById("count").textContent = Number(total).toLocaleString("en-US");
    counted();
  };

  // settle keeps the stream if a place is free, and polls otherwise. Either way the page gets all that it missed.
  async function settle() {
    const where = document.hidden ? "hidden" : "shown";
    if (asking || ended() || place?.where === where) return;
    leave();
    if (where === "shown" && roomy()) return;
    asking = true;
    const free = await takePlace(where);
    asking = false;
    if (ended()) return free?.();
    place = free && { where, free };
    if (document.hidden !== (where === "hidden")) settle(); // visibility changed meanwhile
    else if (!place) rest(pauses[where]);
  }

  function leave() {
    place?.free();
    place = null;
  }

  function rest(pause) {
    source.close();
    clearTimeout(watch);
    clearTimeout(turn);
    turn = setTimeout(connect, pause);
  }

  function later() {
    rest(wait * (0.75 + Math.random() / 2));
    wait = Math.min(wait * 2, 30000);
  }

  function connect() {
    source?.close();
    clearTimeout(watch);
    clearTimeout(turn);
    turn = 0;
    const url = new URL(address, location.href);
    url.searchParams.set("after", last);
    url.searchParams.set("marks", marked);
    source = new EventSource(url);
    source.addEventListener("hello", alive);
    source.addEventListener("current", (event) => {
      marked = event.data;
      settle();
    });
    source.addEventListener("beat", () => {
      alive();
      again();
    });
    source.addEventListener("row", (event) => {
      heard(event);
      arrive(event.data);
    });
    source.addEventListener("skip", (event) => {
      alive();
      skip(event.data);
    });
    source.addEventListener("count", (event) => {
      heard(event);
      told(event.data);
    });
    source.addEventListener("changed", (event) => {
      const [total, reach] = event.data.split(" ");
      alive();
      stale ||= held !== null;
      told(total);
      renew(reach);
    });
    source.addEventListener("end", (event) => {
      source.close();
      clearTimeout(watch);
      leave();
      // The visitor of a temporary endpoint has no account to sign in with.
      if (event.data === "signed out" && !root.hasAttribute("data-temporary")) {
        state("out");
        trouble("You are signed out. This page stays as it is until you sign in again, for example in another tab.");
        later();
        return;
      }
      state("ended");
      trouble("This page is no longer live: the endpoint was deleted or you were signed out. Reload the page.");
    });
    source.addEventListener("error", ({ target }) => {
      if (target !== source) return target.close(); // on the way back to a page, Safari opens again what was closed
      if (!ended()) state("retry");
      if (source.readyState === EventSource.CLOSED) later();
    });
  }
  connect();
  // Firefox closes a stream without an event when something leaves the page, even if the page stays: a form whose
  // answer is a file, a link that was stopped.
  setInterval(() => !turn && !ended() && source.readyState === EventSource.CLOSED && connect(), 500);
  // Safari stops a stream in the same way, and says that it is open. What leaves the page announces itself.
  addEventListener("beforeunload", () => setTimeout(() => !turn && !ended() && connect(), 500));
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || source.readyState === EventSource.OPEN) settle();
    else if (!ended()) {
      connect();
      renew();
    } else if (live.dataset.state === "out") connect();
  });
  addEventListener("pagehide", leave);
  addEventListener("online", connect);
  addEventListener("pageshow", (event) => event.persisted && connect());
}

// Without HTTP/2 a browser opens six connections to a site for all tabs together, so six streams would block all other
// requests. Only this many visible tabs (in windows side by side) and background tabs stream, if the browser lets tabs
// coordinate (on localhost, or with TLS). The others poll.
const places = { shown: 2, hidden: 3 };
const pauses = { shown: 1000, hidden: 5000 }; // milliseconds

// roomy reports whether a visible tab needs no place: HTTP/2 shares one connection, or tabs cannot coordinate.
function roomy() {
  return !navigator.locks || /^h[23]/.test(performance.getEntriesByType("navigation")[0]?.nextHopProtocol ?? "");
}

// takePlace returns a function that gives the place back, or null if none is free.
async function takePlace(where) {
  for (let i = 0; navigator.locks && i < places[where]; i++) {
    const free = await new Promise((answer) => {
      const claim = (lock) => lock ? new Promise(answer) : answer(null);
      navigator.locks.request(`${where} ${i}`, { ifAvailable: true }, claim).catch(() => answer(null));
    });
    if (free) return free;
  }
  return null;
}

if (root.dataset.stream) follow(root.dataset.stream);

// A button that is disabled while a form is sent loses the focus.
function enable(button) {
  if (!button) return;
  button.disabled = false;
  if (document.activeElement === document.body) button.focus({ preventScroll: true });
}

// ---- A test request: the stream shows it, so the page stays, as it does while the server is away

root.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-test]");
  if (!form) return;
  event.preventDefault();
  const button = event.submitter ?? form.querySelector("[type=submit]");
  const fault = form.querySelector(".fault");
  const show = fault ? (text) => (fault.textContent = text, fault.hidden = !text) : trouble;
  let sent = false;
  button.disabled = true;
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" });
    sent = answer.type === "opaqueredirect";
    show(sent ? "" : await refusal(answer));
  } catch {
    show("The server could not be reached. Try again.");
  }
  enable(button);
  if (!sent) return;
  form.closest("[popover]")?.hidePopover(); // gives the focus back
  if (!["live", "paused"].includes(live?.dataset.state)) location.reload();
});

// ---- Forms of the detail: sent without leaving the page, which then shows the result

async function refusal(answer) {
  if (answer.status === 401 && !root.hasAttribute("data-temporary")) return "You are signed out. Sign in again, for example in another tab, then try again.";
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  return page.querySelector("[data-problem]")?.textContent.trim() || "Something went wrong. Try again.";
}

// The focusable elements of the detail, in tab order. A menu closes with its form, so its button stands for its items.
const stops = () => [...detail.querySelectorAll("a[href], button, summary, input, select, textarea")];
function stopped() {
  const active = document.activeElement;
  const menu = active?.closest("#detail [popover]");
  return stops().indexOf(menu ? detail.querySelector(`[popovertarget="${menu.id}"]`) : active);
}
// resume puts the focus back where it was, or on the button of the menu that closed, unless it has moved since.
function resume(stop) {
  if (document.activeElement !== document.body) return;
  const at = stops()[stop];
  for (const one of [at, at?.closest("details")?.querySelector("summary")]) if (document.activeElement === document.body) one?.focus({ preventScroll: true });
}

root.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-part]");
  if (!form) return;
  event.preventDefault();
  if (!leaves(form)) return;
  const id = detail.querySelector("[data-panel]").dataset.panel;
  const button = event.submitter;
  const fault = (form.closest("[popover]") ?? form).querySelector(".fault") ?? document.getElementById("detail-fault"); // not behind an open menu
  const word = button?.textContent;
  const turn = opening;
  fault.hidden = true;
  let stop = stopped();
  if (button) button.disabled = true;
  if (["replays", "releases"].includes(form.dataset.part) && button) button.textContent = "Sending…";
  try {
    const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" });
    if (answer.type !== "opaqueredirect") throw new Error(await refusal(answer));
    const dialog = form.closest("dialog[open]");
    dialog?.close(); // close moves the focus to the button that opened the dialog
    if (dialog) stop = stopped();
    if (turn === opening) {
      await open(id, { history: "keep", tab: form.dataset.part || undefined });
      resume(stop);
    } // otherwise the user has moved on, and stays there
    row(id);
    say(form.dataset.part === "replays" ? "Replayed" : "Done");
  } catch (e) {
    fault.textContent = e instanceof TypeError ? "The server could not be reached. Try again." : e.message;
    fault.hidden = false;
  } finally {
    if (button) button.textContent = word;
    enable(button);
  }
});

// row reloads the row of a request.
async function row(id) {
  const item = document.getElementById(id);
  if (!item) return;
  const answer = await fetch(`${base}/requests/${id}/row${location.search}`);
  if (!answer.ok) return;
  const part = document.createElement("template");
  part.innerHTML = await answer.text();
  const renewed = part.content.querySelector("li");
  if (!renewed) return;
  if (item.querySelector("[aria-current]")) renewed.querySelector(".row").setAttribute("aria-current", "true");
  const box = item.querySelector(".pick");
  if (box) renewed.querySelector(".pick").checked = box.checked;
  const at = item.contains(document.activeElement) ? `.${document.activeElement.classList[0]}` : null;
  item.replaceWith(renewed);
  if (at) renewed.querySelector(at)?.focus({ preventScroll: true });
  unread();
}

detail.addEventListener("click", (event) => {
  const button = event.target.closest("[data-replay]");
  if (button) {
    event.preventDefault();
    showReplay();
  }
  if (event.target.closest("[data-close]")) {
    event.preventDefault();
    event.target.closest("dialog")?.close();
  }
  const link = event.target.closest("[data-copy-link]");
  if (link) link.dataset.copy = new URL(link.dataset.copyLink, location.href).href;
}, true);

// Who opens the form of a note goes on typing.
detail.addEventListener("toggle", (event) => {
  if (event.target.matches(".noted details[open]") && event.target.contains(document.activeElement)) event.target.querySelector("textarea").focus();
}, true);

function showReplay() {
  const dialog = document.getElementById("replay-form");
  if (!dialog || dialog.open) return;
  dialog.showModal();
  const target = dialog.querySelector("[name=target_url]");
  target.focus();
  target.select(); // typing replaces the last target
}

// ---- Several at once

const bulk = document.getElementById("bulk");
const picked = () => [...bulk.querySelectorAll(".pick:checked")];
function count() {
  const n = picked().length;
  document.getElementById("bulk-count").textContent = `${n} selected`;
  bulk.toggleAttribute("data-picking", n > 0);
  const compare = bulk.querySelector('[value="compare"]');
  if (compare) compare.disabled = n !== 2;
}
bulk.addEventListener("change", (event) => event.target.matches(".pick") && count());
// A click with Shift applies to all boxes between this one and the one clicked before.
let lastPick = null;
bulk.addEventListener("click", (event) => {
  if (!event.target.matches(".pick")) return;
  const boxes = [...bulk.querySelectorAll(".pick")];
  const ends = [boxes.indexOf(event.target), boxes.findIndex((box) => box.value === lastPick)].sort((a, b) => a - b);
  if (event.shiftKey && ends[0] >= 0) for (const box of boxes.slice(ends[0], ends[1] + 1)) box.checked = event.target.checked;
  lastPick = event.target.value;
});
bulk.addEventListener("mousedown", (event) => event.shiftKey && event.target.closest(".pick-box") && event.preventDefault()); // otherwise it selects text
document.getElementById("bulk-none").addEventListener("click", () => {
  for (const box of picked()) box.checked = false;
  count();
});
// Enter presses the first button of a form, which is not the one beside this field.
bulk.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.target.name !== "target_url") return;
  event.preventDefault();
  bulk.requestSubmit(bulk.querySelector('[value="replay"]'));
});
bulk.addEventListener("submit", (event) => {
  const empty = bulk.elements.namedItem({ tag: "tag", replay: "target_url" }[event.submitter?.value] ?? "");
  if (empty && !empty.value.trim()) {
    event.preventDefault();
    event.stopPropagation();
    empty.focus();
    return;
  }
  if (event.submitter?.value === "compare") history.replaceState({ ...history.state, picked: picked().map((box) => box.value) }, "");
});
// What is refused, such as the target of replays, stays as it is, and says why.
bulk.addEventListener("submit", async (event) => {
  const button = event.submitter;
  if (event.defaultPrevented || !button?.matches("[data-stays]")) return;
  event.preventDefault();
  if (bulk.dataset.sent) return;
  bulk.dataset.sent = "yes"; // until the next page is there, so that a second click does not do it again
  const faults = [...bulk.querySelectorAll(".fault")];
  for (const fault of faults) fault.hidden = true;
  button.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(bulk.action, { method: "POST", body: new URLSearchParams(new FormData(bulk, button)) });
    if (!answer.ok) throw new Error(await refusal(answer));
    location.assign(answer.url);
  } catch (e) {
    const fault = faults.find((one) => one.closest("[popover]") === button.closest("[popover]"));
    fault.textContent = e instanceof TypeError ? "The server could not be reached. Try again." : e.message;
    fault.hidden = false;
    button.removeAttribute("aria-busy");
    delete bulk.dataset.sent;
  }
});
// On the way back from a comparison, the compared requests are selected again.
function repick() {
  const compared = location.hash.match(/^#picked=(.+)/)?.[1].split(",") ?? history.state?.picked;
  if (compared) {
    for (const box of bulk.querySelectorAll(".pick")) box.checked = compared.includes(box.value);
    history.replaceState({ ...history.state, picked: null }, "", location.href.replace(/#picked=.*/, ""));
  }
  count();
}
repick();
// Safari unticks the boxes of a page that it shows again as it left it, in a task of its own.
addEventListener("pageshow", (event) => event.persisted && setTimeout(repick));

function pick() {
  const item = (document.activeElement.closest?.("#rows > li") ?? rows.querySelector("[aria-current]")?.closest("li"));
  const box = item?.querySelector(".pick");
  if (!box) return;
  box.checked = !box.checked;
  count();
  say(`${box.checked ? "Selected" : "Not selected"}, ${picked().length} in all`);
}
document.getElementById("pick").addEventListener("click", pick); // from the palette, where single keys are off

// ---- Keyboard

function move(step) {
  const all = [...rows.querySelectorAll("a.row")];
  if (all.length === 0) return;
  const at = all.findIndex((row) => row === document.activeElement || row.ariaCurrent === "true");
  const focused = all.indexOf(document.activeElement);
  const from = focused >= 0 ? focused : at;
  const next = all[Math.min(Math.max(from + step, 0), all.length - 1)];
  if (getComputedStyle(next.closest(".requests")).display === "none") {
    open(next.parentElement.id); // in reading order: the next request replaces this one
    return;
  }
  next.focus();
  next.scrollIntoView({ block: "nearest" });
  if (sideBySide()) open(next.parentElement.id);
}

document.addEventListener("hookglass:key", (event) => {
  switch (event.detail) {
    case "j":
      move(1);
      break;
    case "k":
      move(-1);
      break;
    case "/":
      if (root.hasAttribute("data-open") && !sideBySide()) return;
      document.getElementById("q").focus();
      break;
    case "c":
      detail.querySelector("[data-curl]")?.click();
      break;
    case "x":
      pick();
      break;
    case "l":
      pause(held === null);
      break;
    case "r":
      showReplay();
      break;
    case "t": {
      const several = picked().length > 0;
      const menu = document.getElementById("more-actions");
      if (!several) menu?.showPopover();
      (several ? bulk : menu)?.querySelector('[name="tag"]')?.focus();
      break;
    }
    case "i":
      if (picked().length > 0) bulk.querySelector('[value="ignore"]')?.click();
      else detail.querySelector("[data-ignore]")?.click();
      break;
    case "Escape":
      if (!root.hasAttribute("data-open")) return;
      if (blank !== null) close();
      else detail.querySelector("[data-back]")?.click(); // opened by its address: the list is another page
      break;
    default: {
      const tab = /^[1-9]$/.test(event.detail) && tabs()[event.detail - 1];
      if (!tab) return;
      choose(tab);
      say(tab.textContent.trim());
    }
  }
  event.preventDefault();
});
