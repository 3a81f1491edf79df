// What every page does: copy, count ages on, and show the keyboard's shortcuts.

const announce = (text) => {
  document.getElementById("announce").textContent = text;
};

// The clipboard API needs a secure context and a permission; a server on the local network by plain http has neither.
async function copy(text) {
  try {
    return await navigator.clipboard.writeText(text);
  } catch {}
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("not copied");
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-of]");
  if (!button) return;
  const text = button.dataset.copy ?? document.getElementById(button.dataset.copyOf).textContent;
  const had = document.activeElement;
  try {
    await copy(text);
    button.dataset.copied = "yes";
    announce("Copied");
  } catch {
    button.dataset.copied = "no";
    announce("Could not copy");
  }
  had?.focus?.({ preventScroll: true });
  clearTimeout(button.copiedTimer);
  button.copiedTimer = setTimeout(() => delete button.dataset.copied, 1500);
});

// Ages, in the words of show.Ago.
function ago(then, now) {
  const seconds = Math.floor((now - then) / 1000);
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${seconds}s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)}h ago`;
  return `${Math.floor(seconds / 86400)}d ago`;
}

function age() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const text = ago(Date.parse(time.dateTime), now);
    if (time.textContent !== text) time.textContent = text;
  }
}
setInterval(() => document.hidden || age(), 5000);
document.addEventListener("visibilitychange", () => document.hidden || age());

// Shortcuts are off where people type and with a modifier, which belongs to the browser. A page hears of the
// rest by an event of its own, and cancels it when it used the key.
const keys = document.getElementById("keys");
document.querySelector("[data-keys]")?.addEventListener("click", () => keys.showModal());
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  if (event.target.closest("input, textarea, select, [contenteditable], dialog, [popover]")) return;
  const mine = keys !== null && event.key === "?";
  if (mine) keys.showModal();
  const told = new CustomEvent("hookglass:key", { detail: event.key, cancelable: true });
  if (!document.dispatchEvent(told) || mine) event.preventDefault();
});

document.addEventListener("hookglass:announce", (event) => announce(event.detail));

// A question that opens takes the focus, to its harmless answer.
document.addEventListener("toggle", (event) => {
  if (event.newState === "open" && event.target.matches?.("[popover]")) event.target.querySelector("button")?.focus();
}, true);
