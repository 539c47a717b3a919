// Follows the log of a task: lines are appended as they are written, until the task has ended.
// Nothing is decided here, and without this file the page shows the same after a reload.

const LINES_MAX = 2000; // more than this nobody scrolls through
const NEAR_PX = 40; // who is this close to the end wants to stay there

const box = document.querySelector("[data-follow]");

function piece(tag, kind, text) {
  const element = document.createElement(tag);
  element.className = kind;
  element.textContent = text;
  return element;
}

function item(line) {
  const time = piece("time", "when", line.at.slice(11, 19));
  time.dateTime = line.at;
  const attempt = piece("span", "when", `attempt ${line.attempt}`);
  const element = document.createElement("li");
  element.append(time, " ", attempt, " ", piece("span", "say", line.text));
  return element;
}

function list() {
  const found = box.querySelector("ol");
  if (found) return found;
  const made = piece("ol", "log mono", "");
  box.replaceChildren(made);
  return made;
}

function append(line) {
  const page = document.documentElement;
  const near = page.scrollTop + page.clientHeight >= page.scrollHeight - NEAR_PX;
  const lines = list();
  lines.append(item(line));
  while (lines.children.length > LINES_MAX) lines.firstElementChild.remove();
  if (near) page.scrollTop = page.scrollHeight;
}

if (box) {
  const stream = new EventSource(box.dataset.follow);
  stream.addEventListener("line", (event) => append(JSON.parse(event.data)));
  stream.addEventListener("end", () => stream.close());
}
