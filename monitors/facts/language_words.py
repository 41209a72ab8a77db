"""Small words that tell languages apart. Own lists: the commonest function words of each, in their usual spellings.

Hindi in Latin letters has no fixed spelling; the variants are those of chat messages (``nahi``, ``nahin``,
``nhi``). Words that are also English (``me``, ``is``, ``to``, ``par``, ``main``, ``do``) are left out of both
lists or kept apart: alone they prove nothing.
"""

from __future__ import annotations

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
"""Hindi words that look English: they count for Hinglish only beside surer ones."""

_ENGLISH = """
    the of and a an that it for was with as his her they at be this from have or by one had not but what all
    were when we there can your which their if will each about how up out them then she many some these would
    other into has more two like could no than first been who its now did get come made may over new after
    also because any only our under most us am does doing done should shall must might upon where why whose
    whom while between during before both through you my i in on is are to do so he me him we'll i'm don't
    can't yes covered cover covers period waiting policy months month days day years year per claim claims sum
    insured please provide cannot information document every another such very much just still own same here s
    t able based according within set remind show play tell turn give find make need want know let going long
    far often weather traffic
"""
ENGLISH = frozenset(_ENGLISH.split())
"""The commonest English words, and some of what people ask assistants and insurers."""

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
