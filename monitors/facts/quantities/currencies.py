"""Define the supported currencies by sign, code and name.

A sign that several countries use, such as ``$``, has the value ``None``.
"""

from __future__ import annotations

from monitors.facts.text import normalise, split_into_word_keys, to_word_key

CODES = split_into_word_keys(
    "INR USD EUR GBP JPY CNY AUD CAD CHF SGD HKD NZD AED SAR QAR KWD BHD OMR LBP EGP JOD ILS TRY RUB UAH "
    "PLN CZK HUF RON BGN SEK NOK DKK ISK MYR THB IDR PHP VND KRW TWD BRL MXN ARS CLP COP PEN CRC ZAR NGN "
    "KES GHS PKR BDT LKR NPR LAK KHR MMK AMD GEL KZT AZN BTC KYD BOB BIF RMB"
)
"""The lookup keys of the supported ISO 4217 codes and of RMB, a common code for CNY."""

_SAME = {"RMB": "CNY"}

SIGNS: dict[str, str | None] = {
    "₹": "INR", "$": None, "€": "EUR", "£": "GBP", "¥": None, "元": "CNY", "₡": "CRC", "₭": "LAK", "₩": "KRW",
    "₺": "TRY", "₪": "ILS", "₴": "UAH", "₽": "RUB", "₫": "VND", "฿": "THB", "₱": "PHP", "₦": "NGN", "₿": "BTC",
    "֏": "AMD", "৳": "BDT", "₨": "INR", "¢": None,
}  # fmt: skip

DOLLARS = {
    "us": "USD", "usd": "USD", "c": "CAD", "cad": "CAD", "ca": "CAD", "a": "AUD", "au": "AUD", "aud": "AUD",
    "s": "SGD", "sgd": "SGD", "hk": "HKD", "hkd": "HKD", "nz": "NZD", "nzd": "NZD", "mex": "MXN", "mx": "MXN",
    "r": "BRL", "ci": "KYD", "nt": "TWD", "u.s.": "USD",
}  # fmt: skip
"""Letters before a dollar sign, and the currency that they mean: "HK$" is HKD."""

_NAMES: dict[str | None, str] = {
    "INR": "rs inr rupee rupees rupaye rupay rupaya rupaiya rupiya rupye rupaiye rupya रु रुपये रुपए "
    "रुपया रुपयों रूपये रूपए रुपय रू",
    None: "dollar dollars buck bucks डॉलर डालर pound pounds पाउंड पौंड franc francs फ्रैंक lira liras lire लीरा लिरा "
    "dinar dinars दीनार rial rials riyal riyals peso pesos पेसो krona kroner kronor मार्का yen_ quid",
    "EUR": "euro euros यूरो €ur",
    "JPY": "yen येन",
    "CNY": "yuan युआन renminbi",
    "MYR": "ringgit ringgits rm",
    "ILS": "shekel shekels शेकेल",
    "KRW": "won_ वॉन वोन",
    "UAH": "hryvnia hryvnias ग्रिव्ना",
    "NGN": "naira नाइरा",
    "BDT": "taka टका",
    "AMD": "dram ड्राम",
    "BTC": "bitcoin bitcoins बिटकॉइन",
    "EGP": "le geneh genihat egyptianpound egyptianpounds",
    "SAR": "saudiriyal saudiriyals",
    "RUB": "ruble rubles rouble roubles रूबल",
    "THB": "baht",
    "LKR": "ரூ",
}

_BY_NAME: dict[str, str | None] = {
    to_word_key(normalise(word).text): code
    for code, words in _NAMES.items()
    for word in words.split()
    if word[-1] != "_"
}
_BY_CODE: dict[str, str | None] = {
    code: _SAME.get(code.upper(), code.upper())
    for code in CODES
    if code not in {"all", "try", "top", "cop", "php", "bob"}
}

