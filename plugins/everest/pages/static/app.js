// What a page does in the browser: follow Airflow's light and dark, refresh what changes, ask before it acts.
"use strict";

const REFRESH_MS = 5000;
const REFRESH_WHEN_AWAY_MS = 60000;
const SLOWEST_MS = 15000;

// Airflow shows us in a frame of the same origin; its choice of light or dark is a class of its root element.
function followTheme() {
  let root = null;
  try {
    root = window.parent === window ? null : window.parent.document.documentElement;
  } catch (error) {
    return; // somebody else's frame: prefers-color-scheme decides
  }
  if (!root) return;
  const apply = () => {
    const theme = root.classList.contains("dark") ? "dark" : root.classList.contains("light") ? "light" : "";
    if (theme) document.documentElement.dataset.theme = theme;
  };
  apply();
  new MutationObserver(apply).observe(root, { attributes: true, attributeFilter: ["class"] });
}

// The frame may not leave itself, so a link to Airflow's own pages is followed by the document around us.
function leadOut(event) {
  const link = event.target.closest("a[data-airflow]");
  if (!link || window.parent === window || event.ctrlKey || event.metaKey) return;
  const outside = window.parent.document.createElement("a");
  outside.href = link.href;
  window.parent.document.body.append(outside);
  outside.click();
  outside.remove();
  event.preventDefault();
}

function dialogs(event) {
  const opener = event.target.closest("[data-open]");
  if (opener) document.getElementById(opener.dataset.open).showModal();
  const closer = event.target.closest("[data-close]");
  if (closer) closer.closest("dialog").close();
}

// A second click on the same button is no second order.
function once(event) {
  const form = event.target.closest("form[data-once]");
  if (!form) return;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
  for (const button of form.querySelectorAll("button[type=submit]")) button.setAttribute("aria-busy", "true");
}

// A report about years takes a second or two; whoever asked sees that it is on its way. Asking again is no harm.
function working(event) {
  const form = event.target.closest("form[data-works]");
  if (form) for (const button of form.querySelectorAll("button[type=submit]")) button.setAttribute("aria-busy", "true");
}

// A page that comes back from the browser's memory may send its forms again.
function forgetSent() {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  for (const button of document.querySelectorAll("form [aria-busy]")) button.removeAttribute("aria-busy");
}

function chooseAll(event) {
  if (!event.target.matches("[data-all]")) return;
  for (const box of event.target.form.querySelectorAll("tbody input[type=checkbox]")) box.checked = event.target.checked;
}

// What somebody types, chooses or has selected must not change under their hands, and neither must the question they answer.
function isInUse(region) {
  const selection = document.getSelection();
  const selects = selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  const isChanged = (field) => (field.type === "checkbox" ? field.checked !== field.defaultChecked : field.type !== "hidden" && field.tagName !== "SELECT" && field.value !== field.defaultValue);
  const types = [...region.querySelectorAll("input, textarea, select")].some(
    (field) => !field.closest("dialog:not([open])") && (field.matches(":focus") || isChanged(field)),
  );
  return selects || types;
}

// By what an element is known again in the page that comes next: a row by its document, a button by its dialog.
function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  const marks = "[id], a[href], [data-open]";
  const mark = node.matches(marks) ? node : node.querySelector(marks);
  return mark && [node.nodeName, mark.id || mark.getAttribute("href") || mark.dataset.open].join(" ");
}

function becomeElement(old, fresh) {
  if (old.dataset.sent) return; // its answer is on the way
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open") old.removeAttribute(name); // what a person opened stays open
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value && name !== "open") old.setAttribute(name, value);
  }
  becomeChildren(old, fresh);
}

function become(old, fresh) {
  if (old.nodeType === Node.ELEMENT_NODE) becomeElement(old, fresh);
  else if (old.data !== fresh.data) old.data = fresh.data;
}

