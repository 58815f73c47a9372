package main

import (
	"net/http"
	"slices"
	"strings"

	"roomsensor/internal/roomsensor"
)

// document holds the errors of one OpenAPI document.
type document struct{ Responses []response }

// Codes returns the codes of the responses, in the order of the table.
func (d document) Codes() []roomsensor.CodeInfo {
	return slices.DeleteFunc(slices.Clone(roomsensor.Codes), func(info roomsensor.CodeInfo) bool {
		return !slices.ContainsFunc(d.Responses, func(r response) bool { return slices.Contains(r.Codes, info.Code) })
	})
}

// response is one of components.responses.
type response struct {
	Name     string
	Status   int
	Codes    []roomsensor.Code // codes of this response
	Examples []string          // names in components.examples
	Headers  []header
}

// header names an entry of components.headers.
type header struct{ Name, Component string }

var (
	requestID = header{"X-Request-Id", "RequestID"}
	counted   = []header{
		requestID,
		{"RateLimit-Limit", "RateLimitLimit"},
		{"RateLimit-Remaining", "RateLimitRemaining"},
		{"RateLimit-Reset", "RateLimitReset"},
	}
	// perhapsCounted has headers that only a response to a request with a valid key has.
	perhapsCounted = []header{
		requestID,
		{"RateLimit-Limit", "OptionalRateLimitLimit"},
		{"RateLimit-Remaining", "OptionalRateLimitRemaining"},
		{"RateLimit-Reset", "OptionalRateLimitReset"},
	}
	secret = []header{{"Cache-Control", "CacheControl"}, {"Referrer-Policy", "ReferrerPolicy"}}
)

// answer returns a response with the codes, and with their status.
func answer(name string, headers []header, codes ...roomsensor.Code) response {
	r := response{Name: name, Status: codes[0].Status(), Codes: codes, Headers: headers}
	for _, code := range codes {
		r.Examples = append(r.Examples, string(code))
	}
	return r
}

// show replaces an example of the table, which is about another parameter.
func (r response) show(code roomsensor.Code, example string) response {
	r.Examples = slices.Clone(r.Examples)
	for i, name := range r.Examples {
		if name == string(code) {
			r.Examples[i] = example
		}
	}
	return r
}

func (r response) with(name, component string) response {
	r.Headers = append(slices.Clone(r.Headers), header{name, component})
	return r
}

// onCSV returns the response under the path of an export, with the headers of decision 26 b.
func (r response) onCSV() response {
	r.Headers = slices.Concat(r.Headers, secret)
	if !strings.HasPrefix(r.Name, "CSV") && !strings.HasPrefix(r.Name, "Export") {
		r.Name = "CSV" + r.Name
	}
	return r
}

// Description returns the meaning of the status and the codes.
func (r response) Description() string {
	codes := make([]string, len(r.Codes))
	for i, code := range r.Codes {
		codes[i] = "`" + string(code) + "`"
	}
	return meanings[r.Status] + " " + strings.Join(codes, ", ") + "."
}

// meanings describes the statuses of spec 7.
var meanings = map[int]string{
	http.StatusBadRequest:            "The input is rejected:",
	http.StatusUnauthorized:          "Authentication failed:",
	http.StatusForbidden:             "The key lacks the required scope:",
	http.StatusNotFound:              "It does not exist, or is not the team's:",
	http.StatusMethodNotAllowed:      "The path does not support the method:",
	http.StatusRequestEntityTooLarge: "The body or the result is too large:",
	http.StatusUnprocessableEntity:   "The Idempotency-Key was already used with a different body:",
	http.StatusTooManyRequests:       "Too many requests; retry after the seconds in Retry-After:",
	http.StatusInternalServerError:   "The service failed; retry with exponential backoff:",
	http.StatusNotImplemented:        "Reserved for a later version; do not retry:",
	http.StatusServiceUnavailable:    "The service is overloaded or its storage is unavailable:",
}
