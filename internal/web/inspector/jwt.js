// Decodes JSON Web Tokens in this browser; they are sent nowhere. The signature is not verified.

function read(part) {
  const bytes = Uint8Array.from(atob(part.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}

// Shows numbers as they were written, if the browser gives access to the source: long ones lose digits as doubles.
const lines = (text) => JSON.stringify(JSON.parse(text, (_, v, at) => typeof v === "number" && at?.source && JSON.rawJSON ? JSON.rawJSON(at.source) : v), null, 2);

function show(token) {
  const dialog = document.createElement("dialog");
  dialog.className = "confirm wide";
  dialog.setAttribute("aria-label", "JSON Web Token");
  const add = (name, text) => {
    const e = document.createElement(name);
    e.textContent = text;
    dialog.append(e);
    return e;
  };
  add("h2", "JSON Web Token");
  try {
    const [header, payload] = token.split(".").slice(0, 2).map(read);
    add("h3", "Header");
    add("pre", lines(header)).className = "raw";
    add("h3", "Payload");
    add("pre", lines(payload)).className = "raw";
    const claims = JSON.parse(payload);
    const now = Date.now() - Number(document.documentElement.dataset.ahead); // by the server's clock
    for (const [name, means] of [["iat", "Issued"], ["nbf", "Not before"], ["exp", "Expires"]]) {
      const at = new Date(claims[name] * 1000);
      if (!Number.isNaN(at.getTime())) add("p", `${means} ${at.toISOString().replace("T", " ").replace("Z", " UTC")}${name === "exp" && at < now ? " (expired)" : ""}`).className = "small";
    }
    add("p", "Decoded in this browser. The signature was not verified.").className = "small";
  } catch {
    add("p", "This token cannot be decoded.");
  }
  const close = add("button", "Close");
  close.type = "button";
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

document.addEventListener("click", (event) => {
  const token = event.target.closest("[data-jwt]")?.dataset.jwt;
  if (token) show(token);
});
