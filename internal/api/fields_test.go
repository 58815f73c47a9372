package api_test

import (
	"maps"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
)

// fields are what an object shows, with the sentence that says so.
type fields map[string]struct {
	contract string
	want     any
}

// require holds an object to the fields, and to having no other.
func (fs fields) require(t *testing.T, object map[string]any) {
	t.Helper()
	for name, field := range fs {
		if field.contract != "" {
			conformance.Covers(t, field.contract)
		}
		value, there := object[name]
		require.True(t, there, name)
		require.Equal(t, field.want, value, name)
	}
	require.ElementsMatch(t, slices.Collect(maps.Keys(fs)), slices.Collect(maps.Keys(object)))
}

// embedded is the open assignment of fill.
var embedded = map[string]any{
	"assignment_id": number(0xa5, 2).String(), "label": "Ana", "started_at": "2026-11-20T09:00:00Z", "external_ref": "crm-7",
}

var fullDevice = fields{
	"device_id":         {"spec 2, device, device_id", deviceID.String()},
	"hardware_id":       {"spec 2, device, hardware_id", "dev:1"},
	"display_name":      {"spec 2, device, display_name", `Gym <"A"> é`},
	"firmware_version":  {"", "2.4.1"},
	"metadata":          {"spec 2, device, metadata", map[string]any{"room": "12", "floor": "1", "a.b:c-d_e": ""}},
	"status":            {"", "online"},
	"last_seen_at":      {"", "2026-11-20T09:59:59.25Z"},
	"signal":            {"", map[string]any{"rssi_dbm": -87.0, "bars": 0.0}},
	"active_assignment": {"spec 2, assignment, embedded", embedded},
}

// bareDevice is one that has as little as can be.
var bareDevice = fields{
	"device_id":         {"spec 2, device, device_id", number(0xde, 2).String()},
	"hardware_id":       {"spec 2, device, hardware_id", "dev:2"},
	"display_name":      {"spec 2, device, display_name", nil},
	"firmware_version":  {"", nil},
	"metadata":          {"spec 2, device, metadata", map[string]any{}},
	"status":            {"", "offline"},
	"last_seen_at":      {"", nil},
	"signal":            {"spec 2, device, signal", map[string]any{"rssi_dbm": nil, "bars": nil}},
	"active_assignment": {"", nil},
}

func TestFieldsOfADevice(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.fill(t)
	full := decode[map[string]any](t, f.get(t, "/devices/"+deviceID.String()))
	bare := decode[map[string]any](t, f.get(t, "/devices/"+number(0xde, 2).String()))
	fullDevice.require(t, full)
	bareDevice.require(t, bare)

	conformance.Covers(t, "spec 4, GET /devices, active_assignment", "spec 4, PATCH, response")
	require.Equal(t, []map[string]any{full, bare}, decode[list[map[string]any]](t, f.get(t, "/devices")).Data)
	full["display_name"] = "Hall"
	require.Equal(t, full, decode[map[string]any](t, f.patch(t, `{"display_name":"Hall"}`)))
}

func TestFieldsOfAnAssignment(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.fill(t)
	history := decode[list[map[string]any]](t, f.get(t, "/devices/"+deviceID.String()+"/assignments")).Data
	require.Len(t, history, 2)
	conformance.Covers(t, "spec 2, assignment, history", "spec 2, assignment, external_ref")
	fields{
		"assignment_id":  {"spec 2, assignment, assignment_id", number(0xa5, 2).String()},
		"type":           {"spec 2, assignment, type", "athlete"},
		"label":          {"spec 2, assignment, label", "Ana"},
		"home_or_travel": {"spec 2, assignment, home_or_travel", "home"},
		"started_at":     {"spec 2, assignment, started_at", "2026-11-20T09:00:00Z"},
		"ended_at":       {"spec 2, assignment, ended_at", nil},
		"external_ref":   {"", "crm-7"},
	}.require(t, history[0])
	fields{
		"assignment_id":  {"spec 2, assignment, assignment_id", number(0xa5, 1).String()},
		"type":           {"spec 2, assignment, type", "place"},
		"label":          {"spec 2, assignment, label", "Room 12"},
		"home_or_travel": {"spec 2, assignment, home_or_travel", "travel"},
		"started_at":     {"spec 2, assignment, started_at", "2026-11-20T07:00:00Z"},
		"ended_at":       {"spec 2, assignment, ended_at", "2026-11-20T08:00:00Z"},
		"external_ref":   {"", nil},
	}.require(t, history[1])
	open := decode[map[string]any](t, f.get(t, "/devices/"+deviceID.String()))["active_assignment"]
	require.Equal(t, "crm-7", open.(map[string]any)["external_ref"])
}

func TestFieldsOfAReading(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 1, metrics")
	f := setup(t)
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db, ingested_at)
		VALUES ($1, '2026-11-20 09:55Z', 612, -3.5, 40.1, 120, 38.2, '2026-11-20 09:56:01.5Z')`, deviceID)
	want := fields{
		"bucket_at":    {"spec 2, reading, bucket_at", "2026-11-20T09:55:00Z"},
		"co2_ppm":      {"spec 2, reading, co2_ppm", 612.0},
		"temp_c":       {"spec 2, reading, temp_c", -3.5},
		"humidity_pct": {"spec 2, reading, humidity_pct", 40.1},
		"lux":          {"spec 2, reading, lux", 120.0},
		"spl_db":       {"spec 2, reading, spl_db", 38.2},
		"ingested_at":  {"spec 2, reading, ingested_at", "2026-11-20T09:56:01.5Z"},
	}
	want.require(t, decode[list[map[string]any]](t, f.get(t, readingsPath)).Data[0])
	current := decode[list[map[string]any]](t, f.get(t, "/devices/current")).Data[0]
	want.require(t, current["latest"].(map[string]any))
}

func TestFieldsOfACSVRow(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 2, CSV row, columns", "spec 2, CSV row, valid_mask", "spec 4, GET /readings.csv, long")
	f := setup(t)
	f.nameDevice(t, deviceID, "Gym")
	f.exec(t, `INSERT INTO readings (device_id, bucket_at, co2_ppm, temp_c, humidity_pct, lux, spl_db)
		VALUES ($1, '2026-11-20 09:55Z', 612, -3.5, 40.1, 120, 38.2)`, deviceID)
	want := [][]string{
		{"bucket_at", "device_id", "display_name", "co2_ppm", "temp_c", "humidity_pct", "lux", "spl_db", "valid_mask"},
		{"2026-11-20T09:55:00Z", deviceID.String(), "Gym", "612", "-3.5", "40.1", "120", "38.2", "31"},
	}
	require.Equal(t, want, f.get(t, "/readings.csv").records(t), "long is the default")
	require.Equal(t, want, f.get(t, "/readings.csv?shape=long").records(t))
}

// The tags are the client's: it writes them, and finds devices by them.
func TestMetadataIsTheClients(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "spec 2, device, metadata, client-owned")
	f := setup(t)
	require.Empty(t, decode[list[device]](t, f.get(t, "/devices?metadata.crm.id=4711")).Data)
	require.Equal(t, http.StatusOK, f.patch(t, `{"metadata":{"crm.id":"4711"}}`).status)
	found := decode[list[device]](t, f.get(t, "/devices?metadata.crm.id=4711")).Data
	require.Len(t, found, 1)
	require.Equal(t, map[string]string{"crm.id": "4711"}, found[0].Metadata)
	f.clock.advance(48 * time.Hour)
	require.Len(t, decode[list[device]](t, f.get(t, "/devices?metadata.crm.id=4711")).Data, 1)
}
