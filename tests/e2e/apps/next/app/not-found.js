export default function NotFound() {
  return <h1>There is nothing here</h1>;
}
