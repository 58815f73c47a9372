package api

import (
	"net/http"
	"net/url"
	"strings"

	"roomsensor/internal/roomsensor"
)

const authorizationHeader = "Authorization"

// credentials finds the text of the API key (decision 24): in the header, or,
// on the CSV endpoint and only without the header, in the URL.
func credentials(r *http.Request, keyInURL bool) (string, error) {
	headers := r.Header.Values(authorizationHeader)
	if len(headers) == 0 && keyInURL {
		return urlCredentials(r.URL.RawQuery)
	}
	switch len(headers) {
	case 0:
		return "", roomsensor.CodeAPIKeyMissing.New()
	case 1:
		if key, ok := roomsensor.BearerToken(headers[0]); ok {
			return key, nil
		}
	}
	return "", roomsensor.CodeAPIKeyInvalid.New()
}

// urlCredentials finds the one key=... of a query, also where the rest of the
// query does not decode: authentication comes before the parameters.
func urlCredentials(query string) (string, error) {
	found, key := 0, ""
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if name, err := url.QueryUnescape(name); err != nil || name != keyParameter {
			continue
		}
		found++
		// What does not decode is malformed, and so is the empty text.
		if decoded, err := url.QueryUnescape(value); err == nil && !strings.Contains(value, ";") {
			key = decoded
		}
	}
	switch found {
	case 0:
		return "", roomsensor.CodeAPIKeyMissing.New()
	case 1:
		return key, nil
	}
	return "", roomsensor.CodeAPIKeyInvalid.New()
}
