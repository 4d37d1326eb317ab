/** The site as a fetch handler: onehop calls it directly. */
import { blog, blogs, home, missing, version } from './site.mjs';

export default {
  fetch(request) {
    const { pathname } = new URL(request.url);
    // As in Express: a route of GET answers HEAD too, and nothing else.
    if (request.method !== 'GET' && request.method !== 'HEAD') return html(missing(), 404);
    if (pathname === '/') return html(home());
    if (pathname === '/blogs') return html(blogs());
    if (pathname === '/version') return Response.json({ version });
    const page = pathname.startsWith('/blogs/') ? blog(pathname.slice('/blogs/'.length)) : undefined;
    return page === undefined ? html(missing(), 404) : html(page);
  },
};

function html(body, status = 200) {
  return new Response(body, { status, headers: { 'Content-Type': 'text/html; charset=utf-8' } });
}
