// The default mode: a button in a corner opens the window of the chat, which greets.
import "@n8n/chat/style.css";
import { createChat } from "@n8n/chat/dist/chat.bundle.es.js";

createChat({ webhookUrl: "/frontends/n8n_chat", enableStreaming: true });
