"""Names of months and weekdays in English, Hindi and Hindi in Latin letters, by key."""

from __future__ import annotations

from monitors.facts.normalise import normalise, word_key

_MONTHS = {
    1: "january jan janvari january's जनवरी जन",
    2: "february feb farvari फरवरी फर",
    3: "march mar मार्च",
    4: "april apr aprail अप्रैल अप्रेल",
    5: "may मई",
    6: "june jun जून",
    7: "july jul julai जुलाई",
    8: "august aug agast अगस्त",
    9: "september sept sep sitambar सितंबर सितम्बर",
    10: "october oct aktubar अक्टूबर अक्तूबर",
    11: "november nov navambar नवंबर नवम्बर",
    12: "december dec disambar दिसंबर दिसम्बर दिस",
}
MONTHS = {word_key(normalise(word).text): month for month, words in _MONTHS.items() for word in words.split()}

AMBIGUOUS_MONTHS = frozenset({"may", "march", "mar", "jan", "dec", "जन", "फर", "दिस", "jun", "sep"})
"""Also ordinary words or parts of them: months only with a day or a year beside them and a capital or a number."""

WEEKDAYS = {
    name: number
    for number, names in enumerate(
        ("monday mon सोमवार", "tuesday tue tues मंगलवार", "wednesday wed बुधवार", "thursday thu गुरुवार",
         "friday fri शुक्रवार", "saturday sat शनिवार", "sunday sun रविवार")
    )
    for name in names.split()
}  # fmt: skip
"""Monday is 0."""

IN_YEAR = frozenset({"में", "के", "की", "का", "me", "mein", "ke", "ki"})
"""What stands between a Hindi year and its day: 2020 में 28 जून."""
