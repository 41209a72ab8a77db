"""English number words: value → spellings. Misspellings that people make are in."""

from __future__ import annotations

SMALL: dict[int, str] = {
    0: "zero naught nought nil oh",
    1: "one single",
    2: "two couple pair",
    3: "three",
    4: "four",
    5: "five",
    6: "six",
    7: "seven",
    8: "eight",
    9: "nine",
    10: "ten",
    11: "eleven",
    12: "twelve",
    13: "thirteen",
    14: "fourteen",
    15: "fifteen",
    16: "sixteen",
    17: "seventeen",
    18: "eighteen",
    19: "nineteen",
    20: "twenty",
    30: "thirty",
    40: "forty fourty",
    50: "fifty",
    60: "sixty",
    70: "seventy",
    80: "eighty",
    90: "ninety ninty",
}

HUNDRED: dict[str, str] = {"100": "hundred hundreds"}

SCALES: dict[str, str] = {
    "1e3": "thousand thousands grand",
    "1e5": "lakh lakhs lac lacs lkh lkhs",
    "1e6": "million millions mln mn",
    "1e7": "crore crores",
    "1e9": "billion billions bln bn",
    "1e12": "trillion trillions tln",
    "1e15": "quadrillion quadrillions",
    "1e18": "quintillion quintillions",
    "1e21": "sextillion sextillions",
    "1e24": "septillion septillions",
    "1e27": "octillion octillions",
    "1e30": "nonillion nonillions",
    "1e33": "decillion decillions",
}

SUFFIX_SCALES: dict[str, str] = {"1e3": "k", "1e6": "mio", "1e7": "cr crs", "1e9": "g"}
"""Scales right behind digits. Case distinguishes single letters that also mean a measure, see scales."""

DOZENS: dict[str, str] = {"12": "dozen dozens"}

FRACTIONS: dict[str, str] = {"0.5": "half halves", "0.25": "quarter quarters"}

QUARTERED: dict[str, str] = {}
FIXED: dict[str, str] = {}

ORDINALS: dict[str, str] = {
    "1": "first firsts",
    "2": "second seconds",
    "3": "third thirds",
    "4": "fourth fourths",
    "5": "fifth fifths",
    "6": "sixth sixths",
    "7": "seventh sevenths",
    "8": "eighth eighths",
    "9": "ninth ninths nineth",
    "10": "tenth tenths",
    "11": "eleventh elevenths",
    "12": "twelfth twelfths",
    "13": "thirteenth thirteenths",
    "14": "fourteenth fourteenths",
    "15": "fifteenth fifteenths",
    "16": "sixteenth sixteenths",
    "17": "seventeenth seventeenths",
    "18": "eighteenth eighteenths",
    "19": "nineteenth nineteenths",
    "20": "twentieth twentieths",
    "30": "thirtieth thirtieths",
    "40": "fortieth fortieths",
    "50": "fiftieth fiftieths",
    "60": "sixtieth sixtieths",
    "70": "seventieth seventieths",
    "80": "eightieth eightieths",
    "90": "ninetieth ninetieths",
    "100": "hundredth hundredths",
    "1e3": "thousandth thousandths",
    "1e6": "millionth millionths",
    "1e9": "billionth billionths",
    "1e12": "trillionth trillionths",
}

POINT = "point"
AND = "and"
OVER = "over"
MINUS = "minus negative"
ARTICLES = "a an"
