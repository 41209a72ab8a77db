"""Measure the cost of judging.

    python -m tests.bench.bench_cost [--write docs/cost.md]

The measured work is nightly runs of 10, 200 and 2,000 judged conversations, and deploys of 200 cases for each
`judge.scope`. Lookout's own code sends requests to local servers that implement the providers' protocols. The
servers count tokens (four bytes are a token), and Lookout's price list gives the prices. A nightly run is judged as
`lookout nightly` does it: in batches if the provider supports them, with known answers in every group of 25. In a
deploy, the answers are judged as they arrive. Severity-3 answers that the rules left open are judged at once and
alone, which is the most expensive way. Each cost is compared with the cost of one uncached call for each reply. No
time is measured.

The provider decides how many requests of a batch find the instructions in its cache. Here, it is 70 %.
Anthropic's cache accepts only prefixes of a minimum length, which its documentation gives for each model.
For the 4.5 and 4.6 models, this is 4,096 tokens for Haiku and Opus, and 2,048 tokens for Sonnet. Lookout's
instructions are shorter than 4,096 tokens. OpenAI's minimum is 1,024 tokens.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from flows.nightly.grading import GradedTurn, TrafficGrader, judge_traffic
from flows.runtime.judge import JudgePlan, open_judge
from flows.verify.judging import JudgeQueue, PendingAnswer
from monitors.domains.pack import INSURANCE, load_domain
from monitors.gate.assess import assess_case
from monitors.goldset.load import load_suite
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.graders.traffic_panel import TrafficPanel
from monitors.judge.consensus import Cost, JudgeCase
from monitors.judge.judge import Account, FamilyPolicy, JudgedGroup
from monitors.judge.model import PriceRow, build_price_function, find_price_row
from monitors.judge.precheck import build_judge_case, is_judge_required_for_ungraded
from monitors.judge.prompt import Subject
from monitors.judge.settings import JudgeModelSettings, JudgeProvider, JudgeScope, JudgeSettings
from monitors.records.base import Finding, Record, Severity
from monitors.records.cases import GoldCase
from monitors.records.runs import Judging
from monitors.records.traffic import Conversation, Turn
from tests.bench.judging import LengthyJudge, NoCache
from tests.bench.measurements import Figure, report
from tests.builders import exchange
from tests.figures import table, write_section
from tests.flows.demo_nightly_runs import SUITE, replies
from tests.servers import anthropic, openai_chat
from tests.servers.anthropic_tokens import PromptCache

HIT_SHARE = 0.7
NIGHTS = (10, 200, 2_000)
CASES = 200
OPEN_IN_TEN = 3
NO_LIMIT = Decimal(10_000)
ANSWER_CHARACTERS = 1_000
PASSAGES, PASSAGE_CHARACTERS = 4, 1_000
OTHER_FAMILY: Final = PriceRow(
    model="gpt-6-sol*",
    input=Decimal(2),
    output=Decimal(10),
    cache_read=Decimal("0.20"),
    as_of=date(2026, 10, 16),
    source="OpenAI's price list as other projects quote it",
)
"""An example of a row in `[[judge.prices]]`. Lookout has no built-in price for this maker's models."""


class Provider(NamedTuple):
    """A judge model, and the provider that a local server simulates."""

    model: str
    provider: JudgeProvider = JudgeProvider.ANTHROPIC


PROVIDERS: Final = (
    Provider("claude-haiku-5-5"),
    Provider("claude-sonnet-5-5"),
    Provider("claude-opus-5-5"),
    Provider("gpt-6-sol", JudgeProvider.OPENAI),
)


class Spent(Record):
    """The cost of one nightly run or deploy, and the cost of one uncached call for each of its ``replies``."""

    model: str
    work: str
    replies: int
    cost: Cost
    uncached: Cost

    @property
    def share(self) -> Decimal:
        """Return the cost as a share of the cost of one uncached call for each reply."""
        return self.cost.usd / self.uncached.usd


@contextmanager
def asked_at(
    provider: Provider, hit_share: float, budget_usd: Decimal = NO_LIMIT
) -> Generator[tuple[JudgePlan, dict[str, str]]]:
    """Start a local server that simulates the provider, and yield a judge's settings and environment variables.

    ``hit_share`` is the share (0 to 1) of requests that find the instructions in the provider's cache. With 0,
    nothing is cached. ``budget_usd`` is the judge's budget in US dollars.
    """
    judge = LengthyJudge()
    if provider.provider is JudgeProvider.ANTHROPIC:
        cached = PromptCache(hit_share) if hit_share else NoCache()
        server = anthropic.AnthropicServer(judge=judge, cache=cached)
        server.batch_looks = 0
        path, environment = "", {"ANTHROPIC_API_KEY": anthropic.KEY}
    else:
        server = openai_chat.OpenAIServer(judge=judge, cache_share=hit_share)
        path, environment = "/v1", {"OPENAI_API_KEY": openai_chat.KEY}
    with server:
        model = JudgeModelSettings(provider=provider.provider, model=provider.model, base_url=server.url + path)
        settings = JudgeSettings(
            models=(model,), prices=(OTHER_FAMILY,), budget_usd=budget_usd, batch_poll_s=0.01, concurrency=8
        )
        yield JudgePlan(settings=settings, family_policy=FamilyPolicy(target="bench", family="llama")), environment


