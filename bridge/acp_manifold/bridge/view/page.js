/* The page: what is selected and open, and what keys, clicks and scrolling do. */

const AROUND = 12; /* rows drawn above and below what can be seen */

const at = (id) => document.getElementById(id);

class View {
  constructor(recording) {
    this.recording = recording;
    this.model = new Model(recording);
    this.selected = -1;
    this.partner = undefined;
    this.open = null; /* the number of the message in the panel */
    this.timeline = at("timeline");
    this.space = at("space");
    this.fillHeading();
    this.fillFilters();
    this.listen();
    this.relayout();
    if (this.model.rows.length) this.select(0);
    this.timeline.focus();
  }

  /* --- what stands on top --- */

  fillHeading() {
    const { header, messages, sessions, note, file } = this.recording;
    const scenario = header.scenario || file;
    document.title = `${scenario} · acp-manifold`;
    at("scenario").textContent = scenario;
    const clis = Object.entries(header.clis || {}).map(([name, version]) => `${name} ${version}`);
    const last = messages.length ? messages[messages.length - 1].t : 0;
    const facts = [
      ...clis,
      header.date,
      `${messages.length.toLocaleString("en")} ${messages.length === 1 ? "message" : "messages"}`,
      sessions.length > 1 ? `${sessions.length} sessions` : "",
      seconds(last),
    ];
    at("facts").textContent = facts.filter(Boolean).join("  ·  ");
    at("note").textContent = note;
    at("note").hidden = !note;
  }

