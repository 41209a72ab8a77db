// The parts of its documented thread: a welcome with suggestions, Markdown that is typed smoothly, actions under each
// message, other versions of an answer, and one control that sends or stops.
import {
  ActionBarPrimitive, AssistantRuntimeProvider, AuiIf, BranchPickerPrimitive, ComposerPrimitive, MessagePrimitive, ThreadPrimitive, useLocalRuntime,
} from "@assistant-ui/react";
import { MarkdownTextPrimitive } from "@assistant-ui/react-markdown";
import { createRoot } from "react-dom/client";
import remarkGfm from "remark-gfm";

const backend = {
  async *run({ messages, abortSignal }) {
    const question = messages.at(-1).content.map(({ text }) => text).join("");
    const response = await fetch("/frontends/assistant_ui", { method: "POST", body: JSON.stringify({ question }), signal: abortSignal });
    let text = "";
    for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
      text += piece;
      yield { content: [{ type: "text", text }] };
    }
  },
};

const Markdown = () => <MarkdownTextPrimitive remarkPlugins={[remarkGfm]} />;

const UserMessage = () => (
  <MessagePrimitive.Root>
    <MessagePrimitive.Parts />
    <ActionBarPrimitive.Root><ActionBarPrimitive.Edit aria-label="Edit">✎</ActionBarPrimitive.Edit></ActionBarPrimitive.Root>
  </MessagePrimitive.Root>
);

const AssistantMessage = () => (
  <MessagePrimitive.Root>
    <MessagePrimitive.Parts components={{ Text: Markdown }} />
    <BranchPickerPrimitive.Root hideWhenSingleBranch>
      <BranchPickerPrimitive.Number /> / <BranchPickerPrimitive.Count />
    </BranchPickerPrimitive.Root>
    <ActionBarPrimitive.Root hideWhenRunning>
      <ActionBarPrimitive.Copy>Copy</ActionBarPrimitive.Copy>
      <ActionBarPrimitive.Reload>Refresh</ActionBarPrimitive.Reload>
    </ActionBarPrimitive.Root>
  </MessagePrimitive.Root>
);

const Chat = () => (
  <AssistantRuntimeProvider runtime={useLocalRuntime(backend)}>
    <ThreadPrimitive.Root>
      <ThreadPrimitive.Viewport style={{ height: "70vh", overflow: "auto" }}>
        <AuiIf condition={({ thread }) => thread.isEmpty}>
          <p>How can I help you today?</p>
          <ThreadPrimitive.Suggestion prompt="Which plans cover maternity?" send>Which plans cover maternity?</ThreadPrimitive.Suggestion>
          <ThreadPrimitive.Suggestion prompt="What is a waiting period?" send>What is a waiting period?</ThreadPrimitive.Suggestion>
        </AuiIf>
        <ThreadPrimitive.Messages components={{ UserMessage, AssistantMessage }} />
        <ThreadPrimitive.ScrollToBottom aria-label="Scroll to bottom">↓</ThreadPrimitive.ScrollToBottom>
      </ThreadPrimitive.Viewport>
      <ComposerPrimitive.Root>
        <ComposerPrimitive.Input placeholder="Send a message..." rows={1} />
        <AuiIf condition={({ thread }) => !thread.isRunning}><ComposerPrimitive.Send aria-label="Send message">↑</ComposerPrimitive.Send></AuiIf>
        <AuiIf condition={({ thread }) => thread.isRunning}><ComposerPrimitive.Cancel aria-label="Stop generating">■</ComposerPrimitive.Cancel></AuiIf>
      </ComposerPrimitive.Root>
    </ThreadPrimitive.Root>
  </AssistantRuntimeProvider>
);

createRoot(document.body.appendChild(document.createElement("div"))).render(<Chat />);
