package docs_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
)

func guideFiles(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir("guides")
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	require.NotEmpty(t, names)
	return names
}

func TestGuidesRender(t *testing.T) {
	t.Parallel()
	h := sharedHandler(t)
	for _, name := range guideFiles(t) {
		body := get(h, http.MethodGet, "/docs/guides/"+strings.TrimSuffix(name, ".md")).Body.String()
		require.Equal(t, 1, strings.Count(body, "<h1"), name)
		require.Contains(t, body, `<code class="language-sh">`, name)
		require.NotContains(t, body, "```", name)
		require.NotContains(t, body, "|---", name)
	}
}

// block is a fenced block of JSON; the word after json names its schema.
var block = regexp.MustCompile("(?s)```json ?(\\w*)\n(.*?)```")

// What a guide shows as an answer is one that the documents allow.
func TestGuidesShowValidAnswers(t *testing.T) {
	t.Parallel()
	api, receiver := load(t, docs.OpenAPI()), load(t, docs.Receiver())
	shown := 0
	for _, name := range append(guideFiles(t), "../errors.md") {
		text, err := os.ReadFile("guides/" + name)
		require.NoError(t, err)
		for _, match := range block.FindAllStringSubmatch(string(text), -1) {
			schema := api.Components.Schemas[match[1]]
			if schema == nil {
				schema = receiver.Components.Schemas[match[1]]
			}
			require.NotNil(t, schema, "%s: a block names no schema but %q", name, match[1])
			requireValid(t, schema, match[2], name)
			shown++
		}
	}
	require.NotZero(t, shown)
}

func requireValid(t *testing.T, schema *openapi3.SchemaRef, text, where string) {
	t.Helper()
	require.NoError(t, check(t, schema, text), where)
}

func check(t *testing.T, schema *openapi3.SchemaRef, text string) error {
	t.Helper()
	var value any
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	err := schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020(), openapi3.VisitAsResponse())
	return err
}
