"""Hindi number words in Latin letters, as people type them: value → spellings."""

from __future__ import annotations

SMALL: dict[int, str] = {
    0: "shunya shoonya",
    1: "ek aek",
    2: "do",
    3: "teen tin",
    4: "char chaar chahar",
    5: "paanch panch paach pach",
    6: "chhe che chhah chah chheh chhai",
    7: "saat sat",
    8: "aath ath aat",
    9: "nau nav",
    10: "das dus dass",
    11: "gyarah gyara gyaarah",
    12: "barah bara baarah",
    13: "terah tera",
    14: "chaudah chauda choudah",
    15: "pandrah pandra pandhra pandrha",
    16: "solah sola",
    17: "satrah satra",
    18: "atharah athara atthara aththarah",
    19: "unnis unnees",
    20: "bees bis",
    21: "ikkis ikkees",
    22: "bais baais",
    23: "teis teyis",
    24: "chaubis chaubees choubis",
    25: "pachis pachees pacchis pachchis",
    26: "chhabbis chabbis",
    27: "sattais sattaees",
    28: "atthais athais",
    29: "untis unatis",
    30: "tees tis",
    31: "ikatis ikattis",
    32: "battis battees",
    33: "taintis",
    34: "chauntis",
    35: "paintis paintees",
    36: "chhattis chattis chhatis",
    37: "saintis",
    38: "adtis artis",
    39: "untalis",
    40: "chalis chaalis chalees chaalees",
    42: "bayalis",
    45: "paintalis paintaalis",
    48: "adtalis adtaalis artalis",
    49: "unchas",
    50: "pachas pachaas pachaash",
    55: "pachpan",
    60: "saath sath",
    65: "painsath",
    70: "sattar",
    75: "pachhattar pichhattar pachattar",
    80: "assi asi",
    85: "pachasi",
    90: "nabbe nabbey nabe",
    95: "pachanve pachanave",
    99: "ninyanve ninanve",
}

HUNDRED: dict[str, str] = {"100": "sau"}

SCALES: dict[str, str] = {
    "1e3": "hazaar hazar hajar hajaar hazzar",
    "1e5": "laakh",
    "1e7": "karod karor caror",
    "1e9": "arab",
}

DOZENS: dict[str, str] = {"12": "darjan"}

FRACTIONS: dict[str, str] = {"0.5": "aadha adha aadhe adhe aadhi", "0.25": "chauthai"}

QUARTERED: dict[str, str] = {"0.25": "sava sawa", "0.5": "saadhe sadhe saade saadhey sade", "-0.25": "paune"}

FIXED: dict[str, str] = {"1.5": "dedh derh dedhh", "2.5": "dhai adhai dhaai dhaee"}

ORDINALS: dict[str, str] = {
    "1": "pehla pehli pahla pahli",
    "2": "dusra dusri doosra doosri",
    "3": "teesra teesri tisra tisri",
    "4": "chautha chauthi",
}

POINT = "dashamlav"
AND = "aur"
OVER = "bata"
MINUS = ""
ARTICLES = ""

SHY = (
    "do tin char pach che chah sat ath aat nav dus dass bara tera sola satra athara bis bais tis artis "
    "वन टू एट टेन फोर "
    "saath sath asi sau arab nabe aadhi sade panch das bata sava nau dhai"
)
"""Words that are something else as often as not (with, yours, give, sit): numbers only before a scale or a unit."""
