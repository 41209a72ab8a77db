// The default mode: a button in a corner opens the window of the chat, which greets. `?whole`: the chat fills the page
// behind a welcome screen, and answers come in one piece.
import "@n8n/chat/style.css";
import { createChat } from "@n8n/chat/dist/chat.bundle.es.js";

const whole = { webhookUrl: "/frontends/n8n_chat/whole", mode: "fullscreen", showWelcomeScreen: true };
createChat(location.search === "?whole" ? whole : { webhookUrl: "/frontends/n8n_chat", enableStreaming: true });
