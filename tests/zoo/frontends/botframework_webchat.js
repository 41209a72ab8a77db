// A Direct Line client with a web socket, or with polls (`?polling`); answers grow by live streaming.
import "./node_modules/botframework-webchat/dist/webchat.js";

const home = document.createElement("div");
home.style.height = "90vh";
document.body.append(home);
const domain = `${location.origin}/frontends/directline`;
const directLine = WebChat.createDirectLine({ domain, token: "local", webSocket: location.search !== "?polling" });
WebChat.renderWebChat({ directLine, userID: "user" }, home);
