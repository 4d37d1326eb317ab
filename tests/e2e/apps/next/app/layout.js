import "./globals.css";
import Link from "next/link";

export const metadata = {
  title: { default: "Planets", template: "%s · Planets" },
  description: "A small application of Next.js",
};

export default function RootLayout({ children }) {
  return (
    <html lang="en">
      <body>
        <nav>
          <Link href="/">Home</Link>
          <Link href="/about">About</Link>
          <Link href="/planets/earth">Earth</Link>
          <Link href="/stream">Stream</Link>
          <Link href="/contact">Contact</Link>
        </nav>
        <main>{children}</main>
      </body>
    </html>
  );
}
