// Shows the operations that have every word of the search, and opens the one that the address names.
const field = document.getElementById("find");
const texts = new Map([...document.querySelectorAll("article")].map((a) => [a, (a.id + " " + a.textContent).toLowerCase()]));
field.addEventListener("input", () => {
  const words = field.value.toLowerCase().split(/\s+/);
  let found = 0;
  for (const [article, text] of texts) {
    article.hidden = !words.every((w) => text.includes(w));
    found += article.hidden ? 0 : 1;
  }
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.querySelector("article:not([hidden])");
  }
  document.getElementById("none").hidden = found > 0;
});
const open = () => document.getElementById(location.hash.slice(1))?.querySelector("details")?.setAttribute("open", "");
addEventListener("hashchange", open);
open();
