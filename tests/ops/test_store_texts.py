"""How figures of the store are written for people."""

import pytest

from greenroom.transports.ops.cli.support.store_texts import TEXTS


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (0.0042, "4.2 ms"),
        (1.26, "1.3 s"),
        (59.9, "59.9 s"),
        (60, "1 minute"),
        (1_050, "17 minutes"),
        (7_300, "2 hours"),
        (200_000, "2 days"),
    ],
)
def test_lengths_of_time_are_in_words_from_a_minute_on(seconds: float, written: str) -> None:
    told = TEXTS["stats"]({"running": True, "imitations": [], "server": {"uptime_seconds": seconds}})
    assert told.splitlines()[-1].split(maxsplit=1) == ["uptime", written]
