package api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/conformance"
	"roomsensor/internal/roomsensor"
)

// parameterAnswers are queries, by endpoint, and what they are answered; an
// empty code is 200.
var parameterAnswers = map[string]struct {
	path  string
	code  roomsensor.Code
	param string
}{
	"":                          {"DEVICE/readings", "", ""},
	"&&":                        {"DEVICE/readings", "", ""},
	"form=x":                    {"DEVICE/readings", roomsensor.CodeValidationFailed, "form"},
	"From=x":                    {"DEVICE/readings", roomsensor.CodeValidationFailed, "From"},
	"device=x":                  {"/readings.csv", roomsensor.CodeValidationFailed, "device"},
	"limit=5":                   {"/readings.csv", roomsensor.CodeValidationFailed, "limit"},
	"cursor=x":                  {"/readings.csv", roomsensor.CodeValidationFailed, "cursor"},
	"metadata.a=b":              {"DEVICE/readings", roomsensor.CodeValidationFailed, "metadata.a"},
	"last=1h":                   {"DEVICE/assignments", roomsensor.CodeValidationFailed, "last"},
	"limit=1":                   {"DEVICE", roomsensor.CodeValidationFailed, "limit"},
	"x=1":                       {"/team", roomsensor.CodeValidationFailed, "x"},
	"=1":                        {"/team", roomsensor.CodeValidationFailed, ""},
	"last=1h&last=1h":           {"DEVICE/readings", roomsensor.CodeValidationFailed, "last"},
	"last=1h&l%61st=2h":         {"DEVICE/readings", roomsensor.CodeValidationFailed, "last"},
	"from=%zz":                  {"DEVICE/readings", roomsensor.CodeValidationFailed, ""},
	"from=%":                    {"DEVICE/readings", roomsensor.CodeValidationFailed, ""},
	"%zz=1":                     {"DEVICE/readings", roomsensor.CodeValidationFailed, ""},
	"last=1h;limit=2":           {"DEVICE/readings", roomsensor.CodeValidationFailed, ""},
	"a;b":                       {"/team", roomsensor.CodeValidationFailed, ""},
	"x=1&from=%zz":              {"DEVICE/readings", roomsensor.CodeValidationFailed, ""},
	"from=":                     {"DEVICE/readings", roomsensor.CodeTimeRangeInvalid, "from"},
	"to=":                       {"DEVICE/readings", roomsensor.CodeTimeRangeInvalid, "to"},
	"last=":                     {"DEVICE/readings", roomsensor.CodeTimeRangeInvalid, "last"},
	"from=%00":                  {"DEVICE/readings", roomsensor.CodeTimeRangeInvalid, "from"},
	"from=%ff":                  {"DEVICE/readings", roomsensor.CodeTimeRangeInvalid, "from"},
	"last=%ff":                  {"DEVICE/readings", roomsensor.CodeTimeRangeInvalid, "last"},
	"cursor=%ff":                {"DEVICE/readings", roomsensor.CodeCursorInvalid, "cursor"},
	"last=1h&from=%ff&to=%ff":   {"DEVICE/readings", "", ""},
	"%ff=x":                     {"DEVICE/readings", roomsensor.CodeValidationFailed, "\uFFFD"},
	"cursor=":                   {"DEVICE/readings", roomsensor.CodeCursorInvalid, "cursor"},
	"cursor=%00":                {"DEVICE/readings", roomsensor.CodeCursorInvalid, "cursor"},
	"assignment_id=":            {"DEVICE/readings", roomsensor.CodeValidationFailed, "assignment_id"},
	"assignment_id=dev:1":       {"DEVICE/readings", roomsensor.CodeValidationFailed, "assignment_id"},
	"assignment_id=%00":         {"DEVICE/readings", roomsensor.CodeValidationFailed, "assignment_id"},
	"limit=":                    {"/devices", roomsensor.CodeValidationFailed, "limit"},
	"limit=0":                   {"/devices", roomsensor.CodeValidationFailed, "limit"},
	"limit=1001":                {"/devices", roomsensor.CodeValidationFailed, "limit"},
	"limit=-1":                  {"/devices", roomsensor.CodeValidationFailed, "limit"},
	"limit=%2b1":                {"/devices", roomsensor.CodeValidationFailed, "limit"},
	"limit=1.0":                 {"/devices/current", roomsensor.CodeValidationFailed, "limit"},
	"limit=99999999999":         {"/devices", roomsensor.CodeValidationFailed, "limit"},
	"limit=1000":                {"/devices", "", ""},
	"metadata.=x":               {"/devices", roomsensor.CodeValidationFailed, "metadata."},
	"metadata=x":                {"/devices", roomsensor.CodeValidationFailed, "metadata"},
	"metadata.a=b&limit=7":      {"/devices/current", "", ""},
	"metadata.%ff=x":            {"/devices", roomsensor.CodeValidationFailed, "metadata.\uFFFD"},
	"metadata.a=%ff":            {"/devices", roomsensor.CodeValidationFailed, "metadata.a"},
	"metadata.a=%00":            {"/devices", "", ""},
	"metadata.%00=x":            {"/devices/current", "", ""},
	"metadata.a=1&metadata.a=1": {"/devices", roomsensor.CodeValidationFailed, "metadata.a"},
	"devices=":                  {"/readings.csv", roomsensor.CodeValidationFailed, "devices"},
	"devices=,":                 {"/readings.csv", roomsensor.CodeValidationFailed, "devices"},
	"devices=dev:1":             {"/readings.csv", roomsensor.CodeValidationFailed, "devices"},
	"shape=":                    {"/readings.csv", roomsensor.CodeValidationFailed, "shape"},
	"shape=Long":                {"/readings.csv", roomsensor.CodeValidationFailed, "shape"},
}

// Decision 6.
func TestParameters(t *testing.T) {
	t.Parallel()
	conformance.Covers(t, "decision 6.1", "decision 6.2", "decision 6.3", "decision 6.4")
	conformance.Covers(t, "decision 31.5", "decision 31.6")
	f := setup(t)
	for query, tc := range parameterAnswers {
		path := strings.Replace(tc.path, "DEVICE", "/devices/"+deviceID.String(), 1)
		t.Run(query, func(t *testing.T) {
			t.Parallel()
			got := f.get(t, path+"?"+query)
			if tc.code == "" {
				require.Equal(t, http.StatusOK, got.status, string(got.body))
				return
			}
			got.requireError(t, tc.code, tc.param)
		})
	}
	many := strings.Repeat(deviceID.String()+",", 1000) + deviceID.String()
	f.get(t, "/readings.csv?devices="+many).requireError(t, roomsensor.CodeValidationFailed, "devices")
	require.Equal(t, http.StatusOK, f.get(t, "/readings.csv?devices="+many[:len(many)-37]).status)
}
