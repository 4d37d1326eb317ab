const { data } = await (await fetch("/planets")).json();
for (const { name, days } of data) {
  const item = document.createElement("li");
  item.textContent = `${name}: ${days}`;
  document.querySelector("ul").append(item);
}

const socket = new WebSocket(`${location.origin.replace("http", "ws")}/chat`);
socket.onopen = () => socket.send(JSON.stringify({ event: "shout", data: "hello" }));
socket.onmessage = ({ data: text }) => (document.querySelector("output").textContent += ` ${JSON.parse(text).data}`);
