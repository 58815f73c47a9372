package httpedge_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/httpedge"
)

func TestClosest(t *testing.T) {
	t.Parallel()
	names := []string{"from", "to", "last", "assignment_id", "cursor", "limit"}
	for name, want := range map[string]string{
		"form": "from", "fron": "from", "fro": "from", "froom": "from", "From": "from", "tp": "to", "too": "to", "LAST": "last",
		"assignement_id": "assignment_id", "assigment": "assignment_id", "curosr": "cursor", "limits": "limit",
		"x": "", "": "", "metric": "", "fmro.": "", "tt": "to", "at": "", "formm": "", strings.Repeat("from", 99): "",
	} {
		require.Equal(t, want, httpedge.Closest(name, names), name)
	}
	require.Empty(t, httpedge.Closest("x", nil))
}

func TestClosestPath(t *testing.T) {
	t.Parallel()
	paths := []string{
		"/v1/devices", "/v1/devices/current", "/v1/devices/{device_id}", "/v1/devices/{device_id}/assignments",
		"/v1/devices/{device_id}/readings", "/v1/readings.csv", "/v1/team",
	}
	for path, want := range map[string]string{
		"/v1/device": "/v1/devices", "/v1/Devices": "/v1/devices", "/v2/team": "/v1/team", "/v1/teams": "/v1/team",
		"/v1/device/x": "/v1/devices/{device_id}", "/v1/device/current": "/v1/devices/current",
		"/v1/devices/x/reading": "/v1/devices/{device_id}/readings", "/v1/devices/x/assignment": "/v1/devices/{device_id}/assignments",
		"/v1/readings": "/v1/readings.csv", "/v1/devices//readings": "", "/v1/devices/x/y": "", "/v1": "", "": "", "/": "",
		"/v1/x": "", "/v1/devices/x/readings/y": "", "/v1/devices/current": "/v1/devices/current",
	} {
		require.Equal(t, want, httpedge.ClosestPath(path, paths), path)
	}
}

func TestEnumerate(t *testing.T) {
	t.Parallel()
	require.Empty(t, httpedge.Enumerate(nil))
	require.Equal(t, "GET", httpedge.Enumerate([]string{"GET"}))
	require.Equal(t, "GET and HEAD", httpedge.Enumerate([]string{"GET", "HEAD"}))
	require.Equal(t, "GET, HEAD and PATCH", httpedge.Enumerate([]string{"GET", "HEAD", "PATCH"}))
}
