"""Tells a table of two columns whose rows are pairs, name and value, from one whose first row names its columns.

Fact sheets, letterheads and forms have no head: with one, their second row would read "Phone Street has 0555 2311: Elm
Lane 4." Nothing marks which it is, so it is told by the words. Pure functions.
"""

import re
from collections.abc import Sequence
from itertools import groupby

DIGIT = re.compile(r"\d")
AMOUNT = re.compile(r"[^\w(]{0,2}\d|[A-Z]{0,3}[€$£¥] ?\d")  # what begins as a number does
WORDS = (
    "account address adres adress adresse age agent allergies amount anschrift ansprechpartner apellido applicant "
    "architect area arrival artist author balance bank baujahr beam bedrag beløb berth beruf betrag betreff bic "
    "birth birthday birthplace blood booked booking born brand breed breite builder buyer calle capacity captain "
    "care carrier category cell chair chairman chairwoman check-in check-out chip città city ciudad clerk client "
    "code cognome color colour company composer conductor consignee contact contract correo couleur country county "
    "courriel crew currency customer date dato datum day deadline department departure deposit depth deputy "
    "description designer diet dirección director discount dose draft draught due duration e-mail edition editor "
    "eier eigenaar email engine expires fabric farbe fax fecha fee finish fit flag founded founder fuel gata "
    "geburtsdatum gender genre geschäftsführer gewerbe gewicht grade größe guarantee guests hauteur height "
    "hersteller holder hours hull höhe iban id imię importe importo indirizzo inhaber inhaberin insurance invoice "
    "isbn keeper kleur kunde kundennummer landlord language largeur lengte length lessee lessor licence license "
    "lining location longueur lunghezza länge mail manager material miasto mobil mobile model modell montant month "
    "mooring naam naissance name namn nationality navn nazwisko nights no no. nom nombre nome number objet "
    "occupation opened opening opens origin ort owner paese pages parish parking passport patron payment pays país "
    "peso pets phone plaats place plz poids port position postal postcode power precio preis president prezzo price "
    "prijs pris prix producer profession propietario proprietario propriétaire province prénom publisher purchaser "
    "range rate rechnungsnummer reference registration rent responsible rig role room rue salary secretary seller "
    "sender serial series sex shipper shipyard signature site size skipper sku speed sponsor stad stadt state status "
    "straat strasse straße street style subject subtotal supplier swift tax tel telefax telefon telefono telefoon "
    "telephone teléfono tenant term terms time title total town treasurer type téléphone ulica url vat vendor venue "
    "version village ville volume warden warranty web website weight width wifi writer yard year zip ägare "
    "öffnungszeiten"
)
LABELS = frozenset(re.findall(r"\S+", WORDS))  # last words of names of single values
MOST_WORDS = 6  # of a column's name
YEAR = 4  # figures


def are_pairs(rows: Sequence[Sequence[str]]) -> bool:
    """Returns whether all rows fill two columns and are pairs of a name and a value."""
    pairs = [(row[0].strip(), row[1].strip()) for row in rows if is_pair(row)]
    is_wide = any(cell.strip() for row in rows for cell in row[2:])
    if is_wide or len(pairs) < max(2, len(rows) // 2):
        return False
    return pairs[0][0].endswith(":") or not _is_head(*pairs[0], pairs[1:])


def is_pair(row: Sequence[str]) -> bool:
    """Returns whether a row fills its first two columns alone."""
    return len(row) > 1 and all(bool(cell.strip()) == (n < 2) for n, cell in enumerate(row))


def unfolded(rows: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Returns a form's rows of several pairs (`Name: … Phone: …`) as rows of one pair; else the rows as they are."""
    names = [row[n].strip() for row in rows for n in range(0, len(row), 2)]
    is_form = any(names) and all(name.endswith(":") for name in names if name)
    if not is_form or max(map(len, rows)) < 3:
        return rows
    return [row[n : n + 2] for row in rows for n in range(0, len(row), 2) if any(row[n : n + 2])]


def groups(row: Sequence[str]) -> list[list[str]]:
    """Returns what a row outside of a table says: pairs of a name and a value, and single cells; none where else.

    Gaps part the pairs (`Customer | Heron Club | | Date | 12 March`), or their names tell them (`No. | 7 | Date | …`).
    """
    found = [list(run) for is_filled, run in groupby(row, lambda cell: bool(cell.strip())) if is_filled]
    if len(found) == 1 and len(found[0]) > 2 and len(found[0]) % 2 == 0:
        found = [found[0][n : n + 2] for n in range(0, len(found[0]), 2)]
        return found if all(name.endswith(":") or _last(name) in LABELS for name, _ in found) else []
    are_pairs = all(len(one) < 3 and not AMOUNT.match(one[0]) for one in found)
    return found if are_pairs and any(len(one) > 1 for one in found) else []


def totals(rows: Sequence[Sequence[str]]) -> set[int]:
    """Returns the numbers of rows that sum up: their names stand among a column's figures, before the sum."""
    found: set[int] = set()
    for n, row in enumerate(rows):
        filled = [at for at, cell in enumerate(row) if cell.strip()]
        if len(filled) == 2 and filled[0] and not AMOUNT.match(row[filled[0]]) and DIGIT.search(row[filled[1]]):
            column = [other[filled[0]] for other in rows if other[0].strip() and filled[0] < len(other)]
            if column and all(AMOUNT.match(cell) for cell in column if cell.strip()):
                found.add(n)
    return found


def _is_head(name: str, value: str, below: Sequence[tuple[str, str]]) -> bool:
    """Returns whether these two name the columns of the rows below."""
    if _last(value) in LABELS:
        return True
    if sum(_last(one) in LABELS for one, _ in below) >= max(1, len(below) // 3):
        return False
    if value in (other for _, other in below):
        return False
    amounts = sum(AMOUNT.match(other) is not None for _, other in below)
    if DIGIT.search(value):  # "Price 2024" above prices names them, and a year above numbers
        is_year = value.isdigit() and len(value) == YEAR and _last(name) not in LABELS
        return amounts == len(below) and (is_year or not AMOUNT.match(value))
    is_value = len(value.split()) > MOST_WORDS or (name[:1].isupper() and value[:1].islower()) or value[-1] in ".!?"
    is_value = is_value or (value.istitle() and " " in value)  # "Noor Patel"
    return amounts == len(below) or not is_value


def _last(name: str) -> str:
    """Returns the last word of a name, without a bracket after it."""
    words = re.sub(r"\(.*", "", name.casefold()).rstrip(": ").split()
    return words[-1] if words else ""
