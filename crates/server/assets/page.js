// Keeps the page fresh: an event says "look again", and the server's fragment is swapped in.
// Nothing is decided here, and without this file the page shows the same after a reload.

const KINDS = ["manifest", "cluster", "machine", "task", "intent"];
const SWAP_EVERY_MS = 1000; // more often than this nobody can read
const AGES_EVERY_MS = 30000; // "seen 40 s ago" grows old without any event

const main = document.getElementById("main");
const status = document.getElementById("live");
let wanted = false;
let busy = false;
let last = 0;

function say(text) {
  if (status) status.textContent = text;
}

function fragment() {
  const url = new URL(location.href);
  url.searchParams.set("fragment", "1");
  return url;
}

// The same element after the swap: by its id, or the link to the same place.
function twin(element) {
  if (!element || !main.contains(element)) return null;
  if (element.id) return `#${CSS.escape(element.id)}`;
  const href = element.getAttribute("href");
  return href ? `a[href="${CSS.escape(href)}"]` : null;
}

async function swap() {
  if (busy || !wanted || document.hidden) return;
  const rest = last + SWAP_EVERY_MS - Date.now();
  if (rest > 0) {
    setTimeout(swap, rest);
    return;
  }
  busy = true;
  wanted = false;
  last = Date.now();
  try {
    const answer = await fetch(fragment(), { redirect: "manual", cache: "no-store" });
    if (answer.type === "opaqueredirect") {
      location.reload();
    } else if (answer.ok && document.getSelection().isCollapsed) {
      const focused = twin(document.activeElement);
      const kept = main.querySelectorAll("[data-keep]"); // what lives by itself
      main.innerHTML = await answer.text();
      for (const one of kept) document.getElementById(one.id)?.replaceWith(one);
      if (focused) main.querySelector(focused)?.focus({ preventScroll: true });
    }
  } catch {
    say("not connected");
  } finally {
    busy = false;
    if (wanted) setTimeout(swap, SWAP_EVERY_MS);
  }
}

function look() {
  wanted = true;
  swap();
}

if (main?.dataset.after) {
  const stream = new EventSource(`${main.dataset.events}&after=${main.dataset.after}`);
  stream.onopen = () => say("live");
  stream.onerror = () => say("not connected, trying again");
  for (const kind of KINDS) stream.addEventListener(kind, look);
  document.addEventListener("visibilitychange", look);
  setInterval(look, AGES_EVERY_MS);
}
