// Its own element, with an open shadow root; answers come as server-sent events.
import "deep-chat/dist/deepChat.bundle.js";

const chat = document.createElement("deep-chat");
chat.connect = { url: "/frontends/deep_chat", stream: true };
document.body.append(chat);
