/* JSON that folds. Whatever it holds goes into the page as text, by textContent alone. */

const OPEN_NODES = 150; /* a message with fewer values is shown unfolded */
const LONG_TEXT = 2000;
const MANY = 200;

class Exact {
  constructor(source) {
    this.source = source;
  }
}

/* Numbers that this language can't hold are kept as they were written. */
function parsed(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === "number" && context && String(value) !== context.source && !Number.isSafeInteger(value)
      ? new Exact(context.source)
      : value
  );
}

function element(tag, kind, text) {
  const made = document.createElement(tag);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

/* A text with what is searched for marked. */
function markedText(tag, kind, text, wanted) {
  const made = element(tag, kind);
  const lower = text.toLowerCase();
  let from = 0;
  for (let at = wanted && lower.length === text.length ? lower.indexOf(wanted) : -1; at >= 0; at = lower.indexOf(wanted, from)) {
    made.append(text.slice(from, at), element("mark", "", text.slice(at, at + wanted.length)));
    from = at + wanted.length;
  }
  made.append(text.slice(from));
  return made;
}

function isNest(value) {
  return value !== null && typeof value === "object" && !(value instanceof Exact);
}

function size(value, limit) {
  if (!isNest(value)) return 1;
  let sum = 1;
  for (const item of Object.values(value)) {
    sum += size(item, limit - sum);
    if (sum >= limit) break;
  }
  return sum;
}

function treeOf(value, wanted) {
  return treeNode(null, value, size(value, OPEN_NODES) < OPEN_NODES ? Infinity : 2, wanted);
}

function treeNode(key, value, depth, wanted) {
  const line = element("div", "line");
  if (key !== null) line.append(markedText("span", "key", key, wanted), element("span", "colon", ": "));
  if (!isNest(value)) {
    line.append(...leaf(value, wanted));
    const plain = element("div", "node");
    plain.append(line);
    return plain;
  }
  const items = Object.entries(value);
  const list = Array.isArray(value);
  const node = element("div", "node nest");
  const fold = element("button", "twist");
  fold.type = "button";
  line.append(element("span", "brace", list ? "[" : "{"), element("span", "brace rest", `${items.length ? "…" : ""}${list ? "]" : "}"}`));
  if (items.length) {
    line.append(element("span", "size", list ? `${items.length}` : items.slice(0, 4).map(([name]) => name).join(", ").slice(0, 60)));
    line.prepend(fold);
  }
  node.append(line);
  let inside = null;
  const set = (open, deep) => {
    node.classList.toggle("open", open);
    fold.setAttribute("aria-expanded", String(open));
    fold.setAttribute("aria-label", open ? "Fold" : "Unfold");
    if (open && inside === null) {
      inside = element("div", "inside");
      fill(inside, items, 0, deep - 1, list, wanted);
      node.append(inside);
    }
    if (inside !== null) inside.hidden = !open;
  };
  line.addEventListener("click", (event) => {
    if (event.target.closest(".line") === line && items.length && !String(getSelection())) set(!node.classList.contains("open"), 1);
  });
  node.setOpen = set;
  set(items.length > 0 && depth > 0, depth);
  return node;
}

function fill(inside, items, from, depth, list, wanted) {
  for (const [name, value] of items.slice(from, from + MANY)) inside.append(treeNode(list ? null : name, value, depth, wanted));
  if (items.length <= from + MANY) return;
  const more = element("button", "more", `${items.length - from - MANY} more`);
  more.type = "button";
  more.addEventListener("click", () => {
    more.remove();
    fill(inside, items, from + MANY, depth, list, wanted);
  });
  inside.append(more);
}

function leaf(value, wanted) {
  if (value instanceof Exact) return [element("span", "number", value.source)];
  if (typeof value !== "string") return [element("span", value === null ? "null" : typeof value, String(value))];
  const shown = markedText("span", "string", value.length > LONG_TEXT ? value.slice(0, LONG_TEXT) : value, wanted);
  if (value.length <= LONG_TEXT) return [shown];
  const more = element("button", "more", `all ${value.length} characters`);
  more.type = "button";
  more.addEventListener("click", () => {
    shown.replaceWith(markedText("span", "string", value, wanted));
    more.remove();
  });
  return [shown, more];
}

/* Opens or shuts all of a tree, as far as it has been made; opening makes more, up to a number of nodes. */
function setAll(tree, open) {
  let left = 5000;
  const visit = (node) => {
    if (!node.setOpen || left <= 0) return;
    node.setOpen(open, 1);
    const inside = [...node.children].find((child) => child.classList.contains("inside"));
    for (const child of inside ? inside.children : []) {
      left -= 1;
      visit(child);
    }
  };
  for (const child of tree.children) visit(child);
}
