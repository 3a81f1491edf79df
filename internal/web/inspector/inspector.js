// The inspector alive: requests arrive by Server-Sent Events, open beside the list, and follow the keyboard.

const root = document.querySelector("[data-inspector]");
const rows = document.getElementById("rows");
const detail = document.getElementById("detail");
const base = root.dataset.base;
const maxRows = 1000; // in the list; older ones go and can be loaded again
const say = (text) => document.dispatchEvent(new CustomEvent("hookglass:announce", { detail: text }));
const sideBySide = () => getComputedStyle(document.querySelector(".requests")).display !== "none" && getComputedStyle(detail).display !== "none";
const blank = detail.querySelector("[data-panel], [data-back]") ? null : detail.innerHTML;

// ---- One request beside the list

let opening = 0;

async function open(id, { history: entry = "push" } = {}) {
  const turn = ++opening;
  mark(id);
  detail.ariaBusy = "true";
  let html;
  try {
    const answer = await fetch(`${base}/requests/${id}/panel${location.search}`);
    if (answer.redirected || answer.status === 401) return location.reload();
    html = await answer.text();
    if (!answer.ok && answer.status !== 404) throw new Error(String(answer.status));
  } catch {
    if (turn === opening) {
      detail.ariaBusy = "false";
      say("The request could not be loaded");
      location.assign(`${base}/requests/${id}${location.search}`); // the browser says what is wrong
    }
    return;
  }
  if (turn !== opening) return; // another was opened meanwhile
  const tab = detail.querySelector('[role="tab"][aria-selected="true"]')?.id;
  detail.innerHTML = html; // rendered by this server, which escapes everything
  detail.ariaBusy = "false";
  detail.scrollTop = 0;
  const narrow = !root.hasAttribute("data-open") && getComputedStyle(detail).display === "none";
  root.setAttribute("data-open", "");
  if (narrow) scrollTo(0, 0);
  const kept = tab && document.getElementById(tab);
  if (kept && sideBySide()) select(kept);
  title(detail.querySelector("[data-panel]")?.dataset.title);
  const address = `${base}/requests/${id}${location.search}`;
  if (entry === "push") history.pushState({}, "", address);
  if (entry === "replace") history.replaceState({}, "", address);
  if (narrow) detail.focus({ preventScroll: true });
}

function close({ push = true } = {}) {
  opening++;
  const was = rows.querySelector("[aria-current]");
  mark(null);
  root.removeAttribute("data-open");
  if (blank !== null) detail.innerHTML = blank;
  title(null);
  if (push) history.pushState({}, "", base + location.search);
  was?.focus({ preventScroll: false });
}

function mark(id) {
  rows.querySelector("[aria-current]")?.removeAttribute("aria-current");
  document.getElementById(id)?.querySelector(".row")?.setAttribute("aria-current", "true");
}

const requestOf = (path) => path.startsWith(`${base}/requests/`) ? path.slice(base.length + 10) : null;
const plain = (event) => event.button === 0 && !event.ctrlKey && !event.metaKey && !event.shiftKey && !event.altKey;

