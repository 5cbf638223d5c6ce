"""Every place that splits texts reads words and names as people and converters write them. All values are by hand."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from setselect import find_references, match_words
from shared_core.texts.names import find_names
from shared_core.texts.word_index import WordIndex


class Row(NamedTuple):
    """What is sought, a text, whether the text has these words, and whether it names a text of that title."""

    sought: str
    text: str
    has: bool
    names: bool | None = None


MARKUP = [
    Row("Johan Earl", "A film by _Johan Earl_ won.", True, True),
    Row("Johan Earl", "A film by **Johan** *Earl* won.", True, True),
    Row("Johan Earl", "A film by [Johan Earl](https://example.org/je) won.", True, True),
    Row("Johan Earl", "A film by [![Johan Earl](je.png)](je.md) won.", True, True),
    Row("Johan Earl", "A film by Johan&nbsp;Earl won.", True, True),
    Row("Johan Earl", "A film by <b>Johan</b> <i>Earl</i> won.", True, True),
    Row("Johan Earl", "A film by <a href='je.html'>Johan Earl</a><sup>1</sup>", True, True),
    Row("Perth", "A ship left __Perth__ in May.", True, True),
    Row("max_tokens", "Set max\\_tokens to 5.", True, True),
    Row("max_tokens", "Set `max_tokens` to 5.", True, True),
    Row("__init__", "Call `__init__` first.", True, True),
    Row("snake_case", "Write it in snake_case, please.", True, True),
    Row("strong", "A __strong__ word", True),
    Row("old town", "The ~~old~~ *town*", True),
    Row("_files", "The module _files reads it.", True, True),
    Row("AT&T", "The company AT&amp;T grew.", True),
    Row("List String", "A List<String> of words", True),
    Row("request", "handlers[name](request)", True),
    Row("Secret", "See [this](https://example.org/Secret).", False, False),
    Row("Secret", "See [this][1].\n\n[1]: https://example.org/Secret", False, False),
    Row("span", "A <span class='x'>big</span> town", False),
    Row("image", "<!-- image -->\nA big town", False),
    Row("nbsp", "A&nbsp;big&nbsp;town", False),
]
BROKEN = [
    Row("retirement", "His retire-\nment was long.", True),
    Row("retirement", "His retire-\r\n  ment was long.", True),
    Row("retirement", "His retire\u00ad\nment was long.", True),
    Row("retirement", "His retire\u2010\nment was long.", True),
    Row("re\u00adtire\u00adment", "His retirement", True),
    Row("wellknown", "A well-\nknown man", True),
    Row("well-known", "A well-\nknown man", False),
    Row("Jean-Luc", "I met Jean-\nLuc there.", True, True),
    Row("Anna Karlsson", "I met Anna Karls-\nson there.", True, True),
    Row("2019", "From 2018-\n2019", True),
    Row("retirement", "His retire -\nment", False),
    Row("20182019", "From 2018-\n2019", False),
]
IDENTIFIERS = [
    Row("get user by id", "Call getUserById(1).", True),
    Row("getUserById", "Call getUserById(1).", True, True),
    Row("getUserById", "You get user by id.", True, False),
    Row("user", "def get_user_by_id(x):", True),
    Row("max retries", "MAX_RETRIES = 3", True),
    Row("http server", "class HTTPServer:", True),
    Row("rfft", "numpy.fft.rfft2(x)", True),
    Row("fft.rfft2", "numpy.fft.rfft2(x)", True, True),
    Row("KB 5034441", "Install KB5034441 now.", True),
    Row("KB5034441", "Install KB5034441 now.", True),
    Row("io.py", "src/utils/io.py", True, True),
    Row("adam smith", "AdamSmith: hello", True),
    Row("größe", "berechneGröße(x)", True),
    Row("IDs", "the userIDs", True),
    Row("pd", "two PDFs", False),
    Row("by", "getUsers()", False),
    Row("user", "the superuser", False),
    Row("art", "partId = 1", False),
]
UNSPACED = [
    Row("서울", "서울은 한국의 수도이다.", True),
    Row("한국어", "한국어를 배우다", True),
    Row("물", "물이 맑다", True),
    Row("강", "한강은 길다", True),
    Row("猫", "黑猫警长", True),
    Row("茶", "茶 tea", True),
    Row("東京", "東京都に住む", True),
    Row("北京大学", "他在北京大学读书。", True, True),
    Row("เมือง", "กรุงเทพเป็นเมืองหลวง", True),
    Row("京都", "東京大学", False),
    Row("虎", "黑猫警长", False),
    Row("부산", "서울은 한국의 수도이다.", False),
    Row("清华大学", "他在北京读书。", False, False),
]
LETTERS = [
    Row("istanbul", "İSTANBUL", True),
    Row("İzmir", "izmir", True),
    Row("İzmir", "Geçen yıl İzmir büyüdü.", True, True),
    Row("علی", "علي", True),
    Row("كتاب", "کتاب خوب", True),
    Row("python", "Ｐｙｔｈｏｎ３", True),
    Row("カタカナ", "ｶﾀｶﾅ", True, True),
    Row("ｶﾀｶﾅ", "カタカナ", True),
    Row("finance", "ﬁnance", True),
    Row("STRASSE", "Straße", True),
    Row("１２", "12 men", True),
    Row("σίσυφος", "ΣΊΣΥΦΟΣ", True),
    Row("محمد", "مُحَمَّد", True),
    Row("isik", "ışık", True),
    Row("aether", "æther", True),
    Row("oeuvre", "œuvre", True),
    Row("आज ज़रूर", "आज जरूर", True),
    Row("فردا می‌خواهم", "فردا ميخواهم", True),
    Row("اكل", "أكل التفاحة", True),
    Row("آمن", "امن", True),
    Row("مدرسه", "مدرسة كبيرة", True),
    Row("ٱلرَّحۡمَٰنِ", "الرحمن", True),
    Row("ہے", "هے", True),
    Row("город", "го\u0301род стоит", True),
    Row("Пушкин", "Алекса\u0301ндр Пу\u0301шкин", True, True),
    Row("об'єкт", "обʼєкт", True),
    Row("Hawai'i", "Hawaiʻi", True),
    Row("2026", "سنة ٢٠٢٦", True),
    Row("४५", "page 45", True),
    Row("๑๒", "12", True),
    Row("Ann Lee", "a film by Ann Lee¹", True, True),
    Row("population", "population² of 1,000", True),
    Row("m2", "5 m²", True),
    Row("й", "и", False),
    Row("ї", "і", False),
    Row("قلم", "علي", False),
]
ACCENTS = [
    Row("Atletico Madrid", "Then Atlético Madrid won.", True, True),
    Row("Atlético Madrid", "Then Atletico Madrid won.", True, True),
    Row("Łódź", "We live in Lodz now.", True, True),
    Row("Lodz", "We live in Łódź now.", True, True),
    Row("Kobenhavn", "Vi bor i København.", True, True),
    Row("Malmö", "We live in Malmo now.", True, True),
    Row("Hà Nội", "Ha Noi is big.", True, True),
    Row("résumé", "a resume for Zürich", True),
    Row("resume", "a résumé", True),
    Row("résumé", "a résumé", True),
    Row("résumé", "a resumé", False),
    Row("Muller", "Herr Müller", True, True),
    Row("Müller", "Herr Muller", True, True),
    Row("Müller", "Herr Mueller", False, False),
    Row("Plzen", "Plzeň", True, True),
    Row("Plzeň", "Plzen", True, True),
    Row("ΑΘΗΝΑ", "η Αθήνα", True),
    Row("еще раз", "ещё раз", True),
    Row("Hà Nội", "Hạ Nọi", False, False),
    Row("má", "mà đen", False),
    Row("ma", "má mà", True),
    Row("schön", "schon früher", True),
    Row("пустой", "пустои", False),
]
OTHER = "zzz"


@pytest.mark.parametrize("row", [*MARKUP, *BROKEN, *IDENTIFIERS, *UNSPACED, *LETTERS, *ACCENTS])
def test_every_reader_of_words_and_names_reads_the_same(row: Row) -> None:
    texts = [row.text, OTHER]
    assert match_words(row.sought, texts).covered.any(axis=1).tolist() == [row.has, False]
    assert WordIndex(texts).best_rows(row.sought, 2)[0].tolist() == [0] * row.has
    if row.names is not None:
        titles = [row.sought, *(f"Another title {letter}" for letter in "ABC")]
        assert find_references(["", row.text, OTHER, OTHER], titles).strength[1, 0] == row.names
    # The names for which ``follow`` searches: those of two words and more, as they are written in the text.
    if row.names and len(row.sought.split()) > 1:
        name, *_ = find_names([row.text], [])
        assert match_words(row.sought, [name, OTHER]).covered[0].any()
