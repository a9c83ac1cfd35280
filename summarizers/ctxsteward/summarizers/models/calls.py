"""`GovernedModel` puts a model behind limits: bounded retries, a rate, a spending limit, and a ledger.

    prices = {"gpt-4o-mini": ModelPrice(prompt=0.15, cached=0.075, output=0.6)}
    spending = SpendingLedger(prices, limits={"session": 0.02, "tenant": 5.0})    # dollars each may spend
    model = GovernedModel(OpenAIModel("gpt-4o-mini"), spending=spending)
    model.charged(tenant="acme", session="s-42").reply(request)

A *task* is all calls for one result: the first call, its retries, a repair. It may use `task_factor` times (by default
twice) the tokens of its first call, as estimated before sending: the prompt and the longest reply requested, not the
actual reply. An answer counts with its provider's numbers, and with its prompt at least. A try that the provider may
bill counts in full, answered or not; a try that it surely does not bill (429, no connection) counts nothing, and only
`tries` bounds it. The wait before a retry grows each time, with jitter, or is the provider's Retry-After; it never
exceeds the request's deadline. After `FAILURES` failed tries in a row, of any tasks, the model gets no calls for
`rest_seconds`, so that a model that is down does not cost every caller its deadline. An error about one request (400,
401) says nothing about others and does not count.

The ledger checks before each try that an account's spending and the most this try may cost stay within its limit. A
limit on a model without a price could not be enforced, so it stops that model. When a call ends in any way, also by an
interrupt or cancellation, its reservation is released and the call is counted; with our estimate if the provider
gives no usage, or an impossible one. Calls without an account are charged to the process.

Raises `ModelUnavailable`, and its subclass `SpendingStopped` at a spending limit.

Source: Retry-After, RFC 9110 section 10.2.3; retries are stamina's, with jittered exponential back-off.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ctxsteward.schemas import ChatModel, ChatReply, ChatRequest, InputError, ModelPrice, ModelUnavailable, TokenUsage
from ctxsteward.schemas.chat_model import ModelPurpose
from ctxsteward.store import process_forks as forking
from ctxsteward.store.deadline import seconds_left, uncut

if TYPE_CHECKING:
    from collections.abc import Iterator

logging.getLogger("stamina").addHandler(logging.NullHandler())  # shows retries only where logging is set up

FAILURES = 5
CHARS_PER_TOKEN = 3.0
"""For the estimate of prompts that were not counted: rather too many tokens than too few."""
FRAME_TOKENS = 8
AccountKind = Literal["tenant", "session", "night", "suite", "process"]
UNCHARGED: Mapping[AccountKind, str] = {"process": "uncharged"}
"""Account of calls without any other account."""


class SpendingStopped(ModelUnavailable):
    """An account has reached its limit, so no model is called for it any more."""


class SpentRow(NamedTuple):
    """Spending of one account for one purpose with one model."""

    account: AccountKind
    name: str
    model: str
    purpose: ModelPurpose
    calls: int
    failures: int
    usage: TokenUsage
    dollars: float


class SpendingLedger:
    """Calls of models and their cost by account, with spending limits; thread-safe.

    It counts the calls of this process. `limits`: dollars that each account of a kind may spend.
    """

    def __init__(
        self, prices: Mapping[str, ModelPrice] | None = None, *, limits: Mapping[AccountKind, float] | None = None
    ) -> None:
        self._prices, self._limits = dict(prices or {}), dict(limits or {})
        self._lock = forking.lock()
        self._rows: dict[tuple[AccountKind, str, str, ModelPurpose], tuple[int, int, TokenUsage, float]] = {}
        self._held: dict[tuple[AccountKind, str], float] = {}
        forking.renew_in_child(self)

    def forked(self) -> None:
        """Clear the reservations in a forked child, because the calls under way are the parent's."""
        self._held.clear()

    def price(self, model: str) -> ModelPrice:
        """Return the price of a model; zero if none is known."""
        return self._prices.get(model, ModelPrice())

    def dollars(self, account: AccountKind, name: str) -> float:
        """Return the dollars that an account has spent, with calls under way at their highest cost."""
        with self._lock:
            return self._dollars(account, name)

    def _dollars(self, account: AccountKind, name: str) -> float:
        spent = sum(row[3] for key, row in self._rows.items() if key[:2] == (account, name))
        return spent + self._held.get((account, name), 0.0)

    def rows(self) -> list[SpentRow]:
        """Return the rows of all accounts, sorted."""
        with self._lock:
            return [SpentRow(*key, *row) for key, row in sorted(self._rows.items())]

    def hold(self, model: str, accounts: Mapping[AccountKind, str], dollars: float) -> None:
        """Reserve the dollars that a call may cost; raise `SpendingStopped` if that passes a limit."""
        with self._lock:
            for kind, name in accounts.items():
                spent, limit = self._dollars(kind, name), self._limits.get(kind)
                if limit is not None and model not in self._prices:
                    why = f"{kind} {name!r} has a limit of ${limit:g}, and no price is known"
                    raise SpendingStopped(model, f"{why}; give its price (0 where it is free)", is_billed=False)
                if limit is not None and spent + dollars > limit:
                    why = f"{kind} {name!r} has spent ${spent:.4f} of ${limit:g}, this call may cost ${dollars:.4f}"
                    raise SpendingStopped(model, f"{why}; raise the limit, or go on without a model", is_billed=False)
            for account in accounts.items():
                self._held[account] = self._held.get(account, 0.0) + dollars

    def let_go(self, accounts: Mapping[AccountKind, str], dollars: float) -> None:
        """Release the reservation of a call."""
        with self._lock:
            for account in accounts.items():
                self._held[account] = max(0.0, self._held.get(account, 0.0) - dollars)

    def add(
        self, accounts: Mapping[AccountKind, str], model: str, purpose: ModelPurpose, usage: TokenUsage, *, failed: bool
    ) -> float:
        """Count a call and return its dollars."""
        dollars = self.price(model).of(usage)
        with self._lock:
            for account, name in accounts.items():
                key = (account, name, model, purpose)
                calls, failures, before, spent = self._rows.get(key, (0, 0, TokenUsage(), 0.0))
                self._rows[key] = (calls + 1, failures + failed, before.plus(usage), spent + dollars)
        return dollars


