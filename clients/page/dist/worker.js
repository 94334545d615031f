/**
 * The service worker: browsers install the page as an app with it. It only stands in for the page's files when the
 * daemon does not answer; everything else goes to the daemon and is never stored.
 */
const CACHE = "page";
const FILES = /^\/page\/($|assets\/|icon|manifest\.webmanifest$)/;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  const { request } = event;
  const url = new URL(request.url);
  if (request.method !== "GET" || url.origin !== self.location.origin || !FILES.test(url.pathname)) return;
  // The end of a login at a mounted server has its code there.
  if (url.search !== "") return;
  event.respondWith(
    (async () => {
      const cache = await caches.open(CACHE);
      try {
        const answer = await fetch(request);
        if (answer.ok) {
          // The page names its assets: those of earlier versions are of no use any more.
          if (url.pathname === "/page/") await caches.delete(CACHE);
          await (await caches.open(CACHE)).put(request, answer.clone());
        }
        return answer;
      } catch (error) {
        const kept = await cache.match(request);
        if (kept) return kept;
        throw error;
      }
    })(),
  );
});
