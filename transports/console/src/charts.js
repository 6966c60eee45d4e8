// Charts, drawn from the pages' tables. Without the script, and for screen readers, the table is the chart.
import uPlot from "uplot";
import { REFRESHED } from "./page.js";
import { onOtherColours, resolved } from "./theme.js";

const HEIGHT = 180;
const HOUR = 3_600;
/** Formats of times: the least seconds between two marks, and the addition where a day or year begins. */
const DATES = [
  [365 * 24 * HOUR, "{YYYY}", null, null, null, null, null, null, 1],
  [28 * 24 * HOUR, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [24 * HOUR, "{D} {MMM}", "\n{YYYY}", null, null, null, null, null, 1],
  [60, "{HH}:{mm}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
  [1, "{HH}:{mm}:{ss}", "\n{D} {MMM}", null, "\n{D} {MMM}", null, null, null, 1],
];
const drawn = new Map();

/** Draws a chart above each `table.chart`, again when its numbers change. */
export function drawCharts() {
  draw();
  document.addEventListener(REFRESHED, draw);
  onOtherColours(() => {
    forget();
    draw();
  });
  new ResizeObserver(resize).observe(document.documentElement);
}

function draw() {
  for (const [table, { plot, place }] of drawn) {
    if (table.isConnected) continue;
    plot.destroy();
    place.remove();
    drawn.delete(table);
  }
  for (const table of document.querySelectorAll("table.chart")) {
    const numbers = numbersOf(table);
    const key = JSON.stringify(numbers);
    const before = drawn.get(table);
    if (before?.key === key && before.place.isConnected) continue;
    before?.plot.destroy();
    drawn.delete(table);
    const place = before?.place.isConnected ? before.place : placeFor(table);
    place.replaceChildren();
    if (numbers.firsts.length) drawn.set(table, { key, place, plot: plotOf(table, place, numbers) });
  }
}

function forget() {
  for (const { plot, place } of drawn.values()) {
    plot.destroy();
    place.remove();
  }
  drawn.clear();
}

function resize() {
  for (const { plot, place } of drawn.values()) {
    if (place.isConnected) plot.setSize({ width: place.clientWidth, height: HEIGHT });
  }
}

function placeFor(table) {
  const place = document.createElement("div");
  place.className = "plot";
  place.dataset.drawn = "";
  place.setAttribute("aria-hidden", "true");
  (table.closest("details") ?? table).before(place);
  return place;
}

/** Returns the contents of a table: the first column has times or labels, each further one is a line or bars. */
function numbersOf(table) {
  const heads = [...table.tHead.rows[0].cells].map((cell) => cell.textContent.trim());
  const rows = [...(table.tBodies[0]?.rows ?? [])].map((row) => [...row.cells]);
  const times = rows.map((cells) => cells[0].querySelector("time")?.dateTime);
  const isTime = times.length > 0 && times[0] !== undefined;
  return {
    heads,
    isTime,
    firsts: isTime ? times.map((time) => Date.parse(time) / 1_000) : rows.map((_, index) => index),
    labels: isTime ? [] : rows.map((cells) => cells[0].textContent.trim()),
    columns: heads.slice(1).map((_, index) => rows.map((cells) => valueOf(cells[index + 1]))),
  };
}

function plotOf(table, place, { heads, isTime, firsts, labels, columns }) {
  const kind = table.dataset.chart;
  const colours = [1, 2, 3, 4, 5, 6].map((number) => resolved(`--chart-${number}`, place));
  const ink = resolved("--dim", place);
  const grid = { stroke: resolved("--line", place), width: 1 };
  const unit = table.dataset.unit ?? "";
  const paths = kind === "bars" ? uPlot.paths.bars({ size: [0.7, 48] }) : undefined;
  const axis = { stroke: ink, grid, ticks: grid, font: "12px system-ui" };
  return new uPlot(
    {
      width: place.clientWidth,
      height: HEIGHT,
      legend: { show: heads.length > 2 },
      cursor: { drag: { x: false, y: false } },
      scales: {
        x: { time: isTime, range: isTime ? around(firsts) : (_, low, high) => [low - 0.5, high + 0.5] },
        y: { range: (_, low, high) => [Math.min(0, low * 1.05), high > 0 ? high * 1.05 : low < 0 ? 0 : 1] },
      },
      axes: [
        isTime
          ? { ...axis, space: 60, values: DATES }
          : { ...axis, splits: () => firsts, values: (_, at) => at.map((index) => labels[index] ?? ""), rotate: labels.length > 6 ? -40 : 0 },
        { ...axis, size: 64, values: (_, at) => at.map((value) => short(value) + unit) },
      ],
      series: [
        { label: heads[0], value: isTime ? "{YYYY}-{MM}-{DD} {HH}:{mm}" : undefined },
        ...heads.slice(1).map((label, index) => ({
          label,
          stroke: colours[index % colours.length],
          fill: kind === "bars" ? colours[index % colours.length] : undefined,
          width: 2,
          paths,
          points: { show: kind !== "bars" && (firsts.length < 40 || columns[index].includes(null)) },
        })),
      ],
    },
    [firsts, ...columns],
    place,
  );
}

/** Returns the range of a time axis: from the first to the last, or half a day on either side of a single one. */
function around([first, ...others]) {
  return others.length ? undefined : [first - 12 * HOUR, first + 12 * HOUR];
}

/** Returns a cell's number: `data-value`, else its text without separators; an empty cell is a gap. */
function valueOf(cell) {
  const text = cell.dataset.value ?? cell.textContent.replaceAll(",", "");
  const value = Number.parseFloat(text);
  return Number.isNaN(value) ? null : value;
}

function short(value) {
  return Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 3 }).format(value);
}
