import { cookies } from "next/headers";
import Form from "./form";

export const metadata = { title: "Contact" };

export default async function Contact() {
  const last = (await cookies()).get("last")?.value ?? "nobody yet";
  return (
    <>
      <h1>Contact</h1>
      <p data-last>Last: {last}</p>
      <Form />
    </>
  );
}
