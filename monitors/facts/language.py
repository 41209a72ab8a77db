"""Which language a text is in: English, Hindi, Hinglish (Hindi in Latin letters, mixed with English), or another.

By script first, then by small words. A library for a hundred languages knows no Hinglish; a table of function words
does, and reads a thousand characters in a twentieth of a millisecond. The lists are our own: the commonest function
words of each language, in their usual spellings.

Hindi in Latin letters has no fixed spelling; the variants are those of chat messages (``nahi``, ``nahin``,
``nhi``). Words that are also English (``me``, ``is``, ``to``, ``par``, ``main``, ``do``) are left out of both lists
or listed apart: alone they prove nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

from monitors.records.base import Language

_HINGLISH = """
    ka ke ki ko se mein mei mai mujhe mujhko muje mujse mujhse mera meri mero hume humein hamein hamen hamara
    hamari hamare humara humari humare aap aapka aapki aapke aapko apka apki apke apko apna apni apne tum
    tumhara tumhari tumhare tera teri tere unka unki unke unko unhe unhein unse unmein iska iski iske isko
    isse ismein isme uska uski uske usko usse usmein usme inka inki inke inko inhe jis jiska jiski jiske jisko
    jisme jismein jab jaise jaisa jaisi jahan jitna jitni jitne kya kyaa kyu kyun kyon kyunki kyonki kaun
    kaunsa kaunsi kaunse konsa konsi kab kaha kahan kaise kaisa kaisi kitna kitni kitne kis kisi kiska kiski
    kiske kisko kise koi kuch kuchh aur ya yaa lekin magar agar toh tab phir fir bhi nahi nahin nahee nhi nai
    mat na hai hain hei hey hoon hu hun tha thi hoga hogi honge hota hoti hote hua hui hue hona hone raha rahi
    rahe rha rhi rhe rehta rehti rehte rahega rahegi rahenge chahiye chahie chahta chahti chahte chahenge
    chahunga sakta sakti sakte saktey sakega sakenge paega payega paaega milega milegi milenge milta milti
    milte mila mile karna karne karo kare karein karen karke karta karti karte karega karegi karenge karunga
    karungi kiya kiye kijiye kijie kariye karwa karwana karva karvana karao karaye dena dene dekho diya diye
    deta deti dete dega degi denge dijiye dijie dedo lena lene lo liya liye lie liyae leta leti lete lega
    lenge lijiye jana jaana jane jaane jao jaao jaye jaaye jaega jaayega jayega jayegi jaenge jayenge jata
    jaata jati jaati jate jaate gaya gayi gaye gya gyi aana aane aao aaye aaya aayi aata aati aate aega aayega
    ayega batao bataye bataiye batayen bataen bataein bata batana batane bol bolo boliye bolne kaho kehna
    kehne kahiye dikhao dikhaye dikhaiye dikhana sunao sunaye suno sunna bajao bajaye bajana bajaiye chalao
    chalaye chalana chalu lagao lagaye lagana lagega lagta lagti lagte laga lagaen hatao hataye hatado hatana
    banao banaye banana banado bhejo bheje bheji bhejiye bhejna bhejdo bhejen rakho rakhe rakhna rakhiye
    rukhiye roko ruko rok khol kholo shuru khatam puch pucho poocho puchiye pata dhundo dhundho khojo yaad
    dilana dilaye dilao dilaen dilaiye wala wali wale vala vali vale walon waale sabhi saare sare sari saara
    bahut bohot bahot bohut zyada jyada jada kam thoda thodi sirf abhi ab aaj aj kal parso subah subha shaam
    sham raat dopahar dophar din dino dinon mahina mahine mahino mahiney hafta hafte haftey saal saalon baras
    ghanta ghante ghanton baje baad pehle pahle pehla pahla agla agle agli agley pichla pichle pichli andar
    bahar baahar upar uper niche neeche paas saath sath bina dwara taraf beech yeh ye yah woh wo vo voh vah ve
    yaha yahan waha wahan vaha idhar udhar isliye isiliye islie ek teen chaar paanch panch chhe saat aath nau
    bees tees pachas sau hazar hazaar lakh dono teeno accha acha achha achi acche ache theek thik sahi galat
    haan haa ji jee kripya kripaya krupya dhanyavad shukriya namaste bhai dost logon logo aadmi ghar ghare
    paisa paise paison rupaye rupay rupaiye kharcha kharch umar umra bimari beemari ilaaj ilaj davai dawai
    dawa bachche bachcha bachcho bacche baccha bachon beti beta maa pita mata pati patni parivar shaadi mausam
    barish baarish baarishe garmi thand thandi tapman taapmaan barf hogaa gaana gaane gana gane naya nayi naye
    purana purani purane bada badi bade badhiya chota chhota chhoti chote choti khana khaana khane pani paani
    madad samay waqt jaldi deri jagah cheez cheezein chizein chize baare mutabik anusar hisaab hisab matlab
    zaroorat zarurat jaruri zaroori milne chal chalo chalta chalti chalega raste rasta koshish shamil kul
    sabse kabhi hamesha zikr ullekh jaankari jankari janna jaanna samajh samjhao mujhpar kardo karde kardijiye
    kijiyega dijiyega bhar
