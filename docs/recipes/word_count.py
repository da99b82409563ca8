# Word count: how often each word stands in the texts of all `article:` hashes, over the whole cluster.
# For a first look at what a corpus is about, and as the smallest script whose records cross shards.
# The reply has one {'key': word, 'value': count} a word; each word is added up on the shard of its slot.
import re

GB("KeysReader").map(lambda r: r["value"]["text"]).flatmap(lambda text: re.findall(r"\w+", text.lower())).countby(
    lambda word: word
).run("article:*")