def nonces() -> Callable[[], str]:
    """Return a function that returns a new nonce at each call. The nonce is as long as a real one."""
    numbers = itertools.count(1)
    return lambda: f"{next(numbers):032x}"


@cache
def suite() -> tuple[GoldCase, ...]:
    """Return the cases of the demo's suite, which has gold answers of every kind and severity."""
    return tuple(load_suite(SUITE).cases)


def pad_text(text: str, others: Sequence[str], characters: int) -> str:
    """Return a text of ``characters`` characters: ``text``, followed by ``others`` in turn.

    If the texts in ``others`` are too short, they are repeated. The result is cut to the length.
    """
    pieces = itertools.cycle(others)
    while len(text) < characters:
        text = f"{text} {next(pieces)}"
    return text[:characters]


def build_conversations(count: int) -> list[Conversation]:
    """Build conversations with real questions of the demo, and answers and passages of realistic length.

    From the 201st on, the conversations repeat the first 200.
    """
    replies_by_question = [(question, reply.text) for question, reply in replies().items()]
    clauses = [case.provenance.clause for case in suite() if case.provenance.clause]
    conversations: list[Conversation] = []
    for number in range(count):
        question, answer = replies_by_question[number % CASES % len(replies_by_question)]
        shelf = clauses[number % 50 :] + clauses[: number % 50]
        passages = tuple(pad_text("", shelf[at * 7 :], PASSAGE_CHARACTERS) for at in range(PASSAGES))
        turn = Turn(user_text=question, reply_text=pad_text(answer, shelf, ANSWER_CHARACTERS), context=passages)
        at = datetime(2026, 3, 1, tzinfo=UTC) + timedelta(seconds=number)
        conversations.append(
            Conversation(id=f"talk-{number}", origin_id=f"talk-{number}", completed_at=at, turns=(turn,))
        )
    return conversations


@cache
def grade_night(count: int) -> tuple[GradedTurn, ...]:
    """Grade ``count`` conversations of a nightly run with the rules that check every reply."""
    grader = TrafficGrader(TrafficPanel(GraderSettings()), severity=Severity.MAJOR)
    return tuple(
        turn
        for conversation in build_conversations(count)
        for turn in grader.grade_turns(conversation, conversation, "night")
    )


async def measure_night(provider: Provider, count: int, *, budget_usd: Decimal = NO_LIMIT) -> Judging:
    """Measure the cost of a nightly run with ``count`` conversations, judged as `lookout nightly` does it."""
    with asked_at(provider, HIT_SHARE, budget_usd) as (plan, environment):
        judged, _ = await judge_traffic(
            plan, grade_night(count), suite(), seed="night", environment=environment, nonce=nonces()
        )
    judging = judged.judging
    if judged.void or (judging.judged < count and not judging.budget_reached):
        raise SystemExit(
            f"{provider.model}: {judging.judged} of {count} judged; {judged.void or judging.ungraded_because}"
        )
    return judging


def compute_call_cost(said: Judging) -> Cost:
    """Return the cost that a nightly run recorded for its judging."""
    return Cost(
        calls=said.calls,
        input_tokens=said.input_tokens,
        cached_tokens=said.cached_tokens,
        output_tokens=said.output_tokens,
        usd=said.cost_usd,
    )


def build_conversation_answers(scope: JudgeScope) -> list[PendingAnswer]:
    """Build the answers of a deploy that a judge grades with this ``scope``, highest severity first.

    The deploy has 200 answers. The rules leave three of ten answers open and pass the others.
    """
    reply_by_case = replies()
    texts = [reply.text for reply in reply_by_case.values()]
    pending: list[PendingAnswer] = []
    for number, case in _numbered(CASES):
        rules = Finding.UNGRADED if number % 10 < OPEN_IN_TEN else Finding.YES
        confirmed = scope is JudgeScope.ALL or (scope is JudgeScope.SEVERE and case.severity is Severity.CRITICAL)
        if rules is Finding.UNGRADED or confirmed:
            named = case.model_copy(update={"id": f"{number}-{case.id}"[:120]})
            long_exchange = exchange(named, pad_text(reply_by_case[case.turns[-1]].text, texts, ANSWER_CHARACTERS))
            pending.append(PendingAnswer(named, long_exchange, (), rules))
    return sorted(pending, key=lambda answer: -answer.case.severity)


