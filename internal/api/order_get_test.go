package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// getChecks are those of a GET, in order: the first four, and those with these names.
func getChecks(names ...string) []check {
	var order []check
	for _, c := range firstChecks {
		c.sentence = "decision 22.12"
		order = append(order, c)
	}
	for _, c := range []check{
		{"path id", "decision 22.13", roomsensor.CodeValidationFailed, "device_id"},
		{"parameter", "decision 22.14", roomsensor.CodeValidationFailed, "limit"},
		{"shape", "decision 22.14", roomsensor.CodeValidationFailed, "shape"},
		{"cursor", "decision 22.15", roomsensor.CodeCursorInvalid, "cursor"},
		{"device", "decision 22.16", roomsensor.CodeDeviceNotFound, "device_id"},
		{"devices", "decision 22.16", roomsensor.CodeDeviceNotFound, "devices"},
		{"assignment", "decision 22.17", roomsensor.CodeAssignmentNotFound, "assignment_id"},
		{"size", "decision 22.17", roomsensor.CodeCSVTooLarge, ""},
	} {
		if slices.Contains(names, c.name) {
			order = append(order, c)
		}
	}
	return order
}

func TestOrderOfGetChecks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.fillLists(t, 2)
	credentials := f.credentialsFor(t)
	unknown := number(9, 9).String()
	for path, names := range map[string][]string{
		"/team":                       {},
		"/devices":                    {"parameter", "cursor"},
		"/devices/current":            {"parameter", "cursor"},
		"/devices/DEVICE":             {"path id", "parameter", "device"},
		"/devices/DEVICE/assignments": {"path id", "parameter", "cursor", "device"},
		"/devices/DEVICE/readings":    {"path id", "parameter", "cursor", "device", "assignment"},
	} {
		f.requireOrder(t, getChecks(names...), func(fails func(string) bool) attempt {
			device := deviceID.String()
			if fails("device") {
				device = unknown
			}
			if fails("path id") {
				device = "dev:1"
			}
			a := attempt{http.MethodGet, strings.Replace(path, "DEVICE", device, 1), "", []option{credentials(fails)}}
			if fails("route") {
				a.path += "/none/none"
			}
			if fails("method") {
				a.method = http.MethodDelete
			}
			a.path += "?" + queryOf(fails, map[string]string{
				"parameter": "limit=0", "cursor": "cursor=x", "assignment": "assignment_id=" + unknown,
			})
			return a
		})
	}
}

// queryOf joins the parameters that fail.
func queryOf(fails func(string) bool, parameters map[string]string) string {
	var sent []string
	for name, parameter := range parameters {
		if fails(name) {
			sent = append(sent, parameter)
		}
	}
	return strings.Join(sent, "&")
}

// The team has more devices than the wide shape takes.
func TestOrderOfExportChecks(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.exec(t, `INSERT INTO devices (team_id, hardware_id) SELECT $1, 'dev:' || i FROM generate_series(2, 1001) i`, teamID)
	credentials := f.credentialsFor(t)
	unknown := number(9, 9).String()
	f.requireOrder(t, getChecks("shape", "devices", "assignment", "size"), func(fails func(string) bool) attempt {
		a := attempt{http.MethodGet, "/readings.csv", "", []option{credentials(fails)}}
		if fails("route") {
			a.path += "/none"
		}
		if fails("method") {
			a.method = http.MethodPost
		}
		parameters := map[string]string{
			"shape": "shape=x", "devices": "devices=" + deviceID.String() + "," + unknown, "assignment": "assignment_id=" + unknown,
		}
		if !fails("shape") {
			parameters["size"] = "shape=wide"
		}
		a.path += "?" + queryOf(fails, parameters)
		return a
	})
}

// Faults of the same checks that are found elsewhere.
func TestOrderOfOtherFaults(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 22.6", "decision 22.14", "decision 22.15")
	f := setup(t)
	unknown := "/devices/" + number(9, 9).String()
	twice := func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "b"} }
	f.do(t, http.MethodPatch, unknown, strings.Repeat(" ", 64<<10+1), header("Content-Type", "application/json"), twice).
		requireError(t, roomsensor.CodeValidationFailed, "Idempotency-Key")
	f.get(t, unknown+"/readings?cursor=x&last=x").requireError(t, roomsensor.CodeTimeRangeInvalid, "last")
	f.get(t, unknown+"/readings?cursor=x&last=91d").requireError(t, roomsensor.CodeTimeRangeTooWide, "last")
	f.get(t, unknown+"/readings?last=91d").requireError(t, roomsensor.CodeTimeRangeTooWide, "last")
	f.get(t, unknown+"/readings?from="+before(-day)).requireError(t, roomsensor.CodeTimeRangeInvalid, "from")
	f.get(t, "/devices?cursor=x&metadata.=y").requireError(t, roomsensor.CodeValidationFailed, "metadata.")
	f.get(t, "/readings.csv?assignment_id="+number(9, 9).String()+"&last=91d").requireError(t, roomsensor.CodeTimeRangeTooWide, "last")
}
