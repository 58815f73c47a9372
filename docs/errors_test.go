package docs_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"roomsensor/docs"
	"roomsensor/internal/roomsensor"
)

// The codes that each operation may answer with, by decisions 22 and 34. Those
// of 401, 429, 500 and 503 are the same for all.
var operationCodes = map[string]map[string]string{
	"GET /team":                {"400": "validation_failed"},
	"GET /devices":             {"400": "validation_failed cursor_invalid cursor_team_mismatch"},
	"GET /devices/current":     {"400": "validation_failed cursor_invalid cursor_team_mismatch"},
	"GET /devices/{device_id}": {"400": "validation_failed", "404": "device_not_found"},
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
	"GET /readings.csv": {
		"400": "validation_failed time_range_invalid time_range_too_wide",
		"404": "device_not_found assignment_not_found",
		"413": "csv_too_large",
	},
}

var commonCodes = map[string]string{
	"401": "api_key_missing api_key_invalid api_key_revoked api_key_expired",
	"429": "rate_limit_exceeded", "500": "internal_error", "503": "overloaded",
}

func TestOperationsNameTheirErrors(t *testing.T) {
	t.Parallel()
	operations(load(t, docs.OpenAPI()), func(name string, o *openapi3.Operation) {
		if strings.HasPrefix(name, "HEAD ") {
			return
		}
		expected := maps.Clone(commonCodes)
		maps.Copy(expected, operationCodes[name])
		found := map[string]string{}
		for status, response := range o.Responses.Map() {
			if status >= "400" {
				found[status] = strings.Join(codesIn(t, response.Value), " ")
			}
		}
		require.Equal(t, expected, found, name)
	})
}

// codesIn reads the codes that a response allows, out of its schema.
func codesIn(t *testing.T, response *openapi3.Response) []string {
	t.Helper()
	narrowed := response.Content["application/json"].Schema.Value.AllOf[1].Value
	var codes []string
	for _, code := range narrowed.Properties["error"].Value.Properties["code"].Value.Enum {
		codes = append(codes, code.(string))
	}
	return codes
}

// Every code of the table is one that some operation, path or upload answers with.
func TestEveryCodeIsAnswered(t *testing.T) {
	t.Parallel()
	answered := map[string]bool{}
	for _, text := range [][]byte{docs.OpenAPI(), docs.Receiver()} {
		for name, response := range load(t, text).Components.Responses {
			if !strings.HasPrefix(name, "Head") && name != "NotModified" {
				for _, code := range codesIn(t, response.Value) {
					answered[code] = true
				}
			}
		}
	}
	for _, info := range roomsensor.Codes {
		require.True(t, answered[string(info.Code)], info.Code)
	}
	require.Len(t, slices.Collect(maps.Keys(answered)), len(roomsensor.Codes))
}

func TestErrorsAreHeldToTheirForm(t *testing.T) {
	t.Parallel()
	responses := load(t, docs.OpenAPI()).Components.Responses
	const good = `{"error":{"type":"invalid_request_error","code":"CODE","message":"m","param":PARAM,` +
		`"doc_url":"http://h/errors/c","request_id":"r"}}`
	body := func(code, param string) string {
		return strings.NewReplacer("CODE", code, "PARAM", param).Replace(good)
	}
	for _, c := range []struct {
		response, body string
		valid          bool
	}{
		{"Unauthorized", body("api_key_missing", "null"), true},
		{"Unauthorized", body("api_key_missing", `"key"`), false},
		{"Unauthorized", body("internal_error", "null"), false},
		{"BadReadings", body("time_range_invalid", `"to"`), true},
		{"BadReadings", body("validation_failed", "null"), true},
		{"BadRequest", body("time_range_invalid", `"to"`), false},
		{"CSVNotFound", body("device_not_found", `"devices"`), true},
		{"CSVNotFound", body("device_not_found", `"device_id"`), false},
		{"DeviceNotFound", body("device_not_found", `"device_id"`), true},
		{"DeviceNotFound", body("device_not_found", "null"), false},
		{"IdempotencyKeyReused", body("validation_failed", `"Idempotency-Key"`), true},
		{"NotImplemented", strings.Replace(body("not_implemented", `"assignment"`), `"message":"m",`, "", 1), false},
		{"NotImplemented", strings.Replace(body("not_implemented", `"assignment"`), `{"error"`, `{"x":1,"error"`, 1), false},
		{"Overloaded", strings.Replace(body("overloaded", "null"), "invalid_request", "api", 1), false},
	} {
		err := check(t, responses[c.response].Value.Content["application/json"].Schema, c.body)
		require.Equal(t, c.valid, err == nil, "%s %s", c.response, c.body)
	}
}