  fillFilters() {
    const option = (value, text) => {
      const made = element("option", "", text);
      made.value = value;
      return made;
    };
    at("session").append(option("", "All sessions"), ...this.model.sessions.map(({ id, label }) => option(id, label)));
    const counts = new Map();
    for (const { name } of this.model.messages) counts.set(name, (counts.get(name) || 0) + 1);
    const names = [...counts].sort(([one], [other]) => (one < other ? -1 : 1));
    at("method").append(option("", "All methods"), ...names.filter(([name]) => name).map(([name, count]) => option(name, `${name} (${count})`)));
    for (const { key, label, letter } of MARKS) {
      const count = this.model.count(key);
      const button = element("button", `mark ${key}`, `${label} `);
      button.append(element("span", "count", String(count)));
      button.type = "button";
      button.dataset.mark = key;
      button.disabled = count === 0;
      button.title = `Show these alone; ${letter} goes to the next`;
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", (event) => {
        this.toggleMark(key);
        this.backToRows(event);
      });
      at("marks").append(button);
    }
  }

  /* One session alone, or all again. */
  onlySession(session) {
    const { filter } = this.model;
    filter.session = filter.session === session ? "" : session;
    at("session").value = filter.session;
    this.refilter();
    this.timeline.focus();
  }

  /* Who clicks goes on in the rows; who came to the button by Tab stays there. */
  backToRows(event) {
    if (event.detail > 0) this.timeline.focus();
  }

  toggleMark(key) {
    const { filter } = this.model;
    filter.mark = filter.mark === key ? "" : key;
    this.refilter();
  }

  /* --- filters and folding --- */

  refilter() {
    const before = this.model.rows[this.selected];
    this.model.refresh();
    for (const button of at("marks").children) button.setAttribute("aria-pressed", String(button.dataset.mark === this.model.filter.mark));
    at("fold").setAttribute("aria-pressed", String(this.model.folded));
    this.relayout();
    at("none").hidden = this.model.rows.length > 0;
    this.select(before && this.model.rows.length ? this.model.rowOf(before.at) : this.model.rows.length ? 0 : -1);
  }

  clearFilters() {
    Object.assign(this.model.filter, { text: "", session: "", method: "", mark: "" });
    for (const id of ["search", "session", "method"]) at(id).value = "";
    this.refilter();
  }

  filtered() {
    return Object.values(this.model.filter).some(Boolean);
  }

  /* --- layout and drawing --- */

  relayout() {
    this.layout = placeLanes(this.model, this.timeline.clientWidth);
    this.tops = placeRows(this.model);
    this.questions = questionRows(this.model);
    this.drawn = null;
    this.space.style.width = `${this.layout.width}px`;
    this.space.style.height = `${this.tops[this.model.rows.length] + 60}px`;
    at("lanes").style.width = `${this.layout.width}px`;
    at("lanes").replaceChildren(...[...this.layout.places].map(([lane, x]) => this.laneHead(this.model.lanes[lane], x)));
    this.draw();
  }

  laneHead(lane, x) {
    const head = element("span", `lane ${lane.kind}`);
    head.style.left = `${x}px`;
    head.style.maxWidth = `${lane.kind === "backend" ? this.layout.step - 6 : this.layout.wide - 10}px`;
    head.title = [lane.label, lane.detail].filter(Boolean).join("\n");
    head.append(element("b", "", lane.label));
    if (lane.detail) head.append(element("small", "", lane.detail));
    if (lane.session) {
      head.style.setProperty("--tint", tint(this.model, lane));
      head.classList.add("one-session");
      head.addEventListener("click", () => this.onlySession(lane.session));
    }
    return head;
  }

  draw() {
    const { scrollTop, clientHeight } = this.timeline;
    const count = this.model.rows.length;
    const first = Math.max(0, rowAt(this.tops, scrollTop) - AROUND);
    const last = Math.min(count - 1, rowAt(this.tops, scrollTop + clientHeight) + AROUND);
    const now = `${first} ${last} ${this.selected} ${this.partner}`;
    if (now === this.drawn) return;
    this.drawn = now;
    const pieces = [...this.layout.places].map(([lane, x]) => {
      const line = element("span", `life ${this.model.lanes[lane].kind}`);
      line.style.left = `${x}px`;
      return line;
    });
    pieces.push(...drawBars(this, first, last));
    for (let index = first; index <= last; index += 1) {
      const row = drawRow(this.model.rows[index], index, this);
      row.style.top = `${this.tops[index]}px`;
      pieces.push(row);
    }
    this.space.replaceChildren(...pieces);
  }

  /* --- selection --- */

  select(index) {
    this.selected = index;
    const row = this.model.rows[index];
    this.partner = row ? this.model.messages[row.at].joined : undefined;
    if (row) this.timeline.setAttribute("aria-activedescendant", `row-${index}`);
    else this.timeline.removeAttribute("aria-activedescendant");
    if (row) this.reveal(index);
    this.draw();
    if (this.open !== null && row) this.show(row.at);
  }

  reveal(index) {
    const head = at("lanes").offsetHeight;
    const top = this.tops[index];
    const { scrollTop, clientHeight } = this.timeline;
    const room = clientHeight - head;
    if (top < scrollTop) this.timeline.scrollTop = top - Math.min(ROW * 2, room / 3);
    else if (top + ROW > scrollTop + room) this.timeline.scrollTop = top + ROW - room + Math.min(ROW * 2, room / 3);
  }

  move(step) {
    const last = this.model.rows.length - 1;
    if (last >= 0) this.select(Math.min(last, Math.max(0, this.selected + step)));
  }

  /* To the next message with a mark, round the end. */
  seek(mark, step) {
    const { rows, messages } = this.model;
    for (let far = 1; far <= rows.length; far += 1) {
      const index = (this.selected + step * far + rows.length * 2) % rows.length;
      if (messages[rows[index].at].marks.includes(mark)) return this.select(index);
    }
  }

  jump() {
    const row = this.model.rows[this.selected];
    const joined = row && this.model.messages[row.at].joined;
    if (joined === undefined) return;
    if (!this.model.passes(this.model.messages[joined], joined)) this.clearFilters();
    this.select(this.model.rowOf(joined));
  }

  enter() {
    const row = this.model.rows[this.selected];
    if (!row) return;
    if (row.run) {
      this.model.unfolded.add(row.run[0]);
      this.refilter();
    } else this.show(row.at);
  }

  /* --- the panel --- */

  show(number) {
    const message = this.model.messages[number];
    const opened = this.open === null;
    if (this.open === number && !opened) return;
    this.open = number;
    at("detail").hidden = false;
    document.body.classList.add("with-detail");
    at("detail-name").textContent = message.name || "?";
    at("detail-facts").replaceChildren(...this.facts(message).flatMap(([term, text]) => [element("dt", "", term), element("dd", "", text)]));
    const partner = this.model.messages[message.joined];
    at("jump").hidden = !partner;
    if (partner) at("jump").textContent = message.kind === "request" ? "To its answer" : "To its request";
    this.showTree(message);
    if (opened) {
      this.relayout();
      this.reveal(this.selected);
      this.draw();
    }
  }

  showTree(message) {
    const tree = at("tree");
    let value;
    try {
      value = parsed(message.line);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      tree.replaceChildren(element("pre", "verbatim", message.line));
      return;
    }
    tree.replaceChildren(treeOf(value, this.model.filter.text));
    tree.scrollTop = 0;
  }

  facts(message) {
    const lane = this.model.lanes[message.lane].label;
    const ends = { bridge: ["bridge", ""], store: [`${lane}’s store`, "bridge"] }[message.leg] || [lane, "bridge"];
    const partner = this.model.messages[message.joined];
    const facts = [
      ["What", `${{ request: "request", answer: "answer", failure: "error", news: message.leg === "bridge" ? "note of the bridge" : "message" }[message.kind]}`],
      ["Way", (message.inward ? ends : [...ends].reverse()).filter(Boolean).join(" → ")],
      ["Time", `${message.t.toFixed(4)} s`],
      ["Session", message.session],
      ["File", message.file],
    ];
    if (partner) facts.push([message.kind === "request" ? "Answered" : "Asked", `${seconds(Math.abs(partner.t - message.t))} ${message.kind === "request" ? "later" : "before"}`]);
    else if (message.kind === "request") facts.push(["Answered", "not in this recording"]);
    if (message.title) facts.push(["Title", message.title.text], ["Whose", ORIGIN[message.title.origin] || "not told here"]);
    return facts.filter(([, text]) => text);
  }

  hide() {
    this.open = null;
    at("detail").hidden = true;
    document.body.classList.remove("with-detail");
    this.relayout();
    this.timeline.focus();
  }

  /* --- what people do --- */

  listen() {
    let searching = 0;
    at("search").addEventListener("input", () => {
      clearTimeout(searching);
      searching = setTimeout(() => this.search(), 120);
    });
    at("search").addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      clearTimeout(searching);
      this.search();
      this.timeline.focus();
      event.stopPropagation();
    });
    for (const id of ["session", "method"])
      at(id).addEventListener("change", () => {
        this.model.filter[id] = at(id).value;
        this.refilter();
      });
    at("fold").addEventListener("click", (event) => {
      this.toggleFold();
      this.backToRows(event);
    });
    at("help").addEventListener("click", () => at("keys").showModal());
    at("close").addEventListener("click", () => this.hide());
    at("jump").addEventListener("click", () => this.jump());
    at("open-all").addEventListener("click", () => setAll(at("tree"), true));
    at("shut-all").addEventListener("click", () => setAll(at("tree"), false));
    at("copy").addEventListener("click", () => this.copy());
    this.timeline.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()), { passive: true });
    this.space.addEventListener("click", (event) => this.clicked(event));
    addEventListener("resize", () => this.relayout());
    addEventListener("keydown", (event) => this.pressed(event));
  }

  search() {
    const wanted = at("search").value.trim().toLowerCase();
    if (wanted === this.model.filter.text) return;
    this.model.filter.text = wanted;
    this.refilter();
  }

  toggleFold() {
    this.model.folded = !this.model.folded;
    this.model.unfolded.clear();
    this.refilter();
  }

  clicked(event) {
    const row = event.target.closest(".row");
    if (!row) return;
    this.select(Number(row.id.slice(4)));
    this.enter();
  }

  async copy() {
    const { line } = this.model.messages[this.open];
    try {
      await navigator.clipboard.writeText(line);
      at("copy").textContent = "Copied";
    } catch (error) {
      at("copy").textContent = "Not allowed here";
    }
    setTimeout(() => (at("copy").textContent = "Copy"), 1500);
  }

  pressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || at("keys").open) return;
    const field = event.target.closest("input, select");
    if (event.key === "Escape") {
      this.escape(field);
      event.preventDefault();
      return;
    }
    if (field) return;
    const mark = MARKS.find(({ letter }) => letter === event.key.toLowerCase());
    const inTree = event.target.closest("#tree, button");
    const page = Math.max(1, Math.floor(this.timeline.clientHeight / ROW) - 2);
    const deeds = {
      j: () => this.move(1),
      k: () => this.move(-1),
      g: () => this.move(-Infinity),
      G: () => this.move(Infinity),
      o: () => this.jump(),
      f: () => this.toggleFold(),
      "/": () => at("search").select(),
      "?": () => at("keys").showModal(),
    };
    if (!inTree) {
      Object.assign(deeds, {
        ArrowDown: deeds.j,
        ArrowUp: deeds.k,
        Home: deeds.g,
        End: deeds.G,
        PageDown: () => this.move(page),
        PageUp: () => this.move(-page),
        Enter: () => this.enter(),
      });
    }
    const deed = mark ? () => this.seek(mark.key, event.shiftKey ? -1 : 1) : deeds[event.key];
    if (!deed) return;
    event.preventDefault();
    deed();
  }

  escape(field) {
    if (field) {
      field.blur();
      this.timeline.focus();
    } else if (this.open !== null) this.hide();
    else if (this.filtered()) this.clearFilters();
  }
}

new View(JSON.parse(at("recording").textContent));
