// Desktop notifications for requests that arrive while the page is in the background, if the user turned them on. The
// page reports arrivals with the event "hookglass:arrived"; a closed page notifies of nothing.

const button = document.getElementById("notify");
const { base, name } = document.querySelector("[data-inspector]").dataset;
const memory = `hookglass:notify:${base}`;
const pause = 5000; // milliseconds between two notifications; a flood becomes one with its count

// Without local storage the choice is not remembered.
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

let waiting = 0; // requests since the last notification
let last; // the newest of them
let timer = 0;

function notify() {
  const { id, title, what } = last;
  const body = waiting > 1 ? `${waiting} new requests` : [title, what].filter(Boolean).join("\n");
  waiting = 0;
  timer = setTimeout(() => {
    timer = 0;
    if (waiting) notify();
  }, pause);
  let n;
  try {
    // The tag makes the next notification replace this one.
    n = new Notification(name, { body, tag: memory, icon: document.querySelector('link[rel="icon"]')?.href });
  } catch {
    button.hidden = true; // phones have the constructor, but it throws
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
  last = items[0];
  if (!timer) notify();
});

// Back on the page, the user sees what waited.
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) waiting = 0;
});

// Only pages with TLS or from localhost may notify. The button stays hidden for users who have blocked notifications.
if (button && window.isSecureContext && "Notification" in window && Notification.permission !== "denied") {
  on = remembered();
  show();
  button.hidden = false;
  button.addEventListener("click", press);
}