"""
HINGLISH = frozenset(_HINGLISH.split())
"""Hindi in Latin letters, without the words that are English as well."""

_HINGLISH_OR_ENGLISH = """
    are bad ban band bare bas char das do he hi ho hum in is jo kar log main man me mere par pas sab so sun
    tak the to us
"""
HINGLISH_OR_ENGLISH = frozenset(_HINGLISH_OR_ENGLISH.split())
"""Hindi words with the spelling of English ones: they count for Hinglish only beside surer ones."""

_ENGLISH = """
    the of and a an that it for was with as his her they at be this from have or by one had not but what all
    were when we there can your which their if will each about how up out them then she many some these
    would other into has more two like could no than first been who its now did get come made may over new
    after also because any only our under most us am does doing done should shall must might upon where why
    whose whom while between during before both through you my i in on is are to do so he me him we'll i'm
    don't can't yes months month days day years year per please provide cannot information document every
    another such very much just still own same here s t able based according within set remind show play
    tell turn give find make need want know let going long far often weather traffic
"""
ENGLISH = frozenset(_ENGLISH.split())
"""The commonest English words, and some of what people ask assistants."""

OTHER = {
    "es": (
        "el la los las de del que y en un una por con para su como más pero sus este qué cuál cuándo dónde "
        "quién cuántos cuántas cuánto fue ser es son está están entre cuando muy sobre también hasta hay "
        "donde desde todo nos durante qué se al lo"
    ),
    "pt": (
        "o os as um uma de do da dos das que em por com para não é foi são mais como mas ao ele quando "
        "muito nos já também só pelo pela até qual"
    ),
    "fr": (
        "le la les des du de un une et est dans que qui pour par sur avec pas plus au aux ce cette sont été "
        "il elle vous nous où quel quelle ont ne"
    ),
    "it": (
        "il lo la gli le di del della dei che è per con non una sono nel nella alla anche come più quale "
        "quando dove chi ha"
    ),
    "de": (
        "der die das und ist den dem des ein eine einer einem einen nicht mit sich auf für von wie was wer "
        "wann wo war wurde wurden im zu es auch als bei nach aus hat haben durch werden wird sind oder "
        "welche welcher welches warum viele wie über"
    ),
    "nl": (
        "de het een van en is dat die niet met op voor zijn er aan te wat wie hoe waar wordt werd door ook "
        "bij naar uit"
    ),
    "ro": (
        "care este și de la în pe cu ce o un din nu sunt pentru a fost mai ale lui al cel cea cine când "
        "unde cât câte câți prin către au fi ca sa dintre după"
    ),
    "tr": (
        "ve bir bu ne için ile de da mi mı mu mü olarak hangi kim nerede zaman kaç nasıl daha en çok olan "
        "değil ise var hangisi sonra kadar gibi neden"
    ),
    "vi": (
        "là của và có các những được trong cho không một này đã với khi ở gì người bao nhiêu nào năm ai đến "
        "từ như về tại đâu"
    ),
    "pl": (
        "i w na z do nie jest to się że o jak po za co był są dla od przez czy który która które kiedy "
        "gdzie kto ile"
    ),
    "id": (
        "yang dan di dari untuk dengan pada adalah ini itu tidak apa siapa kapan dimana berapa oleh ke "
        "dalam akan sebagai"
    ),
}
"""Function words of other languages in Latin letters, so that they are not taken for English."""

_MORE_OTHER = {
    "es": """
        mi tu tiene tienen hace puedo puede pueden podemos tengo tenemos hacer nuestro nuestra usted ustedes le les
        me no sí porque si ni sin lunes martes miércoles jueves viernes sábado domingo cuesta gracias lamento siento
        claro tampoco nunca esta ese esa
    """,
    "fr": """
        je tu on mon ma mes votre vos notre nos leur puis peut pouvez peux avez avons ai suis sommes êtes c'est
        n'est n'ai j'ai d'un d'une est-ce combien quand comment pourquoi chez sans mais donc oui non bien sûr désolé
        regrette aucun aucune jamais lundi mardi mercredi jeudi vendredi samedi dimanche en se si sa son ses leurs
        l'on aussi très
    """,
    "it": """
        mi ti si ci vi suo sua mio mia nostro nostra posso può possono abbiamo avete hanno ho siamo siete sì no ma
        se quanto quanti quanta perché sul sulla dal dalla ai agli alle questo questa purtroppo certo mai senza
        lunedì martedì mercoledì giovedì venerdì sabato domenica c'è dell un costa vostro
    """,
    "de": """
        saal kam sau kommt kommen
        ich du er wir ihr sie mir mich dir dich uns euch ihnen ihre ihrer ihren ihrem mein meine meinen meiner
        meinem dein deine unser unsere unseren unserem kann kannst können könnt darf dürfen muss müssen soll sollen
        möchte möchten will wollen habe habt hatte bin bist seid gibt geht mal ja nein kein keine keinen keiner
        keinem nichts leider gern gerne bitte danke natürlich selbstverständlich dazu dafür damit darüber darum dort
        hier heute morgen morgens abends täglich immer nie aber denn wenn dass ob noch schon nur sehr mehr man so da
        dann zum zur vom beim ins am um bis ab an in vor unter ohne gegen zwischen viel wieviel etwas alle alles
        jeder jede jeden jedes diese dieser dieses diesen diesem kostet kosten heißt montag dienstag mittwoch
        donnerstag freitag samstag sonntag wochentag uhr geöffnet geschlossen tut
    """,
    "nl": """
        ik je jij u wij we jullie hij zij ze mijn uw ons onze kan kunt kunnen mag mogen moet moeten heb hebt heeft
        hebben had ben bent was geen niets ja nee helaas graag maar als dan nog wel al om of tot deze dit hier daar
        vandaag morgen altijd nooit veel hoeveel waarom welke in maandag dinsdag woensdag donderdag vrijdag zaterdag
        zondag kost uur
    """,
}
"""What chats in the commonest of them say beside: short answers, verbs that ask, days of the week."""


_DEVANAGARI = re.compile(r"[\u0900-\u0963\u0966-\u097f]+")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_UNUSUAL = re.compile("[^\0-\x7f\u00c0-\u024f\u1e00-\u1eff\u0900-\u097f]+")
"""What is neither ASCII, Latin nor Devanagari: signs, and letters of other scripts."""
_WORD = re.compile(r"[a-z\u00df-\u024f\u1e00-\u1eff]+(?:'[a-z]+)?")
_ACCENTED = re.compile(r"[\u00c0-\u024f\u1e00-\u1eff]")
# What is not the writer's language: addresses, citations, code.
_NOISE = re.compile(r"\[[^\[\]\n]{0,200}\]|https?://\S{1,300}|`[^`\n]{0,200}`")

HINDI_SHARE = 0.25
"""Share of words in Devanagari from which a text is Hindi: names of policies and medical words stay Latin."""
_READ = 3_000
"""Characters read: more would not change the answer, and a hostile text of megabytes costs no more."""
_HINGLISH_SHARE = 0.12
"""Share of Hindi words among all words from which Latin text is Hinglish: one in eight."""

_LEXICONS = {code: frozenset(f"{lexicon} {_MORE_OTHER.get(code, '')}".split()) for code, lexicon in OTHER.items()}
_OTHER_ONLY = (
    frozenset[str]().union(*_LEXICONS.values())
    - ENGLISH
    - HINGLISH
    - HINGLISH_OR_ENGLISH
    - {"a", "o", "i", "is", "in", "no", "he", "die", "war"}
)


_BITS = (1, 2, 4, 8)
_LISTS = (HINGLISH, HINGLISH_OR_ENGLISH, ENGLISH, _OTHER_ONLY)
_LISTS_OF = {
    word: sum(bit for bit, known in zip(_BITS, _LISTS, strict=True) if word in known)
    for word in frozenset[str]().union(*_LISTS)
}
"""In which of the lists each word stands, as bits: a text's words are looked up once."""
_CODES_OF = {
    word: tuple(code for code, lexicon in _LEXICONS.items() if word in lexicon)
    for word in frozenset[str]().union(*_LEXICONS.values())
}
"""The other languages that have a word, also where English or Hinglish has it too: "was" is German as well."""


