// Its own element, with an open shadow root; answers come as server-sent events. `?whole`: they come in one piece and are
// typed afterwards, with names, pictures and an introduction.
import "deep-chat/dist/deepChat.bundle.js";

const whole = {
  connect: { url: "/frontends/deep_chat/whole", stream: { simulation: 20 } },
  names: true,
  avatars: true,
  introMessage: { text: "Hi, I am your assistant, ask me anything!" },
};
const chat = document.createElement("deep-chat");
Object.assign(chat, location.search === "?whole" ? whole : { connect: { url: "/frontends/deep_chat", stream: true } });
document.body.append(chat);
