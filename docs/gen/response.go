package main

import (
	"net/http"
	"slices"
	"strings"

	"roomsensor/internal/roomsensor"
)

// document is what a document says of errors.
type document struct {
	Codes     []roomsensor.CodeInfo
	Responses []response
}

// response is one of components.responses.
type response struct {
	Name     string
	Status   int
	Codes    []roomsensor.Code // those that may come with the status
	Params   []string          // what error.param may be, where that is a short list
	Examples []string          // of components.examples
	Headers  []header
	NoBody   bool // of HEAD
}

// header names one of components.headers. Without a component it is a RateLimit
// header that only a request with a known key has.
type header struct{ Name, Component string }

var (
	requestID = header{"X-Request-Id", "RequestID"}
	counted   = []header{
		requestID,
		{"RateLimit-Limit", "RateLimitLimit"},
		{"RateLimit-Remaining", "RateLimitRemaining"},
		{"RateLimit-Reset", "RateLimitReset"},
	}
	perhapsCounted = []header{
		requestID, {Name: "RateLimit-Limit"}, {Name: "RateLimit-Remaining"}, {Name: "RateLimit-Reset"},
	}
	secret = []header{{"Cache-Control", "CacheControl"}, {"Referrer-Policy", "ReferrerPolicy"}}
)

// answer makes a response out of codes; its status is theirs.
func answer(name string, headers []header, codes ...roomsensor.Code) response {
	r := response{Name: name, Status: codes[0].Status(), Codes: codes, Headers: headers}
	for _, code := range codes {
		r.Examples = append(r.Examples, string(code))
	}
	return r
}

func (r response) params(names ...string) response {
	r.Params = names
	return r
}

func (r response) with(name, component string) response {
	r.Headers = append(slices.Clone(r.Headers), header{name, component})
	return r
}

// onCSV is the response under the path of the export (decision 26).
func (r response) onCSV() response {
	r.Headers = slices.Concat(r.Headers, secret)
	if !strings.HasPrefix(r.Name, "CSV") {
		r.Name = "CSV" + r.Name
	}
	return r
}

// onHead is the response to HEAD, which has no body.
func (r response) onHead() response {
	r.Name = "Head" + r.Name
	r.NoBody = true
	return r
}

// HasParam reports whether error.param may be other than null (decision 34).
func (r response) HasParam() bool {
	return slices.ContainsFunc(r.Codes, func(c roomsensor.Code) bool { return c.Info().Param != "" })
}

// Description says what the status means and which codes come with it.
func (r response) Description() string {
	codes := make([]string, len(r.Codes))
	for i, code := range r.Codes {
		codes[i] = "`" + string(code) + "`"
	}
	return meanings[r.Status] + " " + strings.Join(codes, ", ") + "."
}

// meanings words the status summary of spec 7.
var meanings = map[int]string{
	http.StatusBadRequest:            "The input is refused:",
	http.StatusUnauthorized:          "Authentication failed:",
	http.StatusForbidden:             "The key lacks the scope:",
	http.StatusNotFound:              "It does not exist, or is not the team's:",
	http.StatusMethodNotAllowed:      "The path does not take the method:",
	http.StatusRequestEntityTooLarge: "It is too large:",
	http.StatusUnprocessableEntity:   "The Idempotency-Key came with a different body before:",
	http.StatusTooManyRequests:       "More than 600 requests in 10 minutes:",
	http.StatusInternalServerError:   "The service failed; try again with exponential backoff:",
	http.StatusNotImplemented:        "Reserved for a later version; do not retry:",
	http.StatusServiceUnavailable:    "The service cannot answer right now:",
}
