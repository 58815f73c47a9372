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

func TestDocuments(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"openapi", "receiver"} {
		asYAML := load(t, get(t, "/docs/"+name+".yaml").Body.Bytes())
		asJSON := load(t, get(t, "/docs/"+name+".json").Body.Bytes())
		require.False(t, asYAML.IsOpenAPI31OrLater(), "many generators read 3.0 only")
		for _, document := range []*openapi3.T{asYAML, asJSON} {
			require.NoError(t, document.Validate(t.Context(), openapi3.EnableExamplesValidation()), name)
		}
		fromYAML, err := json.Marshal(asYAML)
		require.NoError(t, err)
		fromJSON, err := json.Marshal(asJSON)
		require.NoError(t, err)
		require.JSONEq(t, string(fromYAML), string(fromJSON))
	}
}

// TestErrorExamples checks that the examples of an operation are about its own parameters, headers and fields.
func TestErrorExamples(t *testing.T) {
	t.Parallel()
	for _, text := range [][]byte{docs.OpenAPI(), docs.Receiver()} {
		shown := 0
		operations(load(t, text), func(name string, o *openapi3.Operation) {
			known := namesOf(o)
			for status, response := range o.Responses.Map() {
				for _, content := range response.Value.Content {
					for example, e := range content.Examples {
						if code, param := errorOf(e.Value.Value); code != "" {
							require.Contains(t, known, param, "%s %s: example %s", name, status, example)
							shown++
						}
					}
				}
			}
		})
		require.NotZero(t, shown)
	}
}

// namesOf returns what error.param of an operation can name: its parameters, its fields, and an unknown parameter.
func namesOf(o *openapi3.Operation) []string {
	names := []string{"", "form", "assignment"}
	for _, p := range o.Parameters {
		names = append(names, p.Value.Name)
	}
	if o.RequestBody == nil {
		return names
	}
	for _, content := range o.RequestBody.Value.Content {
		names = slices.AppendSeq(names, maps.Keys(content.Schema.Value.Properties))
	}
	return names
}

// errorOf returns error.code and error.param of an example. They are "" if the example is not an error, or for null.
func errorOf(example any) (code, param string) {
	body, _ := example.(map[string]any)
	envelope, _ := body["error"].(map[string]any)
	code, _ = envelope["code"].(string)
	param, _ = envelope["param"].(string)
	return code, param
}

// exports are the paths whose URLs may hold a key (decision 26).
var exports = []string{"/readings.csv", "/readings.parquet", "/aggregates.csv", "/nights.csv"}

// TestOperationHeaders checks the headers of all responses: decisions 8, 25, 26 and 33.
func TestOperationHeaders(t *testing.T) {
	t.Parallel()
	operations(load(t, docs.OpenAPI()), func(name string, o *openapi3.Operation) {
		for status, response := range o.Responses.Map() {
			headers := response.Value.Headers
			required := func(header string) bool { return headers[header] != nil && headers[header].Value.Required }
			where := name + " " + status
			require.True(t, required("X-Request-Id"), where)
			require.Equal(t, status != "401" && status < "500" || status == "501", required("RateLimit-Remaining"), where)
			require.Equal(t, status == "401", required("WWW-Authenticate"), where)
			require.Equal(t, status == "429" || status == "503", required("Retry-After"), where)
			_, path, _ := strings.Cut(name, " ")
			export := slices.Contains(exports, path)
			require.Equal(t, export, required("Cache-Control"), where)
			require.Equal(t, export, required("Referrer-Policy"), where)
		}
	})
}

// TestOperationErrors checks the error codes of each operation.
func TestOperationErrors(t *testing.T) {
	t.Parallel()
	operations(load(t, docs.OpenAPI()), func(name string, o *openapi3.Operation) {
		expected := maps.Clone(commonCodes)
		maps.Copy(expected, operationCodes[name])
		found := map[string]string{}
		for status, response := range o.Responses.Map() {
			if status >= "400" {
				found[status] = strings.Join(codesIn(response.Value), " ")
			}
		}
		require.Equal(t, expected, found, name)
	})
}

// TestOperationExamples checks that every response with a body has an example, unless the body is binary.
func TestOperationExamples(t *testing.T) {
	t.Parallel()
	for _, text := range [][]byte{docs.OpenAPI(), docs.Receiver()} {
		operations(load(t, text), func(name string, o *openapi3.Operation) {
			for status, response := range o.Responses.Map() {
				for _, m := range response.Value.Content {
					if m.Schema == nil {
						continue
					}
					require.True(t, m.Example != nil || len(m.Examples) > 0, "%s %s", name, status)
				}
			}
		})
	}
}

