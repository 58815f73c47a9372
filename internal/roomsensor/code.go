package roomsensor

// Code is a stable machine-readable error code (spec 7; spec 9, rule 2).
type Code string

// The codes of spec 7 and decision 34, followed by those of the receiver.
const (
	CodeAPIKeyMissing        Code = "api_key_missing"
	CodeAPIKeyInvalid        Code = "api_key_invalid"
	CodeAPIKeyRevoked        Code = "api_key_revoked"
	CodeAPIKeyExpired        Code = "api_key_expired"
	CodeInsufficientScope    Code = "insufficient_scope"
	CodeRateLimitExceeded    Code = "rate_limit_exceeded"
	CodeValidationFailed     Code = "validation_failed"
	CodeTimeRangeInvalid     Code = "time_range_invalid"
	CodeTimeRangeTooWide     Code = "time_range_too_wide"
	CodeCursorInvalid        Code = "cursor_invalid"
	CodeCursorTeamMismatch   Code = "cursor_team_mismatch"
	CodeCursorDeviceMismatch Code = "cursor_device_mismatch"
	CodeDeviceNotFound       Code = "device_not_found"
	CodeAssignmentNotFound   Code = "assignment_not_found"
	CodeCSVTooLarge          Code = "csv_too_large"
	CodeRequestTooLarge      Code = "request_too_large"
	CodeNotImplemented       Code = "not_implemented"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeOverloaded           Code = "overloaded"
	CodeInternalError        Code = "internal_error"

	CodeIngestKeyMissing Code = "ingest_key_missing"
	CodeIngestKeyInvalid Code = "ingest_key_invalid"
	CodeIngestKeyRevoked Code = "ingest_key_revoked"
	CodeIngestKeyExpired Code = "ingest_key_expired"
)

// CodeInfo documents a code for clients. The table Codes is the only source of the statuses, of the examples in the
// OpenAPI document and of the pages under {docs_url}/errors/<code> (decision 35).
type CodeInfo struct {
	Code    Code
	Status  int    // HTTP status
	Param   string // example of error.param; empty if it is null
	Cause   string // when the error occurs
	Message string // example of error.message
	Fix     string // what to do
	Retry   string // whether and when to retry
	// Guides are the guides that explain the rules behind the code, as files of docs/guides without .md.
	Guides []string
}

const (
	retryNever   = "No: the same request gets the same response. Change it first."
	retryRestart = "Yes, without the cursor: start again at the first page."
)

