import { NextResponse } from "next/server";

export function proxy(request) {
  const { pathname } = request.nextUrl;
  if (pathname === "/old") return NextResponse.redirect(new URL("/about", request.url), 308);
  if (pathname === "/home") return NextResponse.rewrite(new URL("/", request.url));
  if (pathname === "/closed") return new NextResponse("closed\n", { status: 403, headers: { "X-Closed": "yes" } });
  const passed = new Headers(request.headers);
  passed.set("x-visitor", request.cookies.get("visitor")?.value ?? "nobody");
  const response = NextResponse.next({ request: { headers: passed } });
  response.headers.set("X-Proxy", "seen");
  return response;
}

export const config = { matcher: ["/old", "/home", "/closed", "/planets/:path*"] };
