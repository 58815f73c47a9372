package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// spellings are forms of one id that mean the same.
func spellings(id string) []string {
	return []string{id, strings.ToUpper(id), strings.ToUpper(id[:20]) + id[20:]}
}

func TestLetterCaseOfIDs(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 7.1", "decision 7.2")
	f := setup(t)
	block := number(0xa5, 1)
	f.addAssignment(t, deviceID, block, start.Add(-day), nil)
	f.addReading(t, deviceID, start.Add(-roomsensor.BucketLength), 1)
	for _, device := range spellings(deviceID.String()) {
		for _, assignment := range spellings(block.String()) {
			for _, path := range []string{
				"/devices/" + device, "/devices/" + device + "/assignments",
				"/devices/" + device + "/readings?assignment_id=" + assignment,
				"/readings.csv?devices=" + device + "&assignment_id=" + assignment,
				"/readings.csv?shape=wide&devices=" + device,
			} {
				got := f.get(t, path)
				require.Equal(t, http.StatusOK, got.status, path)
				require.NotContains(t, string(got.body), "DE000000")
				require.NotContains(t, string(got.body), "A5000000")
			}
		}
		patched := f.do(t, http.MethodPatch, "/devices/"+device, `{"metadata":{}}`, header("Content-Type", "application/json"))
		require.Contains(t, string(patched.body), `"device_id":"`+deviceID.String()+`"`)
	}
	require.Contains(t, string(f.get(t, "/readings.csv").body), ","+deviceID.String()+",")
	require.Contains(t, string(f.get(t, "/readings.csv?shape=wide").body), "device_"+deviceID.String()[:8]+".co2_ppm")
	require.Contains(t, string(f.get(t, "/devices/current").body), `"assignment_id":"`+block.String()+`"`)
}

// noIDs are texts that are near the id of the fixture's device and none.
var noIDs = []string{
	"dev:1", "1", "null", deviceID.String()[1:], deviceID.String() + "0", strings.ReplaceAll(deviceID.String(), "-", ""),
	"{" + deviceID.String() + "}", "{" + deviceID.String()[1:35] + "}", "urn:uuid:" + deviceID.String(), `"` + deviceID.String()[2:] + `"`,
	" " + deviceID.String(), deviceID.String() + " ", deviceID.String() + "\n", "\t" + deviceID.String()[1:], "+" + deviceID.String()[1:],
	"g" + deviceID.String()[1:], strings.Replace(deviceID.String(), "-", "_", 1), strings.Replace(deviceID.String(), "-", "\u2010", 1),
	"de00000-00000-4000-8000-000000000001", strings.Repeat("x", 36), strings.Repeat("0", 36), "ｄe" + deviceID.String()[4:],
	"0x" + deviceID.String()[2:], deviceID.String()[:35] + "\x00", deviceID.String()[:35] + "\xff", "%",
}

func TestWhatIsNoID(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 7.3")
	f := setup(t)
	for _, text := range noIDs {
		segment, value := url.PathEscape(text), url.QueryEscape(text)
		for path, param := range map[string]string{
			"/devices/" + segment:                                      "device_id",
			"/devices/" + segment + "/readings":                        "device_id",
			"/devices/" + segment + "/assignments":                     "device_id",
			readingsPath + "?assignment_id=" + value:                   "assignment_id",
			"/readings.csv?assignment_id=" + value:                     "assignment_id",
			"/readings.csv?devices=" + value:                           "devices",
			"/readings.csv?devices=" + deviceID.String() + "," + value: "devices",
		} {
			f.get(t, path).requireError(t, roomsensor.CodeValidationFailed, param)
		}
		f.do(t, http.MethodPatch, "/devices/"+segment, `{}`).requireError(t, roomsensor.CodeValidationFailed, "device_id")
	}
	for _, devices := range []string{",", deviceID.String() + ",", "," + deviceID.String(), deviceID.String() + ", " + deviceID.String(), deviceID.String() + ";"} {
		f.get(t, "/readings.csv?devices="+url.QueryEscape(devices)).requireError(t, roomsensor.CodeValidationFailed, "devices")
	}
	f.get(t, "/devices/current/readings").requireError(t, roomsensor.CodeValidationFailed, "device_id")
	f.get(t, "/devices/dev:1?limit=x").requireError(t, roomsensor.CodeValidationFailed, "device_id")
}