class LanguageEvidence(StrEnum):
    """Whether the words of a text say that it is in English, Hindi or Hinglish."""

    READ = "read"
    UNREAD = "unread"
    """They say that it is in another language."""
    NONE = "none"
    """They do not say: a name, a number, a word that two languages have."""


class _WordCounts(NamedTuple):
    """Words of a text that each language has; a word of several counts for each."""

    words: int
    hindi: int
    either: int
    english: int
    other_only: int
    """Words of another language that neither English nor Hinglish has."""
    foreign: int
    """Words of the one other language that has most of them."""

    @property
    def own(self) -> int:
        return max(self.english, self.hindi + (self.either if self.hindi else 0))

    @property
    def is_foreign(self) -> bool:
        fewest = min(2, self.words)
        if self.other_only > max(self.english, self.hindi) and self.other_only >= fewest:
            return True
        return self.other_only > 0 and self.foreign > self.own and self.foreign >= fewest


@lru_cache(maxsize=64)  # what users ask comes again and again, and several ask about one reply
def identify(text: str) -> Language:
    """The language of a text. Without letters, or without any known word, it is `Language.ENGLISH`.

    Citations in square brackets, addresses and code are not counted.
    """
    plain = _plain(text)
    by_script = _language_of_script(plain)
    return by_script if by_script is not None else _latin_language(_counts_of(text))