// operationCodes are the error codes of each operation (decisions 22 and 34). commonCodes are those of all operations.
var operationCodes = map[string]map[string]string{
	"GET /team":                {"400": "validation_failed"},
	"GET /devices":             {"400": "validation_failed cursor_invalid cursor_team_mismatch"},
	"GET /devices/current":     {"400": "validation_failed cursor_invalid cursor_team_mismatch"},
	"GET /devices/{device_id}": {"400": "validation_failed", "404": "device_not_found"},
	"GET /readings/changes": {
		"400": "validation_failed time_range_invalid time_range_too_wide cursor_invalid cursor_team_mismatch",
		"404": "device_not_found",
	},
	"PATCH /devices/{device_id}": {
		"400": "validation_failed", "403": "insufficient_scope", "404": "device_not_found",
		"413": "request_too_large", "422": "validation_failed", "501": "not_implemented",
	},
	"GET /devices/{device_id}/assignments": {
		"400": "validation_failed cursor_invalid cursor_team_mismatch cursor_device_mismatch",
		"404": "device_not_found",
	},
	"GET /devices/{device_id}/readings": {
		"400": "validation_failed time_range_invalid time_range_too_wide " +
			"cursor_invalid cursor_team_mismatch cursor_device_mismatch",
		"404": "device_not_found assignment_not_found",
	},
	"GET /devices/{device_id}/aggregates": {
		"400": "validation_failed time_range_invalid time_range_too_wide " +
			"cursor_invalid cursor_team_mismatch cursor_device_mismatch",
		"404": "device_not_found assignment_not_found",
	},
	"GET /devices/{device_id}/gaps": {
		"400": "validation_failed time_range_invalid time_range_too_wide " +
			"cursor_invalid cursor_team_mismatch cursor_device_mismatch",
		"404": "device_not_found assignment_not_found",
	},
	"GET /assignments": {
		"400": "validation_failed time_range_invalid time_range_too_wide cursor_invalid cursor_team_mismatch",
	},
	"GET /nights": {
		"400": "validation_failed time_range_invalid time_range_too_wide cursor_invalid cursor_team_mismatch",
	},
	"GET /nights.csv": {
		"400": "validation_failed time_range_invalid time_range_too_wide", "413": "csv_too_large",
	},
	"GET /coverage": {
		"400": "validation_failed time_range_invalid time_range_too_wide cursor_invalid cursor_team_mismatch",
	},
	"GET /metrics": {"400": "validation_failed"},
	"GET /readings.csv": {
		"400": "validation_failed time_range_invalid time_range_too_wide",
		"404": "device_not_found assignment_not_found",
		"413": "csv_too_large",
	},
	"GET /aggregates.csv": {
		"400": "validation_failed time_range_invalid time_range_too_wide",
		"404": "device_not_found assignment_not_found",
		"413": "csv_too_large",
	},
	"GET /readings.parquet": {
		"400": "validation_failed time_range_invalid time_range_too_wide",
		"404": "device_not_found assignment_not_found",
		"413": "csv_too_large",
	},
}

var commonCodes = map[string]string{
	"401": "api_key_missing api_key_invalid api_key_revoked api_key_expired",
	"429": "rate_limit_exceeded", "500": "internal_error", "503": "overloaded",
}

// codesIn returns the codes in the examples of a response, in the order of the table.
func codesIn(response *openapi3.Response) (codes []string) {
	shown := map[string]bool{}
	for _, content := range response.Content {
		for _, example := range content.Examples {
			code, _ := errorOf(example.Value.Value)
			shown[code] = true
		}
	}
	for _, info := range roomsensor.Codes {
		if shown[string(info.Code)] {
			codes = append(codes, string(info.Code))
		}
	}
	return codes
}

// TestCodes checks that every code occurs in a response of an operation, a path or an upload.
func TestCodes(t *testing.T) {
	t.Parallel()
	answered := map[string]bool{}
	for _, text := range [][]byte{docs.OpenAPI(), docs.Receiver()} {
		for _, response := range load(t, text).Components.Responses {
			for _, code := range codesIn(response.Value) {
				answered[code] = true
			}
		}
	}
	for _, info := range roomsensor.Codes {
		require.True(t, answered[string(info.Code)], info.Code)
	}
}
