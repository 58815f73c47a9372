package main

import (
	"net/http"
	"slices"

	"roomsensor/internal/roomsensor"
)

// documents holds the errors of each OpenAPI document.
var documents = map[string]document{
	"openapi.yaml":  {apiResponses()},
	"receiver.yaml": {receiverResponses()},
}

// Responses of every operation of the API.
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

// readResponses returns the responses of the JSON operations.
func readResponses() []response {
	return []response{
		answer("BadRequest", counted, roomsensor.CodeValidationFailed).
			show(roomsensor.CodeValidationFailed, "unknown_parameter"),
		answer("BadDeviceList", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch),
		answer("BadAssignmentList", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch, roomsensor.CodeCursorDeviceMismatch),
		answer("BadReadings", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide,
			roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch, roomsensor.CodeCursorDeviceMismatch),
		answer("BadTeamList", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide,
			roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch),
		answer("BadChanges", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide,
			roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch).
			show(roomsensor.CodeTimeRangeInvalid, "since_malformed").
			show(roomsensor.CodeTimeRangeTooWide, "since_too_old"),
		nights("BadNights", roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch),
		unauthorized,
		answer("DevicesNotFound", counted, roomsensor.CodeDeviceNotFound).
			show(roomsensor.CodeDeviceNotFound, "device_not_found_in_devices"),
		answer("DeviceNotFound", counted, roomsensor.CodeDeviceNotFound),
		answer("DeviceOrAssignmentNotFound", counted, roomsensor.CodeDeviceNotFound, roomsensor.CodeAssignmentNotFound),
		rateLimited, internalError, overloaded,
	}
}

// nights returns the response to parameters of nights, with the codes of cursors if there are any.
func nights(name string, cursors ...roomsensor.Code) response {
	codes := append([]roomsensor.Code{
		roomsensor.CodeValidationFailed, roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide,
	}, cursors...)
	return answer(name, counted, codes...).
		show(roomsensor.CodeValidationFailed, "unknown_parameter").
		show(roomsensor.CodeTimeRangeInvalid, "nights_reversed").
		show(roomsensor.CodeTimeRangeTooWide, "nights_too_many")
}

// csvResponses returns the responses of the exports. ExportBadRequest is that of an export without the parameter shape.
func csvResponses() []response {
	notFound := answer("NotFound", counted, roomsensor.CodeDeviceNotFound, roomsensor.CodeAssignmentNotFound)
	all := []response{
		answer("BadRequest", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide).
			show(roomsensor.CodeValidationFailed, "unknown_shape"),
		answer("ExportBadRequest", counted, roomsensor.CodeValidationFailed,
			roomsensor.CodeTimeRangeInvalid, roomsensor.CodeTimeRangeTooWide).
			show(roomsensor.CodeValidationFailed, "unknown_parameter"),
		nights("CSVBadNights"),
		unauthorized, notFound.show(roomsensor.CodeDeviceNotFound, "device_not_found_in_devices"),
		answer("CSVTooLarge", counted, roomsensor.CodeCSVTooLarge),
		rateLimited, internalError, overloaded,
	}
	for i := range all {
		all[i] = all[i].onCSV()
	}
	return all
}

// patchResponses returns the responses that only PATCH has.
func patchResponses() []response {
	reused := answer("IdempotencyKeyReused", counted, roomsensor.CodeValidationFailed)
	reused.Status = http.StatusUnprocessableEntity // spec 8, idempotency, rule 3.
	return []response{
		answer("BadChange", counted, roomsensor.CodeValidationFailed).
			show(roomsensor.CodeValidationFailed, "empty_display_name"),
		answer("InsufficientScope", counted, roomsensor.CodeInsufficientScope),
		answer("BodyTooLarge", counted, roomsensor.CodeRequestTooLarge),
		reused.show(roomsensor.CodeValidationFailed, "idempotency_key_reused"),
		answer("NotImplemented", counted, roomsensor.CodeNotImplemented),
	}
}

// pathResponses returns the responses for paths and methods that do not exist.
func pathResponses() []response {
	return []response{
		answer("NotFound", []header{requestID}, roomsensor.CodeNotFound),
		answer("MethodNotAllowed", []header{requestID}, roomsensor.CodeMethodNotAllowed).with("Allow", "Allow"),
	}
}

func receiverResponses() []response {
	plain := []header{requestID}
	return []response{
		answer("BadRejects", plain, roomsensor.CodeValidationFailed, roomsensor.CodeTimeRangeInvalid,
			roomsensor.CodeCursorInvalid, roomsensor.CodeCursorTeamMismatch).
			show(roomsensor.CodeTimeRangeInvalid, "since_invalid"),
		answer("Unauthorized", plain,
			roomsensor.CodeIngestKeyMissing, roomsensor.CodeIngestKeyInvalid, roomsensor.CodeIngestKeyRevoked,
			roomsensor.CodeIngestKeyExpired).
			with("WWW-Authenticate", "WWWAuthenticate"),
		answer("Forbidden", plain, roomsensor.CodeInsufficientScope).show(roomsensor.CodeInsufficientScope, "other_source"),
		answer("RateLimited", plain, roomsensor.CodeRateLimitExceeded).with("Retry-After", "RetryAfter").
			show(roomsensor.CodeRateLimitExceeded, "share_exceeded"),
		answer("InternalError", plain, roomsensor.CodeInternalError),
		answer("Overloaded", plain, roomsensor.CodeOverloaded).with("Retry-After", "RetryAfter"),
		answer("BadUpload", plain, roomsensor.CodeValidationFailed).show(roomsensor.CodeValidationFailed, "malformed_line"),
		answer("TooLarge", plain, roomsensor.CodeRequestTooLarge).show(roomsensor.CodeRequestTooLarge, "upload_too_large"),
		answer("NotFound", plain, roomsensor.CodeNotFound).show(roomsensor.CodeNotFound, "unknown_path"),
		answer("MethodNotAllowed", plain, roomsensor.CodeMethodNotAllowed).with("Allow", "Allow").
			show(roomsensor.CodeMethodNotAllowed, "only_post"),
	}
}
