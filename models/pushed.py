"""Labels of models that every shard shall have: what tells them from one that a client stored."""

PUSHED = "on-every-shard"


def pushed_label(name: str, digest: str, tag: str = "") -> str:
    """The label (AI.MODELSTORE's TAG) of such a model; `tag` is its owner's own."""
    return f"{name}@{digest} {PUSHED}" + (f" {tag}" if tag else "")


def is_pushed(label: str) -> bool:
    return PUSHED in label.split(" ")[1:2]
