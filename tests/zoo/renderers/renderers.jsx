// Real Markdown renderers behind one door: `renderers[name](home)` gives a function that shows a text in `home`.
import "katex/dist/katex.min.css";
import hljs from "highlight.js";
import katex from "katex";
import MarkdownIt from "markdown-it";
import texmath from "markdown-it-texmath";
import { Marked } from "marked";
import { markedHighlight } from "marked-highlight";
import { flushSync } from "react-dom";
import { createRoot } from "react-dom/client";
import ReactMarkdown from "react-markdown";
import rehypeHighlight from "rehype-highlight";
import rehypeKatex from "rehype-katex";
import remarkGfm from "remark-gfm";
import remarkMath from "remark-math";
import showdown from "showdown";
import { Streamdown } from "streamdown";

const highlight = (code, lang) => (hljs.getLanguage(lang) ? hljs.highlight(code, { language: lang }).value : hljs.highlightAuto(code).value);

const react = (element) => (home) => {
  const root = createRoot(home);
  const show = (text) => flushSync(() => root.render(element(text)));
  show.end = () => root.unmount();
  return show;
};

const spanned = (Tag) => ({ children }) => <Tag><span>{children}</span></Tag>;
const chip = ({ href, children }) => (href === "#cite" ? <button type="button" className="chip">{children}</button> : <a href={href}>{children}</a>);
const plugins = { remarkPlugins: [remarkGfm, remarkMath], rehypePlugins: [rehypeKatex, [rehypeHighlight, { detect: true }]] };

const html = (render) => (home) => (text) => { home.innerHTML = render(text); };
const it = new MarkdownIt({ linkify: true, html: false, highlight }).use(texmath, { engine: katex, delimiters: "dollars" });
const marked = new Marked(markedHighlight({ langPrefix: "hljs language-", highlight }));
const down = new showdown.Converter({ tables: true, strikethrough: true });

// Token by token, each in a span of its own, as pages draw that let words fade in.
const tokens = (home) => {
  home.style.whiteSpace = "pre-wrap";
  return (text) => {
    const said = home.textContent;
    if (!text.startsWith(said)) home.replaceChildren();
    for (const token of text.slice(home.textContent.length).match(/\s*\S+\s*/g) ?? []) {
      const span = document.createElement("span");
      span.className = "token";
      span.textContent = token;
      home.append(span);
    }
  };
};

globalThis.renderers = {
  "react-markdown": react((text) => <ReactMarkdown {...plugins}>{text}</ReactMarkdown>),
  "react-markdown, bold in spans, chips": react((text) => (
    <ReactMarkdown {...plugins} components={{ strong: spanned("strong"), em: spanned("em"), td: spanned("td"), a: chip }}>{text}</ReactMarkdown>
  )),
  "markdown-it": html((text) => it.render(text)),
  marked: html((text) => marked.parse(text)),
  streamdown: react((text) => <Streamdown>{text}</Streamdown>),
  showdown: html((text) => down.makeHtml(text)),
  "tokens as spans": tokens,
};