// Only what differs is touched, so whatever has the focus, is scrolled or stands open stays the element it was.
function becomeChildren(parent, fresh) {
  const known = new Map([...parent.childNodes].reverse().map((node) => [keyOf(node), node]));
  const wanted = new Set([...fresh.childNodes].map(keyOf));
  let next = parent.firstChild;
  for (const news of fresh.childNodes) {
    const key = keyOf(news);
    let same = key && known.get(key);
    if (same) known.delete(key);
    else if (next && next.nodeName === news.nodeName && !(keyOf(next) && wanted.has(keyOf(next)))) same = next;
    if (!same) {
      parent.insertBefore(document.importNode(news, true), next);
      continue;
    }
    while (next !== same && next && same.contains(document.activeElement)) {
      // Moving it would take its focus: what stands before it goes behind it.
      const passed = next;
      next = next.nextSibling;
      parent.append(passed);
    }
    if (next === same) next = same.nextSibling;
    else parent.insertBefore(same, next);
    become(same, news);
  }
  while (next) {
    const gone = next;
    next = next.nextSibling;
    gone.remove();
  }
}

// What a screen reader is told of a region: its state, without the age that changes all the time.
function stateOf(region) {
  const told = region.matches(".state") && region.querySelector("p");
  return told ? [...told.childNodes].filter((node) => node.nodeName !== "SMALL").map((node) => node.textContent).join(" ").replace(/\s+/g, " ").trim() : "";
}

function say(text) {
  const place = document.getElementById("said");
  if (place && text) place.textContent = text;
}

function draw(fresh) {
  for (const region of document.querySelectorAll("[data-live][id]")) {
    const news = fresh.getElementById(region.id);
    const before = stateOf(region);
    const focused = region.contains(document.activeElement) ? document.activeElement : null;
    if (news) becomeElement(region, news);
    else region.replaceChildren(); // what it showed is over
    if (focused && !focused.isConnected) {
      // The button is gone because what it offered is over; the reader stays where it was.
      region.tabIndex = -1;
      region.focus({ preventScroll: true });
    }
    if (stateOf(region) !== before) say(stateOf(region));
  }
}

// how: on, held (somebody types), off (no answer), out (not logged in any more).
function tell(how) {
  for (const state of document.querySelectorAll("[data-live-state]")) {
    const text = state.dataset["live" + how[0].toUpperCase() + how.slice(1)];
    const isBroken = how === "off" || how === "out";
    if (isBroken !== state.parentElement.classList.contains("off")) say(text);
    state.parentElement.classList.toggle("off", isBroken);
    if (state.textContent !== text) state.textContent = text;
  }
}

let stamp = null; // of what was drawn last, where the server says one

// A dialog that is open asks about what its reader saw, and an answer with what is wrong stands at no address.
function isHeld() {
  return judged !== null || document.querySelector("dialog[open]") !== null || [...document.querySelectorAll("[data-live][id]")].some(isInUse);
}

async function look() {
  if (isHeld()) return "held";
  const headers = stamp ? { "If-None-Match": stamp } : {};
  const answer = await fetch(location.href, { headers, signal: AbortSignal.timeout(SLOWEST_MS) });
  if (answer.status === 401) return "out";
  if (answer.status === 304) {
    document.getElementById("as-of").textContent = answer.headers.get("X-As-Of");
    return "on";
  }
  if (!answer.ok) return "off";
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (isHeld()) return "held";
  stamp = answer.headers.get("ETag");
  draw(fresh);
  return "on";
}

async function refresh() {
  let wait = document.hidden ? REFRESH_WHEN_AWAY_MS : REFRESH_MS;
  if (!document.hidden) {
    const began = performance.now();
    tell(await look().catch(() => "off"));
    // A slow server is asked less often.
    wait = Math.max(wait, 5 * (performance.now() - began));
  }
  window.setTimeout(refresh, wait);
}

let judged = null; // what the problems on the page are those of; its file field stands empty again

