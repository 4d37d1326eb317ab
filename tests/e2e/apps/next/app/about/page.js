export const metadata = { title: "About" };

export default function About() {
  return (
    <>
      <h1>About</h1>
      <p>This page was made when the application was built.</p>
    </>
  );
}
