package docs_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
	"roomsensor/internal/roomsensor"
)

// exampleFunc receives an example with its schema and its place in the document.
type exampleFunc func(where string, schema *openapi3.SchemaRef, value any)

// eachExample calls visit for every example of a document.
func eachExample(document *openapi3.T, visit exampleFunc) {
	operations(document, func(name string, o *openapi3.Operation) {
		for _, p := range o.Parameters {
			visit.parameter(name, p.Value)
		}
		if o.RequestBody != nil {
			visit.content(name, o.RequestBody.Value.Content)
		}
		for status, response := range o.Responses.Map() {
			visit.content(name+" "+status, response.Value.Content)
		}
	})
	for name, response := range document.Components.Responses {
		visit.content(name, response.Value.Content)
	}
}

func (visit exampleFunc) parameter(where string, p *openapi3.Parameter) {
	if p.Example != nil {
		visit(where+" "+p.Name, p.Schema, p.Example)
	}
}

func (visit exampleFunc) content(where string, content openapi3.Content) {
	for contentType, m := range content {
		if m.Example != nil {
			visit(where+" "+contentType, m.Schema, m.Example)
		}
		for name, example := range m.Examples {
			visit(where+" "+contentType+" "+name, m.Schema, example.Value.Value)
		}
	}
}

func TestExamples(t *testing.T) {
	t.Parallel()
	for _, text := range [][]byte{docs.OpenAPI(), docs.Receiver()} {
		seen := 0
		eachExample(load(t, text), func(where string, schema *openapi3.SchemaRef, value any) {
			encoded, err := json.Marshal(value)
			require.NoError(t, err)
			require.NoError(t, check(t, schema, string(encoded)), where)
			seen++
		})
		require.NotZero(t, seen)
	}
}

// TestSchemas checks that the schemas are strict.
func TestSchemas(t *testing.T) {
	t.Parallel()
	schemas := load(t, docs.OpenAPI()).Components.Schemas
	t.Run("objects require all their fields and allow no other", func(t *testing.T) {
		t.Parallel()
		open := map[string]bool{"Metadata": true, "DevicePatch": true}
		for name, schema := range schemas {
			if open[name] || !schema.Value.Type.Is("object") {
				continue
			}
			allowed := schema.Value.AdditionalProperties.Has
			require.True(t, allowed != nil && !*allowed, name)
			fields := slices.Collect(maps.Keys(schema.Value.Properties))
			if name == "Aggregate" { // The client selects its metrics.
				fields = slices.DeleteFunc(fields, func(field string) bool { _, ok := roomsensor.MetricNamed(field); return ok })
			}
			if name == "ChangePage" { // The client asks for deletions.
				fields = slices.DeleteFunc(fields, func(field string) bool { return field == "deleted" })
			}
			require.ElementsMatch(t, fields, schema.Value.Required, name)
		}
	})
	t.Run("a schema that allows null is otherwise like the one that does not", func(t *testing.T) {
		t.Parallel()
		for _, name := range []string{"Reading", "Gap"} {
			orNull := *schemas[name+"OrNull"].Value
			require.True(t, orNull.Nullable)
			orNull.Nullable, orNull.Description = false, schemas[name].Value.Description
			require.Equal(t, *schemas[name].Value, orNull)
		}
	})
	t.Run("values that the service never returns are rejected", func(t *testing.T) {
		t.Parallel()
		good := map[string]string{
			"Reading": `{"bucket_at":"2026-11-20T09:55:00Z","co2_ppm":612,"temp_c":-3.5,"humidity_pct":null,"lux":0,` +
				`"spl_db":null,"ingested_at":"2026-11-20T10:00:07.4319Z"}`,
			"Stat":        `{"min":1,"max":2.5,"mean":1.75,"count":2}`,
			"Signal":      `{"rssi_dbm":-87,"bars":5}`,
			"ReadingPage": `{"data":[],"next_cursor":null}`,
			"APIKey":      `{"key_id":"k","scopes":["read"]}`,
			"Team":        `{"id":"5f0c2c58-3c1c-4b8e-9f5e-2f6f4f0d9b11","name":"t"}`,
			"Error": `{"error":{"type":"invalid_request_error","code":"not_found","message":"m","param":null,` +
				`"doc_url":"http://h/errors/not_found","request_id":"r"}}`,
			"DevicePatch": `{"display_name":"Zürich 🏠","metadata":{"a.b:c-d_9":"","b":null}}`,
		}
		for _, c := range []struct{ schema, from, to string }{
			{"Reading", "09:55:00Z", "09:56:00Z"},
			{"Reading", "09:55:00Z", "09:55:00+00:00"},
			{"Reading", ":07.4319Z", ":07.431900Z"},
			{"Reading", ":07.4319Z", ":07.4319025Z"},
			{"Reading", ":07.4319Z", ":07.0Z"},
			{"Reading", `"lux":0`, `"lux":"0"`},
			{"Reading", `"lux":0,`, ``},
			{"Reading", `"lux":0`, `"lux":0,"measured_at":"2026-11-20T09:55:03Z"`},
			{"Reading", `"2026-11-20T09:55:00Z"`, `null`},
			{"Stat", `"count":2`, `"count":1.5`},
			{"Signal", `5`, `6`},
			{"Signal", `,"bars":5`, ``},
			{"ReadingPage", `null`, `""`},
			{"ReadingPage", `,"next_cursor":null`, ``},
			{"ReadingPage", `[]`, `null`},
			{"APIKey", `["read"]`, `["read","read_write"]`},
			{"APIKey", `["read"]`, `["upload"]`},
			{"Team", `5f0c2c58`, `5F0C2C58`},
			{"DevicePatch", `"display_name":"Zürich 🏠",`, `"display_name":"",`},
			{"DevicePatch", `🏠`, `\u0085`},
			{"DevicePatch", `🏠`, strings.Repeat("🏠", 200)},
			{"DevicePatch", `"b":null`, `"b":1`},
			{"DevicePatch", `"metadata"`, `"tags"`},
			{"Error", `"message":"m",`, ``},
			{"Error", `"message"`, `"x":1,"message"`},
			{"Error", `invalid_request`, `api`},
			{"Error", `"not_found"`, `"lost"`},
		} {
			require.NoError(t, check(t, schemas[c.schema], good[c.schema]), c.schema)
			bad := strings.Replace(good[c.schema], c.from, c.to, 1)
			require.NotEqual(t, good[c.schema], bad)
			require.Error(t, check(t, schemas[c.schema], bad), bad)
		}
	})
}
