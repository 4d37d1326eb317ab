/** How long the page waits before it asks for a new WebSocket; browsers do so by themselves for event streams only. */
const RECONNECT_MILLISECONDS = 1000;

const place = (id) => document.getElementById(id);

function say(text) {
  const item = document.createElement('li');
  item.textContent = text;
  place('said').append(item);
}

let socket;
function connect() {
  socket = new WebSocket(new URL('/api/chat', location.href.replace(/^http/, 'ws')));
  socket.addEventListener('message', ({ data }) => say(data));
  socket.addEventListener('close', ({ code }) => {
    say(`(closed with ${code})`);
    setTimeout(connect, RECONNECT_MILLISECONDS);
  });
}
connect();

place('form').addEventListener('submit', (event) => {
  event.preventDefault();
  if (socket.readyState !== WebSocket.OPEN) return;
  socket.send(new FormData(event.target).get('text'));
  event.target.reset();
});

new EventSource('/api/ticks').addEventListener('tick', ({ data, lastEventId }) => {
  const { time, worker } = JSON.parse(data);
  place('tick').textContent = `${lastEventId}: ${new Date(time).toLocaleTimeString()} from process ${worker}`;
});

const { visits } = await (await fetch('/api/visits')).json();
place('visits').textContent = visits === 1 ? 'You are here for the first time.' : `You are here for the ${visits}. time.`;