def _numbered(count: int) -> Iterable[tuple[int, GoldCase]]:
    return zip(range(count), itertools.cycle(suite()), strict=False)


async def measure_deploy(provider: Provider, scope: JudgeScope) -> Cost:
    """Measure the cost of a deploy whose answers are judged as in a run.

    Open answers of severity 3 are judged immediately, each in its own call. All other answers are judged in groups.
    """
    waiting = build_conversation_answers(scope)
    voids: list[JudgedGroup] = []
    done = asyncio.Event()

    async def ruled(_waiting: PendingAnswer, _ruling: object) -> None:
        done.set()

    with asked_at(provider, HIT_SHARE) as (plan, environment):
        assert plan.settings is not None
        account = Account(build_price_function(plan.settings.prices), limit_usd=None)
        async with open_judge(plan, environment, account, nonces()) as judge:
            queue = JudgeQueue(
                judge,
                suite(),
                seed="deploy",
                size=plan.settings.batch_size,
                on_ruling=ruled,
                on_group=lambda group: voids.append(group) if group.is_void else None,
            )
            async with queue:
                for answer in waiting:
                    done.clear()
                    queue.add(answer)
                    if answer.case.severity is Severity.CRITICAL and answer.rules is Finding.UNGRADED:
                        await done.wait()
    if voids:
        raise SystemExit(f"{provider.model}: {len(voids)} groups are void")
    return account.total


async def compute_uncached_cost(provider: Provider, cases: Sequence[JudgeCase]) -> list[Cost]:
    """Return the cost of judging each case with its own call, without a cache, batches or known answers."""
    with asked_at(provider, 0.0) as (plan, environment):
        assert plan.settings is not None
        account = Account(build_price_function(plan.settings.prices), limit_usd=None)
        async with open_judge(plan, environment, account, nonces()) as judge:
            group = await judge.judge_group(cases, ())
    return [ruling.cost for ruling in group.rulings]


def build_cases(some: Sequence[Conversation]) -> list[JudgeCase]:
    """Build the judge's cases from conversations."""
    return [
        JudgeCase(
            id=conversation.id,
            subject=Subject(turns=(turn.user_text,), answer=turn.reply_text, passages=turn.context),
            severity=Severity.MAJOR,
        )
        for conversation in some
        for turn in conversation.turns
    ]


def sum_costs(costs: Sequence[Cost], count: int) -> Cost:
    """Return the total cost of ``count`` replies. If ``costs`` has fewer entries, they are repeated."""
    return sum((costs[number % len(costs)] for number in range(count)), Cost())


async def measure_provider(provider: Provider) -> list[Spent]:
    """Measure the costs of all nightly runs and deploys with one judge."""
    talk_costs = await compute_uncached_cost(provider, build_cases(build_conversations(CASES)))
    case_costs = await compute_uncached_cost(
        provider,
        [build_judge_case(answer.case, answer.exchange) for answer in build_conversation_answers(JudgeScope.ALL)],
    )
    nights = [
        Spent(
            model=provider.model,
            work=format_night(count),
            replies=count,
            cost=compute_call_cost(await measure_night(provider, count)),
            uncached=sum_costs(talk_costs, count),
        )
        for count in NIGHTS
    ]
    deploys = [
        Spent(
            model=provider.model,
            work=format_deploy(scope),
            replies=CASES,
            cost=await measure_deploy(provider, scope),
            uncached=sum_costs(case_costs, CASES),
        )
        for scope in JudgeScope
    ]
    return nights + deploys


async def describe_budget() -> str:
    """Describe how much of the largest nightly run the default judge can grade with the default budget."""
    usual = JudgeSettings()
    assert usual.budget_usd is not None
    judging = await measure_night(Provider(usual.models[0].model), NIGHTS[-1], budget_usd=usual.budget_usd)
    left = NIGHTS[-1] - judging.judged
    return (
        f"With the default budget of ${usual.budget_usd:.2f}, `{usual.models[0].model}` judged {judging.judged:,} of"
        f" {NIGHTS[-1]:,} conversations for ${judging.cost_usd:.2f} and left {left:,} ungraded."
    )


def format_night(count: int) -> str:
    """Format the column heading of a nightly run with ``count`` conversations."""
    return f"night of {count:,}"


def format_deploy(scope: JudgeScope) -> str:
    """Format the column heading of a deploy."""
    return f"deploy of {CASES}, scope {scope}"


