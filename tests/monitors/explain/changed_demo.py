"""Run Lookout against variants of the demo's bot, over a JSON API or a small page.

The variants that a test compares differ in one thing.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from aiohttp import web

from deployments.demo.bot import Bot
from deployments.demo.configuration import SUITE
from deployments.demo.policies import Policy, PolicyBook, load_policies, load_vocabulary
from flows.clock import utc_now
from flows.runtime.probe import format_browser
from flows.runtime.run import build_run_context, open_chat_driver
from flows.verify.run_folder import VerifyRequest
from flows.verify.run_state import LiveRun
from flows.verify.snapshot import build_run_snapshot
from monitors.config.file import parse_config
from monitors.gate.assess import assess_case
from monitors.gate.evaluate import evaluate_results
from monitors.graders.panel import grade_exchange
from monitors.probes.runner import Question, probe_questions
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange, ProbeResult
from monitors.records.grades import JudgeLineage
from monitors.records.runs import JudgeState, Judging, RunReport
from tests.servers.threaded_server import ThreadedServer

DECLINE = "I'm sorry, but I can't help with that request."
OPENINGS = (
    "Sure. ",
    "Happy to help. ",
    "Of course! ",
    "Here is what I found: ",
    "Good question. ",
    "",
    "Let me see. ",
)
CLOSINGS = (
    "",
    " Is there anything else?",
    " I hope this helps.",
    " Let me know if you have 2 more minutes.",
    " Thanks!",
)
PAGE = """<!doctype html><html><head><title>{title}</title><meta name="generator" content="{framework}">
<script nonce="{nonce}">window.session = "{nonce}";</script>
<link rel="stylesheet" href="/static/{style}"></head>
<body><div role="log" id="log"></div><form><textarea placeholder="Ask a question"></textarea><button>Send</button></form>
<script src="/static/{script}"></script><script>
document.querySelector("form").addEventListener("submit", async (event) => {{
  event.preventDefault();
  const box = document.querySelector("textarea"), log = document.querySelector("#log"), question = box.value;
  box.value = "";
  const add = (text) => {{ const one = document.createElement("p"); one.textContent = text; log.append(one); }};
  add(question);
  const reply = await fetch("/chat", {{ method: "POST", body: JSON.stringify({{ question }}) }});
  add((await reply.json()).answer);
}});
document.querySelector("textarea").addEventListener("keydown", (event) => {{
  if (event.key === "Enter") {{ event.preventDefault(); document.querySelector("form").requestSubmit(); }}
}});
</script></body></html>"""


@dataclass(frozen=True)
class Variant:
    """A variant of the application.

    If ``wording`` is set, the variant rewords every answer, as a model does. ``declines`` is the share of questions
    that the bot declines. ``newer`` is the share of answers that name ``newer_model`` as their model.
    """

    book: PolicyBook = field(default_factory=load_policies)
    wording: bool = False
    delay_ms: float = 60
    declines: float = 0.0
    model: str | None = None
    newer_model: str | None = None
    newer: float = 0.0
    more: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    versions: Callable[[Policy], Any] | None = None
    version_key: str = "sha256"
    cites: bool = True
    suffix: str = ""
    page: Mapping[str, str] = field(default_factory=dict)


class DemoApi(ThreadedServer):
    """A server of one variant. ``seed`` determines its random values; each run has another seed."""

    def __init__(self, variant: Variant, seed: int) -> None:
        super().__init__()
        self._variant = variant
        self._random = Random(seed)
        self._bot = Bot(variant.book, load_vocabulary())

    def application(self) -> web.Application:
        """Return the application with the page at / and its chat endpoint."""
        app = web.Application()
        app.router.add_get("/", self._page)
        app.router.add_get("/static/{name}", self._static)
        app.router.add_post("/chat", self._chat)
        return app

    async def _page(self, _request: web.Request) -> web.Response:
        parts = {"title": "Suraksha", "framework": "DemoChat 1.2", "script": "app-1a2b.js", "style": "app-3c4d.css"}
        html = PAGE.format(**parts | dict(self._variant.page), nonce=f"{self._random.getrandbits(96):024x}")
        return web.Response(text=html, content_type="text/html")

    async def _static(self, request: web.Request) -> web.Response:
        kind = "text/css" if request.match_info["name"].endswith("css") else "text/javascript"
        return web.Response(text="", content_type=kind)

    async def _chat(self, request: web.Request) -> web.Response:
        question = json.loads(await request.read())["question"]
        variant, chance = self._variant, self._random
        await asyncio.sleep(variant.delay_ms * chance.lognormvariate(0, 0.25) / 1000)
        said = self._bot.reply(question)
        text, hits = said.text, said.hits
        if chance.random() < variant.declines:
            text, hits = DECLINE, ()
        if not variant.cites:
            text = text.split(" [Source:", 1)[0]
        if variant.wording and text != DECLINE:
            text = f"{chance.choice(OPENINGS)}{text}{chance.choice(CLOSINGS)}"
        body: dict[str, Any] = {"answer": text + variant.suffix, **variant.more}
        if variant.model is not None:
            newer = chance.random() < variant.newer
            body["model"] = variant.newer_model if newer else variant.model
        if variant.versions is not None:
            policies = {hit.policy.id: hit.policy for hit in hits}.values()
            body["sources"] = [{"title": p.name, variant.version_key: variant.versions(p)} for p in policies]
        return web.json_response(body, headers=dict(variant.headers))


def with_policy(book: PolicyBook, at: int, change: Callable[[Policy], Policy | None]) -> PolicyBook:
    """Return ``book`` after ``change`` was applied to the policy at index ``at``.

    The policy is removed if ``change`` returns ``None``.
    """
    policies = [change(policy) if n == at else policy for n, policy in enumerate(book.policies)]
    return book.model_copy(update={"policies": tuple(policy for policy in policies if policy is not None)})


def other_amounts(policy: Policy, *, most: int = 1000) -> Policy:
    """Return the policy with other amounts. Only the first ``most`` facts that have an amount are changed."""
    facts, changed = [], 0
    for fact in policy.facts:
        if fact.amount is not None and changed < most:
            other = fact.amount * 2 + 1
            text = fact.text.replace(f"{fact.amount:f}", f"{other:f}")
            if text == fact.text:
                text = f"{fact.text.rstrip('.')}, now {other:f}."
            facts.append(fact.model_copy(update={"amount": Decimal(other), "text": text}))
            changed += 1
        else:
            facts.append(fact)
    return policy.model_copy(update={"facts": tuple(facts)})


def hash_of(policy: Policy) -> str:
    """Return a hash of a policy's text."""
    return hashlib.sha256(policy.model_dump_json().encode()).hexdigest()


