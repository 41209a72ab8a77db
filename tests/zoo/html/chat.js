// What the hand-written pages share: asking the backend.
async function wholeReply(question) {
  const response = await fetch("/chat", { method: "POST", body: JSON.stringify({ question }) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return (await response.json()).reply.text;
}

async function streamReply(question, show) {
  const response = await fetch("/stream", { method: "POST", body: JSON.stringify({ question }) });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return text;
    text += value;
    show(text);
  }
}

function add(parent, className, text, tag = "div") {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  parent.append(element);
  return element;
}

const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
