// A Direct Line client with a web socket; answers grow by live streaming.
import "./node_modules/botframework-webchat/dist/webchat.js";

const home = document.createElement("div");
home.style.height = "90vh";
document.body.append(home);
const directLine = WebChat.createDirectLine({ domain: `${location.origin}/frontends/directline`, token: "local" });
WebChat.renderWebChat({ directLine, userID: "user" }, home);
