"""What the page of a steward says of yields that were out of the ordinary, and of the use that records were."""

from __future__ import annotations

from typing import Any

from ctxsteward.console.steward.page import page
from ctxsteward.envelope.testing import memory_store
from ctxsteward.steward.harvest.usage import RecordUse
from ctxsteward.steward.night.chain import Night

from ...steward.scenes import chain_of, recommendation

USED = {"shown": 8, "judged": 8, "fired": 4, "complied": 3, "contradicted": 1, "events": 5, "anticipated": 1}


def night(number: int, **counts: int) -> Night:
    told = {"due": 10, "harvested": 10, "absorbed": 20, **counts}
    return Night(night=f"2026-11-{number:02}", run=f"n{number}", ledger="", outcome="unchanged", final="", counts=told)


RECORD = recommendation("r-1", "The airport fee is 12 EUR.", kind="correction")


def page_of(*nights: Night, **more: Any) -> str:
    nights_told = chain_of(memory_store(), *nights).reports(len(nights))
    return page(
        profile="support", tenant="acme", when="2026-11-22", version=1, nights=nights_told, records=(RECORD,), **more
    )


def test_the_page_tells_alerts_of_the_last_nights() -> None:
    found = page_of(night(1), night(2), night(3), night(4, absorbed=90), night(5, harvested=0))
    assert "Yields out of the ordinary" in found
    assert "<td>2026-11-04</td><td>absorbed: 90, 4.5 × the median of 3 nights</td>" in found
    assert "<td>2026-11-05</td><td>harvested: nothing, though 10 were due</td>" in found
    assert "Yields out of the ordinary" not in page_of(night(1), night(2))


def test_the_hit_rate_is_drawn_over_nights() -> None:
    found = page_of(night(1, **USED), night(2), night(3, **USED))
    assert "Hit rate over nights" in found
    for name, share in (("anticipated", "20%"), ("used", "50%"), ("obeyed", "75%")):
        assert f"{name}" in found
        assert share in found


def test_a_record_stands_with_the_use_that_it_was() -> None:
    hit = RecordUse(shown=1_200, judged=900, fired=300, complied=250, contradicted=20, unjudged=30)
    assert "<td>shown 1,200, fired 300 of 900, obeyed 250 of 270</td>" in page_of(uses={"r-1": hit})
    assert "shown" not in page_of().partition("<h2>Records</h2>")[2]


def test_hostile_text_is_escaped_wherever_a_template_puts_it() -> None:
    hostile = """</style><script>alert("x")</script>'&"""
    found = page(
        profile=hostile,
        tenant=hostile,
        when=hostile,
        version=1,
        nights=(),
        records=(RECORD.model_copy(update={"text": hostile}),),
        slice=((hostile, hostile, True, (hostile,)),),
        requests=(hostile,),
        questions=((hostile, (hostile, hostile), True),),
    )
    assert "<script" not in found
    assert found.count("&lt;script&gt;") >= 16
    assert found.count("</style>") == 1
