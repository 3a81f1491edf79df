// Desktop notifications of what arrives while the page is in the background, for who asked for them. The page tells
// of it ("hookglass:arrived"); nothing comes once it is closed.

const button = document.getElementById("notify");
const { base, name } = document.querySelector("[data-inspector]").dataset;
const memory = `hookglass:notify:${base}`;
const pause = 5000; // milliseconds between two notifications: a flood is one, and its sum

// A browser that keeps nothing has no memory of it either.
function remembered() {
  try {
    return localStorage.getItem(memory) === "on";
  } catch {
    return false;
  }
}

function remember(on) {
  try {
    if (on) localStorage.setItem(memory, "on");
    else localStorage.removeItem(memory);
  } catch {}
}

let on = false;
function show() {
  const blocked = Notification.permission === "denied";
  on &&= Notification.permission === "granted";
  button.setAttribute("aria-pressed", on);
  button.textContent = blocked ? "Blocked by the browser" : on ? "Notifying" : "Notify me";
  button.title = blocked
    ? "Your browser blocks notifications from this site"
    : on
      ? "New requests notify you while this page is in the background. Click to stop"
      : "Notify me of new requests while this page is in the background";
}

async function press() {
  if (!on && Notification.permission !== "granted") await Notification.requestPermission();
  on = !on && Notification.permission === "granted";
  remember(on);
  show();
  const said = on ? "Notifications are on" : Notification.permission === "denied" ? button.title : "Notifications are off";
  document.dispatchEvent(new CustomEvent("hookglass:announce", { detail: said }));
}

let waiting = 0; // how many came since the last notification
let last; // the newest of them
let timer = 0;

function notify() {
  const many = waiting > 1;
  const { id, title, what } = last;
  waiting = 0;
  timer = setTimeout(() => {
    timer = 0;
    if (waiting) notify();
  }, pause);
  let n;
  try {
    // A tag has the next one take the place of this one.
    n = new Notification(name, { body: many ? `${last.count} new requests` : [title, what].filter(Boolean).join("\n"), tag: memory, icon: document.querySelector('link[rel="icon"]')?.href });
  } catch {
    button.hidden = true; // phones have the word and not the thing
    return;
  }
  n.addEventListener("click", () => {
    window.focus();
    document.getElementById(id)?.querySelector("a.row")?.click();
    n.close();
  });
}

document.addEventListener("hookglass:arrived", ({ detail: items }) => {
  if (!on || !document.hidden || Notification.permission !== "granted") return;
  waiting += items.length;
  last = { ...items.at(0), count: waiting };
  if (!timer) notify();
});

// Whoever comes back has seen what waited.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) waiting = 0;
});

// Only a page that came by TLS, or from the machine itself, may notify. Who has forbidden it once is not told of it on
// every page.
if (button && window.isSecureContext && "Notification" in window && Notification.permission !== "denied") {
  on = remembered();
  show();
  button.hidden = false;
  button.addEventListener("click", press);
}
