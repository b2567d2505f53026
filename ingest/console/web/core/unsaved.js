// Unsaved work: an edited form asks before its content is lost.

const edited = new Set();

// guard watches a form. saved(form) ends the warning after its content was stored.
export function guard(form) {
  const mark = () => edited.add(form);
  form.addEventListener("input", mark);
  form.addEventListener("change", mark);
}

export const saved = (form) => edited.delete(form);
export const discard = () => edited.clear();

// unsaved reports whether a form in a place was edited and not saved.
export const unsaved = (place = document) => [...edited].some((form) => form.isConnected && place.contains(form));

addEventListener("beforeunload", (e) => {
  if (unsaved()) e.preventDefault();
});
