"""P6: judging 1,000 replies costs at most 25 % of one uncached call for each reply.

    python -m tests.bench.bench_judge

Both sides call a local server through the real SDK. The server counts tokens with simple rules: four bytes are a
token, and a prefix is cached from the model's minimum length on (see ``tests/servers/anthropic_tokens.py``). The
built-in price list gives the prices. The baseline sends every reply with the same instructions, without cache
control and without batches. Lookout asks the judge only about replies that the rules leave open, in batches. Every
group contains known answers (canaries), whose cost is included.

The suite decides how many replies need a judge: 3 of 26 real replies of an insurance assistant; here, three in ten.
The provider decides how often a batch finds the prefix in the cache: its documentation states 30 to 98 %. The cost
is measured at hit rates of 30, 70 and 98 %. Each hit rate gives one sample, because nothing else changes the cost.
Verdicts have a realistic length. Thinking tokens are not counted on either side.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from decimal import Decimal

from monitors.domains.pack import INSURANCE, load_domain
from monitors.gate.assess import assess_case
from monitors.graders.base import GraderSettings
from monitors.graders.panel import build_rule_panel, grade_exchange
from monitors.judge.anthropic_client import AnthropicJudge
from monitors.judge.batches import BatchPollPolicy, judge_by_batch
from monitors.judge.consensus import Cost, JudgeCase
from monitors.judge.judge import Account, FamilyPolicy, Judge, PanelMember
from monitors.judge.model import build_price_function
from monitors.judge.precheck import build_judge_case, is_judge_required_for_ungraded
from monitors.judge.settings import JudgeSettings
from monitors.records.cases import GoldCase
from monitors.records.exchanges import Exchange
from monitors.retry import RetryPolicy
from tests.bench.judging import LengthyJudge, NoCache
from tests.bench.measurements import Figure, report
from tests.builders import exchange, gold_case
from tests.servers.anthropic import KEY, AnthropicServer
from tests.servers.anthropic_tokens import PromptCache

REPLIES = 1_000
NEED_A_JUDGE_IN_TEN = 3
LIMIT = Decimal("0.25")
HIT_SHARES = (0.3, 0.7, 0.98)
MODELS = ("claude-sonnet-5-5", "claude-haiku-5-5")
PATIENCE = RetryPolicy(deadline_s=120, try_s=60, tries=3, most_pause_s=5)
SOURCE = "[Source: Nova Gold, clause 4]"

SUBJECTS = (
    "cataract surgery", "hernia repair", "knee replacement", "dental surgery", "treatment at home", "an ambulance",
    "a newborn child", "an organ donor", "physiotherapy", "a second opinion", "day care", "a private room",
)  # fmt: skip
CONDITIONS = (
    "when the treating doctor advises it in writing", "where a hospital of the network carries it out",
    "provided that the insurer hears of it in time", "as long as the premium was paid without a break",
    "if an accident made it necessary", "unless another policy pays for the same bill",
)  # fmt: skip


def build_pair(number: int) -> tuple[GoldCase, Exchange]:
    """Build a gold case and its reply. One reply in four is wrong."""
    subject, wrong = SUBJECTS[number % len(SUBJECTS)], number % 4 == 3
    if number % 10 < NEED_A_JUDGE_IN_TEN:
        condition = CONDITIONS[number % len(CONDITIONS)]
        other = CONDITIONS[(number + 1) % len(CONDITIONS)]
        gold = f"The plan covers {subject} in full {condition}."
        answer = f"With this plan {subject} gets covered in full {other if wrong else condition}."
    else:
        months = 2 + number % 50
        gold = f"{subject.capitalize()} has a waiting period of {months} months."
        answer = f"For {subject} the waiting period is {months + 5 if wrong else months} months."
    case = gold_case(f"case-{number}", turns=(f"What about {subject}?",), gold=gold)
    text = f"{answer} Please keep all bills, since a claim without them takes longer to settle. {SOURCE}"
    return case, exchange(case, text)


def count_open(pairs: Sequence[tuple[GoldCase, Exchange]]) -> list[JudgeCase]:
    """Return the judge cases of the replies that the rules leave open."""
    panel = build_rule_panel(GraderSettings(), load_domain((INSURANCE,)))
    return [
        build_judge_case(case, came)
        for case, came in pairs
        if is_judge_required_for_ungraded(assess_case(case, came, grade_exchange(panel, case, came)))
    ]


def build_bench(model: AnthropicJudge, account: Account) -> Judge:
    """Build a judge with ``model`` as its only model."""
    seat = PanelMember(model, account=account, family_policy=FamilyPolicy(target="bench", family="gpt"))
    numbers = iter(range(10**9))
    return Judge([seat], JudgeSettings(concurrency=8), nonce=lambda: f"{next(numbers):032x}")


async def run_baseline(name: str, cases: Sequence[JudgeCase]) -> Cost:
    """Run the baseline: one uncached call for each reply."""
    account = Account(build_price_function(()), limit_usd=None)
    with AnthropicServer(judge=LengthyJudge(), cache=NoCache()) as server:
        async with AnthropicJudge(name, api_key=KEY, base_url=server.url, retry_policy=PATIENCE) as model:
            await build_bench(model, account).judge_group(cases, ())
    return account.total


async def run_cascade(
    name: str, cases: Sequence[JudgeCase], known_cases: Sequence[GoldCase], hit_share: float
) -> Cost:
    """Judge only the open cases, in batches, with canaries."""
    account = Account(build_price_function(()), limit_usd=None)
    with AnthropicServer(judge=LengthyJudge(), cache=PromptCache(hit_share)) as server:
        server.batch_looks = 0
        async with AnthropicJudge(name, api_key=KEY, base_url=server.url, retry_policy=PATIENCE) as model:
            night = await judge_by_batch(
                build_bench(model, account),
                cases,
                known_cases,
                seed="bench",
                group_size=25,
                poll_policy=BatchPollPolicy(deadline_s=60, poll_s=0.01),
                monotonic=time.monotonic,
            )
    void = sum(group.is_void for group in night.groups)
    if void or night.missing:
        print(f"  {void} groups void, missing: {night.missing}")
    return account.total


def format_line(name: str, cost: Cost, base: Cost) -> str:
    """Format the parts of ``cost`` in one line, compared with the baseline ``base``."""
    return (
        f"  {name:<44} {cost.calls:>6} calls {cost.input_tokens:>9,} in {cost.cached_tokens:>9,} cached "
        f"{cost.output_tokens:>7,} out  ${cost.usd:>8.4f}  {cost.usd / base.usd:>6.1%}"
    )


async def measure(name: str, replies: int) -> Figure:
    """Measure one model: first the baseline, then Lookout with each share of cache hits."""
    pairs = [build_pair(number) for number in range(replies)]
    cases = count_open(pairs)
    known_cases = [case for case, _ in pairs[:60]]
    base = await run_baseline(name, [build_judge_case(case, came) for case, came in pairs])
    print(format_line(f"{name}, one uncached call per reply", base, base))
    spent: list[float] = []
    for share in HIT_SHARES:
        cost = await run_cascade(name, cases, known_cases, share)
        print(format_line(f"open ones, batches, {share:.0%} of them from cache", cost, base))
        spent.append(float(cost.usd))
    shares = ", ".join(f"{share * 100:.0f}" for share in HIT_SHARES)
    return Figure(
        id="P6",
        what=f"judge money for {replies:,} graded replies, {name}",
        unit="USD",
        values=tuple(spent),
        goal=float(LIMIT),
        baseline="one uncached call per reply, USD",
        baselines=(float(base.usd),) * len(spent),
        of="ratio",
        worst=True,
        note=f"{len(cases)} of {replies} replies need a judge; samples: {shares} % of a batch find the cache",
    )


def main() -> int:
    """Return exit code 1 if judging costs more than a quarter of the baseline."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replies", type=int, default=REPLIES)
    replies = parser.parse_args().replies
    missed = sum(not report(asyncio.run(measure(name, replies))) for name in MODELS)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
