// Shows, in the replay form, what moving the timestamps of a request would change.

document.getElementById("detail").addEventListener("click", async (event) => {
  const button = event.target.closest("[data-times]");
  if (!button) return;
  const place = button.form.querySelector("#time-changes");
  const data = new FormData(button.form);
  data.set("time_shift", "now");
  button.disabled = true;
  try {
    const answer = await fetch(button.dataset.times, { method: "POST", body: new URLSearchParams(data) });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const found = page.getElementById("time-changes") ?? page.querySelector("[data-problem]");
    if (!found) throw new Error(String(answer.status));
    place.replaceChildren(...found.childNodes); // rendered by this server, which escapes everything
  } catch {
    place.textContent = "The server could not be reached. Try again.";
  } finally {
    button.disabled = false;
    if (document.activeElement === document.body) button.focus({ preventScroll: true }); // the focus was lost while it was disabled
  }
});