NAMES = _BY_NAME | _BY_CODE
"""The ISO 4217 codes of currencies, keyed by the normalised name or code.

The value is ``None`` if several countries use the name, such as "dollar".
"""

COUNTRIES: dict[str, str] = {
    "us": "USD", "american": "USD", "united": "USD", "canadian": "CAD", "australian": "AUD", "singapore": "SGD",
    "hong": "HKD", "new": "NZD", "swiss": "CHF", "turkish": "TRY", "malaysian": "MYR", "malaysia": "MYR",
    "kuwaiti": "KWD", "lebanese": "LBP", "egyptian": "EGP", "qatari": "QAR", "saudi": "SAR", "indian": "INR",
    "chinese": "CNY", "japanese": "JPY", "british": "GBP", "sterling": "GBP", "mexican": "MXN", "omani": "OMR",
    "iranian": "IRR", "pakistani": "PKR", "nepali": "NPR", "jordanian": "JOD", "bahraini": "BHD",
    "अमेरिकी": "USD", "ऑस्ट्रेलियाई": "AUD", "कनाडाई": "CAD", "भारतीय": "INR", "यूक्रेनी": "UAH",
    "आर्मेनियाई": "AMD", "तुर्की": "TRY", "स्विस": "CHF", "चीनी": "CNY",
}  # fmt: skip
"""Words for countries before a currency's name, and the currency that each means: "swiss" in "Swiss francs"."""

_DOLLARS = frozenset(DOLLARS.values()) - {"BRL"} | {"XCD", "BBD", "JMD", "TTD", "FJD", "BND"}
_FAMILIES: dict[str, frozenset[str]] = {
    "$ dollar dollars buck bucks डॉलर डालर": _DOLLARS,
    "pound pounds पाउंड पौंड quid": frozenset({"GBP", "EGP", "LBP", "SYP"}),
    "franc francs फ्रैंक": frozenset({"CHF", "XOF", "XAF", "BIF"}),
    "lira liras lire लीरा लिरा": frozenset({"TRY", "ITL"}),
    "dinar dinars दीनार": frozenset({"KWD", "BHD", "JOD", "IQD", "RSD", "TND", "DZD", "LYD"}),
    "rial rials riyal riyals": frozenset({"SAR", "QAR", "OMR", "IRR", "YER"}),
    "peso pesos पेसो": frozenset({"MXN", "PHP", "ARS", "CLP", "COP", "UYU", "DOP", "CUP"}),
    "krona kroner kronor": frozenset({"SEK", "NOK", "DKK", "ISK"}),
    "¥": frozenset({"JPY", "CNY"}),
    "¢ cent cents सेंट": _DOLLARS | {"EUR"},
    "pence penny पेंस": frozenset({"GBP"}),
    "rs rupee rupees रु रुपये रुपए रुपया रुपयों रूपये रूपए रुपय रू rupaye rupay rupaya rupaiya rupiya rupye": frozenset(
        {"INR", "PKR", "LKR", "NPR", "MUR", "SCR"}
    ),
}
FAMILIES = {
    to_word_key(normalise(word).text): codes for words, codes in _FAMILIES.items() for word in words.split()
}
"""For each sign or name of a currency that may lack a country, the possible ISO 4217 codes.

Rupees are Indian unless another country is named.
"""

DOT_GROUPS = frozenset(
    "EUR DKK NOK SEK ISK PLN CZK HUF RON BGN TRY RUB UAH BRL ARS CLP COP IDR VND".split()  # noqa: SIM905 - a line of codes is easier to extend than a list
)
"""Currencies of countries that write a dot between thousands: "€6.000" is six thousand."""

MINOR = split_into_word_keys(
    "cent cents c pence penny p paise paisa paisas sen sens kopiyka kopiykas kopeck kopecks सेंट पेंस पैसे पैसा जिओन कोबो"
)
"""Words for a hundredth of a currency unit, such as "cents"."""

MONEY_WORDS = frozenset(NAMES) | MINOR
"""All words which show that an amount is money."""
