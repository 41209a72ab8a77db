"""Hindi and Hinglish words by which a reply declines or says that its documents are silent."""

from __future__ import annotations

import re

HINDI_DECLINE = re.compile(
    # मैं यह नहीं बता सकता; हम साझा नहीं कर सकते. "आप दावा नहीं कर सकते" is an answer: the writer must be its subject.
    r"(?:मैं|मैंने|मुझे|मुझसे|मेरे|हम|हमें)(?![\u0900-\u097f])[^।.!?\n]{0,90}(?:नहीं|नही"
    r"|न)\s[^।.!?\n]{0,24}(?:सकत[ाीे]|सकूँग|सकूंग|सकूँ|सकूं|पाऊँग|पाऊंग|पाएँग|पाएंग|पाता|पाती|दूँगा|दूंगा"
    r"|करूँगा|करूंगा)"
    r"|(?:बताने|देने|करने|उत्तर देने|मदद करने|साझा करने)\s(?:में|के लिए)\sअसमर्थ|असमर्थ\s(?:हूँ|हूं|हैं)"
    r"|मेरे\s(?:दायरे|क्षेत्र|कार्यक्षेत्र)\s(?:से|के)\sबाहर|(?:मना|इनकार)\sकर(?:ता|ती|ना)"
    r"|\bm(?:ain|ai|ein|e|ujhe|ujhse|ere)\b[^।.!?\n]{0,90}\b(?:nahi|nahin|nhi|nahee"
    r"|na)\b[^।.!?\n]{0,30}\b(?:sakt[aie]|sakunga|sakungi|paunga|paungi|paata|paati|dunga|karunga|karungi)\b"
    r"|\bhum\b[^।.!?\n]{0,90}\b(?:nahi|nahin|nhi)\b[^।.!?\n]{0,24}\bsakt[ei]\b|\basamarth h(?:oon|un|u|ai"
    r"|ain)\b|\bmere (?:dayre|scope|daayre) (?:se|ke) bah?ar\b"
    r"|\bmaaf k(?:ijiye|ijie|arein|aren|are|aro)\b[^।.!?\n]{0,80}\b(?:nahi|nahin|nhi)\b",
    re.IGNORECASE,
)
"""The writer will not or cannot, in Hindi or Hinglish."""

HINDI_ABSENCE = re.compile(
    r"(?:उल्लेख|ज़िक्र|जिक्र|जानकारी|विवरण|वर्णन|सूचना|स्पष्ट|निर्दिष्ट|स्पष्टता)[^।.!?\n]{0,36}(?:नहीं|नही"
    r"|अनुपलब्ध)"
    r"|(?:दस्तावेज़|दस्तावेज|दस्तावेज़ों|दस्तावेजों|कागज़ात|स्रोत|स्रोतों)[^।.!?\n]{0,60}(?:नहीं|नही)\s?(?:है"
    r"|हैं|मिल|दिया|दी|बताया|लिखा|कहा|था|पाया)"
    r"|(?:नहीं|नही)\s(?:बताया|लिखा|दिया|दी|कहा)\s(?:गया|गई|है)|मुझे\s(?:नहीं|नही)\s(?:पता|मालूम)|(?:पता"
    r"|मालूम)\s(?:नहीं|नही)\s(?:है|चला)|मेरे पास[^।.!?\n]{0,50}(?:नहीं|नही)\s(?:है|हैं)"
    r"|\b(?:zikr|jikr|ullekh|mention|jaankari|jankari|information|info|details?|vivaran|data|spasht|specify"
    r"|clear)\b[^।.!?\n]{0,36}\b(?:nahi|nahin|nhi|nahee)\b"
    r"|\b(?:documents?|dastavez|dastaavez|wording|papers?)\b[^।.!?\n]{0,60}\b(?:nahi|nahin|nhi)\b ?(?:hai|hain"
    r"|mil|diya|di|bataya|likha|kaha|tha|he\b)"
    r"|\b(?:nahi|nahin|nhi) (?:bataya|likha|diya|di|kaha) (?:gaya|gayi|hai)\b|\bmujhe (?:nahi|nahin"
    r"|nhi) (?:pata|maloom|malum)\b|\b(?:pata|maloom) (?:nahi|nahin|nhi)\b"
    r"|\bmere paas\b[^।.!?\n]{0,50}\b(?:nahi|nahin|nhi) (?:hai|hain|he)\b",
    re.IGNORECASE,
)
"""The documents do not say, in Hindi or Hinglish."""
