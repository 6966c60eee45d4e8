// Updates: the page is fetched again when the server reports a change of one of its resources.
import { REFRESHED, asSeen, main, refreshChanged, urlOf } from "./page.js";

const GATHER = 250; // milliseconds in which several changes become one fetch
const APART = 500; // at most so many more, at random, so that many tabs do not fetch at once
const REST = 4; // the pause after a fetch, as a multiple of its duration
let ready = 0;
let stream = null;
let topics = "";
let soon = null;

/** Keeps a visible page up to date. */
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
  stream.addEventListener("open", later); // for changes since the page was made, or during a disconnect
}

function stop() {
  stream?.close();
  stream = null;
}

function later() {
  soon ??= setTimeout(() => {
    soon = null;
    const began = performance.now();
    refreshChanged().then(() => {
      const ended = performance.now();
      ready = ended + REST * (ended - began);
    });
  }, Math.max(GATHER + APART * Math.random(), ready - performance.now()));
}

/** Fetches a page again at intervals, for data without a resource. */
function every() {
  const seconds = Number(main()?.dataset.every ?? 0);
  setTimeout(
    () => {
      if (seconds && !document.hidden && main().dataset.csrf) refreshChanged().then(every);
      else every();
    },
    (seconds || 5) * (900 + 200 * Math.random()), // so that tabs opened together drift apart
  );
}
