package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// statuses are those that the contract gives its codes, so that the table in
// the code can be held to them.
var statuses = map[roomsensor.Code]int{
	"api_key_missing": 401, "api_key_invalid": 401, "api_key_revoked": 401, "api_key_expired": 401,
	"insufficient_scope": 403, "rate_limit_exceeded": 429, "validation_failed": 400, "time_range_invalid": 400,
	"time_range_too_wide": 400, "cursor_invalid": 400, "cursor_team_mismatch": 400, "cursor_device_mismatch": 400,
	"device_not_found": 404, "assignment_not_found": 404, "csv_too_large": 413, "request_too_large": 413,
	"not_implemented": 501, "not_found": 404, "method_not_allowed": 405, "overloaded": 503, "internal_error": 500,
}

// namedCodes are the codes that the specification names itself.
var namedCodes = []roomsensor.Code{
	"insufficient_scope", "rate_limit_exceeded", "cursor_invalid", "cursor_team_mismatch", "cursor_device_mismatch",
	"device_not_found", "assignment_not_found", "validation_failed",
}

// everyCode is how each code of the API can be met: an answer, and the param
// that it must have.
func (f *fixture) everyCode(t *testing.T) map[roomsensor.Code]answerOf {
	t.Helper()
	f.addReadings(t, deviceID, start.Add(-time.Hour), 3)
	other := number(0xde, 2)
	f.addDevice(t, teamID, other, "dev:2")
	revoked := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	id, _, _ := roomsensor.ParseKey(roomsensor.APIKey, revoked)
	_, err := f.store.RevokeAPIKey(t.Context(), id)
	require.NoError(t, err)
	past := start.Add(-time.Second)
	expired := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead, ExpiresAt: &past})
	limited := f.addKey(t, roomsensor.Key{TeamID: teamID, Scope: roomsensor.ScopeRead})
	f.fillWindow(t, limited, slices.Repeat([]time.Time{time.Now()}, roomsensor.RateLimit))
	cursor := f.firstCursor(t, readingsPath+"?limit=1")
	failing := f.serve(t, &broken{backend{f.store}, func(context.Context) error { return errDatabaseLost }}, nil)
	away := f.serve(t, &broken{backend{f.store}, func(context.Context) error { return context.DeadlineExceeded }}, nil)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(3, 1001) i`, teamID)

	unknown := number(9, 9).String()
	return map[roomsensor.Code]answerOf{
		roomsensor.CodeAPIKeyMissing:        {f.get(t, "/team", withoutKey), ""},
		roomsensor.CodeAPIKeyInvalid:        {f.get(t, "/team", withKey("x")), ""},
		roomsensor.CodeAPIKeyRevoked:        {f.get(t, "/team", withKey(revoked)), ""},
		roomsensor.CodeAPIKeyExpired:        {f.get(t, "/team", withKey(expired)), ""},
		roomsensor.CodeInsufficientScope:    {f.patch(t, `{}`, withKey(f.readKey)), ""},
		roomsensor.CodeRateLimitExceeded:    {f.get(t, "/team", withKey(limited)), ""},
		roomsensor.CodeValidationFailed:     {f.get(t, "/devices?limit=0"), "limit"},
		roomsensor.CodeTimeRangeInvalid:     {f.get(t, readingsPath+"?from=x"), "from"},
		roomsensor.CodeTimeRangeTooWide:     {f.get(t, readingsPath+"?last=91d"), "last"},
		roomsensor.CodeCursorInvalid:        {f.get(t, readingsPath+"?cursor=x"), "cursor"},
		roomsensor.CodeCursorTeamMismatch:   {f.get(t, readingsPath+"?cursor="+cursor, withKey(f.readKey)), "cursor"},
		roomsensor.CodeCursorDeviceMismatch: {f.get(t, "/devices/"+other.String()+"/readings?cursor="+cursor), "cursor"},
		roomsensor.CodeDeviceNotFound:       {f.get(t, "/devices/"+unknown), "device_id"},
		roomsensor.CodeAssignmentNotFound:   {f.get(t, readingsPath+"?assignment_id="+unknown), "assignment_id"},
		roomsensor.CodeCSVTooLarge:          {f.get(t, "/readings.csv?shape=wide"), ""},
		roomsensor.CodeRequestTooLarge:      {f.patch(t, strings.Repeat(" ", 64<<10+1)), ""},
		roomsensor.CodeNotImplemented:       {f.patch(t, `{"assignment":1}`), "assignment"},
		roomsensor.CodeNotFound:             {f.get(t, "/nothing"), ""},
		roomsensor.CodeMethodNotAllowed:     {f.do(t, http.MethodPut, "/team", ""), ""},
		roomsensor.CodeOverloaded:           {away.do(t, http.MethodGet, "/v1/team", "", withKey(f.key)), ""},
		roomsensor.CodeInternalError:        {failing.do(t, http.MethodGet, "/v1/team", "", withKey(f.key)), ""},
	}
}

// answerOf is an answer and the param of its error; an empty param is null.
type answerOf struct {
	got   response
	param string
}

// Decisions 34 and 35: every code of the API can be met, with its status and
// its envelope.
func TestEveryCodeIsReachable(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 8.2", "decision 34.1", "decision 34.2", "decision 34.5", "decision 34.6")
	conformance.Covers(t, "spec 7, status 400", "spec 7, status 401", "spec 7, status 403", "spec 7, status 404",
		"spec 7, status 413", "spec 7, status 429", "spec 7, status 500", "spec 7, status 501", "spec 9, rule 2")
	f := setup(t)
	answers := f.everyCode(t)
	for _, info := range roomsensor.Codes {
		require.True(t, strings.HasPrefix(string(info.Code), "ingest_") || answers[info.Code].got.status != 0, info.Code)
	}
	for code, tc := range answers {
		t.Run(string(code), func(t *testing.T) {
			t.Parallel()
			conformance.Covers(t, "spec 7, error.type", "spec 7, error.code", "spec 7, error.message", "spec 7, error.param",
				"spec 7, error.doc_url", "spec 7, error.request_id", "spec 4, errors")
			if slices.Contains(namedCodes, code) {
				conformance.Covers(t, "spec 7, code "+string(code))
			}
			require.Equal(t, statuses[code], tc.got.status)
			tc.got.requireError(t, code, tc.param)
			require.Equal(t, "application/json; charset=utf-8", tc.got.header.Get("Content-Type"))
			require.Equal(t, tc.got.status == http.StatusServiceUnavailable || tc.got.status == http.StatusTooManyRequests,
				tc.got.header.Get("Retry-After") != "")
			requireGolden(t, "error_"+string(code)+".json.golden", tc.got.body)
		})
	}
}
