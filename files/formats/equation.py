"""Equations of Office in one line: `(a+b)/2`, `x^2`, `√(n)`."""

from typing import Any

from shardqa.files.exponents import lowered, raised
from shardqa.files.formats.ooxml import M


def equation(node: Any) -> str:
    """Returns the equation in an element, or the part of one."""
    kind = node.tag.removeprefix(M) if isinstance(node.tag, str) else ""
    if kind == "t":
        return node.text or ""
    parts = {child.tag.removeprefix(M): equation(child) for child in node if not str(child.tag).endswith("Pr")}
    match kind:
        case "f":
            return f"{_one(parts.get('num', ''))}/{_one(parts.get('den', ''))}"
        case "rad":
            return f"{parts.get('deg', '')}√{_one(parts.get('e', ''))}"
        case "sSup" | "sSub" | "sSubSup" | "nary":
            base = parts.get("e", "") if kind != "nary" else _sign(node, "chr", "∫")
            if parts.get("sub"):
                base += lowered(base[-1:], parts["sub"])
            if parts.get("sup"):
                base += raised(base[-1:], parts["sup"])
            return f"{base} {parts.get('e', '')}" if kind == "nary" else base
        case "d":
            inner = ", ".join(equation(child) for child in node.iterfind(f"{M}e"))
            return f"{_sign(node, 'begChr', '(')}{inner}{_sign(node, 'endChr', ')')}"
    return "".join(equation(child) for child in node if not str(child.tag).endswith("Pr"))


def _one(words: str) -> str:
    return words if words.isalnum() else f"({words})"


def _sign(node: Any, name: str, otherwise: str) -> str:
    setting = node.find(f"{M}{node.tag.removeprefix(M)}Pr/{M}{name}")
    return setting.get(f"{M}val", otherwise) if setting is not None else otherwise