// Codes lists every code, in the order of the documentation.
var Codes = []CodeInfo{
	{
		Code: CodeAPIKeyMissing, Status: 401,
		Cause:   "The request has no Authorization header and, on an export, no key parameter either.",
		Message: "Send your API key in the header Authorization: Bearer <API_KEY>.",
		Fix: "Add the header Authorization: Bearer <API_KEY>. Only the exports, such as GET /readings.csv, take the key in " +
			"the URL, as key=<API_KEY>.",
		Retry:  retryNever,
		Guides: []string{"authentication"},
	},
	{
		Code: CodeAPIKeyInvalid, Status: 401,
		Cause: "The Authorization header is malformed, sent twice or does not use the scheme Bearer, or the key is " +
			"empty, incomplete, unknown, has a wrong secret or is an upload credential.",
		Message: "This service has no such API key. Check that the key belongs to this service, or ask the owner of " +
			"your team for a new one.",
		Fix: "The message names the mistake. Check that the header has the form Authorization: Bearer " +
			"rsk_<key_id>_<secret>, that the whole key was copied, and that it belongs to this service.",
		Retry:  retryNever,
		Guides: []string{"authentication"},
	},
	{
		Code: CodeAPIKeyRevoked, Status: 401,
		Cause:   "The key was revoked.",
		Message: "This API key was revoked. Use another key.",
		Fix:     "Ask the owner of your team for a new key.",
		Retry:   retryNever,
		Guides:  []string{"authentication"},
	},
	{
		Code: CodeAPIKeyExpired, Status: 401,
		Cause:   "The key had an expiry date, and it has passed.",
		Message: "This API key has expired. Use another key.",
		Fix:     "Ask the owner of your team for a new key.",
		Retry:   retryNever,
		Guides:  []string{"authentication"},
	},
	{
		Code: CodeInsufficientScope, Status: 403,
		Cause: "A key of scope read called PATCH /devices/{device_id}. Of the receiver: the credential of a source was " +
			"sent to another path than that of its source, or another credential to a source.",
		Message: "This request changes a device and needs a key of scope read_write.",
		Fix: "Use a key of scope read_write. A key's scope cannot be changed. For uploads, use the credential or the " +
			"path that the message names.",
		Retry:  retryNever,
		Guides: []string{"authentication", "idempotency"},
	},
	{
		Code: CodeRateLimitExceeded, Status: 429,
		Cause: "The key made more than 600 requests within 10 minutes, or an upload credential or its team sent more " +
			"than its share to the receiver.",
		Message: "This key made more than 600 requests in 10 minutes. Wait 308 seconds, then send the request again.",
		Fix: "Wait for the seconds in the header Retry-After. Use the RateLimit headers to spread your requests. " +
			"To read many devices, send one GET /readings.csv instead of a request for each device. To upload, send " +
			"many uploads in each request.",
		Retry:  "Yes, after the seconds in Retry-After. Denied requests are not counted.",
		Guides: []string{"rate-limits", "csv", "uploads"},
	},
	{
		Code: CodeValidationFailed, Status: 400, Param: "limit",
		Cause: "A parameter, a header or the body breaks a rule; param names it. With status 422: an " +
			"Idempotency-Key was used before with a different body.",
		Message: "limit must be a whole number from 1 to 1000.",
		Fix: "The message names the rule. An unknown parameter is an error too, because a misspelled filter would " +
			"otherwise return more than you asked for.",
		Retry:  retryNever,
		Guides: []string{"conventions", "idempotency", "uploads"},
	},
	{
		Code: CodeTimeRangeInvalid, Status: 400, Param: "from",
		Cause: "from, to, last or since is malformed or, where it must not be, in the future; to is not after from; or " +
			"to_night is before from_night.",
		Message: "from must be a UTC time with seconds and Z, for example 2026-01-31T08:00:00Z.",
		Fix: "Send times as 2026-01-31T08:00:00Z (UTC, with Z; a fraction of up to 9 digits is allowed), durations " +
			"as 90m, 24h or 7d, and a to that is later than from.",
		Retry:  retryNever,
		Guides: []string{"time-windows"},
	},
	{
		Code: CodeTimeRangeTooWide, Status: 400, Param: "from",
		Cause: "The window is wider than the endpoint allows: 90 days for readings, 400 days for hours and 3,660 days for " +
			"days of aggregates, 3,660 days for assignments, and 92 nights. Or since is more than 30 days ago.",
		Message: "The window is wider than 90 days. Ask for from=2026-01-01T00:00:00Z&to=2026-04-01T00:00:00Z first, " +
			"and for the rest in further requests.",
		Fix: "Split the window into parts that the message allows. A window includes its start but not its end, so that " +
			"the end of one part is the start of the next.",
		Retry:  retryNever,
		Guides: []string{"time-windows"},
	},
	{
		Code: CodeCursorInvalid, Status: 400, Param: "cursor",
		Cause: "The cursor is malformed, belongs to another endpoint or is older than 24 hours; a cursor of the change " +
			"feed, than 30 days.",
		Message: "This cursor is not valid or is too old. Leave it out and start again at the first page.",
		Fix: "Discard the cursor and read all pages again, one after the other. Send each cursor exactly as it was " +
			"in next_cursor.",
		Retry:  retryRestart,
		Guides: []string{"paging"},
	},
	{
		Code: CodeCursorTeamMismatch, Status: 400, Param: "cursor",
		Cause:   "The cursor was issued to another key.",
		Message: "This cursor was issued to another key. Start again at the first page with this key.",
		Fix:     "Use the same key for all pages.",
		Retry:   retryRestart,
		Guides:  []string{"paging"},
	},
	{
		Code: CodeCursorDeviceMismatch, Status: 400, Param: "cursor",
		Cause:   "The cursor was issued for another device.",
		Message: "This cursor was issued for another device. Start again at the first page of this device.",
		Fix:     "Use a cursor only with the device that it was issued for.",
		Retry:   retryRestart,
		Guides:  []string{"paging"},
	},
	{
		Code: CodeDeviceNotFound, Status: 404, Param: "device_id",
		Cause:   "No device of your team has this id.",
		Message: "No device of your team has this device_id. GET /devices lists them.",
		Fix:     "Use a device_id from GET /devices. A hardware_id is not accepted in any request.",
		Retry:   retryNever,
		Guides:  []string{"devices"},
	},
	{
		Code: CodeAssignmentNotFound, Status: 404, Param: "assignment_id",
		Cause:   "The assignment belongs to another device or another team, or does not exist.",
		Message: "No assignment of this device has this assignment_id. GET /devices/{device_id}/assignments lists them.",
		Fix:     "Use an assignment_id from GET /devices/{device_id}/assignments of the same device.",
		Retry:   retryNever,
		Guides:  []string{"devices", "time-windows"},
	},
	{
		Code: CodeCSVTooLarge, Status: 413,
		Cause: "The export would contain more than 250,000 readings or, in wide shape, more than 1,000 devices.",
		Message: "The export would have 432000 rows; at most 250000 are allowed. Ask for " +
			"from=2026-01-01T00:00:00Z&to=2026-01-21T20:00:00Z or name fewer devices.",
		Fix:    "Use the window in the message, or name fewer devices, and export the rest in further requests.",
		Retry:  retryNever,
		Guides: []string{"csv", "command-line", "time-windows"},
	},
	{
		Code: CodeRequestTooLarge, Status: 413,
		Cause:   "The body is larger than the endpoint accepts.",
		Message: "The body is larger than 64 KiB. Send a smaller one.",
		Fix: "Send a smaller body: at most 64 KiB for PATCH; at most 1,000,000 bytes and 10,000 readings for each " +
			"upload, and 16 MiB and 50,000 uploads for a request.",
		Retry:  retryNever,
		Guides: []string{"idempotency", "uploads"},
	},
	{
		Code: CodeNotImplemented, Status: 501, Param: "assignment",
		Cause:   "The body has the field assignment, which is reserved for a later version. Nothing was written.",
		Message: "Assignments cannot be changed through the API yet. Leave the field assignment out.",
		Fix:     "Leave the field out. The operator of the service changes assignments.",
		Retry:   "No: never retry a 501.",
		Guides:  []string{"devices"},
	},
	{
		Code: CodeNotFound, Status: 404,
		Cause: "The service has no such path.",
		Message: "There is no such path. Did you mean \"/v1/devices/{device_id}\"? The API has the paths " +
			"/v1/aggregates.csv, /v1/assignments, /v1/coverage, /v1/devices, /v1/devices/current, " +
			"/v1/devices/{device_id}, /v1/devices/{device_id}/aggregates, /v1/devices/{device_id}/assignments, " +
			"/v1/devices/{device_id}/gaps, /v1/devices/{device_id}/readings, /v1/metrics, /v1/nights, /v1/nights.csv, " +
			"/v1/readings.csv, /v1/readings.parquet, /v1/readings/changes and /v1/team.",
		Fix: "The message lists the paths. Check the spelling, that the base URL ends in /v1, and that there is no " +
			"slash at the end.",
		Retry:  retryNever,
		Guides: []string{"conventions"},
	},
	{
		Code: CodeMethodNotAllowed, Status: 405,
		Cause:   "The path does not support this method.",
		Message: "This path supports GET and HEAD only.",
		Fix:     "Use a method that the header Allow names.",
		Retry:   retryNever,
		Guides:  []string{"conventions"},
	},
	{
		Code: CodeOverloaded, Status: 503,
		Cause:   "The service is overloaded, or its database or queue is unavailable.",
		Message: "The service cannot respond right now. Try again after the seconds in Retry-After.",
		Fix:     "Wait for the seconds in the header Retry-After. Run fewer exports at the same time.",
		Retry:   "Yes, after the seconds in Retry-After, with exponential backoff.",
		Guides:  []string{"rate-limits", "paging", "csv", "uploads"},
	},
	{
		Code: CodeInternalError, Status: 500,
		Cause:   "The service failed. Your request is not the cause.",
		Message: "The service failed. Try again, and quote request_id to support if it persists.",
		Fix:     "Try again with exponential backoff; quote request_id to support if it persists.",
		Retry:   "Yes, with exponential backoff.",
		Guides:  []string{"conventions"},
	},
	{
		Code: CodeIngestKeyMissing, Status: 401,
		Cause:   "The request has no Authorization header.",
		Message: "Send your upload credential in the header Authorization: Bearer <INGEST_KEY>.",
		Fix:     "Add the header Authorization: Bearer rsi_<key_id>_<secret>. API keys cannot upload.",
		Retry:   retryNever,
		Guides:  []string{"uploads"},
	},
	{
		Code: CodeIngestKeyInvalid, Status: 401,
		Cause: "The Authorization header is malformed, sent twice or does not use the scheme Bearer, or the credential " +
			"is empty, incomplete, unknown, has a wrong secret or is an API key.",
		Message: "This service has no such upload credential. Check that it belongs to this service, or create " +
			"another one with roomsensor ingest-key create.",
		Fix: "The message names the mistake. Check that the header has the form Authorization: Bearer " +
			"rsi_<key_id>_<secret>, that the whole credential was copied, and that it belongs to this service.",
		Retry:  retryNever,
		Guides: []string{"uploads"},
	},
	{
		Code: CodeIngestKeyRevoked, Status: 401,
		Cause:   "The upload credential was revoked.",
		Message: "This upload credential was revoked. Use another one.",
		Fix:     "Create another credential with roomsensor ingest-key create.",
		Retry:   retryNever,
		Guides:  []string{"uploads"},
	},
	{
		Code: CodeIngestKeyExpired, Status: 401,
		Cause:   "The upload credential had an expiry date, or another one replaced it, and its time has passed.",
		Message: "This upload credential has expired. Use another one.",
		Fix:     "Create another credential with roomsensor ingest-key create.",
		Retry:   retryNever,
		Guides:  []string{"uploads"},
	},
}

var codeIndex = func() map[Code]*CodeInfo {
	index := make(map[Code]*CodeInfo, len(Codes))
	for i := range Codes {
		index[Codes[i].Code] = &Codes[i]
	}
	return index
}()

// Info returns the documentation of a code, or nil for an unknown one.
func (c Code) Info() *CodeInfo { return codeIndex[c] }

// Status returns the HTTP status of a code. One case differs: an Idempotency-Key that was used with a different body is
// answered with validation_failed and status 422 (spec 8, idempotency, rule 3).
func (c Code) Status() int { return codeIndex[c].Status }

// New returns an error with the message of the table.
func (c Code) New() *Error {
	info := codeIndex[c]
	return NewError(c, info.Param, info.Message)
}