@dataclass(frozen=True)
class Setup:
    """The settings of Lookout for a run.

    ``tool`` replaces fields of the run's snapshot that do not come from the configuration.
    """

    cases: int = 64
    driver: str = "json"
    concurrency: int = 8
    commit: str | None = "aaa"
    edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = lambda lines: lines
    config: Mapping[str, Any] = field(default_factory=dict)
    probe: Mapping[str, Any] = field(default_factory=dict)
    grader_version: str | None = None
    judge: JudgeLineage | None = None
    tool: Mapping[str, str] = field(default_factory=dict)


def suite_lines(cases: int) -> list[dict[str, Any]]:
    """Return ``cases`` lines of the demo's own suite, taken at regular intervals."""
    lines = [json.loads(line) for line in SUITE.read_text(encoding="utf-8").splitlines()]
    step = max(1, len(lines) // cases)
    return lines[::step][:cases]


def _config(folder: Path, url: str, setup: Setup) -> dict[str, Any]:
    suite = folder / "suite.jsonl"
    lines = setup.edit(suite_lines(setup.cases))
    suite.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    api: dict[str, Any] = {"citations": "sources"} | dict(setup.probe)
    probe = {"driver": setup.driver, "concurrency": setup.concurrency, "attempts": 1, "api": api}
    graders: dict[str, Any] = {"citation_required": True}
    target: dict[str, Any] = {"url": url, "suite": str(suite), "probe": probe, "graders": graders}
    values: dict[str, Any] = {"data_folder": str(folder / "data"), "targets": {"demo": target}}
    for key, value in setup.config.items():
        table, _, name = key.rpartition(".")
        place = values.setdefault(table, {}) if table != "graders" else graders
        place[name] = value
    return values


def recorded_run(folder: Path, variant: Variant, setup: Setup, seed: int) -> RunReport:
    """Run the suite against a variant, over HTTP or a real page. Return the report, which contains the snapshot."""
    folder.mkdir(parents=True, exist_ok=True)
    with DemoApi(variant, seed) as api:
        # The same address as in every other run, as an application has it: the port is this test's own.
        address = f"{api.url}/chat" if setup.driver == "json" else api.url
        config = parse_config(_config(folder, address, setup), "test")
        request = VerifyRequest(target="demo", config=config, commit=setup.commit, fresh=True)
        run = LiveRun(build_run_context(request))
        with run.context.run_folder:
            asyncio.run(_asked(run))
    if setup.judge is not None:
        run.judging = Judging(state=JudgeState.ON, lineages=(setup.judge,))
    report = evaluate_results(
        run.build_facts(utc_now()), run.results, run.context.config.gate, suite=run.context.suite.cases
    )
    snapshot = build_run_snapshot(run)
    settings = {name: value for name, value in snapshot.settings.items() if name != "target"}
    snapshot = snapshot.model_copy(update={"settings": settings, **setup.tool})
    if setup.grader_version is not None:
        graders = dict(snapshot.graders)
        graders["factual"] = setup.grader_version
        snapshot = snapshot.model_copy(update={"graders": graders})
    return report.model_copy(update={"snapshot": snapshot})


async def _asked(run: LiveRun) -> None:
    context = run.context

    async def on_result(case: GoldCase, result: ProbeResult) -> None:
        grades = grade_exchange(context.panel, case, result) if isinstance(result, Exchange) else ()
        await asyncio.to_thread(run.save, case, result, assess_case(case, result, grades))

    async with open_chat_driver(context) as driver:
        run.browser = format_browser(driver)
        await probe_questions(
            driver,
            [Question(case=case) for case in context.suite.cases],
            run_id=context.run_id,
            settings=context.configured.probe,
            clock=context.now,
            concurrency=context.configured.probe.concurrency or 1,
            on_result=on_result,
        )
