"""Signs of fonts whose letters are none: Word names them by font and number."""

BOXES = {0x6F: "☐", 0xA8: "☐", 0x71: "☐", 0x78: "☒", 0xFD: "☒", 0xFE: "☑", 0xFC: "✓", 0xFB: "✗", 0x28: "☎", 0x2A: "✉"}
BULLETS = {0x6C: "●", 0x6E: "■", 0x75: "◆", 0x76: "❖", 0xA7: "▪", 0xB7: "•", 0xE0: "→", 0xDF: "←", 0xF0: "⇨"}
FACES = {0x4A: "☺", 0x4B: "😐", 0x4C: "☹"}
CHECKS = {0x50: "✓", 0x4F: "✗", 0x51: "☒", 0x52: "☑", 0x53: "☒", 0x54: "☒", 0xA3: "☐", 0x2A: "☐", 0x30: "☐"}
GREEK = dict(zip(range(0x41, 0x5B), "ΑΒΧΔΕΦΓΗΙϑΚΛΜΝΟΠΘΡΣΤΥςΩΞΨΖ", strict=True))
GREEK |= dict(zip(range(0x61, 0x7B), "αβχδεφγηιϕκλμνοπθρστυϖωξψζ", strict=True))
SIGNS = {0xA3: "≤", 0xA5: "∞", 0xAC: "←", 0xAE: "→", 0xB0: "°", 0xB1: "±", 0xB3: "≥", 0xB4: "×", 0xB7: "•", 0xB8: "÷"}
SIGNS |= {0xB9: "≠", 0xBB: "≈", 0xD6: "√", 0xE5: "∑", 0xF2: "∫", 0xB6: "∂", 0xD5: "∏", 0xCE: "∈", 0xDE: "⇒"}
FONTS = {"wingdings": BOXES | BULLETS | FACES, "wingdings 2": CHECKS, "symbol": GREEK | SIGNS}


def symbol(font: str, number: str) -> str | None:
    """Returns the character that a sign looks like; None for an unknown one."""
    try:
        code = int(number, 16)
    except ValueError:
        return None
    if not 0xF000 <= code <= 0xF0FF and font.casefold() not in FONTS:
        return chr(code) if 0x20 <= code < 0xD800 else None
    own = code & 0xFF
    digit = chr(own) if font.casefold() == "symbol" and 0x20 <= own < 0x40 else None
    return FONTS.get(font.casefold(), {}).get(own, digit)
