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

// A page that comes back from the browser's memory may send its forms again.
function forgetSent() {
  for (const form of document.querySelectorAll("form[data-sent]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("[aria-busy]")) button.removeAttribute("aria-busy");
  }
}

function chooseAll(event) {
  if (!event.target.matches("[data-all]")) return;
  for (const box of event.target.form.querySelectorAll("input[name=shadow_id]")) box.checked = event.target.checked;
}

function isInUse(region) {
  const selection = document.getSelection();
  const selects = selection && !selection.isCollapsed && region.contains(selection.anchorNode);
  const types = [...region.querySelectorAll("input, textarea, select")].some(
    (field) => field === document.activeElement || (field.type !== "hidden" && field.value !== field.defaultValue && field.tagName !== "SELECT"),
  );
  return selects || types || region.querySelector("dialog[open]") || region.querySelector("details[open]") !== null;
}

// Only what changed is replaced; where the reader is, what has the focus and what is selected stay.
function replaceWith(fresh) {
  for (const region of document.querySelectorAll("[data-live][id]")) {
    const news = fresh.getElementById(region.id);
    if (!news || isInUse(region) || region.innerHTML === news.innerHTML) continue;
    const inside = region.querySelector(".scroll");
    const place = inside ? [inside.scrollLeft, inside.scrollTop] : null;
    const focused = region.contains(document.activeElement) ? document.activeElement : null;
    const mark = focused && (focused.id ? "#" + CSS.escape(focused.id) : focused.getAttribute("href"));
    region.innerHTML = news.innerHTML;
    region.className = news.className;
    if (place && region.querySelector(".scroll")) region.querySelector(".scroll").scrollTo(...place);
    if (mark) {
      const again = mark.startsWith("#") ? region.querySelector(mark) : region.querySelector(`a[href="${CSS.escape(mark)}"]`);
      if (again) again.focus({ preventScroll: true });
    }
  }
}

function tell(works) {
  for (const state of document.querySelectorAll("[data-live-state]")) {
    state.parentElement.classList.toggle("off", !works);
    state.textContent = works ? state.dataset.liveOn : state.dataset.liveOff;
  }
}

let stamp = null; // of what was drawn last, where the server says one

async function refresh() {
  let wait = document.hidden ? REFRESH_WHEN_AWAY_MS : REFRESH_MS;
  if (!document.querySelector("dialog[open]") && !document.hidden) {
    const began = performance.now();
    try {
      const headers = stamp ? { "If-None-Match": stamp } : {};
      const answer = await fetch(location.href, { headers, signal: AbortSignal.timeout(SLOWEST_MS) });
      if (answer.status === 304) {
        document.getElementById("as-of").textContent = answer.headers.get("X-As-Of");
      } else if (answer.ok) {
        stamp = answer.headers.get("ETag");
        replaceWith(new DOMParser().parseFromString(await answer.text(), "text/html"));
      }
      tell(answer.ok || answer.status === 304);
    } catch (error) {
      tell(false);
    }
    // A slow server is asked less often.
    wait = Math.max(wait, 5 * (performance.now() - began));
  }
  window.setTimeout(refresh, wait);
}

followTheme();
document.addEventListener("click", leadOut);
document.addEventListener("click", dialogs);
document.addEventListener("change", chooseAll);
document.addEventListener("submit", once);
window.addEventListener("pageshow", forgetSent);
if (document.querySelector("[data-live]")) window.setTimeout(refresh, REFRESH_MS);