def count_open_demo_cases() -> tuple[int, int]:
    """Return the number of answers that only a judge can grade, and the number of all answers.

    The answers are those of the demo without faults.
    """
    panel = build_rule_panel(GraderSettings(), load_domain((INSURANCE,)))
    exchanges = [(case, exchange(case, replies()[case.turns[-1]].text)) for case in suite()]
    return sum(
        is_judge_required_for_ungraded(assess_case(c, e, grade_exchange(panel, c, e))) for c, e in exchanges
    ), len(exchanges)


def build_money_table(spent: Sequence[Spent]) -> list[str]:
    """Build the table of costs, with a row for each judge and a column for each nightly run or deploy."""
    works = list(dict.fromkeys(spending.work for spending in spent))
    models = list(dict.fromkeys(spending.model for spending in spent))
    spent_by_work = {(spending.model, spending.work): spending for spending in spent}
    rows = [(f"`{model}`", *(format_money_cell(spent_by_work[model, work]) for work in works)) for model in models]
    return table(("judge", *works), rows)


def format_money_cell(spending: Spent) -> str:
    """Format a cost, such as ``$0.31 of $0.92 (34 %)``."""
    return f"{usd(spending.cost.usd)} of {usd(spending.uncached.usd)} ({spending.share:.0%})".replace("%)", " %)")


def usd(money: Decimal) -> str:
    """Format an amount in dollars and cents, with more digits for a small amount."""
    return f"${money:.2f}" if money >= 1 else f"${money:.4f}" if money < Decimal("0.1") else f"${money:.3f}"


def build_token_table(spent: Sequence[Spent]) -> list[str]:
    """Build the table of tokens for the largest nightly run and a usual deploy."""
    rows = [
        (
            f"`{spending.model}`",
            spending.work,
            f"{spending.cost.calls:,}",
            f"{spending.cost.input_tokens:,}",
            f"{spending.cost.cached_tokens:,}",
            f"{spending.cost.output_tokens:,}",
        )
        for spending in spent
        if spending.work in (format_night(NIGHTS[-1]), format_deploy(JudgeScope.SEVERE))
    ]
    return table(("judge", "work", "calls", "tokens in", "from the cache", "tokens out"), rows)


def build_price_table() -> list[str]:
    """Build the table of the prices that were used, with their date and source."""
    prices = [(provider, find_price_row(provider.model, 0, (OTHER_FAMILY,))) for provider in PROVIDERS]
    rows = [
        (
            f"`{provider.model}`",
            row.input,
            "as input" if row.cache_write_1h is None else row.cache_write_1h,
            row.cache_read,
            row.output,
            f"{row.batch_factor:.0%}".replace("%", " %") if row.batch_factor < 1 else "none",
            usd(row.output / 10),
            row.as_of,
            row.source,
        )
        for provider, row in prices
    ]
    thought = "1,000 verdicts of 100 tokens more"
    head = (
        "model",
        "in",
        "written to the cache (1 h)",
        "from the cache",
        "out",
        "batch",
        thought,
        "as of",
        "source",
    )
    return table(head, rows)


def build_report_lines(spent: Sequence[Spent], budget: str) -> list[str]:
    """Build the lines of the section of docs/cost.md that this bench writes."""
    left_open, of = count_open_demo_cases()
    first = (
        f"Measured on {datetime.now(UTC):%Y-%m-%d}. Each cell: what Lookout spends, of what one uncached call for each"
        f" reply would cost, and the share. Of the demo's suite the rules leave {left_open} of {of} answers open."
    )
    return [
        first,
        "",
        *build_money_table(spent),
        "",
        budget,
        "",
        "The tokens behind it:",
        "",
        *build_token_table(spent),
        "",
        "The prices behind it, in US dollars per million tokens:",
        "",
        *build_price_table(),
    ]


def build_figure(spending: Spent) -> Figure:
    """Build a row of `make bench`. A cost has no goal here; `bench_judge` checks P6, the only goal for costs."""
    return Figure(
        id="cost",
        what=f"{spending.work}, {spending.model}",
        unit="USD",
        values=(float(spending.cost.usd),),
        baseline="one uncached call per reply, USD",
        baselines=(float(spending.uncached.usd),),
        note=f"{spending.cost.calls:,} calls; prices as of {find_price_row(spending.model, 0, (OTHER_FAMILY,)).as_of}",
    )


async def measure_all() -> list[Spent]:
    """Measure the costs of all nightly runs and deploys with every judge."""
    return [spending for provider in PROVIDERS for spending in await measure_provider(provider)]


def main() -> int:
    """Report each figure. With ``--write``, update the section of the given page."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", type=Path, help="a page with the section `cost`")
    chosen = options.parse_args()
    spent = asyncio.run(measure_all())
    for spending in spent:
        report(build_figure(spending))
    if chosen.write:
        write_section(chosen.write, "cost", build_report_lines(spent, asyncio.run(describe_budget())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
