package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

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
