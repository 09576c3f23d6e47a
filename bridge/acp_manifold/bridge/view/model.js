/* What is shown: the messages of the recording, which of them pass the filters, and which are folded into one row.
   A row is {at, run}: the number of a message, and for a folded stream the numbers of all its pieces. */

const MARKS = [
  { key: "title", letter: "t", label: "Titles" },
  { key: "question", letter: "q", label: "Questions" },
  { key: "error", letter: "e", label: "Errors" },
  { key: "dropped", letter: "d", label: "Dropped" },
];

const SHORTEST_RUN = 3;

class Model {
  constructor(recording) {
    this.header = recording.header;
    this.lanes = recording.lanes;
    this.sessions = recording.sessions;
    this.messages = recording.messages;
    this.filter = { text: "", session: "", method: "", mark: "" };
    this.folded = true;
    this.unfolded = new Set();
    this.texts = [];
    this.rows = [];
    this.refresh();
  }

  refresh() {
    const passing = [];
    this.messages.forEach((message, at) => {
      if (this.passes(message, at)) passing.push(at);
    });
    this.passing = passing;
    this.rows = this.folded ? this.fold(passing) : passing.map((at) => ({ at }));
  }

  passes(message, at) {
    const { text, session, method, mark } = this.filter;
    return (
      (!session || message.session === session) &&
      (!method || message.name === method) &&
      (!mark || message.marks.includes(mark)) &&
      (!text || this.text(at).includes(text))
    );
  }

  /* All that can be searched of a message, made when it is first searched. */
  text(at) {
    if (this.texts[at] === undefined) {
      const { name, words, session, line } = this.messages[at];
      this.texts[at] = [name, words, session, line].join("\n").toLowerCase();
    }
    return this.texts[at];
  }

  /* Pieces of streams with nothing else between them become one row for each stream among them. */
  fold(passing) {
    const rows = [];
    let streams = new Map();
    const flush = () => {
      for (const run of streams.values()) {
        const whole = run.length < SHORTEST_RUN || this.unfolded.has(run[0]);
        rows.push(...(whole ? run.map((at) => ({ at })) : [{ at: run[0], run }]));
      }
      if (streams.size > 1) rows.sort((one, other) => one.at - other.at);
      out.push(...rows.splice(0));
      streams = new Map();
    };
    const out = [];
    for (const at of passing) {
      const message = this.messages[at];
      if (!message.piece) {
        flush();
        out.push({ at });
        continue;
      }
      const stream = `${message.lane} ${message.session} ${message.inward} ${message.name}`;
      if (!streams.has(stream)) streams.set(stream, []);
      streams.get(stream).push(at);
    }
    flush();
    return out;
  }

  /* The lanes that are needed: all, or with one session chosen those of its messages. */
  shownLanes() {
    const used = new Set(this.passing.map((at) => this.messages[at].lane));
    return this.lanes.map((_, lane) => lane).filter((lane) => !this.filter.session || used.has(lane) || this.lanes[lane].kind === "bridge");
  }

  /* The row that a message stands in, or the next one after it. */
  rowOf(at) {
    const exact = this.rows.findIndex((row) => row.at === at || (row.run && row.run.includes(at)));
    if (exact >= 0) return exact;
    const next = this.rows.findIndex((row) => row.at > at);
    return next >= 0 ? next : this.rows.length - 1;
  }

  count(mark) {
    return this.messages.reduce((sum, message) => sum + (message.marks.includes(mark) ? 1 : 0), 0);
  }
}
