package samples_test

import (
	"fmt"
	"net/http"

	"roomsensor/test/apitest"
)

// busy answers the first four requests like a busy service and a failing proxy. third is what it does with the third.
func busy(third apitest.Faults) apitest.Faults {
	return func(n int64, w http.ResponseWriter, r *http.Request) bool {
		switch n {
		case 1:
			apitest.Fail(w, http.StatusTooManyRequests, "rate_limit_exceeded")
		case 2:
			return html(w, http.StatusBadGateway)
		case 3:
			return third(n, w, r)
		case 4:
			return html(w, http.StatusGatewayTimeout)
		}
		return n <= 4
	}
}

// down answers like a proxy that does not reach the service, more often than a sample tries that does not go on forever.
func down(n int64, w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Retry-After", "0") // A short test.
	return n <= 6 && html(w, http.StatusServiceUnavailable)
}

// cut closes the connection without an answer.
func cut(int64, http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) }

func html(w http.ResponseWriter, status int) bool {
	w.Header().Set("Content-Type", "text/html")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<html><head><title>%d %s</title></head></html>\n", status, http.StatusText(status))
	return true
}

// failing answers every request after the first with an error that a retry cannot fix.
func failing(n int64, w http.ResponseWriter, _ *http.Request) bool {
	if n > 1 {
		apitest.Fail(w, http.StatusBadRequest, "cursor_invalid")
	}
	return n > 1
}

// broken sends the beginning of an export and breaks the connection.
func broken(_ int64, w http.ResponseWriter, _ *http.Request) bool {
	w.Header().Set("Content-Type", "text/csv")
	_, _ = fmt.Fprint(w, "bucket_at,device_id,display_name,co2_ppm,temp_c,humidity_pct,lux,spl_db,valid_mask\n"+
		"2026-11-20T09:50:00Z,0b7e6c1a-94a3-4c58-8a57-5d1f0c2e7a10,Hall,608.5,21.3,40.2,0,,15\n")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}
