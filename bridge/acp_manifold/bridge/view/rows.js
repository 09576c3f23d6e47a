/* Draws one row, and the bars of questions that wait for their answers. */

const DEED = { asked: "asked for", written: "written", told: "told", heard: "heard", news: "heard", known: "known already", discarded: "discarded" };
const ORIGIN = { client: "client", user: "person", generated: "model", none: "none" };

function drawRow(row, index, view) {
  const { model, layout } = view;
  const message = model.messages[row.at];
  const box = element("div", `row ${message.leg} ${message.kind}`);
  box.id = `row-${index}`;
  box.setAttribute("role", "option");
  box.setAttribute("aria-selected", String(index === view.selected));
  box.setAttribute("aria-posinset", String(index + 1));
  box.setAttribute("aria-setsize", String(model.rows.length));
  box.dataset.at = String(row.at);
  box.style.setProperty("--tint", tint(model, message));
  for (const mark of message.marks) box.classList.add(`is-${mark}`);
  if (index === view.selected) box.classList.add("selected");
  if (view.partner === row.at) box.classList.add("partner");
  box.append(drawTime(row, index, model));
  if (message.leg === "bridge") drawNote(box, message, layout, model);
  else drawArrow(box, row, message, layout, model);
  return box;
}

function tint(model, message) {
  const number = model.sessions.findIndex((session) => session.id === message.session);
  return number < 0 ? "var(--quiet)" : `var(--session-${number % 8})`;
}

function drawTime(row, index, model) {
  const { t } = model.messages[row.at];
  const before = index > 0 ? model.messages[lastOf(model.rows[index - 1])].t : null;
  const time = element("span", "time", t.toFixed(3));
  if (before !== null && t - before >= LONG) {
    const gap = element("span", "gap", `${seconds(t - before)} later`);
    gap.style.top = `${-GAP + 3}px`;
    time.append(gap);
  }
  return time;
}

function lastOf(row) {
  return row.run ? row.run[row.run.length - 1] : row.at;
}

function drawArrow(box, row, message, layout, model) {
  const bridge = layout.places.get(layout.bridge);
  const other = layout.places.get(message.lane);
  const arrow = element("span", `arrow ${(other < bridge) === message.inward ? "rightwards" : "leftwards"}`);
  arrow.style.left = `${Math.min(bridge, other)}px`;
  arrow.style.width = `${Math.abs(bridge - other)}px`;
  box.append(arrow);
  const label = element("span", "label");
  label.style.left = `${other < bridge ? bridge - layout.wide + 14 : bridge + 14}px`;
  label.style.width = `${layout.wide - 28}px`;
  const wanted = model.filter.text;
  label.append(element("span", "dot"));
  label.append(...drawName(message.name || "?", wanted));
  if (message.leg === "store") label.append(element("span", "tag deed", "store"));
  if (row.run) label.append(element("span", "tag", `× ${row.run.length}`));
  if (message.joined !== undefined && !message.title) label.append(drawJoin(message, model));
  if (message.title) label.append(...drawTitle(message.title));
  else {
    const words = row.run ? row.run.slice(0, 60).map((at) => model.messages[at].words).join("") : message.words;
    if (words) label.append(markedText("span", "words", words, wanted));
  }
  box.append(label);
}

/* What tells most of a name is its last word; the words before it give way first where there is little room. */
function drawName(name, wanted) {
  const cut = name.lastIndexOf(" ") + 1;
  const last = markedText("span", "name", name.slice(cut), wanted);
  return cut ? [markedText("span", "of", name.slice(0, cut - 1), wanted), last] : [last];
}

function drawJoin(message, model) {
  const partner = model.messages[message.joined];
  const asking = message.kind === "request";
  const took = seconds(Math.abs(partner.t - message.t));
  const said = message.marks.includes("question") && asking ? partner.words : "";
  const join = element("span", `tag join ${asking ? partner.kind : message.kind}`, asking ? ["→", said, took].filter(Boolean).join(" ") : `← ${took}`);
  return join;
}

function drawTitle(title) {
  const parts = [element("span", "title", title.text)];
  if (title.origin) parts.push(element("span", `tag origin ${title.origin}`, ORIGIN[title.origin] || title.origin));
  parts.push(element("span", "tag deed", DEED[title.deed] || title.deed));
  return parts;
}

function drawNote(box, message, layout, model) {
  const label = element("span", "label note-label");
  label.style.left = `${layout.places.get(layout.bridge) - 5}px`;
  label.style.width = `${layout.wide + 5}px`;
  label.append(element("span", "diamond"), element("span", "name", message.name || "note"));
  if (message.title) label.append(...drawTitle(message.title));
  else if (message.words) label.append(markedText("span", "words", message.words, model.filter.text));
  box.append(label);
}

/* From each question to its answer, on the lane of who is asked. */
function drawBars(view, first, last) {
  const { model, layout, tops } = view;
  const bars = [];
  view.questions.forEach(({ from, to }) => {
    if (to < first || from > last) return;
    const message = model.messages[model.rows[from].at];
    const bar = element("span", "bar-of-question");
    bar.style.left = `${layout.places.get(message.inward ? layout.bridge : message.lane) - 3}px`;
    bar.style.top = `${tops[from] + ROW - 7}px`;
    bar.style.height = `${tops[to] - tops[from]}px`;
    bar.style.setProperty("--tint", tint(model, message));
    bars.push(bar);
  });
  return bars;
}

/* The rows of each question and its answer, where both are shown. */
function questionRows(model) {
  const rowOf = new Map(model.rows.map((row, index) => [row.at, index]));
  const found = [];
  model.rows.forEach((row, index) => {
    const message = model.messages[row.at];
    if (message.kind !== "request" || !message.marks.includes("question")) return;
    const to = rowOf.get(message.joined);
    if (to !== undefined) found.push({ from: index, to });
  });
  return found;
}