root.addEventListener("click", (event) => {
  if (!plain(event)) return;
  const row = event.target.closest("a.row");
  const back = event.target.closest("a[data-back]");
  const more = event.target.closest("a[data-more]");
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

addEventListener("popstate", () => {
  const id = requestOf(location.pathname);
  if (id) open(id, { history: "keep" });
  else if (blank !== null) close({ push: false });
  else location.reload();
});

// ---- Older requests

async function load(link) {
  const item = link.parentElement;
  link.ariaDisabled = "true";
  link.textContent = "Loading…";
  try {
    const answer = await fetch(link.dataset.more);
    if (!answer.ok) throw new Error(String(answer.status));
    const part = document.createElement("template");
    part.innerHTML = await answer.text();
    const first = part.content.querySelector("a");
    item.replaceWith(part.content);
    first?.focus({ preventScroll: true });
  } catch {
    link.textContent = "Could not load. Try again";
    link.ariaDisabled = "false";
  }
}

// ---- Tabs of the detail

const tabs = () => [...detail.querySelectorAll('[role="tab"]')];

function select(tab) {
  for (const t of tabs()) {
    const on = t === tab;
    t.ariaSelected = String(on);
    t.tabIndex = on ? 0 : -1;
    document.getElementById(t.getAttribute("aria-controls")).toggleAttribute("data-shown", on);
  }
}

detail.addEventListener("click", (event) => {
  const tab = event.target.closest('[role="tab"]');
  if (tab) select(tab);
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
  select(next);
  next.focus();
});

// ---- Arrivals

let unseen = 0;
let plainTitle = root.dataset.name;

function title(text) {
  if (text !== undefined) plainTitle = text ? `${text} · ${root.dataset.name}` : root.dataset.name;
  document.title = `${unseen ? `(${unseen}) ` : ""}${plainTitle} · hookglass`;
}
plainTitle = document.title.replace(/ · hookglass$/, "");

document.addEventListener("visibilitychange", () => {
  if (!document.hidden && unseen) {
    unseen = 0;
    title();
  }
});

// Who listens hears of one request at once, and of a flood every two seconds.
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

function arrive(html) {
  const part = document.createElement("template");
  part.innerHTML = html; // rendered by this server, which escapes everything
  const item = part.content.querySelector("li");
  if (!item || document.getElementById(item.id)) return;
  const first = rows.querySelector("a.row") === null;
  item.classList.add("fresh");
  rows.prepend(item);
  for (const id of ["waiting", "none"]) {
    const empty = document.getElementById(id);
    if (empty) empty.hidden = true;
  }
  trim();
  if (document.hidden) {
    unseen++;
    title();
  }
  tell(item.querySelector("a.row").dataset.title);
  if (first && !root.hasAttribute("data-open") && sideBySide()) open(item.id, { history: "replace" });
}

// A list that grows all day would become slow. The last rows go, and the link for more begins where they were.
function trim() {
  const all = rows.querySelectorAll(":scope > li:not(.more)");
  if (all.length <= maxRows) return;
  for (const item of [...all].slice(maxRows)) {
    if (item.contains(document.activeElement) || item.querySelector("[aria-current]")) continue;
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
  query.set("cursor", rows.querySelector(":scope > li:nth-last-child(2)").dataset.at);
  link.href = `${base}?${query}`;
  link.dataset.more = `${base}/rows?${query}`;
}

// ---- The stream

const live = document.getElementById("live");
const words = { connecting: "Connecting", live: "Live", retry: "Reconnecting", ended: "Ended" };

function state(name) {
  live.dataset.state = name;
  live.textContent = words[name];
}

// EventSource connects again by itself, except where an answer was refused; and it does not notice a connection
// that died in silence, as after sleep. Both begin it anew, after the last event seen.
function follow(address) {
  let source, watch;
  let last = root.dataset.newest;
  let wait = 1000;

  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(connect, 40000); // more than two beats
    wait = 1000;
    if (live.dataset.state !== "live") state("live");
  };
  const seen = (event) => {
    if (event.lastEventId) last = event.lastEventId;
    alive();
  };

  function connect() {
    source?.close();
    clearTimeout(watch);
    const url = new URL(address, location.href);
    url.searchParams.set("after", last);
    source = new EventSource(url);
    source.addEventListener("hello", alive);
    source.addEventListener("beat", alive);
    source.addEventListener("row", (event) => {
      seen(event);
      arrive(event.data);
    });
    source.addEventListener("count", (event) => {
      seen(event);
      document.getElementById("count").textContent = Number(event.data).toLocaleString("en-US");
    });
    source.addEventListener("end", () => {
      source.close();
      clearTimeout(watch);
      state("ended");
      say("This page is no longer live: the endpoint is gone or you were signed out.");
    });
    source.addEventListener("error", () => {
      state("retry");
      if (source.readyState !== EventSource.CLOSED) return;
      clearTimeout(watch);
      watch = setTimeout(connect, wait * (0.75 + Math.random() / 2));
      wait = Math.min(wait * 2, 30000);
    });
  }
  connect();
  addEventListener("online", connect);
  addEventListener("pageshow", (event) => event.persisted && connect());
}

if (root.dataset.stream) follow(root.dataset.stream);

// ---- A test request: the stream shows it, so the page stays

root.addEventListener("submit", async (event) => {
  const form = event.target.closest("form[data-test]");
  if (!form || live?.dataset.state !== "live") return;
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  try {
    const answer = await fetch(form.action, { method: "POST", redirect: "manual" });
    if (answer.type !== "opaqueredirect" && !answer.ok) throw new Error(String(answer.status));
  } catch {
    form.submit(); // the page that comes says what is wrong
  } finally {
    button.disabled = false;
  }
});

// ---- Keyboard

function move(step) {
  const all = [...rows.querySelectorAll("a.row")];
  if (all.length === 0) return;
  const at = all.findIndex((row) => row === document.activeElement || row.ariaCurrent === "true");
  const focused = all.indexOf(document.activeElement);
  const from = focused >= 0 ? focused : at;
  const next = all[Math.min(Math.max(from + step, 0), all.length - 1)];
  if (getComputedStyle(next.closest(".requests")).display === "none") {
    open(next.parentElement.id); // one after the other: the next request takes the place of this
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
    case "Escape":
      if (!root.hasAttribute("data-open") || blank === null) return;
      close();
      break;
    default:
      return;
  }
  event.preventDefault();
});
