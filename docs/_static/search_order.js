// Which result of a search comes first: words in the title of a page, then those of which each is in a
// heading; of equal ones guides before explanations, these before the reference.
const FOLDERS = { "how-to": 30, tutorials: 25, explanation: 20, reference: 10, gallery: 5, source: -40 };
function inHeadings(words, docname) {
  const { docnames, titleterms } = Search._index;
  const stemmer = new Stemmer();
  const pages = (word) => (Object.hasOwn(titleterms, word) ? [titleterms[word]].flat() : []);
  return words.every((word) => pages(stemmer.stemWord(word)).includes(docnames.indexOf(docname)));
}
var Scorer = {
  score: ([docname, title, , , score, , kind]) => {
    const query = (new URLSearchParams(location.search).get("q") ?? "").trim().toLowerCase();
    const folder = docname.startsWith("reference/api/") ? -30 : FOLDERS[docname.split("/")[0]] ?? 0;
    const name = title.split(" > ")[0].toLowerCase().includes(query) ? 40 : 0;
    const words = kind === "text" && inHeadings(query.split(/\s+/), docname);
    const heading = kind === "title" || words ? 60 : 0;
    const text = kind === "index" ? 0 : score; // of an entry, such as a word of the glossary, up to 100
    return text + folder + name + heading;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