@dataclass(frozen=True, slots=True, kw_only=True)
class CallLimits:
    """Limits on the calls of one model."""

    tries: int = 4
    task_factor: float = 2.0
    """Tokens that a task may use, as a multiple of its first call."""
    concurrent: int = 4
    tokens_per_minute: int | None = None
    first_wait_seconds: float = 0.5
    longest_wait_seconds: float = 20.0
    rest_seconds: float = 30.0


@dataclass(eq=False)
class _SharedLimits:
    """State that all views of one governed model share."""

    limits: CallLimits
    slots: threading.BoundedSemaphore
    lock: threading.Lock = field(default_factory=forking.lock)
    failures: int = 0
    rests_until: float = 0.0
    recent: deque[tuple[float, int]] = field(default_factory=deque)
    """Time and tokens of each call in the last minute."""

    def __post_init__(self) -> None:
        forking.renew_in_child(self)

    def forked(self) -> None:
        """Free all slots in a forked child, because the calls in them are the parent's."""
        self.slots = threading.BoundedSemaphore(self.limits.concurrent)


class ModelTask:
    """Tokens and tries of one task."""

    def __init__(self) -> None:
        self.allowed_tokens: float | None = None
        self.used_tokens = 0
        self.tries = 0


class GovernedModel:
    """A `ChatModel` within limits. `charged` returns the same model for other accounts."""

    def __init__(
        self,
        model: ChatModel,
        *,
        limits: CallLimits | None = None,
        spending: SpendingLedger | None = None,
        count_tokens: Callable[[str], int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises ImportError without `stamina`, which the extras ``openai`` and ``anthropic`` install."""
        _check_retries()
        self.model: ChatModel = model
        self.spending: SpendingLedger = spending or SpendingLedger()
        self._count, self._clock = count_tokens or _estimate, clock
        limits = limits or CallLimits()
        self._shared = _SharedLimits(limits, threading.BoundedSemaphore(limits.concurrent))
        self._accounts: dict[AccountKind, str] = {}
        self._task: ModelTask | None = None

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def accounts(self) -> Mapping[AccountKind, str]:
        return self._accounts or UNCHARGED

    def charged(
        self,
        *,
        tenant: str | None = None,
        session: str | None = None,
        night: str | None = None,
        suite: str | None = None,
    ) -> GovernedModel:
        """Return the same model with its calls charged to these accounts as well."""
        named: dict[AccountKind, str | None] = {
            "tenant": tenant,
            "session": session,
            "night": night,
            "suite": suite,
        }
        other = self._view()
        other._accounts = self._accounts | {kind: name for kind, name in named.items() if name is not None}
        return other

    def task(self) -> GovernedModel:
        """Return the same model with all its calls in one task."""
        other = self._view()
        other._task = ModelTask()
        return other

    def _view(self) -> GovernedModel:
        other = object.__new__(GovernedModel)
        other.__dict__.update(self.__dict__)
        return other

    # -- asking -------------------------------------------------------------------------------------------------

    def reply(self, request: ChatRequest) -> ChatReply:
        """Answer within the limits and within the rest of a build's deadline."""
        with uncut():  # an interruption inside would leave its slot, reservation or connection in use
            return self._reply(request)

    def _reply(self, request: ChatRequest) -> ChatReply:
        import stamina

        left = seconds_left()
        if left is not None and left < request.deadline_seconds:
            request = replace(request, deadline_seconds=left)
        asked = _ModelCall(self, request, self._task or ModelTask())
        with self._slot(asked):
            for attempt in stamina.retry_context(on=asked.goes_on, **asked.waits()):
                with attempt:
                    now = asked.begin()
                    try:
                        return asked.done(self.model.reply(now))
                    except ModelUnavailable as error:
                        raise asked.failed(error) from error
                    except BaseException as error:
                        asked.broken(error)
                        raise
        raise AssertionError("a last try returns or raises")

    async def reply_async(self, request: ChatRequest) -> ChatReply:
        """`reply` for async callers."""
        import asyncio

        import stamina

        asked = _ModelCall(self, request, self._task or ModelTask())
        slots = self._shared.slots
        while not slots.acquire(blocking=False):
            asked.check_time()
            await asyncio.sleep(0.02)
        try:
            async for attempt in stamina.retry_context(on=asked.goes_on, **asked.waits()):
                with attempt:
                    now = asked.begin()
                    try:
                        return asked.done(await self.model.reply_async(now))
                    except ModelUnavailable as error:
                        raise asked.failed(error) from error
                    except BaseException as error:
                        asked.broken(error)
                        raise
        finally:
            slots.release()
        raise AssertionError("a last try returns or raises")

    @contextmanager
    def _slot(self, asked: _ModelCall) -> Iterator[None]:
        slots = self._shared.slots
        if not slots.acquire(timeout=asked.seconds_left()):
            raise ModelUnavailable(self.name, "all its calls at once are taken until the deadline", is_billed=False)
        try:
            yield
        finally:
            slots.release()


def _check_retries() -> None:
    """Import stamina, so that a missing package is reported before the first call and not as a failure of the model."""
    try:
        import stamina  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"{error}; calls of a model are retried with it: pip install 'ctxsteward[openai]'", name=error.name
        ) from error


class _ModelCall:
    """One request under way, with the time and tokens left for it."""

    def __init__(self, governed: GovernedModel, request: ChatRequest, task: ModelTask) -> None:
        self._governed, self._request, self._task = governed, request, task
        self._shared, self._clock = governed._shared, governed._clock
        self._until = self._clock() + request.deadline_seconds
        self._tokens = self.prompt_tokens = 0
        self._tokens, self.prompt_tokens = self._sized()
        self._held = 0.0
        self._tries = 0
        if task.allowed_tokens is None:
            task.allowed_tokens = self._tokens * self._shared.limits.task_factor

    def _sized(self) -> tuple[int, int]:
        texts = [*self._request.messages, *((self._request.prefix or {}).get("messages", ()))]
        head = [self._request.prefix.get(key) for key in ("system", "tools")] if self._request.prefix else []
        prompt = sum(self._governed._count(str(text.get("content", ""))) + FRAME_TOKENS for text in texts)
        prompt += sum(self._governed._count(str(part)) for part in head if part)
        return prompt + self._request.max_output_tokens, prompt

    def seconds_left(self) -> float:
        return max(0.0, self._until - self._clock())

    def check_time(self) -> None:
        if self.seconds_left() <= 0:
            raise ModelUnavailable(self._governed.name, "the deadline has passed", is_billed=False)

    def waits(self) -> dict[str, Any]:
        """Return the bounds of stamina's retries; `goes_on` gives the length of each wait."""
        return {"attempts": self._shared.limits.tries, "timeout": max(0.001, self.seconds_left())}

    def begin(self) -> ChatRequest:
        """Prepare a try, or raise if a limit forbids it."""
        name, shared = self._governed.name, self._shared
        self.check_time()
        with shared.lock:
            now = self._clock()
            if now < shared.rests_until:
                why = f"it failed {FAILURES} times in a row and is left alone for {shared.rests_until - now:.0f} s more"
                raise ModelUnavailable(name, why, is_billed=False)
            while shared.recent and shared.recent[0][0] <= now - 60:
                shared.recent.popleft()
            limit = shared.limits.tokens_per_minute
            sent = sum(tokens for _, tokens in shared.recent)
            if limit is not None and sent and sent + self._tokens > limit:
                wait = shared.recent[0][0] + 60 - now
                why = f"{sent} of {limit} tokens a minute are used"
                raise ModelUnavailable(name, why, is_passing=True, is_billed=False, wait_seconds=wait)
            if not self._has_tokens():
                used = f"{self._task.used_tokens} of {self._task.allowed_tokens:.0f} tokens of this task are used"
                raise ModelUnavailable(name, used, is_billed=False)
            price = self._governed.spending.price(name)
            tokens, output = self.prompt_tokens, self._request.max_output_tokens
            most = max(
                price.of(TokenUsage(prompt_tokens=tokens, written_tokens=written, output_tokens=output))
                for written in (0, tokens)
            )
            self._governed.spending.hold(name, self._governed.accounts, most)
            self._held = most
            self._task.tries += 1
            shared.recent.append((now, self._tokens))
        return replace(self._request, deadline_seconds=max(0.001, self.seconds_left()))

    def _has_tokens(self) -> bool:
        assert self._task.allowed_tokens is not None
        return self._task.used_tokens + self._tokens <= self._task.allowed_tokens or not self._task.tries

    def _let_go(self) -> None:
        self._governed.spending.let_go(self._governed.accounts, self._held)
        self._held = 0.0

    def done(self, reply: ChatReply) -> ChatReply:
        """Record a try that answered."""
        self._let_go()
        with self._shared.lock:
            self._shared.failures = 0
        usage = _sound(reply.usage or TokenUsage(), self.prompt_tokens, self._governed._count(reply.text))
        self._task.used_tokens += max(usage.prompt_tokens + usage.output_tokens, self.prompt_tokens)
        self._governed.spending.add(
            self._governed.accounts, self._governed.name, self._request.purpose, usage, failed=reply.ended != "complete"
        )
        return reply

    def failed(self, error: ModelUnavailable) -> ModelUnavailable:
        """Record a try that failed."""
        self._let_go()
        with self._shared.lock:
            self._shared.failures += error.is_passing or error.is_billed  # else the error is about this request alone
            if self._shared.failures >= FAILURES:
                self._shared.failures = 0
                self._shared.rests_until = self._clock() + self._shared.limits.rest_seconds
        if error.is_billed:
            self._task.used_tokens += self._tokens
        usage = TokenUsage(prompt_tokens=self.prompt_tokens if error.is_billed else 0)
        self._governed.spending.add(
            self._governed.accounts, self._governed.name, self._request.purpose, usage, failed=True
        )
        return error

    def broken(self, error: BaseException) -> None:
        """Record a try that ended in another way: an interrupt, a cancelled task, a bug of an SDK."""
        is_billed = not isinstance(error, InputError)  # no SDK or no key, so nothing was sent
        self.failed(ModelUnavailable(self._governed.name, type(error).__name__, is_billed=is_billed))

    def goes_on(self, error: Exception) -> bool | float:
        """Return the seconds to wait before another try, or False for no further try."""
        if not isinstance(error, ModelUnavailable) or not error.is_passing or not self._has_tokens():
            return False
        self._tries += 1
        limits = self._shared.limits
        wait = min(limits.longest_wait_seconds, limits.first_wait_seconds * 2 ** (self._tries - 1))
        wait *= random.uniform(0.5, 1.5)  # jitter
        if error.wait_seconds is not None and error.wait_seconds > 0:
            wait = error.wait_seconds
        return wait if wait < self.seconds_left() else False


def _estimate(text: str) -> int:
    return int(len(text.encode("utf-8", "surrogatepass")) / CHARS_PER_TOKEN) + 1


def _sound(usage: TokenUsage, prompt_tokens: int, output_tokens: int) -> TokenUsage:
    """Return the provider's usage, limited to possible values; our estimate where it gives none."""
    prompt = usage.prompt_tokens or prompt_tokens
    cached = min(usage.cached_tokens, prompt)
    return TokenUsage(
        prompt_tokens=prompt,
        cached_tokens=cached,
        written_tokens=min(usage.written_tokens, prompt - cached),
        output_tokens=usage.output_tokens or output_tokens,
    )
