package main

import (
	"net/http"
	"slices"
	"strings"

	"roomsensor/internal/roomsensor"
)

// documents lists the documents and the responses of each.
var documents = map[string]document{
	"openapi.yaml":  {codesOf(false), apiResponses()},
	"receiver.yaml": {codesOf(true), receiverResponses()},
}

// The responses that every operation of the API has.
var (
	unauthorized = answer("Unauthorized", []header{requestID},
		roomsensor.CodeAPIKeyMissing, roomsensor.CodeAPIKeyInvalid,
		roomsensor.CodeAPIKeyRevoked, roomsensor.CodeAPIKeyExpired).
		with("WWW-Authenticate", "WWWAuthenticate")
	rateLimited   = answer("RateLimited", counted, roomsensor.CodeRateLimitExceeded).with("Retry-After", "RetryAfterRate")
	internalError = answer("InternalError", perhapsCounted, roomsensor.CodeInternalError)
	overloaded    = answer("Overloaded", perhapsCounted, roomsensor.CodeOverloaded).with("Retry-After", "RetryAfter")
)

func apiResponses() []response {
	return slices.Concat(readResponses(), csvResponses(), patchResponses(), pathResponses())
}

// readResponses are those of the JSON operations, for GET and for HEAD.
func readResponses() []response {
	both := []response{
		answer("BadRequest", counted, roomsensor.CodeValidationFailed),
		answer("BadDeviceList", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch),
		answer("BadAssignmentList", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch, roomsensor.CodeCursorDeviceMismatch),
		answer("BadReadings", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide,
			roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch, roomsensor.CodeCursorDeviceMismatch),
		unauthorized,
		answer("DeviceNotFound", counted, roomsensor.CodeDeviceNotFound).params("device_id"),
		answer("DeviceOrAssignmentNotFound", counted, roomsensor.CodeDeviceNotFound, roomsensor.CodeAssignmentNotFound).
			params("device_id", "assignment_id"),
		rateLimited, internalError, overloaded,
	}
	return withHead(both)
}

// csvResponses are those of the export, for GET and for HEAD.
func csvResponses() []response {
	notFound := answer("NotFound", counted, roomsensor.CodeDeviceNotFound, roomsensor.CodeAssignmentNotFound).
		params("devices", "assignment_id")
	notFound.Examples[0] = "device_not_found_in_devices" // The table's example is of the path.
	both := []response{
		answer("BadRequest", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide),
		unauthorized, notFound,
		answer("CSVTooLarge", counted, roomsensor.CodeCSVTooLarge),
		rateLimited, internalError, overloaded,
	}
	for i := range both {
		both[i] = both[i].onCSV()
	}
	return withHead(both)
}

// patchResponses are those that only PATCH has.
func patchResponses() []response {
	reused := answer("IdempotencyKeyReused", counted, roomsensor.CodeValidationFailed).params("Idempotency-Key")
	reused.Status = http.StatusUnprocessableEntity // spec 8, idempotency rule 3.
	reused.Examples = []string{"idempotency_key_reused"}
	return []response{
		answer("InsufficientScope", counted, roomsensor.CodeInsufficientScope),
		answer("BodyTooLarge", counted, roomsensor.CodeRequestTooLarge),
		reused,
		answer("NotImplemented", counted, roomsensor.CodeNotImplemented).params("assignment"),
	}
}

// pathResponses are of no operation: the paths and methods that do not exist.
func pathResponses() []response {
	return []response{
		answer("NotFound", []header{requestID}, roomsensor.CodeNotFound),
		answer("MethodNotAllowed", []header{requestID}, roomsensor.CodeMethodNotAllowed).with("Allow", "Allow"),
	}
}

func receiverResponses() []response {
	plain := []header{requestID}
	return append([]response{
		answer("BadUpload", plain, roomsensor.CodeValidationFailed),
		answer("Unauthorized", plain,
			roomsensor.CodeIngestKeyMissing, roomsensor.CodeIngestKeyInvalid, roomsensor.CodeIngestKeyRevoked).
			with("WWW-Authenticate", "WWWAuthenticate"),
		answer("TooLarge", plain, roomsensor.CodeRequestTooLarge),
		answer("InternalError", plain, roomsensor.CodeInternalError),
		answer("Overloaded", plain, roomsensor.CodeOverloaded).with("Retry-After", "RetryAfter"),
	}, pathResponses()...)
}

func withHead(responses []response) []response {
	all := slices.Clone(responses)
	for _, r := range responses {
		all = append(all, r.onHead())
	}
	return all
}

// codesOf keeps the codes of the receiver, or those of the API, in the order of
// the table. The receiver shares some of the API's.
func codesOf(receiver bool) []roomsensor.CodeInfo {
	var codes []roomsensor.CodeInfo
	for _, info := range roomsensor.Codes {
		if receiver == isReceivers(info.Code) || receiver && slices.Contains(sharedCodes, info.Code) {
			codes = append(codes, info)
		}
	}
	return codes
}

func isReceivers(code roomsensor.Code) bool { return strings.HasPrefix(string(code), "ingest_") }

var sharedCodes = []roomsensor.Code{
	roomsensor.CodeValidationFailed, roomsensor.CodeRequestTooLarge, roomsensor.CodeNotFound,
	roomsensor.CodeMethodNotAllowed, roomsensor.CodeOverloaded, roomsensor.CodeInternalError,
}