// A form in the background: what was typed or chosen stays where it is until the server has taken it, whether the login
// has ended, the network is away or somebody was quicker. A file shows how far it is. Without a script all forms work too but those in dialogs, which a script opens.
function send(event) {
  const form = event.target.closest("form[data-once]");
  if (!form || event.defaultPrevented) return;
  event.preventDefault();
  const button = event.submitter;
  const action = button && button.hasAttribute("formaction") ? button.formAction : form.action;
  const request = new XMLHttpRequest();
  const hideProgress = showProgress(form, request);
  const unsent = (...sentences) => {
    forgetSent();
    hideProgress();
    tellIn(form, sentences);
  };
  const asked = button && button.dataset.file; // an answer that is a file, not a page
  const fields = (asked && judged) || new FormData(form, button);
  if (asked) request.responseType = "blob";
  request.addEventListener("load", async () => {
    if (asked && request.status === 200) {
      forgetSent();
      hideProgress();
      return keepFile(request.response, nameIn(request) || asked);
    }
    if (request.responseURL !== action) return location.assign(request.responseURL); // it went well; there it stands
    // Who is refused gets a page with its style in it, which the policy of this one would stop.
    const page = asked ? await request.response.text() : request.responseText;
    const answer = new DOMParser().parseFromString(page.replace(/<style>[^]*?<\/style>/, ""), "text/html");
    const main = answer.getElementById("main");
    const refusal = answer.querySelector("[data-refusal]");
    if (!main) return unsent(textOf("unsent"));
    if (refusal) return unsent(...wordsOf(refusal), textOf(request.status === 401 ? "loggedOut" : "kept"));
    judged = fields;
    document.title = answer.title;
    const shown = document.getElementById("main");
    shown.replaceChildren(...main.childNodes);
    shown.focus();
    window.scrollTo(0, 0);
  });
  request.addEventListener("error", () => unsent(textOf("unsent")));
  tellIn(form, []);
  request.open("POST", action);
  request.send(fields);
}

function nameIn(answer) {
  const [, name] = /filename="([^"]+)"/.exec(answer.getResponseHeader("Content-Disposition") || "") || [];
  return name;
}

function keepFile(content, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  window.setTimeout(() => URL.revokeObjectURL(link.href), REFRESH_WHEN_AWAY_MS);
}

function textOf(name) {
  return document.getElementById("main").dataset[name];
}

// Of a page that refuses, without the link that leads on from it.
function wordsOf(refusal) {
  return [...refusal.children].filter((one) => !one.querySelector("a")).map((one) => one.textContent.trim());
}

// In the form itself, for an open dialog covers everything else.
function tellIn(form, sentences) {
  form.querySelector(".unsent")?.remove();
  if (!sentences.length) return;
  const place = document.createElement("div");
  place.className = "unsent";
  place.setAttribute("role", "alert");
  for (const sentence of sentences) place.append(Object.assign(document.createElement("p"), { textContent: sentence }));
  form.append(place);
  place.scrollIntoView({ block: "nearest" });
}

// How much of a file has arrived, then that it is being checked. Returns what takes the bar away.
function showProgress(form, request) {
  const shown = form.querySelector("[data-progress]");
  if (!shown) return () => {};
  const bar = shown.querySelector("progress");
  const words = shown.querySelector("[role=status]");
  const told = (text) => words.textContent === text || (words.textContent = text);
  request.upload.addEventListener("progress", ({ loaded, total }) => {
    if (total) bar.value = loaded / total;
    told(shown.dataset.sending);
  });
  request.upload.addEventListener("load", () => {
    bar.removeAttribute("value");
    told(shown.dataset.checking);
  });
  bar.value = 0;
  shown.hidden = false;
  return () => (shown.hidden = true);
}

followTheme();
// On a phone the pages are one row to swipe through; the one that is open shall be seen.
document.querySelector(".top nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
document.addEventListener("click", leadOut);
document.addEventListener("click", dialogs);
document.addEventListener("change", chooseAll);
document.addEventListener("submit", once);
document.addEventListener("submit", working);
document.addEventListener("submit", send);
window.addEventListener("pageshow", forgetSent);
if (document.querySelector("[data-live]")) window.setTimeout(refresh, REFRESH_MS);
