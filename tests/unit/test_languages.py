"""Questions in another language than English are found."""

import json
from pathlib import Path

import pytest

from shardqa.languages import other_than_english, warnings

SEEDS = Path(__file__).parents[2] / "seeds" / "questions.jsonl"
OTHERS = {
    "Spanish": ["¿Quién fundó el observatorio?", "¿Cuándo fue construido el molino?", "cuántos barcos hay en la flota"],
    "French": ["Qui a fondé l'observatoire ?", "Quand le moulin a-t-il été construit ?", "Combien coûte le billet ?"],
    "German": ["Wer hat die Sternwarte gegründet?", "Wann wurde die Mühle gebaut?", "Wie tief ist der See?"],
    "Italian": ["Chi ha fondato l'osservatorio?", "Quando è stato costruito il mulino?", "Quanti traghetti ci sono?"],
    "Portuguese": ["Quem fundou o observatório?", "Quando foi construído o moinho?", "Onde fica o lago?"],
    "Dutch": ["Wie heeft de sterrenwacht opgericht?", "Wanneer werd de molen gebouwd?", "Hoe diep is het meer?"],
    "Swedish": ["Vem grundade observatoriet?", "När byggdes kvarnen och av vem?", "Hur djup är sjön?"],
    "Danish": ["Hvem grundlagde observatoriet?", "Hvornår blev møllen bygget?", "Hvor dyb er søen?"],
    "Polish": ["Kto założył obserwatorium?", "Kiedy został zbudowany młyn?", "Jak głębokie jest jezioro?"],
    "Turkish": ["Gözlemevini kim kurdu?", "Değirmen ne zaman inşa edildi?", "Göl ne kadar derin?"],
    "Finnish": ["Kuka perusti observatorion?", "Milloin mylly rakennettiin?", "Kuka on mylly ja mikä se oli?"],
    "Cyrillic": ["Кто основал обсерваторию?", "Коли збудували млин?"],
    "Greek": ["Ποιος ίδρυσε το αστεροσκοπείο;"],
    "Arabic": ["من أسس المرصد؟"],
    "Katakana": ["サルトミア天文台を設立したのは誰ですか？"],
    "Chinese": ["谁建立了天文台？"],
    "Hiragana": ["だれがつくりましたか？"],
    "Hangul": ["누가 천문대를 설립했습니까?"],
}
TRICKY = [
    "Who wrote La Dolce Vita?",
    "What does 'la vie en rose' mean?",
    "How long is the Rue de Rivoli in Paris?",
    "When was die Zauberflöte first performed?",
    "Where is São João del Rei?",
    "Ada Holm",
    "k",
    "What is α in the formula?",
    "Beyoncé Knowles album 2003",
    "price of el Greco paintings",
    "UTF-8?",
    "Who runs El Tour de Tucson?",
    "d",
]


@pytest.mark.parametrize("language", OTHERS)
def test_another_language_is_told(language: str) -> None:
    assert not [question for question in OTHERS[language] if other_than_english(question) is None]


def test_english_is_not_taken_for_another() -> None:
    questions = [json.loads(line)["question"] for line in SEEDS.read_text().splitlines()]
    assert not [question for question in [*questions, *TRICKY] if other_than_english(question) is not None]


def test_the_warning_names_the_language() -> None:
    assert "German" in warnings("Wann wurde die Mühle gebaut?")[0]
    assert warnings("When was the mill built?") == []
