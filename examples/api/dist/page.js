const place = (id) => document.getElementById(id);

async function ask(path, init) {
  const response = await fetch(path, init);
  const body = await response.json();
  if (!response.ok) throw new Error(body.error);
  return body;
}

function show(note) {
  const item = document.createElement('li');
  item.textContent = note.text;
  place('notes').append(item);
}

function complain(error) {
  place('error').textContent = error?.message ?? '';
  place('error').hidden = !error;
}

place('form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const text = new FormData(event.target).get('text');
  try {
    show(await ask('/api/notes', { method: 'POST', body: JSON.stringify({ text }) }));
    event.target.reset();
    complain(null);
  } catch (error) {
    complain(error);
  }
});

// The browser connects anew by itself when the worker behind it is replaced.
new EventSource('/api/clock').addEventListener('message', ({ data }) => {
  place('clock').textContent = new Date(data).toLocaleTimeString();
});

try {
  (await ask('/api/notes')).forEach(show);
  const { client, worker } = await ask('/api/me');
  place('me').textContent = `You are ${client.address}, answered by process ${worker}.`;
} catch (error) {
  complain(error);
}
