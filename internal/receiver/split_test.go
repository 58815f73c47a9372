package receiver

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"roomsensor/internal/fairshare"
	"roomsensor/internal/httpedge"
	"roomsensor/internal/roomsensor"
)

const small = `{"hardware_id":"dev:1","readings":[]}`

// The body of POST /uploads is one object over any number of lines, or JSON Lines.
func TestSplit(t *testing.T) {
	t.Parallel()
	pretty := "{\n \"hardware_id\": \"dev:7\",\n \"readings\": [\n  {\"lux\": 1}\n ]\n}"
	cases := map[string]struct {
		body  string
		texts []string
	}{
		"one":                  {small, []string{small}},
		"one with its end":     {small + "\n", []string{small}},
		"one over many lines":  {pretty, []string{pretty}},
		"with space around it": {"\n\n  " + pretty + "\n \n", []string{pretty}},
		"lines":                {small + "\n" + small, []string{small, small}},
		"byte order mark":      {"\ufeff" + small + "\n" + small, []string{small, small}},
		"lines of DOS":         {small + "\r\n" + small + "\r\n", []string{small, small}},
		"blank lines":          {"\n" + small + "\n\n" + small + "\n\n", []string{small, small}},
	}
	for name, c := range cases {
		found, err := split([]byte(c.body), unlimited())
		require.NoError(t, err, name)
		var texts []string
		for _, m := range found.messages {
			texts = append(texts, string(m.Text))
		}
		require.Equal(t, c.texts, texts, name)
	}
	found, _ := split([]byte(pretty), unlimited())
	require.Equal(t, "dev:7", found.messages[0].HardwareID)
}

func TestSplitErrors(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		body    string
		code    roomsensor.Code
		message string
	}{
		"nothing":             {"", roomsensor.CodeValidationFailed, "The body is empty."},
		"white space":         {" \n\t\n", roomsensor.CodeValidationFailed, "The body is empty."},
		"no JSON":             {"hello", roomsensor.CodeValidationFailed, "Line 1: The upload is not valid JSON, at byte 1."},
		"second line":         {small + "\nhello\n" + small, roomsensor.CodeValidationFailed, "Line 2: The upload is not valid JSON, at byte 1."},
		"after a blank line":  {small + "\n\n[]", roomsensor.CodeValidationFailed, "Line 3: The upload is an array."},
		"an array of uploads": {"[\n " + small + ",\n " + small + "\n]", roomsensor.CodeValidationFailed, "Line 1: The upload is an array."},
		"first of two lines":  {"{\"hardware_id\":\n" + small, roomsensor.CodeValidationFailed, "Line 1: The upload ends before its JSON object does."},
		"a value":             {"1\n" + small, roomsensor.CodeValidationFailed, "Line 1: The upload is not a JSON object."},
		"two on a line":       {small + small, roomsensor.CodeValidationFailed, "Line 1: There is text after the end of the JSON object, at byte 38."},
		"inside of an object": {"\n{\n \"hardware_id\": \"dev:1\",\n \"readings\": [,]\n}", roomsensor.CodeValidationFailed, "Line 4: The upload is not valid JSON, at byte 42."},
		"cut off object":      {"{\n\"hardware_id\": \"dev:1\",\n\"readings\": [\n", roomsensor.CodeValidationFailed, "Line 3: The upload ends before its JSON object does."},
	}
	for name, c := range cases {
		found, err := split([]byte(c.body), unlimited())
		require.Nil(t, found, name)
		var public *roomsensor.Error
		require.ErrorAs(t, err, &public, name)
		require.Equal(t, c.code, public.Code, name)
		require.True(t, strings.HasPrefix(public.Message, c.message), "%s: %s", name, public.Message)
	}
}

// unlimited returns memory that no test exhausts.
func unlimited() *fairshare.Held { return newMemoryLimiter(1 << 40).Open(fairshare.Owner{Key: "a"}) }

func TestSplitCount(t *testing.T) {
	t.Parallel()
	limiter := newMemoryLimiter(1 << 40)
	m := limiter.Open(fairshare.Owner{Key: "a"})
	found, err := split([]byte(strings.Repeat(small+"\n", maxUploads)), m)
	require.NoError(t, err)
	require.Len(t, found.messages, maxUploads)
	require.Equal(t, cap(found.messages)*messageBytes, limiter.Used())
	_, err = split([]byte(strings.Repeat(small+"\n", maxUploads+1)), unlimited())
	require.ErrorContains(t, err, "more than 50000 uploads")
	require.Equal(t, roomsensor.CodeRequestTooLarge, httpedge.PublicError(err).Code)
}

// A body of millions of lines is refused at the first one, with hardly any memory.
func TestSplitMemory(t *testing.T) { //nolint:paralleltest // It counts what the whole process allocates.
	body := bytes.Repeat([]byte("1\n"), MaxBody/2)
	var before, after runtime.MemStats
	m := unlimited()
	runtime.ReadMemStats(&before)
	_, err := split(body, m)
	runtime.ReadMemStats(&after)
	require.Error(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10))
}

// FuzzSplit checks that split does not panic and returns exactly the text of the body.
func FuzzSplit(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(small + "\n\r\n" + small))
	f.Add([]byte("{\n\"hardware_id\":\"dev:1\",\n\"readings\":[]}\n{"))
	f.Fuzz(func(t *testing.T, body []byte) {
		found, err := split(body, unlimited())
		require.Equal(t, err == nil, found != nil)
		if err != nil {
			return
		}
		rest := string(body)
		for _, m := range found.messages {
			require.True(t, roomsensor.IsHardwareID(m.HardwareID))
			_, after, found := strings.Cut(rest, string(m.Text))
			require.True(t, found)
			rest = after
		}
		require.Empty(t, strings.TrimSpace(rest))
	})
}
