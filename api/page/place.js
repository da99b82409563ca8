// Where something stands in its file, as people cite it: "p. 12, § Notice period".

/** Words for a place; empty for none. */
export function placeText(place) {
  if (!place) return "";
  return [
    place.part,
    place.page && `p. ${place.page}`,
    place.slide && `slide ${place.slide}`,
    place.sheet && `sheet ${place.sheet}`,
    place.row && `row ${place.row}`,
    place.line && `line ${place.line}`,
    place.time && `at ${place.time}`,
    place.headings?.length && `§ ${place.headings.join(" › ")}`,
  ]
    .filter(Boolean)
    .join(", ");
}
