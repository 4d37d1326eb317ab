const list = document.querySelector('#notes');
const form = document.querySelector('form');

async function show() {
  const notes = await (await fetch('/api/notes')).json();
  list.replaceChildren(...notes.map(({ text }) => Object.assign(document.createElement('li'), { textContent: text })));
}

form.addEventListener('submit', async (event) => {
  event.preventDefault();
  await fetch('/api/notes', {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ text: form.elements.text.value }),
  });
  form.reset();
  await show();
});

new EventSource('/api/ticks').addEventListener('message', ({ data }) => {
  document.querySelector('output').textContent = data;
});

show();