@lru_cache(maxsize=64)
def evidence(text: str) -> LanguageEvidence:
    """How sure it is that a text is in a language that the rules read; `identify` takes it for English in doubt."""
    plain = _plain(text)
    by_script = _language_of_script(plain)
    if by_script is not None:
        return LanguageEvidence.UNREAD if by_script is Language.OTHER else LanguageEvidence.READ
    counts = _counts_of(text)
    if counts.is_foreign:
        return LanguageEvidence.UNREAD
    return LanguageEvidence.READ if counts.own > counts.foreign else LanguageEvidence.NONE


@lru_cache(maxsize=64)
def spoken_language(text: str) -> str:
    """The language, other than English and Hindi, whose small words a text has most of; empty for none."""
    words = _WORD.findall(_plain(text).lower())
    codes = Counter(code for word in words for code in _CODES_OF.get(word, ()))
    return max(codes, key=lambda code: codes[code]) if codes else ""


def language_of_case(question: str, gold: str) -> Language:
    """The language of a case that names none: that of its question; where that is not sure, the gold counts too."""
    if (
        evidence(question) is not LanguageEvidence.READ
        and evidence(f"{question}\n{gold}") is LanguageEvidence.UNREAD
    ):
        return Language.OTHER
    return identify(question)


def _plain(text: str) -> str:
    return _NOISE.sub(" ", text[:_READ])


def _language_of_script(plain: str) -> Language | None:
    """Hindi or another language by its letters; ``None`` for a text in Latin ones."""
    if plain.isascii():
        return None
    hindi = len(_DEVANAGARI.findall(plain))
    if hindi and hindi >= HINDI_SHARE * (hindi + len(_LATIN.findall(plain))):
        return Language.HINDI
    if _LETTERS.search("".join(_UNUSUAL.findall(plain))) and _is_foreign(plain):
        return Language.OTHER
    return None


def _is_foreign(text: str) -> bool:
    """Whether most letters are of neither the Latin nor the Devanagari script."""
    latin, letters = (sum(map(len, runs.findall(text))) for runs in (_LATIN, _LETTERS))
    return latin < letters / 2


@lru_cache(maxsize=64)
def _counts_of(text: str) -> _WordCounts:
    return _counts(_plain(text).lower())


def _counts(lowered: str) -> _WordCounts:
    words = _WORD.findall(lowered)
    counts = Counter(map(_LISTS_OF.get, words))
    counts.pop(None, None)
    hindi, either, english, other = (
        sum(count for lists, count in counts.items() if lists is not None and bit & lists) for bit in _BITS
    )
    if _ACCENTED.search(lowered):
        other += sum(_ACCENTED.search(word) is not None for word in words)
    codes = Counter(code for word in words for code in _CODES_OF.get(word, ()))
    return _WordCounts(len(words), hindi, either, english, other, max(codes.values(), default=0))


def _latin_language(counts: _WordCounts) -> Language:
    if counts.is_foreign:
        return Language.OTHER
    is_hinglish = _is_hinglish(counts.words, counts.hindi, counts.either, counts.english)
    return Language.HINGLISH if is_hinglish else Language.ENGLISH


def _is_hinglish(words: int, hindi: int, either: int, english: int) -> bool:
    if not hindi:
        return False
    said = hindi + (either / 2 if hindi >= english / 2 else 0)
    return said >= _HINGLISH_SHARE * words and hindi * 2 >= english - either
