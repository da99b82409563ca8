"""Finds questions in a language that the reader has not learnt, by their script and smallest words.

The reader, its tokenizer and the index's stems know English. A question in another language still gets what the words
allow (names, numbers), and a warning. Pure functions.
"""

import re
import unicodedata
from collections import Counter

WORD = re.compile(r"[^\W\d_]+")
ENGLISH = frozenset(
    """
    about all an and any are as at be been but by called can city could country did do does during each first for
    found from get give go had has have he her him his how if in into is it its kind last long made many may me mean
    more most much must my name named no not of old on one or other our over people she should so some than that the
    their them there these they this time to type under up us used was way we were what when where which while who
    whom whose why will with would year you your
    """.split()  # noqa: SIM905
)
ASKS = frozenset(("who", "whom", "whose", "what", "when", "where", "why", "how", "which", "did", "does"))
"""A question that begins so is English, whatever it names."""
OTHERS = """\
Spanish: qué quién quiénes cuándo cuál cuáles dónde cómo cuánto cuánta cuántos cuántas por el la los las un una del al
 es son fue fueron está están hay que en y se con para su sus de lo más
French: qui que quoi quand où comment pourquoi combien quel quelle quels quelles est sont le la les un une des du de
 en et dans pour avec sur au aux il elle ils elles ce cette qu l d été était a-t-il fut quelqu
German: wer wie wo wann warum welche welcher welches welchen wem wen wessen wieviel viele ist sind war waren das der
 dem den des ein eine einen einem einer und im zu zum zur von mit auf für wurde wurden hat haben hatte sich nicht wird
Italian: chi che cosa quando dove come perché quanto quanti quante quale quali è sono era il lo la gli le un una di
 del della dei delle nel nella e per con da al si fu ha
Portuguese: quem que quando onde como qual quais quanto quantos quantas por o os um uma da dos das em na nos nas e é
 são foi foram para com se ao está tem
Dutch: wie wat waar wanneer waarom hoe welke welk hoeveel zijn waren het een van op voor met te werd heeft door bij
 naar aan dat ook niet wordt
Swedish: vem vad var när varför hur vilken vilket vilka många är och att det en ett som för på av till med i har inte
 hette finns
Danish or Norwegian: hvem hvad hva hvor hvornår når hvorfor hvordan hvilken hvilket hvilke mange er og at det en et
 som på af av til blev ble ikke
Polish: kto co gdzie kiedy dlaczego jak jaki jaka jakie który która które ile jest są był była było w z na do się nie
 i od przez ma
Czech: kdo co kde kdy proč jak jaký jaká jaké který která které kolik je jsou byl byla bylo v ve na se do z ze
Turkish: kim ne nerede zaman neden nasıl hangi kaç kadar nedir kimdir mi mı mu mü ve bir bu için ile olan
Finnish: kuka mikä missä milloin koska miksi miten mitä kuinka ketkä on oli ovat ja ei se
Hungarian: ki mi hol mikor miért hogyan melyik mennyi hány milyen az és volt van egy nem
Romanian: cine ce unde când cum care câți câte cât este sunt și la de în cu pe un o din fost
Indonesian: siapa apa mana kapan mengapa bagaimana berapa yang di dan dari untuk dengan adalah itu ini pada
Vietnamese: ai gì đâu nào khi sao thế là của và có không được ở trong bao nhiêu một những
"""
"""The words that are most frequent in questions; those that are English, too, and letters count for nothing."""
WORDS = {
    name: frozenset(word for word in words.split() if len(word) > 1) - ENGLISH
    for name, words in re.findall(r"^(\S[^:\n]*): (.+(?:\n .+)*)", OTHERS, re.MULTILINE)
}


def other_than_english(question: str) -> str | None:
    """The language or script that a question seems to be written in, when that is not English."""
    script = _script(question)
    if script is not None:
        return script
    words = WORD.findall(question.lower())
    if words[:1] and words[0] in ASKS:
        return None
    english = sum(word in ENGLISH for word in words)
    counts = Counter({name: sum(word in frequent for word in words) for name, frequent in WORDS.items()})
    ((name, count),) = counts.most_common(1)
    return name if count > english else None


def warnings(question: str) -> list[str]:
    """The warnings of an Answer."""
    language = other_than_english(question)
    if language is None:
        return []
    return [f"the question seems to be {language}; the reader has learnt English, so trust neither answer nor score"]


def _script(text: str) -> str | None:
    """The first script where most letters are not Latin, as Japanese has three; Greek in a formula is a few letters."""
    if text.isascii():
        return None
    scripts = Counter(
        "Latin" if character.isascii() else unicodedata.name(character, "?").partition(" ")[0].capitalize()
        for character in text
        if character.isalpha()
    )
    letters, latin = scripts.total(), scripts.pop("Latin", 0)
    if 2 * latin >= letters:
        return None
    is_japanese = scripts["Hiragana"] + scripts["Katakana"] > 0
    name = "Japanese" if is_japanese else scripts.most_common(1)[0][0].replace("Cjk", "Chinese")
    return f"in another script ({name})"
