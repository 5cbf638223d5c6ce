"""Words that stand before the numbers of a document, and between two numbers, by language.

A language takes one line. The words with which the candidates write their own numbers need no line here.
"""

from __future__ import annotations

# What is numbered. "Section 4" and "Rule 4" may be the same, but "Article 4" and "Annex 4" are others.
SECTION, ARTICLE, CHAPTER, ANNEX, PARAGRAPH = FAMILIES = ("section", "article", "chapter", "annex", "paragraph")
# The words of each family, in lower case. "#" is the number, where letters without capitals stand behind it.
KIND_WORDS = {
    "signs": "§ §§ | | | |",
    "English": "section sections sec secs sect rule rules clause clauses cl regulation regulations reg regs | article "
    "articles art arts | chapter chapters chap chaps part parts | annex annexes appendix appendices app apps schedule "
    "schedules sch exhibit exhibits | paragraph paragraphs para paras item step point points",
    "German": "abschnitt abschnitte abschnitts abschnitten klausel klauseln | artikel artikels artikeln | kapitel "
    "kapitels kapiteln teil teile teils titel | anhang anhangs anlage anlagen | ziffer ziffern ziff punkt punkte",
    "French": "règle règles | article articles | chapitre chapitres partie parties titre | annexe annexes | paragraphe "
    "paragraphes",
    "Spanish": "sección secciones cláusula cláusulas regla reglas | artículo artículos | capítulo capítulos parte "
    "partes título | anexo anexos | párrafo párrafos apartado apartados punto puntos",
    "Italian": "sezione sezioni clausola clausole regola regole | articolo articoli | capitolo capitoli parti titolo | "
    "allegato allegati | paragrafo paragrafi punti",
    "Portuguese": "seção seções cláusula cláusulas | artigo artigos | capítulo capítulos parte partes | anexo anexos | "
    "parágrafo parágrafos",
    "Dutch": "sectie paragraaf | artikel artikelen | hoofdstuk hoofdstukken | bijlage bijlagen | punt punten",
    "Russian": "раздел раздела разделе разделы | статья статьи статье статьей ст | глава главы главе часть части | "
    "приложение приложения приложении | пункт пункта пункте п",
    "Arabic": "قسم | مادة مادتين مواد | فصل باب | ملحق | فقرة بند",
    "Chinese and Japanese": "第#節 第#节 | 第#条 第#條 | 第#章 第#編 第#编 第#部分 | |",
    "Korean": "제#절 | 제#조 | 제#장 제#편 | |",
}
# Kinds that are counted by letters or Roman numbers too: "Annex B", "Part IV".
LETTERED, ROMAN = (CHAPTER, ANNEX, ARTICLE), (CHAPTER, ARTICLE)
# Between the kind and the number: "Article No. 5".
NUMBER_SIGNS = "no nr n number num nummer nos número numéro numero from dal с من"
# Between two numbers, and between the first and the last one of a range.
AND = "and|or|und|oder|sowie|et|ou|y|o|e|en|of|и|или|و|أو|और"
TO, TO_JOINED = "to|through|thru|bis|à|a|al|tot en met|tot|t/m|до|по|إلى|الى|से", "から|至|到|부터"
# What makes another number of one: "5 ter".
INSERTED = "bis|ter|quater|quinquies|sexies|septies|octies|novies|decies"
# Before an inner level of a number: "Abs. 1", "lit. f".
INNER = (
    "Abs|Absatz|Satz|Unterabs|lit|Buchst|Buchstabe|Nr|Nummer|Ziff|Ziffer|al|alinéa|apdo|apartado|letra|comma|co|lett|"
    "lettera|lid|onder|paragraphe|paragraph|para|point|ч|часть|п|пункт"
)
# Before and inside of the name of a document: "Section 5 of the Financial Services Act".
OF, INSIDE = "of|in|under|to|des|der|du|de|del|della|dell|do|da|van|του|της", "of|and|on|for|des|der|de"
THE = "the|la|las|los|el|l|het|de"
# Letters before digits that make an amount or a year, and capitals behind a number of two levels: "3.5 Million".
NO_CODES = ("fy", "cy", "hy", "eur", "usd", "gbp", "chf", "jpy", "cny", "inr", "aud", "cad", "aed", "rmb")
UNITS = "Million Millionen Milliarden Milliarde Billion Mio Mrd Euro Prozent Liter Meter Percent Dollar Uhr"
# Words that name no document: a text about a contract calls it "the Agreement".
NO_NAMES = "the of and act law rules rulebook agreement contract policy gesetz vertrag loi contrat"
# Before and behind the name of a document, what says which of its copies or drafts a file is.
EDITION_BEFORE = "copy of|copie de|kopie von|copia de|copia di|cópia de|копия|副本"
EDITION_BEHIND = "draft|final|entwurf|brouillon|borrador|bozza|rascunho|черновик|草稿|终稿"
