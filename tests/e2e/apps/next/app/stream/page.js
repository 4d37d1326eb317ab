import { Suspense } from "react";

export const dynamic = "force-dynamic";
export const metadata = { title: "Stream" };

const LATE_MS = 150;

async function Late() {
  await new Promise((resolve) => setTimeout(resolve, LATE_MS));
  return <p data-late>This came later.</p>;
}

export default function Stream() {
  return (
    <>
      <h1>Stream</h1>
      <Suspense fallback={<p data-early>Wait for it …</p>}>
        <Late />
      </Suspense>
    </>
  );
}
