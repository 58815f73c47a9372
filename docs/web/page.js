// Adds to a page what needs a script: tabs and copy buttons of the samples, the reader's values in them, and the search.
// Without it, a page has the same text.
import { startFill } from "./fill.js";
import { startSamples } from "./samples.js";
import { startSearch } from "./search.js";

startSamples();
startFill();
startSearch();
