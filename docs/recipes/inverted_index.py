# Inverted index: `index:{word}` becomes the set of `note:` keys whose text holds the word.
# For a search by words without a search engine: SINTER, SUNION and SCARD do the rest (the tag keeps a word together).
# Run it again after changes; SADD makes a second run harmless.
import re


def words_of(record):
    return [{"word": word, "key": record["key"]} for word in set(re.findall(r"\w+", record["value"]["text"].lower()))]


GB("KeysReader").flatmap(words_of).groupby(
    lambda r: r["word"], lambda word, keys, r: (keys or []) + [r["key"]]
).foreach(lambda r: execute("SADD", "index:{%s}" % r["key"], *r["value"])).count().run("note:*")
