/* Where things are: the lanes from left to right, the rows from top to bottom. */

const ROW = 34;
const GAP = 22;
const LONG = 0.5; /* seconds without a message that get a gap of their own */

/* Left of the bridge stand clients, right of it backends; what messages say stands beside the bridge on their side. */
function placeLanes(model, width) {
  const lanes = model.shownLanes();
  const small = width < 720;
  const gutter = small ? 58 : 92;
  const bridge = lanes.findIndex((lane) => model.lanes[lane].kind === "bridge");
  const left = bridge - 1;
  const right = lanes.length - bridge - 2;
  const margin = small ? 24 : Math.max(44, Math.min(90, width / 15));
  const free = width - gutter - 2 * margin;
  const step = Math.max(small ? 64 : left + right > 3 ? 76 : 104, Math.min(190, (free - 720) / Math.max(1, left + right)));
  const sides = (bridge > 0 ? 1 : 0) + (right >= 0 ? 1 : 0);
  const least = small ? 148 : Math.max(270, Math.min(340, (free - step) / 2));
  const wide = Math.max(least, Math.min(680, (free - step * (Math.max(0, left) + Math.max(0, right))) / Math.max(1, sides)));
  const places = new Map();
  let x = gutter + margin;
  lanes.forEach((lane, index) => {
    if (index > 0) x += index === bridge || index === bridge + 1 ? wide : step;
    places.set(lane, x);
  });
  return { places, bridge: lanes[bridge], wide, step, gutter, width: Math.max(width, x + margin) };
}

/* The top of each row, and the end of the last one as one number more. */
function placeRows(model) {
  const tops = new Float64Array(model.rows.length + 1);
  let y = 8;
  let before = null;
  model.rows.forEach((row, index) => {
    const { t } = model.messages[row.at];
    if (before !== null && t - before >= LONG) y += GAP;
    tops[index] = y;
    y += ROW;
    before = model.messages[row.run ? row.run[row.run.length - 1] : row.at].t;
  });
  tops[model.rows.length] = y;
  return tops;
}

/* The last row that begins at or above a height. */
function rowAt(tops, y) {
  let low = 0;
  let high = tops.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= y) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

function seconds(value) {
  const size = Math.abs(value);
  if (size < 0.0005) return "0";
  if (size < 1) return `${Math.round(value * 1000)} ms`;
  if (size < 60) return `${value.toFixed(size < 10 ? 2 : 1)} s`;
  return `${Math.floor(value / 60)} min ${Math.round(value % 60)} s`;
}
