package docs_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// searches are queries, each with the address of the first result; empty for none.
var searches = map[string]string{
	"csv_too_large":       "/errors/csv_too_large",
	"429":                 "/errors/rate_limit_exceeded",
	"paging":              "/guides/paging",
	"wide shape":          "/guides/csv#wide-shape",
	"excel":               "/guides/spreadsheets#excel-power-query",
	"get /devices/{devic": "/reference#/Devices/getDevice",
	"rate lim":            "/guides/rate-limits",
	"late data":           "/guides/late-data",
	"kubernetes":          "/operate/kubernetes",
	"missing night":       "/guides/recipes#missing-nights",
	"athlete":             "/guides/nights-per-athlete",
	"training load":       "/guides/recipes#nights-and-training-load",
	"occupancy":           "/guides/recipes#occupancy-from-sound",
	"zyzzyva":             "",
}

// TestSearch runs the search of the pages on their index, if Node.js is installed: it is the browser's language.
func TestSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	queries, err := json.Marshal(searches)
	require.NoError(t, err)
	for name, text := range map[string][]byte{
		"search.mjs":   get(t, "/docs/assets/search.js").Body.Bytes(),
		"index.json":   get(t, "/docs/assets/search.json").Body.Bytes(),
		"queries.json": queries,
		"main.mjs": []byte(`
import { readFileSync } from "node:fs";
import { search, excerpt } from "./search.mjs";
const [index, queries] = ["index.json", "queries.json"].map((name) => JSON.parse(readFileSync(name, "utf8")));
const found = {};
for (const query of Object.keys(queries)) {
  const results = search(index, query);
  found[query] = results.map((entry) => entry.u);
  results.forEach((entry) => excerpt(entry.t, query));
}
console.log(JSON.stringify(found));
`),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), text, 0o600))
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("the search needs node")
	}
	command := exec.CommandContext(t.Context(), node, "main.mjs")
	command.Dir = dir
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var found map[string][]string
	require.NoError(t, json.Unmarshal(out, &found))
	for query, address := range searches {
		if address == "" {
			require.Empty(t, found[query], query)
			continue
		}
		require.NotEmpty(t, found[query], query)
		require.Equal(t, address, found[query][0], query)
	}
}
