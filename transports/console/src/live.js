// Changes, as the server tells of them: the page is fetched again when a resource of it changes.
import { REFRESHED, asSeen, main, refresh, urlOf } from "./page.js";

const GATHER = 250; // milliseconds in which several changes become one fetch
const REST = 4; // times as long as a fetch took the page is left alone then, however much changes
let ready = 0;
let stream = null;
let topics = "";
let soon = null;

/** Keeps the page as it is on the server, while somebody looks at it. */
export function keepLive() {
  follow();
  document.addEventListener(REFRESHED, follow);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else {
      follow();
      later();
    }
  });
  every();
}

function follow() {
  const wanted = main()?.dataset.topics ?? "[]";
  if (document.hidden || !main()?.dataset.csrf) return stop();
  if (stream && wanted === topics && stream.readyState !== EventSource.CLOSED) return;
  stop();
  topics = wanted;
  const names = JSON.parse(wanted);
  if (!names.length) return;
  const url = urlOf("api/v1/events");
  for (const name of names) url.searchParams.append("topic", name);
  stream = new EventSource(asSeen(url));
  stream.addEventListener("change", later);
  stream.addEventListener("end", later);
  stream.addEventListener("open", (event) => {
    if (event.target.opened) later(); // it was away for a while
    event.target.opened = true;
  });
}

function stop() {
  stream?.close();
  stream = null;
}

function later() {
  soon ??= setTimeout(() => {
    soon = null;
    const began = performance.now();
    refresh().then(() => {
      const ended = performance.now();
      ready = ended + REST * (ended - began);
    });
  }, Math.max(GATHER, ready - performance.now()));
}

/** Fetches a page again from time to time that shows what no resource tells of. */
function every() {
  const seconds = Number(main()?.dataset.every ?? 0);
  setTimeout(
    () => {
      if (seconds && !document.hidden && main().dataset.csrf) refresh().then(every);
      else every();
    },
    (seconds || 5) * 1_000,
  );
}
