/**
 * The blog's entries. A handler gets a Request and returns a Response, as in any other runtime of today; nothing is
 * imported.
 */

const ENTRIES = new Map([
  ['001', { title: 'One process less', text: 'The server and the application are one hop apart.' }],
  ['002', { title: 'What is slow?', text: 'Ask the same five pages a thousand times, and look at the slowest.' }],
  ['003', { title: 'Not found', text: 'A page that is not there is an answer too, and takes its time.' }],
]);

export default {
  fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === '/blogs') {
      return Response.json([...ENTRIES].map(([id, { title }]) => ({ id, title })));
    }
    const id = pathname.slice('/blogs/'.length);
    const entry = pathname.startsWith('/blogs/') ? ENTRIES.get(id) : undefined;
    if (entry === undefined) return Response.json({ error: `there is nothing at ${pathname}` }, { status: 404 });
    return Response.json({ id, ...entry });
  },
};
