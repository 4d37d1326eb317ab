import Image from "next/image";
import Counter from "./counter";
import styles from "./page.module.css";

export default function Home() {
  return (
    <>
      <h1 className={styles.title}>Planets</h1>
      <Image src="/sphere.png" alt="A sphere" width={256} height={256} priority />
      <p>Static text, and something that counts:</p>
      <Counter />
    </>
  );
}
