"""Pairs of notes of which the later takes the place of the earlier, and notes that do not."""

from __future__ import annotations

from typing import Final, NamedTuple


class Pair(NamedTuple):
    """Two notes of which the later takes the place of the earlier, and what is asked for each."""

    older: str
    newer: str
    present: str
    past: str


PAIRS: Final = {
    "printer": Pair(
        "Labels are printed on the Zebra printer beside the goods entrance.",
        "We replaced the Zebra printer: labels come from the Brother in the packing room.",
        "On which printer are labels printed now?",
        "On which printer did we print labels before?",
    ),
    "accountant": Pair(
        "Our accountant is Piet Janssen, reach him by phone on Mondays.",
        "Piet Janssen has retired, our accountant is Carla Reus; write to her instead.",
        "Who is our accountant at the moment?",
        "Who was our accountant previously?",
    ),
    "chat": Pair(
        "The support team answers customers in Zendesk, queue EU-2.",
        "The support team switched from Zendesk to Front, customers are answered in shared inboxes.",
        "In which tool does the support team currently answer customers?",
        "In which tool did the support team originally answer customers?",
    ),
    "limit": Pair(
        "Uploads are limited to 20 MB a file by the gateway.",
        "The gateway no longer limits uploads to 20 MB, a file may have 200 MB.",
        "What is the current limit of the gateway for uploads?",
        "What was the old limit of the gateway for uploads?",
    ),
    "seminar": Pair(
        "The reading seminar meets on Tuesdays in room 4.12.",
        "The reading seminar moved to Thursdays, online instead of room 4.12.",
        "When does the reading seminar meet these days?",
        "When did the reading seminar use to meet?",
    ),
    "bakery": Pair(
        "Bread for the canteen is delivered by the bakery Wolter at six.",
        "Bread for the canteen comes from the bakery Hansen from now on; Wolter closed his shop.",
        "Which bakery delivers bread for the canteen today?",
        "Which bakery formerly delivered bread for the canteen?",
    ),
}
OTHERS: Final = (
    "The printer in the office needs A4 paper, 80 grams.",
    "Customers in France want their bread invoices on paper.",
    "The reading list of the seminar is in the shared folder.",
    "A new gateway for the factory was ordered in Leipzig.",
    "The canteen is closed between Christmas and New Year.",
    "Carla sings in a choir and is not to be called on Tuesdays.",
    "We bought new chairs for room 4.12.",
    "Our accountant wants all bills as PDF files, a file each.",
)
